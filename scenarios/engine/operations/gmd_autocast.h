/* gmd_autocast.h - mixed precision: inside the block, products and convolutions run in 16 bits.
 * Copies of parameters in 16 bits are kept until the block ends, however often they are used. */
#ifndef GMD_AUTOCAST_H
#define GMD_AUTOCAST_H

#include "gmd_operations.h"

void autocast_begin(struct engine *engine, enum dtype dtype); /* may be nested */
void autocast_end(struct engine *engine);

/* The type in which products are computed now; `otherwise` outside of all blocks. */
enum dtype autocast_dtype(const struct engine *engine, enum dtype otherwise);

/* A new reference to the tensor, or to its copy in the type in which products are computed now.
 * NULL gives NULL. */
struct tensor *autocast_input(struct engine *engine, struct tensor *tensor);
/* The same with 32 bits, for operations that are always computed in them. */
struct tensor *autocast_wide(struct engine *engine, struct tensor *tensor);

#endif
