#include "gmd_comparison.h"

#include "gmd_grow.h"
#include "gmd_min.h"

#include <stdlib.h>
#include <string.h>

typedef struct entry { /* what one snapshot holds under one name */
    const gmd_places *places;
    gmd_grouping grouping;
    uint64_t key, bytes;
    size_t snapshot;
} entry;

/* --- names ----------------------------------------------------------------------------------- */

static int compare_frames(const gmd_places *a, uint32_t frame_a, const gmd_places *b,
                          uint32_t frame_b)
{
    gmd_place x = gmd_places_get(a, frame_a), y = gmd_places_get(b, frame_b);
    int file = strcmp(x.file, y.file);
    if (file) {
        return file;
    }
    int function = strcmp(x.function, y.function);
    return function ? function : (x.line > y.line) - (x.line < y.line);
}

static int compare_stacks(const gmd_places *a, uint32_t stack_a, const gmd_places *b,
                          uint32_t stack_b)
{
    size_t count_a, count_b;
    const uint32_t *x = gmd_origins_stack(a->origins, stack_a, &count_a);
    const uint32_t *y = gmd_origins_stack(b->origins, stack_b, &count_b);
    for (size_t i = 0; i < count_a && i < count_b; i++) {
        int order = compare_frames(a, x[i], b, y[i]);
        if (order) {
            return order;
        }
    }
    return (count_a > count_b) - (count_a < count_b);
}

static int compare_names(const gmd_places *a, uint64_t key_a, const gmd_places *b, uint64_t key_b,
                         gmd_grouping grouping)
{
    if (grouping == GMD_BY_LINE) {
        return compare_frames(a, (uint32_t)key_a, b, (uint32_t)key_b);
    }
    if (grouping == GMD_BY_STACK) {
        return compare_stacks(a, (uint32_t)key_a, b, (uint32_t)key_b);
    }
    return (key_a > key_b) - (key_a < key_b);
}

static int compare_entries(const void *a, const void *b)
{
    const entry *x = a, *y = b;
    int order = compare_names(x->places, x->key, y->places, y->key, x->grouping);
    return order ? order : (x->snapshot > y->snapshot) - (x->snapshot < y->snapshot);
}

/* --- rows ------------------------------------------------------------------------------------ */

uint64_t gmd_compared_spread(const gmd_comparison *comparison, const gmd_compared_row *row)
{
    uint64_t least = row->bytes[0], most = row->bytes[0];
    for (size_t i = 1; i < comparison->snapshot_count; i++) {
        least = gmd_min(row->bytes[i], least);
        most = gmd_max(row->bytes[i], most);
    }
    return most - least;
}

typedef struct ranked_row {
    uint64_t spread;
    size_t place; /* by name */
    gmd_compared_row row;
} ranked_row;

static int compare_ranked(const void *a, const void *b)
{
    const ranked_row *x = a, *y = b;
    if (x->spread != y->spread) {
        return x->spread > y->spread ? -1 : 1;
    }
    return (x->place > y->place) - (x->place < y->place);
}

static bool rank_rows(gmd_comparison *c)
{
    ranked_row *ranked = malloc((c->row_count + 1) * sizeof *ranked);
    if (!ranked) {
        return false;
    }
    for (size_t i = 0; i < c->row_count; i++) {
        ranked[i] = (ranked_row){gmd_compared_spread(c, &c->rows[i]), i, c->rows[i]};
    }
    qsort(ranked, c->row_count, sizeof *ranked, compare_ranked);
    for (size_t i = 0; i < c->row_count; i++) {
        c->rows[i] = ranked[i].row;
    }
    free(ranked);
    return true;
}

static bool make_rows(gmd_comparison *c, entry *entries, size_t count)
{
    size_t capacity = 0;
    if (count) {
        qsort(entries, count, sizeof *entries, compare_entries);
    }
    for (size_t i = 0; i < count; i++) {
        const entry *e = &entries[i];
        gmd_compared_row *last = c->row_count ? &c->rows[c->row_count - 1] : NULL;
        if (!last || compare_names(last->named_by, last->key, e->places, e->key, c->grouping)) {
            if (!GMD_GROW(&c->rows, &capacity, c->row_count + 1)) {
                return false;
            }
            last = &c->rows[c->row_count++];
            *last = (gmd_compared_row){.named_by = e->places, .key = e->key};
        }
        last->bytes[e->snapshot] += e->bytes;
    }
    return rank_rows(c);
}

/* --- the whole ------------------------------------------------------------------------------- */

typedef struct entry_list {
    entry *items;
    size_t count, capacity;
} entry_list;

static bool list_entries(entry_list *list, gmd_comparison *c, const gmd_compared_side *side,
                         size_t snapshot)
{
    const gmd_holders *holders = side->holders;
    if (!GMD_GROW(&list->items, &list->capacity, list->count + holders->count)) {
        return false;
    }
    for (size_t i = 0; i < holders->count; i++) {
        list->items[list->count++] = (entry){side->places, c->grouping, holders->items[i].key,
                                             holders->items[i].bytes, snapshot};
    }
    c->total[snapshot] = holders->bytes;
    return true;
}

gmd_status gmd_comparison_of(gmd_comparison *comparison, const gmd_compared_side *sides,
                             size_t count, gmd_grouping grouping, gmd_error *error)
{
    entry_list list = {0};
    bool has_memory = true;
    *comparison = (gmd_comparison){.snapshot_count = count, .grouping = grouping};
    if (count > GMD_COMPARED_MAX) {
        return gmd_fail(error, GMD_BAD_INPUT, "expected at most %d snapshots, found %zu",
                        GMD_COMPARED_MAX, count);
    }
    for (size_t i = 0; has_memory && i < count; i++) {
        has_memory = list_entries(&list, comparison, &sides[i], i);
    }
    has_memory = has_memory && make_rows(comparison, list.items, list.count);
    free(list.items);
    if (!has_memory) {
        gmd_comparison_free(comparison);
        return gmd_fail(error, GMD_NO_MEMORY, "no host memory for the comparison");
    }
    return GMD_OK;
}

gmd_status gmd_comparison_make(gmd_comparison *comparison, const gmd_facts *const *facts,
                               const uint32_t *moments, size_t count, gmd_grouping grouping,
                               gmd_error *error)
{
    gmd_holders holders[GMD_COMPARED_MAX] = {0};
    gmd_compared_side sides[GMD_COMPARED_MAX] = {0};
    gmd_status status = GMD_OK;
    *comparison = (gmd_comparison){0};
    for (size_t i = 0; status == GMD_OK && i < count && i < GMD_COMPARED_MAX; i++) {
        const gmd_facts *f = facts[i];
        const gmd_holder_facts of = {&f->recording, &f->places, &f->iterations, &f->categories};
        status = gmd_holders_find(&holders[i], &of, grouping, moments[i], error);
        sides[i] = (gmd_compared_side){&f->places, &holders[i]};
    }
    if (status == GMD_OK) {
        status = gmd_comparison_of(comparison, sides, count, grouping, error);
    }
    for (size_t i = 0; i < count && i < GMD_COMPARED_MAX; i++) {
        gmd_holders_free(&holders[i]);
    }
    return status;
}

void gmd_comparison_free(gmd_comparison *comparison)
{
    free(comparison->rows);
    *comparison = (gmd_comparison){0};
}
