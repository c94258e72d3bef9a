/* class_checkpoint_cache.c - activations that activation checkpointing recomputed, and that are
 * kept.
 *
 * It looks at what grows from iteration to iteration and was allocated by way of
 * torch.utils.checkpoint. */
#include "classes.h"

#include "gmd_size.h"

bool look_for_checkpoint_cache(const class_view *view, gmd_job_finding *finding)
{
    char rate[24], most[24];
    for (size_t i = 0; i < view->retained->count; i++) {
        const retained_group *group = &view->retained->groups[i];
        if (group_grows(view, group) && group_passes(view, group, "torch/utils/checkpoint.py")) {
            blame_group(finding, view, group);
        }
    }
    if (finding->bytes == 0) {
        return false;
    }
    finding->confidence = 0.85;
    say_evidence(finding,
                 "%s more in each iteration, up to %s, allocated while torch.utils.checkpoint "
                 "recomputes: something keeps what it recomputed.",
                 gmd_format_size(finding->bytes_per_iteration, rate),
                 gmd_format_size(finding->bytes, most));
    say_fix(finding, "del cache[...]  # what the checkpointed function stores outside itself; keep "
                     "x.detach() if the values are needed");
    return true;
}
