/* rnn_model.h - the memory that cuDNN takes for recurrent networks. */
#ifndef GMD_RNN_MODEL_H
#define GMD_RNN_MODEL_H

#include "workspace_use.h"

struct rnn_call {
    enum gmd_workspace_op op;
    bool lstm, packed, training, drops; /* drops: between layers */
    enum dtype dtype;
    int64_t batch, length, features, hidden, layers, directions;
    uint64_t step_bytes;   /* of the output */
    uint64_t matrix_bytes; /* of the weights without the biases */
};

/* For the time of the call, where nobody recorded it. */
workspace_estimate rnn_model_workspace(const struct rnn_call *call);

/* For the time of the call. Counts it as recorded or estimated. */
uint64_t rnn_workspace_bytes(struct engine *engine, const struct rnn_call *call);
/* What is kept for the way back. */
uint64_t rnn_reserve_bytes(struct engine *engine, const struct rnn_call *call);

#endif
