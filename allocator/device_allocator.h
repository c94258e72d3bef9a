/* device_allocator.h - all that the reference allocator keeps of one device.
 *
 * A request that a cached block serves enters its stream's heap and nothing else (heap.h).
 * Everything else needs exclusive access to the device: device_enter (device_access.h) takes the
 * lock and closes every heap that is open, and only then may segments, pools, pending frees, the
 * device's statistics and other heaps be touched. `attention` says that even a cached request must
 * come that way. */
#ifndef GMD_DEVICE_ALLOCATOR_H
#define GMD_DEVICE_ALLOCATOR_H

#include "gmd_abi.h"
#include "gmd_allocator_types.h"
#include "gmd_hash.h"
#include "gmd_intervals.h"
#include "heap.h"
#include "history_ring.h"
#include "pending_queues.h"
#include "places.h"
#include "settings.h"
#include "statistics.h"

#include <pthread.h>
#include <stdatomic.h>

/* Stream -> heap of the default pool. A heap lies in the slot of its stream's hash or in one of the
 * next few: two streams in use must not put each other out. */
#define HEAP_CACHE_SIZE 256
#define HEAP_CACHE_WAYS 8

/* Why a request that a cached block could serve needs exclusive access to the device. */
enum {
    ATTEND_PENDING = 1, /* frees wait for other streams: they are looked at by each request */
    ATTEND_ROUTES = 2,  /* some streams' requests go to private pools */
    ATTEND_AGES = 4,    /* lookups are counted, for garbage collection */
    ATTEND_YIELDED = 8, /* the memory is lent: nothing can be served (loan.h) */
};

struct pool {
    pool *next;
    uint64_t id[2]; /* {0, 0}: the default pool */
    heap **heaps;   /* in ascending order of their streams' handles */
    size_t heap_count, heap_capacity;
    uint32_t holders;       /* private: how often it was begun and not released */
    gmd_pool_memory memory; /* private: where segments come from; `allocate` NULL: cudaMalloc */
    bool is_whole;          /* private: blocks are not split; its sets have it, too */
    bool is_reserve;        /* private: serves the default pool's requests rather than none */
    bool is_captured; /* graphs hold addresses of its blocks: segments stay while there are holders
                       */
    uint64_t lookups[POOL_KINDS]; /* for garbage collection */
};

typedef struct route { /* while it stands, requests on streams that it accepts go to its pool */
    struct route *next;
    pool *to;
    gmd_stream_filter *accepts;
    void *context;
} route;

typedef struct memory_callback {
    struct memory_callback *next;
    gmd_free_memory_callback *release;
    void *context;
} memory_callback;

struct device_allocator {
    _Alignas(64) pthread_mutex_t lock; /* a cache line, as heaps have: see allocator.c */
    int device;
    const settings *_Atomic settings; /* others take their place under exclusive access only */
    _Atomic uint32_t attention;       /* ATTEND_ bits */
    _Atomic uint64_t captures; /* a recording's epoch and gmd_stacks; 0: no stacks are taken */
    heap *_Atomic heap_cache[HEAP_CACHE_SIZE];
    heap *heaps;       /* of all pools */
    pool default_pool; /* first of the list of pools */
    route *routes;
    memory_callback *callbacks;
    uint64_t limit_bytes; /* of reserved memory; UINT64_MAX: none is set */
    bool is_limit_known;  /* the settings' fraction was looked at, or another one was set */
    uint32_t unchecked;   /* see validity.h */
    uint64_t ask_cost_at; /* of `unchecked`; see validity.c */
    segment *segments;    /* the expandable ones */
    bool has_both_kinds;  /* there may be others beside them: the setting was switched */
    gmd_intervals owners; /* all segments, by place: the set of their blocks */
    places places;        /* blocks' addresses are places, see places.h */
    pending pending;
    history history;
    stacks *stacks;     /* the allocator's */
    struct loan *loan;  /* NULL: the memory is not lent */
    bool is_known_idle; /* nothing is queued on the device: no stream needs to be waited for */
    uint32_t quirks;
    _Atomic uint64_t quirk_counts[GMD_QUIRK_COUNT];
    statistics stats;
    uint32_t skipped; /* events that the next recording leaves out: 1 << history_kind */
    bool has_notes;   /* a thread's requests were noted: events carry it */
};

/* Those in force, any time: a request that reads them twice may see two. */
static inline const settings *device_settings(const device_allocator *d)
{
    return atomic_load_explicit(&d->settings, memory_order_acquire);
}

static inline uint32_t device_heap_slot(cudaStream_t stream, uint32_t way)
{
    uint64_t hash = gmd_hash_pointer(stream);
    return (uint32_t)((hash >> 56) + way) % HEAP_CACHE_SIZE;
}

__attribute__((cold)) heap *device_cached_heap_elsewhere(device_allocator *d, cudaStream_t stream);

/* The default pool's heap of a stream, where it was used of late; NULL: ask device_heap
 * (device_heaps.h). Any time.
 */
static inline heap *device_cached_heap(device_allocator *d, cudaStream_t stream)
{
    heap *h =
        atomic_load_explicit(&d->heap_cache[device_heap_slot(stream, 0)], memory_order_acquire);
    return __builtin_expect(h && h->stream == stream, 1) ? h
                                                         : device_cached_heap_elsewhere(d, stream);
}

static inline void device_attend(device_allocator *d, uint32_t why, bool is_on)
{
    uint32_t now = atomic_load_explicit(&d->attention, memory_order_relaxed);
    atomic_store_explicit(&d->attention, is_on ? now | why : now & ~why, memory_order_relaxed);
}

static inline bool quirk_is_on(const device_allocator *d, gmd_quirk which)
{
    return d->quirks & 1u << which;
}

/* A request begins, and is one of those whose stacks `which` has; nothing is held yet. */
static inline void device_note_caller(device_allocator *d, gmd_stacks which)
{
    uint64_t captures = atomic_load_explicit(&d->captures, memory_order_relaxed);
    if (__builtin_expect(captures != 0, 0)) {
        stacks_take(d->stacks, (uint32_t)(captures >> 32), (uint32_t)captures >= (uint32_t)which);
    }
}

/* Torch 2.11's deviation is to be kept to, and matters here: counted. */
static inline bool quirk_holds(device_allocator *d, gmd_quirk which)
{
    bool holds = quirk_is_on(d, which);
    d->quirk_counts[which] += holds;
    return holds;
}

#endif
