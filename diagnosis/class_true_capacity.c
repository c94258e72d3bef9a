/* class_true_capacity.c - a job that does not fit.
 *
 * It looks at a refusal that ended the job. What is live then, and what was asked, is more than
 * there is: nothing grows from iteration to iteration, and what is free beside blocks would not
 * have been enough. */
#include "classes.h"

#include "gmd_size.h"

static void blame_holders(const class_view *view, gmd_job_finding *finding)
{
    const gmd_recording *r = &view->facts->recording;
    for (size_t i = 0; i < r->lifetime_count; i++) {
        const gmd_lifetime *l = &r->lifetimes[i];
        if (gmd_is_allocated_at(l, r->ended_by_oom)) {
            blame_line(finding, gmd_places_frame(&view->facts->places, l->origin), l->size, false);
            finding->bytes += l->size;
        }
    }
}

/* By what holds most, or by the request itself where that is more. */
static void tell_fix(const class_view *view, const gmd_snapshot_event *refused,
                     gmd_job_finding *finding)
{
    const gmd_facts *f = view->facts;
    uint64_t by_category[GMD_CATEGORIES + 1] = {0};
    char line[LINE_TEXT];
    const char *first = first_line(view, finding, line);
    for (size_t i = 0; i < f->recording.lifetime_count; i++) {
        const gmd_lifetime *l = &f->recording.lifetimes[i];
        by_category[f->categories.of_lifetime[i]] +=
            gmd_is_allocated_at(l, f->recording.ended_by_oom) ? l->size : 0;
    }
    if (refused->size >= finding->bytes) {
        say_fix(
            finding,
            "for part in x.split(n):  # %s asks for %u %% of all at once: do it in parts, or by "
            "an operation that does not store it (scaled_dot_product_attention)",
            first, (unsigned)(refused->size * 100 / (refused->size + finding->bytes)));
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

bool look_for_true_capacity(const class_view *view, gmd_job_finding *finding)
{
    const gmd_facts *f = view->facts;
    const gmd_snapshot_event *e = gmd_event_at(&f->recording, f->recording.ended_by_oom);
    char asked[24], held[24], beside[24];
    if (!e || has_material_growth(view) || is_refused_for_split(view)) {
        return false;
    }
    blame_line(finding, gmd_places_frame(&f->places, e->origin), e->size, false);
    blame_holders(view, finding);
    finding->confidence = weigh(view, f->iterations.count ? 0.9 : 0.7);
    say_evidence(finding,
                 "The job ends as %s is refused. %s is in use then, %s of the rest is free beside "
                 "it, and nothing grows from iteration to iteration: it does not fit.",
                 gmd_format_size(e->size, asked), gmd_format_size(finding->bytes, held),
                 gmd_format_size(view->free->by_cause[GMD_FREE_SPLIT], beside));
    tell_fix(view, e, finding);
    return true;
}
