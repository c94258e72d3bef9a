/* class_hidden_state.c - the state of a recurrent network that chains the graphs of all iterations.
 *
 * It looks at what grows from iteration to iteration. Most of it is of recurrent modules that are
 * called with a state, more than one block of each call: not an output is kept, but the graph. Or
 * each backward pass is longer than the one before: it goes through the graphs of all iterations.
 * Or a block like one that each iteration adds was made before the first one, or is made once more
 * in it: its state, which later iterations take from the one before. Or a graph stays, and what it
 * is of goes when the next one is made: only that can hold it. */
#include "classes.h"

#include "gmd_min.h"
#include "gmd_size.h"

#include <stdlib.h>

/* What the recurrent modules that a line of the program calls ask for. */
typedef struct recurrent_walk {
    uint32_t iteration;   /* of the request before; GMD_SET_UP: there was none */
    bool is_seen;         /* the line of a group was, in that iteration */
    uint32_t with, begun; /* iterations that have it; of them, those in which another came first */
} recurrent_walk;

static void note_recurrent(recurrent_walk *w, uint32_t iteration, bool is_of_group)
{
    bool is_first = iteration != w->iteration;
    w->is_seen = w->is_seen && !is_first;
    w->with += is_of_group && !w->is_seen;
    w->begun += is_of_group && !w->is_seen && !is_first;
    w->is_seen = w->is_seen || is_of_group;
    w->iteration = iteration;
}

/* Whether in most iterations the module makes a state itself before it makes what the group keeps:
 * it is called without one, and the graph of the iteration begins there. */
static bool begins_anew(const class_view *view, const retained_group *group)
{
    const gmd_facts *f = view->facts;
    const uint32_t of_group = gmd_places_python_frame(&f->places, group->stack);
    recurrent_walk w = {.iteration = GMD_SET_UP};
    for (size_t i = 0; i < f->recording.lifetime_count; i++) {
        const gmd_lifetime *l = &f->recording.lifetimes[i];
        uint32_t at = gmd_iteration_of(&f->iterations, l->born);
        if (l->born != GMD_BEFORE && at != GMD_SET_UP &&
            (gmd_places_parts(&f->places, l->origin) & GMD_PART_RECURRENT) &&
            gmd_places_frame(&f->places, l->origin) == group->frame) {
            uint32_t stack = gmd_origins_get(f->places.origins, l->origin).stack;
            note_recurrent(&w, at, gmd_places_python_frame(&f->places, stack) == of_group);
        }
    }
    return w.begun * 2 > w.with;
}

static bool is_recurrent(const class_view *view, const retained_group *group)
{
    return (parts_of_group(view, group) & GMD_PART_RECURRENT) && !begins_anew(view, group);
}

/* How many blocks of a stack and size each of the first three iterations asks for, and whether the
 * one of the second stays. */
typedef struct first_requests {
    uint32_t count[3];
    bool is_kept;
} first_requests;

static first_requests count_requests(const gmd_facts *f, uint32_t stack, uint64_t requested)
{
    first_requests found = {0};
    for (size_t i = 0; i < f->recording.lifetime_count; i++) {
        const gmd_lifetime *l = &f->recording.lifetimes[i];
        uint32_t iteration = gmd_iteration_of(&f->iterations, l->born);
        if (l->born == GMD_BEFORE || iteration >= 3) {
            if (iteration >= 3 && iteration != GMD_SET_UP) {
                break; /* they come in order */
            }
        } else if (l->requested == requested &&
                   gmd_origins_get(f->places.origins, l->origin).stack == stack) {
            found.count[iteration]++;
            found.is_kept = found.is_kept || (iteration == 1 && l->freed == GMD_NEVER) ||
                            (iteration == 1 && gmd_iteration_of(&f->iterations, l->freed) > 3);
        }
    }
    return found;
}

/* Parts of PyTorch that make parameters, activations and gradients. */
enum { NOT_OWN = GMD_PART_MODULE | GMD_PART_LAYER | GMD_PART_BACKWARD };

