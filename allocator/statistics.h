/* statistics.h - the figures of torch.cuda.memory_stats(): one list makes the storage, the updates
 * and the names. Values are counts or bytes, as the name says.
 *
 * Streams' heaps are worked on at the same time (heap.h), yet peaks over all of them are exact.
 * What every request changes is counted in its heap, against a ceiling that is the heap's share of
 * the device's peak: while each heap stays under its ceiling, their sum stays under the peak, and
 * nobody needs to look at another's figures. A request that would pass its ceiling is carried out
 * with exclusive access to the device (device_allocator.h), where the sum is known; the peak moves,
 * or what is unused of it is shared out anew. A heap that is the only one has the peak as its
 * ceiling and moves it by itself.
 *
 * There may be thousands of streams. Only heaps that were used of late share in the peaks and are
 * looked at one by one; the figures of all others are settled: they are part of one sum, and their
 * heaps stay closed until somebody needs them with exclusive access. So a request takes time by the
 * streams that are in use, and not by those that there ever were.
 *
 * What is active is what is allocated and what is freed but pending; pending blocks come and go
 * under exclusive access, so only one of the two is counted by every request, against the lower of
 * their ceilings.
 *
 * Sync: a heap's figures belong to whoever has entered the heap, the device's to whoever has
 * exclusive access to it. */
#ifndef GMD_STATISTICS_H
#define GMD_STATISTICS_H

#include "gmd_abi.h"

#include "gmd_assert.h"

#include <stdbool.h>

/* Kept for each pool and over all of them: current, peak, allocated (summed ups), freed (downs). */
#define COUNTED_BY_HEAPS(X)                                                                        \
    X(ALLOCATION, "allocation")                                                                    \
    X(ALLOCATED_BYTES, "allocated_bytes")                                                          \
    X(REQUESTED_BYTES, "requested_bytes")                                                          \
    X(INACTIVE_SPLIT, "inactive_split")                                                            \
    X(INACTIVE_SPLIT_BYTES, "inactive_split_bytes")

/* The first two with what is pending, in the same order. */
#define DERIVED_BY_HEAPS(X)                                                                        \
    X(ACTIVE, "active")                                                                            \
    X(ACTIVE_BYTES, "active_bytes")

#define DEVICE_FIGURES(X)                                                                          \
    X(SEGMENT, "segment")                                                                          \
    X(RESERVED_BYTES, "reserved_bytes")

/* Over all pools only: blocks and segments of at least max_split_size_mb. */
#define OVERSIZE_FIGURES(X)                                                                        \
    X(OVERSIZE_ALLOCATION, "oversize_allocations")                                                 \
    X(OVERSIZE_SEGMENT, "oversize_segments")

#define COUNTED_FIGURES(X)                                                                         \
    X(num_alloc_retries)                                                                           \
    X(num_ooms)                                                                                    \
    X(num_sync_all_streams)                                                                        \
    X(num_device_alloc)                                                                            \
    X(num_device_free)

#define X(id, name) FIGURE_##id,
typedef enum heap_figure {
    COUNTED_BY_HEAPS(X) COUNTED_FIGURE_COUNT,
    LAST_COUNTED = COUNTED_FIGURE_COUNT - 1,
    DERIVED_BY_HEAPS(X) HEAP_FIGURE_COUNT
} heap_figure;
typedef enum device_figure { DEVICE_FIGURES(X) DEVICE_FIGURE_COUNT } device_figure;
typedef enum oversize_figure { OVERSIZE_FIGURES(X) OVERSIZE_FIGURE_COUNT } oversize_figure;
#undef X

typedef enum pool_kind { POOL_LARGE, POOL_SMALL, POOL_KINDS, POOL_ALL = POOL_KINDS } pool_kind;

typedef struct figure {
    uint64_t current, peak;
    uint64_t allocated; /* freed is allocated - current */
} figure;

typedef struct heap_count {
    uint64_t current;
    uint64_t allocated;
    uint64_t end; /* of the room that there is for `current`: see statistics.c */
} heap_count;

typedef struct heap_share { /* of a figure's peak */
    uint64_t ceiling;
    uint64_t high;     /* of the figure, as far as it was looked at: what it may need again */
    uint64_t activity; /* of the heap, when shares were given out last */
} heap_share;

typedef struct heap_statistics {
    heap_count counts[POOL_KINDS][COUNTED_FIGURE_COUNT];
    uint64_t ends[COUNTED_FIGURE_COUNT]; /* as heap_count.end, for both pools together */
    bool is_only;                        /* of the device */
    bool is_sharing;                     /* its figures may change: see statistics_share */
    uint64_t pending[POOL_KINDS][2];     /* blocks and bytes */
    heap_share shares[POOL_KINDS + 1][HEAP_FIGURE_COUNT];
    uint64_t requests, last_used; /* at the latest look: of the heap, and statistics.now */
    struct heap_statistics *next, *previous; /* in statistics.sharing */
} heap_statistics;

/* The figures of all heaps that do not share, those that are gone included. */
typedef struct settled_figures {
    uint64_t current[POOL_KINDS + 1][HEAP_FIGURE_COUNT];
    uint64_t allocated[POOL_KINDS][COUNTED_FIGURE_COUNT];
} settled_figures;

