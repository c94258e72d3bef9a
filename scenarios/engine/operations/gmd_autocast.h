/* gmd_autocast.h - mixed precision: inside the block, products and convolutions run in 16 bits.
 * Copies of parameters in 16 bits are kept until the block ends, however often they are used. */
#ifndef GMD_AUTOCAST_H
#define GMD_AUTOCAST_H

#include "gmd_operations.h"

void gmd_autocast_begin(gmd_engine *engine, gmd_dtype dtype); /* may be nested */
void gmd_autocast_end(gmd_engine *engine);

/* The type that products have now; `otherwise` outside of all blocks. */
gmd_dtype gmd_autocast_dtype(const gmd_engine *engine, gmd_dtype otherwise);

/* A new reference: the tensor, or its copy in the type that products have now. NULL gives NULL. */
gmd_tensor *gmd_autocast_input(gmd_engine *engine, gmd_tensor *tensor);
/* The same for operations that are always computed in 32 bits. */
gmd_tensor *gmd_autocast_wide(gmd_engine *engine, gmd_tensor *tensor);

#endif
