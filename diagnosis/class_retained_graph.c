/* class_retained_graph.c - metrics, outputs or grad_fn that are kept, and with them their graphs.
 *
 * It looks at what grows from iteration to iteration and that no narrower class has explained. */
#include "classes.h"

#include "gmd_size.h"

bool look_for_retained_graph(const class_view *view, gmd_job_finding *finding)
{
    enum { MANY_BLOCKS = 4 };
    char rate[24], most[24], line[LINE_TEXT];
    growth all = growth_of(view, NULL);
    if (!is_growth_material(view, all)) {
        return false;
    }
    bool is_graph = all.blocks_per_iteration >= MANY_BLOCKS && all.lines > 1; /* else results */
    blame_growth(finding, view, NULL);
    finding->confidence = weigh(view, is_graph ? 0.9 : 0.8);
    say_evidence(finding,
                 "%s more in each iteration, up to %s, and none of it is freed: something keeps a "
                 "tensor of each iteration%s.",
                 gmd_format_size(finding->bytes_per_iteration, rate),
                 gmd_format_size(finding->bytes, most),
                 is_graph ? ", and with it the graph that made it" : "");
    say_fix(finding,
            is_graph
                ? "losses.append(loss.item())  # the number, not the tensor with the graph that "
                  "%s makes; for more than a number outputs.append(output.detach().cpu())"
                : "outputs.append(output.detach().cpu())  # of what %s makes; or .item() of a "
                  "single number, or not at all",
            first_line(view, finding, line));
    return true;
}
