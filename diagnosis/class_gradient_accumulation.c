/* class_gradient_accumulation.c - gradients that are kept across iterations.
 *
 * It looks at three things. Blocks of the sizes of parameters that are added in each iteration, or
 * a block as large as all gradients together: the program stores gradients. And steps of an
 * optimizer in whose iteration no gradient was made, since backward() adds to those of earlier
 * iterations: nothing frees them. A program that zeroes them in place
 * (zero_grad(set_to_none=False)) keeps them, too. A recording without annotations cannot tell, so
 * this class is silent there. And gradients that backward() replaces by larger ones each time:
 * sparse ones, which are appended to. */
#include "classes.h"

#include "gmd_min.h"
#include "gmd_size.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* --- gradients that the program stores ------------------------------------------------------- */

/* What is kept of all iterations but the last one, which is not over, and those of the warm-up,
 * which make the optimizer's state and workspaces. */
static bool is_kept(const gmd_facts *f, const gmd_lifetime *l)
{
    uint32_t born = gmd_iteration_of(&f->iterations, l->born);
    return l->born != GMD_BEFORE && born != GMD_SET_UP && born >= f->iterations.warm_up &&
           born + 1 < f->iterations.count &&
           (l->freed == GMD_NEVER ||
            gmd_iteration_of(&f->iterations, l->freed) + 1 >= f->iterations.count);
}

/* Gradients are made by backward() itself or copied in the program's loop or in a hook of a tensor,
 * not in a module's call:
 * what is kept from there, of whatever size, is activations. What is made with a layer is the
 * layer's parameters. */
enum { NOT_COPIED = GMD_PART_MODULE | GMD_PART_FUNCTION | GMD_PART_LAYER };

static bool may_be_gradient(const gmd_facts *f, size_t lifetime)
{
    const gmd_lifetime *l = &f->recording.lifetimes[lifetime];
    unsigned parts = gmd_places_parts(&f->places, l->origin);
    return f->categories.of_lifetime[lifetime] != GMD_OPTIMIZER_STATE && !(parts & NOT_COPIED) &&
           (!(parts & GMD_PART_BACKWARD) || !(parts & GMD_PART_PYTHON) || (parts & GMD_PART_HOOK));
}

/* What backward() itself allocated, and no Python that it ran, is gradients of whatever size. */
static bool is_of_backward(const class_view *view, const retained_group *group)
{
    unsigned parts = parts_of_group(view, group);
    return (parts & GMD_PART_BACKWARD) && !(parts & GMD_PART_PYTHON);
}

static bool is_of_program(const class_view *view, const retained_group *group)
{
    return !is_of_backward(view, group);
}

/* With the graph of a forward pass, what backward() made is of a graph, too (create_graph). */
static bool is_from_backward(const class_view *view)
{
    enum { LEAST_PERCENT = 70, MOST_OTHER_BLOCKS = 2 };
    return growth_of(view, is_of_backward).bytes * 100 >=
               growth_of(view, NULL).bytes * LEAST_PERCENT &&
           growth_of(view, is_of_program).blocks_per_iteration <= MOST_OTHER_BLOCKS;
}

/* The line that most of what grows is of. */
static uint32_t main_line(const class_view *view)
{
    gmd_job_finding all = {0};
    for (size_t i = 0; i < view->retained->count; i++) {
        const retained_group *group = &view->retained->groups[i];
        if (retained_group_grows(group)) {
            blame_line(&all, group->frame, group->most, false);
        }
    }
    return all.where_count ? all.where[0].frame : GMD_NO_PLACE;
}

