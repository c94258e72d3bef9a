/* class_true_capacity.c - a job that does not fit.
 *
 * It looks at a refusal that cost the job something. What is live then, and what was asked, is more
 * than there is, or than a limit allows: neither what leaks nor what is free beside blocks would
 * have been enough. */
#include "classes.h"

#include "gmd_size.h"

#include <stdio.h>

/* What leaks is reported as the leak that it is. */
static bool is_held(const class_view *view, const gmd_lifetime *l)
{
    uint32_t frame = gmd_places_frame(&view->facts->places, l->origin);
    return gmd_is_allocated_at(l, view->refusal->moment) &&
           gmd_leak_of(view->leaks, view->leak_count, frame) == view->leak_count;
}

static void blame_holders(const class_view *view, gmd_job_finding *finding)
{
    const gmd_recording *r = &view->facts->recording;
    for (size_t i = 0; i < r->lifetime_count; i++) {
        const gmd_lifetime *l = &r->lifetimes[i];
        if (is_held(view, l)) {
            blame_line(finding, gmd_places_frame(&view->facts->places, l->origin), l->size, false);
            finding->bytes += l->size;
        }
    }
}

/* By what holds most, or by the request itself where that is more. */
static void tell_fix(const class_view *view, gmd_job_finding *finding)
{
    const gmd_facts *f = view->facts;
    const uint64_t refused = view->refusal->requested;
    uint64_t by_category[GMD_CATEGORIES + 1] = {0};
    char line[LINE_TEXT];
    const char *first = first_line(view, finding, line);
    for (size_t i = 0; i < f->recording.lifetime_count; i++) {
        const gmd_lifetime *l = &f->recording.lifetimes[i];
        by_category[f->categories.of_lifetime[i]] += is_held(view, l) ? l->size : 0;
    }
    if (refused > 0 && refused >= finding->bytes) { /* a damaged recording may refuse nothing */
        say_fix(
            finding,
            "for part in x.split(n):  # %s asks for %u %% of all at once: do it in parts, or by "
            "an operation that does not store it (scaled_dot_product_attention)",
            first, (unsigned)((double)refused / ((double)refused + (double)finding->bytes) * 100));
    } else if (by_category[GMD_OPTIMIZER_STATE] * 2 > finding->bytes) {
        say_fix(finding, "optimizer = torch.optim.SGD(model.parameters(), lr)  # or another with "
                         "less state, 8-bit or sharded (FSDP): the state holds most");
    } else {
        say_fix(
            finding,
            "y = checkpoint(layer, x, use_reentrant=False)  # for the layers that %s calls; or a "
            "smaller batch, or torch.autocast",
            first);
    }
}

static void tell_evidence(const class_view *view, gmd_job_finding *finding)
{
    const gmd_oom *oom = view->refusal;
    char refusal[REFUSAL_TEXT], held[24], beside[24], leaked[24], rest[80], limit[120] = "";
    gmd_format_size(oom->leaked, leaked);
    if (oom->leaked) {
        snprintf(rest, sizeof rest, "and the %s that leak are less than what is missing", leaked);
    } else {
        snprintf(rest, sizeof rest,
                 view->facts->iterations.count ? "and nothing grows from iteration to iteration"
                                               : "and no iterations are recorded");
    }
    if (oom->cause == GMD_OOM_LIMIT) {
        char free_text[24];
        snprintf(limit, sizeof limit,
                 " into what a limit allows; the device has %s free "
                 "(set_per_process_memory_fraction)",
                 gmd_format_size(oom->device_free, free_text));
    }
    say_evidence(finding,
                 "%s. %s is in use then, %s of the rest is free beside it, %s: it does "
                 "not fit%s.",
                 refusal_text(view, refusal), gmd_format_size(oom->free.amount.allocated, held),
                 gmd_format_size(gmd_oom_scattered(oom), beside), rest, limit);
}

bool look_for_true_capacity(const class_view *view, gmd_job_finding *finding)
{
    const gmd_facts *f = view->facts;
    const gmd_oom *oom = view->refusal;
    if (!oom || (oom->cause != GMD_OOM_CAPACITY && oom->cause != GMD_OOM_LIMIT)) {
        return false;
    }
    blame_line(finding, gmd_places_frame(&f->places, oom->origin), oom->requested, false);
    blame_holders(view, finding);
    finding->confidence = weigh(view, f->iterations.count ? 0.9 : 0.7);
    tell_evidence(view, finding);
    tell_fix(view, finding);
    return true;
}
