#include "gmd_generate.h"

#include "generator.h"
#include "many.h"
#include "turns.h"

#include "gmd_assert.h"
#include "gmd_interleaving.h"
#include "gmd_min.h"
#include "gmd_size.h"
#include "gmd_text.h"
#include "gmd_trace_validity.h"

#include <stddef.h>
#include <string.h>

/* --- requests ---------------------------------------------------------------------------- */

/* Among many streams requests meet on few of them. */
#define STREAMS_USUAL 4
#define LONG_WORK_NS  UINT64_C(2000000000000)

static uint32_t choose_stream(gmd_generator *g)
{
    if (generator_is_for_capture(g)) {
        return g->captured_stream;
    }
    uint32_t count = g->profile->stream_count;
    bool is_one_of_few =
        g->profile->many && count > STREAMS_USUAL && gmd_random_chance(&g->random, 80);
    return (uint32_t)gmd_random_below(&g->random, is_one_of_few ? STREAMS_USUAL : count);
}

/* Plans come out of it the last first. */
static void plan(gmd_generator *g, gmd_request request)
{
    if (g->planned_count < sizeof g->planned / sizeof *g->planned) {
        g->planned[g->planned_count++] = request;
    }
}

/* A freed size is often asked for again at once: by then it may or may not be there. */
static gmd_request make_free(gmd_generator *g)
{
    uint32_t which = (uint32_t)gmd_random_below(&g->random, g->live_count);
    gmd_generated_block b = g->live[which];
    gmd_request freed = generator_free(g, which);
    if (gmd_random_chance(&g->random, 30)) {
        plan(g, (gmd_request){.op = GMD_OP_ALLOC,
                              .bytes = b.bytes,
                              .stream =
                                  gmd_random_chance(&g->random, 70) ? b.stream : choose_stream(g),
                              .device = b.device});
    }
    return freed;
}

/* With the host's clock, beyond usual time limits of the host's: ten seconds, a minute... */
static uint64_t choose_duration(gmd_generator *g, bool moves_clock)
{
    static const uint64_t long_ones_s[] = {11, 61, 601, 3601};
    if (moves_clock && gmd_random_chance(&g->random, 50)) {
        return long_ones_s[gmd_random_below(&g->random, 4)] * 1000000000;
    }
    static const uint64_t durations[] = {1000, 10000, 100000, 1000000000};
    return durations[gmd_random_below(&g->random, 4)];
}

/* Where the host's clock moves, some work outlasts what an allocator takes for long. */
static uint64_t choose_work_duration(gmd_generator *g)
{
    bool is_long = g->profile->conditions.moves_clock && gmd_random_chance(&g->random, 30);
    return is_long ? LONG_WORK_NS : choose_duration(g, false);
}

/* Graphs work with the blocks that were allocated last. */
static const gmd_generated_block *choose_live(gmd_generator *g)
{
    return &g->live[generator_is_for_capture(g) ? g->live_count - 1
                                                : gmd_random_below(&g->random, g->live_count)];
}

static uint64_t choose_budget(gmd_generator *g)
{
    return gmd_random_chance(&g->random, 40)
               ? GMD_NO_BUDGET
               : gmd_random_below(&g->random, 1 + generator_limit(g->profile) / (2 * GMD_MIB)) * 2 *
                     GMD_MIB;
}

static void draw_stream(gmd_generator *g, gmd_field field, gmd_request *r)
{
    switch (field) {
    case GMD_FIELD_STREAM:
        r->stream = choose_stream(g);
        break;
    case GMD_FIELD_OWN_STREAM:
        r->stream = 1 + (uint32_t)gmd_random_below(&g->random, g->profile->stream_count - 1);
        break;
    case GMD_FIELD_STREAM_OR_ALL: /* to wait for one that is captured would fail the capture */
        r->stream = g->pools.capturing || gmd_random_chance(&g->random, 50) ? GMD_ALL_STREAMS
                                                                            : choose_stream(g);
        break;
    case GMD_FIELD_OTHER_STREAM:
        r->other_stream = choose_stream(g);
        break;
    default:
        break;
    }
}

