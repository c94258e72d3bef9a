/* minimize_drop.c - fewer blocks, fewer requests. */
#include "gmd_min.h"
#include "minimizer.h"

#include <stdlib.h>
#include <string.h>

/* Which requests of the best a candidate leaves out. */
typedef struct selection {
    bool *drops_request, *drops_block, *is_counted;
    uint32_t *blocks; /* that the best allocates, in that order, but for those in long runs */
    size_t *places;   /* of its requests, likewise */
    size_t block_count, place_count;
} selection;

static bool open_selection(selection *s, const gmd_trace *t)
{
    s->drops_request = calloc(t->count + 1, sizeof *s->drops_request);
    s->drops_block = calloc((size_t)t->blocks.count + 1, sizeof *s->drops_block);
    s->is_counted = calloc(t->count + 1, sizeof *s->is_counted);
    s->blocks = calloc((size_t)t->blocks.count + 1, sizeof *s->blocks);
    s->places = calloc(t->count + 1, sizeof *s->places);
    s->block_count = s->place_count = 0;
    return s->drops_request && s->drops_block && s->is_counted && s->blocks && s->places;
}

static void close_selection(selection *s)
{
    free(s->drops_request);
    free(s->drops_block);
    free(s->is_counted);
    free(s->blocks);
    free(s->places);
}

static void clear_selection(selection *s, const gmd_trace *t)
{
    memset(s->drops_request, 0, (t->count + 1) * sizeof *s->drops_request);
    memset(s->drops_block, 0, ((size_t)t->blocks.count + 1) * sizeof *s->drops_block);
}

/* What can be dropped one by one. */
static void list(selection *s, const minimizer *m)
{
    const gmd_trace *t = m->best;
    s->block_count = s->place_count = 0;
    minimizer_mark_counted(m, s->is_counted);
    for (size_t i = 0; i < t->count; i++) {
        if (s->is_counted[i]) {
            continue;
        }
        s->places[s->place_count++] = i;
        if (gmd_op_has(t->requests[i].op, GMD_FIELD_NEW_BLOCK)) {
            s->blocks[s->block_count++] = t->requests[i].block;
        }
    }
}

static bool try_selection(minimizer *m, const selection *s)
{
    return minimizer_try_without(m, s->drops_request, s->drops_block);
}

/* From the end, so that what builds up the state goes last. True: something went. */
static bool drop_blocks(minimizer *m, selection *s, size_t chunk)
{
    bool has_changed = false;
    list(s, m);
    for (size_t end = s->block_count; end > 0 && !m->is_over;) {
        size_t start = end > chunk ? end - chunk : 0;
        clear_selection(s, m->best);
        for (size_t i = start; i < end; i++) {
            s->drops_block[s->blocks[i]] = true;
        }
        if (try_selection(m, s)) {
            has_changed = true;
            list(s, m);
            start = gmd_min(start, s->block_count);
        }
        end = start;
    }
    return has_changed;
}

static bool drop_requests(minimizer *m, selection *s, size_t chunk)
{
    bool has_changed = false;
    list(s, m);
    for (size_t end = s->place_count; end > 0 && !m->is_over;) {
        size_t start = end > chunk ? end - chunk : 0;
        clear_selection(s, m->best);
        for (size_t i = start; i < end; i++) {
            s->drops_request[s->places[i]] = true;
        }
        if (try_selection(m, s)) {
            has_changed = true;
            list(s, m);
            start = gmd_min(start, s->place_count);
        }
        end = start;
    }
    return has_changed;
}

typedef bool dropper(minimizer *m, selection *s, size_t chunk);

/* Halves, quarters and so on, down to single ones. */
static bool drop_all_chunks(minimizer *m, selection *s, dropper *drop, size_t count)
{
    bool has_changed = false;
    for (size_t chunk = count; chunk > 0 && !m->is_over; chunk /= 2) {
        has_changed = drop(m, s, chunk) || has_changed;
    }
    return has_changed;
}

/* Two blocks often matter only together: one fills the room that the other leaves. */
static bool drop_pairs(minimizer *m, selection *s)
{
    for (size_t i = 0; i < m->best->count && m->best->count <= 24; i++) {
        for (size_t j = i + 1; j < m->best->count && !m->is_over; j++) {
            clear_selection(s, m->best);
            s->drops_request[i] = s->drops_request[j] = true;
            if (try_selection(m, s)) {
                return true;
            }
        }
    }
    return false;
}

/* All pools at once; then each by itself. A case that needs none says more without them. */
static bool drop_pools(minimizer *m, selection *s)
{
    bool has_changed = false;
    for (uint32_t k = 0; k <= m->best->pools.count && m->best->pools.count && !m->is_over; k++) {
        clear_selection(s, m->best);
        for (size_t i = 0; i < m->best->count; i++) {
            const gmd_request *r = &m->best->requests[i];
            s->drops_request[i] = gmd_op_is_on_pool(r->op) && (k == 0 || r->pool == k - 1);
        }
        has_changed = try_selection(m, s) || has_changed;
    }
    return has_changed;
}

bool minimizer_drop(minimizer *m)
{
    selection s;
    bool has_changed = false;
    if (open_selection(&s, m->best)) {
        has_changed = drop_pools(m, &s);
        list(&s, m);
        has_changed = drop_all_chunks(m, &s, drop_blocks, s.block_count / 2 + 1) || has_changed;
        list(&s, m);
        has_changed = drop_all_chunks(m, &s, drop_requests, s.place_count / 2 + 1) || has_changed;
        while (!m->is_over && drop_pairs(m, &s)) {
            has_changed = true;
        }
    } else {
        m->is_over = true;
        m->status = gmd_fail(m->error, GMD_NO_MEMORY, "no host memory for a trace");
    }
    close_selection(&s);
    return has_changed;
}
