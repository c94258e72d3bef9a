#include "gmd_runner.h"

#include "gmd_play.h"
#include "gmd_text.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* --- traces ------------------------------------------------------------------------------ */

static gmd_status copy_names(gmd_names *to, const gmd_names *from, gmd_error *error)
{
    gmd_status status = GMD_OK;
    uint32_t index;
    for (uint32_t i = 0; i < from->count && status == GMD_OK; i++) {
        status = gmd_names_add(to, from->items[i], &index, error);
    }
    return status;
}

gmd_status gmd_trace_copy(gmd_trace *to, const gmd_trace *from, gmd_error *error)
{
    *to = (gmd_trace){0};
    gmd_status status = gmd_conditions_copy(&to->conditions, &from->conditions, error);
    if (status != GMD_OK) {
        return status;
    }
    const gmd_names *sources[] = {&from->blocks, &from->streams, &from->threads, &from->functions,
                                  &from->pools};
    gmd_names *targets[] = {&to->blocks, &to->streams, &to->threads, &to->functions, &to->pools};
    for (size_t i = 0; i < sizeof sources / sizeof *sources && status == GMD_OK; i++) {
        status = copy_names(targets[i], sources[i], error);
    }
    for (size_t i = 0; i < from->count && status == GMD_OK; i++) {
        status = gmd_trace_append(to, &from->requests[i], error);
    }
    if (status != GMD_OK) {
        gmd_trace_free(to);
    }
    return status;
}

static gmd_status absorb_limit(gmd_trace *trace, const gmd_run_options *options, gmd_error *error)
{
    double fraction =
        (double)options->conditions.limit_bytes / (double)trace->conditions.capacity_bytes;
    while (fraction < 1 && (uint64_t)(fraction * (double)trace->conditions.capacity_bytes) <
                               options->conditions.limit_bytes) {
        fraction = nextafter(fraction, 1);
    }
    gmd_status status = GMD_OK;
    for (uint32_t i = 0; i < trace->conditions.device_count && status == GMD_OK; i++) {
        gmd_request r = {.op = GMD_OP_FRACTION, .device = (uint8_t)i, .fraction = fraction};
        status = gmd_trace_append(trace, &r, error);
        if (status == GMD_OK) {
            memmove(&trace->requests[1], &trace->requests[0], (trace->count - 1) * sizeof r);
            trace->requests[0] = r;
        }
    }
    return status;
}

/* `given` may borrow its choices from `to`. */
static gmd_status take_schedule(gmd_schedule *to, const gmd_schedule *given, gmd_error *error)
{
    if (!gmd_schedule_is_stated(given) || (given->choices && given->choices == to->choices)) {
        return GMD_OK;
    }
    gmd_schedule_free(to);
    return gmd_schedule_copy(to, given, error);
}

gmd_status gmd_trace_absorb_options(gmd_trace *trace, const gmd_run_options *options,
                                    gmd_error *error)
{
    trace->conditions.device_count = options->conditions.device_count;
    trace->conditions.capacity_bytes = options->conditions.capacity_bytes;
    gmd_status status = GMD_OK;
    if (options->conditions.conf != trace->conditions.conf) {
        status = gmd_conditions_set_conf(&trace->conditions, options->conditions.conf, error);
    }
    if (status == GMD_OK) {
        status = take_schedule(&trace->conditions.schedule, &options->conditions.schedule, error);
    }
    if (status == GMD_OK) {
        status =
            take_schedule(&trace->conditions.interleave, &options->conditions.interleave, error);
    }
    if (status == GMD_OK && options->conditions.limit_bytes &&
        options->conditions.limit_bytes <= options->conditions.capacity_bytes) {
        status = absorb_limit(trace, options, error);
    }
    return status;
}

/* --- the runner -------------------------------------------------------------------------- */

void gmd_runner_init(gmd_runner *runner, const gmd_run_options *given)
{
    *runner = (gmd_runner){.given = given};
}

