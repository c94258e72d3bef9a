/* part_faults.c - each call that takes memory fails, once and for ever, in short standard traces.
 * So does each other call, once: what an allocator answers then is its own affair, but that it
 * answers is not. */
#include "case_files.h"
#include "gate.h"
#include "plan.h"

#include "gmd_fault_sweep.h"
#include "gmd_search.h"

#include <stdio.h>
#include <string.h>

typedef struct sweeping {
    gmd_gate *gate;
    gmd_runner *runner;
} sweeping;

static bool note_found(void *context, const gmd_trace *trace, const gmd_violation *violation)
{
    const sweeping *s = context;
    gmd_gate_found(s->gate, s->runner, trace, violation);
    return !gmd_gate_is_over(s->gate);
}

static bool was_found(void *context, const gmd_violation *violation)
{
    const sweeping *s = context;
    return gmd_gate_is_known(s->gate, violation);
}

static void tell(void *context, uint64_t done, uint64_t all, const char *what)
{
    const sweeping *s = context;
    (void)all;
    (void)what;
    if (done % 16 == 0) {
        gmd_gate_tell(s->gate, "running");
    }
}

static void sweep(gmd_gate *gate, const gmd_trace *trace, bool has_budgets)
{
    gmd_runner runner;
    gmd_runner_init(&runner, &gate->run);
    sweeping s = {gate, &runner};
    gmd_sweep_options options = {
        .memory_only = true,
        .is_persistent = true,
        .has_budgets = has_budgets,
        .runs = gmd_gate_runs(gate, gmd_gate_plan_sweep_runs.full, gmd_gate_plan_sweep_runs.quick),
        .progress = tell,
        .found = note_found,
        .is_known = was_found,
        .context = &s};
    gmd_sweep_result result = {0};
    gmd_error error;
    gmd_status status = gmd_sweep(trace, &runner, &options, &result, &error);
    gmd_gate_count(gate, result.runs, runner.requests, runner.known);
    if (!result.runs) {
        gmd_gate_note(gate, "the allocator makes no call here that could fail");
    }
    if (status == GMD_OK && result.case_fails && !gmd_gate_is_known(gate, &result.violation)) {
        gmd_gate_found(gate, &runner, trace, &result.violation);
    } else if (status == GMD_BAD_INPUT || result.case_is_refused) {
        gmd_gate_note(gate, "refused: %s", error.text);
    } else {
        gmd_gate_fail(gate, status, &error);
    }
    gmd_runner_close(&runner);
}

#define ANSWER_SECONDS 3 /* of a request in a trace that takes milliseconds */

/* An allocator may even end the process, as one does that takes any error for the end. */
static bool counts_for_nothing(void *context, const gmd_violation *violation)
{
    return !gmd_is_without_end(violation) || was_found(context, violation);
}

static bool note_hang(void *context, const gmd_trace *trace, const gmd_violation *violation)
{
    return gmd_is_without_end(violation) ? note_found(context, trace, violation) : true;
}

static void sweep_others(gmd_gate *gate, const gmd_trace *trace)
{
    const gmd_run_options hasty = gmd_options_hurried(&gate->run, ANSWER_SECONDS);
    gmd_runner runner;
    gmd_runner_init(&runner, &hasty);
    sweeping s = {gate, &runner};
    gmd_sweep_options options = {
        .others_only = true,
        .is_persistent = true,
        .runs = gmd_gate_runs(gate, gmd_gate_plan_sweep_runs.full, gmd_gate_plan_sweep_runs.quick),
        .progress = tell,
        .found = note_hang,
        .is_known = counts_for_nothing,
        .context = &s};
    gmd_sweep_result result = {0};
    gmd_error error;
    gmd_status status = gmd_sweep(trace, &runner, &options, &result, &error);
    gmd_gate_count(gate, result.runs, runner.requests, runner.known);
    if (!result.runs) {
        gmd_gate_note(gate, "the allocator makes no call here that could fail");
    }
    gmd_gate_fail(gate, status == GMD_BAD_INPUT ? GMD_OK : status, &error);
    gmd_runner_close(&runner);
}

static void sweep_with(gmd_gate *gate, const char *planned, gmd_trace *trace, const char *conf,
                       bool has_budgets)
{
    char name[96];
    snprintf(name, sizeof name, "%s%s%.60s", planned, conf ? ", " : "", conf ? conf : "");
    if (gmd_gate_begin(gate, name)) {
        if (gmd_gate_set_conf(gate, trace, conf)) {
            sweep(gate, trace, has_budgets);
        }
        gmd_gate_end(gate);
    }
}

static void run_sweep(gmd_gate *gate, const char *root, const char *file, bool has_budgets)
{
    const char *planned = file + strlen(GMD_GATE_SWEEPS);
    gmd_trace trace;
    gmd_error error;
    gmd_status status = gmd_gate_read_named(&trace, root, file, &error);
    if (status != GMD_OK) {
        gmd_gate_fail(gate, status, &error);
        return;
    }
    const char *lacks = gmd_gate_lacks(&gate->abilities, &trace);
    if (lacks) {
        gmd_gate_skip(gate, planned, "%s", lacks);
        gmd_trace_free(&trace);
        return;
    }
    if (!gate->conf_is_fixed) {
        sweep_with(gate, planned, &trace, NULL, has_budgets);
    }
    char others[96];
    snprintf(others, sizeof others, "%.60s, other calls", planned);
    if (gmd_gate_begin(gate, others)) {
        if (gmd_gate_set_conf(gate, &trace, gate->conf_is_fixed ? gate->confs[0] : NULL)) {
            sweep_others(gate, &trace);
        }
        gmd_gate_end(gate);
    }
    size_t most = gmd_gate_runs(gate, gmd_gate_plan_confs.full, gmd_gate_plan_confs.quick);
    for (size_t i = 0; i < gate->conf_count && i < most; i++) {
        sweep_with(gate, planned, &trace, gate->confs[i], has_budgets);
    }
    gmd_trace_free(&trace);
}

static void run_if_a_sweep(void *context, const char *root, const char *name)
{
    gmd_gate *gate = context;
    if (strncmp(name, GMD_GATE_SWEEPS, strlen(GMD_GATE_SWEEPS)) == 0 && !gmd_gate_is_over(gate)) {
        run_sweep(gate, root, name, gate->space.has_budgets);
    }
}

void gmd_gate_faults(gmd_gate *gate)
{
    gmd_error error;
    if (!gate->space.has_faults) {
        gmd_gate_skip(gate, "all", "faults cannot be planted under this allocator");
        return;
    }
    gmd_gate_fail(gate, gmd_gate_each_case(gate, run_if_a_sweep, &error), &error);
}
