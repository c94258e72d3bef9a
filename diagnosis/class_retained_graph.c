/* class_retained_graph.c - metrics, outputs or grad_fn that are kept, and with them their graphs.
 *
 * It looks at what grows from iteration to iteration and is of no narrower class: neither of a
 * recurrent module nor of a checkpoint. */
#include "classes.h"

#include "gmd_size.h"

bool look_for_retained_graph(const class_view *view, gmd_job_finding *finding)
{
    char rate[24], most[24];
    gmd_job_finding narrower = {0};
    if (look_for_hidden_state(view, &narrower)) {
        return false;
    }
    for (size_t i = 0; i < view->retained->count; i++) {
        const retained_group *group = &view->retained->groups[i];
        if (group_grows(view, group) && !group_passes(view, group, "torch/utils/checkpoint.py")) {
            blame_group(finding, view, group);
        }
    }
    if (finding->bytes == 0) {
        return false;
    }
    finding->confidence = 0.85;
    say_evidence(finding,
                 "%s more in each iteration, up to %s, and none of it is ever freed: something "
                 "keeps a tensor of each iteration, and with it the graph that made it.",
                 gmd_format_size(finding->bytes_per_iteration, rate),
                 gmd_format_size(finding->bytes, most));
    say_fix(finding, "losses.append(loss.item())  # or .detach(): keep the number, not the tensor");
    return true;
}