/* A program copies gradients of all sizes in one line. */
static bool are_of_sizes(const class_view *view, parameter_sizes *sizes)
{
    enum {
        MATCHED_PERCENT = 85,
        LEAST_SIZES = 2,
        LEAST_SIZES_UNSEEN = 3,
        SIZES_PERCENT = 50,        /* of the parameters': gradients may be of a part of a model */
        SIZES_PERCENT_UNSEEN = 80, /* where stacks do not tell activations from gradients */
        LEAST_OF_PARAMETERS_PERCENT = 30
    };
    const gmd_facts *f = view->facts;
    const uint32_t line = main_line(view);
    uint64_t kept = 0, matched = 0;
    uint32_t distinct = 0;
    parameter_sizes_forget(sizes);
    for (size_t i = 0; i < f->recording.lifetime_count; i++) {
        const gmd_lifetime *l = &f->recording.lifetimes[i];
        if (is_kept(f, l)) {
            size_count *size = may_be_gradient(f, i) ? parameter_size(sizes, l->requested) : NULL;
            kept += l->size;
            matched += size ? l->size : 0;
            distinct +=
                size && gmd_places_frame(&f->places, l->origin) == line && size->seen++ == 0;
        }
    }
    uint32_t percent = f->places.has_modules ? SIZES_PERCENT : SIZES_PERCENT_UNSEEN;
    uint32_t least = f->places.has_modules ? LEAST_SIZES : LEAST_SIZES_UNSEEN;
    return matched * 100 >= kept * MATCHED_PERCENT && distinct >= least &&
           (uint64_t)distinct * 100 >= (uint64_t)sizes->count * percent &&
           matched * 100 >= sizes->bytes * LEAST_OF_PARAMETERS_PERCENT;
}

/* What the blocks that backward() has made in an iteration, and that are there at a moment of it,
 * ask for together; 0: there are not several. */
static uint64_t requested_by_gradients(const gmd_facts *f, uint32_t moment)
{
    uint32_t at = gmd_iteration_of(&f->iterations, moment), blocks = 0;
    uint64_t requested = 0;
    for (size_t i = 0; i < f->recording.lifetime_count; i++) {
        const gmd_lifetime *l = &f->recording.lifetimes[i];
        unsigned parts = gmd_places_parts(&f->places, l->origin);
        if (l->born != GMD_BEFORE && l->born < moment && l->freed > moment &&
            gmd_iteration_of(&f->iterations, l->born) == at && (parts & GMD_PART_BACKWARD) &&
            !(parts & GMD_PART_PYTHON)) {
            requested += l->requested;
            blocks++;
        }
    }
    return blocks > 1 ? requested : 0;
}

/* What a line keeps of the first iteration of which it keeps anything. */
typedef struct kept_share {
    uint64_t requested; /* bytes */
    uint32_t last;      /* moment of the last block; 0: nothing is kept */
    const gmd_lifetime *first;
} kept_share;

static kept_share first_share(const gmd_facts *f, const retained_group *group)
{
    kept_share share = {0};
    for (size_t i = 0; i < f->recording.lifetime_count; i++) {
        const gmd_lifetime *l = &f->recording.lifetimes[i];
        if (!is_kept(f, l) || gmd_origins_get(f->places.origins, l->origin).stack != group->stack) {
            continue;
        }
        if (share.last && gmd_iteration_of(&f->iterations, l->born) !=
                              gmd_iteration_of(&f->iterations, share.last)) {
            break; /* they come in order */
        }
        share.requested += l->requested;
        share.last = l->born;
        share.first = share.first ? share.first : l;
    }
    return share;
}

/* Whether one is as much as the other, be it in half or double precision. A module may have all its
 * weights in one block, with gaps between them. */
static bool are_as_much(uint64_t kept, uint64_t gradients)
{
    enum { GAPS_PERCENT = 1 };
    for (uint64_t times = 1; times <= 2 && gradients; times++) {
        uint64_t a = kept * times, b = gradients, c = kept, d = gradients * times;
        if ((a <= b && b - a <= b * GAPS_PERCENT / 100) ||
            (c <= d && d - c <= d * GAPS_PERCENT / 100)) {
            return true;
        }
    }
    return false;
}

/* Whether a growing line copies all gradients of an iteration, or joins those of a backward pass to
 * one vector, before the optimizer's step ends the iteration: later it may as well be the
 * parameters. */
static bool is_joined(const class_view *view, const retained_group *group)
{
    const gmd_facts *f = view->facts;
    kept_share share = first_share(f, group);
    return share.last && !(parts_of_group(view, group) & NOT_COPIED) &&
           (are_as_much(share.requested, requested_by_gradients(f, share.last)) ||
            are_as_much(share.first->requested, requested_by_gradients(f, share.first->born)));
}

