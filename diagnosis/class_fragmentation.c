/* class_fragmentation.c - reserved memory that is free and cannot serve what is asked.
 *
 * It looks at three forms. A request is refused, and that costs the job something, though enough is
 * free in several places, or in one that the allocator did not look at. Blocks that stay keep their
 * segments from going back: at the end much of what is reserved lies beside them, or much was never
 * in use at once. And requests of ever new sizes that no free block fits: what is reserved is far
 * more than was ever active, and either segments are taken for new sizes late in the job, though
 * less is needed than before, or its sizes are new to the end. What is given back is no such
 * memory. */
#include "classes.h"

#include "gmd_min.h"
#include "gmd_size.h"

#include <inttypes.h>

/* --- refused --------------------------------------------------------------------------------- */

static uint64_t blame_keepers(const gmd_free_memory *free_memory, gmd_job_finding *finding)
{
    uint64_t blocks = 0;
    for (size_t i = 0; i < free_memory->keeper_count; i++) {
        const gmd_keeper *keeper = &free_memory->keepers[i];
        blame_line(finding, keeper->frame, keeper->bytes, false);
        blocks += keeper->blocks;
    }
    return blocks;
}

static bool look_for_refusal(const class_view *view, gmd_job_finding *finding)
{
    const gmd_oom *oom = view->refusal;
    char refusal[REFUSAL_TEXT], scattered[24], reserved[24];
    if (!oom || oom->cause != GMD_OOM_FRAGMENTATION) {
        return false;
    }
    uint64_t blocks = blame_keepers(&oom->free, finding);
    finding->bytes = gmd_oom_scattered(oom);
    finding->confidence = weigh(view, 0.9);
    say_evidence(finding,
                 "%s, though %s of %s reserved is free: in several places, beside "
                 "%" PRIu64 " blocks that keep their segments.",
                 refusal_text(view, refusal), gmd_format_size(finding->bytes, scattered),
                 gmd_format_size(oom->free.amount.reserved, reserved), blocks);
    return true;
}

static bool look_for_defect(const class_view *view, gmd_job_finding *finding)
{
    const gmd_oom *oom = view->refusal;
    char refusal[REFUSAL_TEXT], fitting[24], line[LINE_TEXT];
    if (!oom || oom->cause != GMD_OOM_ALLOCATOR) {
        return false;
    }
    finding->bytes = oom->free.by_cause[GMD_FREE_FITTING];
    finding->confidence = weigh(view, 0.9);
    blame_line(finding, gmd_places_frame(&view->facts->places, oom->origin), oom->requested, false);
    say_evidence(finding,
                 "%s, though %s is free in blocks that fit it: PyTorch does not look at its free "
                 "blocks again after it has waited for other streams (pytorch#189504).",
                 refusal_text(view, refusal), gmd_format_size(finding->bytes, fitting));
    say_fix(finding,
            "torch.cuda.synchronize()  # before %s, so that what other streams have used is free "
            "by then; or catch the error: the same request again is served",
            first_line(view, finding, line));
    return true;
}

/* --- beside blocks that stay ----------------------------------------------------------------- */

/* What was idle throughout the second half, and is not in segments that could go back. */
static uint64_t idle_beside_blocks(const class_view *view)
{
    enum { LEAST_ITERATIONS = 3 };
    uint64_t cached = view->free->by_cause[GMD_FREE_CACHED];
    return goes_round(view, LEAST_ITERATIONS) && view->course.idle > cached
               ? view->course.idle - cached
               : 0;
}

/* What leaks keeps segments. What is gathered on purpose does, too, and is less of a loss than what
 * lies beside it if that is more. */
static bool is_by_leak(const class_view *view, uint64_t free)
{
    uint64_t leaked = 0;
    for (size_t i = 0; i < view->leak_count; i++) {
        leaked += view->leaks[i].bytes;
    }
    return has_material_growth(view) && (free < leaked || !growth_may_be_meant(view));
}

