#include "gmd_rounds.h"

#include "host_growth.h"

#include "gmd_clock.h"
#include "gmd_min.h"
#include "gmd_runner.h"
#include "gmd_session.h"
#include "gmd_size.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TRIES       60
#define COUNT_LEAST 64
#define COUNT_MOST  16384
#define AGAIN       4 /* times as many rounds, where something grew: caches have bounds */

static const char growth[] = "the same round again and again needs ever more of the device: ";

/* --- what is held ------------------------------------------------------------------------ */

typedef enum held_kind {
    HELD_MEMORY,
    HELD_ALLOCATIONS,
    HELD_HANDLES,
    HELD_ADDRESSES,
    HELD_EVENTS,
    HELD_STREAMS,
    HELD_KINDS
} held_kind;

static const char *const held_tokens[HELD_KINDS] = {"memory",    "allocations", "handles",
                                                    "addresses", "events",      "streams"};
static const char *const held_names[HELD_KINDS] = {
    "bytes of memory", "allocations", "physical handles", "bytes of reserved addresses",
    "events",          "streams"};

typedef struct repetition {
    const gmd_trace *round;
    uint32_t count, block_count;
    uint64_t most[ROUND_WINDOWS][HELD_KINDS]; /* in each window */
    bool is_forgiven[HELD_KINDS];             /* the emptied cache gave it back */
    host_growth host;
} repetition;

static uint32_t device_count(const repetition *run)
{
    uint32_t count = run->round->conditions.device_count;
    return count ? count : 1;
}

static void look(const gmd_session *session, uint32_t device_count, uint64_t *most)
{
    const gmd_sim_api *sim = gmd_session_runtime(session)->sim;
    uint64_t held[HELD_KINDS] = {0};
    for (uint32_t i = 0; i < device_count; i++) {
        gmd_sim_device_state d;
        if (sim->gmd_sim_device((int)i, &d) == 0) {
            held[HELD_MEMORY] += d.physical_bytes;
            held[HELD_ALLOCATIONS] += d.allocation_count;
            held[HELD_HANDLES] += d.handle_count;
            held[HELD_ADDRESSES] += d.reservation_bytes;
            held[HELD_EVENTS] += d.event_count;
            held[HELD_STREAMS] += d.stream_count;
        }
    }
    for (int kind = 0; kind < HELD_KINDS; kind++) {
        most[kind] = gmd_max(held[kind], most[kind]);
    }
}

/* Window 3 is the last half of all rounds, 2 the half before that... */
static int window_of(uint32_t index, uint32_t count)
{
    int window = ROUND_WINDOWS - 1;
    while (window > 0 && index < count / 2) {
        count /= 2;
        window--;
    }
    return window;
}

static bool grows(const repetition *run, int kind)
{
    uint64_t last = 0;
    for (int w = 1; w < ROUND_WINDOWS; w++) {
        if (run->most[w][kind] <= run->most[w - 1][kind]) {
            return false;
        }
        uint64_t by = run->most[w][kind] - run->most[w - 1][kind];
        if (by < last) {
            return false;
        }
        last = by;
    }
    return true;
}

static void judge_host(gmd_session *session, const repetition *run, uint64_t requests)
{
    char text[400];
    const char *function = host_growth_tell(&run->host, run->count, text, sizeof text);
    if (function) {
        gmd_session_fail(session, GMD_KIND(leak, host_memory), GMD_PARTIES({"in", function}),
                         requests, text);
    }
}

static bool releases_pools(const gmd_trace *round)
{
    for (size_t i = 0; i < round->count; i++) {
        if (round->requests[i].op == GMD_OP_RELEASE_POOL) {
            return true;
        }
    }
    return false;
}

/* What a pool that is over had may stay in the cache until that is emptied, as in PyTorch's
 * allocator: what goes back then has not grown. Host memory that goes with it is not judged. False:
 * the run ended. */
