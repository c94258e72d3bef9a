/* gmd_checkpoint.h - activation checkpointing: a module's forward pass saves its input only, and is
 * run again on the way back. */
#ifndef GMD_CHECKPOINT_H
#define GMD_CHECKPOINT_H

#include "gmd_module.h"

/* As gmd_module_apply(). */
gmd_tensor *gmd_checkpoint(gmd_engine *engine, gmd_module *module, gmd_tensor *input);

#endif