static bool are_joined(const class_view *view)
{
    enum { LEAST_PERCENT = 85 };
    return loops_see_backward(view->facts) &&
           growth_of(view, is_joined).bytes * 100 >= growth_of(view, NULL).bytes * LEAST_PERCENT;
}

/* The lines that led to what backward() stores, by the first blocks of it. */
static void blame_backward(const class_view *view, gmd_job_finding *finding)
{
    enum { MOST_BLOCKS = 256 };
    const gmd_facts *f = view->facts;
    uint64_t looked_at = 0, blocks = 0;
    for (size_t i = 0; i < f->recording.lifetime_count && blocks < MOST_BLOCKS; i++) {
        const gmd_lifetime *l = &f->recording.lifetimes[i];
        if (is_kept(f, l) && (gmd_places_parts(&f->places, l->origin) & GMD_PART_BACKWARD)) {
            blame_line(finding, line_before(f, l->born), l->size, true);
            blocks++;
        }
    }
    for (size_t i = 0; i < finding->where_count; i++) {
        looked_at += finding->where[i].bytes;
    }
    for (size_t i = 0; i < finding->where_count; i++) { /* as of all blocks */
        double share = (double)finding->where[i].bytes / (double)looked_at;
        finding->where[i].bytes = (uint64_t)(share * (double)finding->bytes);
    }
}

/* Whether the program asked for gradients by torch.autograd.grad(), as far as its lines tell: what
 * the first one that is stored was computed for. */
static bool is_by_grad(const class_view *view)
{
    const gmd_facts *f = view->facts;
    for (size_t i = 0; i < f->recording.lifetime_count; i++) {
        const gmd_lifetime *l = &f->recording.lifetimes[i];
        if (is_kept(f, l) && (gmd_places_parts(&f->places, l->origin) & GMD_PART_BACKWARD)) {
            uint32_t before = moment_of_line_before(f, l->born);
            return before != GMD_BEFORE &&
                   (gmd_places_parts(&f->places, gmd_event_at(&f->recording, before)->origin) &
                    GMD_PART_GRAD);
        }
    }
    return false;
}

static void tell_stored(const class_view *view, gmd_job_finding *finding)
{
    char rate[24], most[24], line[LINE_TEXT];
    bool from_backward = is_from_backward(view), by_grad = from_backward && is_by_grad(view);
    bool is_vector = are_joined(view);
    blame_growth(finding, view, NULL);
    if (from_backward) {
        blame_backward(view, finding);
    }
    finding->confidence = weigh(view, 0.9);
    say_evidence(finding,
                 "%s more in each iteration, up to %s, %s: gradients are stored, and none of them "
                 "is ever freed.",
                 gmd_format_size(finding->bytes_per_iteration, rate),
                 gmd_format_size(finding->bytes, most),
                 by_grad         ? "computed by torch.autograd.grad()"
                 : from_backward ? "allocated by backward() itself"
                 : is_vector     ? "in blocks as large as all gradients of an iteration together"
                                 : "in blocks of the sizes of the model's parameters");
    first_line(view, finding, line);
    if (by_grad) {
        say_fix(finding,
                "gradients.clear()  # empty what keeps the gradients of %s once they are used; or "
                "keep a number of each: gradient.norm().item()",
                line);
    } else {
        say_fix(finding,
                "history.append(p.grad.norm().item())  # a number of each gradient that %s makes, "
                "not the tensor; or empty what keeps them once they are used",
                line);
    }
}

static bool look_for_stored(const class_view *view, parameter_sizes *sizes,
                            gmd_job_finding *finding)
{
    growth all = growth_of(view, NULL);
    if (!is_growth_material(view, all) || all.is_of_other_loop ||
        (!is_from_backward(view) && !are_of_sizes(view, sizes) && !are_joined(view))) {
        return false;
    }
    tell_stored(view, finding);
    return true;
}

/* --- gradients that nothing frees ------------------------------------------------------------ */

