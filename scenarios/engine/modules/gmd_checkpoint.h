/* gmd_checkpoint.h - activation checkpointing: a module's forward pass saves its input only, and is
 * run again on the way back. */
#ifndef GMD_CHECKPOINT_H
#define GMD_CHECKPOINT_H

#include "gmd_module.h"

/* As module_apply(). */
struct tensor *checkpoint_apply(struct engine *engine, struct module *module, struct tensor *input);

#endif
