/* class_eval_graph.c - an evaluation that builds graphs nobody uses.
 *
 * It looks at iterations without a backward pass. What grows there, and is more than a result, is
 * graphs. So it is beside a training if it comes after it, or goes through a model that another
 * function trains, and no backward() goes through it. Where nothing grows: without graphs each
 * layer's output is freed as soon as the next layer has it; with them all are there, those of
 * activation functions among them, until the iteration's output goes. So they are beside a backward
 * pass that does not go through them: a teacher's, a target's, a reward's. Recurrent modules are
 * left out: one call makes all that they keep. */
#include "classes.h"

#include "gmd_min.h"
#include "gmd_size.h"

#include <inttypes.h>
#include <stdlib.h>

/* --- graphs that stay ------------------------------------------------------------------------ */

/* Whether parameters get gradients, as far as is seen. */
static bool trains(const class_view *view, bool is_other)
{
    const gmd_facts *f = view->facts;
    return loop_has_backward(view->loops, f, is_other) &&
           (!loops_see_backward(f) || loop_has_gradients(view->loops, f, is_other) ||
            (!is_other && f->iterations.source == GMD_ITERATIONS_ANNOTATED));
}

static bool is_of_evaluation(const class_view *view, const retained_group *group)
{
    unsigned parts = parts_of_group(view, group);
    return (parts & GMD_PART_EVALUATION) && !(parts & GMD_PART_BACKWARD);
}

/* In a loop that trains, a graph is of an evaluation if the program's function says so. */
static bool is_named_evaluation(const class_view *view, growth all)
{
    enum { LEAST_PERCENT = 70 };
    return growth_of(view, is_of_evaluation).bytes * 100 >= all.bytes * LEAST_PERCENT;
}

/* Whether it is kept of some iterations only, which come at even distances. */
static bool is_of_some_iterations(const class_view *view, const retained_group *group)
{
    enum { MOST_PERCENT = 50 };
    return group->rises * 100 <= group->compared * MOST_PERCENT && retained_group_is_even(group) &&
           !backward_goes_through(view, group);
}

/* Every so many iterations of a loop that trains a pass is kept that backward() never goes through:
 * a validation after each epoch. What is kept of the pass that is trained has stacks of which
 * backward() frees other blocks. */
static bool is_now_and_then(const class_view *view, growth all)
{
    enum { LEAST_PERCENT = 70 };
    return loops_see_backward(view->facts) &&
           growth_of(view, is_of_some_iterations).bytes * 100 >= all.bytes * LEAST_PERCENT;
}

/* A function calls the model that another one trains, but backward() never goes through what it
 * keeps: a validation after each step. */
static bool is_validation(const class_view *view, growth all)
{
    enum { LEAST_PERCENT = 70 };
    return growth_of(view, is_of_second_pass).bytes * 100 >= all.bytes * LEAST_PERCENT;
}

static bool is_made_before_training(const class_view *view, const retained_group *group)
{
    const gmd_facts *f = view->facts;
    for (size_t i = 0; i < f->recording.lifetime_count; i++) {
        const gmd_lifetime *l = &f->recording.lifetimes[i];
        if (l->born != GMD_BEFORE &&
            gmd_origins_get(f->places.origins, l->origin).stack == group->stack) {
            return l->born < view->loops->trained_from; /* they come in order */
        }
    }
    return false;
}

/* An evaluation looks at what training has made, and comes after it; what is kept of outputs,
 * metrics and rollouts is made before the backward() of its iteration. The first iteration tells,
 * where it was recorded. */
static bool precedes_training(const class_view *view, growth all)
{
    enum { LEAST_PERCENT = 50 };
    return !view->facts->recording.begins_late &&
           growth_of(view, is_made_before_training).bytes * 100 >= all.bytes * LEAST_PERCENT;
}

static bool is_of_later_pass(const class_view *view, const retained_group *group)
{
    return !is_made_before_training(view, group) && !backward_goes_through(view, group);
}

static bool is_of_later_module(const class_view *view, const retained_group *group)
{
    return (parts_of_group(view, group) & GMD_PART_MODULE) && is_of_later_pass(view, group);
}

