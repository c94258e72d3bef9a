/* workspace_use.h - a workspace of cuDNN: as it was recorded, else as a model estimates it; and how
 * far the models were off on calls that they were not made from. */
#ifndef WORKSPACE_USE_H
#define WORKSPACE_USE_H

#include "gmd_tensor.h"
#include "gmd_workspaces.h"

enum workspace_model {
    MODEL_CONV_FORWARD,
    MODEL_CONV_BACKWARD,
    MODEL_CONV_TRIALS,
    MODEL_CONV_OTHER_BATCH, /* recorded with a smaller and a larger batch */
    MODEL_CONV_NEAREST,     /* recorded calls are like it */
    MODEL_RNN,
    MODEL_RNN_NARROW,
    WORKSPACE_MODELS
};

#define ESTIMATE_LEAST_TENSORS ((uint64_t)1 << 20)

typedef struct workspace_estimate {
    uint64_t bytes;
    /* Bytes that the call reads and writes, at least ESTIMATE_LEAST_TENSORS: errors are shares of
     * them. */
    uint64_t tensors;
    enum workspace_model model;
    uint64_t least, most; /* of what tables say, where one says something; else both are `bytes` */
} workspace_estimate;

/* Where 19 in 20 calls of the estimate's kind are. */
typedef struct workspace_range {
    uint64_t least, most;
} workspace_range;
workspace_range workspace_range_of(const workspace_estimate *estimate);

/* The line of the table that the run has; NULL: the call was not recorded, and is listed where the
 * run lists such calls. Counts nothing. */
const gmd_workspace *workspace_recorded(struct engine *engine, const gmd_workspace_call *call);

/* Makes `*estimate` what a table says of calls that are like a convolution, if it has some. */
void workspace_from_table(const gmd_workspaces *table, const gmd_workspace_call *call,
                          workspace_estimate *estimate);
/* The same by the run's own table, once for each call. */
void workspace_estimated(struct engine *engine, const gmd_workspace_call *call,
                         workspace_estimate *estimate);

/* Counts a workspace: `recorded` bytes where they are known, else the estimate. Returns the bytes
 * to take. What is taken next is as uncertain as the estimate until workspace_taken(). */
uint64_t workspace_count(struct engine *engine, const uint64_t *recorded,
                         workspace_estimate estimate);
void workspace_taken(struct engine *engine);

/* The type's number in tables of workspaces. */
int64_t workspace_dtype(enum dtype dtype);

#endif
