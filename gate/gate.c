#include "gmd_gate.h"

#include "abilities.h"
#include "findings.h"
#include "measured.h"
#include "parts.h"
#include "play.h"

#include "gmd_clock.h"
#include "gmd_contract.h"
#include "gmd_log.h"
#include "gmd_search.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- the parts --------------------------------------------------------------------------- */

static const char correctness[] = "correctness";

static const struct {
    const char *name, *category, *what;
    void (*run)(gate_state *gate);
} parts[] = {
    {"first", correctness, "it loads, serves and takes back a few blocks", part_first},
    {"cases", correctness, "sequences that real allocators failed on", part_cases},
    {"scenarios", correctness, "what training loops ask for, with leaks and without",
     part_scenarios},
    {"faults", correctness, "each call that takes memory fails in turn", part_faults},
    {"random", correctness, "random sequences of several kinds", part_random},
    {"exhaustive", correctness, "every short sequence over a small alphabet", part_exhaustive},
    {"rounds", correctness, "the same round again and again needs no more memory", part_rounds},
    {"memory", "memory", "what scenarios and recorded histories take", part_memory},
    {"speed", "speed", "what requests cost", part_speed},
};

enum { PART_COUNT = sizeof parts / sizeof *parts };

static gmd_status prepare_parts(gate_state *gate, gmd_error *error)
{
    gmd_gate_part *list = calloc(PART_COUNT, sizeof *list);
    if (!list) {
        return gmd_fail(error, GMD_NO_MEMORY, "no host memory for results");
    }
    for (size_t i = 0; i < PART_COUNT; i++) {
        list[i] = (gmd_gate_part){
            .name = parts[i].name, .category = parts[i].category, .what = parts[i].what};
    }
    gate->result->parts = list;
    gate->result->part_count = PART_COUNT;
    return GMD_OK;
}

/* --only names a part. */
static gmd_status check_only(const gate_state *gate, gmd_error *error)
{
    char names[200] = "";
    for (size_t i = 0; i < PART_COUNT; i++) {
        size_t at = strlen(names);
        if (gate_asks_for_part(gate, parts[i].name)) {
            return GMD_OK;
        }
        snprintf(names + at, sizeof names - at, "%s%s", i ? ", " : "", parts[i].name);
    }
    return gmd_fail(error, GMD_BAD_INPUT,
                    "--only %s: expected a part (%s), or PART/ITEM of an earlier report",
                    gate->options->only, names);
}

/* --only names an item that there is, and something of the part can be run. */
static gmd_status check_only_ran(const gate_state *gate, gmd_error *error)
{
    const char *reason = "";
    for (size_t i = 0; i < gate->result->part_count; i++) {
        const gmd_gate_part *part = &gate->result->parts[i];
        if (part->item_count) {
            return GMD_OK;
        }
        reason = gate_asks_for_part(gate, part->name) ? part->reason : reason;
    }
    return gmd_fail(error, GMD_BAD_INPUT, "--only %s: nothing was run: %s", gate->options->only,
                    reason[0] ? reason
                              : "there is no such item for this allocator and these options");
}

/* --- what the allocator can do ----------------------------------------------------------- */

static void fix_conf(gate_state *gate)
{
    gate->confs[0] = gate->options->run->conditions.conf;
    gate->conf_count = 1;
    gate->conf_is_fixed = true;
}

/* What would not be made need not be drawn. */
static void leave_out_forbidden(gate_state *gate)
{
    char forbidden[GMD_CONTRACT_WITHOUT], unknown[32];
    if (gate->run.judging.contract) {
        gmd_profile_leave_out(&gate->space,
                              gmd_contract_without(gate->run.judging.contract, forbidden), unknown);
    }
}

static void explore(gate_state *gate)
{
    gmd_error error = {""};
    const gmd_run_options with = gate_options_as_given(gate);
    if (gate->options->run->conditions.conf) {
        fix_conf(gate);
    } else if (gate->abilities.configure) {
        gate_fail(
            gate,
            gmd_search_taken_confs(&gate->run, gate->confs, CONF_MAX, &gate->conf_count, &error),
            &error);
    }
    gate_fail(gate, gmd_search_find_space(&gate->space, &with, &error), &error);
    gate->space.has_fraction = gate->abilities.set_memory_fraction;
    gate->space.has_record_stream = gate->abilities.record_stream;
    leave_out_forbidden(gate);
}

