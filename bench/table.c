/* table.c - the comparison for people. */
#include "gmd_bench.h"

#include "gmd_report_text.h"
#include "gmd_text.h"

#include <math.h>
#include <string.h>

#define NAME_WIDTH   15
#define TIME_WIDTH   14
#define RATIO_WIDTH  26
#define LABEL_MAX    32
#define COUNTS_ABOVE 9999.95 /* ns that are written without a fraction */

/* A library's path is longer than its column: the file's name says which. */
static void label_of(const char *spec, char label[LABEL_MAX])
{
    snprintf(label, LABEL_MAX, "%s", gmd_file_name(spec));
}

static const char *format_ns(double ns, char text[40])
{
    if (fabs(ns) < COUNTS_ABOVE) {
        snprintf(text, 40, "%.1f", ns);
    } else {
        char count[32];
        snprintf(text, 40, "%s%s", ns < 0 ? "-" : "",
                 gmd_format_count((uint64_t)(fabs(ns) + 0.5), count));
    }
    return text;
}

static const char *state_word(gmd_bench_state state)
{
    return state == GMD_BENCH_SKIPPED ? "skipped" : "failed";
}

static void put_ratio(const gmd_bench_result *r, FILE *out)
{
    char text[80] = "-";
    if (r->has_ratio) {
        snprintf(text, sizeof text, "%.2f x  (%.2f to %.2f)", r->ratio.median, r->ratio.low,
                 r->ratio.high);
    }
    fprintf(out, "  %*s", RATIO_WIDTH, text);
}

static void put_row(const gmd_bench_report *report, const gmd_bench_row *row, FILE *out)
{
    char text[40];
    fprintf(out, "%-*s", NAME_WIDTH, row->name);
    for (uint32_t i = 0; i < report->options->allocator_count; i++) {
        const gmd_bench_result *r = &row->results[i];
        fprintf(out, "  %*s", TIME_WIDTH,
                r->state == GMD_BENCH_MEASURED ? format_ns(r->ns_per_op.median, text)
                                               : state_word(r->state));
        if (i > 0) {
            put_ratio(r, out);
        }
    }
    fprintf(out, "  %8s\n", row->has_floor ? format_ns(row->floor_ns, text) : "-");
}

static void put_heading(const gmd_bench_report *report, FILE *out)
{
    char label[LABEL_MAX];
    fprintf(out, "%-*s", NAME_WIDTH, "ns/operation");
    for (uint32_t i = 0; i < report->options->allocator_count; i++) {
        label_of(report->options->allocators[i], label);
        fprintf(out, "  %*.*s", TIME_WIDTH, TIME_WIDTH, label);
        if (i > 0) {
            fprintf(out, "  %*s", RATIO_WIDTH, "ratio  (95 % interval)");
        }
    }
    fprintf(out, "  %8s\n", "floor");
}

static void put_reasons(const gmd_bench_report *report, FILE *out)
{
    char label[LABEL_MAX];
    for (size_t i = 0; i < report->row_count; i++) {
        for (uint32_t n = 0; n < report->options->allocator_count; n++) {
            const gmd_bench_result *r = &report->rows[i].results[n];
            if (r->state != GMD_BENCH_MEASURED) {
                label_of(report->options->allocators[n], label);
                fprintf(out, "%-8s  %s, %s: ", state_word(r->state), report->rows[i].name, label);
                gmd_utf8_put_line(r->reason, out);
                putc('\n', out);
            }
        }
    }
}

static void put_machine(const gmd_bench_report *report, FILE *out)
{
    const gmd_bench_machine *m = &report->machine;
    fprintf(out, "machine   ");
    gmd_utf8_put_line(m->processor, out);
    if (m->core_count) {
        fprintf(out, ", core %d", m->cores[0]);
    }
    fprintf(out, ", load %.1f before and %.1f after\n", m->load_before, m->load_after);
    for (uint32_t i = 0; i < report->note_count; i++) {
        fprintf(out, "note      ");
        gmd_utf8_put_line(report->notes[i], out);
        putc('\n', out);
    }
}

gmd_status gmd_bench_write_table(const gmd_bench_report *report, FILE *out, gmd_error *error)
{
    put_heading(report, out);
    for (size_t i = 0; i < report->row_count; i++) {
        put_row(report, &report->rows[i], out);
    }
    putc('\n', out);
    put_reasons(report, out);
    fprintf(out, "%s device, %.1f s; medians of rounds that take turns on one core; ",
            report->options->device == GMD_DEVICE_SIM ? "simulated" : "real", report->seconds);
    fprintf(out, "floor: the loop itself, part of all times\n");
    put_machine(report, out);
    return gmd_finish_writing(out, "the table", error);
}
