/* gmd_module.h - neural network modules: parameters and buffers on the device, and a forward pass.
 */
#ifndef GMD_MODULE_H
#define GMD_MODULE_H

#include "gmd_operations.h"

#define GMD_MAX_RESULTS 3 /* an LSTM gives its output and two states */

typedef struct gmd_module gmd_module;

/* Gives the number of results, each a new reference; 0 after gmd_misuse(). Inputs are borrowed. */
typedef int (*gmd_forward)(gmd_engine *engine, gmd_module *module, gmd_tensor **inputs, int count,
                           gmd_tensor *results[GMD_MAX_RESULTS]);

struct gmd_module {
    gmd_thing thing;
    const char *name; /* "Conv2d" */
    gmd_forward forward;
    gmd_tensor **parameters;
    gmd_tensor **buffers; /* running statistics: kept, no gradient */
    gmd_module **children;
    size_t parameter_count, buffer_count, child_count;
    gmd_storage *flat; /* an LSTM's weights as one block */
    gmd_conv conv;     /* convolutions and pools */
    gmd_rnn rnn;       /* of recurrent networks; the weights are the parameters */
    int64_t heads;
    gmd_activation activation;
    uint64_t walk; /* the last one that came here: a module may be part of another several times */
    int takes;     /* so many tensors at most */
    int level;     /* how many modules deep in others it has been: passes recurse */
    bool in_place, training, gelu, norm_first;
};

extern const gmd_thing_class gmd_module_class;

static inline gmd_module *gmd_module_keep(gmd_module *module)
{
    return (gmd_module *)gmd_thing_keep(&module->thing);
}
static inline void gmd_module_drop(gmd_engine *engine, gmd_module *module)
{
    gmd_thing_drop(engine, module ? &module->thing : NULL);
}

/* Parameters in the order of torch's Module.parameters(): a module's own, then its children's. */
typedef void (*gmd_visit_parameter)(gmd_engine *engine, gmd_tensor *parameter, void *context);
void gmd_module_parameters(gmd_engine *engine, gmd_module *module, gmd_visit_parameter visit,
                           void *context);
/* Bytes of its elements and of those of its children; a gradient counts where there is one. */
typedef struct gmd_module_sizes {
    uint64_t parameters, gradients, buffers;
} gmd_module_sizes;
gmd_module_sizes gmd_module_measure(gmd_engine *engine, gmd_module *module);
void gmd_module_train(gmd_module *module, bool training);

/* One input, one result; NULL after gmd_misuse() and for a NULL input. */
gmd_tensor *gmd_module_apply(gmd_engine *engine, gmd_module *module, gmd_tensor *input);
/* The same, and the input is dropped as soon as the result is there: `x = layer(x)`. */
gmd_tensor *gmd_module_pass(gmd_engine *engine, gmd_module *module, gmd_tensor *input);

/* Layers (modules.c). Each allocates its parameters in the order in which .cuda() moves them. */
gmd_module *gmd_nn_conv2d(gmd_engine *engine, int64_t in, int64_t out, gmd_conv conv, bool bias);
gmd_module *gmd_nn_batch_norm(gmd_engine *engine, int64_t channels);
gmd_module *gmd_nn_relu(gmd_engine *engine, bool in_place);
gmd_module *gmd_nn_dropout(gmd_engine *engine);
gmd_module *gmd_nn_max_pool(gmd_engine *engine, gmd_conv pool);
gmd_module *gmd_nn_avg_pool(gmd_engine *engine); /* to 1 by 1 */
gmd_module *gmd_nn_flatten(gmd_engine *engine);
gmd_module *gmd_nn_linear(gmd_engine *engine, int64_t in, int64_t out, bool bias);
gmd_module *gmd_nn_layer_norm(gmd_engine *engine, int64_t features);
gmd_module *gmd_nn_embedding(gmd_engine *engine, int64_t entries, int64_t features);
gmd_module *gmd_nn_activation(gmd_engine *engine, gmd_activation kind);
gmd_module *gmd_nn_softmax(gmd_engine *engine);
/* Recurrent (modules_rnn.c); of `shape` kind, layers, directions, hidden and batch_first are read.
 */
gmd_module *gmd_nn_rnn(gmd_engine *engine, const gmd_rnn *shape, int64_t in);
gmd_module *gmd_nn_gru_cell(gmd_engine *engine, int64_t in, int64_t hidden);

/* Compositions (models.c). They take over the references in `children`. */
gmd_module *gmd_nn_sequential(gmd_engine *engine, gmd_module **children, size_t count);
bool gmd_module_is_sequential(const gmd_module *module);
gmd_module *gmd_nn_residual(gmd_engine *engine, gmd_module *body); /* input + body(input) */
gmd_module *gmd_nn_resnet50(gmd_engine *engine, int64_t classes);
/* Transformers (model_transformer.c). */
typedef struct gmd_encoder {
    int64_t layers, features, heads, hidden;
    bool gelu, norm_first; /* else ReLU, and normalisation last */
} gmd_encoder;
gmd_module *gmd_nn_transformer(gmd_engine *engine, const gmd_encoder *shape);
gmd_module *gmd_nn_gpt_block(gmd_engine *engine, int64_t features, int64_t heads);
gmd_module *gmd_nn_causal_block(gmd_engine *engine, int64_t features, int64_t heads);
typedef struct gmd_gpt {
    int64_t vocabulary, features, heads, layers;
    int64_t positions; /* embedded and added to the words; 0: none */
    bool causal;       /* nanoGPT's blocks in place of those over MultiheadAttention */
    bool checkpoint;   /* of each block only the input is kept for the way back */
} gmd_gpt;
gmd_module *gmd_nn_gpt(gmd_engine *engine, const gmd_gpt *shape);
gmd_module *gmd_nn_checkpointed(gmd_engine *engine,
                                gmd_module *body); /* checkpoint.c; takes over */
/* GRU encoder and decoder with attention (model_seq2seq.c); its inputs are source and target,
 * [batch, length] each. */
gmd_module *gmd_nn_seq2seq(gmd_engine *engine, int64_t vocabulary, int64_t features,
                           int64_t hidden);

/* For both files. */
gmd_module *gmd_module_new(gmd_engine *engine, const char *name, gmd_forward forward);
gmd_tensor *gmd_module_parameter(gmd_engine *engine, gmd_module *module, gmd_shape shape);
/* Takes over `child`. One that would make a cycle, or too deep a nesting, is gmd_misuse() and left
 * out. */
void gmd_module_child(gmd_engine *engine, gmd_module *module, gmd_module *child);

#endif
