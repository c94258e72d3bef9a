/* evidence.c - what several classes of finding share. */
#include "classes.h"

#include "gmd_min.h"
#include "gmd_size.h"
#include "gmd_text.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

/* --- growth ---------------------------------------------------------------------------------- */

static bool makes_layer(const class_view *view, const retained_group *group)
{
    unsigned parts = parts_of_group(view, group);
    return retained_group_grows(group) && (parts & GMD_PART_LAYER) && !(parts & GMD_PART_MODULE);
}

/* Whether models are made anew and stay. */
static bool makes_layers(const class_view *view)
{
    for (size_t i = 0; i < view->retained->count; i++) {
        if (makes_layer(view, &view->retained->groups[i])) {
            return true;
        }
    }
    return false;
}

/* An optimizer's history of steps (L-BFGS) is bounded, and fills up for as long as it likes; its
 * state is of the model's size, and grows with the number of models. */
static bool is_meant(const class_view *view, const retained_group *group, group_test *test)
{
    return retained_group_grows(group) && (!group->is_of_optimizer || makes_layers(view)) &&
           (!test || test(view, group));
}

/* What an iteration of its loop adds, on average; one that ended out of memory is none. */
static uint64_t rate_of(const class_view *view, const retained_group *group)
{
    const gmd_iterations *it = &view->facts->iterations;
    bool is_cut = view->facts->recording.ended_by_oom && it->count > 1;
    uint32_t end = gmd_iterations_shown(it) - is_cut;
    uint32_t main_loop = it->other < it->count ? it->other : end;
    uint32_t iterations = group->is_of_other_loop ? end - it->other : main_loop;
    return iterations ? group->added / iterations : 0;
}

static growth sum_growth(const class_view *view, group_test *test, bool with_explained)
{
    enum { LAYERS_PERCENT = 20 }; /* the rest is their gradients, moments and activations */
    growth g = {0};
    uint64_t of_other_loop = 0, of_objects = 0, of_layers = 0,
             iterations = view->facts->iterations.count;
    for (size_t i = 0; iterations > 0 && i < view->retained->count; i++) {
        const retained_group *group = &view->retained->groups[i];
        if ((!group->is_explained || with_explained) && is_meant(view, group, test)) {
            unsigned parts = parts_of_group(view, group);
            of_objects += parts & GMD_PART_CONSTRUCTOR ? group->most : 0;
            of_layers += makes_layer(view, group) ? group->most : 0;
            g.bytes += group->most;
            g.bytes_per_iteration += rate_of(view, group);
            g.grown += group->grown;
            g.lines++;
            g.blocks += group->blocks;
            g.blocks_per_iteration += (group->blocks + iterations - 1) / iterations;
            g.blocks_at_a_time += (group->blocks + group->rises - 1) / group->rises;
            of_other_loop += group->is_of_other_loop ? group->most : 0;
        }
    }
    g.is_of_other_loop = of_other_loop * 2 > g.bytes;
    g.is_of_constructors = of_objects * 2 > g.bytes;
    g.is_of_layers = g.bytes > 0 && of_layers * 100 >= g.bytes * LAYERS_PERCENT;
    return g;
}

growth growth_of(const class_view *view, group_test *test)
{
    return sum_growth(view, test, false);
}

/* A loop that does nothing but make what it keeps fills something: data are loaded, a pool is set
 * up, a model is built. Objects that work in place need no more than what they are made with. */
static bool does_more(const class_view *view, growth g)
{
    enum {
        MANY_BLOCKS = 3, /* an iteration: a graph that is kept as a whole is no such loop */
        LEAST_WITH_LAYERS_PERCENT = 150 /* of what is kept: a model that is made is used, too */
    };
    uint64_t allocated = 0, iterations = view->facts->iterations.count;
    for (uint32_t i = 0; i < iterations; i++) {
        allocated += view->loops->allocated_blocks[i];
    }
    if (g.is_of_layers) {
        return allocated * 100 >= g.blocks * LEAST_WITH_LAYERS_PERCENT;
    }
    return allocated >= 2 * g.blocks || g.blocks_per_iteration >= MANY_BLOCKS ||
           g.is_of_constructors;
}

/* What grows in place of something that goes, in a recording that begins late, or without frames,
 * the entries of a buffer that is full, or gets full in it, is no growth. What goes early, of
 * before the recording, may have waited for the collector: the second half tells then. */
