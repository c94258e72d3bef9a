#include "guide.h"

#include "gmd_input.h"
#include "gmd_min.h"
#include "gmd_mutate.h"
#include "gmd_runner.h"
#include "gmd_space.h"

#include <stdlib.h>
#include <string.h>

#define INPUT_MAX ((size_t)GMD_INPUT_HEADER + (size_t)512 * GMD_INPUT_RECORD)

enum { DRAWN_HEADER_PERCENT = 20, CROSS_PERCENT = 30, OTHER_BASE_PERCENT = 25, STACKED_MAX = 4 };
enum { REPEAT_PERCENT = 15 }; /* of the inputs: a short run of one comes many times */
enum { RANDOM_MAX = 128 };    /* requests */

bool guide_start(guide *g, gmd_corpus *corpus, const gmd_profile_space *space, uint64_t seed,
                 const gmd_conditions *drawn)
{
    *g = (guide){.corpus = corpus, .space = space, .random = {seed}};
    const gmd_corpus_entry *base = gmd_corpus_choose(corpus, &g->random);
    g->bytes = base ? malloc(INPUT_MAX) : NULL;
    if (!g->bytes) {
        return false;
    }
    g->base = (size_t)(base - corpus->entries);
    gmd_trace own;
    gmd_error error;
    gmd_trace_init(&own);
    bool is_drawn = gmd_random_chance(&g->random, DRAWN_HEADER_PERCENT);
    gmd_status status = is_drawn ? GMD_OK : gmd_input_decode(base->bytes, base->size, &own, &error);
    if (status == GMD_OK) {
        status = gmd_conditions_copy(&g->header, is_drawn ? drawn : &own.conditions, &error);
    }
    gmd_trace_free(&own);
    status = status == GMD_OK ? gmd_space_fit_header(space, &g->header, &error) : status;
    return status == GMD_OK;
}

static size_t make_random(guide *g)
{
    size_t size =
        GMD_INPUT_HEADER + (1 + gmd_random_below(&g->random, RANDOM_MAX)) * GMD_INPUT_RECORD;
    for (size_t i = 0; i < size; i++) {
        g->bytes[i] = (uint8_t)gmd_random_next(&g->random);
    }
    return size;
}

bool guide_start_random(guide *g, const gmd_profile_space *space, uint64_t seed)
{
    gmd_trace first;
    gmd_error error;
    *g = (guide){.space = space, .random = {seed}, .bytes = malloc(INPUT_MAX)};
    if (!g->bytes) {
        return false;
    }
    gmd_trace_init(&first);
    gmd_status status = gmd_input_decode(g->bytes, make_random(g), &first, &error);
    status = status == GMD_OK ? gmd_conditions_copy(&g->header, &first.conditions, &error) : status;
    gmd_trace_free(&first);
    status = status == GMD_OK ? gmd_space_fit_header(space, &g->header, &error) : status;
    return status == GMD_OK;
}

/* The base mostly, so that a round stays near it; its own bytes are never changed. */
static const gmd_corpus_entry *parent_of(guide *g)
{
    return gmd_random_chance(&g->random, OTHER_BASE_PERCENT)
               ? gmd_corpus_choose(g->corpus, &g->random)
               : &g->corpus->entries[g->base];
}

static size_t take_whole(const gmd_corpus_entry *e, uint8_t *to)
{
    size_t size = gmd_min(e->size, INPUT_MAX);
    memcpy(to, e->bytes, size);
    return size;
}

static size_t make_bytes(guide *g)
{
    if (!g->corpus) {
        return make_random(g);
    }
    const gmd_corpus_entry *a = parent_of(g);
    size_t size;
    if (gmd_random_chance(&g->random, CROSS_PERCENT)) {
        const gmd_corpus_entry *b = gmd_corpus_choose(g->corpus, &g->random);
        size = gmd_cross(a->bytes, a->size, b->bytes, b->size, g->bytes, INPUT_MAX,
                         gmd_random_next(&g->random));
    } else {
        size = take_whole(a, g->bytes);
    }
    if (gmd_random_chance(&g->random, REPEAT_PERCENT)) {
        size = gmd_mutate_once(GMD_MUTATE_REPEAT, g->bytes, size, INPUT_MAX,
                               gmd_random_next(&g->random));
    }
    for (uint64_t left = 1 + gmd_random_below(&g->random, STACKED_MAX); left > 0; left--) {
        size = gmd_mutate(g->bytes, size, INPUT_MAX, gmd_random_next(&g->random));
    }
    return size;
}

gmd_status guide_make(guide *g, gmd_trace *trace, gmd_error *error)
{
    gmd_trace_init(trace);
    size_t size = make_bytes(g);
    gmd_status status = gmd_input_decode(g->bytes, size, trace, error);
    if (status == GMD_OK && g->header.interleave.kind == GMD_SCHEDULE_UNSTATED) {
        gmd_schedule_free(
            &trace->conditions.interleave); /* it would take as long as fifty others */
        trace->conditions.interleave = (gmd_schedule){0};
    }
    if (status == GMD_OK) {
        gmd_space_fit(g->space, trace);
        status = gmd_space_take_header(g->space, trace, &g->header, error);
    }
    return status;
}

void guide_end(guide *g)
{
    free(g->bytes);
    gmd_conditions_free(&g->header);
    *g = (guide){0};
}
