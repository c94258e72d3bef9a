/* class_checkpoint_cache.c - activations that are stored beside the graph or computed again in
 * backward(), and kept.
 *
 * It looks at what grows from iteration to iteration and was allocated by Python that backward()
 * itself ran (a custom autograd.Function, torch.utils.checkpoint), by way of
 * torch.utils.checkpoint, or by hooks that a layer calls. */
#include "classes.h"

#include "gmd_size.h"

static bool is_recomputed(const class_view *view, const retained_group *group)
{
    unsigned parts = parts_of_group(view, group);
    return (parts & GMD_PART_PYTHON) &&
           (parts & (GMD_PART_CHECKPOINT | GMD_PART_BACKWARD | GMD_PART_HOOK));
}

bool look_for_checkpoint_cache(const class_view *view, gmd_job_finding *finding)
{
    enum { LEAST_PERCENT = 40 }; /* with what is recomputed, gradients of it may be kept */
    char rate[24], most[24], line[LINE_TEXT];
    growth all = growth_of(view, NULL), recomputed = growth_of(view, is_recomputed);
    if (!is_growth_material(view, all) || recomputed.bytes * 100 < all.bytes * LEAST_PERCENT) {
        return false;
    }
    blame_growth(finding, view, is_recomputed); /* first: these lines are to blame */
    blame_growth(finding, view, NULL);
    finding->confidence = weigh(view, 0.9);
    say_evidence(finding,
                 "%s more in each iteration, up to %s, %u %% of it allocated by what backward() "
                 "computes again or hooks store: something keeps these activations.",
                 gmd_format_size(finding->bytes_per_iteration, rate),
                 gmd_format_size(finding->bytes, most),
                 (unsigned)(recomputed.bytes * 100 / all.bytes));
    say_fix(finding, "cache.clear()  # after each backward(): what %s stores outside its function",
            first_line(view, finding, line));
    return true;
}
