/* gmd_reserved.h - memory that the recorded allocator had of the device. */
#ifndef GMD_RESERVED_H
#define GMD_RESERVED_H

#include "gmd_size.h"

#include <stdbool.h>
#include <stdint.h>

#define GMD_BEFORE 0u         /* before the first event; event i is the moment i + 1 */
#define GMD_NEVER  UINT32_MAX /* not while it was recorded */

/* Reserved memory: a segment, or pages of an expandable one. */
typedef struct gmd_reserved {
    uint64_t address, size, stream;
    uint32_t taken, given; /* moments; GMD_BEFORE, GMD_NEVER */
    uint32_t origin;       /* of the request that it was taken for */
    bool is_mapped;        /* pages of an expandable segment, which goes on in its neighbours */
    bool is_private;       /* of a private pool; known where it is there at the end */
} gmd_reserved;

/* Segments of the pool of small blocks have this size, and no others do. */
#define GMD_SMALL_SEGMENT (2 * GMD_MIB)

static inline bool gmd_reserved_is_small(const gmd_reserved *r)
{
    return !r->is_mapped && r->size == GMD_SMALL_SEGMENT;
}

#endif
