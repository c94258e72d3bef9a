/* write_openmetrics.c - the figures of a report as OpenMetrics text 1.0, which Prometheus and its
 * kin read: a gauge for each figure, a sample of it for each run. What an allocator does not tell
 * has no sample. */
#include "gmd_report_text.h"
#include "outcome.h"

#include <inttypes.h>
#include <string.h>

/* --- text -------------------------------------------------------------------------------- */

static void put_label(const char *name, const char *value, FILE *out)
{
    fprintf(out, "%s=\"", name);
    for (uint32_t c = gmd_utf8_next(&value); c; c = gmd_utf8_next(&value)) {
        if (c == '\n') {
            fputs("\\n", out);
        } else if (c == '\\' || c == '"') {
            putc('\\', out);
            gmd_utf8_put(c, out);
        } else {
            gmd_utf8_put(gmd_utf8_is_control(c) ? ' ' : c, out);
        }
    }
    putc('"', out);
}

/* What stands before the samples of one family. The name of one with a unit ends with the unit. */
static void begin_family(const char *name, const char *type, const char *unit, const char *help,
                         FILE *out)
{
    fprintf(out, "# TYPE %s %s\n", name, type);
    if (unit) {
        fprintf(out, "# UNIT %s %s\n", name, unit);
    }
    fprintf(out, "# HELP %s %s\n", name, help);
}

/* "NAME{run="...",kind="...",allocator="...",device="..."", open for more labels. */
static void begin_sample(const gmd_report *report, size_t index, const char *name, FILE *out)
{
    char title[GMD_TITLE_TEXT];
    fprintf(out, "%s{", name);
    put_label("run", gmd_outcome_title(report, index, title), out);
    putc(',', out);
    put_label("kind", report->outcomes[index]->kind, out);
    putc(',', out);
    put_label("allocator", report->allocator, out);
    putc(',', out);
    put_label("device", report->device, out);
}

/* --- figures of a run -------------------------------------------------------------------- */

typedef struct figure {
    const char *name, *unit, *help;
    uint64_t (*of)(const gmd_outcome *outcome); /* GMD_STAT_UNKNOWN: not known */
} figure;

static uint64_t passed(const gmd_outcome *o)
{
    return o->verdict == GMD_PASS;
}

static uint64_t requests(const gmd_outcome *o)
{
    return o->requests;
}

static uint64_t device_calls(const gmd_outcome *o)
{
    return o->device_calls;
}

static uint64_t known_violations(const gmd_outcome *o)
{
    return o->known_count;
}

#define STATISTIC(field)                                                                           \
    static uint64_t field(const gmd_outcome *o)                                                    \
    {                                                                                              \
        return o->has_stats ? o->stats.field : GMD_STAT_UNKNOWN;                                   \
    }

STATISTIC(allocated_bytes)
STATISTIC(allocated_bytes_peak)
STATISTIC(reserved_bytes)
STATISTIC(reserved_bytes_peak)
STATISTIC(active_bytes_peak)
STATISTIC(inactive_split_bytes)
STATISTIC(segment_count)
STATISTIC(num_alloc_retries)
STATISTIC(num_ooms)

static const figure figures[] = {
    {"gmd_run_passed", NULL, "1 if nothing wrong was found", passed},
    {"gmd_run_requests", NULL, "requests made of the allocator", requests},
    {"gmd_run_device_calls", NULL, "calls that the allocator made to the device", device_calls},
    {"gmd_run_known_violations", NULL, "violations that are known", known_violations},
    {"gmd_run_allocated_bytes", "bytes", "allocated at the end", allocated_bytes},
    {"gmd_run_allocated_peak_bytes", "bytes", "allocated at most", allocated_bytes_peak},
    {"gmd_run_reserved_bytes", "bytes", "reserved at the end", reserved_bytes},
    {"gmd_run_reserved_peak_bytes", "bytes", "reserved at most", reserved_bytes_peak},
    {"gmd_run_active_peak_bytes", "bytes", "active at most", active_bytes_peak},
    {"gmd_run_inactive_split_bytes", "bytes", "free parts of split segments at the end",
     inactive_split_bytes},
    {"gmd_run_segments", NULL, "segments at the end", segment_count},
    {"gmd_run_retries", NULL, "allocations that were served after the cache was emptied",
     num_alloc_retries},
    {"gmd_run_ooms", NULL, "allocations that were refused", num_ooms},
};

