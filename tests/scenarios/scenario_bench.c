#include "scenario_bench.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static uint64_t rounded(uint64_t bytes)
{
    return (bytes + 511) / 512 * 512;
}

static void mix(bench *run, uint64_t word)
{
    run->hash = (run->hash ^ word) * 1099511628211u;
    run->hash ^= run->hash >> 29;
}

static void raise_bounds(bench *run)
{
    for (size_t i = 0; i < run->bound_count; i++) {
        bench_bound *bound = &run->bounds[i];
        bound->peak = run->allocated > bound->peak ? run->allocated : bound->peak;
    }
}

static void note(bench *run, char sign, uint64_t bytes)
{
    size_t used = strlen(run->asked);
    snprintf(run->asked + used, sizeof run->asked - used, "%s%c%llu", used ? " " : "", sign,
             (unsigned long long)bytes);
}

static gmd_served take_alloc(bench *run, const gmd_request *request)
{
    if (run->limit && run->allocated + rounded(request->bytes) > run->limit) {
        return GMD_OUT_OF_MEMORY;
    }
    if (request->block >= BENCH_BLOCKS || run->bytes[request->block] || request->bytes == 0) {
        run->broken = true;
        return GMD_STOP;
    }
    run->bytes[request->block] = request->bytes;
    note(run, '+', request->bytes);
    run->allocated += rounded(request->bytes);
    run->largest = request->bytes > run->largest ? request->bytes : run->largest;
    if (run->allocated > run->max_allocated) {
        run->max_allocated = run->allocated;
    }
    run->requested += request->bytes;
    if (run->requested > run->max_requested) {
        run->max_requested = run->requested;
    }
    raise_bounds(run);
    return GMD_SERVED;
}

static gmd_served take(void *context, const gmd_request *request)
{
    bench *run = context;
    run->requests++;
    run->with_lines += request->line != 0;
    if (run->stop_after && run->requests > run->stop_after) {
        run->after_stop++;
    }
    mix(run, request->op);
    mix(run, request->block);
    mix(run, request->bytes);
    if (request->op == GMD_OP_FREE) {
        run->broken |= request->block >= BENCH_BLOCKS || !run->bytes[request->block];
        note(run, '-', run->bytes[request->block]);
        run->allocated -= rounded(run->bytes[request->block]);
        run->requested -= run->bytes[request->block];
        memmove(&run->freed[1], &run->freed[0], sizeof run->freed - sizeof run->freed[0]);
        run->freed[0] = run->bytes[request->block];
        memmove(&run->freed_ids[1], &run->freed_ids[0],
                sizeof run->freed_ids - sizeof run->freed_ids[0]);
        run->freed_ids[0] = request->block;
        run->bytes[request->block] = 0;
    }
    if (request->op == GMD_OP_ALLOC) {
        gmd_served served = take_alloc(run, request);
        if (served != GMD_SERVED) {
            return served;
        }
    }
    return run->stop_after && run->requests >= run->stop_after ? GMD_STOP : GMD_SERVED;
}

static void end_phase(void *context, const char *label)
{
    bench *run = context;
    assert_true(run->phase_count < BENCH_PHASES);
    bench_phase *phase = &run->phases[run->phase_count++];
    snprintf(phase->label, sizeof phase->label, "%s", label);
    memcpy(phase->asked, run->asked, sizeof phase->asked);
    run->asked[0] = '\0';
    phase->allocated = run->allocated;
    phase->max_allocated = run->max_allocated;
    phase->requested = run->requested;
    phase->max_requested = run->max_requested;
}

static void take_bound(void *context, const gmd_bound *bound)
{
    bench *run = context;
    assert_true(run->bound_count < 8);
    run->bounds[run->bound_count++] =
        (bench_bound){bound->is_reserved, bound->leaks, bound->bytes, 0};
    raise_bounds(run);
}

static void reset_peaks(void *context)
{
    bench *run = context;
    run->max_allocated = run->allocated;
}

static bool tell_memory(void *context, gmd_sink_memory *memory)
{
    const bench *run = context;
    *memory = (gmd_sink_memory){.allocated = run->allocated,
                                .max_allocated = run->max_allocated,
                                .active = run->has_no_statistics ? UINT64_MAX : run->allocated};
    return true;
}

static void take_workspaces(void *context, const gmd_workspace_use *use)
{
    bench *run = context;
    run->workspaces = *use;
}

static void run_opened(bench *run, gmd_scenario *scenario, const gmd_param *params, size_t count)
{
    gmd_scenario_inspect(scenario, run->inspection);
    gmd_scenario_use_workspaces(scenario, run->recorded);
    gmd_sink sink = {.context = run,
                     .request = take,
                     .phase = end_phase,
                     .memory = run->is_blind ? NULL : tell_memory,
                     .bound = take_bound,
                     .workspaces = take_workspaces,
                     .reset_peaks = reset_peaks,
                     .tells_lines = true};
    run->status = gmd_scenario_run(scenario, params, count, run->seed, &sink, &run->out_of_memory,
                                   &run->error);
    assert_false(run->broken);
    gmd_scenario_close(scenario);
}

static bench *benches; /* that are not freed */

