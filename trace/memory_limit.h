/* memory_limit.h - the memory limit that a recorded job ran under, which a snapshot does not hold,
 * and which of its freed segments the limit explains. */
#ifndef GMD_TRACE_MEMORY_LIMIT_H
#define GMD_TRACE_MEMORY_LIMIT_H

#include "gmd_history.h"
#include "gmd_snapshot.h"

/* Reserved bytes by device, as the segment events have it so far. */
typedef struct reserved_bytes {
    uint64_t of[GMD_MAX_DEVICES];
} reserved_bytes;

void reserved_count(reserved_bytes *reserved, const gmd_snapshot_event *event);

/* A run of segment_free events of one device. What follows tells whose doing it was: an allocation
 * that was refused gave the cache back first; one that got a new segment may have done so, under
 * any limit below `explained_below`; anything else is an empty_cache() of the job. */
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
} memory_limit;

/* False: no host memory. */
bool memory_limit_find(const gmd_snapshot *snapshot, const gmd_history_hints *hints,
                       memory_limit *limit);

#endif
