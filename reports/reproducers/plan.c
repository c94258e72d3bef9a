/* plan.c - requests as steps: plan.h. */
#include "plan.h"

#include "gmd_assert.h"
#include "gmd_grow.h"
#include "gmd_min.h"
#include "gmd_pool_state.h"

#include <stdlib.h>
#include <string.h>

enum { NO_CAPTURE = 255 };

/* A stream that a block was used or recorded on. */
typedef struct user {
    uint32_t stream;
    bool is_used, is_recorded;
} user;

typedef struct live_block {
    uint32_t allocation, stream, graph; /* graph: 1 + that it was allocated for; 0: none */
    uint8_t device;
    bool is_live, is_orphan; /* is_orphan: its stream was destroyed */
    int64_t last_work;
    user *users;
    size_t user_count, user_capacity;
} live_block;

typedef struct stream_state {
    uint64_t end_ns; /* of its work, on the case's clock */
    bool is_gone, is_captured;
    bool *is_before; /* which work of the capture comes before its next one */
    size_t before_count, before_capacity;
} stream_state;

typedef struct held_work {
    uint32_t stream, number;
    uint8_t device;
    uint64_t end_ns;
    bool may_end;
} held_work;

typedef struct graph_state {
    uint8_t device;
    uint32_t pool, first_work, work_end;
    bool is_destroyed;
} graph_state;

typedef struct pool_state {
    uint32_t holders, life, latest_graph; /* latest_graph: 1 + its number; 0: none */
} pool_state;

typedef struct planner {
    const gmd_trace *trace;
    plan *plan;
    size_t request;
    uint32_t block_count, lives;
    bool has_failed; /* for want of memory: the plan is of no use */
    live_block *blocks;
    uint32_t *rounds; /* of each block: how often it was allocated */
    stream_state *streams;
    held_work *held;
    graph_state *graphs;
    size_t held_count, held_capacity, graph_count, graph_capacity;
    pool_state pools[GMD_MAX_DEVICES][GMD_MAX_POOLS];
    uint32_t open_pool[GMD_MAX_DEVICES]; /* 1 + its number */
    uint64_t now_ns;
    uint8_t capture_device;
    uint32_t capture_stream;
    bool is_spoilt;
} planner;

/* --- steps ------------------------------------------------------------------------------- */

static step *add(planner *p, step_kind kind)
{
    static step lost;
    plan *made = p->plan;
    if (!GMD_GROW(&made->steps, &made->step_capacity, made->step_count + 1)) {
        p->has_failed = true;
        return &lost;
    }
    step *s = &made->steps[made->step_count++];
    *s = (step){.kind = kind, .request = p->request};
    s->thread = p->request == NO_REQUEST ? 0 : p->trace->requests[p->request].thread;
    return s;
}

static stream_state *state_of(planner *p, uint8_t device, uint32_t stream)
{
    return &p->streams[(size_t)device * p->plan->stream_count + stream];
}

/* Before a step that names it: a stream that was destroyed is made anew. */
static uint32_t named(planner *p, uint8_t device, uint32_t stream)
{
    stream_state *s = state_of(p, device, stream);
    p->plan->has_stream[s - p->streams] = stream != 0;
    if (s->is_gone) {
        s->is_gone = false;
        step *made = add(p, STEP_MAKE_STREAM);
        made->device = device;
        made->stream = stream;
    }
    return stream;
}

static step *add_on_stream(planner *p, step_kind kind, uint8_t device, uint32_t stream)
{
    named(p, device, stream);
    step *s = add(p, kind);
    s->device = device;
    s->stream = stream;
    return s;
}

/* --- captures ---------------------------------------------------------------------------- */

static bool is_capturing(const planner *p)
{
    return p->capture_device != NO_CAPTURE;
}

static bool is_captured(planner *p, uint8_t device, uint32_t stream)
{
    return is_capturing(p) && device == p->capture_device && stream != GMD_ALL_STREAMS &&
           state_of(p, device, stream)->is_captured;
}

static bool is_of_capture(const planner *p, const live_block *b)
{
    return is_capturing(p) && b->graph == p->graph_count;
}

