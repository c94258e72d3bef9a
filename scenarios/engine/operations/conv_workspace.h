/* conv_workspace.h - the memory that cuDNN takes for the time of a convolution. */
#ifndef GMD_CONV_WORKSPACE_H
#define GMD_CONV_WORKSPACE_H

#include "gmd_operations.h"

enum conv_pass { CONV_FORWARD, CONV_INPUT_GRAD, CONV_WEIGHT_GRAD };

struct conv_call {
    enum conv_pass pass;
    struct conv conv;
    enum dtype dtype;
    struct shape input, weight, output;
};

/* Takes and frees the workspace of one call. With cuDNN's benchmark on, the first call of its kind
 * also tries the other algorithms, as far as there is memory for their workspaces. */
void conv_workspace_use(struct engine *engine, const struct conv_call *call);

#endif