static void draw_value(gmd_generator *g, gmd_field field, gmd_request *r)
{
    switch (field) {
    case GMD_FIELD_FUNCTION: /* which says the error */
        r->function = (uint32_t)gmd_random_below(&g->random, g->space->fault_target_count);
        r->error = g->space->fault_targets[r->function].error;
        break;
    case GMD_FIELD_COUNT:
        r->count = 1 + (uint32_t)gmd_random_below(&g->random, 4);
        break;
    case GMD_FIELD_BYTES:
        r->bytes = generator_choose_size(g, r->device);
        break;
    case GMD_FIELD_BYTES_OR_NONE:
        r->bytes = choose_budget(g);
        break;
    case GMD_FIELD_DURATION:
        r->duration_ns = choose_duration(g, g->profile->conditions.moves_clock);
        break;
    case GMD_FIELD_WORK_DURATION:
        r->duration_ns = choose_work_duration(g);
        break;
    case GMD_FIELD_FRACTION:
        r->fraction = gmd_random_chance(&g->random, 50)
                          ? g->profile->fraction
                          : (double)(1 + gmd_random_below(&g->random, 4)) / 4;
        break;
    default:
        break;
    }
}

static void draw_fields(gmd_generator *g, gmd_request *r)
{
    for (size_t i = 0; i < GMD_REQUEST_FIELDS; i++) {
        gmd_field field = (gmd_field)gmd_request_rows[r->op].fields[i];
        draw_stream(g, field, r);
        draw_value(g, field, r);
    }
}

static gmd_request make_on_block(gmd_generator *g, gmd_op op)
{
    const gmd_generated_block *b = choose_live(g);
    gmd_request r = {.op = (uint8_t)op, .block = b->block, .device = b->device};
    draw_fields(g, &r);
    bool is_work = gmd_op_has(r.op, GMD_FIELD_WORK_DURATION);
    if (is_work && r.stream != b->stream && g->space->has_record_stream &&
        gmd_random_chance(&g->random, 60)) {
        plan(g,
             (gmd_request){
                 .op = GMD_OP_RECORD, .block = b->block, .device = b->device, .stream = r.stream});
    }
    return r;
}

/* A fault is of a function, on whatever device. */
static gmd_request make_other(gmd_generator *g, gmd_op op)
{
    gmd_request r = {.op = (uint8_t)op};
    if (!gmd_op_has(r.op, GMD_FIELD_FUNCTION)) {
        r.device = generator_choose_device(g);
    }
    draw_fields(g, &r);
    r.device = gmd_op_has_any(r.op, GMD_DEVICE_FIELDS) ? r.device : 0;
    return r;
}

/* What the pool that is open allows, or else the begin of one. */
static gmd_request make_allowed(gmd_generator *g, uint8_t device, uint32_t pool)
{
    uint8_t open = g->pools.open[device];
    bool is_capture = g->pools.capturing == device + 1;
    return (gmd_request){.op = is_capture ? GMD_OP_END_CAPTURE
                               : open     ? GMD_OP_END_POOL
                                          : GMD_OP_BEGIN_POOL,
                         .device = device,
                         .stream = open ? 0 : GMD_ALL_STREAMS,
                         .pool = open ? open - 1u : pool};
}

/* Half of the pools that are made have options, of those that the profile has. A choice is drawn
 * only where there are some: others' sequences are what they were before. */
static void draw_pool_options(gmd_generator *g, gmd_request *r)
{
    bool is_made = r->op == GMD_OP_BEGIN_POOL && !g->pools.holders[r->device][r->pool];
    if (is_made && g->profile->pool_options && gmd_random_chance(&g->random, 50)) {
        r->pool_options = g->profile->pool_options;
    }
}

