/* class_reference_cycle.c - memory that waits for Python's cyclic garbage collector.
 *
 * Such memory grows from iteration to iteration, until the collector runs: then that of many
 * iterations is freed at once. A program that collects by itself (gc.collect()) does so every so
 * many iterations, exactly, in one line, which allocates nothing; the collector runs whenever
 * enough objects were made. Where all goes once and then piles up for longer than before, nothing
 * bounds it, whoever collected. Where it goes in the midst of a library's function, which has
 * nothing to do with it, nobody else can have freed it. An autograd.Function that keeps its own
 * result as an attribute of its context (instead of save_for_backward) makes such a circle, and is
 * known by its stack even where nothing was collected. What stays and was first made before
 * anything was trained is no graph either: objects hold it. */
#include "classes.h"

#include "gmd_min.h"
#include "gmd_size.h"

#include <string.h>

/* Whether a line of the program allocates anything. */
static bool allocates(const class_view *view, uint32_t line)
{
    const gmd_facts *f = view->facts;
    for (size_t i = 0; line != GMD_NO_PLACE && i < f->recording.lifetime_count; i++) {
        if (gmd_places_frame(&f->places, f->recording.lifetimes[i].origin) == line) {
            return true;
        }
    }
    return false;
}

/* A program that collects by itself does it in one line, which allocates nothing. The collector
 * runs wherever an object is made. Where frees have no frames, no line is known of. */
static bool collects_itself(const class_view *view, const retained_group *group)
{
    enum { MOST_PERCENT = 60 };
    return group->freed_percent >= MOST_PERCENT && group->freed_in != GMD_NO_PLACE &&
           !allocates(view, group->freed_in);
}

/* Whether drops come at uneven distances. */
static bool is_uneven(const retained_group *group)
{
    return group->runs[2] > group->runs[1] || group->last_run > group->runs[2] ||
           group->runs[0] > group->runs[2] + 1;
}

static bool piles_up_again(const retained_group *group)
{
    enum { LONGER_PERCENT = 150 };
    return group->last_run * 100 >= group->runs[0] * LONGER_PERCENT &&
           group->last_run > group->runs[0] + 1;
}

/* Whether it goes in another file than it comes from: not by a line of the loop that clears what it
 * has gathered. */
static bool goes_elsewhere(const class_view *view, const retained_group *group)
{
    const gmd_places *places = &view->facts->places;
    return group->freed_in != GMD_NO_PLACE && group->frame != GMD_NO_PLACE &&
           strcmp(gmd_places_get(places, group->freed_in).file,
                  gmd_places_get(places, group->frame).file) != 0;
}

/* Whether drops tell of the collector though they come at even distances: what was in use while it
 * ran got older, and stays the next time. */
static bool leaves_more_each_time(const retained_group *group)
{
    return group->floors_up * 2 >= group->drops - 1 && group->floors_up > 2 * group->floors_down;
}

/* Whether it piles up for longer each time. A full collection comes once the objects that survived
 * since the last are a quarter of all (gc's threshold, as its documentation says), and those are
 * more each time; a program that clears what it has gathered has no such rule. */
static bool takes_longer_each_time(const retained_group *group)
{
    return group->longer_runs > 0 && group->longer_runs == group->drops - 1;
}

/* Whether blocks go in another order than they came, as requests do that are served: the collector
 * leaves none behind but those that were in use while it ran. */
static bool goes_in_any_order(const retained_group *group)
{
    enum { LEAST_PERCENT = 20 };
    return group->overtaken * 100 >= group->gone * LEAST_PERCENT;
}

/* Whether blocks go in several lines of the program, of which one makes something: who clears what
 * was gathered, be it in two places, allocates nothing there. */
static bool goes_where_objects_are_made(const class_view *view, const retained_group *group)
{
    enum { MOST_PERCENT = 90 };
    return group->freed_in != GMD_NO_PLACE && group->freed_in_other != GMD_NO_PLACE &&
           group->freed_percent <= MOST_PERCENT &&
           (allocates(view, group->freed_in) || allocates(view, group->freed_in_other));
}

/* Whether as many drops as rises tell of a variable that gets another value every so many
 * iterations: what piles up is of several. */
static bool piles_up(const retained_group *group)
{
    enum { LEAST_RISES = 3 }; /* to a drop */
    return group->rises >= LEAST_RISES * group->drops;
}

/* Whether blocks of several iterations go at once, the oldest first: the collector goes through its
 * objects in this order, and a list lets go of its items from the last one on. */
static bool goes_oldest_first(const retained_group *group)
{
    enum { LEAST_PAIRS = 2, LEAST_PERCENT = 80 };
    return group->oldest_first >= LEAST_PAIRS &&
           group->oldest_first * 100 >=
               (group->oldest_first + group->youngest_first) * LEAST_PERCENT;
}

