/* memory_limit.h - the memory limit that a recorded job ran under, which a snapshot does not hold,
 * and which of its freed segments the limit explains. */
#ifndef GMD_TRACE_MEMORY_LIMIT_H
#define GMD_TRACE_MEMORY_LIMIT_H

#include "gmd_history.h"
#include "gmd_snapshot.h"

/* Events of memory that the recorded allocator got from the device or gave back: as segments, or as
 * pages of an expandable segment. */
static inline bool event_takes(const gmd_snapshot_event *e)
{
    return e->action == GMD_ACTION_SEGMENT_ALLOC || e->action == GMD_ACTION_SEGMENT_MAP;
}

static inline bool event_gives(const gmd_snapshot_event *e)
{
    return e->action == GMD_ACTION_SEGMENT_FREE || e->action == GMD_ACTION_SEGMENT_UNMAP;
}

/* Reserved bytes by device, as the segment events have it so far. */
typedef struct reserved_bytes {
    uint64_t of[GMD_MAX_DEVICES];
} reserved_bytes;

void reserved_count(reserved_bytes *reserved, const gmd_snapshot_event *event);

/* A run of events of one device that give memory back. What follows tells whose doing it was: an
 * allocation that was refused gave the cache back first; one that got a new segment may have done
 * so, under any limit below `explained_below`; anything else is an empty_cache() of the job. */
typedef struct free_run {
    size_t first, end;        /* events */
    uint64_t explained_below; /* bytes; 0: no allocation of a new segment follows */
    bool is_before_oom;
} free_run;

/* Reads the run that starts at event `at`, and counts it. */
free_run free_run_read(const gmd_snapshot *snapshot, size_t at, reserved_bytes *reserved);

typedef struct memory_limit {
    uint64_t bytes; /* 0: none */
    bool is_inferred;
    /* Of the runs that the limit can explain, the first so many are put down to it. */
    uint64_t explained_runs;
    /* The recorded settings let the allocator give memory back without being at its limit
     * (garbage_collection_threshold, max_split_size_mb), or map less than is counted (expandable
     * segments): all that a request may explain is put down to it. */
    bool explains_all;
} memory_limit;

/* False: no host memory. */
bool memory_limit_find(const gmd_snapshot *snapshot, const gmd_history_hints *hints,
                       memory_limit *limit);

#endif