static bool is_annotated(const gmd_facts *f, const char *prefix)
{
    const gmd_snapshot *s = f->snapshot;
    for (size_t i = 0; i < s->annotation_count; i++) {
        const char *name = gmd_origins_text(&s->origins, s->annotations[i].name, NULL);
        if (strncmp(name, prefix, strlen(prefix)) == 0) {
            return true;
        }
    }
    return false;
}

/* Blames the gradients that stay, as far as their making was recorded; their bytes. */
static uint64_t blame_unfreed(const class_view *view, const gmd_job_finding *finding)
{
    const gmd_facts *f = view->facts;
    uint64_t bytes = 0;
    for (size_t i = 0; i < f->recording.lifetime_count; i++) {
        const gmd_lifetime *l = &f->recording.lifetimes[i];
        if (f->categories.of_lifetime[i] == GMD_GRADIENT &&
            gmd_iteration_of(&f->iterations, l->born) != GMD_SET_UP &&
            (l->freed == GMD_NEVER || gmd_iteration_of(&f->iterations, l->freed) >=
                                          gmd_iteration_of(&f->iterations, l->born) + 2)) {
            bytes += l->size;
            blame_block(finding, view, i);
        }
    }
    return bytes;
}

/* What backward() makes in an iteration after warm-up, of sizes of parameters. */
typedef struct made_gradients {
    uint64_t kept;      /* bytes, an iteration, that are there when it ends: gradients */
    uint64_t temporary; /* that are not: they are added to gradients that are there */
    uint64_t blocks;    /* how many of the latter */
    uint32_t first;     /* moment of the first of the latter */
} made_gradients;

/* Counts by size what may be added to: gradients that backward() has made before an iteration and
 * that stay in it. */
static void count_kept_gradients(const gmd_facts *f, uint32_t iteration, parameter_sizes *sizes)
{
    parameter_sizes_forget(sizes);
    for (size_t i = 0; i < f->recording.lifetime_count; i++) {
        const gmd_lifetime *l = &f->recording.lifetimes[i];
        bool is_of_backward = gmd_places_parts(&f->places, l->origin) & GMD_PART_BACKWARD;
        size_count *size = is_of_backward ? parameter_size(sizes, l->requested) : NULL;
        if (size && l->born < f->iterations.starts[iteration] &&
            l->freed >= f->iterations.starts[iteration + 1]) {
            size->seen++;
        }
    }
}

/* Where zero_grad() is recorded, what is added to is known by it; else a program may have made the
 * gradients itself, and there are no more than parameters. */
static void count_gradients_there(const gmd_facts *f, uint32_t iteration, bool is_zeroed,
                                  parameter_sizes *sizes)
{
    if (is_zeroed) {
        count_kept_gradients(f, iteration, sizes);
        return;
    }
    for (size_t i = 0; i < sizes->count; i++) {
        sizes->items[i].seen = sizes->items[i].parameters;
    }
}

/* The rest of what goes is of activations' gradients. */
static made_gradients count_made(const gmd_facts *f, bool is_zeroed, parameter_sizes *sizes)
{
    made_gradients made = {0};
    uint32_t at = f->iterations.warm_up;
    count_gradients_there(f, at, is_zeroed, sizes);
    for (size_t i = 0; i < f->recording.lifetime_count; i++) {
        const gmd_lifetime *l = &f->recording.lifetimes[i];
        bool is_of_backward = gmd_places_parts(&f->places, l->origin) & GMD_PART_BACKWARD;
        size_count *size = is_of_backward ? parameter_size(sizes, l->requested) : NULL;
        if (!size || gmd_iteration_of(&f->iterations, l->born) != at) {
            continue;
        }
        bool sees_end = l->freed == GMD_NEVER || gmd_iteration_of(&f->iterations, l->freed) > at;
        if (sees_end) {
            made.kept += l->size;
        } else if (size->seen > 0) {
            size->seen--;
            made.temporary += l->size;
            made.blocks++;
            made.first = made.first ? made.first : l->born;
        }
    }
    return made;
}

/* Where zero_grad() is recorded, gradients may be of a part of the model that the optimizer does
 * not have, or zeroed in place. Most parameters must have one then, and what was there before the
 * recording may be no parameter. */
