/* class_reference_cycle.c - memory that waits for Python's cyclic garbage collector.
 *
 * Such memory grows from iteration to iteration, until the collector runs: then that of many
 * iterations is freed at once, in the middle of whatever line made an object. Where a line frees
 * that allocates nothing else, the program collects by itself (gc.collect()), and means it. */
#include "classes.h"

#include "gmd_size.h"

/* Falls of so many iterations' growth at once. */
enum { LEAST_ITERATIONS_FREED = 3 };

/* A program that collects by itself does it in one line, which allocates nothing. The collector
 * runs wherever an object is made. */
static bool collects_itself(const class_view *view, const retained_group *group)
{
    enum { MOST_PERCENT = 60 };
    const gmd_facts *f = view->facts;
    if (group->freed_percent < MOST_PERCENT) {
        return false;
    }
    for (size_t i = 0; i < f->recording.lifetime_count; i++) {
        if (gmd_places_frame(&f->places, f->recording.lifetimes[i].origin) == group->freed_in) {
            return false;
        }
    }
    return true;
}

static bool waits_for_collector(const class_view *view, const retained_group *group)
{
    return group->growth > 0 && group->falls > 0 && group->rises > 2 * group->falls &&
           group->largest_fall >= (uint64_t)group->growth * LEAST_ITERATIONS_FREED &&
           !collects_itself(view, group);
}

bool look_for_reference_cycle(const class_view *view, gmd_job_finding *finding)
{
    char most[24], fall[24];
    uint64_t largest = 0;
    for (size_t i = 0; i < view->retained->count; i++) {
        const retained_group *group = &view->retained->groups[i];
        if (waits_for_collector(view, group)) {
            blame_group(finding, view, group);
            largest = group->largest_fall > largest ? group->largest_fall : largest;
        }
    }
    if (finding->bytes == 0) {
        return false;
    }
    finding->confidence = 0.9;
    say_evidence(finding,
                 "Up to %s of blocks that no iteration uses any more pile up and are freed at "
                 "irregular moments, %s at once, inside lines that make objects: Python's cyclic "
                 "garbage collector frees them, so objects refer to each other in a circle.",
                 gmd_format_size(finding->bytes, most), gmd_format_size(largest, fall));
    say_fix(finding, "self.other = weakref.ref(other)  # break the circle; or del it when done; "
                     "gc.collect() now and then bounds it");
    return true;
}
