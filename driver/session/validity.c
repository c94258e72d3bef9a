#include "validity.h"

#include "frames.h"

/* Things that a check may come upon for each request. */
#define REQUEST_ALLOWANCE 32

/* --- blocks ------------------------------------------------------------------------------ */

static bool has_stream(const gmd_session *s, int device, uint32_t stream)
{
    cudaStream_t handle;
    return streams_find(&s->streams, device, stream, &handle);
}

static const char *block_violation(const gmd_session *s, const session_block *b)
{
    const stream_uses *uses = &b->uses;
    if (b->live.device >= s->device_count) {
        return "a live block is of a device that is there";
    }
    if (!b->is_orphan && !has_stream(s, b->live.device, b->live.stream)) {
        return "the stream of a live block is there";
    }
    if (b->live.pool && !pool_table_has_made(&s->pools, b->live.pool)) {
        return "a live block is of a pool that was made";
    }
    if (uses->streams & (uses->recorded | stream_bit(b->live.stream))) {
        return "what must be ordered before a free is on other streams, and not recorded";
    }
    for (uint64_t left = uses->streams | uses->recorded; left; left &= left - 1) {
        if (!has_stream(s, b->live.device, (uint32_t)__builtin_ctzll(left))) {
            return "a live block is used on streams that are there";
        }
    }
    return uses->last_use > s->moment ? "a use is not later than the latest request" : NULL;
}

static const char *blocks_violation(const gmd_session *s)
{
    uses_walk walk = {0};
    const char *violation = live_blocks_violation(&s->blocks);
    const session_block *b = NULL;
    for (uint32_t id = 0; !violation && (b = live_blocks_next(&s->blocks, &id)) != NULL;) {
        violation = block_violation(s, b);
        violation = violation ? violation : uses_list_violation(&s->uses, b->last_uses, &walk);
    }
    return violation ? violation : uses_violation(&s->uses, walk);
}

/* --- pools and graphs -------------------------------------------------------------------- */

static const char *capture_violation(const gmd_session *s)
{
    const capture_set *c = &s->captures;
    const captured_graph *g = &c->graphs[c->count - 1];
    const gmd_pool_state *state = &s->pools.state;
    if (state->capturing != c->device + 1 || state->open[c->device] != g->pool + 1) {
        return "a capture has its pool open";
    }
    for (uint64_t left = c->joined; left; left &= left - 1) {
        uint32_t stream = (uint32_t)__builtin_ctzll(left);
        cudaStream_t handle = NULL;
        if (!streams_find(&s->streams, c->device, stream, &handle) ||
            handle != c->handles[stream]) {
            return "a captured stream is there";
        }
    }
    return NULL;
}

/* The graph of a capture that is under way is made already, and counted when it ends. */
static const char *graphs_violation(const gmd_session *s)
{
    const gmd_pool_state *state = &s->pools.state;
    uint64_t counted = state->capturing != 0;
    for (int device = 0; s->pools.is_used && device < GMD_MAX_DEVICES; device++) {
        for (uint32_t pool = 0; pool < GMD_MAX_POOLS; pool++) {
            counted += state->graphs[device][pool];
        }
    }
    if (counted != s->captures.count) {
        return "each graph is counted in its pool";
    }
    for (size_t i = 0; i < s->captures.count; i++) {
        const captured_graph *g = &s->captures.graphs[i];
        bool is_under_way =
            state->capturing == g->device + 1 && state->open[g->device] == g->pool + 1;
        if (captures_count(&s->captures, g->device, g->pool) !=
            state->graphs[g->device][g->pool] + is_under_way) {
            return "each graph is counted in its pool";
        }
    }
    return NULL;
}

static const char *pools_violation(const gmd_session *s)
{
    const char *violation = captures_violation(&s->captures);
    violation = violation ? violation : pool_table_violation(&s->pools);
    if (!violation && s->captures.is_under_way) {
        violation = capture_violation(s);
    }
    return violation ? violation : graphs_violation(s);
}

/* --- what the oracles are shown ---------------------------------------------------------- */

static const char *view_violation(const gmd_session *s)
{
    const gmd_view *v = &s->view;
    if (v->device < 0 || v->device >= s->device_count) {
        return "the view is of a device that is there";
    }
    if ((v->stats.now && v->stats.now != &s->figures.stats[v->device]) ||
        (v->figures.now && v->figures.now != &s->figures.now[v->device])) {
        return "the view shows the figures of its device";
    }
    return s->calls.count > s->calls.capacity || s->calls.misuse_count > MISUSE_MAX
               ? "the allocator's calls are in their lists"
               : NULL;
}

/* --- all --------------------------------------------------------------------------------- */

/* A run that is over may have ended amid a request. */
const char *session_state_violation(const gmd_session *s)
{
    if (s->is_over) {
        return NULL;
    }
    const char *violation = frames_violation(s);
    violation = violation ? violation : run_streams_violation(&s->streams);
    violation = violation ? violation : blocks_violation(s);
    violation = violation ? violation : pools_violation(s);
    return violation ? violation : view_violation(s);
}

static uint64_t cost(const gmd_session *s)
{
    uint64_t things = 32 + s->blocks.end + s->uses.used;
    for (int device = 0; device < s->device_count; device++) {
        things += s->streams.devices[device] ? s->streams.devices[device]->count : 0;
    }
    for (size_t i = 0; i < s->captures.count; i++) {
        things += s->captures.count + s->captures.graphs[i].count;
    }
    return things + (s->pools.is_used ? (uint64_t)GMD_MAX_DEVICES * GMD_MAX_POOLS : 0);
}

const char *session_state_due_violation(gmd_session *s)
{
    s->unchecked += REQUEST_ALLOWANCE;
    if (s->unchecked < cost(s) || overlap_others_inside(s)) {
        return NULL;
    }
    s->unchecked = 0;
    return session_state_violation(s);
}