static bool grows_in_all(const class_view *view, growth g)
{
    enum { LEAST_PERCENT = 40, LEAST_LATE_PERCENT = 80 };
    int64_t total = view->retained->total_grown[g.is_of_other_loop];
    int64_t late = view->retained->total_grown_late[g.is_of_other_loop];
    uint64_t grown_late = late > 0 ? (uint64_t)late * 2 : 0; /* if the first half were like it */
    if (view->facts->recording.begins_late && total > 0 &&
        grown_late * 100 >= g.grown * LEAST_LATE_PERCENT) {
        return true;
    }
    return total > 0 && (uint64_t)total * 100 >= g.grown * LEAST_PERCENT &&
           ((!view->facts->recording.begins_late && view->facts->places.has_frames) ||
            grown_late * 100 >= g.grown * LEAST_PERCENT);
}

static bool is_of_module(const class_view *view, const retained_group *group)
{
    return parts_of_group(view, group) & GMD_PART_MODULE;
}

/* Whether no module, as far as frames show them, allocates any of what grows, in a loop without a
 * backward pass. */
static bool is_no_graph(const class_view *view)
{
    for (size_t i = 0; i < view->retained->count; i++) {
        const retained_group *group = &view->retained->groups[i];
        if (retained_group_grows(group) && is_of_module(view, group)) {
            return false;
        }
    }
    return !loop_has_backward(view->loops, view->facts, false);
}

bool growth_may_be_meant(const class_view *view)
{
    const gmd_facts *f = view->facts;
    return f->places.has_frames && !f->recording.begins_late && is_no_graph(view);
}

uint64_t never_in_use(const class_view *view)
{
    const gmd_recording *r = &view->facts->recording;
    /* What was reserved before the first event may have been in use then. */
    uint64_t in_use = gmd_max(r->peak.amount.active, r->at_start.reserved);
    return view->course.reserved > in_use ? view->course.reserved - in_use : 0;
}

bool pins_unused_memory(const class_view *view)
{
    enum { LEAST_PERCENT = 25, LEAST_MIB = 64 }; /* up to 19 % where what leaks is of all sizes */
    const gmd_recording *r = &view->facts->recording;
    uint64_t pinned = gmd_min(never_in_use(view), view->free->by_cause[GMD_FREE_SPLIT]);
    bool is_still_taken = (uint64_t)(r->peak.reserved_at - r->first) * 2 >= r->last - r->first;
    return is_still_taken && pinned >= LEAST_MIB * GMD_MIB &&
           pinned * 100 >= view->course.reserved * LEAST_PERCENT;
}

bool is_taken_for_new_sizes(const class_view *view)
{
    enum {
        LEAST_PERCENT = 15,       /* of reserved beyond what was ever active */
        LEAST_EARLY_PERCENT = 27, /* likewise, where it was taken early */
        LEAST_MIB = 128           /* segments of 20 MiB leave as much in healthy small jobs */
    };
    const course *c = &view->course;
    uint64_t excess = never_in_use(view);
    uint64_t least = is_taken_late(view) ? LEAST_PERCENT : LEAST_EARLY_PERCENT;
    return excess >= LEAST_MIB * GMD_MIB && excess * 100 >= c->reserved * least &&
           (is_taken_late(view) || c->is_ever_new);
}

bool is_taken_late(const class_view *view)
{
    enum { LEAST_PERCENT = 5 }; /* of reserved: steady shapes take nothing after warm-up */
    return view->course.taken_late * 100 >= view->course.reserved * LEAST_PERCENT;
}

/* Whether so few requests make what grows that it is results: a graph keeps what each of its
 * operations has saved. */
static bool are_results(const class_view *view, growth g)
{
    enum { MOST_LINES = 2 };
    return view->facts->places.has_frames && g.lines <= MOST_LINES;
}

/* What may be kept on purpose is less of a loss than more memory that it makes useless, or that is
 * taken for sizes that fit nowhere. */
static bool is_lesser_loss(const class_view *view, growth g)
{
    return (growth_may_be_meant(view) || are_results(view, g)) &&
           (pins_unused_memory(view) ||
            (never_in_use(view) > g.bytes && is_taken_for_new_sizes(view)));
}

