/* gmd_oracle.h - what an oracle is, what it sees, and how it speaks.
 *
 * An oracle judges an allocator from outside: from the requests, the answers, the statistics that
 * the allocator exports and what the device handed out. It knows nothing of the allocator's
 * insides. Adding one: write oracles/NAME.c with one gmd_oracle, and put it, with the kinds of its
 * verdicts, in the list of gmd_oracle_list.h.
 *
 * The driver calls the hooks in the thread that makes the requests; oracles keep their state in
 * what `create` returns and nowhere else. An oracle that cannot see what it needs says so and is
 * reported as skipped. */
#ifndef GMD_ORACLE_H
#define GMD_ORACLE_H

#include "gmd_abi.h"
#include "gmd_error.h"
#include "gmd_kind.h"
#include "gmd_stated_bound.h"
#include "gmd_trace.h"

#include <stdbool.h>
#include <stdint.h>

/* A live block, as the caller of the allocator knows it. */
typedef struct gmd_live_block {
    uint64_t address;
    uint64_t bytes; /* asked for */
    uint64_t born;  /* index of its request */
    uint32_t id;    /* index into the trace's blocks */
    uint32_t stream;
    int device;
    uint32_t pool; /* that its request went to; 0: the default one (gmd_pool_number) */
} gmd_live_block;

/* A private pool is called {0, serial number}. The serial number is a multiple of GMD_MAX_POOLS
 * plus 1 plus the pool's index in the trace: one that is made when the last of its name is gone has
 * another number. */
static inline uint32_t gmd_pool_number(uint32_t serial)
{
    return (serial - 1) % GMD_MAX_POOLS;
}

/* The latest work on one stream that used a block. */
typedef struct gmd_use {
    uint64_t request; /* index of the request that queued it */
    uint64_t ticket;  /* with `place`, the device's name for that moment (gmd_sim_point) */
    uint32_t place;
    uint32_t stream; /* index into the trace's streams */
} gmd_use;

/* What is read from a block. Work of its owner writes the block's own mark all over it. */
typedef struct gmd_contents {
    bool is_written; /* so that nothing but the mark can be there */
    uint64_t marked_bytes, other_bytes;
    uint64_t other_address;      /* the first byte without the mark */
    const gmd_live_block *other; /* the live block whose mark is there; NULL: none's */
} gmd_contents;

/* Work on a real device that found something else in a block than what the block's own work had
 * written: all over the block, from when it was handed out. */
typedef struct gmd_canary_finding {
    gmd_live_block block;
    gmd_use use;            /* the work that saw it: its request and stream */
    uint64_t offset, found; /* bytes from the block's start; the 8 B there */
    bool has_other;
    gmd_live_block other;                /* the block whose work had written that; it may be gone */
    bool is_captured, other_is_captured; /* a graph's work, which its launch ran */
} gmd_canary_finding;

/* Whether a graph and somebody who is no part of its pool met in the same memory: private_pool's to
 * judge. */
static inline bool gmd_canary_is_about_graphs(const gmd_canary_finding *s)
{
    return s->has_other && (s->is_captured || s->other_is_captured) &&
           (s->block.pool != s->other.pool || s->block.device != s->other.device);
}

/* What the device has given out; bytes. */
typedef struct gmd_device_figures {
    uint64_t capacity_bytes;
    uint64_t physical_bytes;  /* whole pages */
    uint64_t allocated_bytes; /* as asked for by cudaMalloc */
    uint64_t allocation_count;
    uint64_t stream_count, event_count; /* without those of the driver */
    /* Virtual memory management. */
    uint64_t mapped_bytes, handle_count, reservation_count, reservation_bytes;
    uint64_t pool_bytes; /* of allocated_bytes: what stream-ordered pools hold, in use or not */
} gmd_device_figures;

/* Memory that the device handed out or took back in a request, in order. */
typedef struct gmd_device_call {
    bool is_free;    /* or unmapped */
    bool is_mapping; /* of physical memory at an address; else an allocation */
    bool is_pooled;  /* freed to a stream-ordered pool: the device has it no sooner than before */
    int device;      /* of the memory */
    uint64_t address, size;
} gmd_device_call;

/* A call of the allocator's that the CUDA API forbids. */
typedef struct gmd_misuse {
    const char *function, *sentence; /* static */
    const char *rule;                /* that was broken, where the error leaves it open, or NULL */
    uint64_t address, size;          /* the call's arguments, where it has such */
    int result;                      /* what it returned: cudaError_t or CUresult */
} gmd_misuse;

/* What CUDA keeps for a thread. */
typedef struct gmd_thread_state {
    int device, last_error;
    int capture_mode; /* 0 where the runtime has no captures */
} gmd_thread_state;

