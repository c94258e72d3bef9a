/* part_speed.c - what requests cost: the instructions of each, which a busy machine does not
 * change; where they cannot be counted, time in turns with another allocator on one core, so that
 * what slows one down slows the other down too. There, what looks slower is measured again for
 * longer before it counts. */
#include "measured.h"
#include "parts.h"

#include "gmd_bench.h"
#include "gmd_size.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PATIENCE_S  60
#define TRIES       3
#define AGAIN_TIMES 4 /* as long */

/* Those with one thread: figures of several vary too much on a machine that does other work. */
static const char *const benchmarks[] = {"pair_512B",  "pair_64KiB",  "pair_20MiB",   "churn_100",
                                         "churn_1000", "churn_10000", "record_stream"};

static const gmd_bench_row *row_named(const gmd_bench_report *report, const char *name)
{
    for (size_t i = 0; i < report->row_count; i++) {
        if (strcmp(report->rows[i].name, name) == 0) {
            return &report->rows[i];
        }
    }
    return NULL;
}

static gmd_bench_options bench_options(const gate_state *gate, double seconds)
{
    return (gmd_bench_options){.allocators = {gate->run.subject.allocator},
                               .allocator_count = 1,
                               .device = GMD_DEVICE_SIM,
                               .device_count = 1,
                               .capacity_bytes = 140 * GMD_GIB,
                               .conf = gate->options->run->conditions.conf,
                               .lib_directory = gate->run.subject.lib_directory,
                               .torch_adapter = gate->run.subject.torch_adapter,
                               .seconds = seconds,
                               .patience_s = PATIENCE_S};
}

/* --- time -------------------------------------------------------------------------------- */

static gmd_status bench(const gate_state *gate, const char *name, double seconds,
                        gmd_bench_result *versus, gmd_bench_result *own, gmd_error *error)
{
    gmd_bench_report report;
    gmd_bench_options options = bench_options(gate, seconds);
    options.allocators[0] = gate->baseline.versus;
    options.allocators[1] = gate->run.subject.allocator;
    options.allocator_count = 2;
    options.filter = name;
    options.is_whole_name = true;
    gmd_status status = gmd_bench_run(&options, &report, error);
    if (status != GMD_OK) {
        return status;
    }
    const gmd_bench_row *row = row_named(&report, name);
    *versus = row->results[0];
    *own = row->results[1];
    gmd_bench_report_free(&report);
    return GMD_OK;
}

/* The loops of a process are faster or slower for as long as it lives, by where its memory happens
 * to lie. So each try has new processes, and what is said of all of them holds in each. */
typedef struct tries {
    gmd_bench_interval ratios[TRIES];
    size_t count;
    uint64_t rounds;
    gmd_bench_state state; /* of the latest */
    char reason[768];
} tries;

static int ascending(const void *left, const void *right)
{
    const gmd_bench_interval *a = left, *b = right;
    return (a->median > b->median) - (a->median < b->median);
}

static gmd_gate_span span_of(const tries *t)
{
    gmd_bench_interval sorted[TRIES];
    memcpy(sorted, t->ratios, sizeof sorted);
    qsort(sorted, TRIES, sizeof *sorted, ascending);
    gmd_gate_span span = {sorted[TRIES / 2].median, sorted[0].low, sorted[0].high};
    for (size_t i = 1; i < TRIES; i++) {
        span.low = sorted[i].low < span.low ? sorted[i].low : span.low;
        span.high = sorted[i].high > span.high ? sorted[i].high : span.high;
    }
    return span;
}

static gmd_status measure_once(const gate_state *gate, const char *name, double seconds, tries *t,
                               gmd_error *error)
{
    gmd_bench_result versus, own;
    gmd_status status = bench(gate, name, seconds, &versus, &own, error);
    if (status != GMD_OK) {
        return status;
    }
    t->state = own.state;
    t->rounds += own.rounds;
    if (own.has_ratio) {
        t->ratios[t->count++] = own.ratio;
    } else if (own.state == GMD_BENCH_MEASURED) {
        snprintf(t->reason, sizeof t->reason, "%.400s cannot be held against: %.200s",
                 gate->baseline.versus, versus.reason);
    } else {
        snprintf(t->reason, sizeof t->reason, "%s", own.reason);
    }
    return GMD_OK;
}

