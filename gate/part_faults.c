/* part_faults.c - each call that takes memory fails, once and for ever, in short standard traces. */
#include "gate.h"
#include "plan.h"

#include "fault_sweep.h"
#include "search.h"

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
    gmd_sweep_options options = {.memory_only = true,
                                 .scouts = true,
                                 .has_budgets = has_budgets,
                                 .runs = gmd_gate_runs(gate, gmd_gate_plan_sweep_runs.full,
                                                       gmd_gate_plan_sweep_runs.quick),
                                 .progress = tell,
                                 .found = note_found,
                                 .is_known = was_found,
                                 .context = &s};
    gmd_sweep_result result = {0};
    gmd_error error;
    gmd_status status = gmd_sweep(trace, &runner, &options, &result, &error);
    gmd_gate_count(gate, result.runs, runner.requests);
    if (status == GMD_OK && result.case_fails && !gmd_gate_is_known(gate, &result.violation)) {
        gmd_gate_found(gate, &runner, trace, &result.violation);
    } else if (status == GMD_BAD_INPUT) {
        gmd_gate_note(gate, "refused: %s", error.text);
    } else {
        gmd_gate_fail(gate, status, &error);
    }
    gmd_runner_close(&runner);
}

static void sweep_with(gmd_gate *gate, const gmd_gate_sweep *planned, gmd_trace *trace,
                       const char *conf, bool has_budgets)
{
    char name[96];
    snprintf(name, sizeof name, "%s%s%.60s", planned->name, conf ? ", " : "", conf ? conf : "");
    if (gmd_gate_begin(gate, name)) {
        if (gmd_gate_set_conf(gate, trace, conf)) {
            sweep(gate, trace, has_budgets);
        }
        gmd_gate_end(gate);
    }
}

static void run_sweep(gmd_gate *gate, const gmd_gate_sweep *planned, bool has_budgets)
{
    gmd_trace trace;
    gmd_error error;
    gmd_status status =
        gmd_trace_parse(&trace, planned->text, strlen(planned->text), planned->name, &error);
    if (status != GMD_OK) {
        gmd_gate_fail(gate, GMD_FAILED, &error);
        return;
    }
    const char *lacks = gmd_gate_lacks(&gate->abilities, &trace);
    if (lacks) {
        gmd_gate_skip(gate, planned->name, "%s", lacks);
        gmd_trace_free(&trace);
        return;
    }
    if (!gate->conf_is_fixed) {
        sweep_with(gate, planned, &trace, NULL, has_budgets);
    }
    size_t most = gmd_gate_runs(gate, gmd_gate_plan_confs.full, gmd_gate_plan_confs.quick);
    for (size_t i = 0; i < gate->conf_count && i < most; i++) {
        sweep_with(gate, planned, &trace, gate->confs[i], has_budgets);
    }
    gmd_trace_free(&trace);
}

void gmd_gate_faults(gmd_gate *gate)
{
    gmd_profile_space space = {0};
    gmd_error error;
    gmd_run_options with = gate->run;
    with.conf = gate->conf_is_fixed ? gate->confs[0] : NULL;
    gmd_status status = gmd_search_find_space(&space, &with, &error);
    if (status != GMD_OK) {
        gmd_gate_fail(gate, status, &error);
        return;
    }
    for (size_t i = 0; i < gmd_gate_plan_sweep_count && !gmd_gate_is_over(gate); i++) {
        run_sweep(gate, &gmd_gate_plan_sweeps[i], space.has_budgets);
    }
}
