#include "statistics.h"

#include <stdio.h>

#define X(id, name) [FIGURE_##id] = name,
static const char *const heap_names[] = {HEAP_FIGURES(X)};
static const char *const device_names[] = {DEVICE_FIGURES(X)};
static const char *const oversize_names[] = {OVERSIZE_FIGURES(X)};
#undef X

static const char *const pool_names[POOL_KINDS + 1] = {
    [POOL_LARGE] = "large_pool", [POOL_SMALL] = "small_pool", [POOL_ALL] = "all"};

/* --- ceilings ---------------------------------------------------------------------------- */

static uint64_t sum_of(const statistics *s, int row, int which)
{
    uint64_t sum = 0;
    for (const heap_statistics *h = s->heaps; h; h = h->next) {
        sum += h->counts[row][which].current;
    }
    return sum;
}

/* The peak as it stands: a heap that is the only one moves its ceiling instead. */
static uint64_t peak_of(const statistics *s, int row, int which)
{
    return s->heaps && !s->heaps->next ? s->heaps->counts[row][which].ceiling
                                       : s->peaks[row][which];
}

void statistics_add_heap(statistics *s, heap_statistics *heap)
{
    for (int row = 0; row <= POOL_ALL; row++) {
        for (int which = 0; which < HEAP_FIGURE_COUNT; which++) {
            s->peaks[row][which] = peak_of(s, row, which);
            heap->counts[row][which].ceiling = s->heaps ? 0 : s->peaks[row][which];
            if (s->heaps && !s->heaps->next) {
                s->heaps->counts[row][which].high = s->peaks[row][which];
            }
        }
    }
    heap->next = s->heaps;
    s->heaps = heap;
}

void statistics_remove_heap(statistics *s, heap_statistics *heap)
{
    heap_statistics **link = &s->heaps;
    while (*link != heap) {
        link = &(*link)->next;
    }
    bool was_only = !heap->next && s->heaps == heap;
    *link = heap->next;
    for (int row = 0; row <= POOL_ALL; row++) {
        for (int which = 0; which < HEAP_FIGURE_COUNT; which++) {
            if (row < POOL_KINDS) {
                s->removed[row][which] += heap->counts[row][which].allocated;
            }
            if (was_only) {
                s->peaks[row][which] = heap->counts[row][which].ceiling;
            } else if (!s->heaps->next) { /* the only one that is left: its ceiling is the peak */
                s->heaps->counts[row][which].ceiling = s->peaks[row][which];
            }
        }
    }
}

/* What a heap would need to come to its highest again. */
static uint64_t wanted(heap_count *c)
{
    c->high = c->high > c->current ? c->high : c->current;
    return c->high - c->current;
}

