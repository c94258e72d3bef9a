/* class_cached_not_released.c - memory that an early phase of the job needed, and that the
 * allocator keeps though nobody asks for it.
 *
 * It looks at what the second half of the recording needs at its peak: much less than is reserved
 * all that time, and what is idle lies in segments without any block, which could go back. Where
 * the job went on after the recording, the phase may have come again, and nothing is said. */
#include "classes.h"

#include "gmd_min.h"
#include "gmd_size.h"

/* The lines whose requests it was taken for. */
static void blame_takers(const class_view *view, gmd_job_finding *finding)
{
    const gmd_recording *r = &view->facts->recording;
    for (size_t i = 0; i < r->reserved_count; i++) {
        if (gmd_is_reserved_at(&r->reserved[i], r->last)) {
            uint32_t frame = gmd_places_frame(&view->facts->places, r->reserved[i].origin);
            blame_line(finding, frame, r->reserved[i].size, false);
        }
    }
}

/* Whether there was a phase that needed it at once: before the recording, as far as can be known,
 * or in its first half. What was taken bit by bit is fragmentation. */
static bool was_needed(const class_view *view)
{
    enum { LEAST_PERCENT = 35 };
    const gmd_recording *r = &view->facts->recording;
    uint64_t once = gmd_max(r->peak.amount.active, r->at_start.reserved);
    return once > view->course.needed &&
           (once - view->course.needed) * 100 >= view->course.idle * LEAST_PERCENT;
}

/* Whether it is a good part of what is reserved, and enough for another process to use. What was
 * reserved before the recording may have been needed for less than that. */
static bool is_much(const class_view *view)
{
    enum {
        LEAST_PERCENT = 52, /* shapes that change leave up to 50 % idle */
        LEAST_MIB = 96,
        LEAST_LATE_MIB = 192
    };
    bool is_late = view->facts->recording.begins_late;
    uint64_t least = (is_late ? LEAST_LATE_MIB : LEAST_MIB) * GMD_MIB;
    return view->course.idle >= least &&
           view->course.idle * 100 >= reserved_at_end(view) * LEAST_PERCENT;
}

/* Where no iterations are found: whether all that came and went in the second half did so again and
 * again. */
static bool is_at_work(const class_view *view)
{
    enum { LEAST_TIMES = 5 };
    const course *c = &view->course;
    return !view->facts->iterations.count && c->asked_then > 0 &&
           c->asked_then >= LEAST_TIMES * (c->needed - c->needed_always);
}

bool look_for_cached_not_released(const class_view *view, gmd_job_finding *finding)
{
    enum { LEAST_ITERATIONS = 3 };
    const course *c = &view->course;
    uint64_t at_end = reserved_at_end(view);
    char idle[24], reserved[24], line[LINE_TEXT];
    if (view->refusal || view->facts->recording.ends_early ||
        !(goes_round(view, LEAST_ITERATIONS) || is_at_work(view)) || !is_much(view) ||
        view->free->by_cause[GMD_FREE_CACHED] * 2 < c->idle || !was_needed(view)) {
        return false;
    }
    blame_takers(view, finding);
    finding->bytes = c->idle;
    finding->confidence = weigh(view, 0.9);
    say_evidence(finding,
                 "%s of %s reserved is idle throughout the second half of the recording, in "
                 "segments without any block: an earlier phase needed it, and the cache keeps it "
                 "from other processes.",
                 gmd_format_size(c->idle, idle), gmd_format_size(at_end, reserved));
    say_fix(finding,
            "torch.cuda.empty_cache()  # once, after the phase that needed it (%s), with "
            "its tensors deleted",
            first_line(view, finding, line));
    return true;
}