static bool forgive_caches(gmd_session *session, repetition *run, uint64_t *requests)
{
    gmd_request empty = {.op = GMD_OP_EMPTY_CACHE};
    uint64_t left[HELD_KINDS] = {0};
    if (!releases_pools(run->round) || !grows(run, HELD_MEMORY)) {
        return true;
    }
    ++*requests;
    if (gmd_session_request(session, &empty) == GMD_STOP) {
        return false;
    }
    look(session, device_count(run), left);
    for (int kind = 0; kind < HELD_KINDS; kind++) {
        run->is_forgiven[kind] = left[kind] <= run->most[0][kind];
    }
    return true;
}

static void judge(gmd_session *session, const repetition *run, uint64_t requests)
{
    for (int kind = 0; kind < HELD_KINDS; kind++) {
        if (!grows(run, kind) || run->is_forgiven[kind]) {
            continue;
        }
        char text[400];
        size_t at = (size_t)snprintf(
            text, sizeof text, "%s%s held with the same blocks live: ", growth, held_names[kind]);
        for (int w = 0; w < ROUND_WINDOWS; w++) {
            at += (size_t)snprintf(text + at, sizeof text - at, "%s%" PRIu64 " after %u rounds",
                                   w ? ", " : "", run->most[w][kind],
                                   run->count >> (ROUND_WINDOWS - 1 - w));
        }
        gmd_session_fail(session, GMD_KIND(progress, growth),
                         GMD_PARTIES({"held", held_tokens[kind]}), requests, text);
        return;
    }
    if (!run->is_forgiven[HELD_MEMORY]) {
        judge_host(session, run, requests);
    }
}

/* --- rounds ------------------------------------------------------------------------------ */

static gmd_request renamed(const gmd_request *request, uint32_t round, uint32_t block_count)
{
    gmd_request r = *request;
    if (gmd_op_has_block(r.op)) {
        r.block += round % 2 * block_count;
    }
    return r;
}

static gmd_request free_of(uint32_t block, uint32_t round, uint32_t block_count)
{
    gmd_request r = {.op = GMD_OP_FREE, .block = block};
    return renamed(&r, round, block_count);
}

/* A free of what is not live is left out by the session. */
static bool play_round(gmd_session *session, const repetition *run, uint32_t index,
                       uint64_t *requests)
{
    for (size_t i = 0; i < run->round->count; i++) {
        gmd_request r = renamed(&run->round->requests[i], index, run->block_count);
        ++*requests;
        if (gmd_session_request(session, &r) == GMD_STOP) {
            return false;
        }
    }
    for (uint32_t b = 0; b < run->block_count && index > 0; b++) {
        gmd_request r = free_of(b, index - 1, run->block_count);
        ++*requests;
        if (gmd_session_request(session, &r) == GMD_STOP) {
            return false;
        }
    }
    gmd_request wait = {.op = GMD_OP_SYNC, .stream = GMD_ALL_STREAMS};
    for (uint32_t device = 0; device < device_count(run); device++) {
        wait.device = (uint8_t)device;
        ++*requests;
        if (gmd_session_request(session, &wait) == GMD_STOP) {
            return false;
        }
    }
    return true;
}

static gmd_status play_rounds(void *context, gmd_session *session, gmd_error *error)
{
    repetition *run = context;
    uint64_t requests = 0;
    (void)error;
    gmd_host_heap_watch();
    for (uint32_t i = 0; i < run->count; i++) {
        if (!play_round(session, run, i, &requests)) {
            return GMD_OK;
        }
        int window = window_of(i, run->count);
        look(session, device_count(run), run->most[window]);
        host_growth_look(&run->host, window);
    }
    if (forgive_caches(session, run, &requests)) {
        judge(session, run, requests);
    }
    return GMD_OK;
}

