/* categories.c - what blocks were for, as far as it follows from their lifetimes.
 *
 * The order of the rules is that of torch/profiler/_memory_profiler.py: what is certain first. */
#include "gmd_categories.h"

#include <stdlib.h>
#include <string.h>

typedef struct span { /* moments: from, up to but not with */
    uint32_t from, to;
} span;

typedef struct inference {
    const gmd_recording *r;
    const gmd_places *places;
    const gmd_iterations *iterations;
    uint8_t *of;
    span *steps; /* of optimizers, ascending */
    size_t step_count;
    uint64_t *parameter_sizes; /* ascending */
    size_t parameter_count;
    bool has_frames; /* stacks were recorded, so an allocation without one is the autograd thread's
                      */
} inference;

/* --- steps of optimizers --------------------------------------------------------------------- */

static uint32_t moment_after(const gmd_recording *r, uint64_t time_us)
{
    uint32_t low = r->first, high = r->last + 1;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (r->snapshot->events[middle - 1].time_us <= time_us) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

static bool find_steps(inference *in)
{
    static const char prefix[] = "Optimizer.step#";
    const gmd_snapshot *s = in->r->snapshot;
    in->steps = malloc((s->annotation_count + 1) * sizeof *in->steps);
    if (!in->steps) {
        return false;
    }
    uint32_t from = 0;
    for (size_t i = 0; i < s->annotation_count && in->r->first; i++) {
        const gmd_annotation *a = &s->annotations[i];
        if (strncmp(gmd_origins_text(&s->origins, a->name, NULL), prefix, sizeof prefix - 1) != 0) {
            continue;
        }
        if (a->stage == GMD_ANNOTATION_START) {
            from = moment_after(in->r, a->time_us);
        } else if (a->stage == GMD_ANNOTATION_END && from) {
            in->steps[in->step_count++] = (span){from, moment_after(in->r, a->time_us)};
            from = 0;
        }
    }
    return true;
}

static bool is_in_step(const inference *in, const gmd_lifetime *l)
{
    size_t low = 0, high = in->step_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (in->steps[middle].to <= l->born) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low < in->step_count && in->steps[low].from <= l->born;
}

/* --- rules ----------------------------------------------------------------------------------- */

/* Iterations whose end a block outlived. */
static uint32_t ends_outlived(const inference *in, const gmd_lifetime *l)
{
    uint32_t born = gmd_iteration_of(in->iterations, l->born);
    uint32_t end =
        l->freed == GMD_NEVER ? in->iterations->count : gmd_iteration_of(in->iterations, l->freed);
    uint32_t from = born == GMD_SET_UP ? 0 : born;
    return end == GMD_SET_UP || end < from ? 0 : end - from;
}

static bool is_from_set_up(const inference *in, const gmd_lifetime *l)
{
    return l->born == GMD_BEFORE || gmd_iteration_of(in->iterations, l->born) == GMD_SET_UP;
}

static bool has_stack(const inference *in, const gmd_lifetime *l)
{
    return gmd_origins_get(in->places->origins, l->origin).stack != 0;
}

/* There before the first iteration and through the better part of all. */
static bool is_parameter(const inference *in, const gmd_lifetime *l)
{
    return in->iterations->count && is_from_set_up(in, l) &&
           ends_outlived(in, l) * 2 >= in->iterations->count;
}

static bool is_optimizer_state(const inference *in, const gmd_lifetime *l)
{
    return is_in_step(in, l) && ends_outlived(in, l) > 1;
}

static bool has_size_of_parameter(const inference *in, uint64_t requested)
{
    size_t low = 0, high = in->parameter_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (in->parameter_sizes[middle] < requested) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low < in->parameter_count && in->parameter_sizes[low] == requested;
}

/* Made by backward(), of a parameter's size, and there when the optimizer steps. */
static bool is_gradient(const inference *in, const gmd_lifetime *l)
{
    if (!in->has_frames || has_stack(in, l) || is_in_step(in, l) ||
        !has_size_of_parameter(in, l->requested)) {
        return false;
    }
    if (in->step_count == 0) {
        return ends_outlived(in, l) > 0;
    }
    for (size_t i = 0; i < in->step_count; i++) {
        if (in->steps[i].from > l->born) {
            return l->freed > in->steps[i].from;
        }
    }
    return l->freed == GMD_NEVER;
}

enum { TEMPORARY_EVENTS = 8 }; /* freed within so many events: inside one operation, or nearly */

static gmd_category category_within_iteration(const inference *in, const gmd_lifetime *l)
{
    if (l->freed != GMD_NEVER && l->freed - l->born <= TEMPORARY_EVENTS) {
        return GMD_TEMPORARY;
    }
    if (in->has_frames && has_stack(in, l) && !is_in_step(in, l)) {
        return GMD_ACTIVATION;
    }
    return GMD_CATEGORY_UNKNOWN;
}

static gmd_category categorize(const inference *in, const gmd_lifetime *l)
{
    if (is_parameter(in, l)) {
        return GMD_PARAMETER;
    }
    if (is_optimizer_state(in, l)) {
        return GMD_OPTIMIZER_STATE;
    }
    if (is_gradient(in, l)) {
        return GMD_GRADIENT;
    }
    return category_within_iteration(in, l);
}

/* --- the whole ------------------------------------------------------------------------------- */

static int compare_sizes(const void *a, const void *b)
{
    const uint64_t *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

static bool list_parameters(inference *in)
{
    in->parameter_sizes = malloc((in->r->lifetime_count + 1) * sizeof *in->parameter_sizes);
    if (!in->parameter_sizes) {
        return false;
    }
    for (size_t i = 0; i < in->r->lifetime_count; i++) {
        const gmd_lifetime *l = &in->r->lifetimes[i];
        if (is_parameter(in, l)) {
            in->parameter_sizes[in->parameter_count++] = l->requested;
        }
        in->has_frames = in->has_frames || has_stack(in, l);
    }
    qsort(in->parameter_sizes, in->parameter_count, sizeof *in->parameter_sizes, compare_sizes);
    return true;
}

gmd_status gmd_categories_infer(gmd_categories *categories, const gmd_recording *recording,
                                const gmd_places *places, const gmd_iterations *iterations,
                                gmd_error *error)
{
    inference in = {.r = recording, .places = places, .iterations = iterations};
    in.of = categories->of_lifetime = calloc(recording->lifetime_count + 1, 1);
    bool ok = in.of && find_steps(&in) && list_parameters(&in);
    for (size_t i = 0; ok && i < recording->lifetime_count; i++) {
        in.of[i] = (uint8_t)categorize(&in, &recording->lifetimes[i]);
    }
    free(in.steps);
    free(in.parameter_sizes);
    if (!ok) {
        gmd_categories_free(categories);
        return gmd_fail(error, GMD_NO_MEMORY, "no host memory for the categories of %zu blocks",
                        recording->lifetime_count);
    }
    return GMD_OK;
}

void gmd_categories_free(gmd_categories *categories)
{
    free(categories->of_lifetime);
    *categories = (gmd_categories){0};
}