static bool is_before(const stream_state *s, size_t work)
{
    return work < s->before_count && s->is_before[work];
}

/* `work` counts from the capture's first one on. */
static void come_after(planner *p, stream_state *s, size_t work)
{
    if (!GMD_GROW(&s->is_before, &s->before_capacity, work + 1)) {
        p->has_failed = true;
        return;
    }
    while (s->before_count <= work) {
        s->is_before[s->before_count++] = false;
    }
    s->is_before[work] = true;
}

static void join(planner *p, uint8_t device, uint32_t waiting, uint32_t other)
{
    named(p, device, other);
    add_on_stream(p, STEP_JOIN, device, waiting)->other = other;
    stream_state *to = state_of(p, device, waiting), *from = state_of(p, device, other);
    to->is_captured = true;
    for (size_t i = 0; i < from->before_count; i++) {
        if (from->is_before[i]) {
            come_after(p, to, i);
        }
    }
}

/* --- time -------------------------------------------------------------------------------- */

static bool is_timed(const planner *p)
{
    return p->trace->conditions.schedule.kind != GMD_SCHEDULE_LAZY;
}

/* What waiting for a stream of the device (GMD_ALL_STREAMS) lets go, then the wait, then the wait
 * for all else that is over by now. `waits`: it may be none. */
static void let_go(planner *p, uint8_t device, uint32_t stream, bool waits)
{
    size_t kept = 0;
    for (size_t i = 0; waits && i < p->held_count; i++) {
        held_work *h = &p->held[i];
        if (h->device == device && (stream == GMD_ALL_STREAMS || h->stream == stream)) {
            add(p, STEP_MAY_END)->number = h->number;
            h->may_end = true;
        }
    }
    if (waits && stream != GMD_ALL_STREAMS) {
        add_on_stream(p, STEP_SYNC_STREAM, device, stream);
    } else if (waits) {
        add(p, STEP_SYNC_DEVICE)->device = device;
    }
    for (size_t i = 0; i < p->held_count; i++) {
        held_work h = p->held[i];
        if (!h.may_end && is_timed(p) && h.end_ns <= p->now_ns) {
            add(p, STEP_FINISH)->number = h.number;
        } else if (!h.may_end) {
            p->held[kept++] = h;
        }
    }
    p->held_count = kept;
}

static void synchronize(planner *p, uint8_t device, uint32_t stream)
{
    for (uint32_t s = 0; s < p->plan->stream_count; s++) {
        uint64_t end = state_of(p, device, s)->end_ns;
        if ((s == stream || stream == GMD_ALL_STREAMS) && end > p->now_ns) {
            p->now_ns = end;
        }
    }
    let_go(p, device, stream, true);
}

static void wait_for(planner *p, uint8_t device, uint32_t waiting, uint32_t other, step_kind kind)
{
    named(p, device, other);
    add_on_stream(p, kind, device, waiting)->other = other;
    if (kind != STEP_WAIT) {
        return;
    }
    stream_state *to = state_of(p, device, waiting), *from = state_of(p, device, other);
    to->end_ns = gmd_max(from->end_ns, to->end_ns);
}

/* --- blocks ------------------------------------------------------------------------------ */

static user *user_of(planner *p, live_block *b, uint32_t stream)
{
    static user lost;
    for (size_t i = 0; i < b->user_count; i++) {
        if (b->users[i].stream == stream) {
            return &b->users[i];
        }
    }
    if (!GMD_GROW(&b->users, &b->user_capacity, b->user_count + 1)) {
        p->has_failed = true;
        return &lost;
    }
    b->users[b->user_count] = (user){.stream = stream};
    return &b->users[b->user_count++];
}

/* The allocator does not know of this work: the caller orders it before the free. */
static bool is_untold(const live_block *b, const user *u)
{
    return u->is_used && !u->is_recorded && u->stream != b->stream;
}

