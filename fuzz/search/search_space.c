/* search_space.c - what can be asked of an allocator and a device, found out by asking. */
#include "gmd_search.h"

#include "fault_targets.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define SHARE_OF_REQUEST 6   /* a hang is seen, confirmed, and then some time is left */
#define PATIENCE_LEAST   1.0 /* seconds, for a busy machine */

gmd_run_options gmd_search_hurried(const gmd_run_options *run, double seconds)
{
    double share = seconds / SHARE_OF_REQUEST;
    return seconds > 0 ? gmd_options_hurried(run, share > PATIENCE_LEAST ? share : PATIENCE_LEAST)
                       : *run;
}

typedef struct question {
    gmd_runner runner;
    gmd_status status; /* of what is not for the allocator or the device to refuse */
    gmd_error *error;
} question;

/* Runs a few lines; true: they can be carried out. */
static bool can_run(question *q, const char *text)
{
    gmd_trace trace;
    gmd_error error;
    const gmd_outcome *outcome;
    if (q->status != GMD_OK || gmd_trace_parse(&trace, text, strlen(text), "probe", &error)) {
        return false;
    }
    gmd_status status = gmd_runner_run(&q->runner, &trace, &outcome, &error);
    if (status == GMD_OK && outcome->verdict == GMD_ERROR) {
        status = gmd_fail(&error, outcome->error_status, "%s", outcome->error);
    }
    if (status != GMD_OK && status != GMD_BAD_INPUT) {
        q->status = gmd_fail(q->error, status, "%s", error.text);
    }
    gmd_trace_free(&trace);
    return status == GMD_OK;
}

/* A real machine has as many as it has. */
static uint32_t count_devices(question *q, uint32_t most)
{
    uint32_t count = 1;
    char text[80];
    for (bool is_there = true; is_there && count < most; count += is_there) {
        snprintf(text, sizeof text, "gmd-trace 1\nalloc a 1 s1 device %" PRIu32 "\n", count);
        is_there = can_run(q, text);
    }
    return count;
}

/* Mostly both can be had: one process, opened for one header, answers for both. */
static void find_orders(gmd_profile_space *space, const gmd_run_options *run, question *q)
{
    static const char scheduled[] = "gmd-trace 1\nschedule seed 1\nempty_cache\n";
    static const char interleaved[] =
        "gmd-trace 1\ninterleave seed 1\nalloc a 1 s1\nthread t1\nfree a\n";
    static const char both[] = "gmd-trace 1\nschedule seed 1\ninterleave seed 1\n"
                               "alloc a 1 s1\nempty_cache\nthread t1\nfree a\n";
    bool is_simulated = run->device.kind == GMD_DEVICE_SIM,
         has_both = is_simulated && can_run(q, both);
    space->has_reused_handles = space->has_moved_clock = is_simulated;
    space->has_seeded_schedules = has_both || (is_simulated && can_run(q, scheduled));
    const gmd_subject_source source = session_source(run);
    space->has_accesses = is_simulated && gmd_subject_is_instrumented(&source);
    space->has_interleaving = has_both || (is_simulated && can_run(q, interleaved));
}

gmd_status gmd_search_find_space(gmd_profile_space *space, const gmd_run_options *run,
                                 gmd_error *error)
{
    question q = {.error = error};
    gmd_runner_init(&q.runner, run);
    gmd_pool_abilities pools;
    q.status = gmd_runner_find_pools(&q.runner, &pools, error);
    space->has_pools = space->has_captures = pools.are_there;
    space->has_checkpoints = pools.have_checkpoints;
    space->has_pool_options = pools.have_options;
    if (q.status == GMD_OK && run->device.kind != GMD_DEVICE_SIM) {
        space->device_max = count_devices(&q, space->device_max);
    }
    if (q.status == GMD_OK) {
        space->has_fraction = true;
        space->has_record_stream = true;
        space->has_faults = can_run(&q, "gmd-trace 1\nfault cudaMalloc 1 2\n");
        space->has_budgets = can_run(&q, "gmd-trace 1\nbudget 1GiB\nbudget none\n");
        find_orders(space, run, &q);
    }
    if (q.status == GMD_OK && space->has_faults) {
        q.status = fault_targets_find(space, &q.runner, error);
    }
    gmd_runner_close(&q.runner);
    return q.status;
}

gmd_status gmd_search_taken_confs(const gmd_run_options *run, const char **taken, size_t max,
                                  size_t *count, gmd_error *error)
{
    gmd_status status = GMD_OK;
    *count = 0;
    for (size_t i = 0; i < gmd_profile_conf_count && *count < max && status == GMD_OK; i++) {
        gmd_run_options with = *run;
        gmd_fork_server *server = NULL;
        with.conditions.conf = gmd_profile_confs[i];
        status = gmd_fork_server_open(&server, &with, error);
        if (status == GMD_OK) {
            taken[(*count)++] = gmd_profile_confs[i];
        }
        status = status == GMD_BAD_INPUT ? GMD_OK : status; /* it does not take these */
        gmd_fork_server_close(server);
    }
    return status;
}
