/* class_hidden_state.c - the state of a recurrent network that chains the graphs of all iterations.
 *
 * It looks at what grows from iteration to iteration. Most of it is of recurrent modules that are
 * called with a state, more than one block of each call: not an output is kept, but the graph. Or
 * each backward pass is longer than the one before: it goes through the graphs of all iterations.
 * Or a block like one that each iteration adds was made before the first one, or is made once more
 * in it: its state, which later iterations take from the one before. Or a graph stays, and what it
 * is of goes when the next one is made: only that can hold it. Or, beside the graph that backward()
 * goes through, another one stays that ends with what it was made of: a state; or a line of the
 * program replaces a state by the next one. */
#include "classes.h"

#include "gmd_min.h"
#include "gmd_size.h"

#include <stdlib.h>
#include <string.h>

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

/* Parts of PyTorch that make parameters, activations and gradients. */
enum { NOT_OWN = GMD_PART_MODULE | GMD_PART_LAYER | GMD_PART_BACKWARD };

/* Whether two lines are of one function of the program. */
static bool are_of_one_function(const gmd_facts *f, uint32_t frame, uint32_t other)
{
    gmd_place a = gmd_places_get(&f->places, frame), b = gmd_places_get(&f->places, other);
    return !a.is_library && !b.is_library && strcmp(a.function, b.function) == 0 &&
           strcmp(a.file, b.file) == 0;
}

/* How many blocks of a size the calls of a group keep. */
static uint64_t count_kept_of_size(const class_view *view, const retained_group *group,
                                   uint64_t requested)
{
    const gmd_facts *f = view->facts;
    uint64_t count = 0;
    for (size_t i = 0; i < f->recording.lifetime_count; i++) {
        const gmd_lifetime *l = &f->recording.lifetimes[i];
        count += l->requested == requested && retained_group_has(group, f, l);
    }
    return count;
}

/* Whether the function that calls the module makes a state of its own once for several calls: a
 * sequence that is generated begins there, and the next one has another. */
static bool is_given_new_state(const class_view *view, const retained_group *group)
{
    enum { LEAST_CALLS = 2 };
    for (size_t i = 0; i < view->retained->count; i++) {
        const retained_group *state = &view->retained->groups[i];
        if (retained_group_grows(state) && state->blocks > 0 &&
            !(parts_of_group(view, state) & NOT_OWN) && state->frame != group->frame &&
            are_of_one_function(view->facts, state->frame, group->frame) &&
            count_kept_of_size(view, group, state->requested) >= LEAST_CALLS * state->blocks) {
            return true;
        }
    }
    return false;
}

static bool is_recurrent(const class_view *view, const retained_group *group)
{
    return (parts_of_group(view, group) & GMD_PART_RECURRENT) && !begins_anew(view, group) &&
           !is_given_new_state(view, group);
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
    unsigned parts = parts_of_group(view, group);
    bool is_own = !(parts & NOT_OWN) || !(parts & (GMD_PART_INSIDE | GMD_PART_BACKWARD));
    return group->stack && is_own && !loop_has_gradients(view->loops, view->facts, false) &&
           has_first_state(view, group);
}

/* What is a number, or few. */
enum { NUMBER_BYTES = 4096 };

/* --- a graph that stays without its result --------------------------------------------------- */

