/* session_internal.h - what the files of the driver share about a session. */
#ifndef GMD_SESSION_INTERNAL_H
#define GMD_SESSION_INTERNAL_H

#include "gmd_call_log.h"
#include "gmd_clock.h"
#include "gmd_faults.h"
#include "gmd_hold.h"
#include "gmd_judge.h"
#include "gmd_pool_book.h"
#include "gmd_self_deadlock.h"
#include "gmd_session.h"
#include "gmd_shared.h"
#include "gmd_state_features.h"
#include "gmd_threads.h"
#include "mute_stderr.h"
#include "streams.h"
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
    gmd_self_deadlock alone; /* of the call under way, where requests run one after the other */
    double start_s;          /* of the run, on gmd_clock_s */
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
    char error_token[GMD_PARTY_VALUE];            /* what stays of it from run to run */
    char error_text[500];                         /* what it said went wrong there */

    gmd_faults faults;
    bool limit_is_unknown[GMD_MAX_DEVICES];
    uint64_t limit_bytes[GMD_MAX_DEVICES];    /* of reserved memory; UINT64_MAX: none */
    uint64_t limit_at_start[GMD_MAX_DEVICES]; /* likewise, before the first request */
    uint64_t total_bytes[GMD_MAX_DEVICES];    /* of the device */
    uint64_t budget_bytes[GMD_MAX_DEVICES];   /* of physical memory; UINT64_MAX: all of it */

    bool has_used;             /* work was queued */
    uint64_t refusals, probes; /* requests refused; refusals after which it was asked again */
    uint64_t
        doubtful_refusals; /* while scouting: what was asked for would fit beside what is live */
    uint64_t last_probe;   /* request index */
    gmd_misuses_made wrong_frees;
    uint64_t last_mark;     /* of all in this process: marks of an earlier input mean nothing */
    uint64_t marking_count; /* allocations asked whether their contents are to be followed */
    bool is_muted;          /* standard error leads nowhere */
    gmd_mute mute;
    uint64_t request_index;
    uint64_t moment; /* grows with each request carried out: the order in which it happened, which
                        is not that of the indexes where threads are interleaved */
    struct gmd_interleaving *interleaving; /* NULL: one request at a time */
    uint64_t last_refused;                 /* request index of the latest out-of-memory */
    /* One of many inputs in one process (scout.h): no fork; the allocator is asked again in place,
     * after this refusal, and the input ends with the answers. 0: never. */
    bool is_scouting, ends_here;
    uint64_t scouted_refusal;
    uint64_t state_hash; /* of what is seen after the last request (gmd_scouted) */
    bool is_in_process;  /* the process is the caller's (gmd_in_process.h) */
    bool expects_lapses; /* of the scheduler (gmd_scheduler.h) */
    unsigned lapses;     /* of its latest run */
    bool is_over;
    uint32_t pool_count; /* that were made so far, in all runs of this process */
    bool is_capturing;   /* a stream */
    gmd_session_captures captures;
    gmd_session_pools pools; /* large, and mostly not looked at */
};

/* What belongs to the request under way: other threads' requests may run while the allocator has
 * the floor in this one. */
typedef struct gmd_call_frame {
    gmd_view view;
    gmd_stats stats_before;
    uint64_t request_index;
    gmd_thread_state thread_before;
} gmd_call_frame;

/* The memory fraction whose product with `total`, cut to whole bytes, is `limit` exactly. */
double gmd_fraction_for(uint64_t limit, uint64_t total);

/* The allocator under test, as the options name it. */
gmd_subject_source gmd_session_source(const gmd_run_options *options);

/* Loads the runtime and the allocator under test and looks at the untouched device. */
gmd_status gmd_session_open(gmd_session *session, const gmd_run_options *options,
                            const gmd_workload *workload, gmd_shared *shared, gmd_error *error);

/* The run cannot go on; the error is placed in the trace's file. */
void gmd_session_stop(gmd_session *session, gmd_status status, const gmd_error *error);

/* session_requests.c: does what the request says, and asks the oracles. */
gmd_status gmd_session_carry_out(gmd_session *session, const gmd_request *request,
                                 gmd_served *served, gmd_error *error);
/* There will be no more than `count` blocks: their places stay where they are. False: no host
 * memory.
 */
bool gmd_session_reserve_blocks(gmd_session *session, uint32_t count);
/* Frees a live block as its owner would; `freed` is what it was, for the view. */
gmd_status gmd_session_free_block(gmd_session *session, session_block *block, gmd_live_block *freed,
                                  gmd_error *error);

