/* part_scenarios.c - the scripted workloads at a small scale, each variant of `leak`.
 *
 * A scenario's requests are recorded first, as if everything were served, and then run like any
 * other trace: so a finding comes with a case that can be minimised. They run with room to spare
 * and with hardly any; it is the allocator that is judged, and not the leak. */
#include "parts.h"
#include "play.h"
#include "recording.h"

#include "gmd_size.h"

#include <stdio.h>

#define ROOM_BYTES (140 * GMD_GIB)

/* --- a variant --------------------------------------------------------------------------- */

typedef struct variant {
    gmd_param params[2];
    size_t count;
} variant;

static void play_within(gate_state *gate, gmd_trace *trace, uint64_t capacity)
{
    gmd_runner runner;
    gmd_runner_init(&runner, &gate->run);
    trace->conditions.capacity_bytes = capacity;
    gate_play(gate, &runner, trace);
    gate_close_runner(gate, &runner);
}

/* Full memory makes an allocator split, merge, retry and refuse. */
static void play(gate_state *gate, gmd_trace *trace, uint64_t peak)
{
    uint64_t pages = peak / (2 * GMD_MIB) + 1;
    const char *confs[CONF_MAX + 1] = {NULL};
    size_t count = gate->conf_is_fixed ? 0 : 1, most = gate_budget(gate, plan_scenario_confs);
    for (size_t i = 0; i < gate->conf_count && i < most; i++) {
        confs[count++] = gate->confs[i];
    }
    for (size_t i = 0; i < count && !gate_is_over(gate); i++) {
        if (gate_set_conf(gate, trace, confs[i])) {
            play_within(gate, trace, ROOM_BYTES);
            play_within(gate, trace, (pages + pages / 16 + 10) * 2 * GMD_MIB);
            play_within(gate, trace, (pages - pages / 8) * 2 * GMD_MIB);
        }
    }
}

static void run_variant(gate_state *gate, gmd_scenario *scenario, const variant *v)
{
    scenario_recording recording;
    gmd_error error = {""};
    gmd_status status =
        recording_make(&recording, scenario, v->params, v->count, gate->run.seed, &error);
    gate_fail(gate, status, &error);
    if (status == GMD_OK) {
        play(gate, &recording.trace, recording.peak_bytes);
        recording_free(&recording);
    }
}

static void run_scenario(gate_state *gate, gmd_scenario *scenario)
{
    static const char *const values[] = {"false", "true"};
    bool has_leak = gmd_scenario_declares(scenario, "leak");
    for (size_t i = 0; i < (has_leak ? 2 : 1); i++) {
        variant v = {.count = 0};
        char name[96];
        snprintf(name, sizeof name, "%.60s", gmd_scenario_name(scenario));
        if (has_leak) {
            v.params[v.count++] = (gmd_param){"leak", values[i]};
            snprintf(name, sizeof name, "%.60s leak=%s", gmd_scenario_name(scenario), values[i]);
        }
        if (gmd_scenario_declares(scenario, "iterations")) {
            v.params[v.count++] = (gmd_param){"iterations", "4"};
        }
        if (gate_begin_item(gate, name)) {
            run_variant(gate, scenario, &v);
            gate_end_item(gate);
        }
    }
}

void part_scenarios(gate_state *gate)
{
    gate_each_scenario(gate, run_scenario);
}