typedef struct statistics {
    heap_statistics *sharing, *least_used; /* the first and the last of a list by latest use */
    uint64_t heap_count;                   /* those that do not share included */
    uint64_t now;                          /* counts looks and heaps that began to share */
    settled_figures settled;
    uint64_t peaks[POOL_KINDS + 1][HEAP_FIGURE_COUNT]; /* of the heaps' sums; see statistics_sum */
    figure pooled[POOL_KINDS + 1][DEVICE_FIGURE_COUNT];
    figure oversize[OVERSIZE_FIGURE_COUNT];
#define X(name) uint64_t name;
    COUNTED_FIGURES(X)
#undef X
} statistics;

/* --- a heap's figures -------------------------------------------------------------------- */

/* Moves the ceilings of a heap that is the only one to what it has now. */
__attribute__((cold)) void statistics_follow(heap_statistics *h, pool_kind kind, heap_figure which);

/* What is left of the room for a counted figure when it is raised by `amount`, other heaps not
 * counted in: negative as an int64_t where it does not suffice. Several may be joined with `|`:
 * one test then tells of them all. */
static inline uint64_t statistics_room(const heap_statistics *h, pool_kind kind, heap_figure which,
                                       uint64_t amount)
{
    uint64_t raised = h->counts[kind][which].current + amount;
    return (h->counts[kind][which].end - raised) |
           (h->ends[which] - raised - h->counts[!kind][which].current);
}

/* The caller has made sure of the room, or the heap is the only one. */
static inline void statistics_raise(heap_statistics *h, pool_kind kind, heap_figure which,
                                    uint64_t amount)
{
    heap_count *c = &h->counts[kind][which];
    uint64_t raised = c->current + amount;
    c->current = raised;
    c->allocated += amount;
    if (__builtin_expect(
            raised > c->end || raised + h->counts[!kind][which].current > h->ends[which], 0)) {
        statistics_follow(h, kind, which);
    }
}

static inline void statistics_lower(heap_statistics *h, pool_kind kind, heap_figure which,
                                    uint64_t amount)
{
    GMD_ASSERT_INTERNAL(h->counts[kind][which].current >= amount, "no figure falls below nothing");
    h->counts[kind][which].current -= amount;
}

/* Raises or lowers, by what is as often the one as the other: no branch to be mispredicted. */
static inline void statistics_change(heap_statistics *h, pool_kind kind, heap_figure which,
                                     int64_t change)
{
    heap_count *c = &h->counts[kind][which];
    uint64_t changed = c->current + (uint64_t)change;
    GMD_ASSERT_INTERNAL(change >= 0 || changed < c->current, "no figure falls below nothing");
    c->current = changed;
    c->allocated += change > 0 ? (uint64_t)change : 0;
    if (__builtin_expect(
            changed > c->end || changed + h->counts[!kind][which].current > h->ends[which], 0)) {
        statistics_follow(h, kind, which);
    }
}

static inline bool statistics_is_active(const heap_statistics *h)
{
    return h->counts[POOL_LARGE][FIGURE_ALLOCATION].current ||
           h->counts[POOL_SMALL][FIGURE_ALLOCATION].current || h->pending[POOL_LARGE][0] ||
           h->pending[POOL_SMALL][0];
}

/* --- the device's ------------------------------------------------------------------------ */

void statistics_add_heap(statistics *s, heap_statistics *heap); /* it shares */

/* Nothing of the heap is current; what it has counted goes on counting. */
void statistics_remove_heap(statistics *s, heap_statistics *heap);

/* To be called before a figure of the heap changes: from now on it shares. */
void statistics_share(statistics *s, heap_statistics *heap);

/* Somebody has exclusive access to the device: notes which heaps requests used without it, and
 * settles those that were not used for long. */
void statistics_look(statistics *s);

/* A block that was lowered as allocated is pending, and is no more. The heap shares. */
void statistics_add_pending(heap_statistics *h, pool_kind kind, uint64_t bytes);
void statistics_end_pending(heap_statistics *h, pool_kind kind, uint64_t bytes);

/* Makes room for raising a counted figure of `heap`, which shares, by `amount`: the peak moves if
 * it must. */
void statistics_make_room(statistics *s, heap_statistics *heap, pool_kind kind, heap_figure which,
                          uint64_t amount);

void statistics_raise_device(statistics *s, pool_kind kind, device_figure which, uint64_t amount);
void statistics_lower_device(statistics *s, pool_kind kind, device_figure which, uint64_t amount);
void statistics_raise_oversize(statistics *s, oversize_figure which);
void statistics_lower_oversize(statistics *s, oversize_figure which);

static inline uint64_t statistics_reserved(const statistics *s)
{
    return s->pooled[POOL_ALL][FIGURE_RESERVED_BYTES].current;
}

/* A figure over all heaps. */
figure statistics_sum(const statistics *s, pool_kind kind, heap_figure which);

void statistics_reset_peaks(statistics *s);

/* Everything under its name in torch.cuda.memory_stats(). */
void statistics_emit(const statistics *s, gmd_stat_fn *emit, void *context);
void statistics_summary(const statistics *s, gmd_stats *out); /* all but struct_size */

/* What does not hold among the figures themselves; NULL: all does. */
const char *statistics_violation(const statistics *s);

/* Adds what a heap that does not share has now: over all of these, it is statistics.settled. */
void statistics_add_current(const heap_statistics *h, settled_figures *to);

#endif