/* Its memory may be that of work of the graph which is not known to be over. */
static void check_graph_order(planner *p, uint32_t allocation, const stream_state *on)
{
    uint32_t first = p->graphs[p->graph_count - 1].first_work;
    for (uint32_t w = first; w < p->plan->graph_work_count; w++) {
        if (!is_before(on, w - first)) {
            step *s = add(p, STEP_CHECK_GRAPH);
            s->allocation = allocation;
            s->number = w;
        }
    }
}

static void allocate(planner *p, const gmd_request *r)
{
    plan *made = p->plan;
    if (!GMD_GROW(&made->allocations, &made->allocation_capacity, made->allocation_count + 1)) {
        p->has_failed = true;
        return;
    }
    uint32_t number = (uint32_t)made->allocation_count++;
    made->allocations[number] = (plan_allocation){r->block, p->rounds[r->block]++};
    live_block *b = &p->blocks[r->block];
    bool is_graphs = is_captured(p, r->device, r->stream);
    b->allocation = number;
    b->stream = r->stream;
    b->device = r->device;
    b->graph = is_graphs ? (uint32_t)p->graph_count : 0;
    b->is_live = true;
    b->is_orphan = false;
    b->last_work = -1;
    b->user_count = 0;
    step *s = add_on_stream(p, STEP_ALLOC, r->device, r->stream);
    s->allocation = number;
    s->bytes = r->bytes;
    s->is_captured = is_graphs;
    if (is_graphs) {
        check_graph_order(p, number, state_of(p, r->device, r->stream));
    }
}

static void free_block(planner *p, live_block *b)
{
    if (b->is_orphan) { /* the allocator does not know who works on it now */
        synchronize(p, b->device, GMD_ALL_STREAMS);
        add_on_stream(p, STEP_NEW_HANDLE, b->device, b->stream)->allocation = b->allocation;
    }
    for (size_t i = 0; i < b->user_count; i++) {
        const user *u = &b->users[i];
        bool is_in = is_captured(p, b->device, u->stream);
        bool is_known_use = u->is_used && u->is_recorded && u->stream != b->stream;
        if (is_untold(b, u) && is_in) {
            join(p, b->device, b->stream, u->stream);
        } else if (is_untold(b, u)) {
            wait_for(p, b->device, b->stream, u->stream, STEP_WAIT);
        } else if (is_known_use && !is_in) {
            wait_for(p, b->device, b->stream, u->stream, STEP_WAIT_IF_UNTOLD);
        }
    }
    step *s = add(p, STEP_FREE);
    s->allocation = b->allocation;
    s->number = b->last_work;
    b->is_live = false;
}

static void work_on(planner *p, live_block *b, const gmd_request *r)
{
    stream_state *on = state_of(p, b->device, r->stream);
    plan *made = p->plan;
    bool is_graphs = is_captured(p, b->device, r->stream);
    step *s = add_on_stream(p, is_graphs ? STEP_GRAPH_WORK : STEP_WORK, b->device, r->stream);
    s->allocation = b->allocation;
    s->number = is_graphs ? made->graph_work_count++ : made->work_count++;
    user_of(p, b, r->stream)->is_used = true;
    if (is_graphs && p->graphs) {
        graph_state *g = &p->graphs[p->graph_count - 1];
        s->other = (uint32_t)p->graph_count - 1;
        g->work_end = made->graph_work_count;
        come_after(p, on, (size_t)s->number - g->first_work);
        return;
    }
    b->last_work = s->number;
    on->end_ns = gmd_max(on->end_ns, p->now_ns) + r->duration_ns;
    if (p->trace->conditions.schedule.kind == GMD_SCHEDULE_EAGER) {
        return;
    }
    if (!GMD_GROW(&p->held, &p->held_capacity, p->held_count + 1)) {
        p->has_failed = true;
        return;
    }
    p->held[p->held_count++] = (held_work){.stream = r->stream,
                                           .number = (uint32_t)s->number,
                                           .device = b->device,
                                           .end_ns = on->end_ns};
}

