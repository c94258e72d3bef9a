#include "fault_targets.h"
#include "gmd_fault_error.h"

#include "gmd_fault_sweep.h"

#include "gmd_text.h"

#include <stdio.h>
#include <string.h>

/* Small and large blocks on several streams and a device that becomes full: new memory, reuse,
 * splitting, a block that other streams use, a refusal, giving the cache back. */
static const char requests[] = "gmd-trace 1\n"
                               "capacity 128MiB\n"
                               "alloc a 1000 s0\n"
                               "alloc b 3MiB s1\n"
                               "alloc c 24MiB s0\n"
                               "use b s2 10us\n"
                               "record b s2\n"
                               "free b\n"
                               "free c\n"
                               "alloc d 30MiB s0\n"
                               "use d s1 10us\n"
                               "wait s2 s1\n"
                               "free d\n"
                               "alloc e 20MiB s2\n"
                               "free a\n"
                               "empty_cache\n"
                               "alloc f 90MiB s1\n"
                               "alloc g 90MiB s0\n"
                               "free f\n"
                               "sync\n"
                               "alloc h 100MiB s2\n";

static void add(gmd_profile_space *space, const char *function)
{
    uint32_t at = 0;
    while (at < space->fault_target_count &&
           strcmp(space->fault_targets[at].function, function) != 0) {
        at++;
    }
    int error = gmd_fault_error_of(function, true);
    if (error && at == space->fault_target_count && at < GMD_FAULT_TARGET_MAX) {
        gmd_fault_target *t = &space->fault_targets[space->fault_target_count++];
        snprintf(t->function, sizeof t->function, "%s", function);
        t->error = (uint32_t)error;
    }
}

/* What the requests show, or that they are refused, is not of interest here. */
static gmd_status look(gmd_profile_space *space, gmd_runner *runner, const char *conf,
                       gmd_error *error)
{
    gmd_trace trace;
    const gmd_outcome *outcome;
    const gmd_logged_call *calls;
    size_t count = 0;
    bool is_complete;
    gmd_error ignored = {""};
    gmd_status status =
        gmd_trace_parse(&trace, requests, sizeof requests - 1, "the requests for faults", error);
    if (status != GMD_OK) {
        return status;
    }
    status = gmd_conditions_set_conf(&trace.conditions, conf, error);
    if (status == GMD_OK && gmd_runner_log(runner, &trace, &outcome, &calls, &count, &is_complete,
                                           &ignored) == GMD_OK) {
        for (size_t i = 0; i < count; i++) {
            add(space, calls[i].function);
        }
    }
    gmd_trace_free(&trace);
    return status;
}

gmd_status fault_targets_find(gmd_profile_space *space, gmd_runner *runner, gmd_error *error)
{
    gmd_status status = GMD_OK;
    if (!space->conf_is_fixed) {
        status = look(space, runner, NULL, error);
    }
    for (size_t i = 0; i < space->conf_count && status == GMD_OK; i++) {
        status = look(space, runner, space->confs[i], error);
    }
    return status;
}
