/* part_memory.c - what scenarios and recorded histories take of the device. On the simulated one
 * the figures are exact: the same allocator gives the same ones on any machine, however busy. */
#include "measured.h"
#include "parts.h"
#include "play.h"
#include "recording.h"

#include "gmd_history.h"
#include "gmd_min.h"
#include "gmd_session.h"
#include "gmd_size.h"
#include "gmd_snapshot.h"
#include "gmd_text.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define AMPLE_BYTES (140 * GMD_GIB)
#define PPM         1000000.0

/* --- a run ------------------------------------------------------------------------------- */

typedef struct taken { /* in memory that the process of the run shares */
    uint64_t peak_reserved;
    double unused, shares; /* sums over the requests with anything reserved: of the share that no
                              live block asked for, and of 1 */
    uint64_t api_calls, retries, refused;
    _Atomic int has_retries, is_done; /* any number is one of theirs */
} taken;

typedef struct watch {
    const gmd_trace *trace;
    taken *taken;
    uint64_t *bytes; /* of each live block of device 0, as asked for */
    uint64_t live;
} watch;

static void note_answer(watch *w, const gmd_request *r, gmd_served served)
{
    if (r->op == GMD_OP_ALLOC && served == GMD_OUT_OF_MEMORY) {
        w->taken->refused++;
    } else if (r->op == GMD_OP_ALLOC && served == GMD_SERVED && r->device == 0) {
        w->bytes[r->block] = r->bytes;
        w->live += r->bytes;
    } else if (r->op == GMD_OP_FREE) {
        w->live -= w->bytes[r->block];
        w->bytes[r->block] = 0;
    }
}

static void note_memory(watch *w, gmd_session *session)
{
    gmd_sink_memory memory;
    gmd_session_memory(session, &memory);
    taken *t = w->taken;
    t->peak_reserved = gmd_max(memory.max_reserved, t->peak_reserved);
    if (memory.reserved) {
        uint64_t unused = memory.reserved > w->live ? memory.reserved - w->live : 0;
        t->unused += (double)unused / (double)memory.reserved;
        t->shares++;
    }
}

static gmd_status play(void *context, gmd_session *session, gmd_error *error)
{
    watch w = *(const watch *)context;
    *w.taken = (taken){.is_done = false};
    w.bytes = calloc(w.trace->blocks.count + 1, sizeof *w.bytes);
    if (!w.bytes) {
        return gmd_fail(error, GMD_NO_MEMORY, "no host memory for the sizes of blocks");
    }
    uint64_t before = gmd_session_api_calls(session);
    for (size_t i = 0; i < w.trace->count; i++) {
        const gmd_request *request = &w.trace->requests[i];
        gmd_served served = gmd_session_request(session, request);
        if (served == GMD_STOP) {
            free(w.bytes);
            return GMD_OK;
        }
        note_answer(&w, request, served);
        note_memory(&w, session);
    }
    w.taken->api_calls = gmd_session_api_calls(session) - before;
    gmd_stats stats = {.struct_size = sizeof stats};
    const gmd_subject *subject = gmd_session_subject(session);
    w.taken->has_retries = subject->get_stats && subject->get_stats(0, &stats) == 0 &&
                           stats.num_alloc_retries != GMD_STAT_UNKNOWN;
    w.taken->retries = stats.num_alloc_retries;
    w.taken->is_done = true;
    free(w.bytes);
    return GMD_OK;
}

static void measured(gate_state *gate, const char *name, const char *unit, double value)
{
    gate_add_figure(gate, name, unit, (gmd_gate_span){value, value, value});
}

/* Nothing that the allocator may have written there makes it more than all or less than nothing. */
static double share_unused(const taken *t)
{
    double share = t->unused / t->shares;
    return share > 0 && share <= 1 ? share : 0;
}

