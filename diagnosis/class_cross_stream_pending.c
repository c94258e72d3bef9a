/* class_cross_stream_pending.c - freed memory that waits for another stream.
 *
 * It looks at how much was freed and not yet free: blocks recorded on another stream stay active
 * until that stream's work is done. A few batches in flight are wanted; a large share of all memory
 * is a stream that falls behind. */
#include "classes.h"

#include "gmd_size.h"

#include <inttypes.h>

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
    uint64_t blocks = 0;
    if (c->pending < LEAST_MIB * GMD_MIB ||
        c->pending * 100 < r->peak.amount.active * LEAST_PERCENT) {
        return false;
    }
    for (size_t i = 0; i < r->lifetime_count; i++) {
        const gmd_lifetime *l = &r->lifetimes[i];
        if (gmd_is_active_at(l, c->pending_at) && !gmd_is_allocated_at(l, c->pending_at)) {
            blame_line(finding, gmd_places_frame(&view->facts->places, l->origin), l->size, false);
            blocks++;
        }
    }
    finding->bytes = c->pending;
    finding->confidence = weigh(view, 0.95);
    say_evidence(finding,
                 "At one moment %" PRIu64 " blocks (%s) were freed and still waited for another "
                 "stream that had used them, of %s at the peak: record_stream() keeps each until "
                 "that stream's work is done, and the host is far ahead of it.",
                 blocks, gmd_format_size(c->pending, pending),
                 gmd_format_size(r->peak.amount.active, active));
    say_fix(finding,
            "torch.cuda.current_stream().wait_stream(side)  # before the last reference to what %s "
            "makes goes, instead of record_stream(); or side.synchronize() every few batches",
            first_line(view, finding, line));
    return true;
}
