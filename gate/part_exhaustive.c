/* part_exhaustive.c - every sequence up to a length over a small alphabet, under three schedules.
 */
#include "findings.h"
#include "parts.h"
#include "play.h"

#include "gmd_exhaustive.h"
#include "gmd_size.h"

#include <stdio.h>

#define CAPACITY     (32 * GMD_MIB) /* few blocks fill it */
#define DEEP_SECONDS 600            /* with so much time, sequences have one more request */

static uint32_t depth_of(const gate_state *gate)
{
    uint64_t depth = gate_budget(gate, plan_depth);
    return (uint32_t)depth + (gate->options->seconds >= DEEP_SECONDS);
}

static void search(gate_state *gate, uint32_t depth)
{
    gmd_run_options run = gate_options_as_given(gate);
    run.conditions.capacity_bytes = CAPACITY;
    run.conditions.device_count = 1;
    gmd_exhaustive_options options = {
        .run = &run, .depth = depth, .is_interrupted = &gate->gives_up};
    gmd_exhaustive_result result;
    gmd_error error = {""};
    size_t found = gate->found.count;
    void (*tell)(void *, size_t, uint64_t) = gate->found.progress;
    gmd_status status = gmd_exhaustive(&options, &gate->found, &result, &error);
    gate->found.progress = tell; /* the pass put its own there */
    gate->found.context = gate;
    if (status == GMD_BAD_INPUT) {
        gate_note(gate, "refused: %s", error.text);
        return;
    }
    gate_fail(gate, status, &error);
    if (status != GMD_OK) {
        return;
    }
    gate_count(gate, result.runs, result.requests, result.known);
    gate_add_costs(gate, result.judged.oracles, result.judged.count);
    gate_take_findings(gate);
    gate->item->hits += result.cut + (gate->found.count - found);
}

void part_exhaustive(gate_state *gate)
{
    char name[40];
    uint32_t depth = depth_of(gate);
    snprintf(name, sizeof name, "up to %u requests", depth);
    if (gate_begin_item(gate, name)) {
        search(gate, depth);
        gate_end_item(gate);
    }
}
