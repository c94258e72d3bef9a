/* part_faults.c - each call that takes memory fails, once and for ever, in short standard traces.
 * Each other call fails once, too: what an allocator answers then is up to it, but it must
 * answer. */
#include "abilities.h"
#include "case_files.h"
#include "findings.h"
#include "parts.h"
#include "play.h"

#include "gmd_fault_sweep.h"
#include "gmd_search.h"

#include <stdio.h>
#include <string.h>

typedef struct sweeping {
    gate_state *gate;
    gmd_runner *runner;
} sweeping;

static bool note_found(void *context, const gmd_trace *trace, const gmd_violation *violation)
{
    const sweeping *s = context;
    gate_add_finding(s->gate, s->runner, trace, violation);
    return !gate_is_over(s->gate);
}

static bool was_found(void *context, const gmd_violation *violation)
{
    const sweeping *s = context;
    return gate_is_known(s->gate, violation);
}

static void tell(void *context, uint64_t done, uint64_t all, const char *what)
{
    const sweeping *s = context;
    (void)all;
    (void)what;
    if (done % 16 == 0) {
        gate_tell(s->gate, "running");
    }
}

/* Only a case that was looked at to its end tells that there is nothing to fail in it. */
static void note_unswept(gate_state *gate, gmd_status status, const gmd_sweep_result *result)
{
    if (status == GMD_OK && !result->runs) {
        gate_note(gate, result->case_fails    ? "not swept: it fails without any fault"
                        : result->is_complete ? "the allocator makes no call here that could fail"
                                              : "not swept: it makes more calls than are noted");
    }
}

static void sweep(gate_state *gate, const gmd_trace *trace, bool has_budgets)
{
    gmd_runner runner;
    gmd_runner_init(&runner, &gate->run);
    sweeping s = {gate, &runner};
    gmd_sweep_options options = {.memory_only = true,
                                 .is_persistent = true,
                                 .has_budgets = has_budgets,
                                 .runs = gate_budget(gate, plan_sweep_runs),
                                 .progress = tell,
                                 .found = note_found,
                                 .is_known = was_found,
                                 .context = &s};
    gmd_sweep_result result = {0};
    gmd_error error;
    gmd_status status = gmd_sweep(trace, &runner, &options, &result, &error);
    gate_count(gate, result.runs, runner.requests, runner.known);
    note_unswept(gate, status, &result);
    if (status == GMD_OK && result.case_fails && !gate_is_known(gate, &result.violation)) {
        gate_add_finding(gate, &runner, trace, &result.violation);
    } else if (status == GMD_BAD_INPUT || result.case_is_refused) {
        gate_note(gate, "refused: %s", error.text);
    } else {
        gate_fail(gate, status, &error);
    }
    gate_close_runner(gate, &runner);
}

#define ANSWER_SECONDS 3 /* of a request in a trace that takes milliseconds */

/* An allocator may even end the process: some do so on any error. */
static bool counts_for_nothing(void *context, const gmd_violation *violation)
{
    return !gmd_is_without_end(violation) || was_found(context, violation);
}

static bool note_hang(void *context, const gmd_trace *trace, const gmd_violation *violation)
{
    return gmd_is_without_end(violation) ? note_found(context, trace, violation) : true;
}

static void sweep_others(gate_state *gate, const gmd_trace *trace)
{
    const gmd_run_options hasty = gmd_options_hurried(&gate->run, ANSWER_SECONDS);
    gmd_runner runner;
    gmd_runner_init(&runner, &hasty);
    sweeping s = {gate, &runner};
    gmd_sweep_options options = {.others_only = true,
                                 .is_persistent = true,
                                 .runs = gate_budget(gate, plan_sweep_runs),
                                 .progress = tell,
                                 .found = note_hang,
                                 .is_known = counts_for_nothing,
                                 .context = &s};
    gmd_sweep_result result = {0};
    gmd_error error;
    gmd_status status = gmd_sweep(trace, &runner, &options, &result, &error);
    gate_count(gate, result.runs, runner.requests, runner.known);
    note_unswept(gate, status, &result);
    if (status == GMD_BAD_INPUT || result.case_is_refused) {
        gate_note(gate, "refused: %s", error.text);
    } else {
        gate_fail(gate, status, &error);
    }
    gate_close_runner(gate, &runner);
}

static void sweep_with(gate_state *gate, const char *planned, gmd_trace *trace, const char *conf,
                       bool has_budgets)
{
    char name[96];
    snprintf(name, sizeof name, "%s%s%.60s", planned, conf ? ", " : "", conf ? conf : "");
    if (gate_begin_item(gate, name)) {
        if (gate_set_conf(gate, trace, conf)) {
            sweep(gate, trace, has_budgets);
        }
        gate_end_item(gate);
    }
}

static void run_sweep(gate_state *gate, const char *root, const char *file, bool has_budgets)
{
    const char *planned = file + strlen(SWEEP_CASES);
    gmd_trace trace;
    gmd_error error;
    gmd_status status = case_file_read_named(&trace, root, file, &error);
    if (status != GMD_OK) {
        gate_fail(gate, status, &error);
        return;
    }
    const char *lacks = abilities_lacking(&gate->abilities, &trace);
    if (lacks) {
        gate_skip_item(gate, planned, "%s", lacks);
        gmd_trace_free(&trace);
        return;
    }
    if (!gate->conf_is_fixed) {
        sweep_with(gate, planned, &trace, NULL, has_budgets);
    }
    char others[96];
    snprintf(others, sizeof others, "%.60s, other calls", planned);
    if (gate_begin_item(gate, others)) {
        if (gate_set_conf(gate, &trace, gate->conf_is_fixed ? gate->confs[0] : NULL)) {
            sweep_others(gate, &trace);
        }
        gate_end_item(gate);
    }
    size_t most = gate_budget(gate, plan_confs);
    for (size_t i = 0; i < gate->conf_count && i < most; i++) {
        sweep_with(gate, planned, &trace, gate->confs[i], has_budgets);
    }
    gmd_trace_free(&trace);
}

static void run_if_a_sweep(void *context, const char *root, const char *name)
{
    gate_state *gate = context;
    if (strncmp(name, SWEEP_CASES, strlen(SWEEP_CASES)) == 0 && !gate_is_over(gate)) {
        run_sweep(gate, root, name, gate->space.has_budgets);
    }
}

void part_faults(gate_state *gate)
{
    gmd_error error;
    if (!gate->space.has_faults) {
        gate_skip_item(gate, "all", "faults cannot be planted under this allocator");
        return;
    }
    gate_fail(gate, case_files_each(gate->run.subject.lib_directory, run_if_a_sweep, gate, &error),
              &error);
}
