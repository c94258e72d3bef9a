/* part_rounds.c - rounds that ship with gmd and rounds that are drawn, each repeated
 * (gmd_rounds.h). */
#include "abilities.h"
#include "case_files.h"
#include "findings.h"
#include "gmd_rounds.h"
#include "parts.h"
#include "play.h"

#include "gmd_size.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static uint64_t allocations(const gate_state *gate)
{
    return gate_budget(gate, plan_rounds);
}

/* What an oracle found on the way becomes a common trace, minimised like any other. */
static void found_on_the_way(gate_state *gate, const gmd_trace *round,
                             const gmd_violation *violation)
{
    gmd_trace all;
    gmd_error error;
    size_t in_a_round = round->count ? round->count : 1;
    uint32_t count = (uint32_t)(violation->request / in_a_round) + 1;
    uint32_t most = gmd_rounds_count(round, allocations(gate));
    count = count < most ? count : most;
    gmd_status status = gmd_rounds_unroll(round, count, &all, &error);
    if (status != GMD_OK) {
        gate_fail(gate, status, &error);
        return;
    }
    gmd_runner runner;
    gmd_runner_init(&runner, &gate->run);
    gate_add_finding(gate, &runner, &all, violation);
    gate_close_runner(gate, &runner);
    gmd_trace_free(&all);
}

static void found_growth(gate_state *gate, gmd_trace *round, const gmd_violation *violation)
{
    gmd_violation copy = *violation;
    gate_tell(gate, "minimising");
    gmd_rounds_minimize(&gate->run, round, allocations(gate), 0);
    gmd_runner runner;
    gmd_runner_init(&runner, &gate->run);
    size_t marks = gate->mark_count;
    gate_add_finding(gate, &runner, round, &copy);
    for (; marks < gate->mark_count; marks++) {
        gate->marks[marks].is_round = true;
    }
    gate_close_runner(gate, &runner);
}

static void play(gate_state *gate, gmd_trace *round)
{
    gmd_error error;
    gmd_outcome *outcome = calloc(1, sizeof *outcome);
    if (!outcome) {
        gate_out_of_memory(gate, "an outcome");
        return;
    }
    gmd_status status = gmd_rounds_run(&gate->run, round, allocations(gate), outcome, &error);
    gate_fail(gate, status, &error);
    if (status == GMD_OK) {
        gate_count(gate, 1, outcome->requests, outcome->known_count);
        gate_add_costs(gate, outcome->oracles, outcome->oracle_count);
        const gmd_violation *violation = &outcome->violations[0];
        if (!outcome->violation_count) {
            if (outcome->verdict == GMD_ERROR) {
                gate_cannot_run(gate, outcome->error_status, outcome->error);
            }
        } else if (!gate_is_known(gate, violation)) {
            if (gmd_rounds_is_growth(violation)) {
                found_growth(gate, round, violation);
            } else {
                found_on_the_way(gate, round, violation);
            }
        }
    }
    free(outcome);
}

/* With this setting PyTorch's algorithm, which the reference keeps to, grows by its own policy: its
 * segments of 20 MiB count as oversize themselves, and serve no smaller request again until the
 * device is full. Where --conf gives the setting, it is judged all the same. */
static const char left_out[] = "max_split_size_mb:20";

static size_t usual_confs(const gate_state *gate, const char **confs)
{
    size_t count = 0;
    for (size_t i = 0; i < gate->conf_count; i++) {
        if (gate->conf_is_fixed || strcmp(gate->confs[i], left_out) != 0) {
            confs[count++] = gate->confs[i];
        }
    }
    return count;
}

/* --- those that ship with gmd ------------------------------------------------------------ */

