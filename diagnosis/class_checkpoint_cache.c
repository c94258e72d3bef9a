/* class_checkpoint_cache.c - activations that are stored beside the graph or computed again in
 * backward(), and kept.
 *
 * It looks at what grows from iteration to iteration and was allocated by Python that backward()
 * itself ran (a custom autograd.Function, torch.utils.checkpoint), by way of
 * torch.utils.checkpoint, by hooks that a layer calls, or by an autograd.Function of the program
 * that calls modules again in backward(). */
#include "classes.h"

#include "gmd_size.h"

static bool is_recomputed(const class_view *view, const retained_group *group)
{
    unsigned parts = parts_of_group(view, group);
    return (parts & GMD_PART_PYTHON) &&
           (parts & (GMD_PART_CHECKPOINT | GMD_PART_BACKWARD | GMD_PART_HOOK));
}

/* Whether most backward passes call modules: something of the program computes its activations
 * again.
 */
static bool recomputes(const class_view *view)
{
    enum { AGAIN = GMD_PART_BACKWARD | GMD_PART_MODULE };
    const gmd_facts *f = view->facts;
    uint32_t with = 0, before = GMD_SET_UP;
    for (size_t i = 0; i < f->recording.lifetime_count; i++) {
        const gmd_lifetime *l = &f->recording.lifetimes[i];
        uint32_t at = gmd_iteration_of(&f->iterations, l->born);
        if (l->born != GMD_BEFORE && at < f->iterations.other && at != before &&
            (gmd_places_parts(&f->places, l->origin) & AGAIN) == AGAIN) {
            with++;
            before = at; /* they come in order */
        }
    }
    return with * 2 > f->iterations.other;
}

/* Where that is so, what the program's own autograd.Function makes on the way forward is what it
 * computes again from. */
static bool is_of_segment(const class_view *view, const retained_group *group)
{
    return is_recomputed(view, group) ||
           ((parts_of_group(view, group) & GMD_PART_FUNCTION) && recomputes(view));
}

bool look_for_checkpoint_cache(const class_view *view, gmd_job_finding *finding)
{
    enum { LEAST_PERCENT = 40 }; /* with what is recomputed, gradients of it may be kept */
    char rate[24], most[24], line[LINE_TEXT];
    growth all = growth_of(view, NULL), recomputed = growth_of(view, is_of_segment);
    if (!is_growth_material(view, all) || recomputed.bytes * 100 < all.bytes * LEAST_PERCENT) {
        return false;
    }
    blame_growth(finding, view, is_of_segment); /* first: these lines are to blame */
    blame_growth(finding, view, NULL);
    finding->confidence = weigh(view, 0.9);
    say_evidence(finding,
                 "%s more in each iteration, up to %s, %u %% of it allocated by what backward() "
                 "computes again, or computes again from, or hooks store: something keeps these "
                 "activations.",
                 gmd_format_size(finding->bytes_per_iteration, rate),
                 gmd_format_size(finding->bytes, most),
                 (unsigned)(recomputed.bytes * 100 / all.bytes));
    say_fix(finding, "cache.clear()  # after each backward(): what %s stores outside its function",
            first_line(view, finding, line));
    return true;
}
