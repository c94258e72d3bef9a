/* bench.c - the comparison: benchmark by benchmark, rounds that take turns. */
#define _GNU_SOURCE /* RUSAGE_THREAD */
#include "gmd_bench.h"

#include "catalogue.h"
#include "clock.h"
#include "contestant.h"
#include "cores.h"
#include "figures.h"
#include "machine.h"

#include "gmd_min.h"
#include "gmd_status_line.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#define ROUND_NS         4000000u  /* shorter than the kernel's time slice: most are undisturbed */
#define THREADS_ROUND_NS 20000000u /* threads take a while until all of them run */
#define ROUND_MIN        7         /* fewer give no interval that holds in 95 of 100 cases */
#define ROUND_MAX        1001
#define FIRST_ROUND_MAX  11                            /* each takes a process */
#define PARTY_MAX        (GMD_BENCH_ALLOCATOR_MAX + 1) /* the allocators and the floor */

typedef struct series {
    double ns[ROUND_MAX];
    bool is_disturbed[ROUND_MAX];
} series;

typedef struct comparison {
    const gmd_bench_options *options;
    gmd_bench_report *report;
    char worker[PATH_MAX];
    bench_contestant parties[PARTY_MAX]; /* the last one of party_count is the floor */
    uint32_t party_count;
    series series[PARTY_MAX];
    uint32_t round_count;
    uint32_t chosen[ROUND_MAX], chosen_count; /* the rounds that figures are made from */
    /* of the benchmark under way */
    gmd_bench_state states[PARTY_MAX];
    char reasons[PARTY_MAX][768];
} comparison;

/* --- the parties ------------------------------------------------------------------------- */

static void copy_path(char *out, size_t size, const char *text)
{
    snprintf(out, size, "%s", text ? text : "");
}

static void enlist(comparison *c, const char *spec, bool is_first)
{
    const gmd_bench_options *o = c->options;
    bench_contestant *party = &c->parties[c->party_count++];
    *party = (bench_contestant){.program = c->worker, .patience_s = o->patience_s};
    bench_setup *s = &party->setup;
    s->is_floor = !spec;
    s->device = o->device;
    s->device_count = o->device_count;
    s->capacity_bytes = o->capacity_bytes;
    s->has_conf = o->conf != NULL;
    s->conf_is_optional = !is_first;
    copy_path(s->spec, sizeof s->spec, spec);
    copy_path(s->lib_directory, sizeof s->lib_directory, o->lib_directory);
    copy_path(s->torch_adapter, sizeof s->torch_adapter, o->torch_adapter);
    copy_path(s->conf, sizeof s->conf, o->conf);
    s->core_count = c->report->machine.core_count;
    memcpy(s->cores, c->report->machine.cores, sizeof s->cores);
}

/* An allocator that is not usable is reported before anything is measured. */
static gmd_status start_all(comparison *c, gmd_error *error)
{
    gmd_status status = GMD_OK;
    for (uint32_t i = 0; i < c->party_count && status == GMD_OK; i++) {
        status = bench_contestant_start(&c->parties[i], error);
    }
    return status;
}

static void stop_all(comparison *c)
{
    for (uint32_t i = 0; i < c->party_count; i++) {
        bench_contestant_stop(&c->parties[i]);
    }
}

static void fail_party(comparison *c, uint32_t party, gmd_bench_state state, const char *reason)
{
    c->states[party] = state;
    snprintf(c->reasons[party], sizeof c->reasons[party], "%s", reason);
}

/* False: the party is out of this benchmark. */
static bool ask(comparison *c, uint32_t party, const bench_request *request, bench_reply *reply)
{
    bench_contestant_ask(&c->parties[party], request, reply);
    if (reply->answer == BENCH_SKIPPED) {
        fail_party(c, party, GMD_BENCH_SKIPPED, reply->text);
    } else if (reply->answer != BENCH_DONE) {
        fail_party(c, party, GMD_BENCH_FAILED, reply->text);
    }
    return reply->answer == BENCH_DONE;
}