uint32_t gmd_rounds_count(const gmd_trace *round, uint64_t allocations)
{
    uint64_t in_a_round = 0;
    uint32_t count = COUNT_LEAST;
    for (size_t i = 0; i < round->count; i++) {
        in_a_round += round->requests[i].op == GMD_OP_ALLOC;
    }
    while (count * (in_a_round ? in_a_round : 1) < allocations && count < COUNT_MOST) {
        count *= 2;
    }
    return count;
}

static gmd_status run_rounds(const gmd_run_options *given, const gmd_trace *round, uint32_t count,
                             gmd_outcome *outcome, gmd_error *error)
{
    repetition run = {.round = round, .count = count, .block_count = round->blocks.count};
    gmd_run_options options = *given;
    options.cases.directory = NULL;
    options.conditions = gmd_conditions_in_force(&round->conditions, &given->conditions);
    options.conditions.schedule = round->conditions.schedule; /* unstated: timed */
    gmd_workload workload = {
        .name = "rounds", .kind = "rounds", .body = play_rounds, .context = &run};
    return gmd_run_isolated(&options, &workload, outcome, error);
}

static bool is_growth_on_host(const gmd_violation *violation)
{
    return gmd_identity_is(&violation->identity, GMD_KIND(leak, host_memory));
}

gmd_status gmd_rounds_run(const gmd_run_options *given, const gmd_trace *round,
                          uint64_t allocations, gmd_outcome *outcome, gmd_error *error)
{
    uint32_t count = gmd_rounds_count(round, allocations);
    gmd_status status = run_rounds(given, round, count, outcome, error);
    if (status == GMD_OK && outcome->violation_count && gmd_rounds_is_growth(outcome->violations)) {
        status = run_rounds(given, round, count * AGAIN, outcome, error);
    }
    return status;
}

bool gmd_rounds_is_growth(const gmd_violation *violation)
{
    return gmd_identity_is(&violation->identity, GMD_KIND(progress, growth)) ||
           is_growth_on_host(violation);
}

/* --- as one trace ------------------------------------------------------------------------ */

static gmd_status add_names(gmd_names *names, uint32_t count, gmd_error *error)
{
    gmd_status status = GMD_OK;
    uint32_t index;
    while (names->count < count && status == GMD_OK) {
        status = gmd_names_add(names, NULL, &index, error);
    }
    return status;
}

/* Only frees of blocks that are live can stand in a trace. */
static gmd_status unroll(const gmd_trace *round, uint32_t count, gmd_trace *out, bool *is_live,
                         gmd_error *error)
{
    uint32_t blocks = round->blocks.count;
    gmd_status status = GMD_OK;
    for (uint32_t k = 0; k < count && status == GMD_OK; k++) {
        for (size_t i = 0; i < round->count && status == GMD_OK; i++) {
            gmd_request r = renamed(&round->requests[i], k, blocks);
            if (gmd_op_has_block(r.op)) {
                is_live[r.block] = r.op != GMD_OP_FREE;
            }
            status = gmd_trace_append(out, &r, error);
        }
        for (uint32_t b = 0; b < blocks && k > 0 && status == GMD_OK; b++) {
            gmd_request r = free_of(b, k - 1, blocks);
            if (is_live[r.block]) {
                is_live[r.block] = false;
                status = gmd_trace_append(out, &r, error);
            }
        }
        gmd_request wait = {.op = GMD_OP_SYNC, .stream = GMD_ALL_STREAMS};
        for (uint32_t d = 0;
             d < (round->conditions.device_count ? round->conditions.device_count : 1) &&
             status == GMD_OK;
             d++) {
            wait.device = (uint8_t)d;
            status = gmd_trace_append(out, &wait, error);
        }
    }
    return status;
}

