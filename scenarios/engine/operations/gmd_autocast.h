/* gmd_autocast.h - mixed precision: inside the block, products and convolutions run in 16 bits.
 * Copies of parameters in 16 bits are kept until the block ends, however often they are used. */
#ifndef GMD_AUTOCAST_H
#define GMD_AUTOCAST_H

#include "gmd_operations.h"

void autocast_begin(struct engine *engine, enum dtype dtype); /* may be nested */
void autocast_end(struct engine *engine);

/* The type that products have now; `otherwise` outside of all blocks. */
enum dtype autocast_dtype(const struct engine *engine, enum dtype otherwise);

/* A new reference: the tensor, or its copy in the type that products have now. NULL gives NULL. */
struct tensor *autocast_input(struct engine *engine, struct tensor *tensor);
/* The same for operations that are always computed in 32 bits. */
struct tensor *autocast_wide(struct engine *engine, struct tensor *tensor);

#endif
