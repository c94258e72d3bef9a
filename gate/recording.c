#include "recording.h"
#include "gmd_grow.h"
#include "gmd_min.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define REQUESTS_MAX 20000

typedef struct recorder {
    gmd_trace *trace;
    uint64_t *bytes; /* of each block */
    size_t capacity;
    uint64_t live, peak;
    gmd_status status;
    gmd_error error;
} recorder;

static bool note_block(recorder *r, uint32_t block, uint64_t bytes)
{
    if (!GMD_GROW(&r->bytes, &r->capacity, (size_t)block + 1)) {
        return false;
    }
    r->bytes[block] = bytes;
    r->live += bytes;
    r->peak = gmd_max(r->live, r->peak);
    return true;
}

static gmd_served record(void *context, const gmd_request *request)
{
    recorder *r = context;
    if (r->status != GMD_OK || r->trace->count >= REQUESTS_MAX) {
        return GMD_STOP;
    }
    if (request->op == GMD_OP_ALLOC && !note_block(r, request->block, request->bytes)) {
        r->status = gmd_fail(&r->error, GMD_NO_MEMORY, "no host memory for a recording");
    } else if (request->op == GMD_OP_FREE) {
        r->live -= r->bytes[request->block];
    }
    uint32_t index;
    gmd_trace *t = r->trace;
    while (r->status == GMD_OK && gmd_op_has_block(request->op) &&
           t->blocks.count <= request->block) {
        r->status = gmd_names_add(&t->blocks, NULL, &index, &r->error);
    }
    while (r->status == GMD_OK && gmd_op_has_block(request->op) &&
           t->streams.count <= request->stream) {
        r->status = gmd_names_add(&t->streams, NULL, &index, &r->error);
    }
    if (r->status == GMD_OK) {
        r->status = gmd_trace_append(t, request, &r->error);
    }
    return r->status == GMD_OK ? GMD_SERVED : GMD_STOP;
}

static void ignore_phase(void *context, const char *label)
{
    (void)context;
    (void)label;
}

static bool know_no_memory(void *context, gmd_sink_memory *memory)
{
    (void)context;
    (void)memory;
    return false;
}

gmd_status recording_make(scenario_recording *recording, gmd_scenario *scenario,
                          const gmd_param *params, size_t param_count, uint64_t seed,
                          gmd_error *error)
{
    gmd_trace_init(&recording->trace);
    recorder r = {.trace = &recording->trace};
    gmd_sink sink = {
        .context = &r, .request = record, .phase = ignore_phase, .memory = know_no_memory};
    bool out_of_memory;
    gmd_status status =
        gmd_scenario_run(scenario, params, param_count, seed, &sink, &out_of_memory, error);
    if (status == GMD_OK && r.status != GMD_OK) {
        status = r.status;
        *error = r.error;
    }
    recording->peak_bytes = r.peak;
    free(r.bytes);
    if (status != GMD_OK) {
        gmd_trace_free(&recording->trace);
    }
    return status;
}

void recording_free(scenario_recording *recording)
{
    gmd_trace_free(&recording->trace);
}

/* --- the scenarios ----------------------------------------------------------------------- */

typedef struct round_trip {
    gate_state *gate;
    const char *directory;
    void (*visit)(gate_state *gate, gmd_scenario *scenario);
} round_trip;

static void visit_scenario(void *context, const char *name)
{
    const round_trip *r = context;
    gmd_scenario *scenario = NULL;
    gmd_error error;
    if (gate_is_over(r->gate)) {
        return;
    }
    gmd_status status = gmd_scenario_open(&scenario, name, r->directory, &error);
    gate_fail(r->gate, status, &error);
    if (status == GMD_OK) {
        r->visit(r->gate, scenario);
    }
    gmd_scenario_close(scenario);
}

void gate_each_scenario(gate_state *gate, void (*visit)(gate_state *gate, gmd_scenario *scenario))
{
    char directory[4200];
    gmd_error error;
    snprintf(directory, sizeof directory, "%s/scenarios", gate->run.subject.lib_directory);
    round_trip r = {gate, directory, visit};
    gate_fail(gate, gmd_scenario_each(directory, visit_scenario, &r, &error), &error);
}
