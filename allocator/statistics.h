/* statistics.h - the figures of torch.cuda.memory_stats(): one list makes the storage, the updates
 * and the names. Values are counts or bytes, as the name says. Sync: the owner's lock. */
#ifndef GMD_STATISTICS_H
#define GMD_STATISTICS_H

#include "gmd_abi.h"

#include <stdbool.h>

/* Kept for each pool and over all of them: current, peak, allocated (summed ups), freed (downs). */
#define POOLED_FIGURES(X)                                                                          \
    X(ALLOCATION, "allocation")                                                                    \
    X(SEGMENT, "segment")                                                                          \
    X(ACTIVE, "active")                                                                            \
    X(INACTIVE_SPLIT, "inactive_split")                                                            \
    X(ALLOCATED_BYTES, "allocated_bytes")                                                          \
    X(RESERVED_BYTES, "reserved_bytes")                                                            \
    X(ACTIVE_BYTES, "active_bytes")                                                                \
    X(INACTIVE_SPLIT_BYTES, "inactive_split_bytes")                                                \
    X(REQUESTED_BYTES, "requested_bytes")

#define COUNTED_FIGURES(X)                                                                         \
    X(num_alloc_retries)                                                                           \
    X(num_ooms)                                                                                    \
    X(num_sync_all_streams)                                                                        \
    X(num_device_alloc)                                                                            \
    X(num_device_free)

typedef enum pooled_figure {
#define X(id, name) FIGURE_##id,
    POOLED_FIGURES(X)
#undef X
        FIGURE_COUNT
} pooled_figure;

typedef enum pool_kind { POOL_LARGE, POOL_SMALL, POOL_KINDS, POOL_ALL = POOL_KINDS } pool_kind;

typedef struct figure {
    uint64_t current, peak;
    uint64_t allocated; /* freed is allocated - current */
} figure;

typedef struct statistics {
    figure pooled[POOL_KINDS + 1][FIGURE_COUNT];
#define X(name) uint64_t name;
    COUNTED_FIGURES(X)
#undef X
} statistics;

static inline void figure_raise(figure *f, uint64_t amount)
{
    f->current += amount;
    f->allocated += amount;
    if (f->current > f->peak) {
        f->peak = f->current;
    }
}

static inline void statistics_raise(statistics *s, pool_kind kind, pooled_figure which,
                                    uint64_t amount)
{
    figure_raise(&s->pooled[kind][which], amount);
    figure_raise(&s->pooled[POOL_ALL][which], amount);
}

static inline void statistics_lower(statistics *s, pool_kind kind, pooled_figure which,
                                    uint64_t amount)
{
    s->pooled[kind][which].current -= amount;
    s->pooled[POOL_ALL][which].current -= amount;
}

static inline uint64_t statistics_current(const statistics *s, pooled_figure which)
{
    return s->pooled[POOL_ALL][which].current;
}

void statistics_reset_peaks(statistics *s);
void statistics_summary(const statistics *s, gmd_stats *out); /* all but struct_size */
void statistics_emit(const statistics *s, gmd_stat_fn *emit, void *context);

#endif
