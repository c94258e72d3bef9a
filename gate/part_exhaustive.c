/* part_exhaustive.c - every sequence up to a length over a small alphabet, under three schedules.
 */
#include "gate.h"
#include "plan.h"

#include "gmd_exhaustive.h"
#include "gmd_size.h"

#include <stdio.h>

#define CAPACITY     (32 * GMD_MIB) /* few blocks fill it */
#define DEEP_SECONDS 600            /* whoever gives so much gets one more request */

static uint32_t depth_of(const gmd_gate *gate)
{
    uint64_t depth = gmd_gate_runs(gate, gmd_gate_plan_depth.full, gmd_gate_plan_depth.quick);
    return (uint32_t)depth + (gate->options->seconds >= DEEP_SECONDS);
}

static void search(gmd_gate *gate, uint32_t depth)
{
    gmd_run_options run = gmd_gate_options_as_given(gate);
    run.conditions.capacity_bytes = CAPACITY;
    run.conditions.device_count = 1;
    gmd_exhaustive_options options = {
        .run = &run, .depth = depth, .is_interrupted = &gate->gives_up};
    gmd_exhaustive_result result;
    gmd_error error = {""};
    size_t found = gate->found.count;
    void (*tell)(void *, size_t, uint64_t) = gate->found.progress;
    gmd_status status = gmd_exhaustive(&options, &gate->found, &result, &error);
    gate->found.progress = tell; /* the pass has its own */
    gate->found.context = gate;
    if (status == GMD_BAD_INPUT) {
        gmd_gate_note(gate, "refused: %s", error.text);
        return;
    }
    gmd_gate_fail(gate, status, &error);
    if (status != GMD_OK) {
        return;
    }
    gmd_gate_count(gate, result.runs, result.requests, result.known);
    gmd_gate_take_findings(gate);
    gate->item->hits += result.cut + (gate->found.count - found);
}

void gmd_gate_exhaustive(gmd_gate *gate)
{
    char name[40];
    uint32_t depth = depth_of(gate);
    snprintf(name, sizeof name, "up to %u requests", depth);
    if (gmd_gate_begin(gate, name)) {
        search(gate, depth);
        gmd_gate_end(gate);
    }
}
