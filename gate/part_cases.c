/* part_cases.c - the cases that ship with gmd: what a defect of a real allocator needs to show. */
#include "case_files.h"
#include "gate.h"
#include "plan.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- one case ---------------------------------------------------------------------------- */

/* The threads between each other's calls, in many orders. */
static void interleave(gmd_gate *gate, gmd_runner *runner, const gmd_trace *trace)
{
    uint64_t count =
        gmd_gate_runs(gate, gmd_gate_plan_interleavings.full, gmd_gate_plan_interleavings.quick);
    gmd_persistent_input *traces = calloc(count, sizeof *traces);
    gmd_error error = {""};
    size_t made = 0;
    gmd_status status = GMD_OK;
    if (!traces) {
        gmd_gate_fail(gate, gmd_fail(&error, GMD_NO_MEMORY, "no host memory for traces"), &error);
        return;
    }
    while (made < count && status == GMD_OK) {
        status = gmd_trace_copy(&traces[made].trace, trace, &error);
        if (status == GMD_OK) {
            gmd_schedule_free(&traces[made].trace.conditions.interleave);
            traces[made].trace.conditions.interleave =
                (gmd_schedule){.kind = GMD_SCHEDULE_SEEDED,
                               .seed = gmd_random_derive(gate->run.seed, made) % 1000000};
            made++;
        }
    }
    gmd_gate_fail(gate, status, &error);
    gmd_gate_run_persistent(gate, runner, traces, made);
    while (made) {
        gmd_trace_free(&traces[--made].trace);
    }
    free(traces);
}

static void play_under(gmd_gate *gate, gmd_runner *runner, gmd_trace *trace,
                       const gmd_schedule *schedule)
{
    bool is_stated = trace->conditions.schedule.kind != GMD_SCHEDULE_UNSTATED;
    if (!is_stated) {
        trace->conditions.schedule = *schedule;
    }
    bool was_taken = gmd_gate_play(gate, runner, trace);
    if (was_taken && trace->threads.count > 1) {
        interleave(gate, runner, trace);
    }
    if (!is_stated) {
        trace->conditions.schedule = (gmd_schedule){.kind = GMD_SCHEDULE_UNSTATED};
    }
}

static void play_case(gmd_gate *gate, gmd_trace *trace, const char *conf)
{
    gmd_runner runner;
    gmd_runner_init(&runner, &gate->run);
    bool is_stated = trace->conditions.schedule.kind != GMD_SCHEDULE_UNSTATED;
    uint64_t schedules = is_stated ? 1
                                   : gmd_gate_runs(gate, gmd_gate_plan_schedule_count.full,
                                                   gmd_gate_plan_schedule_count.quick);
    if (gmd_gate_set_conf(gate, trace, conf)) {
        for (uint64_t i = 0; i < schedules && !gmd_gate_is_over(gate); i++) {
            play_under(gate, &runner, trace, &gmd_gate_plan_schedules[i]);
        }
    }
    gmd_runner_close(&runner);
}

/* Settings that a case states are part of what it needs. */
static void choose_settings(gmd_gate *gate, const char *name, gmd_trace *trace)
{
    const char *own = trace->conditions.conf ? trace->conditions.conf : "";
    const char *fixed = gate->conf_is_fixed ? gate->confs[0] : NULL;
    if (*own && !fixed && !gate->abilities.configure) {
        gmd_gate_skip(gate, name,
                      "needs the settings '%s', and the allocator exports no "
                      "gmd_configure",
                      own);
        return;
    }
    if (!gmd_gate_begin(gate, name)) {
        return;
    }
    char *copy = trace->conditions.conf ? strdup(trace->conditions.conf) : NULL;
    play_case(gate, trace, fixed ? fixed : copy);
    free(copy);
    gmd_gate_end(gate);
}

static void run_case(gmd_gate *gate, const char *root, const char *name)
{
    gmd_trace trace;
    gmd_error error;
    gmd_status status = gmd_gate_read_named(&trace, root, name, &error);
    if (status != GMD_OK) {
        gmd_gate_fail(gate, status, &error);
        return;
    }
    const char *lacks = gmd_gate_lacks(&gate->abilities, &trace);
    if (lacks) {
        gmd_gate_skip(gate, name, "%s", lacks);
    } else {
        choose_settings(gate, name, &trace);
    }
    gmd_trace_free(&trace);
}

static bool is_for_another_part(const char *name)
{
    return strncmp(name, GMD_GATE_ROUNDS, strlen(GMD_GATE_ROUNDS)) == 0 ||
           strncmp(name, GMD_GATE_SWEEPS, strlen(GMD_GATE_SWEEPS)) == 0;
}

static void run_if_a_case(void *context, const char *root, const char *name)
{
    gmd_gate *gate = context;
    if (!is_for_another_part(name) && !gmd_gate_is_over(gate)) {
        run_case(gate, root, name);
    }
}

void gmd_gate_cases(gmd_gate *gate)
{
    gmd_error error;
    gmd_gate_fail(gate, gmd_gate_each_case(gate, run_if_a_case, &error), &error);
}
