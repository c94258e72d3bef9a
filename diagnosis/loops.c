#include "loops.h"

#include <stdlib.h>
#include <string.h>

bool is_freed_by_backward(const gmd_facts *f, const gmd_lifetime *l)
{
    return l->freed != GMD_NEVER && l->freed != GMD_BEFORE &&
           (gmd_places_parts(&f->places, gmd_event_at(&f->recording, l->freed)->origin) &
            GMD_PART_BACKWARD);
}

bool loops_see_backward(const gmd_facts *facts)
{
    return facts->places.has_autograd;
}

static uint32_t iteration_of(const gmd_facts *f, const gmd_lifetime *l)
{
    uint32_t iteration = gmd_iteration_of(&f->iterations, l->born);
    return l->born == GMD_BEFORE || iteration >= f->iterations.count ? GMD_SET_UP : iteration;
}

static void count_blocks(loops *found, const gmd_facts *f)
{
    bool sees_backward = loops_see_backward(f);
    found->trained_from = GMD_NEVER;
    for (size_t i = 0; i < f->recording.lifetime_count; i++) {
        const gmd_lifetime *l = &f->recording.lifetimes[i];
        uint32_t iteration = iteration_of(f, l);
        if (l->freed < found->trained_from && is_freed_by_backward(f, l)) {
            found->trained_from = l->freed;
        }
        if (iteration != GMD_SET_UP) {
            found->allocated_blocks[iteration]++;
            found->asked_bytes[iteration] += l->requested;
            found->backward_blocks[iteration] +=
                sees_backward && (gmd_places_parts(&f->places, l->origin) & GMD_PART_BACKWARD);
        }
    }
}

/* Blocks come in the order of their iterations, so that sizes are counted for one at a time. */
static void count_gradients(loops *found, const gmd_facts *f, parameter_sizes *sizes)
{
    enum { LEAST_PERCENT = 60, LEAST_SIZES = 2 };
    uint32_t at = GMD_SET_UP, distinct = 0, blocks = 0;
    for (size_t i = 0; i < f->recording.lifetime_count; i++) {
        const gmd_lifetime *l = &f->recording.lifetimes[i];
        uint32_t iteration = iteration_of(f, l);
        bool may_be = iteration != GMD_SET_UP &&
                      (!loops_see_backward(f) ||
                       (gmd_places_parts(&f->places, l->origin) & GMD_PART_BACKWARD));
        size_count *size = may_be ? parameter_size(sizes, l->requested) : NULL;
        if (!size) {
            continue;
        }
        if (iteration != at) {
            parameter_sizes_forget(sizes);
            at = iteration;
            distinct = blocks = 0;
        }
        distinct += size->seen++ == 0;
        blocks++;
        bool is_enough =
            distinct >= LEAST_SIZES || (loops_see_backward(f) && distinct == sizes->count);
        if (is_enough && (uint64_t)distinct * 100 >= (uint64_t)sizes->count * LEAST_PERCENT) {
            found->gradient_blocks[at] = blocks;
        }
    }
}

gmd_status loops_find(loops *found, const gmd_facts *facts, parameter_sizes *sizes,
                      gmd_error *error)
{
    size_t count = (size_t)facts->iterations.count + 1;
    found->backward_blocks = calloc(count, sizeof *found->backward_blocks);
    found->gradient_blocks = calloc(count, sizeof *found->gradient_blocks);
    found->allocated_blocks = calloc(count, sizeof *found->allocated_blocks);
    found->asked_bytes = calloc(count, sizeof *found->asked_bytes);
    if (!found->backward_blocks || !found->gradient_blocks || !found->allocated_blocks ||
        !found->asked_bytes) {
        loops_free(found);
        return gmd_fail(error, GMD_NO_MEMORY, "no host memory for what iterations do");
    }
    count_blocks(found, facts);
    if (loops_see_backward(facts) || !facts->places.has_python) {
        count_gradients(found, facts, sizes);
    }
    if (!facts->places.has_python) {
        memcpy(found->backward_blocks, found->gradient_blocks,
               count * sizeof *found->backward_blocks);
    }
    return GMD_OK;
}

void loops_free(loops *found)
{
    free(found->backward_blocks);
    free(found->gradient_blocks);
    free(found->allocated_blocks);
    free(found->asked_bytes);
    *found = (loops){0};
}

/* Whether most iterations of a loop have blocks of a kind. */
static bool most_have(const uint32_t *blocks, const gmd_iterations *it, bool is_other)
{
    uint32_t from = is_other ? it->other : 0, end = is_other ? it->count : it->other, with = 0;
    for (uint32_t i = from; i < end; i++) {
        with += blocks[i] > 0;
    }
    return with * 2 > end - from;
}

bool loop_has_backward(const loops *found, const gmd_facts *facts, bool is_other)
{
    return most_have(found->backward_blocks, &facts->iterations, is_other);
}

bool loop_has_gradients(const loops *found, const gmd_facts *facts, bool is_other)
{
    return most_have(found->gradient_blocks, &facts->iterations, is_other);
}

uint64_t loop_asks_for_more(const loops *found, const gmd_facts *facts, bool is_other)
{
    enum { RISES_PERCENT = 80 };
    const gmd_iterations *it = &facts->iterations;
    const uint64_t *asked = found->asked_bytes;
    uint32_t from = is_other ? it->other : 0, end = is_other ? it->count : it->other, rises = 0;
    end -= end > from + 1; /* the last one may be cut */
    if (end < from + 3 || asked[end - 1] <= asked[from]) {
        return 0;
    }
    uint32_t compared = end - 1 - from;
    for (uint32_t i = from + 1; i < end; i++) {
        rises += asked[i] > asked[i - 1];
    }
    return rises * 100 >= compared * RISES_PERCENT ? (asked[end - 1] - asked[from]) / compared : 0;
}

bool backward_lengthens(const loops *found, const gmd_facts *facts)
{
    enum {
        RISES_PERCENT = 70,
        LENGTH_PERCENT = 150 /* of the last one to the first one: more than shapes make of it */
    };
    const uint32_t *blocks = found->backward_blocks;
    uint32_t end = facts->iterations.other, rises = 0;
    end -= end > 3; /* the last one may be cut */
    if (!loops_see_backward(facts) || end < 3 || blocks[0] == 0) {
        return false;
    }
    for (uint32_t i = 1; i < end; i++) {
        rises += blocks[i] > blocks[i - 1];
    }
    return rises * 100 >= (end - 1) * RISES_PERCENT &&
           (uint64_t)blocks[end - 1] * 100 >= (uint64_t)blocks[0] * LENGTH_PERCENT;
}
