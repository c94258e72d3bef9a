/* caching_pool.h - the blocks of caching_pool.c. With the lock held. */
#ifndef CACHING_POOL_H
#define CACHING_POOL_H

#include "faulty.h"

#include <pthread.h>

enum {
    PYTORCH182446, /* sizes near SIZE_MAX wrap around to a block of no bytes */
    PYTORCH135726, /* a freed block is taken off the active bytes with its merged size */
    PYTORCH159567, /* the next cached segment's size is counted for the one given back */
    PYTORCH189504, /* after the cache was given back, free blocks are not looked at again */
    PYTORCH71616,  /* the first event that is not complete hides those behind it */
    PYTORCH19219,  /* when memory is short, blocks that wait for events are not waited for */
    PYTORCH66936,  /* a recorded stream that is gone makes the free fail: the block is lost */
    PYTORCH185240, /* figures for the message of an out-of-memory cannot be had: the process ends */
    TENSORSHARP104,    /* a freed block is as large as what its last owner asked for */
    RMM2002,           /* what is left of a block begins where the request ends, aligned or not */
    PADDLE64621,       /* events that were waited for are dropped without being destroyed */
    PADDLE79605,       /* segments of the request's own size are not held against the limit */
    VLLM37111,         /* garbage collection does not count what it gives back */
    VLLM36651,         /* the error of a cudaMalloc that was made up for stays the last error */
    ORT32342,          /* a block of no stream (the default one) is safe for every stream */
    CUDAJL778,         /* the event of a recorded stream is recorded on the block's stream */
    DALI2988,          /* the lock is given back while a segment is taken: each thread takes one */
    FIRST_STREAM_ONLY, /* a block with two recorded streams waits for the first only */
    WRONG_DEVICE,      /* a freed block goes to the thread's current device */
    ROUNDS_DOWN,       /* one byte over a multiple of 512 is rounded down */
    LOST_REMAINDER,    /* what is left of a large block is cut off and in no list */
    REMAINDER_EARLY,   /* what is left of a large block begins a unit before the block ends */
    PEAK_NOT_KEPT,     /* giving a segment back lowers the peak */
    CAP_AFTER,         /* the limit is looked at when the segment is there already */
    PENDING_KEPT,      /* emptying the cache leaves out blocks that wait for events */
    SMALL_KEPT,        /* emptying the cache leaves out small segments */
    MERGES_PENDING,    /* a freed block is merged with a neighbour that waits for events */
    PYTORCH175015, /* while a private pool is open, nothing is given back and no event is asked */
    PYTORCH175560, /* blocks of an open pool that wait for other streams are never looked at */
    PYTORCH145168, /* the cache of a pool that nobody holds any more is never given back */
    PYTORCH114320, /* a block of a private pool serves whoever asks */
    FRACTION_OF_FREE, /* a fraction of what is free, not of the whole memory, is the limit */
    PYTORCH190348,    /* a pool whose capture has failed keeps its hold for ever */
    PYTORCH159594,    /* short of memory while a stream is captured, cached segments go back */
    LLAMACPP26771,    /* what is free in a graph's pool goes back to the device */
    PYTORCH106235,    /* events are asked while a stream is captured */
    CAPTURE_IGNORES_RECORD, /* while its stream is captured, a freed block waits for no other stream
                             */
    MODE_LEFT,              /* the thread's capture mode stays relaxed */
    RESTORE_LISTS_LIVE,     /* blocks that a restored pool has again are free ones, too */
    RESTORE_UNCOUNTED,      /* what a restore frees stays in the figures */
    RESTORE_UNTOLD,         /* whoever asks for it does not learn what a restore frees */
    RESTORE_LEAVES_ONE,     /* a restore forgets the first block that it frees */
    SMALL_SPLIT,            /* small blocks are split in a pool without splits, too */
    LENT_FIRST,             /* a pool that serves others rather than a refusal does so at once */
    LENT_FORGOTTEN,         /* such a pool never serves others */
    SOURCE_PASSED_BY,       /* large segments of a pool with a source of its own are the device's */
    JOINS_OWN,              /* a block freed in a capture is free as its own stream's work says */
    SOURCE_NOT_TOLD,        /* memory of such a source goes back to the device without it */
};

#define MIB           ((uint64_t)1 << 20)
#define UNIT          ((uint64_t)512)
#define SMALL_MAX     MIB
#define SMALL_SEGMENT (2 * MIB)
#define LARGE_MIN     (10 * MIB) /* from here on a request has a segment of its own */
#define LARGE_SEGMENT (20 * MIB)
#define SPLIT_MAX     (32 * MIB) /* larger blocks stay whole, and smaller requests away from them */
#define GC_PERCENT    80         /* of the limit */