/* --- rounds ------------------------------------------------------------------------------ */

static bool is_in(const comparison *c, uint32_t party)
{
    return c->states[party] == GMD_BENCH_MEASURED;
}

static void prepare(comparison *c, uint32_t party, bench_request *request)
{
    gmd_error error = {""};
    bench_reply reply;
    request->verb = BENCH_PREPARE;
    if (bench_contestant_start(&c->parties[party], &error) != GMD_OK) {
        fail_party(c, party, GMD_BENCH_FAILED, error.text); /* it had died of an earlier one */
    } else {
        ask(c, party, request, &reply);
    }
}

/* Returns the time that the round took. */
static uint64_t measure(comparison *c, uint32_t party, bench_request *request)
{
    bench_reply reply;
    request->verb = BENCH_MEASURE;
    if (!ask(c, party, request, &reply)) {
        return 0;
    }
    c->series[party].ns[c->round_count] = reply.ns_per_op;
    c->series[party].is_disturbed[c->round_count] = reply.is_disturbed;
    return reply.elapsed_ns;
}

static void finish(comparison *c, uint32_t party, bench_request *request)
{
    bench_reply reply;
    request->verb = BENCH_FINISH;
    if (c->parties[party].process) {
        bench_contestant_ask(&c->parties[party], request, &reply);
    }
}

/* Each round in a process that has allocated nothing before. */
static uint64_t measure_afresh(comparison *c, uint32_t party, bench_request *request)
{
    bench_contestant_stop(&c->parties[party]);
    prepare(c, party, request);
    return is_in(c, party) ? measure(c, party, request) : 0;
}

/* Every other round in the opposite order: nobody always comes after the same one. */
static uint64_t run_round(comparison *c, bench_request *request, bool is_afresh)
{
    uint64_t longest = 0;
    for (uint32_t i = 0; i < c->party_count; i++) {
        uint32_t party = c->round_count % 2 ? c->party_count - 1 - i : i;
        if (is_in(c, party)) {
            uint64_t ns =
                is_afresh ? measure_afresh(c, party, request) : measure(c, party, request);
            longest = gmd_max(ns, longest);
        }
    }
    c->round_count++;
    return longest;
}

static bool anyone_is_in(const comparison *c)
{
    for (uint32_t i = 0; i + 1 < c->party_count; i++) { /* the floor is no contestant */
        if (is_in(c, i)) {
            return true;
        }
    }
    return false;
}

static void run_rounds(comparison *c, const benchmark *of, bench_request *request)
{
    bool is_afresh = of->kind == BENCH_FIRST;
    uint32_t most = is_afresh ? FIRST_ROUND_MAX : ROUND_MAX;
    double left_ns = c->options->seconds * 1e9;
    c->round_count = 0;
    while (anyone_is_in(c) && c->round_count < most &&
           (left_ns > 0 || c->round_count < ROUND_MIN)) {
        left_ns -= (double)run_round(c, request, is_afresh);
    }
}

/* --- figures ----------------------------------------------------------------------------- */

static bool is_calm(const comparison *c, uint32_t round)
{
    for (uint32_t i = 0; i < c->party_count; i++) {
        if (is_in(c, i) && c->series[i].is_disturbed[round]) {
            return false;
        }
    }
    return true;
}

/* Rounds in which nobody lost the core; if they are too few, all. */
static void choose_rounds(comparison *c)
{
    c->chosen_count = 0;
    for (uint32_t i = 0; i < c->round_count; i++) {
        if (is_calm(c, i)) {
            c->chosen[c->chosen_count++] = i;
        }
    }
    if (c->chosen_count < ROUND_MIN) {
        for (c->chosen_count = 0; c->chosen_count < c->round_count; c->chosen_count++) {
            c->chosen[c->chosen_count] = c->chosen_count;
        }
    }
}

static gmd_bench_interval interval_of(double *values, uint32_t count)
{
    bench_estimate e = bench_estimate_of(values, count);
    return (gmd_bench_interval){.median = e.median, .low = e.low, .high = e.high};
}

