/* gmd_allocator_types.h - what users give the reference allocator. */
#ifndef GMD_ALLOCATOR_TYPES_H
#define GMD_ALLOCATOR_TYPES_H

#include <stdbool.h>

/* Known deviations of torch 2.11, which this allocator has only where they are switched on. */
typedef enum gmd_quirk {
    GMD_QUIRK_SPURIOUS_OOM,     /* pytorch#189504: after waiting for pending frees, the pool is not
                                   looked in again */
    GMD_QUIRK_EXPANDABLE_LIMIT, /* the limit is held against the request, not against the pages that
                                   are mapped for it */
    GMD_QUIRK_RESERVATION_LEFT, /* addresses of an expandable segment for which no page could be
                                   mapped are not given back */
    GMD_QUIRK_OVERSIZE_EXPANDABLE, /* max_split_size_mb bars requests from larger blocks of
                                      expandable segments, which any request can split
                                      (pytorch#193400) */
    GMD_QUIRK_HELD_POOL, /* nothing of a private pool is given back while somebody holds it, even
                            where no graph works in it (pytorch#175015) */
    GMD_QUIRK_COUNT
} gmd_quirk;

/* Asked to free blocks when no cached block serves a request; says whether it did. */
typedef bool gmd_free_memory_callback(void *context);

#endif