static void keep(gate_state *gate, const taken *t)
{
    double unused = share_unused(t);
    measured(gate, "peak_reserved", "B", (double)t->peak_reserved);
    measured(gate, "fragmentation", "ppm", (double)(uint64_t)(unused * PPM + 0.5));
    measured(gate, "device_calls", "calls", (double)t->api_calls);
    measured(gate, "refused", "requests", (double)t->refused);
    if (t->has_retries) {
        measured(gate, "retries", "retries", (double)t->retries);
    }
}

/* The parts of correctness tell what the allocator did wrong; here it only has no figures. */
static const char *why_not(const gmd_outcome *o)
{
    return o->violation_count ? o->violations[0].message
           : o->error[0]      ? o->error
                              : "the run ended before its last request";
}

static gmd_status run_isolated(gate_state *gate, gmd_run_options *options, const gmd_trace *trace,
                               taken *t, gmd_error *error)
{
    watch w = {.trace = trace, .taken = t};
    gmd_workload workload = {
        .name = gate->item->name, .kind = "trace", .trace = trace, .body = play, .context = &w};
    gmd_outcome *outcome = calloc(1, sizeof *outcome);
    if (!outcome) {
        return gmd_fail(error, GMD_NO_MEMORY, "no host memory for an outcome");
    }
    options->judging.oracles_off = options->judging.is_compared = true;
    options->cases.directory = NULL;
    gmd_status status = gmd_run_isolated(options, &workload, outcome, error);
    if (status == GMD_OK) {
        const taken own = *t; /* nobody else's from now on */
        gate_count(gate, 1, outcome->requests, outcome->known_count);
        if (own.is_done) {
            keep(gate, &own);
        } else {
            gate_lose_figures(gate, why_not(outcome));
        }
    }
    free(outcome);
    return status;
}