gmd_status gmd_rounds_unroll(const gmd_trace *round, uint32_t count, gmd_trace *out,
                             gmd_error *error)
{
    gmd_status status = gmd_trace_copy(out, round, error);
    if (status != GMD_OK) {
        return status;
    }
    bool *is_live = calloc((size_t)round->blocks.count * 2 + 1, sizeof *is_live);
    if (!is_live) {
        gmd_trace_free(out);
        return gmd_fail(error, GMD_NO_MEMORY, "no host memory for a trace");
    }
    out->count = 0;
    status = add_names(&out->blocks, round->blocks.count * 2, error);
    if (status == GMD_OK) {
        status = unroll(round, count, out, is_live, error);
    }
    free(is_live);
    if (status != GMD_OK) {
        gmd_trace_free(out);
    }
    return status;
}

/* --- smaller ----------------------------------------------------------------------------- */

static bool still_grows(const gmd_run_options *given, const gmd_trace *round, uint64_t allocations,
                        gmd_outcome *outcome)
{
    gmd_error error;
    return gmd_rounds_run(given, round, allocations, outcome, &error) == GMD_OK &&
           outcome->violation_count && gmd_rounds_is_growth(&outcome->violations[0]);
}

/* A block goes with all its requests. */
static void keep_without_blocks(gmd_trace *round, const gmd_request *from, size_t count,
                                uint32_t first, uint32_t last)
{
    round->count = 0;
    for (size_t i = 0; i < count; i++) {
        bool is_dropped =
            gmd_op_has_block(from[i].op) && from[i].block >= first && from[i].block < last;
        if (!is_dropped) {
            round->requests[round->count++] = from[i];
        }
    }
}

static void keep_without_request(gmd_trace *round, const gmd_request *from, size_t count, size_t at)
{
    round->count = 0;
    for (size_t i = 0; i < count; i++) {
        if (i != at) {
            round->requests[round->count++] = from[i];
        }
    }
}

typedef struct reduction {
    const gmd_run_options *given;
    gmd_trace *round;
    gmd_request *kept; /* the smallest that grows */
    size_t kept_count;
    uint64_t allocations;
    uint32_t tries;
    double end; /* no try begins later */
    gmd_outcome *outcome;
} reduction;

/* Keeps the shorter round if it still grows, and else puts back the one before. */
static bool try_it(reduction *r)
{
    bool is_smaller = r->round->count < r->kept_count;
    if (is_smaller && r->tries < TRIES && gmd_clock_s() < r->end) {
        r->tries++;
        if (still_grows(r->given, r->round, r->allocations, r->outcome)) {
            r->kept_count = r->round->count;
            memcpy(r->kept, r->round->requests, r->kept_count * sizeof *r->kept);
            return true;
        }
    }
    memcpy(r->round->requests, r->kept, r->kept_count * sizeof *r->kept);
    r->round->count = r->kept_count;
    return false;
}

static void reduce(reduction *r)
{
    uint32_t blocks = r->round->blocks.count;
    for (uint32_t size = (blocks + 1) / 2; size; size = size > 1 ? (size + 1) / 2 : 0) {
        for (uint32_t first = 0; first < blocks; first += size) {
            keep_without_blocks(r->round, r->kept, r->kept_count, first, first + size);
            try_it(r);
        }
    }
    for (size_t at = r->kept_count; at-- > 0;) {
        if (r->kept[at].op > GMD_OP_FREE) {
            keep_without_request(r->round, r->kept, r->kept_count, at);
            try_it(r);
        }
    }
}

void gmd_rounds_minimize(const gmd_run_options *given, gmd_trace *round, uint64_t allocations,
                         double seconds)
{
    reduction r = {.given = given,
                   .round = round,
                   .kept = malloc((round->count + 1) * sizeof *r.kept),
                   .kept_count = round->count,
                   .allocations = allocations,
                   .end = seconds > 0 ? gmd_clock_s() + seconds : INFINITY,
                   .outcome = calloc(1, sizeof *r.outcome)};
    if (r.kept && r.outcome) {
        memcpy(r.kept, round->requests, round->count * sizeof *r.kept);
        reduce(&r);
    }
    free(r.kept);
    free(r.outcome);
}
