#include "workspace_use.h"

#include "gmd_min.h"

/* The one place where the errors of the models stand: how far they were off on calls of cuDNN that
 * they were not made from, as shares of the call's tensors.
 *
 * All are of calls that integrations/workspaces recorded on an H200 (issue 21), by
 * tests/scenarios/workspace_errors: medians of 100 random convolutions and 40 random RNNs that were
 * held, the worst of all 3,906 calls that the models were not made from. Other batches: 2,436
 * calls, each estimated from all batches but its own. The trials were judged on 70 other calls;
 * theirs are the errors on all. */
static const struct model_error {
    double median, worst;
} errors[WORKSPACE_MODELS] = {
    [MODEL_CONV_FORWARD] = {0.22, 9.03},
    [MODEL_CONV_BACKWARD] = {0.68, 227},
    [MODEL_CONV_TRIALS] = {0.032, 104},
    [MODEL_CONV_OTHER_BATCH] = {0, 15.6},
    [MODEL_RNN] = {0, 0.52},
    [MODEL_RNN_NARROW] = {1.11, 38.4},
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

void workspace_of_other_batches(struct engine *engine, const gmd_workspace_call *call,
                                workspace_estimate *estimate)
{
    if (gmd_workspaces_interpolate(table_of(engine), call, &estimate->bytes)) {
        estimate->model = MODEL_CONV_OTHER_BATCH;
    }
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
    double tensors = (double)estimate.tensors;
    use->estimated++;
    use->median_error = gmd_max(use->median_error, (uint64_t)(tensors * error->median));
    use->worst_error = gmd_max(use->worst_error, (uint64_t)(tensors * error->worst));
    return estimate.bytes;
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