/* Work on a stream that is gone cannot be ordered before a free: it is waited for. */
static bool is_in_use(const planner *p, uint8_t device, uint32_t stream)
{
    for (uint32_t i = 0; i < p->block_count; i++) {
        const live_block *b = &p->blocks[i];
        bool is_used = b->is_live && b->device == device && b->stream == stream;
        for (size_t u = 0; b->is_live && b->device == device && u < b->user_count; u++) {
            is_used = is_used || (b->users[u].stream == stream && b->users[u].is_used &&
                                  !b->users[u].is_recorded);
        }
        if (is_used) {
            return true;
        }
    }
    return false;
}

static void destroy(planner *p, uint8_t device, uint32_t stream)
{
    if (state_of(p, device, stream)->is_gone || stream == 0) {
        return;
    }
    add_on_stream(p, STEP_FORGET, device, stream);
    if (is_in_use(p, device, stream)) {
        synchronize(p, device, stream);
    }
    add_on_stream(p, STEP_DESTROY, device, stream);
    state_of(p, device, stream)->is_gone = true;
    for (uint32_t i = 0; i < p->block_count; i++) {
        live_block *b = &p->blocks[i];
        for (size_t u = 0; b->is_live && b->device == device && u < b->user_count; u++) {
            if (b->users[u].stream == stream) {
                b->users[u].is_used = b->users[u].is_recorded = false;
            }
        }
        b->is_orphan = b->is_orphan || (b->is_live && b->device == device && b->stream == stream);
    }
}

/* --- pools and graphs -------------------------------------------------------------------- */

static step *add_on_pool(planner *p, step_kind kind, uint8_t device, uint32_t pool)
{
    step *s = add(p, kind);
    s->device = device;
    s->pool = pool;
    s->life = p->pools[device][pool].life;
    return s;
}

static void begin_pool(planner *p, uint8_t device, uint32_t pool, uint32_t stream)
{
    pool_state *state = &p->pools[device][pool];
    if (state->holders++ == 0) {
        state->life = ++p->lives;
    }
    p->open_pool[device] = 1 + pool;
    if (stream != GMD_ALL_STREAMS) {
        named(p, device, stream);
    }
    add_on_pool(p, STEP_BEGIN_POOL, device, pool)->stream = stream;
}

static void end_pool(planner *p, uint8_t device)
{
    if (p->open_pool[device]) {
        add_on_pool(p, STEP_END_POOL, device, p->open_pool[device] - 1);
        p->open_pool[device] = 0;
    }
}

static void begin_capture(planner *p, uint8_t device, uint32_t pool, uint32_t stream)
{
    begin_pool(p, device, pool, stream);
    if (!GMD_GROW(&p->graphs, &p->graph_capacity, p->graph_count + 1)) {
        p->has_failed = true;
        return;
    }
    for (uint32_t s = 0; s < p->plan->stream_count; s++) {
        state_of(p, device, s)->is_captured = false;
        state_of(p, device, s)->before_count = 0;
    }
    uint32_t first = p->plan->graph_work_count;
    p->graphs[p->graph_count++] = (graph_state){device, pool, first, first, false};
    p->pools[device][pool].latest_graph = (uint32_t)p->graph_count;
    p->capture_device = device;
    p->capture_stream = stream;
    p->is_spoilt = false;
    state_of(p, device, stream)->is_captured = true;
    step *s = add_on_pool(p, STEP_BEGIN_CAPTURE, device, pool);
    s->stream = stream;
    s->number = (int64_t)p->graph_count - 1;
}

/* All streams of the capture come together again in the first one, as CUDA demands. */
static void end_capture(planner *p)
{
    uint8_t device = p->capture_device;
    if (!is_capturing(p)) {
        return;
    }
    for (uint32_t s = 0; s < p->plan->stream_count; s++) {
        if (s != p->capture_stream && is_captured(p, device, s)) {
            join(p, device, p->capture_stream, s);
        }
    }
    step *s = add_on_stream(p, STEP_END_CAPTURE, device, p->capture_stream);
    s->number = (int64_t)p->graph_count - 1;
    s->is_spoilt = p->is_spoilt;
    p->capture_device = NO_CAPTURE;
    end_pool(p, device);
}

