/* The figures under their names in torch.cuda.memory_stats(). */
#include "statistics.h"

#include <stdio.h>

#define X(id, name) [FIGURE_##id] = name,
static const char *const heap_names[] = {COUNTED_BY_HEAPS(X) DERIVED_BY_HEAPS(X)};
static const char *const device_names[] = {DEVICE_FIGURES(X)};
static const char *const oversize_names[] = {OVERSIZE_FIGURES(X)};
#undef X

static const char *const pool_names[POOL_KINDS + 1] = {
    [POOL_LARGE] = "large_pool", [POOL_SMALL] = "small_pool", [POOL_ALL] = "all"};

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

static void emit_pooled(const figure *f, const char *name, int row, gmd_stat_fn *emit,
                        void *context)
{
    char prefix[64];
    snprintf(prefix, sizeof prefix, "%s.%s", name, pool_names[row]);
    emit_figure(f, prefix, emit, context);
}

void statistics_emit(const statistics *s, gmd_stat_fn *emit, void *context)
{
    for (int row = 0; row <= POOL_ALL; row++) {
        for (int which = 0; which < HEAP_FIGURE_COUNT; which++) {
            figure f = statistics_sum(s, (pool_kind)row, (heap_figure)which);
            emit_pooled(&f, heap_names[which], row, emit, context);
        }
        for (int which = 0; which < DEVICE_FIGURE_COUNT; which++) {
            emit_pooled(&s->pooled[row][which], device_names[which], row, emit, context);
        }
    }
    for (int which = 0; which < OVERSIZE_FIGURE_COUNT; which++) {
        emit_figure(&s->oversize[which], oversize_names[which], emit, context);
    }
#define X(name) emit(context, #name, s->name);
    COUNTED_FIGURES(X)
#undef X
}
