/* cached_segments.h - the segments of a recorded job: by address, and those that are cached (hold
 * no block) in the order of PyTorch's sets and by age. Every operation takes O(log n) of them. */
#ifndef GMD_TRACE_CACHED_SEGMENTS_H
#define GMD_TRACE_CACHED_SEGMENTS_H

#include "gmd_intervals.h"
#include "gmd_random.h"
#include "gmd_snapshot.h"
#include "gmd_trace.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* An index of a segment; 0: none. */
typedef uint32_t segment_index;

typedef struct cache_segment {
    uint64_t address, size, stream;
    uint64_t cached_at;         /* lookups in its pool until its last block was freed */
    uint64_t cached_requests;   /* requests until then */
    uint32_t blocks;            /* that it holds, those included that wait for other streams */
    uint32_t priority;          /* in the tree */
    segment_index lower, upper; /* in the tree: what comes before and after it */
    segment_index older, newer; /* large ones that are cached */
    uint8_t device;
    bool is_small, is_cached;
    bool is_given;     /* it is in the plan that is being made */
    bool waited_to_be; /* cached: its last block's free had waited */
} cache_segment;

typedef struct cached_segments { /* zero-initialised: none */
    cache_segment *items;        /* the first is unused */
    size_t used, capacity;
    segment_index spare; /* linked by `lower` */
    gmd_intervals by_address;
    gmd_random random;
    struct {
        segment_index root, oldest, newest;
        uint64_t large;           /* cached ones; the oldest and the newest are of them... */
        uint64_t large_cached_at; /* ...and the sum of when they were cached */
    } devices[GMD_MAX_DEVICES];
} cached_segments;

void segments_free(cached_segments *s);

static inline cache_segment *segment_of(const cached_segments *s, segment_index index)
{
    return &s->items[index];
}

/* The one that an address lies in; 0: none. */
segment_index segment_with(const cached_segments *s, uint64_t address);

/* The event takes the segment, which is in place of all that overlap it. It is neither cached nor
 * holds blocks. 0: no host memory. */
segment_index segment_add(cached_segments *s, const gmd_snapshot_event *taken);
void segment_remove(cached_segments *s, segment_index index);

/* It is the newest of its device from now on. */
void segment_cache(cached_segments *s, segment_index index);
void segment_uncache(cached_segments *s, segment_index index);

/* A place in the order of a device's cached segments: large ones before small ones; within a pool
 * by stream, size and address. */
typedef struct segment_place {
    bool is_small;
    uint64_t stream, size, address;
} segment_place;

segment_place segment_place_of(const cache_segment *segment);

/* The first at or behind the place, and the last before it; 0: none. */
segment_index segment_from(const cached_segments *s, int device, const segment_place *place);
segment_index segment_before(const cached_segments *s, int device, const segment_place *place);

/* The first one; then the next one, with the last one's index. */
segment_index segment_first(const cached_segments *s, int device);
segment_index segment_next(const cached_segments *s, segment_index index);

/* For qsort(), of places. */
int segment_compare_places(const void *a, const void *b);

#endif