/* `t->count` is TRIES, or the state and the reason tell why it is not. */
static gmd_status measure_all(const gate_state *gate, const char *name, double seconds, tries *t,
                              gmd_error *error)
{
    gmd_status status = GMD_OK;
    *t = (tries){.count = 0};
    for (size_t i = 0; i < TRIES && t->count == i && status == GMD_OK; i++) {
        status = measure_once(gate, name, seconds / TRIES, t, error);
    }
    return status;
}

/* The baseline's figure says that it got slower. */
static bool is_slower(const gate_state *gate, const char *name, gmd_gate_span now)
{
    const gmd_gate_figure *before = baseline_find(&gate->baseline, "speed", gate->item->name, name);
    gmd_gate_figure f = {.now = now, .unit = "ratio"};
    if (!before || gate->options->updates_baseline) {
        return false;
    }
    baseline_judge(&f, before);
    return f.change == GMD_GATE_WORSE;
}

static gmd_status measure_time(gate_state *gate, const char *name, gmd_error *error)
{
    tries t;
    double seconds = (double)gate_budget(gate, plan_speed_ms) / 1000;
    gmd_status status = measure_all(gate, name, seconds, &t, error);
    if (status == GMD_OK && t.count == TRIES && is_slower(gate, "time", span_of(&t))) {
        gate_tell(gate, "measuring again");
        status = measure_all(gate, name, seconds * AGAIN_TIMES, &t, error);
    }
    if (status != GMD_OK) {
        return status;
    }
    gate_count(gate, t.rounds, 0, 0);
    if (t.count == TRIES) {
        gate_add_figure(gate, "time", "ratio", span_of(&t));
    } else if (t.state == GMD_BENCH_SKIPPED) {
        gate_note(gate, "skipped: %s", t.reason);
    } else {
        gate_lose_figures(gate, t.reason);
    }
    return GMD_OK;
}

/* --- instructions ------------------------------------------------------------------------ */

/* False: they cannot be counted, or not all of them, and time is measured instead. */
static bool count_instructions(gate_state *gate, const char *name)
{
    gmd_bench_counted counted;
    gmd_error error = {""};
    gmd_bench_options options = bench_options(gate, 0);
    gmd_status status = gmd_bench_count(&options, name, &counted, &error);
    if (status != GMD_OK || counted.state != GMD_BENCH_MEASURED) {
        gate_note(gate, "instructions are not counted: %s",
                  status != GMD_OK ? error.text : counted.reason);
        return false;
    }
    double value = counted.instructions_per_op;
    gate_count(gate, 1, 0, 0);
    gate_add_figure(gate, "instructions", "instructions", (gmd_gate_span){value, value, value});
    if (counted.is_least) {
        gate_note(gate, "there are more instructions than were counted");
    }
    return !counted.is_least;
}

static void measure(gate_state *gate, const char *name)
{
    gmd_error error = {""};
    bool is_counted = count_instructions(gate, name);
    if (!is_counted || !gate->options->is_quick) { /* only time shows what waits */
        gate_fail(gate, measure_time(gate, name, &error), &error);
    }
}

void part_speed(gate_state *gate)
{
    gmd_gate_part *p = gate->part;
    if (!gate_wants_figures(gate)) {
        return;
    }
    if (gate->is_other_machine) {
        snprintf(p->reason, sizeof p->reason, "the baseline is of another machine (%.160s)",
                 gate->baseline.machine);
        return;
    }
    for (size_t i = 0; i < sizeof benchmarks / sizeof *benchmarks; i++) {
        if (gate_begin_item(gate, benchmarks[i])) {
            measure(gate, benchmarks[i]);
            gate_end_item(gate);
        }
    }
}
