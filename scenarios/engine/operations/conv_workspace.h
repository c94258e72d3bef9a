/* conv_workspace.h - the memory that cuDNN takes for the time of a convolution. */
#ifndef GMD_CONV_WORKSPACE_H
#define GMD_CONV_WORKSPACE_H

#include "gmd_operations.h"

typedef enum gmd_conv_pass {
    GMD_CONV_FORWARD,
    GMD_CONV_INPUT_GRAD,
    GMD_CONV_WEIGHT_GRAD
} gmd_conv_pass;

typedef struct gmd_conv_call {
    gmd_conv_pass pass;
    gmd_conv conv;
    gmd_dtype dtype;
    gmd_shape input, weight, output;
} gmd_conv_call;

/* Takes and frees the workspace of one call. With cuDNN's benchmark on, the first call of its kind
 * also tries the other algorithms, as far as there is memory for their workspaces. */
void gmd_conv_workspace(gmd_engine *engine, const gmd_conv_call *call);

#endif