/* Whether modules are called after the backward pass, and no backward() goes through that. */
static bool is_later_pass(const class_view *view, growth all)
{
    enum { LEAST_PERCENT = 80, LEAST_MODULES_PERCENT = 50 };
    return loops_see_backward(view->facts) && !view->facts->recording.begins_late &&
           growth_of(view, is_of_later_pass).bytes * 100 >= all.bytes * LEAST_PERCENT &&
           growth_of(view, is_of_later_module).bytes * 100 >= all.bytes * LEAST_MODULES_PERCENT;
}

/* Whether a graph is of an evaluation beside a training. */
static bool is_beside_training(const class_view *view, growth all)
{
    return is_named_evaluation(view, all) || is_later_pass(view, all) ||
           ((is_now_and_then(view, all) || is_validation(view, all)) &&
            !precedes_training(view, all));
}

static bool keeps_graphs(const class_view *view, growth all)
{
    enum { LEAST_BLOCKS = 3, LEAST_BLOCKS_UNSEEN = 6 };
    const gmd_facts *f = view->facts;
    bool sees_backward = loops_see_backward(f);
    bool may_be_told = sees_backward ||
                       (!f->places.has_python && f->iterations.source != GMD_ITERATIONS_ANNOTATED);
    return may_be_told && may_be_graph(view) &&
           (!trains(view, all.is_of_other_loop) || is_beside_training(view, all)) &&
           all.blocks_at_a_time >= (sees_backward ? LEAST_BLOCKS : LEAST_BLOCKS_UNSEEN);
}

static bool look_for_kept_graphs(const class_view *view, gmd_job_finding *finding)
{
    char rate[24], most[24];
    growth all = growth_of(view, NULL);
    if (!is_growth_material(view, all) || !keeps_graphs(view, all)) {
        return false;
    }
    blame_growth(finding, view, NULL);
    finding->confidence = weigh(view, loops_see_backward(view->facts) ? 0.9 : 0.7);
    say_evidence(finding,
                 "%s more in each iteration, up to %s, %" PRIu64 " blocks at a time, of graphs "
                 "that no backward() uses: each result is kept with the graph of its evaluation.",
                 gmd_format_size(finding->bytes_per_iteration, rate),
                 gmd_format_size(finding->bytes, most), all.blocks_at_a_time);
    return true;
}

/* --- graphs that go -------------------------------------------------------------------------- */

typedef struct pass {   /* one iteration */
    uint64_t allocated; /* bytes that do not outlive the iteration after */
    uint64_t held;      /* of them, still there after a moment */
    uint32_t held_blocks;
    uint32_t after; /* the moment: when the last of them was allocated, or the last by backward() */
    uint32_t free_from, free_to;            /* moments between which the held ones are freed */
    uint32_t activations, held_activations; /* blocks that activation functions made */
    uint64_t usual; /* the size that most of the held ones have, if most have one */
    uint32_t lead;  /* of the vote for it */
} pass;

/* Whether a block is looked at, and in which iteration. */
static bool is_of_pass(const class_view *view, const gmd_lifetime *l, uint32_t *at)
{
    const gmd_facts *f = view->facts;
    unsigned parts = gmd_places_parts(&f->places, l->origin);
    *at = gmd_iteration_of(&f->iterations, l->born);
    if (l->born == GMD_BEFORE || *at >= f->iterations.count || l->freed == GMD_NEVER ||
        gmd_iteration_of(&f->iterations, l->freed) > *at + 1) {
        return false;
    }
    return !f->places.has_modules ||
           ((parts & GMD_PART_MODULE) && !(parts & (GMD_PART_RECURRENT | GMD_PART_BACKWARD)));
}

static bool is_of_activation(const class_view *view, const gmd_lifetime *l)
{
    return gmd_places_parts(&view->facts->places, l->origin) & GMD_PART_ACTIVATION;
}

static void note_held(const class_view *view, pass *p, const gmd_lifetime *l)
{
    p->held_activations += is_of_activation(view, l);
    p->held += l->size;
    p->held_blocks++;
    p->free_from = p->free_from && p->free_from < l->freed ? p->free_from : l->freed;
    p->free_to = l->freed > p->free_to ? l->freed : p->free_to;
    p->usual = p->lead ? p->usual : l->requested;
    p->lead += l->requested == p->usual ? 1 : (uint32_t)-1;
}

