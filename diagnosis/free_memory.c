#include "gmd_free_memory.h"

#include "gmd_grow.h"
#include "gmd_recorded_settings.h"

#include <stdlib.h>

/* A segment at the moment: a range, or neighbouring pages of an expandable segment. */
typedef struct segment {
    uint64_t address, end, stream;
    bool is_mapped, is_private, is_small;
} segment;

typedef struct moment_view {
    const gmd_recording *r;
    const gmd_places *places;
    gmd_recorded_settings settings;
    const gmd_asked *asked;
    segment *segments; /* by address */
    size_t segment_count;
    const gmd_lifetime **blocks; /* that are active, by address */
    size_t block_count;
    gmd_free_memory *to;
    size_t keeper_capacity;
} moment_view;

/* --- what is there at the moment ------------------------------------------------------------- */

static int compare_segments(const void *a, const void *b)
{
    const segment *x = a, *y = b;
    return (x->address > y->address) - (x->address < y->address);
}

static int compare_blocks(const void *a, const void *b)
{
    const gmd_lifetime *const *x = a, *const *y = b;
    return ((*x)->address > (*y)->address) - ((*x)->address < (*y)->address);
}

/* Pages of an expandable segment that touch are one. */
static void join_pages(moment_view *v)
{
    size_t filled = 0;
    for (size_t i = 0; i < v->segment_count; i++) {
        segment *last = filled ? &v->segments[filled - 1] : NULL;
        const segment *s = &v->segments[i];
        if (last && last->is_mapped && s->is_mapped && last->end == s->address &&
            last->stream == s->stream) {
            last->end = s->end;
        } else {
            v->segments[filled++] = *s;
        }
    }
    v->segment_count = filled;
}

static bool list_segments(moment_view *v, uint32_t moment)
{
    const gmd_recording *r = v->r;
    v->segments = malloc((r->reserved_count + 1) * sizeof *v->segments);
    if (!v->segments) {
        return false;
    }
    for (size_t i = 0; i < r->reserved_count; i++) {
        const gmd_reserved *range = &r->reserved[i];
        if (gmd_is_reserved_at(range, moment)) {
            v->to->amount.reserved += range->size;
            v->segments[v->segment_count++] = (segment){
                range->address,    range->address + range->size, range->stream, range->is_mapped,
                range->is_private, gmd_reserved_is_small(range)};
        }
    }
    qsort(v->segments, v->segment_count, sizeof *v->segments, compare_segments);
    join_pages(v);
    return true;
}

static void note_block(gmd_free_memory *to, const gmd_lifetime *l, uint32_t moment)
{
    to->amount.active += l->size;
    if (gmd_is_allocated_at(l, moment)) {
        to->amount.allocated += l->size;
        to->rounding += l->size > l->requested ? l->size - l->requested : 0;
    } else {
        to->by_cause[GMD_FREE_PENDING] += l->size;
    }
}

static bool list_blocks(moment_view *v, uint32_t moment)
{
    const gmd_recording *r = v->r;
    size_t capacity = 0;
    for (size_t i = 0; i < r->lifetime_count; i++) {
        const gmd_lifetime *l = &r->lifetimes[i];
        if (!gmd_is_active_at(l, moment)) {
            continue;
        }
        if (!GMD_GROW(&v->blocks, &capacity, v->block_count + 1)) {
            return false;
        }
        v->blocks[v->block_count++] = l;
        note_block(v->to, l, moment);
    }
    if (v->block_count) {
        qsort(v->blocks, v->block_count, sizeof *v->blocks, compare_blocks);
    }
    return true;
}

/* --- free parts ------------------------------------------------------------------------------ */

/* Why a free part of a segment does not serve the request. */
static gmd_free_cause cause_for_request(const moment_view *v, const segment *s, uint64_t size)
{
    if (s->is_private) {
        return GMD_FREE_PRIVATE;
    }
    if (s->stream != v->asked->stream) {
        return GMD_FREE_OTHER_STREAM;
    }
    if (s->is_small != gmd_recorded_is_small(&v->settings, v->asked->requested)) {
        return GMD_FREE_OTHER_POOL;
    }
    if (size < gmd_recorded_block_size(&v->settings, v->asked->requested)) {
        return GMD_FREE_TOO_SMALL;
    }
    return gmd_recorded_serves(&v->settings, size, v->asked->requested) ? GMD_FREE_FITTING
                                                                        : GMD_FREE_OVERSIZE;
}

static gmd_free_cause cause_of(const segment *s, bool has_blocks)
{
    if (s->is_private) {
        return GMD_FREE_PRIVATE;
    }
    if (s->is_mapped) {
        return GMD_FREE_EXPANDABLE;
    }
    return has_blocks ? GMD_FREE_SPLIT : GMD_FREE_CACHED;
}

static void note_part(moment_view *v, const segment *s, uint64_t size, bool has_blocks)
{
    gmd_free_cause cause = v->asked ? cause_for_request(v, s, size) : cause_of(s, has_blocks);
    v->to->by_cause[cause] += size;
    bool counts = !v->asked || cause == GMD_FREE_TOO_SMALL || cause == GMD_FREE_FITTING;
    if (counts && size > v->to->largest_part) {
        v->to->largest_part = size;
    }
}