static bool look_for_keepers(const class_view *view, gmd_job_finding *finding)
{
    enum {
        LEAST_PERCENT = 40,      /* of reserved: at an iteration's end up to 32 % in healthy jobs */
        LEAST_IDLE_PERCENT = 20, /* idle all the time: none in healthy jobs */
        LEAST_MIB = 64           /* less is a few segments' rest */
    };
    uint64_t free = view->free->by_cause[GMD_FREE_SPLIT], all = reserved_at_end(view);
    uint64_t idle = gmd_min(idle_beside_blocks(view), free);
    char split[24], reserved[24];
    if (view->refusal || free < LEAST_MIB * GMD_MIB || is_by_leak(view, free) ||
        (free * 100 < all * LEAST_PERCENT && idle * 100 < all * LEAST_IDLE_PERCENT &&
         !pins_unused_memory(view))) {
        return false;
    }
    uint64_t blocks = blame_keepers(view->free, finding);
    finding->bytes = free;
    finding->confidence = weigh(view, 0.9);
    say_evidence(finding,
                 "%s of %s reserved is free, but lies beside %" PRIu64 " blocks that keep its "
                 "segments: it cannot go back, and serves only what fits between them.",
                 gmd_format_size(free, split), gmd_format_size(all, reserved), blocks);
    return true;
}

/* --- sizes that do not fit ------------------------------------------------------------------- */

/* The lines whose requests segments were taken for, after a quarter of the recording or at all. */
static void blame_takers(const class_view *view, bool late, gmd_job_finding *finding)
{
    const gmd_recording *r = &view->facts->recording;
    for (size_t i = 0; i < r->reserved_count; i++) {
        const gmd_reserved *range = &r->reserved[i];
        bool is_late = (uint64_t)(range->taken - r->first) * 4 >= r->last - r->first;
        if (range->taken != GMD_BEFORE && (is_late || !late)) {
            blame_line(finding, gmd_places_frame(&view->facts->places, range->origin), range->size,
                       false);
        }
    }
}

/* Memory that waits for another stream cannot be reused either, and that is another class. */
static bool waits_for_streams(const class_view *view)
{
    enum { LEAST_PERCENT = 25 };
    return view->course.pending * 100 >= view->facts->recording.peak.amount.active * LEAST_PERCENT;
}

static void tell_misfits(const class_view *view, bool is_late, gmd_job_finding *finding)
{
    const course *c = &view->course;
    char more[24], reserved[24], active[24], late[24];
    gmd_format_size(c->reserved, reserved);
    gmd_format_size(finding->bytes, more);
    gmd_format_size(view->facts->recording.peak.amount.active, active);
    if (is_late) {
        say_evidence(finding,
                     "%s is reserved, %s more than was ever in use (%s), and %s of it was taken "
                     "late, while less was in use than before: requests of new sizes fit no free "
                     "block.",
                     reserved, more, active, gmd_format_size(c->taken_late, late));
    } else {
        say_evidence(finding,
                     "%s is reserved, %s more than was ever in use (%s), and to the end the job "
                     "asks for sizes that it never asked for before: they fit no free block.",
                     reserved, more, active);
    }
}

static bool look_for_misfits(const class_view *view, gmd_job_finding *finding)
{
    enum { LEAST_ITERATIONS = 3 };
    if (!is_taken_for_new_sizes(view) || !goes_round(view, LEAST_ITERATIONS) || view->refusal ||
        waits_for_streams(view) || view->leak_count || has_material_growth(view)) {
        return false;
    }
    blame_takers(view, is_taken_late(view), finding);
    finding->bytes = never_in_use(view);
    finding->confidence = weigh(view, 0.85);
    tell_misfits(view, is_taken_late(view), finding);
    return true;
}

static void tell_fix(const class_view *view, gmd_job_finding *finding, bool has_keepers)
{
    char line[LINE_TEXT];
    const char *first = first_line(view, finding, line);
    if (view->facts->snapshot->settings.is_expandable) {
        say_fix(finding,
                "buffer = torch.empty(largest, device='cuda')  # once, and slices of it for %s: "
                "expandable segments are on already",
                first);
    } else {
        say_fix(finding,
                has_keepers
                    ? "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True  # or let what stays "
                      "(%s) be allocated before what goes again, or be slices of one buffer"
                    : "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True  # or, where that is "
                      "not to be had, pad the shapes of %s to a few; max_split_size_mb:128",
                first);
    }
}

bool look_for_fragmentation(const class_view *view, gmd_job_finding *finding)
{
    if (look_for_defect(view, finding)) {
        return true;
    }
    bool has_keepers = look_for_refusal(view, finding) || look_for_keepers(view, finding);
    if (!has_keepers && !look_for_misfits(view, finding)) {
        return false;
    }
    tell_fix(view, finding, has_keepers);
    return true;
}