void gmd_add_troubles(gmd_fork_server_troubles *sum, const gmd_fork_server_troubles *more)
{
    sum->restarts += more->restarts;
    sum->left_behind += more->left_behind;
}

static void take_troubles(gmd_runner *runner)
{
    if (runner->server) {
        gmd_fork_server_troubles more = gmd_fork_server_take_troubles(runner->server);
        gmd_add_troubles(&runner->troubles, &more);
    }
}

void gmd_runner_renew(gmd_runner *runner)
{
    if (runner->server) {
        gmd_fork_server_end(runner->server);
    }
    take_troubles(runner);
    gmd_fork_server_close(runner->server);
    runner->server = NULL;
}

void gmd_runner_close(gmd_runner *runner)
{
    gmd_runner_renew(runner);
    gmd_conditions_free(&runner->header);
    free(runner->own);
    runner->own = NULL;
}

gmd_status gmd_runner_isolate(gmd_runner *runner, bool is_isolated, gmd_error *error)
{
    if (!is_isolated) {
        free(runner->own);
        runner->own = NULL;
    } else if (!runner->own && !(runner->own = calloc(1, sizeof *runner->own))) {
        return gmd_fail(error, GMD_NO_MEMORY, "no host memory for an outcome");
    }
    return GMD_OK;
}

bool gmd_runner_shares_process(const gmd_runner *runner, const gmd_conditions *a,
                               const gmd_conditions *b)
{
    gmd_conditions x = *a, y = *b; /* views */
    if (runner->given->device.kind != GMD_DEVICE_SIM) {
        x.schedule = y.schedule = (gmd_schedule){0};
    }
    return gmd_conditions_same_device(&x, &y);
}

/* One that judged a run at all was not skipped. */
static void add_judged(gmd_oracle_result *to, const gmd_oracle_result *more)
{
    if (more->fate < to->fate) {
        to->fate = more->fate;
        memcpy(to->reason, more->reason, sizeof to->reason);
    }
    to->asked += more->asked;
    to->seconds += more->seconds;
}

void gmd_judged_add(gmd_judged *to, const gmd_oracle_result *oracles, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        uint32_t at = i; /* mostly the lists are the same */
        if (at >= to->count || strcmp(to->oracles[at].name, oracles[i].name) != 0) {
            for (at = 0; at < to->count && strcmp(to->oracles[at].name, oracles[i].name) != 0;
                 at++) {
            }
        }
        if (at == to->count && at < GMD_ORACLE_MAX) {
            to->oracles[to->count++] = oracles[i];
        } else if (at < to->count) {
            add_judged(&to->oracles[at], &oracles[i]);
        }
    }
}

static void note_judged(gmd_runner *runner, const gmd_outcome *outcome)
{
    gmd_judged_add(&runner->judged, outcome->oracles, outcome->oracle_count);
}

static gmd_status refuse_if_interrupted(const gmd_runner *runner, gmd_error *error)
{
    return gmd_options_interrupted(runner->given) ? gmd_fail(error, GMD_INTERRUPTED, "interrupted")
                                                  : GMD_OK;
}

static gmd_status take_header(gmd_runner *runner, const gmd_trace *t, gmd_error *error)
{
    gmd_status status = refuse_if_interrupted(runner, error);
    if (status != GMD_OK) {
        return status;
    }
    if (runner->server && gmd_runner_shares_process(runner, &runner->header, &t->conditions)) {
        gmd_fork_server_set_deadline(runner->server, runner->deadline_s);
        return GMD_OK;
    }
    gmd_runner_renew(runner);
    gmd_conditions_free(&runner->header);
    status = gmd_conditions_copy(&runner->header, &t->conditions, error);
    if (status != GMD_OK) {
        return status;
    }
    runner->options = gmd_options_under(runner->given, &runner->header);
    status = gmd_fork_server_open(&runner->server, &runner->options, error);
    if (status == GMD_OK) {
        gmd_fork_server_follow(runner->server, runner->given);
        gmd_fork_server_set_deadline(runner->server, runner->deadline_s);
    }
    return status;
}