static bool is_of_most_parameters(const gmd_facts *f, made_gradients made)
{
    enum { LEAST_PERCENT = 5 }; /* of the peak */
    uint64_t parameters = 0;
    for (size_t i = 0; i < f->recording.lifetime_count; i++) {
        parameters += f->categories.of_lifetime[i] == GMD_PARAMETER;
    }
    return !f->recording.begins_late && made.blocks * 2 >= parameters &&
           made.temporary * 100 >= f->recording.peak.amount.allocated * LEAST_PERCENT;
}

static bool look_for_unfreed(const class_view *view, parameter_sizes *sizes,
                             gmd_job_finding *finding)
{
    /* Percentages of the parameters, which in a recording that begins late are counted with the
     * optimizer's state: up to four times as many bytes. An iteration that adds to the gradients
     * of one before says nothing yet: two steps may be accumulated on purpose. The last counts as
     * one more, though it is not over. */
    enum { LEAST_PERCENT = 15, FRESH_PERCENT = 10, LEAST_ITERATIONS = 4 };
    const gmd_facts *f = view->facts;
    char kept[24], all[24], line[LINE_TEXT];
    if (f->iterations.source != GMD_ITERATIONS_ANNOTATED ||
        f->iterations.count < LEAST_ITERATIONS || !is_annotated(f, "Optimizer.step#")) {
        return false;
    }
    bool is_zeroed = is_annotated(f, "Optimizer.zero_grad#");
    made_gradients made = count_made(f, is_zeroed, sizes);
    if (made.temporary * 100 < sizes->bytes * LEAST_PERCENT || made.temporary == 0 ||
        made.kept * 100 > made.temporary * FRESH_PERCENT ||
        (is_zeroed && !is_of_most_parameters(f, made))) {
        return false;
    }
    uint64_t seen = blame_unfreed(view, finding);
    finding->bytes = gmd_max(seen, made.temporary);
    finding->confidence = weigh(view, 0.9);
    blame_line(finding, line_before(f, made.first), finding->bytes, true);
    say_evidence(finding,
                 "backward() makes %" PRIu64 " gradients (%s, for %s that stays from iteration to "
                 "iteration) and adds each to one that is there from the iteration before. %s",
                 made.blocks, gmd_format_size(finding->bytes, kept),
                 gmd_format_size(sizes->bytes, all),
                 is_zeroed ? "zero_grad() zeroes them in place, or is of an optimizer that does "
                             "not have these parameters."
                           : "No zero_grad() is recorded: they add up, or are zeroed in place and "
                             "kept.");
    say_fix(finding,
            is_zeroed ? "optimizer.zero_grad(set_to_none=True)  # %s adds to what it made before; "
                        "requires_grad_(False) for parameters that the optimizer does not have"
                      : "optimizer.zero_grad(set_to_none=True)  # after each optimizer.step(): %s "
                        "adds to what it made before",
            first_line(view, finding, line));
    return true;
}

/* --- gradients that are appended to ---------------------------------------------------------- */

/* Whether backward() makes a block in an iteration, *at, and frees it in a later one, as it makes
 * the sum of it and what is new, or it is there at the end. */
static bool is_summed(const gmd_facts *f, const gmd_lifetime *l, uint32_t *at)
{
    unsigned parts = gmd_places_parts(&f->places, l->origin);
    bool is_of_backward = (parts & GMD_PART_BACKWARD) && !(parts & GMD_PART_PYTHON);
    *at = gmd_iteration_of(&f->iterations, l->born);
    return l->born != GMD_BEFORE && *at < f->iterations.count && is_of_backward &&
           (l->freed == GMD_NEVER ||
            (is_freed_by_backward(f, l) && gmd_iteration_of(&f->iterations, l->freed) > *at));
}

/* Bytes of such blocks, by iteration. The caller frees them; NULL: no host memory. */
static uint64_t *list_summed(const gmd_facts *f)
{
    uint64_t *made = calloc((size_t)f->iterations.count + 1, sizeof *made);
    for (size_t i = 0; made && i < f->recording.lifetime_count; i++) {
        const gmd_lifetime *l = &f->recording.lifetimes[i];
        uint32_t at;
        if (is_summed(f, l, &at)) {
            made[at] += l->size;
        }
    }
    return made;
}