static bench *new_bench(uint64_t limit, uint64_t stop_after)
{
    bench *run = calloc(1, sizeof *run);
    assert_non_null(run);
    run->limit = limit;
    run->stop_after = stop_after;
    run->next = benches;
    benches = run;
    return run;
}

static void run_prepared(bench *run, const char *head, const char *text, const char *budget)
{
    gmd_param param = {"max_instructions", budget};
    char path[] = "scenario_test_XXXXXX.lua";
    int file = mkstemps(path, 4);
    assert_true(file >= 0);
    FILE *out = fdopen(file, "w");
    assert_non_null(out);
    fputs(head, out);
    fputs(text, out);
    assert_int_equal(fclose(out), 0);
    gmd_scenario *scenario;
    run->status = gmd_scenario_open(&scenario, path, ".", &run->error);
    unlink(path);
    if (run->status == GMD_OK) {
        run_opened(run, scenario, &param, budget ? 1 : 0);
    }
}

static bench *run_text(const char *head, const char *text, const char *budget, uint64_t limit,
                       uint64_t stop_after)
{
    bench *run = new_bench(limit, stop_after);
    run_prepared(run, head, text, budget);
    return run;
}

static const char head[] = "scenario { name = 'test', summary = 'a test' }\n";

bench *bench_run(const char *text)
{
    return run_text(head, text, NULL, 0, 0);
}

bench *bench_run_inspected(const char *text, gmd_inspection *inspection, uint64_t limit_bytes)
{
    bench *run = new_bench(limit_bytes, 0);
    run->inspection = inspection;
    run_prepared(run, head, text, "1000000");
    return run;
}

bench *bench_run_recorded(const char *text, const struct gmd_workspaces *table)
{
    bench *run = new_bench(0, 0);
    run->recorded = table;
    run_prepared(run, head, text, NULL);
    return run;
}

bench *bench_run_file_inspected(const char *text, gmd_inspection *inspection)
{
    bench *run = new_bench(0, 0);
    run->inspection = inspection;
    run_prepared(run, "", text, NULL);
    return run;
}

bench *bench_run_limited(const char *text, uint64_t limit_bytes)
{
    return run_text(head, text, NULL, limit_bytes, 0);
}

bench *bench_run_stopped(const char *text, uint64_t stop_after)
{
    return run_text(head, text, NULL, 0, stop_after);
}

bench *bench_run_budget(const char *text, const char *instructions)
{
    return run_text(head, text, instructions, 0, 0);
}

bench *bench_run_file_text(const char *text)
{
    return run_text("", text, NULL, 0, 0);
}

static bench *run_named(bench *run, const char *name, const char *params)
{
    gmd_param list[16];
    size_t count = 0;
    char text[256], *rest = text;
    snprintf(text, sizeof text, "%s", params);
    for (char *each; (each = strtok_r(rest, " ", &rest)) && count < 16;) {
        char *value = strchr(each, '=');
        assert_non_null(value);
        *value = '\0';
        list[count++] = (gmd_param){each, value + 1};
    }
    gmd_scenario *scenario;
    run->status = gmd_scenario_open(&scenario, name, GMD_SCENARIO_FOLDER, &run->error);
    if (run->status == GMD_OK) {
        run_opened(run, scenario, list, count);
    }
    return run;
}

bench *bench_run_named(const char *name, const char *params, uint64_t seed)
{
    bench *run = new_bench(0, 0);
    run->seed = seed;
    return run_named(run, name, params);
}

bench *bench_run_named_limited(const char *name, const char *params, uint64_t limit_bytes)
{
    return run_named(new_bench(limit_bytes, 0), name, params);
}

bench *bench_run_named_inspected(const char *name, gmd_inspection *inspection)
{
    bench *run = new_bench(0, 0);
    run->inspection = inspection;
    return run_named(run, name, "");
}

bench *bench_run_named_blind(const char *name)
{
    bench *run = new_bench(0, 0);
    run->is_blind = true;
    return run_named(run, name, "");
}

static const bench_phase *phase_of(const bench *run, const char *label)
{
    for (size_t i = 0; i < run->phase_count; i++) {
        if (strcmp(run->phases[i].label, label) == 0) {
            return &run->phases[i];
        }
    }
    fail_msg("no phase '%s'; %s", label, run->error.text);
    return NULL;
}

uint64_t bench_at(const bench *run, const char *label)
{
    return phase_of(run, label)->allocated;
}

uint64_t bench_peak_at(const bench *run, const char *label)
{
    return phase_of(run, label)->max_allocated;
}

const char *bench_asked_in(const bench *run, const char *label)
{
    return phase_of(run, label)->asked;
}

void bench_free(bench *run)
{
    bench **position = &benches;
    while (*position != run) {
        position = &(*position)->next;
    }
    *position = run->next;
    free(run);
}

int bench_free_all(void **state)
{
    (void)state;
    while (benches) {
        bench_free(benches);
    }
    return 0;
}

void bench_assert_ok(const bench *run)
{
    if (run->status != GMD_OK) {
        fail_msg("the run failed: %s", run->error.text);
    }
}

void bench_assert_refused(const bench *run, const char *part)
{
    assert_int_equal(run->status, GMD_BAD_INPUT);
    if (!strstr(run->error.text, part)) {
        fail_msg("the message does not say '%s': %s", part, run->error.text);
    }
}