static void measure(gate_state *gate, gmd_run_options *options, const gmd_trace *trace)
{
    gmd_error error = {""};
    taken *t = mmap(NULL, sizeof *t, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (t == MAP_FAILED) {
        gate_fail(gate, gmd_fail(&error, GMD_NO_MEMORY, "no memory to share"), &error);
        return;
    }
    gate_fail(gate, run_isolated(gate, options, trace, t, &error), &error);
    munmap(t, sizeof *t);
}

/* --- scenarios --------------------------------------------------------------------------- */

static void measure_within(gate_state *gate, gmd_scenario *scenario, const char *how,
                           const scenario_recording *recording, uint64_t capacity)
{
    char name[96];
    snprintf(name, sizeof name, "scenarios/%.60s/%s", gmd_scenario_name(scenario), how);
    if (gate_begin_item(gate, name)) {
        gmd_run_options options = gate_options_as_given(gate);
        options.conditions.capacity_bytes = capacity;
        measure(gate, &options, &recording->trace);
        gate_end_item(gate);
    }
}

/* With memory to spare, and with hardly more than what is live, where fragmentation and retries
 * show. The seed is always the same: figures are not drawn. */
static void measure_scenario(gate_state *gate, gmd_scenario *scenario)
{
    gmd_param params[2];
    size_t count = 0;
    scenario_recording recording;
    gmd_error error = {""};
    if (gmd_scenario_declares(scenario, "leak")) {
        params[count++] = (gmd_param){"leak", "false"};
    }
    if (gmd_scenario_declares(scenario, "iterations")) {
        params[count++] = (gmd_param){"iterations", "4"};
    }
    gmd_status status = recording_make(&recording, scenario, params, count, 0, &error);
    gate_fail(gate, status, &error);
    if (status == GMD_OK) {
        uint64_t pages = recording.peak_bytes / GMD_SIM_PAGE_BYTES + 1;
        measure_within(gate, scenario, "ample", &recording, AMPLE_BYTES);
        measure_within(gate, scenario, "scarce", &recording,
                       (pages + pages / 16 + 10) * GMD_SIM_PAGE_BYTES);
        recording_free(&recording);
    }
}

/* --- histories --------------------------------------------------------------------------- */

/* "histories/resnet50_bs32" of ".../resnet50_bs32.pickle.gz" */
static void name_history(const char *path, char *name, size_t size)
{
    const char *file = gmd_file_name(path);
    const char *end = strstr(file, ".pickle");
    snprintf(name, size, "histories/%.*s", end ? (int)(end - file) : (int)strlen(file), file);
    for (char *c = name; *c; c++) {
        *c = strchr(" \t\n#", *c) ? '_' : *c;
    }
}

static void measure_history(gate_state *gate, const gmd_history *history, const char *conf)
{
    gmd_run_options options = gate_options_as_given(gate);
    if (!options.conditions.conf && gate->abilities.configure) {
        options.conditions.conf = conf;
    }
    options.conditions.limit_bytes = history->limit_bytes;
    options.device.limit_is_optional = true;
    options.conditions.capacity_bytes = AMPLE_BYTES;
    options.conditions.device_count =
        history->trace.conditions.device_count ? history->trace.conditions.device_count : 1;
    measure(gate, &options, &history->trace);
}

static gmd_status read_and_measure(gate_state *gate, const char *path, gmd_error *error)
{
    gmd_snapshot snapshot = {0};
    gmd_history history = {0};
    const gmd_history_hints hints = {.recorded_retries = GMD_RETRIES_UNKNOWN, .waits_again = true};
    gmd_status status = gmd_snapshot_read(&snapshot, path, error);
    if (status == GMD_OK) {
        status = gmd_history_build(&history, &snapshot, &hints, path, error);
    }
    if (status == GMD_OK && !history.trace.count) {
        status = gmd_fail(error, GMD_BAD_INPUT, "%s: holds no history: nothing to measure", path);
    }
    if (status == GMD_OK) {
        measure_history(gate, &history, snapshot.conf);
    }
    gmd_history_free(&history);
    gmd_snapshot_free(&snapshot);
    return status;
}

/* Two histories of one name would share their lines of the baseline. */
static bool is_taken(const gmd_gate_part *part, const char *name)
{
    for (size_t i = 0; i < part->item_count; i++) {
        if (strcmp(part->items[i].name, name) == 0) {
            return true;
        }
    }
    return false;
}

static void try_history(gate_state *gate, const char *path)
{
    char name[96];
    gmd_error error = {""};
    name_history(path, name, sizeof name);
    if (is_taken(gate->part, name)) {
        gate_fail(gate,
                  gmd_fail(&error, GMD_BAD_INPUT,
                           "--history %s: there is another '%s': rename the file", path, name),
                  &error);
    } else if (gate_begin_item(gate, name)) {
        gate_fail(gate, read_and_measure(gate, path, &error), &error);
        gate_end_item(gate);
    }
}

static int is_history(const struct dirent *entry)
{
    return strstr(entry->d_name, ".pickle") != NULL;
}

static void measure_shipped(gate_state *gate)
{
    char folder[4200], path[4500];
    struct dirent **entries = NULL;
    snprintf(folder, sizeof folder, "%s/histories", gate->run.subject.lib_directory);
    int count = scandir(folder, &entries, is_history, alphasort);
    if (count <= 0) {
        gmd_error error;
        gate_fail(
            gate,
            gmd_fail(&error, GMD_FAILED, "%s: no histories there: is gmd installed whole?", folder),
            &error);
    }
    for (int i = 0; i < count; i++) {
        snprintf(path, sizeof path, "%s/%.255s", folder, entries[i]->d_name);
        try_history(gate, path);
        free(entries[i]);
    }
    free(entries);
}

void part_memory(gate_state *gate)
{
    if (!gate_wants_figures(gate)) {
        return;
    }
    gate_each_scenario(gate, measure_scenario);
    measure_shipped(gate);
    for (size_t i = 0; i < gate->options->history_count; i++) {
        try_history(gate, gate->options->histories[i]);
    }
}
