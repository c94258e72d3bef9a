/* gmd_grow.h - arrays that items are added to: a pointer, how many it has room for, and how many
 * there are. Empty is NULL and 0. */
#ifndef GMD_GROW_H
#define GMD_GROW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Room for `needed` items in the array `*items`, which has room for `*capacity`, a size_t or a
 * uint32_t: both are addresses, so that the two change together, and the size of an item is that of
 * the array's type. What it grows by, at least to the double, is not initialised. False: no host
 * memory, and nothing has changed. `needed` is evaluated twice. */
#define GMD_GROW(items, capacity, needed)                                                          \
    ((needed) <= *(capacity) ||                                                                    \
     _Generic((capacity), size_t *                                                                 \
              : gmd_grow_items, uint32_t *                                                         \
              : gmd_grow_items_32)((items), (capacity), (needed), sizeof **(items)))

/* `items` is the address of a pointer to items of that size, of whatever type. */
bool gmd_grow_items(void *items, size_t *capacity, size_t needed, size_t item_bytes);
bool gmd_grow_items_32(void *items, uint32_t *capacity, size_t needed, size_t item_bytes);

#endif