static gmd_bench_interval time_of(const comparison *c, uint32_t party)
{
    double values[ROUND_MAX];
    for (uint32_t i = 0; i < c->chosen_count; i++) {
        values[i] = c->series[party].ns[c->chosen[i]];
    }
    return interval_of(values, c->chosen_count);
}

/* Round by round, so that what slows both down together leaves it as it is. False: a time is not
 * above 0, which a difference may be. */
static bool ratio_of(const comparison *c, uint32_t party, gmd_bench_interval *out)
{
    double values[ROUND_MAX];
    for (uint32_t i = 0; i < c->chosen_count; i++) {
        double first = c->series[0].ns[c->chosen[i]];
        double other = c->series[party].ns[c->chosen[i]];
        if (!(first > 0) || !(other > 0)) {
            return false;
        }
        values[i] = other / first;
    }
    *out = interval_of(values, c->chosen_count);
    return true;
}

static void conclude(comparison *c, gmd_bench_row *row)
{
    uint32_t floor = c->party_count - 1;
    choose_rounds(c);
    for (uint32_t i = 0; i < floor; i++) {
        gmd_bench_result *r = &row->results[i];
        r->state = c->states[i];
        memcpy(r->reason, c->reasons[i], sizeof r->reason);
        if (r->state != GMD_BENCH_MEASURED) {
            continue;
        }
        r->rounds = c->round_count;
        for (uint32_t n = 0; n < c->round_count; n++) {
            r->disturbed += c->series[i].is_disturbed[n];
        }
        r->ns_per_op = time_of(c, i);
        r->has_ratio = i > 0 && is_in(c, 0) && ratio_of(c, i, &r->ratio);
    }
    row->has_floor = is_in(c, floor) && c->round_count > 0;
    row->floor_ns = row->has_floor ? time_of(c, floor).median : 0;
}

static void run_benchmark(comparison *c, size_t index, gmd_bench_row *row)
{
    const benchmark *of = &bench_catalogue[index];
    bench_request request = {.index = (uint32_t)index,
                             .seed = c->options->seed,
                             .round_ns = of->kind == BENCH_THREADS ? THREADS_ROUND_NS : ROUND_NS};
    row->name = of->name;
    row->operation = of->operation;
    for (uint32_t i = 0; i < c->party_count; i++) {
        c->states[i] = GMD_BENCH_MEASURED;
        c->reasons[i][0] = '\0';
        if (of->kind != BENCH_FIRST) {
            prepare(c, i, &request);
        }
    }
    if (of->kind == BENCH_FIRST) {
        c->states[c->party_count - 1] = GMD_BENCH_SKIPPED; /* the floor makes no allocator */
    }
    run_rounds(c, of, &request);
    for (uint32_t i = 0; i < c->party_count; i++) {
        finish(c, i, &request);
    }
    conclude(c, row);
}

/* --- all of it --------------------------------------------------------------------------- */

static bool is_wanted(const char *filter, const benchmark *of)
{
    return !filter || strstr(of->name, filter);
}

static bool is_chosen(const gmd_bench_options *o, const benchmark *of)
{
    return o->is_whole_name ? strcmp(of->name, o->filter) == 0 : is_wanted(o->filter, of);
}

bool gmd_bench_is_known(const char *filter, char *names, size_t size)
{
    bool is_known = false;
    size_t length = 0;
    names[0] = '\0';
    for (size_t i = 0; i < bench_catalogue_count; i++) {
        is_known = is_known || is_wanted(filter, &bench_catalogue[i]);
        if (length < size) {
            length += (size_t)snprintf(names + length, size - length, "%s%s", i ? ", " : "",
                                       bench_catalogue[i].name);
        }
    }
    return is_known;
}

static void run_all(comparison *c)
{
    gmd_bench_report *report = c->report;
    for (size_t i = 0; i < bench_catalogue_count; i++) {
        if (!is_chosen(c->options, &bench_catalogue[i])) {
            continue;
        }
        if (c->options->shows_progress) {
            fprintf(stderr, GMD_STATUS_BEGIN "measuring %s" GMD_STATUS_END,
                    bench_catalogue[i].name);
        }
        run_benchmark(c, i, &report->rows[report->row_count++]);
    }
    if (c->options->shows_progress) {
        fprintf(stderr, GMD_STATUS_CLEAR);
    }
}

