#include "gmd_holders.h"

#include "gmd_grow.h"

#include <stdlib.h>

static uint32_t innermost_frame(const gmd_places *places, uint32_t origin)
{
    uint32_t stack = gmd_origins_get(places->origins, origin).stack;
    uint32_t frame = gmd_places_python_frame(places, stack);
    return frame == GMD_NO_PLACE ? gmd_places_frame(places, origin) : frame;
}

/* A block's share, before shares of one key are added up. */
static uint64_t key_of(const gmd_holder_facts *f, gmd_grouping grouping, size_t index,
                       uint32_t moment)
{
    const gmd_lifetime *l = &f->recording->lifetimes[index];
    switch (grouping) {
    case GMD_BY_LINE:
        return gmd_places_frame(f->places, l->origin);
    case GMD_BY_FRAME:
        return innermost_frame(f->places, l->origin);
    case GMD_BY_STACK:
        return gmd_origins_get(f->places->origins, l->origin).stack;
    case GMD_BY_CATEGORY:
        return f->categories->of_lifetime[index];
    case GMD_BY_AGE: {
        uint32_t born = gmd_iteration_of(f->iterations, l->born);
        uint32_t now = gmd_iteration_of(f->iterations, moment);
        return born == GMD_SET_UP || now == GMD_SET_UP ? GMD_SET_UP : now - born;
    }
    case GMD_BY_STREAM:
        return l->stream;
    }
    return 0;
}

static int compare_keys(const void *a, const void *b)
{
    const gmd_holder *x = a, *y = b;
    return (x->key > y->key) - (x->key < y->key);
}

static int compare_bytes(const void *a, const void *b)
{
    const gmd_holder *x = a, *y = b;
    if (x->bytes != y->bytes) {
        return x->bytes > y->bytes ? -1 : 1;
    }
    return compare_keys(a, b);
}

static void add_up(gmd_holders *holders)
{
    size_t filled = 0;
    for (size_t i = 0; i < holders->count; i++) {
        gmd_holder *last = filled ? &holders->items[filled - 1] : NULL;
        if (last && last->key == holders->items[i].key) {
            last->bytes += holders->items[i].bytes;
            last->blocks += holders->items[i].blocks;
        } else {
            holders->items[filled++] = holders->items[i];
        }
    }
    holders->count = filled;
}

gmd_status gmd_holders_find(gmd_holders *holders, const gmd_holder_facts *facts,
                            gmd_grouping grouping, uint32_t moment, gmd_error *error)
{
    const gmd_recording *r = facts->recording;
    size_t capacity = 0;
    *holders = (gmd_holders){0};
    for (size_t i = 0; i < r->lifetime_count; i++) {
        const gmd_lifetime *l = &r->lifetimes[i];
        if (!gmd_is_allocated_at(l, moment)) {
            continue;
        }
        if (!GMD_GROW(&holders->items, &capacity, holders->count + 1)) {
            gmd_holders_free(holders);
            return gmd_fail(error, GMD_NO_MEMORY, "no host memory for the blocks of a moment");
        }
        holders->items[holders->count++] =
            (gmd_holder){key_of(facts, grouping, i, moment), l->size, 1};
        holders->bytes += l->size;
    }
    if (holders->count) {
        qsort(holders->items, holders->count, sizeof *holders->items, compare_keys);
        add_up(holders);
        qsort(holders->items, holders->count, sizeof *holders->items, compare_bytes);
    }
    return GMD_OK;
}

void gmd_holders_free(gmd_holders *holders)
{
    free(holders->items);
    *holders = (gmd_holders){0};
}