/* Nothing else can be said of an allocator that does not outlive its first requests. */
static gmd_status make_first_requests(gate_state *gate, gmd_error *error)
{
    gmd_outcome *outcome = calloc(1, sizeof *outcome);
    if (!outcome) {
        return gmd_fail(error, GMD_NO_MEMORY, "no host memory for an outcome");
    }
    gate->part = &gate->result->parts[0];
    const gmd_run_options with = gate_options_as_given(gate);
    first_look look = {0};
    gmd_status status = abilities_find(&look, &with, outcome, error);
    gate->abilities = look.abilities;
    gate->waits_unjudged = look.waits_unjudged;
    gate->result->oracle_count = outcome->oracle_count;
    memcpy(gate->result->oracles, outcome->oracles, sizeof outcome->oracles);
    bool is_dead =
        outcome->violation_count && strcmp(outcome->violations[0].oracle, "progress") == 0;
    if (status == GMD_OK && is_dead && gate->status == GMD_OK) {
        if (gate->options->run->conditions.conf) {
            fix_conf(gate); /* it is with these that it died */
        }
        part_first(gate);
        if (gate->found.count) {
            gate_give_up(gate, "the allocator does not outlive its first requests");
        }
    }
    free(outcome);
    gate_fail(gate, status == GMD_INTERRUPTED ? status : GMD_OK, error);
    return status == GMD_INTERRUPTED ? GMD_OK : status;
}

/* --- all of it --------------------------------------------------------------------------- */

/* A part without an item and without a reason would pass for one that found nothing. */
static void demand_items(gate_state *gate)
{
    bool is_excused = gate->options->only || gate->part->reason[0] || gate_is_over(gate);
    if (!gate->part->item_count && !is_excused) {
        gmd_error error;
        gate_fail(gate,
                  gmd_fail(&error, GMD_FAILED,
                           "%s: nothing there to run in the part '%s': is gmd installed whole?",
                           gate->run.subject.lib_directory, gate->part->name),
                  &error);
    }
}

static void run_parts(gate_state *gate)
{
    for (size_t i = 0; i < PART_COUNT && !gate_is_over(gate); i++) {
        gate->part = &gate->result->parts[i];
        GMD_LOG(GATE, "part %s begins", gate->part->name);
        parts[i].run(gate);
        gate_end_item(gate);
        GMD_LOG(GATE, "part %s ends: %zu items", gate->part->name, gate->part->item_count);
        demand_items(gate);
    }
    gate->part = gate_part_named(gate, "random");
    part_random_more(gate);
}

/* A failure in the middle does not take away what was judged before. */
static gmd_status end_broken(gate_state *gate)
{
    gmd_gate_result *result = gate->result;
    bool was_run = result->finding_count > 0;
    for (size_t i = 0; i < result->part_count; i++) {
        was_run = was_run || result->parts[i].was_run;
    }
    if (!was_run || gate->status == GMD_BAD_INPUT) {
        return gate->status;
    }
    snprintf(result->ended_early, sizeof result->ended_early, "%.230s", gate->error->text);
    result->ended_by = GMD_GATE_BROKEN;
    return GMD_OK;
}

static gmd_status run_gate(gate_state *gate, gmd_error *error)
{
    gmd_status status = check_only(gate, error);
    if (status == GMD_OK) {
        status = prepare_parts(gate, error);
    }
    if (status == GMD_OK) {
        status = gate_open_baseline(gate, error);
    }
    if (status == GMD_OK) {
        status = make_first_requests(gate, error);
    }
    if (status != GMD_OK) {
        return status;
    }
    if (!gate->gives_up) {
        explore(gate);
    }
    if (gate->options->rounds_file) {
        part_rounds_of_file(gate, gate->options->rounds_file);
    } else {
        run_parts(gate);
    }
    gate_end_item(gate);
    gate_write_findings(gate);
    if (gate->status == GMD_OK && gate->options->only && !gate->gives_up) {
        status = check_only_ran(gate, error);
    }
    if (gate->status != GMD_OK || status != GMD_OK) {
        return gate->status != GMD_OK ? end_broken(gate) : status;
    }
    return gate_close_baseline(gate, error);
}

gmd_status gmd_gate_run(const gmd_gate_options *options, gmd_gate_result *result, gmd_error *error)
{
    *result = (gmd_gate_result){.seed = options->run->seed, .is_quick = options->is_quick};
    gate_state gate = {.options = options,
                       .result = result,
                       .run = *options->run,
                       .start = gmd_clock_s(),
                       .error = error};
    gmd_options_leave_to_traces(&gate.run);
    gate.run.judging.costs = GMD_COSTS_SAMPLED;
    gate.run.process.shows_progress = false;
    gate.run.process.is_interrupted = options->is_interrupted;
    gate_open_findings(&gate);
    gmd_status status = run_gate(&gate, error);
    result->seconds = gmd_clock_s() - gate.start;
    gate_close_findings(&gate);
    baseline_free(&gate.baseline);
    return status;
}