/* One that can have it, from `first` on; `first`: none can. */
static uint32_t choose_for_checkpoint(const gmd_generator *g, gmd_op op, uint8_t device,
                                      uint32_t first)
{
    for (uint32_t i = 0; i < g->pool_count; i++) {
        uint32_t pool = (first + i) % g->pool_count;
        if (op == GMD_OP_RESTORE_POOL ? g->pools.has_checkpoint[device][pool]
                                      : g->pools.holders[device][pool] > 0) {
            return pool;
        }
    }
    return first;
}

/* Few pools, each in turn open, ended and released: what may not be done here gives way to what
 * may. A capture fails now and then, because the host waits for its stream. */
static gmd_request make_on_pool(gmd_generator *g, gmd_op op)
{
    enum { POOLS = 3 };
    uint8_t device = generator_choose_device(g);
    uint32_t choice = (uint32_t)gmd_random_below(&g->random, POOLS);
    uint8_t open = g->pools.open[device];
    gmd_request r = {.op = (uint8_t)op,
                     .device = device,
                     .pool = choice < g->pool_count ? choice : g->pool_count};
    bool is_end = gmd_request_rows[op].pool_step == GMD_POOL_STEP_END;
    if (is_end && gmd_op_is_of_capture(r.op) && g->pools.capturing &&
        gmd_random_chance(&g->random, 8)) {
        return (gmd_request){
            .op = GMD_OP_SYNC, .device = g->pools.capturing - 1, .stream = g->captured_stream};
    }
    if (is_end) {
        r.pool = open ? open - 1u : r.pool;
    } else if (gmd_op_needs(r.op, GMD_NEEDS_CHECKPOINTS)) {
        r.pool = choose_for_checkpoint(g, op, device, r.pool);
    } else if (gmd_op_has(r.op, GMD_FIELD_STREAM_OR_ALL)) {
        r.stream = gmd_random_chance(&g->random, 50) ? GMD_ALL_STREAMS : choose_stream(g);
    } else if (gmd_op_has(r.op, GMD_FIELD_STREAM)) {
        r.stream = choose_stream(g);
    }
    draw_pool_options(g, &r);
    if (gmd_pool_state_note(&g->pools, &r)) {
        r = make_allowed(g, device, r.pool);
        if (gmd_pool_state_note(&g->pools, &r)) {
            return make_other(g, GMD_OP_ADVANCE);
        }
    }
    bool is_capture =
        gmd_op_is_of_capture(r.op) && gmd_request_rows[r.op].pool_step == GMD_POOL_STEP_BEGIN;
    g->captured_stream = is_capture ? r.stream : g->captured_stream;
    g->pool_count += r.pool == g->pool_count;
    return r;
}

/* A profile may have been shaped after it was drawn, and by one who does not know the space: what
 * cannot be made there is not. */
static uint32_t weight_of(const gmd_generator *g, int op)
{
    const gmd_profile_space *space = g->space;
    const uint32_t of_the_program = GMD_NEEDS_STREAMS | GMD_NEEDS_DEVICES;
    uint32_t needs = gmd_request_rows[op].needs & ~of_the_program;
    bool is_possible =
        !(needs & ~gmd_profile_needs_met(g->profile, space)) &&
        (!gmd_op_has((uint8_t)op, GMD_FIELD_OWN_STREAM) || g->profile->stream_count > 1);
    return is_possible && !(space->without_ops >> op & 1) ? g->profile->weights[op] : 0;
}

static gmd_op choose_op(gmd_generator *g)
{
    uint64_t at = gmd_random_below(&g->random, g->weight_sum);
    int op = 0;
    while (at >= g->weights[op]) {
        at -= g->weights[op++];
    }
    if (gmd_op_has((uint8_t)op, GMD_FIELD_BLOCK) && !g->live_count) {
        return GMD_OP_ALLOC;
    }
    return op == GMD_OP_ALLOC && g->live_count >= g->profile->live_max ? GMD_OP_FREE : (gmd_op)op;
}

/* (Choices are made one after the other, not among the arguments of a call, whose order is the
 * compiler's: the same seed, the same sequence everywhere.) */
