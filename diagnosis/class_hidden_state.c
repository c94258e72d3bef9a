/* class_hidden_state.c - the state of a recurrent network that chains the graphs of all iterations.
 *
 * It looks at what grows from iteration to iteration: if most of it is allocated inside recurrent
 * modules, each state keeps the graph that made it, and that graph the state before. */
#include "classes.h"

#include "gmd_size.h"

static bool is_recurrent(const class_view *view, const retained_group *group)
{
    return group_passes(view, group, "torch/nn/modules/rnn.py");
}

bool look_for_hidden_state(const class_view *view, gmd_job_finding *finding)
{
    uint64_t recurrent = 0;
    char rate[24], most[24];
    for (size_t i = 0; i < view->retained->count; i++) {
        const retained_group *group = &view->retained->groups[i];
        if (group_grows(view, group)) {
            blame_group(finding, view, group);
            recurrent += is_recurrent(view, group) ? group->most : 0;
        }
    }
    if (recurrent * 2 < finding->bytes || finding->bytes == 0) {
        return false;
    }
    finding->confidence = 0.9;
    say_evidence(finding,
                 "%s more in each iteration, up to %s, from recurrent modules: the state that goes "
                 "into an iteration still holds the graph of the one before.",
                 gmd_format_size(finding->bytes_per_iteration, rate),
                 gmd_format_size(finding->bytes, most));
    say_fix(finding, "hidden = hidden.detach()  # between iterations; for an LSTM "
                     "hidden = tuple(h.detach() for h in hidden)");
    return true;
}