/* The blocks of a segment share among their lines what is free in it. */
static bool note_keepers(moment_view *v, size_t first, size_t count, uint64_t free_bytes)
{
    gmd_free_memory *to = v->to;
    if (count == 0 || free_bytes == 0) {
        return true;
    }
    if (!GMD_GROW(&to->keepers, &v->keeper_capacity, to->keeper_count + count)) {
        return false;
    }
    for (size_t i = 0; i < count; i++) {
        uint64_t share = free_bytes / count + (i < free_bytes % count);
        uint32_t frame = gmd_places_frame(v->places, v->blocks[first + i]->origin);
        to->keepers[to->keeper_count++] = (gmd_keeper){frame, share, 1};
    }
    return true;
}

/* The blocks of an expandable segment say which pool it is of. */
static bool is_of_small(const moment_view *v, const segment *s, const gmd_lifetime *block)
{
    return s->is_mapped && block ? gmd_recorded_is_small(&v->settings, block->requested)
                                 : s->is_small;
}

static bool look_at_segment(moment_view *v, segment *s, size_t *next)
{
    size_t first = *next;
    uint64_t at = s->address, free_bytes = 0;
    while (first < v->block_count && v->blocks[first]->address < s->address) {
        first++; /* of memory that the recording has no segment for */
    }
    size_t end = first;
    bool has_blocks = first < v->block_count && v->blocks[first]->address < s->end;
    s->is_small = is_of_small(v, s, has_blocks ? v->blocks[first] : NULL);
    for (; end < v->block_count && v->blocks[end]->address < s->end; end++) {
        const gmd_lifetime *l = v->blocks[end];
        if (l->address > at) {
            note_part(v, s, l->address - at, has_blocks);
            free_bytes += l->address - at;
        }
        at = l->address + l->size > at ? l->address + l->size : at;
    }
    if (s->end > at) {
        note_part(v, s, s->end - at, has_blocks);
        free_bytes += s->end - at;
    }
    *next = end;
    return note_keepers(v, first, end - first, free_bytes);
}

/* --- keepers --------------------------------------------------------------------------------- */

static int compare_frames(const void *a, const void *b)
{
    const gmd_keeper *x = a, *y = b;
    return (x->frame > y->frame) - (x->frame < y->frame);
}

static int compare_bytes(const void *a, const void *b)
{
    const gmd_keeper *x = a, *y = b;
    if (x->bytes != y->bytes) {
        return x->bytes > y->bytes ? -1 : 1;
    }
    return compare_frames(a, b);
}

static void add_up_keepers(gmd_free_memory *to)
{
    size_t filled = 0;
    if (to->keeper_count == 0) {
        return;
    }
    qsort(to->keepers, to->keeper_count, sizeof *to->keepers, compare_frames);
    for (size_t i = 0; i < to->keeper_count; i++) {
        gmd_keeper *last = filled ? &to->keepers[filled - 1] : NULL;
        if (last && last->frame == to->keepers[i].frame) {
            last->bytes += to->keepers[i].bytes;
            last->blocks += to->keepers[i].blocks;
        } else {
            to->keepers[filled++] = to->keepers[i];
        }
    }
    to->keeper_count = filled;
    qsort(to->keepers, filled, sizeof *to->keepers, compare_bytes);
}

/* --- the whole ------------------------------------------------------------------------------- */

gmd_status gmd_free_memory_find(gmd_free_memory *free_memory, const gmd_recording *recording,
                                const gmd_places *places, uint32_t moment, const gmd_asked *asked,
                                gmd_error *error)
{
    *free_memory = (gmd_free_memory){0};
    moment_view v = {.r = recording,
                     .places = places,
                     .settings = gmd_recorded_settings_of(recording->snapshot),
                     .asked = asked,
                     .to = free_memory};
    free_memory->is_for_large = asked && !gmd_recorded_is_small(&v.settings, asked->requested);
    bool ok = list_segments(&v, moment) && list_blocks(&v, moment);
    size_t next = 0;
    for (size_t i = 0; ok && i < v.segment_count; i++) {
        ok = look_at_segment(&v, &v.segments[i], &next);
    }
    free(v.segments);
    free(v.blocks);
    if (!ok) {
        gmd_free_memory_release(free_memory);
        return gmd_fail(error, GMD_NO_MEMORY, "no host memory for the segments of a moment");
    }
    add_up_keepers(free_memory);
    return GMD_OK;
}

void gmd_free_memory_release(gmd_free_memory *free_memory)
{
    free(free_memory->keepers);
    *free_memory = (gmd_free_memory){0};
}

const char *gmd_free_cause_name(gmd_free_cause cause)
{
    static const char *const names[] = {
#define GMD_FREE_CAUSE_NAME(name, text, sentence) text,
        GMD_FREE_CAUSES(GMD_FREE_CAUSE_NAME)
#undef GMD_FREE_CAUSE_NAME
    };
    return names[cause];
}

const char *gmd_free_cause_sentence(const gmd_free_memory *free_memory, gmd_free_cause cause)
{
    static const char *const sentences[] = {
#define GMD_FREE_CAUSE_SENTENCE(name, text, sentence) sentence,
        GMD_FREE_CAUSES(GMD_FREE_CAUSE_SENTENCE)
#undef GMD_FREE_CAUSE_SENTENCE
    };
    return cause == GMD_FREE_OTHER_POOL && free_memory->is_for_large
               ? "in segments for small requests; this one is large"
               : sentences[cause];
}