static void put_figure(const gmd_report *report, const figure *f, FILE *out)
{
    begin_family(f->name, "gauge", f->unit, f->help, out);
    for (size_t i = 0; i < report->outcome_count; i++) {
        uint64_t value = f->of(report->outcomes[i]);
        if (value != GMD_STAT_UNKNOWN) {
            begin_sample(report, i, f->name, out);
            fprintf(out, "} %" PRIu64 "\n", value);
        }
    }
}

static void put_seconds(const gmd_report *report, FILE *out)
{
    begin_family("gmd_run_time_seconds", "gauge", "seconds", "time of the requests", out);
    for (size_t i = 0; i < report->outcome_count; i++) {
        begin_sample(report, i, "gmd_run_time_seconds", out);
        fprintf(out, "} %.6f\n", report->outcomes[i]->seconds);
    }
}

/* --- oracles ----------------------------------------------------------------------------- */

static void put_state(const gmd_report *report, size_t index, const gmd_oracle_result *oracle,
                      gmd_oracle_fate fate, FILE *out)
{
    static const char *const names[] = {"passed", "failed", "skipped"};
    begin_sample(report, index, "gmd_oracle", out);
    putc(',', out);
    put_label("oracle", oracle->name, out);
    putc(',', out);
    put_label("gmd_oracle", names[fate], out);
    fprintf(out, "} %d\n", oracle->fate == fate);
}

static void put_oracles(const gmd_report *report, FILE *out)
{
    begin_family("gmd_oracle", "stateset", NULL, "whether the oracle held", out);
    for (size_t i = 0; i < report->outcome_count; i++) {
        const gmd_outcome *o = report->outcomes[i];
        for (uint32_t k = 0; k < o->oracle_count; k++) {
            put_state(report, i, &o->oracles[k], GMD_ORACLE_PASSED, out);
            put_state(report, i, &o->oracles[k], GMD_ORACLE_FAILED, out);
            put_state(report, i, &o->oracles[k], GMD_ORACLE_SKIPPED, out);
        }
    }
}

/* --- the gate ---------------------------------------------------------------------------- */

static void begin_part(const gmd_gate_part *part, const char *name, FILE *out)
{
    fprintf(out, "%s{", name);
    put_label("category", part->category, out);
    putc(',', out);
    put_label("part", part->name, out);
    fputs("} ", out);
}

static void put_gate(const gmd_gate_result *gate, FILE *out)
{
    begin_family("gmd_gate_part_findings", "gauge", NULL, "findings of the part", out);
    for (size_t i = 0; i < gate->part_count; i++) {
        if (gate->parts[i].was_run) {
            begin_part(&gate->parts[i], "gmd_gate_part_findings", out);
            fprintf(out, "%zu\n", gmd_gate_part_findings(gate, &gate->parts[i]));
        }
    }
    begin_family("gmd_gate_part_time_seconds", "gauge", "seconds", "time of the part", out);
    for (size_t i = 0; i < gate->part_count; i++) {
        if (gate->parts[i].was_run) {
            begin_part(&gate->parts[i], "gmd_gate_part_time_seconds", out);
            fprintf(out, "%.6f\n", gmd_gate_part_seconds(&gate->parts[i]));
        }
    }
}

static void put_info(const gmd_report *report, FILE *out)
{
    begin_family("gmd", "info", NULL, "what was run", out);
    fputs("gmd_info{", out);
    put_label("version", report->version, out);
    putc(',', out);
    put_label("command", report->command, out);
    putc(',', out);
    put_label("verdict", gmd_verdict_name(gmd_report_verdict(report)), out);
    fputs("} 1\n", out);
}

gmd_status gmd_report_openmetrics(const gmd_report *report, FILE *out, gmd_error *error)
{
    put_info(report, out);
    for (size_t i = 0; i < sizeof figures / sizeof *figures; i++) {
        put_figure(report, &figures[i], out);
    }
    put_seconds(report, out);
    put_oracles(report, out);
    if (report->gate) {
        put_gate(report->gate, out);
    }
    fputs("# EOF\n", out);
    return gmd_finish_writing(out, "the OpenMetrics report", error);
}