/* Whether what is kept is in use, and meant to be kept: each iteration works on all that there is
 * so far, and so asks for more than the one before. What is forgotten costs no work. Without
 * frames, a block in each iteration is no graph. */
static bool is_worked_on(const class_view *view, growth g)
{
    enum { LEAST_PERCENT = 50 }; /* of what an iteration adds */
    uint64_t more = loop_asks_for_more(view->loops, view->facts, g.is_of_other_loop);
    bool is_meant =
        view->facts->places.has_frames ? is_no_graph(view) : g.blocks_per_iteration <= 1;
    return is_meant && more > 0 && more * 100 >= g.bytes_per_iteration * LEAST_PERCENT;
}

/* Whether, in a loop without a backward pass, nearly all that modules make goes within its
 * iteration: what stays is results. A graph keeps what leads to them. */
static bool keeps_results_only(const class_view *view)
{
    enum { LEAST_PERCENT = 85 };
    const gmd_facts *f = view->facts;
    uint64_t made = 0, gone = 0;
    for (size_t i = 0; i < f->recording.lifetime_count; i++) {
        const gmd_lifetime *l = &f->recording.lifetimes[i];
        uint32_t born = gmd_iteration_of(&f->iterations, l->born);
        if (l->born != GMD_BEFORE && born < f->iterations.count &&
            (gmd_places_parts(&f->places, l->origin) & GMD_PART_MODULE)) {
            made += l->size;
            gone += l->freed != GMD_NEVER && gmd_iteration_of(&f->iterations, l->freed) == born
                        ? l->size
                        : 0;
        }
    }
    return made > 0 && gone * 100 >= made * LEAST_PERCENT &&
           !loop_has_backward(view->loops, f, false);
}

static uint64_t least_percent_of_peak(const class_view *view, growth g)
{
    enum {
        MANY_BLOCKS = 4,         /* in an iteration: a graph, where a result is one or two */
        PERCENT_OF_BLOCKS = 12,  /* of the peak: results that are collected on purpose are small */
        PERCENT_OF_RESULTS = 25, /* a model's may be all that a job is for */
        PERCENT_OF_GRAPH = 3     /* a graph is never kept on purpose */
    };
    bool are_many = g.blocks_per_iteration >= MANY_BLOCKS;
    if (view->facts->places.has_frames ? keeps_results_only(view) : !are_many) {
        return PERCENT_OF_RESULTS;
    }
    return are_many ? PERCENT_OF_GRAPH : PERCENT_OF_BLOCKS;
}

bool is_growth_material(const class_view *view, growth g)
{
    return g.bytes > 0 && does_more(view, g) && grows_in_all(view, g) && !is_lesser_loss(view, g) &&
           !is_worked_on(view, g) &&
           g.bytes * 100 >=
               view->facts->recording.peak.amount.allocated * least_percent_of_peak(view, g);
}

bool has_material_growth(const class_view *view)
{
    return is_growth_material(view, sum_growth(view, NULL, true));
}

void blame_block(const gmd_job_finding *finding, const class_view *view, size_t lifetime)
{
    view->blamed[lifetime] = (uint8_t)(finding->class + 1);
}

void blame_kept(gmd_job_finding *finding, const class_view *view, const retained_group *group)
{
    finding->is_of_ends = true;
    for (size_t i = 0; i < view->facts->recording.lifetime_count; i++) {
        if (retained_group_has(group, view->facts, &view->facts->recording.lifetimes[i])) {
            blame_block(finding, view, i);
        }
    }
}

/* The line of a group; where backward() ran no Python but a library's, the one that led to it. */
static void blame_group(gmd_job_finding *finding, const class_view *view,
                        const retained_group *group)
{
    const gmd_facts *f = view->facts;
    bool is_inferred = group->frame != GMD_NO_PLACE &&
                       (parts_of_group(view, group) & GMD_PART_BACKWARD) &&
                       gmd_places_get(&f->places, group->frame).is_library;
    uint32_t frame = group->frame;
    if (is_inferred) {
        uint32_t led = line_before(f, group->first_born);
        frame = led == GMD_NO_PLACE ? frame : led;
        is_inferred = led != GMD_NO_PLACE;
    }
    blame_line(finding, frame, group->most, is_inferred);
}