/* Whether blocks of one of the sizes that a growing line keeps are more in the first iteration
 * than in those after. */
static bool begins_with_state(const class_view *view, const retained_group *group)
{
    const gmd_facts *f = view->facts;
    if (f->places.has_modules || !group->stack || f->iterations.count < 3 ||
        loop_has_backward(view->loops, f, false)) {
        return false;
    }
    for (size_t i = 0; i < f->recording.lifetime_count; i++) {
        const gmd_lifetime *l = &f->recording.lifetimes[i];
        if (l->born == GMD_BEFORE || gmd_iteration_of(&f->iterations, l->born) != 1 ||
            gmd_origins_get(f->places.origins, l->origin).stack != group->stack) {
            continue;
        }
        first_requests found = count_requests(f, group->stack, l->requested);
        if (found.is_kept && found.count[0] > found.count[1] && found.count[1] == found.count[2]) {
            return true;
        }
    }
    return false;
}

/* Whether the program made a block of the group's size before its loop, in a line of its own, that
 * stays. What the loop's line made before the first iteration is of the loop. */
static bool has_first_state(const class_view *view, const retained_group *group)
{
    const gmd_facts *f = view->facts;
    for (size_t i = 0; i < f->recording.lifetime_count; i++) {
        const gmd_lifetime *l = &f->recording.lifetimes[i];
        if (l->born != GMD_BEFORE && gmd_iteration_of(&f->iterations, l->born) != GMD_SET_UP) {
            return false; /* they come in order */
        }
        uint32_t stack = gmd_origins_get(f->places.origins, l->origin).stack;
        if (l->born != GMD_BEFORE && l->freed == GMD_NEVER && l->requested == group->requested &&
            stack && stack != group->stack &&
            !(gmd_places_parts(&f->places, l->origin) & NOT_OWN)) {
            return true;
        }
    }
    return false;
}

/* Whether, in a loop that does not train, a line of the program's own keeps a block of each
 * iteration that is like one from before the loop: the state that the first one began with. It goes
 * when it is detached from what comes after. */
static bool follows_first_state(const class_view *view, const retained_group *group)
{
    return group->stack && !(parts_of_group(view, group) & NOT_OWN) &&
           !loop_has_gradients(view->loops, view->facts, false) && has_first_state(view, group);
}

/* --- a graph that stays without its result --------------------------------------------------- */

/* What an iteration keeps, and the first block after it that is no temporary one. */
typedef struct kept_pass {
    const gmd_lifetime *last; /* the last block that stays; NULL: there is none */
    const gmd_lifetime *result;
    bool is_trained; /* backward() frees something that was made in between */
} kept_pass;

/* By stack: whether it grows. The caller frees it; NULL: no host memory. */
static bool *list_growing_stacks(const class_view *view)
{
    bool *grows = calloc(gmd_origins_stack_count(view->facts->places.origins), sizeof *grows);
    for (size_t i = 0; grows && i < view->retained->count; i++) {
        const retained_group *group = &view->retained->groups[i];
        grows[group->stack] = grows[group->stack] || retained_group_grows(group);
    }
    return grows;
}

static void note_block(const gmd_facts *f, const bool *grows, const gmd_lifetime *l, kept_pass *p)
{
    uint32_t stack = gmd_origins_get(f->places.origins, l->origin).stack;
    uint32_t born = gmd_iteration_of(&f->iterations, l->born);
    uint32_t freed =
        l->freed == GMD_NEVER ? f->iterations.count : gmd_iteration_of(&f->iterations, l->freed);
    if (grows[stack] && freed > born + 1) {
        *p = (kept_pass){.last = l};
    } else if (p->last && !p->result) {
        p->is_trained = p->is_trained || is_freed_by_backward(f, l);
        p->result = freed > born ? l : NULL;
    }
}

/* Whether it is made by the same line or by a module, is of the size of a state, and goes once the
 * next iteration has made all that it keeps. */
