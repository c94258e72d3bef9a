/* categories.c - what blocks were for, as far as it follows from their lifetimes.
 *
 * The order of the rules is that of torch/profiler/_memory_profiler.py: what is certain first. */
#include "gmd_categories.h"

#include <stdlib.h>
#include <string.h>

typedef struct span { /* moments: from, up to but not with */
    uint32_t from, to;
} span;

enum { WORKSPACE_SIZES = 3 };

typedef struct inference {
    const gmd_recording *r;
    const gmd_places *places;
    const gmd_iterations *iterations;
    uint8_t *of;
    span *steps; /* of optimizers, ascending */
    size_t step_count;
    uint64_t *parameter_sizes; /* ascending */
    size_t parameter_count;
    uint32_t workspaces[WORKSPACE_SIZES]; /* blocks that may be one, by size */
    uint32_t *first_of_module; /* by iteration: moment of the first block that a module asked for */
} inference;

/* --- steps of optimizers --------------------------------------------------------------------- */

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
            from = gmd_moment_after(in->r, a->time_us);
        } else if (a->stage == GMD_ANNOTATION_END && from) {
            in->steps[in->step_count++] = (span){from, gmd_moment_after(in->r, a->time_us)};
            from = 0;
        }
    }
    return true;
}

/* The step at a moment, or else the first one after it: its number. */
static size_t step_at(const inference *in, uint32_t moment)
{
    size_t low = 0, high = in->step_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (in->steps[middle].to <= moment) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

static bool is_in_step(const inference *in, const gmd_lifetime *l)
{
    size_t at = step_at(in, l->born);
    return at < in->step_count && in->steps[at].from <= l->born;
}

/* A step that calls a closure, which goes forward and backward, begins after that. */
static void leave_out_closures(inference *in)
{
    for (size_t i = 0; in->places->has_frames && i < in->r->lifetime_count; i++) {
        const gmd_lifetime *l = &in->r->lifetimes[i];
        if (l->born != GMD_BEFORE && is_in_step(in, l) &&
            !(gmd_places_parts(in->places, l->origin) & GMD_PART_OPTIMIZER)) {
            in->steps[step_at(in, l->born)].from = l->born + 1;
        }
    }
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

static unsigned parts_of(const inference *in, const gmd_lifetime *l)
{
    return l->born == GMD_BEFORE ? 0 : gmd_places_parts(in->places, l->origin);
}

/* There before the first iteration and through the better part of all. */
static bool stays_from_set_up(const inference *in, const gmd_lifetime *l)
{
    return in->iterations->count && is_from_set_up(in, l) &&
           ends_outlived(in, l) * 2 >= in->iterations->count;
}

/* Made by torch.nn, as far as stacks tell. What was there before the recording may as well be the
 * optimizer's state or data. */
static bool is_parameter(const inference *in, const gmd_lifetime *l)
{
    const unsigned CALLED = GMD_PART_MODULE | GMD_PART_BACKWARD;
    unsigned parts = parts_of(in, l);
    bool is_of_layer = (parts & GMD_PART_LAYER) && !(parts & CALLED);
    if (l->born == GMD_BEFORE) {
        return false;
    }
    return (stays_from_set_up(in, l) && (!in->places->has_modules || is_of_layer)) ||
           (is_of_layer && ends_outlived(in, l) > 0);
}

static bool is_optimizer_state(const inference *in, const gmd_lifetime *l)
{
    bool is_of_step = is_in_step(in, l) || (parts_of(in, l) & GMD_PART_OPTIMIZER);
    return is_of_step && l->born != GMD_BEFORE && ends_outlived(in, l) > 1;
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

/* What cuBLAS works in, made when it is first needed and never freed, for each thread and stream.
 * Sizes: PyTorch's CublasHandlePool.cpp, 4096 KiB twice and 16 KiB eight times, from Hopper on
 * 32 MiB; cuBLASLt has 1 MiB, which only stacks tell from weights. */
static const uint64_t workspace_sizes[WORKSPACE_SIZES] = {8519680, 33554432, 1048576};

/* The index of its size; WORKSPACE_SIZES: it is none. */
static size_t workspace_of(const inference *in, const gmd_lifetime *l)
{
    size_t sizes = in->places->has_modules ? WORKSPACE_SIZES : WORKSPACE_SIZES - 1;
    uint32_t born = gmd_iteration_of(in->iterations, l->born);
    bool is_made_once = l->born != GMD_BEFORE && (born <= 1 || born == GMD_SET_UP) &&
                        ends_outlived(in, l) + 2 >= in->iterations->count &&
                        !(parts_of(in, l) & GMD_PART_OPTIMIZER) && !is_parameter(in, l);
    for (size_t i = 0; is_made_once && i < sizes; i++) {
        if (l->requested == workspace_sizes[i]) {
            return i;
        }
    }
    return WORKSPACE_SIZES;
}

/* Where there are many of a size, they are of something else. */
static bool is_workspace(const inference *in, const gmd_lifetime *l)
{
    enum { MOST = 4 };
    size_t size = workspace_of(in, l);
    return size < WORKSPACE_SIZES && in->workspaces[size] <= MOST;
}

/* Made by backward(), of a parameter's size, and there when the optimizer steps. */
static bool is_gradient(const inference *in, const gmd_lifetime *l)
{
    if (!(parts_of(in, l) & GMD_PART_BACKWARD) || is_in_step(in, l) ||
        !has_size_of_parameter(in, l->requested)) {
        return false;
    }
    if (in->step_count == 0) {
        return ends_outlived(in, l) > 0;
    }
    size_t next = step_at(in, l->born);
    return next < in->step_count ? l->freed > in->steps[next].from : l->freed == GMD_NEVER;
}

enum { TEMPORARY_EVENTS = 8 }; /* freed within so many events: inside one operation, or nearly */

/* A batch: made by the program's own loop, and there before the model is first called. */
static bool is_input(const inference *in, const gmd_lifetime *l)
{
    uint32_t at = gmd_iteration_of(in->iterations, l->born);
    const unsigned OWN = GMD_PART_CONSTRUCTOR | GMD_PART_EVALUATION; /* of the program */
    return at < in->iterations->count && !(parts_of(in, l) & ~OWN) &&
           l->born < in->first_of_module[at];
}

static gmd_category category_within_iteration(const inference *in, const gmd_lifetime *l)
{
    unsigned parts = parts_of(in, l);
    bool is_short = l->freed != GMD_NEVER && l->freed - l->born <= TEMPORARY_EVENTS;
    if (is_short || ((parts & (GMD_PART_BACKWARD | GMD_PART_OPTIMIZER)) && l->freed != GMD_NEVER &&
                     ends_outlived(in, l) == 0)) {
        return GMD_TEMPORARY;
    }
    if (!in->places->has_modules || l->born == GMD_BEFORE || is_in_step(in, l) ||
        (parts & (GMD_PART_BACKWARD | GMD_PART_OPTIMIZER))) {
        return GMD_CATEGORY_UNKNOWN;
    }
    if (is_input(in, l)) {
        return GMD_INPUT;
    }
    return is_from_set_up(in, l) ? GMD_CATEGORY_UNKNOWN : GMD_ACTIVATION;
}

static gmd_category categorize(const inference *in, const gmd_lifetime *l)
{
    if (is_parameter(in, l)) {
        return GMD_PARAMETER;
    }
    if (is_optimizer_state(in, l)) {
        return GMD_OPTIMIZER_STATE;
    }
    if (is_workspace(in, l)) {
        return GMD_WORKSPACE;
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

static bool find_first_of_modules(inference *in)
{
    in->first_of_module = malloc(((size_t)in->iterations->count + 1) * sizeof *in->first_of_module);
    for (uint32_t i = 0; in->first_of_module && i < in->iterations->count; i++) {
        in->first_of_module[i] = GMD_BEFORE;
    }
    for (size_t i = in->r->lifetime_count; in->first_of_module && i > 0; i--) {
        const gmd_lifetime *l = &in->r->lifetimes[i - 1];
        uint32_t at = gmd_iteration_of(in->iterations, l->born);
        if (at < in->iterations->count && (parts_of(in, l) & GMD_PART_MODULE)) {
            in->first_of_module[at] = l->born; /* they come in the order of their births */
        }
    }
    return in->first_of_module != NULL;
}

static bool list_sizes(inference *in)
{
    in->parameter_sizes = malloc((in->r->lifetime_count + 1) * sizeof *in->parameter_sizes);
    if (!in->parameter_sizes) {
        return false;
    }
    for (size_t i = 0; i < in->r->lifetime_count; i++) {
        const gmd_lifetime *l = &in->r->lifetimes[i];
        if (stays_from_set_up(in, l)) {
            in->parameter_sizes[in->parameter_count++] = l->requested;
        }
        size_t workspace = workspace_of(in, l);
        if (workspace < WORKSPACE_SIZES) {
            in->workspaces[workspace]++;
        }
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
    bool ok = in.of && find_steps(&in) && find_first_of_modules(&in) && list_sizes(&in);
    if (ok) {
        leave_out_closures(&in);
    }
    for (size_t i = 0; ok && i < recording->lifetime_count; i++) {
        in.of[i] = (uint8_t)categorize(&in, &recording->lifetimes[i]);
    }
    free(in.steps);
    free(in.parameter_sizes);
    free(in.first_of_module);
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
