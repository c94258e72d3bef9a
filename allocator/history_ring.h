/* history_ring.h - what happened, as torch.cuda.memory's history has it.
 *
 * Each heap has a ring of its own latest events, so that streams share nothing here either; a
 * snapshot brings them into one order by the processor's clock (history.h). Off, an event costs one
 * comparison; on, it is four words and a reading of that clock. Sync: the heap's. */
#ifndef GMD_HISTORY_RING_H
#define GMD_HISTORY_RING_H

#include "heap.h"
#include "segment_stacks.h"
#include "stacks.h"
#include "ticks.h"

typedef enum history_kind {
    HISTORY_ALLOC,
    HISTORY_FREE_REQUESTED,
    HISTORY_FREE_COMPLETED,
    HISTORY_SEGMENT_ALLOC,
    HISTORY_SEGMENT_FREE,
    HISTORY_SEGMENT_MAP,
    HISTORY_SEGMENT_UNMAP,
    HISTORY_OOM, /* address: the device's free bytes */
    HISTORY_SNAPSHOT,
    HISTORY_KINDS
} history_kind;

typedef struct history_entry {
    uint64_t ticks; /* of the processor's clock */
    uint64_t address, size;
    uint32_t stack; /* 0: none */
    uint32_t kind : 8;
    uint32_t note : 24; /* see stacks_set_note; 0: none */
} history_entry;

struct history_ring {
    uint64_t count;      /* of all events so far */
    uint64_t mask;       /* entries - 1, a power of two - 1 */
    uint64_t most_mask;  /* what the ring may grow to */
    uint32_t epoch;      /* of the stacks that are kept, see stacks.h; 0: none are */
    uint32_t skipped;    /* events that are left out: 1 << history_kind */
    const stacks *notes; /* whose notes the events carry; NULL: nobody made any */
    history_entry entries[];
};

/* An event with all that its ring says of it. */
typedef struct history_event {
    history_entry entry;
    cudaStream_t stream;
} history_event;

typedef struct history {  /* of a device */
    uint64_t max_entries; /* 0: off */
    uint32_t epoch;       /* see history_ring */
    ticks_moment start;
    history_event *past; /* of heaps that are gone */
    size_t past_count, past_capacity;
    segment_stacks segments;
} history;

/* A ring that may grow to `max_entries`. NULL: no host memory. */
history_ring *history_ring_create(uint64_t max_entries, uint32_t epoch);

/* The ring has come to its end: it grows, or its oldest events make place. */
__attribute__((cold)) void history_turn(heap *h);

static inline void history_put(heap *h, history_kind kind, uint64_t ticks, uint64_t address,
                               uint64_t size, uint32_t stack)
{
    history_ring *r = h->history;
    if (__builtin_expect(r->skipped >> kind & 1, 0)) {
        return;
    }
    history_entry *e = &r->entries[r->count & r->mask];
    e->ticks = ticks;
    e->address = address;
    e->size = size;
    e->stack = stack;
    e->kind = (uint32_t)kind & 0xff;
    e->note = __builtin_expect(r->notes != NULL, 0) ? stacks_note(r->notes) & 0xffffff : 0;
    if (__builtin_expect(!(++r->count & r->mask), 0)) {
        history_turn(h);
    }
}

static inline uint32_t history_stack(const heap *h)
{
    uint32_t epoch = h->history->epoch;
    return __builtin_expect(epoch != 0, 0) ? stacks_current(epoch) : 0;
}

static inline void history_add(heap *h, history_kind kind, uint64_t address, uint64_t size)
{
    if (__builtin_expect(h->history != NULL, 0)) {
        history_put(h, kind, ticks_now(), address, size, history_stack(h));
    }
}

/* The block, which has just been handed out, keeps the stack. */
static inline void history_add_alloc(heap *h, block *b)
{
    if (__builtin_expect(h->history != NULL, 0)) {
        uint32_t stack = history_stack(h);
        if (__builtin_expect(h->history->epoch != 0, 0)) {
            block_detail_of(b)->stack = stack;
        }
        history_put(h, HISTORY_ALLOC, ticks_now(), b->address, b->requested_size, stack);
    }
}

/* Where the free's own stack is not taken, the allocation's says more than none. */
static inline uint32_t history_free_stack(const heap *h, const block *b)
{
    uint32_t stack = history_stack(h);
    return __builtin_expect(h->history->epoch != 0, 0) && !stack ? block_detail_seen(b)->stack
                                                                 : stack;
}

/* A block is freed; `is_done`: no other stream's work uses it, so that it can be used again. */
static inline void history_add_free(heap *h, const block *b, bool is_done)
{
    if (__builtin_expect(h->history != NULL, 0)) {
        uint32_t stack = history_free_stack(h, b);
        uint64_t ticks = ticks_now(); /* one for both, as they are one moment */
        history_put(h, HISTORY_FREE_REQUESTED, ticks, b->address, b->requested_size, stack);
        if (is_done) {
            history_put(h, HISTORY_FREE_COMPLETED, ticks, b->address, b->requested_size, stack);
        }
    }
}

/* The last other stream's work that used a freed block is done. */
static inline void history_add_completed(heap *h, const block *b)
{
    if (__builtin_expect(h->history != NULL, 0)) {
        history_put(h, HISTORY_FREE_COMPLETED, ticks_now(), b->address, b->requested_size,
                    history_free_stack(h, b));
    }
}

#endif