static void launch(planner *p, uint8_t device, uint32_t pool, uint32_t stream)
{
    uint32_t number = p->pools[device][pool].latest_graph;
    if (!number) {
        return;
    }
    GMD_ASSERT(p->graphs, "a graph that was numbered is in the list");
    const graph_state *g = &p->graphs[number - 1];
    for (uint32_t w = g->first_work; w < g->work_end; w++) {
        step *s = add(p, STEP_CHECK_WORK);
        s->device = device;
        s->number = w;
        s->other = number - 1;
    }
    add_on_stream(p, STEP_LAUNCH, device, stream)->number = (int64_t)number - 1;
}

/* Where a release leaves fewer holds than graphs, the oldest graph goes. */
static void destroy_graphs(planner *p, uint8_t device, uint32_t pool, uint32_t kept)
{
    uint32_t there = 0;
    for (size_t i = 0; i < p->graph_count; i++) {
        const graph_state *g = &p->graphs[i];
        there += !g->is_destroyed && g->device == device && g->pool == pool;
    }
    for (size_t i = 0; i < p->graph_count && there > kept; i++) {
        graph_state *g = &p->graphs[i];
        if (!g->is_destroyed && g->device == device && g->pool == pool) {
            synchronize(p, device, GMD_ALL_STREAMS);
            step *s = add(p, STEP_DESTROY_GRAPH);
            s->device = device;
            s->number = (int64_t)i;
            g->is_destroyed = true;
            pool_state *state = &p->pools[device][pool];
            state->latest_graph = state->latest_graph == i + 1 ? 0 : state->latest_graph;
            there--;
        }
    }
}

static void release_pool(planner *p, uint8_t device, uint32_t pool)
{
    pool_state *state = &p->pools[device][pool];
    if (state->holders) {
        destroy_graphs(p, device, pool, state->holders - 1);
        add_on_pool(p, STEP_RELEASE_POOL, device, pool);
        state->holders--;
    }
}

/* --- requests ---------------------------------------------------------------------------- */

/* Waiting on one side of the capture for work on the other one. */
static bool needs_mixed_waits(planner *p, const live_block *b)
{
    bool is_in = is_captured(p, b->device, b->stream);
    for (size_t i = 0; i < b->user_count; i++) {
        if (is_untold(b, &b->users[i]) && (is_captured(p, b->device, b->users[i].stream) != is_in ||
                                           (is_in && !is_of_capture(p, b)))) {
            return true;
        }
    }
    return false;
}

/* What a program cannot ask for while a stream is captured. */
static bool is_left_out(planner *p, const gmd_request *r)
{
    const live_block *b = &p->blocks[r->op <= GMD_OP_RECORD ? r->block : 0];
    bool is_in = is_capturing(p) && is_captured(p, r->device, r->stream);
    switch (is_capturing(p) ? (gmd_op)r->op : GMD_OP_COUNT) {
    case GMD_OP_ALLOC:
    case GMD_OP_SYNC:
        return !is_in;
    case GMD_OP_DESTROY:
    case GMD_OP_EMPTY_CACHE:
        return true;
    case GMD_OP_WAIT:
        return is_in ? !is_captured(p, r->device, r->other_stream)
                     : is_captured(p, r->device, r->other_stream) && r->stream == 0;
    case GMD_OP_USE:
        return is_captured(p, b->device, r->stream)
                   ? !is_of_capture(p, b)
                   : is_of_capture(p, b) || is_captured(p, b->device, b->stream);
    case GMD_OP_FREE:
        return needs_mixed_waits(p, b);
    default:
        return false;
    }
}

static void plan_on_block(planner *p, const gmd_request *r)
{
    live_block *b = &p->blocks[r->block];
    if (r->op == GMD_OP_ALLOC) {
        allocate(p, r);
    } else if (!b->is_live) {
        return;
    } else if (r->op == GMD_OP_FREE) {
        free_block(p, b);
    } else if (r->op == GMD_OP_USE) {
        work_on(p, b, r);
    } else {
        add_on_stream(p, STEP_RECORD, b->device, r->stream)->allocation = b->allocation;
        user_of(p, b, r->stream)->is_recorded = true;
    }
}

