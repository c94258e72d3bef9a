/* free_runs.h - whose doing it was that a recorded job gave memory back: a call of empty_cache(),
 * or the request that got new memory (or was refused) right after. A snapshot does not say. */
#ifndef GMD_TRACE_FREE_RUNS_H
#define GMD_TRACE_FREE_RUNS_H

#include "gmd_history.h"
#include "gmd_snapshot.h"
#include "recorded_settings.h"

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

/* --- one run ------------------------------------------------------------------------------ */

typedef enum run_follower {
    FOLLOWED_BY_NOTHING, /* nothing that gives memory back itself */
    FOLLOWED_BY_NEW_MEMORY,
    FOLLOWED_BY_REFUSAL,
} run_follower;

/* What is known of a run of events of one device that give memory back. */
typedef struct run_facts {
    run_follower follower;
    bool is_between_pages;  /* the request after it had got pages already */
    bool continues;         /* the run before it, right before it, is of a device before its own */
    bool would_have_served; /* a segment of it the request, from the cache */
    bool is_all;            /* exactly what empty_cache() gives back */
    bool knows_retries;     /* whether num_alloc_retries rose with the request... */
    bool has_retried;       /* ...and that it did */
    bool knows_limit;
    bool is_planned;     /* under the limit the request gives back exactly this... */
    bool plan_has_retry; /* ...and all that is cached, and is counted as a retry */
} run_facts;

typedef enum run_verdict {
    RUN_EMPTY_CACHE,
    RUN_OF_REQUEST,
    RUN_EITHER, /* both explain all addresses; they differ in num_alloc_retries */
} run_verdict;

/* The rules are in docs/replay.md, in this order. */
run_verdict run_judge(const run_facts *facts);

typedef struct free_run {
    size_t first, end; /* events; completed frees may be among them */
    uint8_t device;
    uint64_t reserved, needed; /* bytes reserved before it, and those of the segment asked for */
    bool is_whole;             /* all that was cached on its device */
    bool is_oversize; /* it may be what a refused request gives back for max_split_size_mb's sake */
    bool has_waited; /* as its request's retry: for the frees that were completed right before it */
    run_facts facts;
    run_verdict verdict; /* in the end never RUN_EITHER */
} free_run;

/* --- all runs of a history ---------------------------------------------------------------- */

typedef struct free_runs {
    free_run *items; /* in order */
    size_t count, capacity;
    uint64_t at_least; /* reserved and asked for in a request that was served: within the limit */
    uint64_t below;    /* the same of one that was refused: above it */
    uint64_t ooms[GMD_MAX_DEVICES];
    uint64_t limit_bytes; /* 0: none */
    bool limit_inferred;
    bool of_several_devices;
} free_runs;

/* Finds the runs in a snapshot whose events are grouped (history.c), the limit that the job ran
 * under, and whose doing each run was. False: no host memory. */
bool free_runs_find(free_runs *runs, const gmd_snapshot *snapshot, const gmd_history_hints *hints);
void free_runs_free(free_runs *runs);

#endif
