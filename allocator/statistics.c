#include "statistics.h"

#include <stdio.h>

static const char *const figure_names[FIGURE_COUNT] = {
#define X(id, name) [FIGURE_##id] = name,
    POOLED_FIGURES(X)
#undef X
};

static const char *const pool_names[POOL_KINDS + 1] = {
    [POOL_LARGE] = "large_pool", [POOL_SMALL] = "small_pool", [POOL_ALL] = "all"};

void statistics_reset_peaks(statistics *s)
{
    for (int pool = 0; pool <= POOL_ALL; pool++) {
        for (int which = 0; which < FIGURE_COUNT; which++) {
            s->pooled[pool][which].peak = s->pooled[pool][which].current;
        }
    }
}

void statistics_summary(const statistics *s, gmd_stats *out)
{
    const figure *all = s->pooled[POOL_ALL];
    out->allocated_bytes = all[FIGURE_ALLOCATED_BYTES].current;
    out->allocated_bytes_peak = all[FIGURE_ALLOCATED_BYTES].peak;
    out->reserved_bytes = all[FIGURE_RESERVED_BYTES].current;
    out->reserved_bytes_peak = all[FIGURE_RESERVED_BYTES].peak;
    out->active_bytes = all[FIGURE_ACTIVE_BYTES].current;
    out->active_bytes_peak = all[FIGURE_ACTIVE_BYTES].peak;
    out->inactive_split_bytes = all[FIGURE_INACTIVE_SPLIT_BYTES].current;
    out->requested_bytes = all[FIGURE_REQUESTED_BYTES].current;
    out->allocation_count = all[FIGURE_ALLOCATION].current;
    out->segment_count = all[FIGURE_SEGMENT].current;
    out->num_alloc_retries = s->num_alloc_retries;
    out->num_ooms = s->num_ooms;
}

static void emit_figure(const figure *f, const char *prefix, gmd_stat_fn *emit, void *context)
{
    const struct {
        const char *name;
        uint64_t value;
    } parts[] = {{"current", f->current},
                 {"peak", f->peak},
                 {"allocated", f->allocated},
                 {"freed", f->allocated - f->current}};
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        char name[80];
        snprintf(name, sizeof name, "%s.%s", prefix, parts[i].name);
        emit(context, name, parts[i].value);
    }
}

void statistics_emit(const statistics *s, gmd_stat_fn *emit, void *context)
{
    for (int which = 0; which < FIGURE_COUNT; which++) {
        for (int pool = 0; pool <= POOL_ALL; pool++) {
            char prefix[64];
            snprintf(prefix, sizeof prefix, "%s.%s", figure_names[which], pool_names[pool]);
            emit_figure(&s->pooled[pool][which], prefix, emit, context);
        }
    }
#define X(name) emit(context, #name, s->name);
    COUNTED_FIGURES(X)
#undef X
}
