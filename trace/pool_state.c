#include "gmd_pool_state.h"

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
    return NULL;
}

const char *gmd_pool_state_note(gmd_pool_state *state, const gmd_request *r)
{
    uint8_t device = r->device % GMD_MAX_DEVICES;
    uint32_t pool = r->pool % GMD_MAX_POOLS;
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
    default:
        return release(state, device, pool);
    }
}
