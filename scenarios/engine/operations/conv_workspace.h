/* conv_workspace.h - the memory that cuDNN takes for the time of a convolution. */
#ifndef GMD_CONV_WORKSPACE_H
#define GMD_CONV_WORKSPACE_H

#include "conv_call.h"

/* Takes and frees the workspace of one call. With cuDNN's benchmark on, the first call of its kind
 * also tries the other algorithms, as far as there is memory for their workspaces. */
void conv_workspace_use(struct engine *engine, const struct conv_call *call);

#endif
