/* guard_state.h - what the parts of a guard share. */
#ifndef GMD_GUARD_STATE_H
#define GMD_GUARD_STATE_H

#include "guard_types.h"

#include "block_index.h"
#include "block_set.h"
#include "quarantine.h"
#include "ready_blocks.h"

#include <pthread.h>
#include <stdatomic.h>
#include <time.h>

enum { WATCHES = 1 << 16, GATHERED_BLOCKS = 8 };

/* What a verification was about, kept until its ticket comes round again. */
typedef struct watch {
    finding_moment moment;
    uint32_t stack; /* of a read */
    uint64_t expected;
    bool is_reported;
    guarded_block block; /* of `recorded` those that were kept */
} watch;

/* Freed blocks of one stream that wait for their fill. */
typedef struct freed_batch {
    guarded_block *blocks[GATHERED_BLOCKS];
    cudaStream_t stream;
    uint32_t count;
} freed_batch;

typedef struct device_part {
    quarantine held;
    ready_blocks ready;
    quarantine going; /* freed, and still mapped */
    quarantine gone;  /* what was unmapped: addresses only */
    uint64_t mapped_bytes, mapped_peak_bytes;
    freed_batch gathered;
    cudaStream_t side; /* where fills wait for all streams that used a block */
    _Atomic bool is_ready;
} device_part;

struct guard {
    sanitizer_options options;
    guard_allocator allocator;
    sweeps *sweeps;
    report *report;
    int device_count;
    device_part *devices;
    watch *watches;
    _Atomic uint32_t next_ticket;
    _Atomic uint64_t next_check_ns;
    _Atomic bool is_finished;
    bool keeps_index;   /* blocks are looked for with each launch or read, not for reports only */
    mappings *mappings; /* NULL: blocks keep their mappings */
    struct recent_works *recent;      /* likewise */
    _Atomic bool is_lost;             /* an illegal access was reported: CUDA does nothing more */
    _Atomic int pools;                /* that requests go to: captures may be under way */
    struct order *order;              /* happens-before, and what it is told by; NULL: off */
    struct launches *launches;        /* likewise */
    _Atomic uint64_t lowest, highest; /* addresses that blocks ever had */
    _Atomic uint64_t raised;          /* findings */
    pthread_mutex_t preparing;
    pthread_mutex_t lock; /* this and below */
    block_set live;
    block_index index; /* of live blocks and those held back; empty without keeps_index */
    uint64_t block_count, zone_bytes, held_bytes;
    report_figures figures;
    pthread_mutex_t reporting; /* the report, and reading finds; taken before `lock` */
};

static inline uint64_t guard_now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000U + (uint64_t)t.tv_nsec;
}

/* --- found.c ----------------------------------------------------------------------------- */

/* The block, live or held back, whose memory the byte lies in; NULL: none. Under the lock. */
guarded_block *guard_find(const guard *g, uint64_t address);

/* --- findings.c --------------------------------------------------------------------------- */

/* Reports what the kernels have found by now; `current_stack` is the caller's. */
void guard_poll(guard *g, uint32_t current_stack);

void guard_report_bad_free(guard *g, const void *ptr, uint32_t stack);

/* The block was freed before the read was queued: no kernel has to look. */
void guard_report_stale_read(guard *g, const guarded_block *b, uint64_t address, size_t size,
                             uint32_t stack);

/* --- verifying.c: the block's device is current ------------------------------------------- */

/* A ticket for a verification that is about to be queued. */
uint32_t guard_watch(guard *g, const guarded_block *block, finding_moment moment,
                     uint64_t expected);

sweep_range guard_range(uint64_t from, uint64_t to, uint32_t flags, uint64_t expected,
                        uint64_t written, uint32_t ticket);

/* Both zones are verified, written, or both. Gives the number of ranges, 2. */
uint32_t guard_zones(const guarded_block *b, uint32_t flags, uint64_t written, uint32_t ticket,
                     sweep_range *out);

/* What is filled of a new block. Gives the number of ranges, at most 3. */
uint32_t guard_new_ranges(const guard *g, const guarded_block *b, sweep_range *out);

/* A block that is freed: its zones are verified and stay, and what lies between is filled. Gives
 * the number of ranges, 3. */
uint32_t guard_freeing(guard *g, const guarded_block *b, sweep_range *out);

/* All of a freed block, as it was filled. Gives the number of ranges, 3. */
uint32_t guard_freed(guard *g, const guarded_block *b, uint32_t flags, uint32_t ticket,
                     sweep_range *out);

#endif