/* What an iteration keeps, and the first block after it that is no temporary one. */
typedef struct kept_pass {
    const gmd_lifetime *first, *last; /* blocks that stay; NULL: there is none */
    uint32_t large, like_last;        /* more than a number; of the size of the last of these */
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

static uint32_t freed_in(const gmd_facts *f, const gmd_lifetime *l)
{
    return l->freed == GMD_NEVER ? f->iterations.count : gmd_iteration_of(&f->iterations, l->freed);
}

static bool is_kept(const gmd_facts *f, const bool *grows, const gmd_lifetime *l, uint32_t born)
{
    return grows[gmd_origins_get(f->places.origins, l->origin).stack] && freed_in(f, l) > born + 1;
}

static void note_block(const gmd_facts *f, const bool *grows, const gmd_lifetime *l, kept_pass *p)
{
    uint32_t born = gmd_iteration_of(&f->iterations, l->born);
    if (is_kept(f, grows, l, born)) {
        bool is_large = l->requested > NUMBER_BYTES;
        bool is_alike = is_large && p->last && p->last->requested == l->requested;
        *p = (kept_pass){.first = p->first ? p->first : l,
                         .last = is_large || !p->last ? l : p->last,
                         .large = p->large + is_large,
                         .like_last = is_alike   ? p->like_last + 1
                                      : is_large ? 1
                                                 : p->like_last};
    } else if (p->last && !p->result) {
        bool is_result = freed_in(f, l) > born;
        p->is_trained = p->is_trained || (!is_result && is_freed_by_backward(f, l));
        p->result = is_result ? l : NULL;
    }
}

/* The line of the program that calls backward(); GMD_NO_PLACE: none is seen to. */
static uint32_t line_of_backward(const gmd_facts *f)
{
    for (size_t i = 0; i < f->recording.lifetime_count; i++) {
        uint32_t origin = f->recording.lifetimes[i].origin;
        if (gmd_places_parts(&f->places, origin) & GMD_PART_AUTOGRAD) {
            return gmd_places_frame(&f->places, origin);
        }
    }
    return GMD_NO_PLACE;
}

/* Whether one line makes both, or two of a function that has nothing to do with the loop: where
 * backward() is called, losses are made of what stays. */
static bool is_of_same_work(const gmd_facts *f, const gmd_lifetime *l, const gmd_lifetime *kept,
                            uint32_t backward)
{
    uint32_t line = gmd_places_frame(&f->places, l->origin),
             line_of_kept = gmd_places_frame(&f->places, kept->origin);
    return line == line_of_kept ||
           (kept->requested > NUMBER_BYTES && are_of_one_function(f, line, line_of_kept) &&
            !are_of_one_function(f, line, backward));
}

/* Whether it is of the size of a state, or as large as what is kept of it. */
static bool may_be_state(const gmd_lifetime *l, const gmd_lifetime *kept, uint64_t least_bytes)
{
    return l->requested >= least_bytes ||
           (l->requested == kept->requested && l->requested > NUMBER_BYTES);
}

/* Whether it goes once the next iteration has made all that it keeps, or has begun to; by the
 * backward() of that one, where a model took it. What a module made may be on its way through the
 * model then. `backward`: the line that calls it. */
static bool is_replaced_result(const gmd_facts *f, const kept_pass *p, const kept_pass *next,
                               uint64_t least_bytes, uint32_t backward)
{
    const gmd_lifetime *l = p->result;
    if (!l || !next->last || p->is_trained || !may_be_state(l, p->last, least_bytes) ||
        l->freed == GMD_NEVER ||
        freed_in(f, l) != gmd_iteration_of(&f->iterations, next->last->born)) {
        return false;
    }
    bool is_of_module = gmd_places_parts(&f->places, l->origin) & GMD_PART_MODULE;
    const gmd_lifetime *taken_by = is_of_module ? next->last : next->first;
    return l->freed > taken_by->born && (is_of_module || is_of_same_work(f, l, p->last, backward));
}

/* Whether what stays are values of the state's own size on the way to it: the graph of a recursion
 * that the program spells out, of which no module makes anything. */
static bool is_recursion(const kept_pass *p)
{
    enum { LEAST_BLOCKS = 3 };
    return p->large >= LEAST_BLOCKS && p->like_last == p->large &&
           p->result->requested == p->last->requested;
}

/* Whether each iteration keeps a graph, but not what the graph is of, which goes when the next one
 * is made: nothing but that can hold the graph. Who collects results keeps them, too. */
static bool keeps_no_results(const class_view *view)
{
    enum { LEAST_PERCENT = 70, OF_KEPT_PERCENT = 1 };
    const gmd_facts *f = view->facts;
    uint64_t of_kept = growth_of(view, NULL).bytes_per_iteration * OF_KEPT_PERCENT / 100;
    uint32_t end = f->iterations.other, replaced = 0;
    uint32_t backward = line_of_backward(f);
    bool may_be_of_modules = may_be_graph(view);
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
        replaced += is_replaced_result(f, &passes[i], &passes[i + 1],
                                       gmd_max(of_kept, NUMBER_BYTES), backward) &&
                    (may_be_of_modules || is_recursion(&passes[i]));
    }
    free(passes);
    free(grows);
    return end > 2 && f->places.has_modules && replaced * 100 >= (end - 2) * LEAST_PERCENT;
}

