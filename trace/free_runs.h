/* free_runs.h - whose doing it was that a recorded job gave memory back: a call of empty_cache(),
 * or the request that got new memory (or was refused) right after. A snapshot does not say. */
#ifndef GMD_TRACE_FREE_RUNS_H
#define GMD_TRACE_FREE_RUNS_H

#include "free_run.h"
#include "gmd_history_hints.h"
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

/* Whether the free that was completed in an event had waited for other streams. A free and its
 * completion come from one call, unless the next call completed it: the clock tells, for a call
 * that waits takes its time. */
bool free_was_late(const gmd_snapshot *snapshot, size_t completed);

/* The rules are in docs/replay.md, in this order. */
run_verdict run_judge(const run_facts *facts);

/* Finds the runs in a snapshot whose events are grouped (history.c), the limit that the job ran
 * under, and whose doing each run was. False: no host memory. */
bool free_runs_find(free_runs *runs, const gmd_snapshot *snapshot, const gmd_history_hints *hints);
void free_runs_free(free_runs *runs);

#endif