static void play_with_settings(gate_state *gate, gmd_trace *round)
{
    size_t most = gate_budget(gate, plan_confs);
    const char *confs[CONF_MAX];
    size_t count = usual_confs(gate, confs);
    if (!gate->conf_is_fixed && gate_set_conf(gate, round, NULL)) {
        play(gate, round);
    }
    for (size_t i = 0; i < count && i < most && !gate_is_over(gate); i++) {
        if (gate_set_conf(gate, round, confs[i])) {
            play(gate, round);
        }
    }
}

static void run_file(gate_state *gate, const char *name, gmd_trace *round)
{
    const char *lacks = abilities_lacking(&gate->abilities, round);
    if (lacks) {
        gate_skip_item(gate, name, "%s", lacks);
    } else if (gate_begin_item(gate, name)) {
        play_with_settings(gate, round);
        gate_end_item(gate);
    }
}

static void run_if_a_round(void *context, const char *root, const char *name)
{
    gate_state *gate = context;
    gmd_trace round;
    gmd_error error;
    if (strncmp(name, ROUND_CASES, strlen(ROUND_CASES)) != 0 || gate_is_over(gate)) {
        return;
    }
    gmd_status status = case_file_read_named(&round, root, name, &error);
    gate_fail(gate, status, &error);
    if (status == GMD_OK) {
        run_file(gate, name + strlen(ROUND_CASES), &round);
        gmd_trace_free(&round);
    }
}

/* --- those that are drawn ---------------------------------------------------------------- */

static void draw_profile(const gate_state *gate, uint64_t seed, gmd_profile *p,
                         gmd_profile_space *space, const char **confs)
{
    *space = gate->space;
    space->device_max = gate->options->device_max;
    space->confs = confs;
    space->conf_count = usual_confs(gate, confs);
    space->conf_is_fixed = gate->conf_is_fixed;
    space->has_one_thread = true;
    space->has_fraction = false;
    space->has_pools = false;
    gmd_profile_draw(p, space, seed);
    p->request_count = 20 + (uint32_t)(seed % 5) * 15;
    p->has_huge_sizes = false;
    for (uint32_t op = 0; op < GMD_OP_COUNT; op++) {
        p->weights[op] = gmd_op_is(op, GMD_IS_FOR_ALL) ? 0 : p->weights[op];
    }
    if (seed % 2) { /* nothing is refused */
        p->conditions.capacity_bytes = 64 * GMD_GIB;
        p->cap_percent = 0;
    }
}

static void run_drawn(gate_state *gate, uint64_t index)
{
    gmd_profile profile;
    gmd_profile_space space;
    const char *confs[CONF_MAX];
    gmd_trace round;
    gmd_error error;
    uint64_t seed = gmd_random_derive(gate->run.seed, 1000 + index);
    draw_profile(gate, seed, &profile, &space, confs);
    gmd_trace_init(&round);
    gmd_status status = gmd_generate(&profile, &space, seed, &round, &error);
    gate_fail(gate, status, &error);
    if (status == GMD_OK) {
        play(gate, &round);
    }
    gmd_trace_free(&round);
}

void part_rounds(gate_state *gate)
{
    gmd_error error;
    gate_fail(gate, case_files_each(gate->run.subject.lib_directory, run_if_a_round, gate, &error),
              &error);
    uint64_t count = gate_budget(gate, plan_random_rounds);
    if (gate_begin_item(gate, "drawn")) {
        for (uint64_t i = 0; i < count && !gate_is_over(gate); i++) {
            run_drawn(gate, i);
        }
        gate_end_item(gate);
    }
}

void part_rounds_of_file(gate_state *gate, const char *path)
{
    gmd_trace round;
    gmd_error error;
    gate->part = gate_part_named(gate, "rounds");
    gmd_status status = case_file_read(&round, path, &error);
    gate_fail(gate, status, &error);
    if (status != GMD_OK) {
        return;
    }
    if (gate_begin_item(gate, path)) {
        if (gate->conf_is_fixed) {
            gate_set_conf(gate, &round, gate->confs[0]);
        }
        play(gate, &round);
        gate_end_item(gate);
    }
    gmd_trace_free(&round);
}
