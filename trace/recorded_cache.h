/* recorded_cache.h - which segments of a recorded job were cached, that is held no block, and what
 * of them PyTorch's algorithm gives back by itself for a request that no cached block serves.
 *
 * Expandable segments are not in it: of them all free pages are given back, or none. */
#ifndef GMD_TRACE_RECORDED_CACHE_H
#define GMD_TRACE_RECORDED_CACHE_H

#include "cached_segments.h"
#include "gmd_recorded_settings.h"

typedef struct recorded_cache { /* zero-initialised but for the settings: nothing */
    const gmd_recorded_settings *settings;
    cached_segments segments;
    uint64_t lookups[GMD_MAX_DEVICES]; /* in the pool of large blocks */
    uint64_t requests;                 /* that are through, from 1 */
    segment_place *round;              /* of a collection: what it gives back */
    size_t round_capacity;
} recorded_cache;

/* Goes on by an event; the events are those of a history in order. is_late: a completed free had
 * waited for other streams. False: no host memory. */
bool recorded_cache_note(recorded_cache *c, const gmd_snapshot_event *event, bool is_late);
void recorded_cache_free(recorded_cache *c);

/* Whether the segment at an address is of the pool of small blocks. */
bool recorded_cache_is_small(const recorded_cache *c, uint64_t address);

bool recorded_cache_has_any(const recorded_cache *c, int device);

/* Whether a garbage collection would find something to give back. */
bool recorded_cache_has_garbage(const recorded_cache *c, int device);

/* What a request gives back before it gets memory or is refused. */
typedef struct cache_plan {
    uint64_t *addresses; /* in order; free() it */
    size_t count;
    size_t most;   /* addresses that are looked for; one more tells that there are more */
    bool is_retry; /* the whole cache was given back */
} cache_plan;

/* The plan of a request with `reserved` bytes reserved before it, under a limit (0: none).
 * has_waited: what late frees since the last request left cached is there for the retry only, which
 * waited for them. It ends at `most` addresses and one more, and takes time by that number, however
 * much is cached. False: no host memory. */
bool recorded_cache_plan(recorded_cache *c, const gmd_snapshot_event *request, uint64_t reserved,
                         uint64_t limit, bool has_waited, size_t most, cache_plan *plan);

/* All that is cached on a device, in the order in which empty_cache() gives it back, likewise.
 * False: no host memory. */
bool recorded_cache_plan_all(recorded_cache *c, int device, size_t most, cache_plan *plan);

#endif