typedef struct block block;
struct block {
    uint64_t address, size, requested;
    int device;
    cudaStream_t stream;
    uint32_t owner; /* private pool: 1 + its number; 0: the default one */
    bool is_large, is_used, is_listed;
    bool is_from_source;    /* the segment */
    uint32_t waits;         /* for so many events */
    cudaStream_t *recorded; /* other streams that use it, each once */
    uint32_t recorded_count;
    bool is_deferred;       /* freed, and a recorded stream is captured: no event can be had */
    cudaGraphNode_t *joins; /* deferred: what the next work of its streams followed then; NULL: */
    size_t join_count;      /* that is not known */
    unsigned long long capture;
    uint64_t freed_at;     /* requests so far, when it came into the list */
    block *before, *after; /* neighbours in the segment */
    block *next, **link;   /* in the list of free or of live blocks */
};

typedef struct wait {
    cudaEvent_t event;
    block *block;
} wait;

typedef struct private_pool {
    uint64_t id[2];
    uint32_t holders;
    bool is_captured;       /* graphs work in its memory, whichever of it is free */
    bool has_failed;        /* a capture, while it was under way */
    bool is_whole;          /* blocks are not split */
    bool is_lent;           /* free blocks serve requests of the default pool rather than none */
    gmd_pool_memory memory; /* where its segments come from; `allocate` NULL: the device */
    uint64_t segments;
} private_pool;

typedef struct pool {
    block *small, *large; /* free blocks */
    wait *waits;          /* oldest first */
    size_t wait_count, wait_capacity;
    block *deferred; /* freed blocks that wait for captures to end */
    uint64_t limit;  /* of reserved bytes; 0: none */
    uint64_t active, active_peak, retries;
    gmd_stats stats;
    private_pool *privates; /* none moves: blocks name them by their number */
    size_t private_count;
    uint32_t open; /* that requests go to: 1 + its number; 0: none */
    gmd_stream_filter *accepts;
    void *context;
} pool;

extern pool pools[FAULTY_DEVICES];
extern block *live;
extern uint64_t request_count;
extern pthread_mutex_t lock;

uint64_t round_up(uint64_t size, uint64_t to);

void list_block(block **list, block *b);
void unlist_block(block *b);
/* Nobody uses the block any more: it is merged with its free neighbours. */
void give_to_list(block *b);
/* The smallest free block of the stream and the owner that fits, no longer in a list; NULL: none.
 */
block *take_best(pool *p, uint64_t size, bool is_large, cudaStream_t stream);

/* The private pool of that name: 1 + its number; 0: there is none. */
uint32_t owner_named(const pool *p, const uint64_t id[2]);
/* Where requests on the stream go. */
uint32_t owner_for(const pool *p, cudaStream_t stream);
/* A private pool that nobody holds any more; one that graphs work in. */
bool is_given_up(const pool *p, uint32_t owner);
bool is_kept_for_graphs(const pool *p, uint32_t owner);
/* Blocks of it are handed out whole; NULL: its memory is the device's. */
bool is_kept_whole(const pool *p, uint32_t owner);
const gmd_pool_memory *source_of(const pool *p, uint32_t owner);
/* A segment of it came, or went. */
void note_segment(pool *p, uint32_t owner, bool is_new);
/* For a request of the default pool: a free block of a pool that serves such; NULL: none. */
block *take_lent(pool *p, uint64_t size, bool is_large, cudaStream_t stream);
/* As take_best, of that owner. */
block *take_best_of(pool *p, uint64_t size, bool is_large, cudaStream_t stream, uint32_t owner);
/* The block is freed while its streams are captured; it is free in another way; blocks of the
 * stream, which is captured, are free as far as the graph says so. */
void note_joins(block *b);
void forget_joins(block *b);
void look_at_joins(pool *p, cudaStream_t stream);
/* Work on the stream goes into a graph: nothing may be waited for, and nothing given back. */
bool is_captured(cudaStream_t stream);
/* Such a request goes to the pool that is open. */
void note_capture(pool *p, cudaStream_t stream);
/* The thread may make calls that a capture forbids it; and no more. */
typedef struct capture_mode {
    enum cudaStreamCaptureMode before;
    bool is_changed;
} capture_mode;
capture_mode relax(void);
void unrelax(capture_mode mode);
/* What is left of `b` behind `size` becomes a free block. */
void split(block *b, uint64_t size, uint64_t requested);

#endif