static bool waits_for_collector(const class_view *view, const retained_group *group)
{
    enum {
        DROP_PERCENT = 20,  /* of the most that there was: one of many requests is less */
        INSIDE_PERCENT = 50 /* of what goes late */
    };
    if (group->largest_drop * 100 < group->most * DROP_PERCENT || !piles_up(group) ||
        goes_in_any_order(group) || !goes_oldest_first(group)) {
        return false;
    }
    if (group->drops > 0 && group->freed_inside_percent >= INSIDE_PERCENT) {
        return true;
    }
    if (group->hides_frees) {
        return group->drops > 2 && takes_longer_each_time(group);
    }
    if (group->drops > 0 && goes_where_objects_are_made(view, group)) {
        return true;
    }
    switch (group->drops) {
    case 0:
        return false;
    case 1: /* in a recording that begins late, what came first is not known */
        if (view->facts->recording.begins_late) {
            return piles_up_again(group) && goes_elsewhere(view, group);
        }
        return piles_up_again(group) ||
               (group->last_run >= group->runs[0] && goes_elsewhere(view, group));
    case 2:
        return piles_up_again(group) || group->runs[0] > group->runs[2] + 1 ||
               leaves_more_each_time(group) ||
               (takes_longer_each_time(group) && goes_elsewhere(view, group) &&
                !view->facts->recording.begins_late);
    default:
        return takes_longer_each_time(group) ||
               (leaves_more_each_time(group) &&
                !(view->facts->places.has_modules && collects_itself(view, group))) ||
               (is_uneven(group) && view->facts->places.has_frames &&
                !(view->facts->places.has_python && collects_itself(view, group)));
    }
}

/* Whether what waits is enough to look for: of all lines together, since an object holds blocks of
 * several. */
static bool is_enough(const class_view *view)
{
    enum { LEAST_PERCENT = 10 }; /* of the peak */
    uint64_t most = 0;
    for (size_t i = 0; i < view->retained->count; i++) {
        const retained_group *group = &view->retained->groups[i];
        most += waits_for_collector(view, group) ? group->most : 0;
    }
    return most > 0 && most * 100 >= view->facts->recording.peak.amount.allocated * LEAST_PERCENT;
}

static bool look_for_collections(const class_view *view, gmd_job_finding *finding)
{
    char most[24], fall[24], line[LINE_TEXT];
    uint64_t largest = 0;
    if (!is_enough(view)) {
        return false;
    }
    for (size_t i = 0; i < view->retained->count; i++) {
        retained_group *group = &view->retained->groups[i];
        if (waits_for_collector(view, group)) {
            group->is_explained = true;
            finding->bytes += group->most;
            finding->bytes_per_iteration += group->rises ? group->risen / group->rises : 0;
            blame_line(finding, group->frame, group->most, false);
            blame_kept(finding, view, group);
            largest = gmd_max(group->largest_drop, largest);
        }
    }
    finding->confidence = weigh(view, 0.9);
    say_evidence(finding,
                 "Up to %s of blocks that no iteration uses any more pile up and are freed at "
                 "irregular moments, up to %s of a line at once: Python's cyclic garbage collector "
                 "frees them, so objects refer to each other in a circle.",
                 gmd_format_size(finding->bytes, most), gmd_format_size(largest, fall));
    say_fix(
        finding,
        "self.other = weakref.ref(other)  # break the circle that holds what %s makes, or del it "
        "when done; gc.collect() every few iterations bounds it",
        first_line(view, finding, line));
    return true;
}

static bool is_of_function(const class_view *view, const retained_group *group)
{
    unsigned parts = parts_of_group(view, group);
    return (parts & GMD_PART_FUNCTION) && !(parts & GMD_PART_BACKWARD);
}

static bool look_for_contexts(const class_view *view, gmd_job_finding *finding)
{
    enum { LEAST_PERCENT = 40 }; /* a context holds inputs of its function, too */
    char rate[24], most[24], line[LINE_TEXT];
    growth all = growth_of(view, NULL), own = growth_of(view, is_of_function);
    if (!is_growth_material(view, all) || own.bytes * 100 < all.bytes * LEAST_PERCENT) {
        return false;
    }
    blame_growth(finding, view, NULL);
    finding->confidence = weigh(view, 0.7);
    say_evidence(finding,
                 "%s more in each iteration, up to %s, made by an autograd.Function of the "
                 "program: its context keeps its own result, and the result its context.",
                 gmd_format_size(finding->bytes_per_iteration, rate),
                 gmd_format_size(finding->bytes, most));
    say_fix(finding, "ctx.save_for_backward(result)  # instead of ctx.result = result, for %s",
            first_line(view, finding, line));
    return true;
}

