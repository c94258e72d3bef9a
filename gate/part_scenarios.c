/* part_scenarios.c - the scripted workloads at a small scale, each variant of `leak`.
 *
 * A scenario's requests are recorded first, as if everything were served, and then run like any
 * other trace: so a finding comes with a case that can be minimised. They run with room to spare
 * and with hardly any; it is the allocator that is judged, and not the leak. */
#include "gate.h"
#include "plan.h"

#include "gmd_scenario.h"
#include "gmd_size.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define REQUESTS_MAX 20000
#define ROOM_BYTES   (140 * GMD_GIB)

/* --- a recording ------------------------------------------------------------------------- */

typedef struct recording {
    gmd_trace *trace;
    uint64_t *bytes; /* of each block */
    size_t capacity;
    uint64_t live, peak;
    gmd_status status;
    gmd_error error;
} recording;

static bool note_block(recording *r, uint32_t block, uint64_t bytes)
{
    if (block >= r->capacity) {
        size_t capacity = (size_t)block * 2 + 1024;
        uint64_t *grown = realloc(r->bytes, capacity * sizeof *grown);
        if (!grown) {
            return false;
        }
        r->bytes = grown;
        r->capacity = capacity;
    }
    r->bytes[block] = bytes;
    r->live += bytes;
    r->peak = r->live > r->peak ? r->live : r->peak;
    return true;
}

static gmd_served record(void *context, const gmd_request *request)
{
    recording *r = context;
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
    while (r->status == GMD_OK && request->op <= GMD_OP_RECORD &&
           t->blocks.count <= request->block) {
        r->status = gmd_names_add(&t->blocks, NULL, &index, &r->error);
    }
    while (r->status == GMD_OK && request->op <= GMD_OP_RECORD &&
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

/* --- a variant --------------------------------------------------------------------------- */

typedef struct variant {
    gmd_param params[2];
    size_t count;
} variant;

static void play_within(gmd_gate *gate, gmd_trace *trace, uint64_t capacity)
{
    gmd_runner runner;
    gmd_runner_init(&runner, &gate->run);
    trace->capacity_bytes = capacity;
    gmd_gate_play(gate, &runner, trace);
    gmd_runner_close(&runner);
}

/* Full memory makes an allocator split, merge, retry and refuse. */
static void play(gmd_gate *gate, gmd_trace *trace, uint64_t peak)
{
    uint64_t pages = peak / (2 * GMD_MIB) + 1;
    const char *confs[GMD_GATE_CONF_MAX + 1] = {NULL};
    size_t count = gate->conf_is_fixed ? 0 : 1, most = gmd_gate_runs(gate, 3, 1);
    for (size_t i = 0; i < gate->conf_count && i < most; i++) {
        confs[count++] = gate->confs[i];
    }
    for (size_t i = 0; i < count && !gmd_gate_is_over(gate); i++) {
        if (gmd_gate_set_conf(gate, trace, confs[i])) {
            play_within(gate, trace, ROOM_BYTES);
            play_within(gate, trace, (pages + pages / 16 + 10) * 2 * GMD_MIB);
            play_within(gate, trace, (pages - pages / 8) * 2 * GMD_MIB);
        }
    }
}

static void run_variant(gmd_gate *gate, gmd_scenario *scenario, const variant *v)
{
    gmd_trace trace;
    gmd_trace_init(&trace);
    recording r = {.trace = &trace};
    gmd_sink sink = {
        .context = &r, .request = record, .phase = ignore_phase, .memory = know_no_memory};
    bool out_of_memory;
    gmd_error error = {""};
    gmd_status status = gmd_scenario_run(scenario, v->params, v->count, gate->run.seed, &sink,
                                         &out_of_memory, &error);
    if (status == GMD_OK) {
        status = r.status;
        error = r.error;
    }
    if (status == GMD_OK) {
        play(gate, &trace, r.peak);
    }
    gmd_gate_fail(gate, status, &error);
    free(r.bytes);
    gmd_trace_free(&trace);
}

static bool has_param(const gmd_scenario *scenario, const char *key)
{
    gmd_scenario_param param;
    for (size_t i = 0; gmd_scenario_param_at(scenario, i, &param); i++) {
        if (strcmp(param.key, key) == 0) {
            return true;
        }
    }
    return false;
}

static void run_scenario(gmd_gate *gate, gmd_scenario *scenario)
{
    static const char *const values[] = {"false", "true"};
    bool has_leak = has_param(scenario, "leak");
    for (size_t i = 0; i < (has_leak ? 2 : 1); i++) {
        variant v = {.count = 0};
        char name[96];
        snprintf(name, sizeof name, "%.60s", gmd_scenario_name(scenario));
        if (has_leak) {
            v.params[v.count++] = (gmd_param){"leak", values[i]};
            snprintf(name, sizeof name, "%.60s leak=%s", gmd_scenario_name(scenario), values[i]);
        }
        if (has_param(scenario, "iterations")) {
            v.params[v.count++] = (gmd_param){"iterations", "4"};
        }
        if (gmd_gate_begin(gate, name)) {
            run_variant(gate, scenario, &v);
            gmd_gate_end(gate);
        }
    }
}

typedef struct visit {
    gmd_gate *gate;
    const char *directory;
} visit;

static void visit_scenario(void *context, const char *name)
{
    const visit *v = context;
    gmd_scenario *scenario = NULL;
    gmd_error error;
    if (gmd_gate_is_over(v->gate)) {
        return;
    }
    gmd_status status = gmd_scenario_open(&scenario, name, v->directory, &error);
    gmd_gate_fail(v->gate, status, &error);
    if (status == GMD_OK) {
        run_scenario(v->gate, scenario);
    }
    gmd_scenario_close(scenario);
}

void gmd_gate_scenarios(gmd_gate *gate)
{
    char directory[4200];
    gmd_error error;
    snprintf(directory, sizeof directory, "%s/scenarios", gate->run.lib_directory);
    visit v = {gate, directory};
    gmd_gate_fail(gate, gmd_scenario_each(directory, visit_scenario, &v, &error), &error);
}