/* --- a state that stays beside the graph that it enters --------------------------------------- */

/* What an iteration keeps. */
typedef struct kept_sum {
    const gmd_lifetime *last;
    uint64_t bytes;
    uint32_t like_last; /* blocks that ask for as much as the last one */
} kept_sum;

static void list_kept(const class_view *view, const bool *grows, kept_sum *sums)
{
    const gmd_facts *f = view->facts;
    const uint32_t end = f->iterations.other;
    for (int is_second = 0; is_second < 2; is_second++) { /* the last one is known then */
        for (size_t i = 0; i < f->recording.lifetime_count; i++) {
            const gmd_lifetime *l = &f->recording.lifetimes[i];
            uint32_t at = gmd_iteration_of(&f->iterations, l->born);
            if (l->born == GMD_BEFORE || at >= end || !is_kept(f, grows, l, at)) {
                continue;
            }
            if (is_second && sums[at].last) {
                sums[at].like_last += l->requested == sums[at].last->requested;
            } else if (!is_second) {
                sums[at].last = l;
                sums[at].bytes += l->size;
            }
        }
    }
}

/* By line: whether backward() frees what it made: it goes through the line's graph. The caller
 * frees it; NULL: no host memory. `has_modules`: some of it is of modules; with retain_graph it
 * frees none. */
static bool *list_trained_lines(const gmd_facts *f, bool *has_modules)
{
    bool *trained = calloc(gmd_origins_frame_count(f->places.origins) + 1, sizeof *trained);
    *has_modules = false;
    for (size_t i = 0; trained && i < f->recording.lifetime_count; i++) {
        const gmd_lifetime *l = &f->recording.lifetimes[i];
        uint32_t line = gmd_places_frame(&f->places, l->origin);
        if (line != GMD_NO_PLACE && is_freed_by_backward(f, l)) {
            trained[line] = true;
            *has_modules =
                *has_modules || (gmd_places_parts(&f->places, l->origin) & GMD_PART_MODULE);
        }
    }
    return trained;
}

/* Whether the last thing that an iteration keeps is no number, as a loss or a metric is, nor the
 * output of a layer, but made by the program's own line and like what it was made of: the next
 * state, made of the last one. */
static bool ends_with_state(const gmd_facts *f, const kept_sum *sum, const bool *trained)
{
    enum {
        LEAST_PERCENT = 10, /* of what the iteration keeps */
        LEAST_ALIKE = 2,
        NOT_STATE = GMD_PART_BACKWARD | GMD_PART_FUNCTION | GMD_PART_INSIDE
    };
    const gmd_lifetime *l = sum->last;
    uint32_t line = l ? gmd_places_frame(&f->places, l->origin) : GMD_NO_PLACE;
    return l && line != GMD_NO_PLACE && !trained[line] && sum->like_last >= LEAST_ALIKE &&
           !(gmd_places_parts(&f->places, l->origin) & NOT_STATE) &&
           l->size * 100 >= sum->bytes * LEAST_PERCENT;
}

/* Whether a loop that trains keeps, beside the graph that backward() goes through, one that leads
 * to a state. */
static bool keeps_states(const class_view *view, growth all)
{
    enum {
        LEAST_PERCENT = 70,
        LEAST_LINES = 3 /* of a graph that the program spells out, without modules */
    };
    const gmd_facts *f = view->facts;
    uint32_t end = f->iterations.other, with = 0;
    bool has_trained;
    if (end < 3 || !loops_see_backward(f) || !loop_has_backward(view->loops, f, false) ||
        !(may_be_graph(view) || all.lines >= LEAST_LINES) ||
        growth_of(view, is_of_second_pass).bytes * 2 > all.bytes) {
        return false;
    }
    kept_sum *sums = calloc(end, sizeof *sums);
    bool *grows = list_growing_stacks(view), *trained = list_trained_lines(f, &has_trained);
    if (sums && grows && trained && has_trained) {
        list_kept(view, grows, sums);
        for (uint32_t i = 0; i < end; i++) {
            with += ends_with_state(f, &sums[i], trained);
        }
    }
    free(sums);
    free(grows);
    free(trained);
    return with * 100 >= (end - 2) * LEAST_PERCENT;
}

