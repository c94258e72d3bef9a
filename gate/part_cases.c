/* part_cases.c - the cases that ship with gmd: short sequences that real allocators failed on. */
#include "abilities.h"
#include "case_files.h"
#include "parts.h"
#include "play.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- one case ---------------------------------------------------------------------------- */

/* Runs the threads of a case interleaved, in many orders. */
static void interleave(gate_state *gate, gmd_runner *runner, const gmd_trace *trace)
{
    uint64_t count = gate_budget(gate, plan_interleavings);
    gmd_persistent_input *traces = calloc(count, sizeof *traces);
    gmd_error error = {""};
    size_t made = 0;
    gmd_status status = GMD_OK;
    if (!traces) {
        gate_out_of_memory(gate, "traces");
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
    gate_fail(gate, status, &error);
    gate_play_persistent(gate, runner, traces, made);
    while (made) {
        gmd_trace_free(&traces[--made].trace);
    }
    free(traces);
}

static void play_under(gate_state *gate, gmd_runner *runner, gmd_trace *trace,
                       const gmd_schedule *schedule)
{
    bool is_stated = trace->conditions.schedule.kind != GMD_SCHEDULE_UNSTATED;
    if (!is_stated) {
        trace->conditions.schedule = *schedule;
    }
    bool was_taken = gate_play(gate, runner, trace);
    if (was_taken && trace->threads.count > 1) {
        interleave(gate, runner, trace);
    }
    if (!is_stated) {
        trace->conditions.schedule = (gmd_schedule){.kind = GMD_SCHEDULE_UNSTATED};
    }
}

static void play_case(gate_state *gate, gmd_trace *trace, const char *conf)
{
    gmd_runner runner;
    gmd_runner_init(&runner, &gate->run);
    bool is_stated = trace->conditions.schedule.kind != GMD_SCHEDULE_UNSTATED;
    uint64_t schedules = is_stated ? 1 : gate_budget(gate, plan_schedule_count);
    if (gate_set_conf(gate, trace, conf)) {
        for (uint64_t i = 0; i < schedules && !gate_is_over(gate); i++) {
            play_under(gate, &runner, trace, &plan_schedules[i]);
        }
    }
    gate_close_runner(gate, &runner);
}

/* Settings that a case states are part of what it needs. */
static void choose_settings(gate_state *gate, const char *name, gmd_trace *trace)
{
    const char *own = trace->conditions.conf ? trace->conditions.conf : "";
    const char *fixed = gate->conf_is_fixed ? gate->confs[0] : NULL;
    if (*own && !fixed && !gate->abilities.configure) {
        gate_skip_item(gate, name,
                       "needs the settings '%s', and the allocator exports no "
                       "gmd_configure",
                       own);
        return;
    }
    if (!gate_begin_item(gate, name)) {
        return;
    }
    char *copy = trace->conditions.conf ? strdup(trace->conditions.conf) : NULL;
    play_case(gate, trace, fixed ? fixed : copy);
    free(copy);
    gate_end_item(gate);
}

static void run_case(gate_state *gate, const char *root, const char *name)
{
    gmd_trace trace;
    gmd_error error;
    gmd_status status = case_file_read_named(&trace, root, name, &error);
    if (status != GMD_OK) {
        gate_fail(gate, status, &error);
        return;
    }
    const char *lacks = abilities_lacking(&gate->abilities, &trace);
    if (lacks) {
        gate_skip_item(gate, name, "%s", lacks);
    } else {
        choose_settings(gate, name, &trace);
    }
    gmd_trace_free(&trace);
}

static bool is_for_another_part(const char *name)
{
    return strncmp(name, ROUND_CASES, strlen(ROUND_CASES)) == 0 ||
           strncmp(name, SWEEP_CASES, strlen(SWEEP_CASES)) == 0;
}

static void run_if_a_case(void *context, const char *root, const char *name)
{
    gate_state *gate = context;
    if (!is_for_another_part(name) && !gate_is_over(gate)) {
        run_case(gate, root, name);
    }
}

void part_cases(gate_state *gate)
{
    gmd_error error;
    gate_fail(gate, case_files_each(gate->run.subject.lib_directory, run_if_a_case, gate, &error),
              &error);
}