static bool has_backward(const class_view *view, uint32_t at)
{
    return view->loops->backward_blocks[at] > 0;
}

static void note_allocated(const class_view *view, pass *passes, const gmd_lifetime *l)
{
    const gmd_facts *f = view->facts;
    uint32_t at = gmd_iteration_of(&f->iterations, l->born);
    if (l->born == GMD_BEFORE || at >= f->iterations.count) {
        return;
    }
    bool is_backward = gmd_places_parts(&f->places, l->origin) & GMD_PART_BACKWARD;
    bool is_pass = is_of_pass(view, l, &at);
    passes[at].allocated += is_pass ? l->size : 0;
    passes[at].activations += is_pass && is_of_activation(view, l);
    if (has_backward(view, at) ? is_backward : is_pass) {
        passes[at].after = l->born; /* they come in the order of their births */
    }
}

static pass *list_passes(const class_view *view)
{
    const gmd_facts *f = view->facts;
    pass *passes = calloc((size_t)f->iterations.count + 1, sizeof *passes);
    uint32_t at;
    for (size_t i = 0; passes && i < f->recording.lifetime_count; i++) {
        note_allocated(view, passes, &f->recording.lifetimes[i]);
    }
    for (size_t i = 0; passes && i < f->recording.lifetime_count; i++) {
        const gmd_lifetime *l = &f->recording.lifetimes[i];
        if (is_of_pass(view, l, &at) && l->freed > passes[at].after) {
            note_held(view, &passes[at], l);
        }
    }
    return passes;
}

static bool is_held(const class_view *view, const gmd_lifetime *l, const pass *passes, uint32_t at)
{
    uint32_t of;
    return is_of_pass(view, l, &of) && of == at && l->freed > passes[at].after;
}

/* Whether most of what is held goes at once, with nothing allocated in between: a backward pass
 * makes gradients while it frees. */
static bool goes_at_once(const class_view *view, const pass *passes, uint32_t at)
{
    enum { LEAST_PERCENT = 70 };
    const gmd_recording *r = &view->facts->recording;
    uint64_t run = 0, longest = 0;
    for (uint32_t moment = passes[at].free_from; moment <= passes[at].free_to; moment++) {
        uint32_t index = r->lifetime_of_event[moment - 1];
        if (index == GMD_NO_LIFETIME) {
            continue;
        }
        const gmd_lifetime *l = &r->lifetimes[index];
        if (l->born == moment) {
            run = 0;
        } else if (l->freed == moment && is_held(view, l, passes, at)) {
            run += l->size;
            longest = gmd_max(run, longest);
        }
    }
    return longest * 100 >= passes[at].held * LEAST_PERCENT;
}

/* Lines alone do not tell the layers of a model, but that they make much of the same. */
static bool has_layers(const class_view *view, const pass *passes, uint32_t at)
{
    enum { LEAST_LAYERS = 5 };
    const gmd_recording *r = &view->facts->recording;
    uint32_t count = 0;
    if (view->facts->places.has_modules) {
        return true;
    }
    for (uint32_t moment = passes[at].free_from; moment <= passes[at].free_to; moment++) {
        uint32_t index = r->lifetime_of_event[moment - 1];
        const gmd_lifetime *l = index == GMD_NO_LIFETIME ? NULL : &r->lifetimes[index];
        count += l && l->freed == moment && l->requested == passes[at].usual &&
                 is_held(view, l, passes, at);
    }
    return count >= LEAST_LAYERS && count * passes[at].usual * 2 >= passes[at].held;
}

/* Bytes of modules that backward() itself freed: the free has no line of the program. A pass whose
 * graph is kept on purpose (retain_graph) has none. */