/* What an allocator answers when it is asked once more after a refusal. */
typedef enum gmd_reply { GMD_NOT_ASKED, GMD_REFUSED, GMD_SERVED_NOW } gmd_reply;

/* After a refusal, in this order until one is served: the same request again at once; with all
 * streams idle; with the cache emptied, too; with the cache emptied while the open private pool is
 * closed for that time, where one is open; with everything freed as well. Planted faults are
 * cleared before. Bytes that the allocator held are reserved_bytes, or what the device tells. */
typedef struct gmd_refusal {
    gmd_reply at_once, when_idle, when_emptied, when_reopened, when_all_is_free;
    uint64_t held_idle, held_emptied; /* when_idle was refused: before and after the emptying */
    /* Likewise, before it: what the limit and the device left; GMD_STAT_UNKNOWN. */
    uint64_t room_idle;
    uint64_t taken; /* of it, by what was served when emptied; GMD_STAT_UNKNOWN */
    uint64_t held_free, held_at_start; /* when_all_is_free was asked: just before; and at first */
    uint64_t room;      /* what the limit and the device leave with all free; GMD_STAT_UNKNOWN */
    int died_of_signal; /* while it was asked; 0: it did not */
    bool has_ended_process;
    char error[160]; /* what it said, other than being out of memory; "": nothing */
    char error_token[GMD_PARTY_VALUE]; /* what stays of that from run to run */
} gmd_refusal;

/* A free that a caller must not make, made to see what the allocator does. */
typedef enum gmd_wrong_free_kind {
    GMD_FREED_TWICE,
    GMD_FREED_INSIDE,  /* of a live block */
    GMD_FREED_FOREIGN, /* an address that no allocator handed out */
    GMD_FREED_NULL,
    GMD_FREED_STALE,   /* of a block whose memory went back to the device */
    GMD_FREED_ANOTHER, /* likewise, which another library has got there since */
    GMD_FREED_KINDS
} gmd_wrong_free_kind;

typedef struct gmd_wrong_free {
    gmd_wrong_free_kind kind;
    uint64_t address, bytes;
    gmd_live_block block; /* which; not of GMD_FREED_FOREIGN and GMD_FREED_NULL */
    bool took_anothers;   /* GMD_FREED_ANOTHER: the other library's memory is gone */
} gmd_wrong_free;

/* "the second free of the block"; and in one word. */
const char *gmd_wrong_free_text(gmd_wrong_free_kind kind);
const char *gmd_wrong_free_token(gmd_wrong_free_kind kind);

/* "the capture of a pool failed" and its like; static. */
typedef struct gmd_pool_failure {
    const char *token, *sentence;
} gmd_pool_failure;

typedef struct gmd_device_range {
    uint64_t address, size;
    int device;
} gmd_device_range;

typedef void gmd_live_fn(void *context, const gmd_live_block *block);

/* Memory that captured work uses, in the order in which it was captured. */
typedef struct gmd_graph_access {
    uint64_t address, bytes;
    uint64_t request; /* that captured it */
    uint32_t stream;
} gmd_graph_access;

#define GMD_FAULTED_MAX 4

/* --- what an oracle sees: gmd_view and its parts. Pointers are valid during the hook only. */

/* Blocks, and bytes asked for, that are live on the device of the request. */
typedef struct gmd_view_live {
    uint64_t count, bytes;
    uint64_t empty_count; /* of them: blocks of 0 B, which an allocator need not count */
} gmd_view_live;

/* What the allocator says of itself. NULL where it exports no statistics. */
typedef struct gmd_view_stats {
    const gmd_stats *now, *before; /* before: the request */
    uint64_t reserved_at_start;    /* reserved_bytes before the first request; GMD_STAT_UNKNOWN */
    bool has_failed; /* gmd_get_stats is exported, and failed before the first request */
} gmd_view_stats;

/* What the device tells. NULL where it does not (a real one). */
typedef struct gmd_view_figures {
    const gmd_device_figures *now;
    /* Before the allocator was loaded; before the first request. An allocator may take memory in
     * between. */
    const gmd_device_figures *untouched, *baseline;
} gmd_view_figures;

enum { GMD_BLOCK_NAME = 48 }; /* a longer name is cut off */