void blame_growth(gmd_job_finding *finding, const class_view *view, group_test *test)
{
    for (size_t i = 0; i < view->retained->count; i++) {
        retained_group *group = &view->retained->groups[i];
        if (!group->is_explained && is_meant(view, group, test)) {
            group->is_explained = true;
            finding->bytes += group->most;
            finding->bytes_per_iteration += rate_of(view, group);
            blame_group(finding, view, group);
            blame_kept(finding, view, group);
        }
    }
}

/* Whether what activation functions make goes within its iteration: the layer after it would save
 * it for a graph. What backward() frees was saved for one, and tells nothing of other passes. */
static bool activations_go(const class_view *view)
{
    enum { LEAST_PERCENT = 70 };
    const gmd_facts *f = view->facts;
    uint64_t made = 0, gone = 0;
    for (size_t i = 0; i < f->recording.lifetime_count; i++) {
        const gmd_lifetime *l = &f->recording.lifetimes[i];
        uint32_t born = gmd_iteration_of(&f->iterations, l->born);
        if (l->born != GMD_BEFORE && born != GMD_SET_UP &&
            (gmd_places_parts(&f->places, l->origin) & GMD_PART_ACTIVATION) &&
            !is_freed_by_backward(f, l)) {
            made++;
            gone += l->freed != GMD_NEVER && gmd_iteration_of(&f->iterations, l->freed) == born;
        }
    }
    return made > 0 && gone * 100 >= made * LEAST_PERCENT;
}

/* Whether of the very calls of activation functions whose results stay others go within their
 * iteration: a graph would have saved all of them. What stays is what a pass ends with. */
static bool are_last_activations(const class_view *view)
{
    enum { LEAST_PERCENT = 30 };
    const gmd_facts *f = view->facts;
    uint64_t made = 0, gone = 0;
    for (size_t i = 0; i < view->retained->count; i++) {
        const retained_group *group = &view->retained->groups[i];
        if (!retained_group_grows(group) || !(parts_of_group(view, group) & GMD_PART_ACTIVATION)) {
            continue;
        }
        for (size_t k = 0; k < f->recording.lifetime_count; k++) {
            const gmd_lifetime *l = &f->recording.lifetimes[k];
            if (l->born != GMD_BEFORE && !is_freed_by_backward(f, l) &&
                gmd_origins_get(f->places.origins, l->origin).stack == group->stack) {
                made++;
                gone += l->freed != GMD_NEVER && gmd_iteration_of(&f->iterations, l->freed) ==
                                                     gmd_iteration_of(&f->iterations, l->born);
            }
        }
    }
    return made > 0 && gone * 100 >= made * LEAST_PERCENT;
}

bool may_be_graph(const class_view *view)
{
    return !view->facts->places.has_modules ||
           (growth_of(view, is_of_module).bytes > 0 && !activations_go(view) &&
            !are_last_activations(view));
}

bool backward_goes_through(const class_view *view, const retained_group *group)
{
    const gmd_facts *f = view->facts;
    for (size_t i = 0; i < f->recording.lifetime_count; i++) {
        const gmd_lifetime *l = &f->recording.lifetimes[i];
        if (gmd_origins_get(f->places.origins, l->origin).stack == group->stack &&
            is_freed_by_backward(f, l)) {
            return true;
        }
    }
    return false;
}

/* Whether backward() frees what the same calls made for another function of the program. */
static bool is_trained_elsewhere(const class_view *view, const retained_group *group)
{
    const gmd_facts *f = view->facts;
    for (size_t i = 0; i < f->recording.lifetime_count; i++) {
        const gmd_lifetime *l = &f->recording.lifetimes[i];
        if (is_freed_by_backward(f, l) &&
            gmd_places_are_same_calls(&f->places, group->stack,
                                      gmd_origins_get(f->places.origins, l->origin).stack)) {
            return true;
        }
    }
    return false;
}

bool is_of_second_pass(const class_view *view, const retained_group *group)
{
    return is_trained_elsewhere(view, group) && !backward_goes_through(view, group);
}

unsigned parts_of_group(const class_view *view, const retained_group *group)
{
    return view->facts->places.parts_of[group->stack];
}

/* --- turnover -------------------------------------------------------------------------------- */

