#include "workspace_use.h"

#include "gmd_min.h"

#define MIB ((uint64_t)1 << 20)

/* The one place where the errors of the models stand: how far they were off on calls of cuDNN that
 * they were not made from, as shares of the call's tensors and bytes beside them.
 *
 * All are of runs on an H200 that were compared with gmd (issue 21), not of single calls: 180
 * random convolutions, RNNs of 64 to 192 hidden units, and first_iteration_peak without trials,
 * which took 2,017 MiB more than here, where the tensors of a call have at most 40.5 MiB. The
 * trials were never judged on other calls: theirs are the errors on the 68 of the built-in table.
 * tests/scenarios/workspace_errors prints what belongs here, once a table has lines that are marked
 * "held". */
static const struct model_error {
    struct {
        double share;
        uint64_t bytes;
    } median, worst;
} errors[WORKSPACE_MODELS] = {
    [MODEL_CONV_FORWARD] = {{0.028, 0}, {1.09, 0}},
    [MODEL_CONV_BACKWARD] = {{0.19, 0}, {49.8, 0}},
    [MODEL_CONV_TRIALS] = {{0.31, 0}, {104, 0}},
    [MODEL_RNN] = {{0, 0}, {0, 4096}}, /* "exact but for a few bytes" */
    [MODEL_RNN_NARROW] = {{0, 35 * MIB}, {0, 132 * MIB}},
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

const gmd_workspace *workspace_recorded(struct engine *engine, const gmd_workspace_call *call)
{
    return gmd_workspaces_find(table_of(engine), call);
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
    uint64_t median = (uint64_t)(tensors * error->median.share) + error->median.bytes;
    uint64_t worst = (uint64_t)(tensors * error->worst.share) + error->worst.bytes;
    use->estimated++;
    use->median_error = gmd_max(use->median_error, median);
    use->worst_error = gmd_max(use->worst_error, worst);
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