static uint64_t freed_by_backward(const class_view *view, const pass *passes, uint32_t at)
{
    const gmd_facts *f = view->facts;
    uint64_t bytes = 0;
    uint32_t of;
    for (uint32_t moment = f->iterations.starts[at]; moment <= passes[at].after; moment++) {
        uint32_t index = f->recording.lifetime_of_event[moment - 1];
        const gmd_lifetime *l = index == GMD_NO_LIFETIME ? NULL : &f->recording.lifetimes[index];
        if (l && l->freed == moment && is_of_pass(view, l, &of) && of == at &&
            is_freed_by_backward(f, l)) {
            bytes += l->size;
        }
    }
    return bytes;
}

/* Without a backward pass much of what modules allocate must be held. With one, what is held
 * outlives it, though that pass freed what it went through. */
static bool is_untrained(const class_view *view, const pass *passes, uint32_t at)
{
    enum { HELD_PERCENT = 40, FREED_PERCENT = 5 };
    const pass *p = &passes[at];
    return has_backward(view, at)
               ? loops_see_backward(view->facts) &&
                     freed_by_backward(view, passes, at) * 100 >= p->held * FREED_PERCENT
               : p->held * 100 >= p->allocated * HELD_PERCENT;
}

static bool builds_graph(const class_view *view, const pass *passes, uint32_t at)
{
    enum { LEAST_BLOCKS = 6, OF_PEAK_PERCENT = 10, OF_PEAK_TRAINING_PERCENT = 20 };
    const pass *p = &passes[at];
    uint64_t percent = has_backward(view, at) ? OF_PEAK_TRAINING_PERCENT : OF_PEAK_PERCENT;
    return p->held_blocks >= LEAST_BLOCKS && is_untrained(view, passes, at) &&
           p->held * 100 >= view->facts->recording.peak.amount.allocated * percent &&
           p->held_activations * 2 >= p->activations && goes_at_once(view, passes, at) &&
           has_layers(view, passes, at);
}

static void blame_pass(const class_view *view, const pass *passes, uint32_t at,
                       gmd_job_finding *finding)
{
    const gmd_facts *f = view->facts;
    finding->bytes = passes[at].held;
    for (size_t i = 0; i < f->recording.lifetime_count; i++) {
        const gmd_lifetime *l = &f->recording.lifetimes[i];
        if (is_held(view, l, passes, at)) {
            blame_line(finding, gmd_places_frame(&f->places, l->origin), l->size, false);
            blame_block(finding, view, i);
        }
    }
}

static bool look_for_passing_graphs(const class_view *view, const pass *passes,
                                    gmd_job_finding *finding)
{
    enum { LEAST_PASSES = 2 };
    const gmd_iterations *it = &view->facts->iterations;
    uint32_t building = 0, largest = 0;
    char held[24];
    for (uint32_t i = 0; i < it->count; i++) {
        if (builds_graph(view, passes, i)) {
            largest = !building || passes[i].held > passes[largest].held ? i : largest;
            building++;
        }
    }
    const gmd_places *places = &view->facts->places;
    bool shows_no_graph = places->has_python && !loops_see_backward(view->facts);
    if (!places->has_frames || shows_no_graph || !view->parameters->count ||
        building < LEAST_PASSES || has_material_growth(view)) {
        return false;
    }
    blame_pass(view, passes, largest, finding);
    finding->confidence = weigh(view, 0.9);
    say_evidence(finding,
                 has_backward(view, largest)
                     ? "In %" PRIu32 " of %" PRIu32 " iterations %s in %" PRIu32 " blocks outlives "
                       "backward(), which frees the graph that it goes through, and then goes at "
                       "once: the graph of something that is not trained."
                     : "%" PRIu32 " of %" PRIu32 " iterations have no backward(), and yet %s in "
                       "%" PRIu32 " blocks is held until the iteration's end, as a graph would.",
                 building, it->count, gmd_format_size(finding->bytes, held),
                 passes[largest].held_blocks);
    return true;
}

bool look_for_eval_graph(const class_view *view, gmd_job_finding *finding)
{
    pass *passes = list_passes(view);
    char line[LINE_TEXT];
    bool is_found = look_for_kept_graphs(view, finding) ||
                    (passes && look_for_passing_graphs(view, passes, finding));
    free(passes);
    if (is_found) {
        say_fix(finding, "with torch.no_grad():  # or torch.inference_mode(), around %s",
                first_line(view, finding, line));
    }
    return is_found;
}
