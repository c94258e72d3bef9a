/* class_cross_stream_pending.c - freed memory that waits for another stream.
 *
 * It looks at how much was freed and not yet free: blocks recorded on another stream stay active
 * until that stream's work is done. A few batches in flight are wanted; many, and a large share of
 * all memory, are a stream that falls behind. */
#include "classes.h"

#include "gmd_size.h"

#include <inttypes.h>

static bool is_pending(const class_view *view, const gmd_lifetime *l)
{
    return gmd_is_active_at(l, view->course.pending_at) &&
           !gmd_is_allocated_at(l, view->course.pending_at);
}

/* What waits at the moment when it was most. */
typedef struct queue {
    uint64_t blocks;
    uint32_t iterations; /* that they are of */
} queue;

/* Blocks come in the order of their iterations. */
static queue blame_queue(const class_view *view, gmd_job_finding *finding)
{
    const gmd_facts *f = view->facts;
    queue found = {0};
    uint32_t before = GMD_SET_UP;
    for (size_t i = 0; i < f->recording.lifetime_count; i++) {
        const gmd_lifetime *l = &f->recording.lifetimes[i];
        if (!is_pending(view, l)) {
            continue;
        }
        uint32_t iteration = gmd_iteration_of(&f->iterations, l->born);
        found.iterations += found.blocks == 0 || iteration != before;
        before = iteration;
        found.blocks++;
        blame_line(finding, gmd_places_frame(&f->places, l->origin), l->size, false);
    }
    return found;
}

/* A batch that is worked on, the next one and the one after are a queue that somebody meant. */
static bool is_long(queue waiting)
{
    enum { LEAST_ITERATIONS = 4, LEAST_BLOCKS = 6 };
    return waiting.iterations >= LEAST_ITERATIONS || waiting.blocks >= LEAST_BLOCKS;
}

bool look_for_cross_stream_pending(const class_view *view, gmd_job_finding *finding)
{
    enum {
        /* Two batches in flight of four that a step holds are 20 % in a healthy loader's job. */
        LEAST_PERCENT = 25,
        LEAST_MIB = 16
    };
    const gmd_recording *r = &view->facts->recording;
    const course *c = &view->course;
    char pending[24], active[24], line[LINE_TEXT];
    if (c->pending < LEAST_MIB * GMD_MIB ||
        c->pending * 100 < r->peak.amount.active * LEAST_PERCENT) {
        return false;
    }
    queue waiting = blame_queue(view, finding);
    if (!is_long(waiting)) {
        return false;
    }
    finding->bytes = c->pending;
    finding->confidence = weigh(view, 0.95);
    say_evidence(finding,
                 "At one moment %" PRIu64 " blocks (%s) were freed and still waited for another "
                 "stream that had used them, of %s at the peak: record_stream() keeps each until "
                 "that stream's work is done, and the host is far ahead of it.",
                 waiting.blocks, gmd_format_size(c->pending, pending),
                 gmd_format_size(r->peak.amount.active, active));
    say_fix(finding,
            "torch.cuda.current_stream().wait_stream(side)  # before the last reference to what %s "
            "makes goes, instead of record_stream(); or side.synchronize() every few batches",
            first_line(view, finding, line));
    return true;
}
