#include "pools.h"

#include "captures.h"
#include "checkpoints.h"
#include "frames.h"
#include "graphs.h"
#include "notes.h"
#include "pool_sources.h"

#include <string.h>

typedef struct pool_id {
    uint64_t words[2]; /* {0, 0} is the default pool */
} pool_id;

static pool_id id_of(const gmd_session *s, int device, uint32_t pool)
{
    return (pool_id){{0, s->pools.serials[device][pool]}};
}

/* A pool that nobody holds any more is gone for good: an allocator need not know its name again. */
static void name_pool(gmd_session *s, int device, uint32_t pool)
{
    if (s->pools.state.holders[device][pool] == 1) {
        s->pools.serials[device][pool] = GMD_MAX_POOLS * s->pools.made++ + 1 + pool;
    }
}

/* `context` is the device's entry in gmd_session_pools.accepted. As PyTorch's graphs do it, a
 * capture takes the requests of all streams that it has come to. */
static bool is_accepted(void *context, cudaStream_t stream)
{
    const accepted_streams *a = context;
    return a->stream == stream || (a->captures && captures_have_joined(a->captures, stream));
}

static bool begin(gmd_session *s, int device, uint32_t pool)
{
    const pool_id id = id_of(s, device, pool);
    accepted_streams *accepted = &s->pools.accepted[device];
    call_frame frame;
    enter_allocator(s, "gmd_begin_pool", &frame);
    int result =
        s->subject.begin_pool(device, id.words, accepted->takes_all ? NULL : is_accepted, accepted);
    leave_allocator(s, &frame);
    return result == 0;
}

/* NULL: done; else what was wrong with the answer. */
static const gmd_pool_failure end_refused = {"end_refused",
                                             "gmd_end_pool was refused, and the pool is open"};
static const gmd_pool_failure context_lost = {
    "context_lost", "gmd_end_pool did not give back the context of gmd_begin_pool"};
static const gmd_pool_failure release_refused = {
    "release_refused", "gmd_release_pool was refused, and the pool is held"};

static const gmd_pool_failure *end(gmd_session *s, int device, uint32_t pool)
{
    const pool_id id = id_of(s, device, pool);
    void *context = NULL;
    call_frame frame;
    enter_allocator(s, "gmd_end_pool", &frame);
    int result = s->subject.end_pool(device, id.words, &context);
    leave_allocator(s, &frame);
    return result != 0                             ? &end_refused
           : context != &s->pools.accepted[device] ? &context_lost
                                                   : NULL;
}

static const gmd_pool_failure *release(gmd_session *s, int device, uint32_t pool)
{
    const pool_id id = id_of(s, device, pool);
    call_frame frame;
    enter_allocator(s, "gmd_release_pool", &frame);
    int result = s->subject.release_pool(device, id.words);
    leave_allocator(s, &frame);
    return result != 0 ? &release_refused : NULL;
}

/* That of bit i. */
static bool set_option(gmd_session *s, const gmd_request *r, int i)
{
    const bool is_own_memory = GMD_POOL_OWN_MEMORY >> i & 1;
    const pool_id id = id_of(s, r->device, r->pool);
    const gmd_subject *subject = &s->subject;
    const gmd_pool_memory memory =
        is_own_memory ? pool_sources_open(s, r->device, s->pools.serials[r->device][r->pool])
                      : (gmd_pool_memory){0};
    call_frame frame;
    enter_allocator(s, memory.allocate ? "gmd_set_pool_memory" : "gmd_set_pool_option", &frame);
    int result = memory.allocate ? subject->set_pool_memory(r->device, id.words, &memory)
                 : is_own_memory
                     ? -1
                     : subject->set_pool_option(r->device, id.words, gmd_pool_option_words[i], 1);
    leave_allocator(s, &frame);
    if (result != 0 && memory.allocate) {
        memory.done(memory.context); /* it is nobody's */
    }
    return result == 0;
}

/* Those that the pool gets. What the allocator cannot do, or refuses, is left out. */
static uint8_t set_options(gmd_session *s, const gmd_request *r)
{
    const gmd_subject *subject = &s->subject;
    const char *missing = !subject->set_pool_option || !subject->set_pool_memory
                              ? "the allocator does not export gmd_set_pool_option and "
                                "gmd_set_pool_memory"
                          : s->interleaving.overlap ? "threads are interleaved"
                                                    : NULL;
    uint8_t options = 0;
    for (int i = 0; i < GMD_POOL_OPTION_COUNT && !missing; i++) {
        uint8_t option = r->pool_options & (uint8_t)(1U << i);
        if (option && set_option(s, r, i)) {
            options |= option;
        } else if (option && !s->view.faults.hit) {
            session_note(s, "the allocator refused +%s of a private pool on device %d",
                         gmd_pool_option_words[i], r->device);
        }
    }
    if (missing && !s->pools.has_missed_options) {
        session_note(s, "options of private pools are left out: %s", missing);
        s->pools.has_missed_options = true;
    }
    return options;
}

