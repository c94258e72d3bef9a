/* gmd_session_state.h - a session: all that the files of this folder know of a run, in parts. A
 * part with a header of its own is changed by the functions there; of those below, each says which
 * file owns it. */
#ifndef GMD_SESSION_STATE_H
#define GMD_SESSION_STATE_H

#include "blocks.h"
#include "call_list.h"
#include "captures.h"
#include "figures.h"
#include "gmd_call_log.h"
#include "gmd_contract.h"
#include "gmd_faults.h"
#include "gmd_hold.h"
#include "gmd_judge.h"
#include "gmd_run_options.h"
#include "gmd_self_deadlock.h"
#include "gmd_shared.h"
#include "gmd_state_features.h"
#include "gmd_streams.h"
#include "gmd_subject.h"
#include "gmd_threads.h"
#include "memory_limits.h"
#include "mute_stderr.h"
#include "pool_table.h"
#include "uses.h"

/* How the calling thread and the allocator's words were around its latest call (frames.c). */
typedef struct call_report {
    gmd_thread_state thread_before, thread_after;
    bool is_under_way;                 /* and threads are not interleaved */
    bool has_called;                   /* in this run, */
    uint64_t last_request;             /* the last time in this request */
    char error_token[GMD_PARTY_VALUE]; /* what stays of that from run to run */
    char error_text[500];              /* what it said went wrong */
} call_report;

/* Requests that were refused (probe.c). */
typedef struct refusal_counts {
    uint64_t count, asked;     /* refused; after which the allocator was asked again */
    uint64_t doubtful;         /* in persistent mode: what was asked for would fit beside what is
                                  live */
    uint64_t last, last_asked; /* request indexes */
} refusal_counts;

enum { STALE_MAX = 16 };

/* Frees of blocks that were freed, once the device has their memory again (wrong_frees.c). */
typedef struct stale_frees {
    gmd_live_block freed[STALE_MAX]; /* the last ones */
    uint64_t freed_count;
    uint64_t count, last, interval; /* last: request index */
    uint64_t memory_calls;          /* of the allocator, when a block was last looked for */
} stale_frees;

/* Frees that a caller must not make, made on purpose (wrong_frees.c). */
typedef struct wrong_free_counts {
    uint64_t count, last, interval; /* last: request index */
    stale_frees stale;
} wrong_free_counts;

/* Requests that the contract forbids (contract_duties.c), by its clause. */
typedef struct left_out_counts {
    uint64_t counts[GMD_CLAUSE_COUNT];
} left_out_counts;

/* Standard error while such a free is made (wrong_frees.c). */
typedef struct stderr_muting {
    bool is_needless; /* it leads nowhere anyhow */
    stderr_mute mute;
} stderr_muting;

/* What work leaves in blocks (contents.c). */
typedef struct mark_counts {
    uint64_t last;  /* of all in this process: marks of an earlier input mean nothing */
    uint64_t asked; /* allocations asked whether their contents are to be followed */
} mark_counts;

/* What blocks hold on a real device (canaries.c). */
typedef struct canary_state {
    struct canary_table *table; /* NULL: it is not seen */
    char reason[160];           /* why */
} canary_state;

/* One of many inputs in one process (persistent.c, in_process.c): no fork; the allocator is asked
 * again in place, after one refusal, and the input ends with the answers. */
typedef struct persistent_mode {
    bool is_on;
    bool is_in_process;     /* the process is the caller's (gmd_in_process.h) */
    uint64_t asked_refusal; /* from 1; 0: none */
    bool ends_here;         /* after the answers (probe.c) */
    uint64_t state_hash; /* of what is seen after the last request (gmd_persistent_result; end.c) */
} persistent_mode;

/* Threads that are interleaved (interleave.c). */
typedef struct interleaved {
    struct overlap *overlap; /* who is in the allocator (frames.h); NULL: one request at a time */
    bool expects_lapses;     /* of the scheduler (gmd_scheduler.h) */
    unsigned lapses;         /* of its latest run */
} interleaved;

struct gmd_session {
    const gmd_run_options *options;
    const gmd_workload *workload;
    shared_run *shared;
    gmd_runtime runtime;
    gmd_subject subject;
    int device_count;
    bool is_placed; /* segments are in an order of ours: a walk tells places, not addresses */

    double start_s; /* of the run, on gmd_clock_s */
    uint64_t request_index;
    uint64_t moment; /* grows with each request carried out: the order in which it happened, which
                        is not that of the indexes where threads are interleaved */
    bool has_used;   /* work was queued */
    bool is_over;

    live_blocks blocks;
    run_streams streams;
    block_uses uses;
    memory_limits limits;
    run_figures figures;
    call_list calls;
    call_report report;
    planted_faults faults;
    refusal_counts refusals;
    wrong_free_counts wrong_frees;
    left_out_counts left_out;
    stderr_muting muting;
    mark_counts marks;
    canary_state canaries;
    persistent_mode persistent;
    interleaved interleaving;

    held_work *holds; /* real device: pending work; NULL: none */
    host_threads threads;
    self_deadlock_watch self_deadlock; /* of the call under way, where requests run one by one */

    gmd_view view;
    gmd_judge judge;
    state_features features;
    struct journal_writer *journal; /* of what happens to the memory; NULL: none */
    call_log *call_log;             /* of all calls that the allocator makes; NULL: not kept */

    capture_set captures;
    pool_table pools; /* large, and mostly not needed */

    uint64_t unchecked; /* steps since all of this was checked (validity.c) */
};

#endif
