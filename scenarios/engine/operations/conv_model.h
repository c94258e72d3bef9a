/* conv_model.h - estimates of the workspaces of convolutions that nobody recorded. */
#ifndef GMD_CONV_MODEL_H
#define GMD_CONV_MODEL_H

#include "conv_call.h"
#include "workspace_use.h"

/* The workspace of the algorithm that cuDNN's heuristics choose. */
workspace_estimate conv_model_chosen(const struct conv_call *call);
/* The largest workspace of all algorithms, which trials begin with. */
workspace_estimate conv_model_tried(const struct conv_call *call);

#endif