/* session_pools.c: private pools. What the allocator cannot do, or what makes no sense where it
 * stands, is left out. */
gmd_status gmd_session_on_pool(gmd_session *session, const gmd_request *request, gmd_error *error);
/* Which pool a request on that stream goes to: its serial number (gmd_pool_number); 0: the default
 * one. */
bool gmd_session_has_joined(const gmd_session_captures *captures, cudaStream_t stream);
static inline uint32_t gmd_session_pool_of(const gmd_session *s, int device, cudaStream_t stream)
{
    const gmd_session_pools *p = &s->pools;
    if (!p->is_used || !p->book.open[device]) {
        return 0;
    }
    const gmd_session_accepted *a = &p->accepted[device];
    bool is_meant = a->takes_all || a->stream == stream ||
                    (a->captures && gmd_session_has_joined(a->captures, stream));
    return is_meant ? p->serials[device][p->book.open[device] - 1] : 0;
}

/* session_captures.c: stream captures and graphs. While a stream is captured, requests that a
 * program cannot make then are left out. */
bool gmd_session_capture_forbids(const gmd_session *session, const gmd_request *request);
gmd_status gmd_session_begin_capture(gmd_session *session, const gmd_request *request,
                                     cudaStream_t stream, gmd_error *error);
gmd_status gmd_session_end_capture(gmd_session *session, gmd_error *error);
bool gmd_session_is_captured(const gmd_session *session, int device, uint32_t stream);
/* Whether the block was allocated for the graph that is being captured. */
bool gmd_session_is_of_graph(const gmd_session *session, const gmd_live_block *block);
/* Whether the call was refused because the capture has failed before; the error is taken back. */
bool gmd_session_is_of_failed_capture(const gmd_session *session, cudaError_t result);
/* What requests on captured streams do: work and waits become a part of the graph; the host cannot
 * wait for such a stream, and the capture fails. */
gmd_status gmd_session_capture_use(gmd_session *session, const gmd_request *request,
                                   session_block *block, gmd_error *error);
gmd_status gmd_session_capture_wait(gmd_session *session, int device, uint32_t waiter,
                                    uint32_t waited, gmd_error *error);
void gmd_session_capture_sync(gmd_session *session, int device, uint32_t stream);
/* Captured work in the memory of a block that was just served on a captured stream, which need not
 * run before what is captured next on that stream; NULL: none. */
const gmd_graph_access *gmd_session_capture_clash(const gmd_session *session,
                                                  const gmd_live_block *block);
/* Before the free of a block of the graph: its stream waits for the others that used it, where the
 * allocator was not told of them. */
gmd_status gmd_session_capture_settle(gmd_session *session, session_block *block, gmd_error *error);
gmd_status gmd_session_launch(gmd_session *session, const gmd_request *request, cudaStream_t stream,
                              gmd_error *error);
/* The oldest graphs of the pool, until `kept` are left; their work is waited for. */
gmd_status gmd_session_destroy_graphs(gmd_session *session, int device, uint32_t pool,
                                      uint32_t kept, gmd_error *error);
/* Whether graphs work in that pool; 0: the default one, where none does. */
bool gmd_session_has_graphs(const gmd_session *session, int device, uint32_t pool_serial);
void gmd_session_forget_graphs(gmd_session *session); /* the device was reset, or is about to be */

/* Ends the device's open pool, and begins it again. False: none is open; the allocator refused. */
bool gmd_session_leave_pool(gmd_session *session, int device);
bool gmd_session_reenter_pool(gmd_session *session, int device);
/* Requests go to no private pool any more; and nobody holds one any more. */
void gmd_session_end_pools(gmd_session *session);
void gmd_session_release_pools(gmd_session *session);

/* session_floor.c: from here on the allocator's calls are noted. */
void gmd_session_watch_calls(gmd_session *session);
/* Around every call of the allocator under test. */
void gmd_session_give_floor(gmd_session *session, gmd_call_frame *frame);
/* A question to it that is no request: until gmd_self_deadlock_leave. */
void gmd_session_enter_alone(const gmd_session *session);
void gmd_session_take_floor(gmd_session *session, const gmd_call_frame *frame);

/* The host waits for the stream, or with GMD_ALL_STREAMS for the device, and for nothing that is
 * held elsewhere (gmd_hold.h). */