gmd_status gmd_bench_run(const gmd_bench_options *options, gmd_bench_report *report,
                         gmd_error *error)
{
    uint64_t start = bench_now_ns();
    *report = (gmd_bench_report){.options = options};
    comparison *c = calloc(1, sizeof *c);
    report->rows = calloc(bench_catalogue_count, sizeof *report->rows);
    if (!c || !report->rows) {
        free(c);
        gmd_bench_report_free(report);
        return gmd_fail(error, GMD_NO_MEMORY, "no host memory for the results");
    }
    c->options = options;
    c->report = report;
    snprintf(c->worker, sizeof c->worker, "%s/gmd-bench-worker", options->lib_directory);
    bench_machine_describe(&report->machine);
    for (uint32_t i = 0; i < options->allocator_count; i++) {
        enlist(c, options->allocators[i], i == 0);
    }
    enlist(c, NULL, false);
    gmd_status status = start_all(c, error);
    if (status == GMD_OK) {
        run_all(c);
        bench_machine_conclude(report);
        report->seconds = (double)(bench_now_ns() - start) / 1e9;
    } else {
        gmd_bench_report_free(report);
    }
    stop_all(c);
    free(c);
    return status;
}

void gmd_bench_report_free(gmd_bench_report *report)
{
    free(report->rows);
    report->rows = NULL;
    report->row_count = 0;
}

uint32_t gmd_bench_failures(const gmd_bench_report *report)
{
    uint32_t count = 0;
    for (size_t i = 0; i < report->row_count; i++) {
        for (uint32_t n = 0; n < report->options->allocator_count; n++) {
            count += report->rows[i].results[n].state == GMD_BENCH_FAILED;
        }
    }
    return count;
}

/* --- instructions ------------------------------------------------------------------------ */

static size_t index_named(const char *name)
{
    size_t i = 0;
    while (i < bench_catalogue_count && strcmp(bench_catalogue[i].name, name) != 0) {
        i++;
    }
    return i;
}

static void ask_for_count(bench_contestant *party, const bench_request *request,
                          gmd_bench_counted *counted)
{
    bench_reply reply;
    bench_contestant_ask(party, request, &reply);
    counted->state = reply.answer == BENCH_DONE      ? GMD_BENCH_MEASURED
                     : reply.answer == BENCH_SKIPPED ? GMD_BENCH_SKIPPED
                                                     : GMD_BENCH_FAILED;
    memcpy(counted->reason, reply.text, sizeof counted->reason);
    counted->instructions_per_op = reply.instructions_per_op;
    counted->is_stepped = reply.is_stepped;
    counted->is_least = reply.is_least;
}

gmd_status gmd_bench_count(const gmd_bench_options *options, const char *name,
                           gmd_bench_counted *counted, gmd_error *error)
{
    gmd_bench_report report = {.options = options};
    bench_request request = {
        .verb = BENCH_COUNT, .index = (uint32_t)index_named(name), .seed = options->seed};
    *counted = (gmd_bench_counted){.state = GMD_BENCH_FAILED};
    if (request.index == bench_catalogue_count) {
        return gmd_fail(error, GMD_BAD_INPUT, "no benchmark is called %s", name);
    }
    comparison *c = calloc(1, sizeof *c);
    if (!c) {
        return gmd_fail(error, GMD_NO_MEMORY, "no host memory for the results");
    }
    c->options = options;
    c->report = &report;
    snprintf(c->worker, sizeof c->worker, "%s/gmd-bench-worker", options->lib_directory);
    enlist(c, options->allocators[0], true);
    gmd_status status = bench_contestant_start(&c->parties[0], error);
    if (status == GMD_OK) {
        ask_for_count(&c->parties[0], &request, counted);
    }
    stop_all(c);
    free(c);
    return status;
}