/* An allocator may refuse to make a pool: requests then go where they went before. */
static bool do_begin(gmd_session *s, const gmd_request *r, cudaStream_t stream)
{
    gmd_pool_state *state = &s->pools.state;
    s->pools.accepted[r->device] = (accepted_streams){
        .stream = stream, .takes_all = r->op == GMD_OP_BEGIN_POOL && r->stream == GMD_ALL_STREAMS};
    s->shared->outcome.known_context.has_begun_pool = true;
    name_pool(s, r->device, r->pool);
    s->view.pools.serial = s->pools.serials[r->device][r->pool];
    uint8_t *options = &state->options[r->device][r->pool];
    if (begin(s, r->device, r->pool)) {
        if (r->op == GMD_OP_BEGIN_POOL && r->pool_options) {
            *options = set_options(s, r);
            s->pools.has_options = s->pools.has_options || *options;
            if (*options & GMD_POOL_USE_ON_OOM) {
                s->pools.lent[r->device] |= (uint64_t)1 << r->pool;
            }
        }
        s->view.pools.options = *options;
        return true;
    }
    state->open[r->device] = 0;
    *options = --state->holders[r->device][r->pool] ? *options : 0;
    state->capturing = r->op == GMD_OP_BEGIN_CAPTURE ? 0 : state->capturing;
    if (!s->view.faults.hit) {
        session_note(s, "the allocator refused a private pool on device %d", r->device);
    }
    return false;
}

/* As a PyTorch program does it: the pool is open before the stream captures, the capture is over
 * before the pool is closed, and graphs go before the pool's hold does. */
static gmd_status carry_out(gmd_session *s, const gmd_request *r, cudaStream_t stream,
                            gmd_error *error)
{
    const gmd_pool_state *state = &s->pools.state;
    gmd_status status = GMD_OK;
    const gmd_pool_failure *failure;
    s->view.pools.serial = s->pools.serials[r->device][r->pool];
    switch (r->op) {
    case GMD_OP_BEGIN_POOL:
        do_begin(s, r, stream);
        return GMD_OK;
    case GMD_OP_BEGIN_CAPTURE:
        return do_begin(s, r, stream) ? session_begin_capture(s, r, stream, error) : GMD_OK;
    case GMD_OP_END_CAPTURE:
        status = session_end_capture(s, error);
        failure = end(s, r->device, r->pool);
        s->view.pools.failure = failure ? failure : s->view.pools.failure;
        return status;
    case GMD_OP_END_POOL:
        s->view.pools.failure = end(s, r->device, r->pool);
        return GMD_OK;
    case GMD_OP_LAUNCH:
        return session_launch(s, r, stream, error);
    case GMD_OP_CHECKPOINT_POOL:
        return checkpoints_make(s, r, error);
    case GMD_OP_RESTORE_POOL:
        return checkpoints_restore(s, r, error);
    default:
        status =
            session_destroy_graphs(s, r->device, r->pool, state->graphs[r->device][r->pool], error);
        s->view.pools.failure = release(s, r->device, r->pool);
        s->view.pools.is_let_go = !state->holders[r->device][r->pool];
        if (s->view.pools.is_let_go) {
            checkpoints_drop(s, r->device, r->pool);
        }
        return status;
    }
}

/* Notes say once in a run what cannot be done. */
static bool can_carry_out(gmd_session *s, const gmd_request *r)
{
    bool has_pools = s->subject.begin_pool != NULL;
    if (!has_pools && !s->pools.is_used) {
        session_note(s, "private pools are left out: the allocator exports no gmd_begin_pool, "
                        "gmd_end_pool and gmd_release_pool");
    }
    s->pools.is_used = true;
    bool can_capture = s->runtime.cudaStreamBeginCapture && !s->interleaving.overlap;
    if (has_pools && !can_capture && r->op == GMD_OP_BEGIN_CAPTURE) {
        session_note(s, s->interleaving.overlap
                            ? "captures are left out: threads are interleaved"
                            : "captures are left out: this CUDA runtime lacks functions for "
                              "them");
    }
    return has_pools && (can_capture || r->op != GMD_OP_BEGIN_CAPTURE) &&
           (!gmd_op_needs(r->op, GMD_NEEDS_CHECKPOINTS) || checkpoints_are_possible(s));
}

gmd_status session_on_pool(gmd_session *s, const gmd_request *r, gmd_error *error)
{
    if (r->pool >= GMD_MAX_POOLS) {
        return gmd_fail(error, GMD_BAD_INPUT, "pool %u: at most %d pools are possible", r->pool,
                        GMD_MAX_POOLS);
    }
    if (!can_carry_out(s, r)) {
        return GMD_OK;
    }
    cudaStream_t stream = NULL;
    if (gmd_request_names_stream(r)) {
        gmd_status status = streams_get(&s->streams, r->device, r->stream, &stream, error);
        if (status != GMD_OK) {
            return status;
        }
    }
    return gmd_pool_state_note(&s->pools.state, r) ? GMD_OK : carry_out(s, r, stream, error);
}

bool session_leave_pool(gmd_session *s, int device)
{
    uint8_t open = s->pools.state.open[device];
    return open && !end(s, device, open - 1u);
}

bool session_reenter_pool(gmd_session *s, int device)
{
    uint32_t pool = s->pools.state.open[device] - 1u;
    bool is_begun = begin(s, device, pool);
    s->pools.state.holders[device][pool] += is_begun;
    s->pools.state.open[device] = is_begun ? s->pools.state.open[device] : 0;
    return is_begun;
}

void session_end_pools(gmd_session *s)
{
    if (s->captures.is_under_way) {
        session_end_capture(s, NULL);
        s->pools.state.capturing = 0;
    }
    for (int device = 0; s->pools.is_used && device < s->device_count; device++) {
        uint8_t *open = &s->pools.state.open[device];
        if (*open) {
            end(s, device, *open - 1u);
            *open = 0;
        }
    }
}

void session_release_pools(gmd_session *s)
{
    checkpoints_drop_all(s);
    for (int device = 0; s->pools.is_used && device < s->device_count; device++) {
        for (uint32_t pool = 0; pool < GMD_MAX_POOLS; pool++) {
            session_destroy_graphs(s, device, pool, 0, NULL);
            for (uint32_t *held = &s->pools.state.holders[device][pool]; *held; --*held) {
                release(s, device, pool);
            }
        }
    }
}