gmd_status gmd_session_sync(gmd_session *session, int device, uint32_t stream, gmd_error *error);

/* Adds a function to a list of those that a planted fault answered, each once. */
void gmd_session_list_faulted(const char *faulted[GMD_FAULTED_MAX], const char *function);

/* session_probe.c: after a refusal that the oracles have seen, the allocator is asked again. */
void gmd_session_probe(gmd_session *session, const gmd_request *request);

/* session_bounds.c: brings the peaks of what the scenario stated up to date. */
void gmd_session_follow_bounds(gmd_session *session);

/* session_contents.c: what is written to blocks, for the oracle `data`. A block that was served:
 * are its contents followed? */
void gmd_session_mark(gmd_session *session, session_block *block, cudaStream_t stream);
bool gmd_session_read_contents(const void *session, const gmd_live_block *block,
                               gmd_contents *contents);

/* session_canaries.c: likewise on a real device, where there are kernels for it. Filling and
 * verifying do nothing where there are none. */
typedef struct gmd_canary_book gmd_canary_book;
gmd_status gmd_session_open_canaries(gmd_session *session, gmd_error *error);
void gmd_session_close_canaries(gmd_session *session); /* nothing is queued any more */
gmd_status gmd_session_fill(gmd_session *session, session_block *block, cudaStream_t stream,
                            gmd_error *error);
gmd_status gmd_session_use_filled(gmd_session *session, const gmd_request *request,
                                  session_block *block, cudaStream_t stream, gmd_error *error);
/* The work itself: a verification, and the mark once more. The block's device is current. */
cudaError_t gmd_session_work_filled(gmd_session *session, const session_block *block,
                                    uint32_t stream_index, cudaStream_t stream);
gmd_status gmd_session_verify_last(gmd_session *session, const session_block *block,
                                   cudaStream_t stream, gmd_error *error);
/* Asks the oracles about all that kernels have found by now; and begins anew at the end of a run,
 * with nothing pending. */
void gmd_session_judge_sights(gmd_session *session);
void gmd_session_forget_sights(gmd_session *session);
bool gmd_session_device_is_lost(const gmd_session *session);

/* session_rounds.c: the workload is over and nothing was found: once more, many times. */
void gmd_session_repeat(gmd_session *session);

/* session_misuse.c: after a free that the oracles have seen, maybe one that must not be made. */
void gmd_session_misuse(gmd_session *session, const gmd_live_block *freed);

/* session_view.c: the device before the allocator is loaded, and the view before the first request.
 */
void gmd_session_view_untouched(gmd_session *session);
void gmd_session_view_open(gmd_session *session);
/* Then: the oracles that can see what they need. */
gmd_status gmd_session_open_judge(gmd_session *session, gmd_error *error);
/* Nothing has happened yet in the request. */
void gmd_session_begin(gmd_session *session);
/* Makes `device` the one that the oracles look at, with its statistics from before the request. */
void gmd_session_look_at(gmd_session *session, int device);
/* Reads again what the request may have changed. */
void gmd_session_refresh(gmd_session *session);
/* Of what was read last: bytes that the allocator holds, and what its limit and the device leave
 * (GMD_STAT_UNKNOWN on a real device). */
uint64_t gmd_session_held(const gmd_session *session, int device);
uint64_t gmd_session_room(const gmd_session *session, int device);
/* Asks the oracles about the request that was carried out, or about the end. */
void gmd_session_judge(gmd_session *session);

/* Frees what is live, as its owners would, each free judged. */
void gmd_session_free_everything(gmd_session *session);

/* The end of a run: statistics for the report, then everything is freed and the cache emptied, and
 * the oracles judge what is left. */
void gmd_session_finish(gmd_session *session);

/* After a violation whose request cannot be brought out of the allocator: the process ends, and
 * what was found counts. */
__attribute__((noreturn)) void gmd_session_end_process(gmd_session *session);
void gmd_session_close(gmd_session *session);

/* session_restart.c: after a run that ended cleanly, as before its first request. */
gmd_status gmd_session_restart(gmd_session *session, gmd_error *error);
/* What is left of a run; its judge is closed. */
void gmd_session_forget(gmd_session *session);
/* session_open.c: after any run, a fresh device and the allocator as just loaded, by these options.
 * The allocator exports gmd_restart, and the device is simulated. Where it fails, only another call
 * or gmd_session_close may follow. */
gmd_status gmd_session_renew(gmd_session *session, const gmd_run_options *options,
                             gmd_error *error);

#endif