/* Whether all that grows is of one line, though other lines allocate, too: what the program puts
 * aside. A graph keeps what several operations save. */
static bool is_of_one_line(const class_view *view)
{
    const gmd_facts *f = view->facts;
    uint32_t line = GMD_NO_PLACE;
    for (size_t i = 0; i < view->retained->count; i++) {
        const retained_group *group = &view->retained->groups[i];
        if (retained_group_grows(group) && line != GMD_NO_PLACE && group->frame != line) {
            return false;
        }
        line = retained_group_grows(group) ? group->frame : line;
    }
    for (size_t i = 0; i < f->recording.lifetime_count; i++) {
        const gmd_lifetime *l = &f->recording.lifetimes[i];
        uint32_t frame = gmd_places_frame(&f->places, l->origin);
        if (gmd_iteration_of(&f->iterations, l->born) == 1 && l->born != GMD_BEFORE &&
            frame != line && frame != GMD_NO_PLACE) {
            return true;
        }
    }
    return false;
}

/* The moment of the first block of a graph that backward() frees; 0: there is none, or the
 * recording may have begun after it. */
static uint32_t first_trained(const gmd_facts *f)
{
    for (size_t i = 0; !f->recording.begins_late && i < f->recording.lifetime_count; i++) {
        const gmd_lifetime *l = &f->recording.lifetimes[i];
        if (l->born != GMD_BEFORE && is_freed_by_backward(f, l) &&
            !(gmd_places_parts(&f->places, l->origin) & GMD_PART_BACKWARD)) {
            return l->born; /* they come in order */
        }
    }
    return 0;
}

static bool is_before_training(const class_view *view, const retained_group *group)
{
    enum { OF_PASS = GMD_PART_MODULE | GMD_PART_BACKWARD | GMD_PART_FUNCTION };
    const gmd_facts *f = view->facts;
    uint32_t trained = first_trained(f);
    for (size_t i = 0; i < f->recording.lifetime_count; i++) {
        const gmd_lifetime *l = &f->recording.lifetimes[i];
        if (l->born != GMD_BEFORE &&
            gmd_origins_get(f->places.origins, l->origin).stack == group->stack) {
            return l->born < trained && !(parts_of_group(view, group) & OF_PASS);
        }
    }
    return false;
}

/* Whether all lines that grow had made something before anything was trained on: no graph of the
 * model leads to what they make. */
static bool precedes_training(const class_view *view, growth all)
{
    enum { LEAST_PERCENT = 95 };
    return loops_see_backward(view->facts) &&
           growth_of(view, is_before_training).bytes * 100 >= all.bytes * LEAST_PERCENT;
}

/* Whether what grows is what objects of the program hold, and no graph: it is allocated as they, or
 * layers of models that are called, are made; or in a job that trains nothing; or before the model
 * is first trained. */
static bool is_of_objects(const class_view *view, growth all)
{
    enum { MOST_BLOCKS = 2 };
    const gmd_facts *f = view->facts;
    if (all.is_of_constructors || (all.is_of_layers && f->places.has_modules)) {
        return true;
    }
    if (!f->places.has_frames) {
        return false;
    }
    if (loop_has_backward(view->loops, f, all.is_of_other_loop)) {
        return precedes_training(view, all);
    }
    if (f->places.has_modules) {
        return !may_be_graph(view);
    }
    return (f->places.has_python && !f->places.has_autograd) ||
           all.blocks_per_iteration <= MOST_BLOCKS || is_of_one_line(view);
}

static bool look_for_objects(const class_view *view, gmd_job_finding *finding)
{
    char rate[24], most[24], line[LINE_TEXT];
    growth all = growth_of(view, NULL);
    if (!is_growth_material(view, all) || !is_of_objects(view, all)) {
        return false;
    }
    blame_growth(finding, view, NULL);
    finding->confidence = weigh(view, 0.7);
    say_evidence(finding,
                 "%s more in each iteration, up to %s, held by objects that each iteration makes "
                 "and none frees: they refer to each other in a circle and wait for Python's "
                 "cyclic garbage collector, or a list keeps them.",
                 gmd_format_size(finding->bytes_per_iteration, rate),
                 gmd_format_size(finding->bytes, most));
    say_fix(finding,
            "self.other = weakref.ref(other)  # break the circle that holds what %s makes, or del "
            "it when done; if gc.collect() frees nothing, a list keeps it: remove it there",
            first_line(view, finding, line));
    return true;
}

bool look_for_reference_cycle(const class_view *view, gmd_job_finding *finding)
{
    return look_for_collections(view, finding) || look_for_contexts(view, finding) ||
           look_for_objects(view, finding);
}