bool goes_round(const class_view *view, uint32_t least_iterations)
{
    enum { LEAST_TIMES = 5 }; /* a first pass asks for up to three times what it holds */
    uint32_t iterations = view->facts->iterations.count;
    return iterations
               ? iterations >= least_iterations
               : view->course.asked >= LEAST_TIMES * view->facts->recording.peak.amount.active;
}

/* --- refusals -------------------------------------------------------------------------------- */

uint64_t reserved_at_end(const class_view *view)
{
    const gmd_recording *r = &view->facts->recording;
    uint64_t reserved = 0;
    for (size_t i = 0; i < r->reserved_count; i++) {
        reserved += gmd_is_reserved_at(&r->reserved[i], view->end) ? r->reserved[i].size : 0;
    }
    return reserved;
}

const char *refusal_text(const class_view *view, char text[REFUSAL_TEXT])
{
    char asked[24];
    const gmd_oom *oom = view->refusal;
    gmd_format_size(oom->requested, asked);
    if (oom->outcome == GMD_OOM_ENDED) {
        snprintf(text, REFUSAL_TEXT, "The job ends as %s is refused", asked);
    } else {
        snprintf(text, REFUSAL_TEXT,
                 "%" PRIu64 " times what an iteration had made is thrown away as a request is "
                 "refused, here one of %s",
                 view->lost, asked);
    }
    return text;
}

/* --- lines ----------------------------------------------------------------------------------- */

void blame_line(gmd_job_finding *finding, uint32_t frame, uint64_t bytes, bool is_inferred)
{
    size_t at = 0;
    if (frame == GMD_NO_PLACE) {
        return;
    }
    while (at < finding->where_count && finding->where[at].frame != frame) {
        at++;
    }
    if (at == GMD_FINDING_PLACES) {
        return;
    }
    if (at == finding->where_count) {
        finding->where[finding->where_count++] = (gmd_finding_place){frame, 0, is_inferred};
    }
    gmd_finding_place place = finding->where[at];
    place.bytes += bytes;
    for (; at > 0 && finding->where[at - 1].bytes < place.bytes; at--) {
        finding->where[at] = finding->where[at - 1];
    }
    finding->where[at] = place;
}

uint32_t moment_of_line_before(const gmd_facts *facts, uint32_t moment)
{
    const gmd_recording *r = &facts->recording;
    for (uint32_t at = moment; at > GMD_BEFORE; at--) {
        const gmd_snapshot_event *e = gmd_event_at(r, at);
        uint32_t frame =
            e->device == r->device ? gmd_places_frame(&facts->places, e->origin) : GMD_NO_PLACE;
        if (frame != GMD_NO_PLACE && !gmd_places_get(&facts->places, frame).is_library) {
            return at;
        }
    }
    return GMD_BEFORE;
}

uint32_t line_before(const gmd_facts *facts, uint32_t moment)
{
    uint32_t at = moment_of_line_before(facts, moment);
    return at == GMD_BEFORE
               ? GMD_NO_PLACE
               : gmd_places_frame(&facts->places, gmd_event_at(&facts->recording, at)->origin);
}

const char *first_line(const class_view *view, const gmd_job_finding *finding, char text[LINE_TEXT])
{
    gmd_place place = gmd_places_get(&view->facts->places,
                                     finding->where_count ? finding->where[0].frame : GMD_NO_PLACE);
    if (!*place.file || place.is_library) {
        return "the program";
    }
    snprintf(text, LINE_TEXT, "%s:%" PRIu32, gmd_file_name(place.file), place.line);
    return text;
}

/* --- words ----------------------------------------------------------------------------------- */

double weigh(const class_view *view, double confidence)
{
    const double WITHOUT_FRAMES = 0.75, WITHOUT_ANNOTATIONS = 0.95, WITHOUT_START = 0.95;
    const gmd_facts *f = view->facts;
    confidence *= f->places.has_frames ? 1 : WITHOUT_FRAMES;
    confidence *= f->iterations.source == GMD_ITERATIONS_ANNOTATED ? 1 : WITHOUT_ANNOTATIONS;
    return confidence * (f->recording.begins_late ? WITHOUT_START : 1);
}

void say_evidence(gmd_job_finding *finding, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(finding->evidence, sizeof finding->evidence, format, arguments);
    va_end(arguments);
}

void say_fix(gmd_job_finding *finding, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(finding->fix, sizeof finding->fix, format, arguments);
    va_end(arguments);
}