/* --- a state that is replaced ---------------------------------------------------------------- */

/* The origin of the event that freed a block, which something did. */
static uint32_t freed_by(const gmd_facts *f, const gmd_lifetime *l)
{
    return gmd_event_at(&f->recording, l->freed)->origin;
}

/* Whether a function of the program makes what another line makes, or calls what does. */
static bool leads_to(const gmd_facts *f, uint32_t frame, uint32_t line)
{
    enum { CALLERS = 8 };
    uint32_t callers[CALLERS];
    size_t count = gmd_places_callers(&f->places, line, callers, CALLERS);
    bool leads = are_of_one_function(f, frame, line);
    for (size_t i = 0; i < count && !leads; i++) {
        leads = are_of_one_function(f, frame, callers[i]);
    }
    return leads;
}

static bool leads_to_growth(const class_view *view, uint32_t frame)
{
    enum { LEAST_PERCENT = 50 };
    uint64_t bytes = 0, all = 0;
    for (size_t i = 0; i < view->retained->count; i++) {
        const retained_group *group = &view->retained->groups[i];
        if (retained_group_grows(group) && group->frame != GMD_NO_PLACE) {
            all += group->most;
            bytes += leads_to(view->facts, frame, group->frame) ? group->most : 0;
        }
    }
    return bytes > 0 && bytes * 100 >= all * LEAST_PERCENT;
}

/* Whether a line gives a variable a new value in place of the one that it made in the iteration
 * before, which goes there. */
static bool is_replaced_there(const gmd_facts *f, const gmd_lifetime *l)
{
    enum { NOT_STATE = NOT_OWN | GMD_PART_FUNCTION | GMD_PART_OPTIMIZER };
    uint32_t at = gmd_iteration_of(&f->iterations, l->born);
    if (l->born == GMD_BEFORE || at == GMD_SET_UP || l->freed == GMD_NEVER ||
        l->requested <= NUMBER_BYTES || gmd_iteration_of(&f->iterations, l->freed) != at + 1 ||
        (gmd_places_parts(&f->places, l->origin) & NOT_STATE)) {
        return false;
    }
    uint32_t line = gmd_places_frame(&f->places, l->origin);
    return line != GMD_NO_PLACE && line == gmd_places_frame(&f->places, freed_by(f, l));
}

/* What is known of a line of the program. */
typedef struct state_line {
    uint64_t replaces; /* bytes that were asked for of the first block that it freed, of another
                          line, before it made one itself; 0: there was none */
    bool makes;        /* it has made something */
    bool is_asked, is_of_object;
} state_line;

/* By line, blocks in the order of their births. The caller frees it; NULL: no host memory. */
static state_line *list_state_lines(const gmd_facts *f)
{
    state_line *lines = calloc(gmd_origins_frame_count(f->places.origins) + 1, sizeof *lines);
    for (size_t i = 0; lines && i < f->recording.lifetime_count; i++) {
        const gmd_lifetime *l = &f->recording.lifetimes[i];
        uint32_t line = gmd_places_frame(&f->places, l->origin);
        if (l->born == GMD_BEFORE || line == GMD_NO_PLACE) {
            continue;
        }
        lines[line].makes = true;
        uint32_t at =
            l->freed == GMD_NEVER ? GMD_NO_PLACE : gmd_places_frame(&f->places, freed_by(f, l));
        if (at != GMD_NO_PLACE && !lines[at].makes && !lines[at].replaces &&
            !(gmd_places_parts(&f->places, l->origin) & NOT_OWN)) {
            lines[at].replaces = l->requested;
        }
    }
    return lines;
}