static void plan_sync(planner *p, const gmd_request *r)
{
    if (is_captured(p, r->device, r->stream)) {
        p->is_spoilt = true;
        add_on_stream(p, STEP_SPOIL, r->device, r->stream);
    } else {
        synchronize(p, r->device, r->stream);
    }
}

static void plan_request(planner *p, const gmd_request *r)
{
    switch ((gmd_op)r->op) {
    case GMD_OP_ALLOC:
    case GMD_OP_FREE:
    case GMD_OP_USE:
    case GMD_OP_RECORD:
        plan_on_block(p, r);
        break;
    case GMD_OP_WAIT:
        if (is_captured(p, r->device, r->other_stream)) {
            join(p, r->device, r->stream, r->other_stream);
        } else {
            wait_for(p, r->device, r->stream, r->other_stream, STEP_WAIT);
        }
        break;
    case GMD_OP_SYNC:
        plan_sync(p, r);
        break;
    case GMD_OP_ADVANCE:
        p->now_ns += r->duration_ns;
        let_go(p, 0, GMD_ALL_STREAMS, false);
        break;
    case GMD_OP_EMPTY_CACHE:
        add(p, STEP_EMPTY_CACHE)->number = 1;
        break;
    case GMD_OP_FRACTION: {
        step *s = add(p, STEP_FRACTION);
        s->device = r->device;
        s->fraction = r->fraction;
        break;
    }
    case GMD_OP_FAULT:
        add(p, STEP_FAULT);
        break;
    case GMD_OP_BUDGET:
        add(p, STEP_BUDGET);
        break;
    case GMD_OP_DEVICE:
        add(p, STEP_DEVICE)->device = r->device;
        break;
    case GMD_OP_DESTROY:
        destroy(p, r->device, r->stream);
        break;
    case GMD_OP_BEGIN_POOL:
        begin_pool(p, r->device, r->pool, r->stream);
        break;
    case GMD_OP_END_POOL:
        end_pool(p, r->device);
        break;
    case GMD_OP_RELEASE_POOL:
        release_pool(p, r->device, r->pool);
        break;
    case GMD_OP_BEGIN_CAPTURE:
        begin_capture(p, r->device, r->pool, r->stream);
        break;
    case GMD_OP_END_CAPTURE:
        end_capture(p);
        break;
    case GMD_OP_LAUNCH:
        launch(p, r->device, r->pool, r->stream);
        break;
    case GMD_OP_LEAVE_ERROR:
        add(p, STEP_LEAVE_ERROR);
        break;
    case GMD_OP_CHECKPOINT_POOL: /* neither program fits */
    case GMD_OP_RESTORE_POOL:
    case GMD_OP_COUNT:
        break;
    }
}

static void free_everything(planner *p)
{
    p->request = NO_REQUEST;
    end_capture(p);
    for (uint8_t d = 0; d < (uint8_t)p->plan->device_count; d++) {
        end_pool(p, d);
    }
    for (uint32_t i = 0; i < p->block_count; i++) {
        if (p->blocks[i].is_live) {
            free_block(p, &p->blocks[i]);
        }
    }
    for (uint8_t d = 0; d < (uint8_t)p->plan->device_count; d++) {
        for (uint32_t pool = 0; pool < GMD_MAX_POOLS; pool++) {
            destroy_graphs(p, d, pool, 0);
        }
    }
    for (uint8_t d = 0; d < (uint8_t)p->plan->device_count; d++) {
        for (uint32_t pool = 0; pool < GMD_MAX_POOLS; pool++) {
            while (p->pools[d][pool].holders) {
                release_pool(p, d, pool);
            }
        }
    }
    for (uint8_t d = 0; d < (uint8_t)p->plan->device_count; d++) {
        synchronize(p, d, GMD_ALL_STREAMS);
    }
    add(p, STEP_EMPTY_CACHE)->number = 2; /* the second: what the first one has made free */
}

/* --- plans ------------------------------------------------------------------------------- */

