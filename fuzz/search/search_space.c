/* search_space.c - what can be asked of an allocator and a device, found out by asking. */
#include "gmd_search.h"

#include "fault_targets.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* Runs a few lines; true: they can be carried out. */
static bool can_run(gmd_runner *runner, const char *text)
{
    gmd_trace trace;
    gmd_error error;
    const gmd_outcome *outcome;
    if (gmd_trace_parse(&trace, text, strlen(text), "probe", &error) != GMD_OK) {
        return false;
    }
    bool can =
        gmd_runner_run(runner, &trace, &outcome, &error) == GMD_OK && outcome->verdict != GMD_ERROR;
    gmd_trace_free(&trace);
    return can;
}

/* A real machine has as many as it has. */
static uint32_t count_devices(gmd_runner *runner, uint32_t most)
{
    uint32_t count = 1;
    char text[80];
    for (bool is_there = true; is_there && count < most; count += is_there) {
        snprintf(text, sizeof text, "gmd-trace 1\nalloc a 1 s1 device %" PRIu32 "\n", count);
        is_there = can_run(runner, text);
    }
    return count;
}

/* Mostly both can be had: one process, opened for one header, answers for both. */
static void find_orders(gmd_profile_space *space, const gmd_run_options *run, gmd_runner *runner)
{
    static const char scheduled[] = "gmd-trace 1\nschedule seed 1\nempty_cache\n";
    static const char interleaved[] =
        "gmd-trace 1\ninterleave seed 1\nalloc a 1 s1\nthread t1\nfree a\n";
    static const char both[] = "gmd-trace 1\nschedule seed 1\ninterleave seed 1\n"
                               "alloc a 1 s1\nempty_cache\nthread t1\nfree a\n";
    bool is_simulated = run->device.kind == GMD_DEVICE_SIM,
         has_both = is_simulated && can_run(runner, both);
    space->has_seeded_schedules = has_both || (is_simulated && can_run(runner, scheduled));
    space->has_interleaving = has_both || (is_simulated && can_run(runner, interleaved));
}

gmd_status gmd_search_find_space(gmd_profile_space *space, const gmd_run_options *run,
                                 gmd_error *error)
{
    gmd_runner runner;
    gmd_runner_init(&runner, run);
    gmd_status status = gmd_runner_find_pools(&runner, &space->has_pools, error);
    space->has_captures = space->has_pools;
    if (status == GMD_OK && run->device.kind != GMD_DEVICE_SIM) {
        space->device_max = count_devices(&runner, space->device_max);
    }
    if (status == GMD_OK) {
        space->has_fraction = true;
        space->has_record_stream = true;
        space->has_faults = can_run(&runner, "gmd-trace 1\nfault cudaMalloc 1 2\n");
        space->has_budgets = can_run(&runner, "gmd-trace 1\nbudget 1GiB\nbudget none\n");
        find_orders(space, run, &runner);
    }
    if (status == GMD_OK && space->has_faults) {
        status = fault_targets_find(space, &runner, error);
    }
    gmd_runner_close(&runner);
    return status;
}

size_t gmd_search_taken_confs(const gmd_run_options *run, const char **taken, size_t max)
{
    size_t count = 0;
    for (size_t i = 0; i < gmd_profile_conf_count && count < max; i++) {
        gmd_run_options with = *run;
        gmd_fork_server *server = NULL;
        gmd_error error;
        with.conditions.conf = gmd_profile_confs[i];
        if (gmd_fork_server_open(&server, &with, &error) == GMD_OK) {
            taken[count++] = gmd_profile_confs[i];
        }
        gmd_fork_server_close(server);
    }
    return count;
}