static uint64_t lesser(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/* Shares out what the peak leaves over. Who asks gets what it wants: two streams that take turns
 * would else be held to half of it for ever. The others get as much of theirs as there is. */
static void share_out(statistics *s, const heap_statistics *asking, int row, int which,
                      uint64_t left)
{
    uint64_t all = 0, heaps = 0;
    for (heap_statistics *h = s->heaps; h; h = h->next) {
        heap_count *c = &h->counts[row][which];
        uint64_t want = wanted(c);
        c->ceiling = c->current;
        if (h == asking) {
            c->ceiling += lesser(want, left);
            left -= lesser(want, left);
        } else {
            all += want;
        }
        heaps++;
    }
    double part = all <= left ? 1 : (double)left / (double)all;
    uint64_t extra = all < left ? (left - all) / heaps : 0;
    for (heap_statistics *h = s->heaps; h; h = h->next) {
        heap_count *c = &h->counts[row][which];
        uint64_t want = h == asking ? 0 : c->high - c->current;
        uint64_t share =
            lesser(extra + (all <= left ? want : (uint64_t)((double)want * part)), left);
        left -= share;
        c->ceiling += share;
    }
}

static void make_room_in(statistics *s, heap_statistics *heap, int row, int which, uint64_t amount)
{
    heap_count *c = &heap->counts[row][which];
    if (c->current + amount <= c->ceiling || !s->heaps->next) {
        return;
    }
    uint64_t sum = sum_of(s, row, which) + amount;
    if (sum > s->peaks[row][which]) {
        s->peaks[row][which] = sum;
    }
    c->current += amount; /* as it is about to be */
    share_out(s, heap, row, which, s->peaks[row][which] - sum);
    c->current -= amount;
}

void statistics_make_room(statistics *s, heap_statistics *heap, pool_kind kind, heap_figure which,
                          uint64_t amount)
{
    make_room_in(s, heap, (int)kind, (int)which, amount);
    make_room_in(s, heap, POOL_ALL, (int)which, amount);
}

/* --- the device's ------------------------------------------------------------------------ */

static void raise_figure(figure *f, uint64_t amount)
{
    f->current += amount;
    f->allocated += amount;
    f->peak = f->current > f->peak ? f->current : f->peak;
}

void statistics_raise_device(statistics *s, pool_kind kind, device_figure which, uint64_t amount)
{
    raise_figure(&s->pooled[kind][which], amount);
    raise_figure(&s->pooled[POOL_ALL][which], amount);
}

void statistics_lower_device(statistics *s, pool_kind kind, device_figure which, uint64_t amount)
{
    s->pooled[kind][which].current -= amount;
    s->pooled[POOL_ALL][which].current -= amount;
}

void statistics_raise_oversize(statistics *s, oversize_figure which)
{
    raise_figure(&s->oversize[which], 1);
}

void statistics_lower_oversize(statistics *s, oversize_figure which)
{
    s->oversize[which].current--;
}

figure statistics_sum(const statistics *s, pool_kind kind, heap_figure which)
{
    figure f = {.current = sum_of(s, (int)kind, (int)which),
                .peak = peak_of(s, (int)kind, (int)which)};
    for (int row = 0; row < POOL_KINDS; row++) {
        if (kind != POOL_ALL && row != (int)kind) {
            continue;
        }
        f.allocated += s->removed[row][which];
        for (const heap_statistics *h = s->heaps; h; h = h->next) {
            f.allocated += h->counts[row][which].allocated;
        }
    }
    return f;
}

void statistics_reset_peaks(statistics *s)
{
    for (int row = 0; row <= POOL_ALL; row++) {
        for (int which = 0; which < HEAP_FIGURE_COUNT; which++) {
            s->peaks[row][which] = sum_of(s, row, which);
            for (heap_statistics *h = s->heaps; h; h = h->next) {
                heap_count *c = &h->counts[row][which];
                c->ceiling = c->high = c->current;
            }
        }
        for (int which = 0; which < DEVICE_FIGURE_COUNT; which++) {
            s->pooled[row][which].peak = s->pooled[row][which].current;
        }
    }
    for (int which = 0; which < OVERSIZE_FIGURE_COUNT; which++) {
        s->oversize[which].peak = s->oversize[which].current;
    }
}

/* --- telling ----------------------------------------------------------------------------- */

void statistics_summary(const statistics *s, gmd_stats *out)
{
    figure allocated = statistics_sum(s, POOL_ALL, FIGURE_ALLOCATED_BYTES);
    figure active = statistics_sum(s, POOL_ALL, FIGURE_ACTIVE_BYTES);
    const figure *device = s->pooled[POOL_ALL];
    out->allocated_bytes = allocated.current;
    out->allocated_bytes_peak = allocated.peak;
    out->reserved_bytes = device[FIGURE_RESERVED_BYTES].current;
    out->reserved_bytes_peak = device[FIGURE_RESERVED_BYTES].peak;
    out->active_bytes = active.current;
    out->active_bytes_peak = active.peak;
    out->inactive_split_bytes = statistics_sum(s, POOL_ALL, FIGURE_INACTIVE_SPLIT_BYTES).current;
    out->requested_bytes = statistics_sum(s, POOL_ALL, FIGURE_REQUESTED_BYTES).current;
    out->allocation_count = statistics_sum(s, POOL_ALL, FIGURE_ALLOCATION).current;
    out->segment_count = device[FIGURE_SEGMENT].current;
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