/* Questions; `context` is their first argument. Those to the device are NULL on a real one. */
typedef struct gmd_view_ask {
    const void *context;
    /* The device allocation that contains `address`; false: none. */
    bool (*find_range)(const void *context, uint64_t address, gmd_device_range *range);
    /* Work on `device` can read and write the whole range; `bad`: the first address that it cannot.
     */
    bool (*is_backed)(const void *context, uint64_t address, uint64_t size, int device,
                      uint64_t *bad);
    /* Whatever is queued on the stream from now on runs after the use, in every schedule; and
     * likewise whatever the host does. */
    bool (*is_ordered)(const void *context, const gmd_use *use, int device, uint32_t stream);
    bool (*is_known)(const void *context, const gmd_use *use);
    /* FREE, before_free: what is in the block. False: its contents are not followed (not all
     * blocks' are). NULL where the device's memory cannot be written and read. */
    bool (*read_contents)(const void *context, const gmd_live_block *block, gmd_contents *contents);
    /* Every block of the device as the allocator sees them, 0: all visited (gmd_walk of gmd_abi.h);
     * NULL: not exported. And every live one as its owner does. */
    int (*walk)(const void *context, int device, gmd_walk_fn *visit, void *visit_context);
    void (*each_live)(const void *context, int device, gmd_live_fn *visit, void *visit_context);
    /* What the case calls the block of request `born`; false, or NULL: blocks have no names. */
    bool (*block_name)(const void *context, uint64_t born, char name[GMD_BLOCK_NAME]);
} gmd_view_ask;

/* Real device: what kernels find in blocks. */
typedef struct gmd_view_canaries {
    bool are_there;                    /* kernels verify what blocks hold */
    const char *reason;                /* or why they do not ("": nobody asked) */
    const gmd_canary_finding *finding; /* on_canary_finding; else NULL */
} gmd_view_canaries;

/* FREE: work on the block. */
typedef struct gmd_view_uses {
    const gmd_use *list; /* the last by each stream */
    size_t count;
    uint32_t recorded_count; /* streams that record_stream named for the block, at most */
    uint64_t recorded;       /* likewise; bit s: stream s, of the first 64 */
} gmd_view_uses;

/* What the allocator asked of the simulated device in the request. */
typedef struct gmd_view_calls {
    const gmd_device_call *list; /* those that take or give back memory */
    size_t count;
    bool are_all;              /* not where threads are interleaved */
    bool has_failed;           /* one of any kind: its error has taken the place of the caller's */
    const gmd_misuse *misuses; /* of the request, or since the last one */
    size_t misuse_count;
} gmd_view_calls;

typedef struct gmd_view_faults {
    uint64_t hit; /* calls of the allocator in this request that a planted fault answered */
    const char *functions[GMD_FAULTED_MAX]; /* of these, each once; static */
} gmd_view_faults;

/* Around the allocator's call, in the thread that made it. */
typedef struct gmd_view_thread {
    const gmd_thread_state *before, *after; /* NULL: there was no call */
    const char *error_text;                 /* of the allocator (gmd_last_error); NULL: none */
    const char *error_token;                /* what stays of it from run to run; NULL: likewise */
} gmd_view_thread;

typedef struct gmd_view_limits {
    uint64_t bytes;        /* of reserved memory on the device; UINT64_MAX: none was set */
    uint64_t device_bytes; /* what the device has in all; 0: not known */
    /* Refused ALLOC, and a served one where pools have options: what it takes of the device
     * (gmd_abi.h), and what the limit and the device leave; else, and where it is not known,
     * GMD_STAT_UNKNOWN. */
    uint64_t device_request, room;
} gmd_view_limits;

/* Private pools, captures and the graphs that they make. */
typedef struct gmd_view_pools {
    const gmd_pool_failure *failure; /* END_POOL, RELEASE_POOL: of the answer; NULL: none */
    const gmd_pool_failure
        *restored;             /* RESTORE_POOL: what was told that is not so; NULL: nothing */
    uint64_t restored_address; /* of the block in question */
    uint32_t serial; /* the serial number of the pool that the request names; ALLOC: that the
                        request goes to, 0: the default one */
    uint8_t options; /* BEGIN_POOL: gmd_pool_option, those that the pool has now */
    uint64_t lent;   /* bit p: pool p of the device has, or had, GMD_POOL_USE_ON_OOM */
    const gmd_pool_failure *source; /* what was done with the memory of a pool that has its own, and
                                       must not be; NULL: nothing */
    uint32_t source_serial;         /* of that pool */
    uint64_t source_address;
    bool is_let_go;                   /* RELEASE_POOL: nobody holds the pool any more */
    bool is_capturing;                /* a stream is captured: nothing may be waited for */
    const gmd_graph_access *accesses; /* LAUNCH: of the graph that was launched; else NULL */
    size_t access_count;
    /* ALLOC on a captured stream: work that was captured before in the block's memory, and need not
     * run before what is captured next on the stream; NULL: none. */
    const gmd_graph_access *clash;
} gmd_view_pools;

/* What the scenario has stated of its memory so far, peaks with this request. */
typedef struct gmd_view_bounds {
    const gmd_stated_bound *list;
    size_t count;
} gmd_view_bounds;