gmd_status gmd_runner_log(gmd_runner *runner, const gmd_trace *trace, const gmd_outcome **outcome,
                          const gmd_logged_call **calls, size_t *call_count, bool *is_complete,
                          gmd_error *error)
{
    gmd_status status = take_header(runner, trace, error);
    if (status == GMD_OK) {
        status = gmd_fork_server_log(runner->server, trace, outcome, calls, call_count, is_complete,
                                     error);
        take_troubles(runner);
        runner->runs++;
        runner->known += status == GMD_OK ? (*outcome)->known_count : 0;
    }
    if (status == GMD_OK) {
        note_judged(runner, *outcome);
    }
    return status;
}

static gmd_status run_isolated(gmd_runner *runner, const gmd_trace *trace,
                               const gmd_outcome **outcome, gmd_error *error)
{
    gmd_status status = refuse_if_interrupted(runner, error);
    if (status != GMD_OK) {
        return status;
    }
    const gmd_run_options options = gmd_options_under(runner->given, &trace->conditions);
    const gmd_workload workload = {
        .name = "a trace", .kind = "trace", .trace = trace, .body = gmd_play_trace};
    *outcome = runner->own;
    return gmd_run_isolated(&options, &workload, runner->own, error);
}

static gmd_status run_warm(gmd_runner *runner, const gmd_trace *trace, const gmd_outcome **outcome,
                           gmd_error *error)
{
    gmd_status status = take_header(runner, trace, error);
    if (status == GMD_OK) {
        status = gmd_fork_server_run(runner->server, trace, outcome, error);
        take_troubles(runner);
    }
    return status;
}

gmd_status gmd_runner_run(gmd_runner *runner, const gmd_trace *trace, const gmd_outcome **outcome,
                          gmd_error *error)
{
    gmd_status status = runner->own ? run_isolated(runner, trace, outcome, error)
                                    : run_warm(runner, trace, outcome, error);
    if (status != GMD_INTERRUPTED) {
        runner->runs++;
        runner->requests += status == GMD_OK ? (*outcome)->requests : 0;
        runner->known += status == GMD_OK ? (*outcome)->known_count : 0;
    }
    if (status == GMD_OK) {
        note_judged(runner, *outcome);
    }
    return status;
}

gmd_status gmd_runner_run_persistent(gmd_runner *runner, const gmd_persistent_input *traces,
                                     size_t count, gmd_persistent_result *result, gmd_error *error)
{
    *result = (gmd_persistent_result){0};
    const gmd_trace *first = &traces[0].trace;
    bool can_follow = runner->server && gmd_fork_server_can_follow(runner->server, first);
    gmd_status status =
        can_follow ? refuse_if_interrupted(runner, error) : take_header(runner, first, error);
    if (status == GMD_OK) {
        gmd_fork_server_set_deadline(runner->server, runner->deadline_s);
        status = gmd_fork_server_run_persistent(runner->server, traces, count, result, error);
        take_troubles(runner);
        runner->runs += result->passed;
        runner->requests += result->requests;
        runner->known += result->known;
    }
    if (status == GMD_OK) {
        note_judged(runner, result->outcome);
    }
    return status;
}

gmd_status gmd_runner_find_pools(gmd_runner *runner, gmd_pool_abilities *pools, gmd_error *error)
{
    gmd_trace trace;
    const gmd_outcome *outcome;
    gmd_trace_init(&trace);
    gmd_status status = gmd_runner_run(runner, &trace, &outcome, error);
    if (status == GMD_OK && outcome->verdict == GMD_ERROR) {
        status = gmd_fail(error, outcome->error_status, "%s", outcome->error);
    }
    *pools = (gmd_pool_abilities){.are_there = status == GMD_OK && outcome->has_pools};
    if (pools->are_there) {
        pools->have_checkpoints = outcome->has_checkpoints;
        pools->have_options = outcome->has_pool_options;
    }
    gmd_trace_free(&trace);
    return status;
}