static gmd_request make_new_block(gmd_generator *g)
{
    uint8_t device = generator_choose_device(g);
    uint32_t stream = choose_stream(g);
    uint64_t size = generator_choose_size(g, device);
    return generator_alloc(g, size, stream, device);
}

static gmd_request make_request(gmd_generator *g)
{
    gmd_op op = choose_op(g);
    if (op == GMD_OP_ALLOC) {
        return make_new_block(g);
    }
    if (op == GMD_OP_FREE) {
        return make_free(g);
    }
    return gmd_op_is_on_pool((uint8_t)op)             ? make_on_pool(g, op)
           : gmd_op_has((uint8_t)op, GMD_FIELD_BLOCK) ? make_on_block(g, op)
                                                      : make_other(g, op);
}

/* --- sequences --------------------------------------------------------------------------- */

gmd_status gmd_generator_step(gmd_generator *g, gmd_trace *trace, gmd_error *error)
{
    gmd_request request;
    if (g->planned_count) {
        request = g->planned[--g->planned_count];
        if (request.op == GMD_OP_ALLOC) { /* with a block of its own */
            request = g->live_count < GMD_LIVE_MAX
                          ? generator_alloc(g, request.bytes, request.stream, request.device)
                          : make_free(g);
        }
    } else {
        request = make_request(g);
    }
    bool ends_capture = gmd_op_is_of_capture(request.op) &&
                        gmd_request_rows[request.op].pool_step == GMD_POOL_STEP_END;
    bool may_change = !g->pools.capturing && !ends_capture; /* its own thread */
    if (g->profile->thread_count > 1 && may_change && gmd_random_chance(&g->random, 30)) {
        g->thread = (uint8_t)gmd_random_below(&g->random, g->profile->thread_count);
    }
    request.thread = g->thread;
    return gmd_trace_append(trace, &request, error);
}

static gmd_status add_nameless(gmd_names *names, size_t count, gmd_error *error)
{
    gmd_status status = GMD_OK;
    uint32_t index;
    for (size_t i = 0; i < count && status == GMD_OK; i++) {
        status = gmd_names_add(names, NULL, &index, error);
    }
    return status;
}

static gmd_status add_functions(gmd_names *names, const gmd_profile_space *space, gmd_error *error)
{
    gmd_status status = GMD_OK;
    uint32_t index;
    for (uint32_t i = 0; i < space->fault_target_count && status == GMD_OK; i++) {
        status = gmd_names_add(names, space->fault_targets[i].function, &index, error);
    }
    return status;
}

static gmd_status write_header(gmd_generator *g, gmd_trace *trace, gmd_error *error)
{
    const gmd_profile *p = g->profile;
    gmd_conditions drawn = p->conditions;
    if (drawn.schedule.kind != GMD_SCHEDULE_SEEDED) {
        drawn.schedule.seed = 0;
    }
    if (p->interleaves) {
        drawn.interleave = gmd_interleaving_of(gmd_random_below(&g->random, 1000000));
    }
    gmd_status status = gmd_conditions_copy(&trace->conditions, &drawn, error);
    if (status == GMD_OK) {
        status = add_nameless(&trace->streams, p->stream_count - 1, error);
    }
    if (status == GMD_OK) {
        status = add_nameless(&trace->threads, p->thread_count - 1, error);
    }
    return status != GMD_OK ? status : add_functions(&trace->functions, g->space, error);
}

gmd_status gmd_generator_start(gmd_generator *g, const gmd_profile *profile,
                               const gmd_profile_space *space, uint64_t seed, gmd_trace *trace,
                               gmd_error *error)
{
    /* `live` is large, and read as far as it was written. */
    memset(&g->live_count, 0, sizeof *g - offsetof(gmd_generator, live_count));
    g->profile = profile;
    g->space = space;
    g->random = (gmd_random){seed};
    for (int op = 0; op < GMD_OP_COUNT; op++) {
        g->weights[op] = weight_of(g, op);
        g->weight_sum += g->weights[op];
    }
    gmd_status status = write_header(g, trace, error);
    for (uint32_t device = 0; device < profile->conditions.device_count && profile->fraction < 1;
         device++) {
        gmd_request r = {
            .op = GMD_OP_FRACTION, .device = (uint8_t)device, .fraction = profile->fraction};
        if (status == GMD_OK) {
            status = gmd_trace_append(trace, &r, error);
        }
    }
    return status;
}

