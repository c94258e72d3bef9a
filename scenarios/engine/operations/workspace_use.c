#include "workspace_use.h"

#include "gmd_min.h"
#include "gmd_operations.h"

#include <string.h>

/* The one place where the errors of the models stand: how far they were off on calls of cuDNN that
 * they were not made from, as shares of the call's tensors. `usual`: 19 in 20 were no further off;
 * where a table says from what to what a workspace may be, no further outside.
 *
 * All are of 16,240 calls that integrations/workspaces recorded on an H200 (issue 21), by
 * tests/scenarios/workspace_errors: medians and usual errors of those that were held, the worst of
 * all. Trials and other batches have none held: there each call is estimated without itself. */
static const struct model_error {
    double median, usual, worst;
} errors[WORKSPACE_MODELS] = {
    [MODEL_CONV_FORWARD] = {0.061, 1.0, 27.2},   [MODEL_CONV_BACKWARD] = {0.185, 1.89, 1031},
    [MODEL_CONV_TRIALS] = {0.020, 28.4, 104},    [MODEL_CONV_OTHER_BATCH] = {0, 0, 774},
    [MODEL_CONV_NEAREST] = {0.017, 0.012, 350},  [MODEL_RNN] = {0, 0.39, 5.37},
    [MODEL_RNN_NARROW] = {0.0002, 0.054, 0.126},
};

/* The table that gmd is built with is read when the first call asks for it. */
static const struct gmd_workspaces *table_of(struct engine *engine)
{
    if (!engine->recorded && !engine->builtin) {
        gmd_error error;
        if (gmd_workspaces_builtin(&engine->builtin, &error) != GMD_OK) {
            engine->hooks.no_memory(engine->hooks.context);
        }
    }
    return engine->recorded ? engine->recorded : engine->builtin;
}

/* The stream is the parent's, too: a process that ends by _exit() has written its lines. */
static void list_unrecorded(struct engine *engine, const gmd_workspace_call *call)
{
    if (engine->unrecorded && gmd_workspaces_note(&engine->missing, call)) {
        gmd_workspace_call_put(call, engine->unrecorded);
        fputc('\n', engine->unrecorded);
        fflush(engine->unrecorded);
    }
}

const gmd_workspace *workspace_recorded(struct engine *engine, const gmd_workspace_call *call)
{
    const gmd_workspace *found = gmd_workspaces_find(table_of(engine), call);
    if (!found) {
        list_unrecorded(engine, call);
    }
    return found;
}

void workspace_from_table(const gmd_workspaces *table, const gmd_workspace_call *call,
                          workspace_estimate *estimate)
{
    gmd_workspace_guess guess;
    if (!gmd_workspaces_nearest(table, call, &guess)) {
        return;
    }
    estimate->model = MODEL_CONV_NEAREST;
    if (gmd_workspaces_interpolate(table, call, &guess.bytes)) {
        estimate->model = MODEL_CONV_OTHER_BATCH;
    }
    estimate->bytes = guess.bytes;
    estimate->least = gmd_min(guess.least, guess.bytes);
    estimate->most = gmd_max(guess.most, guess.bytes);
}

/* What was said of a call. */
struct workspace_said {
    gmd_workspace_call call;
    workspace_estimate estimate;
    struct workspace_said *next;
};

void workspace_estimated(struct engine *engine, const gmd_workspace_call *call,
                         workspace_estimate *estimate)
{
    struct workspace_said *said = engine->said;
    while (said && memcmp(&said->call, call, sizeof *call) != 0) {
        said = said->next;
    }
    if (!said) {
        said = host_take(engine, sizeof *said);
        *said = (struct workspace_said){*call, *estimate, engine->said};
        workspace_from_table(table_of(engine), call, &said->estimate);
        engine->said = said;
    }
    *estimate = said->estimate;
}

workspace_range workspace_range_of(const workspace_estimate *estimate)
{
    uint64_t off = (uint64_t)((double)estimate->tensors * errors[estimate->model].usual);
    return (workspace_range){estimate->least > off ? estimate->least - off : 0,
                             estimate->most + off};
}

uint64_t workspace_count(struct engine *engine, const uint64_t *recorded,
                         workspace_estimate estimate)
{
    gmd_workspace_use *use = &engine->workspace_use;
    if (recorded) {
        use->recorded++;
        return *recorded;
    }
    const struct model_error *error = &errors[estimate.model];
    const workspace_range range = workspace_range_of(&estimate);
    double tensors = (double)estimate.tensors;
    use->estimated++;
    use->median_error = gmd_max(use->median_error, (uint64_t)(tensors * error->median));
    use->worst_error = gmd_max(use->worst_error, (uint64_t)(tensors * error->worst));
    engine->may_be_less = estimate.bytes - range.least;
    engine->may_be_more = range.most - estimate.bytes;
    use->one_less = gmd_max(use->one_less, engine->may_be_less);
    use->one_more = gmd_max(use->one_more, engine->may_be_more);
    return estimate.bytes;
}

void workspace_taken(struct engine *engine)
{
    engine->may_be_less = engine->may_be_more = 0;
}

void workspaces_tell(struct engine *engine)
{
    gmd_workspace_use *use = &engine->workspace_use;
    use->peak_less = engine->peak_bytes - engine->peak_least;
    use->peak_more = engine->peak_most - engine->peak_bytes;
    if (engine->sink->workspaces) {
        engine->sink->workspaces(engine->sink->context, use);
    }
}

int64_t workspace_dtype(enum dtype dtype)
{
    switch (dtype) {
    case DTYPE_FLOAT64:
        return GMD_WS_FLOAT64;
    case DTYPE_FLOAT16:
        return GMD_WS_FLOAT16;
    case DTYPE_BFLOAT16:
        return GMD_WS_BFLOAT16;
    default:
        return GMD_WS_FLOAT32;
    }
}
