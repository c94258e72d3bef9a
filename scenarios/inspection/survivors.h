/* survivors.h - the tensors that are alive, and who holds them. */
#ifndef GMD_SURVIVORS_H
#define GMD_SURVIVORS_H

#include "gmd_inspection.h"
#include "gmd_lua_binding.h"
#include "live_block.h"

/* Writes them into `out`; `blocks` are all that are alive. */
void survivors_write(struct binding *binding, struct live_block *blocks, gmd_inspection *out);

#endif
