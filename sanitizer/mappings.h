/* mappings.h - blocks that have addresses of their own: memory is mapped there for as long as a
 * block lives, and the addresses are not used again for a long time after it. Whoever touches them
 * then, or touches what is behind a block, gets an illegal access.
 *
 *     hole | memory ............. | hole        a hole: HOLE_BYTES at least that are never mapped
 *
 * Memory that is taken away serves the next mapping of its size. Thread safety: any thread; the
 * device is the current one. */
#ifndef GMD_MAPPINGS_H
#define GMD_MAPPINGS_H

#include "gmd_error.h"

#include <stdbool.h>
#include <stdint.h>

typedef struct mappings mappings;

typedef struct mapping {
    uint64_t address, bytes;
    unsigned long long memory; /* the driver's handle; 0: nothing is mapped */
} mapping;

enum { MAPPING_PAGE = 2 << 20 }; /* bytes: all are multiples */

/* GMD_BAD_INPUT: the driver has no virtual memory, and `error` says so. */
gmd_status mappings_create(mappings **made, int device_count, gmd_error *error);
void mappings_destroy(mappings *m); /* nothing is mapped, or the process ends; NULL is fine */

/* `bytes` is a multiple of a page. False: no memory, or no addresses. */
bool mappings_add(mappings *m, int device, uint64_t bytes, mapping *made);

/* The work that uses it is over. False: the driver refused, and it stays as it is. */
bool mappings_take_away(mappings *m, int device, mapping *which);

/* Memory that is mapped nowhere goes back to the device. */
void mappings_release_spares(mappings *m, int device);

#endif