static void blame_summed(const class_view *view, uint32_t iteration, const gmd_job_finding *finding)
{
    const gmd_facts *f = view->facts;
    for (size_t i = 0; i < f->recording.lifetime_count; i++) {
        uint32_t at;
        if (is_summed(f, &f->recording.lifetimes[i], &at) && at == iteration) {
            blame_block(finding, view, i);
        }
    }
}

typedef struct summed_gradients {
    uint64_t first, last; /* bytes, of iterations after warm-up */
    uint32_t first_in, last_in;
    uint32_t rises, falls;
} summed_gradients;

static summed_gradients measure_summed(const gmd_iterations *it, const uint64_t *made)
{
    summed_gradients found = {.first_in = it->warm_up, .last_in = it->warm_up};
    for (uint32_t i = it->warm_up; i + 1 < it->other && made[i + 1]; i++) {
        found.rises += made[i + 1] > made[i];
        found.falls += made[i + 1] < made[i];
        found.last_in = i + 1;
    }
    found.first = made[found.first_in];
    found.last = made[found.last_in];
    return found;
}

/* Sparse gradients are added by appending the new rows: the sum is as much larger each time. What
 * is added to a dense one stays where it is. */
static bool is_appended(const class_view *view, summed_gradients sum)
{
    enum { LEAST_RISES = 3, LONGER_PERCENT = 150, OF_PEAK_PERCENT = 10 };
    return sum.rises >= LEAST_RISES && sum.falls == 0 && sum.first > 0 &&
           sum.last * 100 >= sum.first * LONGER_PERCENT &&
           sum.last * 100 >= view->facts->recording.peak.amount.allocated * OF_PEAK_PERCENT;
}

/* The line before the first block that backward() makes in an iteration. */
static uint32_t line_of_backward(const gmd_facts *f, uint32_t iteration)
{
    for (size_t i = 0; i < f->recording.lifetime_count; i++) {
        const gmd_lifetime *l = &f->recording.lifetimes[i];
        if (l->born != GMD_BEFORE && gmd_iteration_of(&f->iterations, l->born) == iteration &&
            (gmd_places_parts(&f->places, l->origin) & GMD_PART_BACKWARD)) {
            return line_before(f, l->born);
        }
    }
    return GMD_NO_PLACE;
}

static bool look_for_appended(const class_view *view, gmd_job_finding *finding)
{
    const gmd_facts *f = view->facts;
    char first[24], last[24], line[LINE_TEXT];
    uint64_t *made = f->iterations.count && loops_see_backward(f) ? list_summed(f) : NULL;
    if (!made) {
        return false;
    }
    summed_gradients sum = measure_summed(&f->iterations, made);
    free(made);
    if (!is_appended(view, sum)) {
        return false;
    }
    finding->bytes = sum.last;
    finding->bytes_per_iteration = (sum.last - sum.first) / (sum.last_in - sum.first_in);
    finding->confidence = weigh(view, 0.9);
    blame_line(finding, line_of_backward(f, sum.last_in), finding->bytes, true);
    blame_summed(view, sum.last_in, finding);
    say_evidence(finding,
                 "backward() frees gradients of the iteration before as it makes larger ones, from "
                 "%s in iteration %" PRIu32 " to %s in iteration %" PRIu32
                 ": sparse gradients that nothing zeroes are appended to.",
                 gmd_format_size(sum.first, first), sum.first_in + 1,
                 gmd_format_size(sum.last, last), sum.last_in + 1);
    say_fix(finding,
            "optimizer.zero_grad(set_to_none=True)  # for the optimizer of the sparse parameters, "
            "too, before %s adds to their gradients",
            first_line(view, finding, line));
    return true;
}

bool look_for_gradient_accumulation(const class_view *view, gmd_job_finding *finding)
{
    return look_for_stored(view, view->parameters, finding) ||
           look_for_unfreed(view, view->parameters, finding) || look_for_appended(view, finding);
}