/* Whether a number of most iterations stays: a list of losses or metrics, which keep graphs. */
static bool keeps_numbers(const class_view *view)
{
    enum { ONE_NUMBER = 8 /* bytes, at most */, LEAST_PERCENT = 70 };
    const gmd_facts *f = view->facts;
    const uint32_t end = f->iterations.other;
    uint32_t with = 0, before = GMD_SET_UP;
    bool *grows = list_growing_stacks(view);
    for (size_t i = 0; grows && i < f->recording.lifetime_count; i++) {
        const gmd_lifetime *l = &f->recording.lifetimes[i];
        uint32_t at = gmd_iteration_of(&f->iterations, l->born);
        if (l->born != GMD_BEFORE && at < end && at != before && l->requested <= ONE_NUMBER &&
            is_kept(f, grows, l, at)) {
            with++;
            before = at; /* they come in order */
        }
    }
    free(grows);
    return with * 100 >= (end - 2) * LEAST_PERCENT;
}

/* Whether what is replaced is a state. An object keeps it while the function that makes it is not
 * running, and that leads to what grows: what calls backward(), or what does, is the loop, whose
 * variables are replaced in each iteration, too. Or it begins with a value of the same size from
 * another line, as other variables do not. */
static bool is_state(const class_view *view, const gmd_lifetime *l, state_line *lines,
                     uint32_t backward)
{
    const uint32_t line = gmd_places_frame(&view->facts->places, l->origin);
    state_line *known = &lines[line];
    if (!known->is_asked) {
        known->is_asked = true;
        known->is_of_object = !leads_to(view->facts, line, backward) && leads_to_growth(view, line);
    }
    return known->is_of_object || known->replaces == l->requested;
}

/* Whether frees have the stacks of their allocations (context='alloc'), and tell no line that
 * replaces a value: a temporary one goes in another call than the one that made it. */
static bool frees_are_copies(const gmd_facts *f)
{
    enum { LEAST_PERCENT = 98 };
    uint64_t freed = 0, copied = 0;
    for (size_t i = 0; i < f->recording.lifetime_count; i++) {
        const gmd_lifetime *l = &f->recording.lifetimes[i];
        uint32_t stack = gmd_origins_get(f->places.origins, l->origin).stack;
        if (l->born != GMD_BEFORE && l->freed != GMD_NEVER && stack) {
            freed++;
            copied += gmd_origins_get(f->places.origins, freed_by(f, l)).stack == stack;
        }
    }
    return copied * 100 >= freed * LEAST_PERCENT;
}

/* Whether most iterations of a loop that trains take a state from the one before, and nothing else
 * is seen to keep graphs. */
static bool takes_state_along(const class_view *view)
{
    enum { LEAST_PERCENT = 70 };
    const gmd_facts *f = view->facts;
    uint32_t end = f->iterations.other, with = 0, before = GMD_SET_UP;
    uint32_t backward = line_of_backward(f);
    if (end < 3 || backward == GMD_NO_PLACE || !loop_has_backward(view->loops, f, false) ||
        keeps_numbers(view) || frees_are_copies(f)) {
        return false;
    }
    state_line *lines = list_state_lines(f);
    for (size_t i = 0; lines && i < f->recording.lifetime_count; i++) {
        const gmd_lifetime *l = &f->recording.lifetimes[i];
        uint32_t at = gmd_iteration_of(&f->iterations, l->born);
        if (at != before && at < end && is_replaced_there(f, l) &&
            is_state(view, l, lines, backward)) {
            with++;
            before = at; /* they come in order */
        }
    }
    free(lines);
    return with * 100 >= (end - 2) * LEAST_PERCENT;
}

static bool is_chain(const class_view *view, growth all)
{
    enum { RECURRENT_PERCENT = 50, LEAST_BLOCKS = 2 };
    growth recurrent = growth_of(view, is_recurrent);
    return (recurrent.bytes * 100 >= all.bytes * RECURRENT_PERCENT &&
            recurrent.blocks_per_iteration >= LEAST_BLOCKS) ||
           backward_lengthens(view->loops, view->facts) ||
           growth_of(view, begins_with_state).bytes > 0 || keeps_no_results(view) ||
           keeps_states(view, all) || growth_of(view, follows_first_state).bytes > 0 ||
           takes_state_along(view);
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
