/* products.h - operands of cuBLAS: what it can read as it lies, and what is copied for it. */
#ifndef PRODUCTS_H
#define PRODUCTS_H

#include "gmd_operations.h"

/* Whether the last two dimensions are a matrix that cuBLAS reads as it lies, by rows or by columns.
 */
bool product_reads(const struct tensor *matrix);

/* One product of cuBLAS for a result that there is: the copies that it makes of its operands go as
 * soon as it is done. `copied`: bytes of an operand that is known only to be copied; or 0. */
void product_run(struct engine *engine, struct tensor *operand, uint64_t copied);

#endif
