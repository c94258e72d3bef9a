/* history.h - what happened, as torch.cuda.memory's history has it: a ring of the latest events of
 * each heap, brought into one order when it is asked for. Off, it costs one comparison; on, an
 * event is four words and the processor's own clock. Sync: the heap's. */
#ifndef GMD_HISTORY_RING_H
#define GMD_HISTORY_RING_H

#include "device_allocator.h"

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
} history_kind;

typedef struct history_entry {
    uint64_t ticks; /* of the processor's clock */
    uint64_t address, size;
    uint32_t stack; /* 0: none */
    uint32_t kind;
} history_entry;

struct history_ring {
    uint64_t count; /* of all events so far */
    uint64_t mask;  /* entries - 1, a power of two - 1 */
    history_entry entries[];
};

static inline uint64_t history_ticks(void)
{
#if defined(__x86_64__)
    return __builtin_ia32_rdtsc();
#elif defined(__aarch64__)
    uint64_t ticks;
    __asm__ volatile("mrs %0, cntvct_el0" : "=r"(ticks));
    return ticks;
#else
#error "history_ticks: say how this processor's clock is read"
#endif
}

static inline void history_add(heap *h, history_kind kind, uint64_t address, uint64_t size,
                               uint32_t stack)
{
    history_ring *r = h->history;
    if (__builtin_expect(r != NULL, 0)) {
        history_entry *e = &r->entries[r->count++ & r->mask];
        e->ticks = history_ticks();
        e->address = address;
        e->size = size;
        e->stack = stack;
        e->kind = (uint32_t)kind;
    }
}

/* An event of a segment. */
static inline void history_note(device_allocator *d, history_kind kind, uint64_t address,
                                uint64_t size, const free_set *set)
{
    (void)d;
    history_add(set->heap, kind, address, size, 0);
}

#endif