const char *gmd_generator_violation(const gmd_generator *g)
{
    uint64_t bytes[GMD_MAX_DEVICES] = {0};
    if (g->live_count > GMD_LIVE_MAX || g->live_count > g->next_block) {
        return "live blocks are among those that were made";
    }
    for (uint32_t i = 0; i < g->live_count; i++) {
        const gmd_generated_block *b = &g->live[i];
        if (b->block >= g->next_block || (i && b->block <= g->live[i - 1].block)) {
            return "live blocks are in the order of their allocations";
        }
        if (b->device >= g->profile->conditions.device_count ||
            b->stream >= g->profile->stream_count) {
            return "a live block has a device and a stream of the profile";
        }
        bytes[b->device] += b->bytes < generator_limit(g->profile) ? b->bytes : 0;
    }
    return memcmp(bytes, g->live_bytes, sizeof bytes) != 0
               ? "live bytes are the sum over live blocks"
               : gmd_pool_state_violation(&g->pools);
}

static gmd_status append_steps(gmd_generator *g, uint32_t count, gmd_trace *trace, gmd_error *error)
{
    gmd_status status = GMD_OK;
    for (uint32_t i = 0; i < count && status == GMD_OK; i++) {
        status = gmd_generator_step(g, trace, error);
    }
    return status;
}

/* `request_count` requests; somewhere in between, if there are any, many of one kind. */
static gmd_status append_usual(gmd_generator *g, gmd_trace *trace, gmd_error *error)
{
    uint32_t count = g->profile->request_count;
    uint32_t many_at =
        g->profile->many ? (uint32_t)gmd_random_below(&g->random, count) : UINT32_MAX;
    gmd_status status = append_steps(g, (uint32_t)gmd_min(many_at, count), trace, error);
    if (many_at < count && status == GMD_OK) {
        status = many_append(g, trace, error);
        status = status == GMD_OK ? append_steps(g, count - many_at, trace, error) : status;
    }
    return status;
}

/* Phases of turns, and between them a few requests, or none. */
static gmd_status append_turns(gmd_generator *g, gmd_trace *trace, gmd_error *error)
{
    turns_program program;
    turns_begin(&program, g);
    gmd_status status = GMD_OK;
    for (uint64_t left = 2 + gmd_random_below(&g->random, 5); left && status == GMD_OK; left--) {
        uint32_t steps =
            gmd_random_chance(&g->random, 40) ? 1 + (uint32_t)gmd_random_below(&g->random, 4) : 0;
        status = append_steps(g, steps, trace, error);
        status = status == GMD_OK ? turns_append(&program, g, trace, error) : status;
    }
    return status == GMD_OK ? append_steps(g, g->profile->request_count, trace, error) : status;
}

gmd_status gmd_generate(const gmd_profile *profile, const gmd_profile_space *space, uint64_t seed,
                        gmd_trace *trace, gmd_error *error)
{
    gmd_generator g;
    gmd_status status = gmd_generator_start(&g, profile, space, seed, trace, error);
    if (status == GMD_OK) {
        status = profile->many == GMD_MANY_TURNS ? append_turns(&g, trace, error)
                                                 : append_usual(&g, trace, error);
    }
    /* Every block and pool has an entry, so that the trace can be written. */
    status = status == GMD_OK ? add_nameless(&trace->blocks, g.next_block, error) : status;
    status = status == GMD_OK ? add_nameless(&trace->pools, g.pool_count, error) : status;
    GMD_ASSERT_VALID(gmd_generator_violation(&g));
    GMD_ASSERT_VALID(status == GMD_OK ? gmd_trace_violation(trace) : NULL);
    return status;
}