static void measure(plan *made, const gmd_trace *t)
{
    made->device_count = t->conditions.device_count ? t->conditions.device_count : 1;
    made->stream_count = t->streams.count ? t->streams.count : 1;
    for (size_t i = 0; i < t->count; i++) {
        const gmd_request *r = &t->requests[i];
        uint32_t streams = r->stream == GMD_ALL_STREAMS ? 1 : r->stream + 1;
        streams =
            r->op == GMD_OP_WAIT && r->other_stream >= streams ? r->other_stream + 1 : streams;
        made->stream_count = streams > made->stream_count ? streams : made->stream_count;
        uint32_t devices = r->device + UINT32_C(1);
        made->device_count = devices > made->device_count ? devices : made->device_count;
    }
}

static bool prepare(planner *p)
{
    plan *made = p->plan;
    p->block_count = 1;
    for (size_t i = 0; i < p->trace->count; i++) {
        const gmd_request *r = &p->trace->requests[i];
        if (r->op <= GMD_OP_RECORD && r->block >= p->block_count) {
            p->block_count = r->block + 1;
        }
    }
    size_t streams = (size_t)made->device_count * made->stream_count;
    made->has_stream = calloc(streams, sizeof *made->has_stream);
    p->streams = calloc(streams, sizeof *p->streams);
    p->blocks = calloc(p->block_count, sizeof *p->blocks);
    p->rounds = calloc(p->block_count, sizeof *p->rounds);
    return made->has_stream && p->streams && p->blocks && p->rounds;
}

static void release(planner *p)
{
    size_t streams = (size_t)p->plan->device_count * p->plan->stream_count;
    for (size_t i = 0; p->streams && i < streams; i++) {
        free(p->streams[i].is_before);
    }
    for (size_t i = 0; p->blocks && i < p->block_count; i++) {
        free(p->blocks[i].users);
    }
    free(p->streams);
    free(p->blocks);
    free(p->rounds);
    free(p->held);
    free(p->graphs);
    free(p);
}

bool plan_make(plan *made, const gmd_trace *trace, size_t count)
{
    planner *p = calloc(1, sizeof *p);
    if (!p) {
        return false;
    }
    p->trace = trace;
    p->plan = made;
    p->capture_device = NO_CAPTURE;
    measure(made, trace);
    p->has_failed = !prepare(p);
    for (p->request = 0; !p->has_failed && p->request < count; p->request++) {
        const gmd_request *r = &trace->requests[p->request];
        if (is_left_out(p, r)) {
            add(p, STEP_LEFT_OUT);
        } else {
            plan_request(p, r);
        }
    }
    if (!p->has_failed) {
        free_everything(p);
    }
    made->graph_count = (uint32_t)p->graph_count;
    bool is_made = !p->has_failed;
    release(p);
    return is_made;
}

void plan_free(plan *made)
{
    free(made->steps);
    free(made->allocations);
    free(made->has_stream);
    *made = (plan){0};
}

const step *plan_request_end(const plan *made, const step *first)
{
    const step *end = made->steps + made->step_count, *s = first;
    while (s < end && s->request == first->request) {
        s++;
    }
    return s;
}

bool plan_has(const plan *made, step_kind kind)
{
    for (size_t i = 0; i < made->step_count; i++) {
        if (made->steps[i].kind == kind) {
            return true;
        }
    }
    return false;
}

bool plan_is_launched(const plan *made, int64_t graph)
{
    bool is_launched = false, is_spoilt = false;
    for (size_t i = 0; i < made->step_count; i++) {
        const step *s = &made->steps[i];
        is_launched = is_launched || (s->kind == STEP_LAUNCH && s->number == graph);
        is_spoilt =
            is_spoilt || (s->kind == STEP_END_CAPTURE && s->number == graph && s->is_spoilt);
    }
    return is_launched && !is_spoilt;
}

size_t plan_last_alloc(const gmd_trace *trace)
{
    for (size_t i = trace->count; i > 0; i--) {
        if (trace->requests[i - 1].op == GMD_OP_ALLOC) {
            return i - 1;
        }
    }
    return trace->count;
}
