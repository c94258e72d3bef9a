#include "play.h"

#include "findings.h"

#define UNCONFIRMED_HANGS_MAX 2

bool gate_set_conf(gate_state *gate, gmd_trace *trace, const char *conf)
{
    gmd_error error;
    gmd_status status =
        gmd_conditions_set_conf(&trace->conditions, conf && *conf ? conf : NULL, &error);
    gate_fail(gate, status, &error);
    return status == GMD_OK;
}

gmd_run_options gate_options_as_given(const gate_state *gate)
{
    gmd_run_options options = gate->run;
    options.conditions.conf = gate->options->run->conditions.conf;
    return options;
}

void gate_cannot_run(gate_state *gate, gmd_status status, const char *reason)
{
    gmd_error error;
    if (status == GMD_BAD_INPUT) {
        gate_note(gate, "refused: %s", reason);
    } else {
        gate_fail(gate, gmd_fail(&error, status, "%s", reason), &error);
    }
}

void gate_close_runner(gate_state *gate, gmd_runner *runner)
{
    gmd_runner_close(runner);
    gate_add_troubles(gate, &runner->troubles);
    gate_add_costs(gate, runner->judged.oracles, runner->judged.count);
}

bool gate_play(gate_state *gate, gmd_runner *runner, const gmd_trace *trace)
{
    const gmd_outcome *outcome;
    gmd_error error;
    gmd_status status = gmd_runner_run(runner, trace, &outcome, &error);
    if (status != GMD_OK) {
        gate_cannot_run(gate, status, error.text);
        return false;
    }
    gate_count(gate, 1, outcome->requests, outcome->known_count);
    if (outcome->violation_count) {
        if (!gate_is_known(gate, &outcome->violations[0])) {
            gate_add_finding(gate, runner, trace, &outcome->violations[0]);
        }
    } else if (outcome->verdict == GMD_ERROR) {
        gate_cannot_run(gate, outcome->error_status, outcome->error);
        return false;
    }
    return true;
}

/* A suspect counts for what it shows by itself. */
static void look_again(gate_state *gate, gmd_runner *runner, const gmd_trace *trace,
                       const gmd_outcome *suspected)
{
    uint64_t hits = gate->item->hits;
    gmd_violation first = {.oracle = "progress", .message = "it did not end"};
    if (suspected->violation_count) {
        first = suspected->violations[0]; /* the next run overwrites it */
        if (gate_is_known(gate, &first)) {
            return;
        }
    }
    if (gate_play(gate, runner, trace) && gate->item->hits == hits) {
        gate->unconfirmed_hangs += gmd_is_hang(&first);
        gate_note(gate, "shown only after other runs in the same process: %s: %s", first.oracle,
                  first.message);
    }
}

/* An allocator that hangs once a process has made so many requests would hang in all of these. */
static bool run_alone(gate_state *gate, gmd_runner *runner, const gmd_persistent_input *traces,
                      size_t count)
{
    bool is_alone = gate->unconfirmed_hangs >= UNCONFIRMED_HANGS_MAX;
    for (size_t i = 0; i < count && is_alone && !gate_is_over(gate); i++) {
        gate_play(gate, runner, &traces[i].trace);
    }
    return is_alone;
}

void gate_play_persistent(gate_state *gate, gmd_runner *runner, gmd_persistent_input *traces,
                          size_t count)
{
    for (size_t at = 0; at < count && !gate_is_over(gate);) {
        if (run_alone(gate, runner, &traces[at], count - at)) {
            return;
        }
        gmd_persistent_result persistent;
        gmd_error error;
        gmd_status status =
            gmd_runner_run_persistent(runner, &traces[at], count - at, &persistent, &error);
        if (status != GMD_OK) {
            gate_cannot_run(gate, status, error.text);
            return;
        }
        gate_count(gate, persistent.passed, persistent.requests, persistent.known);
        at += persistent.passed;
        if (persistent.is_suspect) {
            look_again(gate, runner, &traces[at++].trace, persistent.outcome);
        } else if (!persistent.passed || traces[0].expects_lapses) {
            return;
        } else if (at < count) {
            count = at + 1; /* its threads spin outside the scheduler's control: one more will do */
            traces[at].expects_lapses = true;
        }
    }
}
