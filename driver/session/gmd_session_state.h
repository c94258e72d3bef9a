/* gmd_session_state.h - a session: all that the files of this folder know of a run. */
#ifndef GMD_SESSION_STATE_H
#define GMD_SESSION_STATE_H

#include "gmd_call_log.h"
#include "gmd_faults.h"
#include "gmd_hold.h"
#include "gmd_judge.h"
#include "gmd_pool_book.h"
#include "gmd_run_options.h"
#include "gmd_self_deadlock.h"
#include "gmd_shared.h"
#include "gmd_state_features.h"
#include "gmd_streams.h"
#include "gmd_subject.h"
#include "gmd_threads.h"
#include "mute_stderr.h"
#include "uses.h"

#define GMD_MISUSE_MAX 8 /* noted of one request */

typedef struct session_block {
    gmd_live_block live; /* address 0: not live */
    gmd_stream_uses uses;
    uint32_t last_uses; /* list in gmd_session.uses; simulated device only */
    bool is_orphan;     /* its stream was destroyed: nothing can be ordered before its next work */
    uint64_t mark;      /* that its work leaves in it; 0: its contents are not followed */
    bool is_marked;     /* all over, from the start */
    bool is_for_graph;  /* graphs work in its memory, too, or may: what it holds is theirs to say */
} session_block;

typedef struct gmd_session_graph {
    int device;
    uint32_t pool;
    cudaGraphExec_t exec; /* NULL: it is being captured, or that has failed */
    gmd_graph_access *accesses;
    size_t count, capacity;
    uint64_t duration_ns; /* of all its work, one after the other */
    bool is_launched;
} gmd_session_graph;

#define GMD_ORDERED_ACCESSES 256 /* of a capture: of later ones the order is not followed */

typedef struct gmd_session_captures {
    gmd_session_graph *graphs; /* the oldest first; the last one may be under way */
    size_t count, capacity;
    int device; /* of the latest capture, as all that follows */
    uint32_t stream;
    uint64_t joined; /* bit s: stream s, of the first 64; it waited for a captured one */
    cudaStream_t handles[GMD_TRACKED_STREAMS]; /* of these */
    uint64_t began;                            /* request index */
    bool is_spoilt;                            /* by the program, which waited for it */
    /* By stream: bit i says that what is captured there next runs after the i-th access. */
    uint64_t after[GMD_TRACKED_STREAMS][GMD_ORDERED_ACCESSES / 64];
} gmd_session_captures;

typedef struct gmd_canary_book gmd_canary_book;

typedef struct gmd_session_accepted {
    cudaStream_t stream;
    bool takes_all;
    const gmd_session_captures *captures; /* the one that opened the pool; NULL: none did */
} gmd_session_accepted;

typedef struct gmd_session_pools {
    bool is_used; /* in this run */
    gmd_pool_book book;
    uint32_t serials[GMD_MAX_DEVICES][GMD_MAX_POOLS]; /* of those that are held */
    gmd_session_accepted accepted[GMD_MAX_DEVICES];   /* of each device's open pool */
} gmd_session_pools;

typedef struct gmd_misuses_made {   /* frees that a caller must not make, made on purpose */
    uint64_t count, last, interval; /* last: request index */
} gmd_misuses_made;

struct gmd_session {
    const gmd_run_options *options;
    const gmd_workload *workload;
    gmd_shared *shared;
    gmd_runtime runtime;
    gmd_subject subject;
    int device_count;

    session_block *blocks;              /* by block id */
    uint32_t block_capacity, block_end; /* block_end: beyond all ids of this run */
    uint64_t live_count[GMD_MAX_DEVICES], live_bytes[GMD_MAX_DEVICES];
    bool is_placed; /* segments are in an order of ours: a walk tells places, not addresses */
    gmd_streams streams;
    gmd_holds *holds;                 /* real device: pending work; NULL: none */
    struct gmd_canary_book *canaries; /* real device: what blocks hold; NULL: it is not seen */
    char no_canaries[160];            /* why */
    gmd_threads threads;
    gmd_self_deadlock
        self_deadlock; /* of the call under way, where requests run one after the other */
    double start_s;    /* of the run, on gmd_clock_s */
    gmd_uses uses;

    gmd_view view;
    gmd_judge judge;
    gmd_features features;
    bool has_stats;
    gmd_stats stats[GMD_MAX_DEVICES], stats_before;
    uint64_t free_at_start; /* real device 0, before the allocator was loaded */
    uint64_t reserved_at_start[GMD_MAX_DEVICES], held_at_start[GMD_MAX_DEVICES];
    gmd_device_figures figures[GMD_MAX_DEVICES], baseline[GMD_MAX_DEVICES];
    gmd_device_figures untouched[GMD_MAX_DEVICES];
    uint64_t peak_allocated, peak_reserved; /* from outside, for allocators without statistics */

    gmd_device_call *calls; /* of the last request */
    size_t call_count, call_capacity;
    uint64_t device_calls; /* of them those that take or give back memory */
    uint64_t api_calls;
    struct gmd_book *book;              /* of what happens to the memory (journal.h); NULL: none */
    gmd_call_log *call_log;             /* of all calls that the allocator makes; NULL: not kept */
    gmd_misuse misuses[GMD_MISUSE_MAX]; /* not judged yet */
    size_t misuse_count;
    gmd_thread_state thread_before, thread_after; /* around the allocator's latest call */
    char error_text[500];                         /* what it said went wrong there */

    gmd_faults faults;
    bool limit_is_unknown[GMD_MAX_DEVICES];
    uint64_t limit_bytes[GMD_MAX_DEVICES];    /* of reserved memory; UINT64_MAX: none */
    uint64_t limit_at_start[GMD_MAX_DEVICES]; /* likewise, before the first request */
    uint64_t total_bytes[GMD_MAX_DEVICES];    /* of the device */
    uint64_t budget_bytes[GMD_MAX_DEVICES];   /* of physical memory; UINT64_MAX: all of it */

    bool has_used;              /* work was queued */
    uint64_t refusals, probes;  /* requests refused; refusals after which it was asked again */
    uint64_t doubtful_refusals; /* in persistent mode: what was asked for would fit beside what is
                                   live */
    uint64_t last_probe;        /* request index */
    gmd_misuses_made wrong_frees;
    uint64_t last_mark;     /* of all in this process: marks of an earlier input mean nothing */
    uint64_t marking_count; /* allocations asked whether their contents are to be followed */
    bool is_muted;          /* standard error leads nowhere */
    gmd_mute mute;
    uint64_t request_index;
    uint64_t moment; /* grows with each request carried out: the order in which it happened, which
                        is not that of the indexes where threads are interleaved */
    struct overlap *overlap; /* of interleaved threads (frames.h); NULL: one request at a time */
    uint64_t last_refused;   /* request index of the latest out-of-memory */
    /* One of many inputs in one process (persistent.h): no fork; the allocator is asked again in
     * place, after this refusal, and the input ends with the answers. 0: never. */
    bool is_persistent, ends_here;
    uint64_t asked_refusal;
    uint64_t state_hash; /* of what is seen after the last request (gmd_persistent_result) */
    bool is_in_process;  /* the process is the caller's (gmd_in_process.h) */
    bool expects_lapses; /* of the scheduler (gmd_scheduler.h) */
    unsigned lapses;     /* of its latest run */
    bool is_over;
    uint32_t pool_count; /* that were made so far, in all runs of this process */
    bool is_capturing;   /* a stream */
    gmd_session_captures captures;
    gmd_session_pools pools; /* large, and mostly not looked at */
};

#endif
