/* gmd_shared.h - the memory that the child, which makes the requests, shares with its parent, which
 * watches: all that must survive the child's death. The allocator under test can write there, so
 * that it holds no pointer, and the parent believes nothing of it that it has not checked
 * (process/taken.h). */
#ifndef GMD_SHARED_H
#define GMD_SHARED_H

#include "gmd_oracle.h"
#include "gmd_outcome.h"
#include "gmd_trace.h"

#include <stdatomic.h>

#define GMD_RECORDED_REQUEST_MAX                                                                   \
    ((size_t)1 << 24) /* of a live scenario; memory is taken as used                               \
                       */

typedef enum run_stage {
    GMD_STAGE_LOADING, /* the runtime and the allocator under test */
    GMD_STAGE_REQUESTS,
    GMD_STAGE_CLEAN_UP, /* freeing what is live, emptying the cache */
    GMD_STAGE_UNLOADING,
} run_stage;

#define GMD_SHARED_GUARD UINT64_C(0x676d642d67756172) /* around what the child writes */

/* Rounds of the same requests, after each of which the allocator held more, until it refused one
 * (session/rounds.c). */
typedef struct lost_memory {
    bool is_found;
    uint64_t request, rounds, held_first, held_last, live;
} lost_memory;

/* A C++ exception that nobody caught. */
typedef struct gmd_thrown {
    _Atomic int is_told; /* else it is being written, or never was */
    int is_bad_alloc;
    char type[GMD_PARTY_VALUE], what[200];
} gmd_thrown;

enum { GMD_THROWN_MAX = 4 };

/* Threads that throw at the same time do not wait for each other: the first that is through ends
 * the process. */
typedef struct gmd_thrown_list {
    _Atomic uint32_t count;
    gmd_thrown list[GMD_THROWN_MAX];
} gmd_thrown_list;

typedef struct shared_run {
    uint64_t first_guard;
    gmd_outcome outcome;
    uint64_t last_guard;
    _Atomic uint64_t beats; /* moves with every request: a child that stands still hangs */

    /* What belongs to one run, from here up to `requests`: child_begin_run sets it back. */
    _Atomic int stage;         /* run_stage */
    _Atomic int is_finished;   /* the outcome is complete */
    _Atomic int is_in_request; /* the allocator is being called; else the workload runs */
    gmd_request current;       /* the request under way, for the message after a crash */
    uint64_t current_index;    /* in the trace */
    char place[160];           /* of the script, "FILE:LINE: ", a moment ago; "": not known yet */
    gmd_thrown_list thrown;    /* before the process was aborted */
    gmd_refusal refusal;       /* what the allocator answered when it was asked again */
    bool refusal_is_complete;  /* its child has ended as it should */
    gmd_wrong_free wrong_free; /* being made */
    _Atomic int is_freeing_wrongly;
    lost_memory lost;     /* what rounds of the same requests have shown */
    size_t request_count; /* recorded below, when the workload is live */

    gmd_request requests[GMD_RECORDED_REQUEST_MAX];
} shared_run;

#endif
