/* copies.h - what memsets, copies and waits for values do to memory, or find there, when they are
 * carried out. */
#ifndef GMD_SIM_COPIES_H
#define GMD_SIM_COPIES_H

#include "entry.h"

void copy_complete(entry *e, int device);
bool copy_value_holds(const entry *e); /* WAIT_VALUE */

/* The bytes from the first of the first row to the last of the last. */
uint64_t copy_extent(uint64_t width, uint64_t height, uint64_t pitch);

#endif
