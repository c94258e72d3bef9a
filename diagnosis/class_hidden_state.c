/* class_hidden_state.c - the state of a recurrent network that chains the graphs of all iterations.
 *
 * It looks at what grows from iteration to iteration. Most of it is of recurrent modules, more than
 * one block of each call: not an output is kept, but the graph. Or each backward pass is longer
 * than the one before: it goes through the graphs of all iterations. Or a block like one that each
 * iteration adds was made before the first one, or is made once more in it: its state, which later
 * iterations take from the one before. */
#include "classes.h"

#include "gmd_size.h"

static bool is_recurrent(const class_view *view, const retained_group *group)
{
    return parts_of_group(view, group) & GMD_PART_RECURRENT;
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

static bool is_chain(const class_view *view, growth all)
{
    enum { RECURRENT_PERCENT = 50, LEAST_BLOCKS = 2 };
    growth recurrent = growth_of(view, is_recurrent);
    return (recurrent.bytes * 100 >= all.bytes * RECURRENT_PERCENT &&
            recurrent.blocks_per_iteration >= LEAST_BLOCKS) ||
           backward_lengthens(view->loops, view->facts) ||
           growth_of(view, begins_with_state).bytes > 0 ||
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