static bool is_replaced_result(const gmd_facts *f, const kept_pass *p, const kept_pass *next,
                               uint64_t least_bytes)
{
    const gmd_lifetime *l = p->result;
    return l && next->last && !p->is_trained && l->requested >= least_bytes &&
           l->freed != GMD_NEVER && l->freed > next->last->born &&
           gmd_iteration_of(&f->iterations, l->freed) ==
               gmd_iteration_of(&f->iterations, next->last->born) &&
           !is_freed_by_backward(f, l) &&
           (gmd_places_frame(&f->places, l->origin) ==
                gmd_places_frame(&f->places, p->last->origin) ||
            (gmd_places_parts(&f->places, l->origin) & GMD_PART_MODULE));
}

/* Whether each iteration keeps a graph, but not what the graph is of, which goes when the next one
 * is made: nothing but that can hold the graph. Who collects results keeps them, too. */
static bool keeps_no_results(const class_view *view)
{
    enum { LEAST_PERCENT = 70, NUMBER_BYTES = 4096, OF_KEPT_PERCENT = 1 };
    const gmd_facts *f = view->facts;
    uint64_t of_kept = growth_of(view, NULL).bytes_per_iteration * OF_KEPT_PERCENT / 100;
    uint32_t end = f->iterations.other, replaced = 0;
    kept_pass *passes = calloc((size_t)end + 1, sizeof *passes);
    bool *grows = list_growing_stacks(view);
    for (size_t i = 0; passes && grows && i < f->recording.lifetime_count; i++) {
        const gmd_lifetime *l = &f->recording.lifetimes[i];
        uint32_t at = gmd_iteration_of(&f->iterations, l->born);
        if (l->born != GMD_BEFORE && at < end) {
            note_block(f, grows, l, &passes[at]);
        }
    }
    for (uint32_t i = 0; passes && grows && i + 1 < end; i++) {
        replaced +=
            is_replaced_result(f, &passes[i], &passes[i + 1], gmd_max(of_kept, NUMBER_BYTES));
    }
    free(passes);
    free(grows);
    return end > 2 && f->places.has_modules && may_be_graph(view) &&
           replaced * 100 >= (end - 2) * LEAST_PERCENT;
}

static bool is_chain(const class_view *view, growth all)
{
    enum { RECURRENT_PERCENT = 50, LEAST_BLOCKS = 2 };
    growth recurrent = growth_of(view, is_recurrent);
    return (recurrent.bytes * 100 >= all.bytes * RECURRENT_PERCENT &&
            recurrent.blocks_per_iteration >= LEAST_BLOCKS) ||
           backward_lengthens(view->loops, view->facts) ||
           growth_of(view, begins_with_state).bytes > 0 || keeps_no_results(view) ||
           growth_of(view, follows_first_state).bytes > 0;
}

bool look_for_hidden_state(const class_view *view, gmd_job_finding *finding)
{
    char rate[24], most[24], line[LINE_TEXT];
    growth all = growth_of(view, NULL);
    if (!is_growth_material(view, all) || all.is_of_other_loop || !is_chain(view, all)) {
        return false;
    }
    bool is_longer = backward_lengthens(view->loops, view->facts);
    blame_growth(finding, view, NULL);
    finding->confidence = weigh(view, 0.9);
    say_evidence(finding,
                 "%s more in each iteration, up to %s%s: the state that goes into an iteration "
                 "still holds the graph of the one before.",
                 gmd_format_size(finding->bytes_per_iteration, rate),
                 gmd_format_size(finding->bytes, most),
                 is_longer ? ", and each backward() is longer than the last" : "");
    say_fix(finding,
            "hidden = hidden.detach()  # before %s takes it into the next iteration; for an LSTM "
            "hidden = tuple(h.detach() for h in hidden)%s",
            first_line(view, finding, line),
            is_longer ? "; then backward() needs no retain_graph" : "");
    return true;
}