/* What is known of the allocator for the whole run. */
typedef struct gmd_view_allocator {
    unsigned promises;           /* a set of gmd_promise */
    uint64_t promised_alignment; /* bytes */
    bool can_empty_cache;
    bool exports_pools; /* gmd_begin_pool and so on */
    bool is_reference;  /* it is gmd's own reference allocator */
} gmd_view_allocator;

/* Likewise of the workload. */
typedef struct gmd_view_workload {
    bool knows_requests;       /* all of them, from the start: a trace's */
    bool has_pool_requests;    /* some of these are on private pools */
    const char *no_second_run; /* why the same requests are not run again; NULL: they are */
} gmd_view_workload;

typedef struct gmd_view {
    uint64_t request_index;      /* of the request just made; at the end: their number */
    const gmd_request *request;  /* NULL at the end */
    const gmd_live_block *block; /* ALLOC that was served, FREE: the block in question, else NULL */
    bool out_of_memory;          /* ALLOC that was refused */
    /* Where threads are interleaved: other requests are still under way, and statistics and figures
     * are from before them; or some were at some time during this request, so that a difference
     * from before it says nothing of it alone. */
    bool is_busy, is_overlapped;
    int device;                       /* that the request concerned */
    const gmd_refusal *refusal;       /* after_refusal only */
    const gmd_wrong_free *wrong_free; /* after_wrong_free only; `stats.before` is from before it */
    gmd_view_live live;
    gmd_view_stats stats;
    gmd_view_figures figures;
    gmd_view_ask ask;
    gmd_view_canaries canaries;
    gmd_view_uses uses;
    gmd_view_calls calls;
    gmd_view_faults faults;
    gmd_view_thread thread;
    gmd_view_limits limits;
    gmd_view_pools pools;
    gmd_view_bounds bounds;
    gmd_view_allocator allocator;
    gmd_view_workload workload;
} gmd_view;

typedef struct gmd_judge gmd_judge;

/* What the oracle whose hook is running had to judge: which of its kinds of situations it was. For
 * a search that is to bring them about; nothing is judged by it. */
void gmd_precondition_met(gmd_judge *judge, unsigned which);

/* Reports a violation of the oracle whose hook is running. `kind` is one of its own; `parties`:
 * GMD_PARTIES(...) or GMD_NO_PARTIES, what tells this defect from others of the kind. The message
 * is for people and names both sides, with numbers. */
__attribute__((format(printf, 4, 5))) void gmd_violation_add(gmd_judge *judge, gmd_kind kind,
                                                             const gmd_given_party *parties,
                                                             const char *format, ...);

typedef struct gmd_oracle {
    const gmd_judge_entry *entry; /* its line of the list: its name, and what it checks */
    bool needs_quiet; /* judges what only holds between requests: not asked while any is under
                   way (gmd_view.is_busy) */
    bool needs_pools; /* has nothing to judge where no request is on a private pool */
    /* Why it cannot judge here, or NULL. Asked before the first request (request == NULL). */
    const char *(*blind_spot)(const gmd_view *view);
    /* State for one run; both NULL for an oracle without state. create: NULL is no host memory. */
    void *(*create)(void);
    void (*destroy)(void *state);
    /* Any may be NULL. before_free is called while the block is still live. */
    void (*after_alloc)(void *state, const gmd_view *view, gmd_judge *judge);
    void (*before_free)(void *state, const gmd_view *view, gmd_judge *judge);
    /* Real device: work found something else in a block than had been written there
     * (`canaries.finding`). */
    void (*on_canary_finding)(void *state, const gmd_view *view, gmd_judge *judge);
    void (*after_request)(void *state, const gmd_view *view, gmd_judge *judge);
    /* An ALLOC was refused and the allocator was asked again; not after each one (docs/oracles.md).
     */
    void (*after_refusal)(void *state, const gmd_view *view, gmd_judge *judge);
    /* The driver made a free that a caller must not make, now and then, after a free. */
    void (*after_wrong_free)(void *state, const gmd_view *view, gmd_judge *judge);
    /* The workload called reset_peak_memory_stats: peaks start again from the current values. */
    void (*after_peak_reset)(void *state, const gmd_view *view, gmd_judge *judge);
    /* The workload is over, and what it left is still live. Asked for each device. */
    void (*when_over)(void *state, const gmd_view *view, gmd_judge *judge);
    /* Everything was freed and the cache emptied. Likewise. */
    void (*at_end)(void *state, const gmd_view *view, gmd_judge *judge);
} gmd_oracle;

/* All oracles, in the order in which they judge; ends with NULL. */
extern const gmd_oracle *const gmd_oracles[];

#endif
