#include "gmd_pool_state.h"

#include "gmd_assert.h"

static const char *begin(gmd_pool_state *state, const gmd_request *r, uint8_t device, uint32_t pool)
{
    bool is_capture = gmd_op_is_of_capture(r->op);
    if (state->open[device]) {
        return "end_pool of the device's open pool before another begin_pool";
    }
    if (is_capture && state->capturing) {
        return "end_capture before another begin_capture";
    }
    if (is_capture && r->stream == 0) {
        return "a capture of another stream than the default one";
    }
    uint8_t options = is_capture ? 0 : r->pool_options;
    if (options && state->holders[device][pool]) {
        return "the options of a pool in the begin_pool that makes it";
    }
    if (is_capture && state->options[device][pool] & GMD_POOL_USE_ON_OOM) {
        return "a capture into a pool without +use_on_oom";
    }
    state->options[device][pool] |= options;
    state->open[device] = (uint8_t)(pool + 1);
    state->holders[device][pool]++;
    if (is_capture) {
        state->capturing = device + 1;
    }
    return NULL;
}

static const char *end(gmd_pool_state *state, const gmd_request *r, uint8_t device, uint32_t pool)
{
    bool is_capture = state->capturing == device + 1;
    if (state->open[device] != pool + 1) {
        return "the pool that is open on the device";
    }
    if (is_capture != gmd_op_is_of_capture(r->op)) {
        return is_capture ? "end_capture: a capture works in the pool"
                          : "end_pool: no capture works in the pool";
    }
    state->open[device] = 0;
    if (is_capture) {
        state->capturing = 0;
        state->graphs[device][pool]++;
    }
    return NULL;
}

static const char *release(gmd_pool_state *state, uint8_t device, uint32_t pool)
{
    uint32_t *holders = &state->holders[device][pool], *graphs = &state->graphs[device][pool];
    bool is_open = state->open[device] == pool + 1;
    if (state->capturing) {
        return "end_capture before a release_pool";
    }
    if (*holders <= is_open) {
        return is_open ? "end_pool before the last release_pool of an open pool"
                       : "a pool that was begun on the device and is not released yet";
    }
    --*holders;
    *graphs = *graphs < *holders ? *graphs : *holders;
    state->has_checkpoint[device][pool] = state->has_checkpoint[device][pool] && *holders;
    state->options[device][pool] = *holders ? state->options[device][pool] : 0;
    return NULL;
}

static const char *checkpoint(gmd_pool_state *state, uint8_t device, uint32_t pool)
{
    if (state->capturing) {
        return "end_capture before a checkpoint_pool";
    }
    if (!state->holders[device][pool]) {
        return "a pool that was begun on the device and is not released yet";
    }
    if (state->options[device][pool] & GMD_POOL_USE_ON_OOM) {
        return "a pool without +use_on_oom";
    }
    state->has_checkpoint[device][pool] = true;
    return NULL;
}

static const char *restore(const gmd_pool_state *state, uint8_t device, uint32_t pool)
{
    return state->capturing ? "end_capture before a restore_pool"
           : !state->has_checkpoint[device][pool]
               ? "a pool with a checkpoint, by a checkpoint_pool on the device"
               : NULL;
}

static const char *note(gmd_pool_state *state, const gmd_request *r, uint8_t device, uint32_t pool)
{
    switch ((gmd_pool_step)gmd_request_rows[r->op].pool_step) {
    case GMD_POOL_STEP_BEGIN:
        return begin(state, r, device, pool);
    case GMD_POOL_STEP_END:
        return end(state, r, device, pool);
    case GMD_POOL_STEP_LAUNCH:
        return state->capturing ? "end_capture before a launch"
               : !state->graphs[device][pool]
                   ? "a pool with a graph, by an end_capture on the device"
                   : NULL;
    case GMD_POOL_STEP_CHECKPOINT:
        return checkpoint(state, device, pool);
    case GMD_POOL_STEP_RESTORE:
        return restore(state, device, pool);
    default:
        return release(state, device, pool);
    }
}

static const char *device_violation(const gmd_pool_state *b, uint32_t device)
{
    uint8_t open = b->open[device];
    if (open > GMD_MAX_POOLS) {
        return "the open pool is one of the device's";
    }
    return open && !b->holders[device][open - 1] ? "an open pool is held" : NULL;
}

static const char *pool_violation(const gmd_pool_state *b, uint32_t device, uint32_t pool)
{
    if (b->graphs[device][pool] > b->holders[device][pool]) {
        return "each graph holds its pool";
    }
    uint8_t options = b->options[device][pool];
    bool is_lent = options & GMD_POOL_USE_ON_OOM;
    if (is_lent && (b->graphs[device][pool] || b->has_checkpoint[device][pool])) {
        return "a pool whose blocks serve others has neither graphs nor checkpoints";
    }
    return (b->has_checkpoint[device][pool] || options) && !b->holders[device][pool]
               ? "a pool with a checkpoint or options is held"
           : options >= GMD_POOL_OPTION_SETS ? "options of pools are known"
                                             : NULL;
}

static const char *capture_violation(const gmd_pool_state *b)
{
    if (b->capturing > GMD_MAX_DEVICES) {
        return "a capture is on a device";
    }
    return b->capturing && !b->open[b->capturing - 1] ? "a capture has a pool open" : NULL;
}

const char *gmd_pool_state_violation(const gmd_pool_state *state)
{
    const char *violation = capture_violation(state);
    for (uint32_t device = 0; device < GMD_MAX_DEVICES && !violation; device++) {
        violation = device_violation(state, device);
        for (uint32_t pool = 0; pool < GMD_MAX_POOLS && !violation; pool++) {
            violation = pool_violation(state, device, pool);
        }
    }
    return violation;
}

const char *gmd_pool_state_note(gmd_pool_state *state, const gmd_request *r)
{
    uint8_t device = r->device % GMD_MAX_DEVICES;
    uint32_t pool = r->pool % GMD_MAX_POOLS;
    const char *missing = note(state, r, device, pool);
    GMD_ASSERT_INTERNAL(!capture_violation(state), "a capture has a pool open");
    GMD_ASSERT_INTERNAL(!device_violation(state, device), "an open pool is held");
    GMD_ASSERT_INTERNAL(!pool_violation(state, device, pool),
                        "graphs and checkpoints are of held pools");
    return missing;
}
