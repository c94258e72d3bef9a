/* write_advice_text.c - advice on a screen: the line to copy, then how the settings compare. */
#include "gmd_advice_report.h"

#include "gmd_job_findings.h"
#include "gmd_report_text.h"
#include "gmd_size.h"
#include "gmd_text.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { FIGURE_COLUMNS = 54, BELOW = 4 }; /* of a row, before its settings; their indent below it */

typedef struct page {
    const gmd_advice *advice;
    gmd_terminal terminal;
    int columns; /* of sentences, in a file too */
    FILE *out;
} page;

static gmd_terminal sentences(const page *p)
{
    return (gmd_terminal){.columns = p->columns};
}

static const char *conf_text(const gmd_setting_advice *s)
{
    return *s->conf ? s->conf : "(PyTorch's defaults)";
}

/* Reserved memory is in whole pages of 2 MiB: "5,742 MiB". */
static const char *format_mib(uint64_t bytes, char text[40])
{
    char number[32];
    snprintf(text, 40, "%s MiB", gmd_format_count(bytes / GMD_MIB, number));
    return text;
}

static const char *format_time(double seconds, char text[32])
{
    if (seconds < 1) {
        snprintf(text, 32, "%.1f ms", seconds * 1e3);
    } else {
        snprintf(text, 32, "%.1f s", seconds);
    }
    return text;
}

/* --- what it is about --------------------------------------------------------------------------
 */

static const char *memory_text(const gmd_advice *a)
{
    static const char *const texts[] = {[GMD_MEMORY_DEVICE] = "on a device of",
                                        [GMD_MEMORY_RECORDED] = "under the recorded limit of",
                                        [GMD_MEMORY_LIMIT] = "under a limit of",
                                        [GMD_MEMORY_CAPACITY] = "on a device of"};
    return a->memory_kind == GMD_MEMORY_RECORDED && a->is_limit_inferred
               ? "under the inferred limit of"
               : texts[a->memory_kind];
}

static void put_title(const page *p)
{
    const gmd_advice *a = p->advice;
    char count[32], size[24];
    gmd_held_text held;
    FILE *text = gmd_held_text_begin(&held, p->out);
    gmd_utf8_put_line(a->name, text);
    if (a->device_count > 1) {
        fprintf(text, ", device %u", a->device);
    }
    fprintf(text, ": %s requests,", gmd_format_count(a->requests, count));
    gmd_held_text_put(&held, p->terminal, 0, 2);
    fprintf(p->out, "%s %s%s\n\n", memory_text(a), gmd_format_size(a->memory_bytes, size),
            a->memory_kind == GMD_MEMORY_DEVICE ? " (assumed; --capacity)" : "");
}

/* What no setting gives back. */
static void put_leaks(const page *p)
{
    const gmd_advice *a = p->advice;
    const gmd_advised_leak *leak = a->leaks;
    char text[GMD_ADVICE_FILE + 300], size[24], place[GMD_ADVICE_FILE + 60] = "", more[60] = "";
    if (!a->leak_count) {
        return;
    }
    if (*leak->file) {
        snprintf(place, sizeof place, ", %s:%" PRIu32 "%s", gmd_file_name(leak->file), leak->line,
                 leak->is_line_inferred ? " (the last line before it)" : "");
    }
    if (a->leak_count > 1) {
        snprintf(more, sizeof more, ", and %zu more", a->leak_count - 1);
    }
    snprintf(text, sizeof text,
             "gmd diagnose finds a leak, which is to be mended first: %s, %s%s%s.",
             gmd_finding_class_name(leak->class), gmd_format_size(leak->bytes, size), place, more);
    gmd_put_wrapped(p->out, p->columns, 0, text);
    fputc('\n', p->out);
}

static void put_gain(const page *p, const gmd_setting_advice *best)
{
    const gmd_setting_advice *now = gmd_advice_baseline(p->advice);
    char text[200], mine[40], its[40];
    if (!best->smallest_capacity || !now || now == best || !now->smallest_capacity) {
        return;
    }
    double change = ((double)best->smallest_capacity - (double)now->smallest_capacity) /
                    (double)now->smallest_capacity * 100;
    snprintf(text, sizeof text, "It needs %s; with %s it is %s (%+.1f %%).",
             format_mib(best->smallest_capacity, mine),
             now->is_recorded ? "the recorded settings" : "PyTorch's defaults",
             format_mib(now->smallest_capacity, its), change);
    gmd_put_wrapped(p->out, p->columns, 2, text);
}

/* Whether others than the first need no more and no less. */
static bool is_one_of_many(const gmd_advice *a)
{
    const gmd_setting_advice *best = &a->settings[0];
    for (size_t i = 1; i < a->count; i++) {
        if (best->smallest_capacity && gmd_needs_the_same(best, &a->settings[i])) {
            return true;
        }
    }
    return false;
}

/* Where nothing is to be changed. */
static void put_no_change(const page *p, const gmd_setting_advice *now)
{
    const char *theirs = now->is_recorded ? "the recorded settings" : "PyTorch's defaults";
    const char *keep = is_one_of_many(p->advice) ? "The settings make no difference; keep"
                                                 : "The best that was found are";
    char text[200], size[40], fits[80] = "";
    if (!now->fits) {
        snprintf(fits, sizeof fits, "It does not fit%s%s. ",
                 now->smallest_capacity ? "; it would in " : "",
                 now->smallest_capacity ? format_mib(now->smallest_capacity, size) : "");
    }
    snprintf(text, sizeof text, "%s%s %s:", fits, keep, theirs);
    gmd_put_wrapped(p->out, p->columns, 0, text);
}

/* Whether it fits, above the settings. */
static void put_verdict(const page *p, const gmd_setting_advice *best)
{
    char size[40];
    if (best == gmd_advice_baseline(p->advice) && p->advice->count > 1) {
        put_no_change(p, best);
    } else if (best->fits) {
        fputs("Best:\n", p->out);
    } else if (best->smallest_capacity) {
        fprintf(p->out, "It does not fit; it would in %s with\n",
                format_mib(best->smallest_capacity, size));
    } else {
        fputs("It does not fit. Most requests are served with\n", p->out);
    }
}

static void put_best(const page *p)
{
    const gmd_advice *a = p->advice;
    const gmd_setting_advice *best = &a->settings[0];
    put_verdict(p, best);
    fputs("  PYTORCH_CUDA_ALLOC_CONF=", p->out);
    gmd_utf8_put_line(best->conf, p->out);
    fputs(*best->conf ? "\n" : "    # PyTorch's defaults\n", p->out);
    put_gain(p, best);
    fputc('\n', p->out);
}

/* --- the table -----------------------------------------------------------------------------------
 */

/* On lines of its own, broken behind commas where it does not fit on one. */
static void put_long_conf(const page *p, const char *conf, const char *note)
{
    int column = p->columns;
    for (size_t length; *conf; conf += length) {
        char part[GMD_ADVICE_CONF];
        length = strcspn(conf, ",");
        length += conf[length] == ',';
        snprintf(part, sizeof part, "%.*s", (int)length, conf);
        if (column > BELOW && column + (int)length > p->columns) {
            fprintf(p->out, "\n%*s", BELOW, "");
            column = BELOW;
        }
        gmd_utf8_put_line(part, p->out);
        column += (int)length;
    }
    if (column + (int)strlen(note) > p->columns) {
        fprintf(p->out, "\n%*s%s\n", BELOW, "", note + strspn(note, ", "));
    } else {
        fprintf(p->out, "%s\n", note);
    }
}

static void put_row(const page *p, const gmd_setting_advice *s)
{
    char smallest[40], reserved[40], retries[32], ooms[32], calls[32], time[32];
    const char *conf = conf_text(s), *note = s->is_recorded ? ", recorded" : "";
    fprintf(p->out, "%1s%10s %10s %7s %6s %7s %8s", s->exact ? "" : "~",
            s->smallest_capacity ? format_mib(s->smallest_capacity, smallest) : "-",
            format_mib(s->peak_reserved, reserved), gmd_format_count(s->retries, retries),
            gmd_format_count(s->ooms, ooms), gmd_format_count(s->device_calls, calls),
            format_time(s->device_seconds, time));
    bool is_long = FIGURE_COLUMNS + 2 + (int)(strlen(conf) + strlen(note)) > p->columns;
    if (is_long) {
        put_long_conf(p, conf, note);
    } else {
        fputs("  ", p->out);
        gmd_utf8_put_line(conf, p->out);
        fprintf(p->out, "%s\n", note);
    }
}

static void put_table(const page *p)
{
    fprintf(p->out, "%11s %10s %7s %6s %7s %8s", "fits in", "reserved", "retries", "ooms", "calls",
            "time");
    gmd_put_beside(p->out, sentences(p), FIGURE_COLUMNS, BELOW, "settings");
    for (size_t i = 0; i < p->advice->count; i++) {
        put_row(p, &p->advice->settings[i]);
    }
}

/* --- what it rests on
 * ------------------------------------------------------------------------------ */

static void put_bounds(const page *p)
{
    const gmd_advice *a = p->advice;
    char live[40], reserved[40], text[300];
    snprintf(text, sizeof text,
             "Lower bound: %s. At the peak %s are live; segments and pages are of one stream and "
             "one pool, and multiples of 2 MiB.",
             format_mib(a->lower_bound, reserved), format_mib(a->peak_live, live));
    fputc('\n', p->out);
    gmd_put_wrapped(p->out, p->columns, 0, text);
}

static bool has_estimate(const gmd_advice *a)
{
    for (size_t i = 0; i < a->count; i++) {
        if (!a->settings[i].exact) {
            return true;
        }
    }
    return false;
}

/* Why the figures with ~ are estimates. */
static void put_estimate_reasons(const page *p)
{
    const gmd_advice *a = p->advice;
    char text[500], left_out[32], scaled[32];
    if (!has_estimate(a)) {
        return;
    }
    if (a->is_changed) {
        snprintf(text, sizeof text,
                 "~ an estimate: the job is not the recorded one (%s requests left out, %s "
                 "scaled).",
                 gmd_format_count(a->left_out, left_out), gmd_format_count(a->scaled, scaled));
    } else if (a->begins_late) {
        snprintf(text, sizeof text,
                 "~ an estimate: the recording begins late. Blocks that were there before are "
                 "allocated first; what the cache held then is not known.");
    } else if (a->has_private_pools) {
        snprintf(text, sizeof text,
                 "~ an estimate: memory of private pools is replayed as that of others.");
    } else if (*a->unknown_conf) {
        snprintf(text, sizeof text,
                 "~ an estimate: the recorded settings '%.200s' are not ones of PyTorch 2.11's "
                 "native allocator.",
                 a->unknown_conf);
    } else if (!a->is_reproduced) {
        snprintf(text, sizeof text,
                 "~ an estimate: under the recorded settings the replay does not have the "
                 "recorded peaks. The limit changed, or memory was taken by others.");
    } else {
        snprintf(text, sizeof text,
                 "~ an estimate: a request is refused that was served, or the other way round, "
                 "and what the job would have asked for then was not recorded.");
    }
    gmd_put_wrapped(p->out, p->columns, 0, text);
}

static void put_basis(const page *p)
{
    const gmd_advice *a = p->advice;
    char text[300], reserved[40], replays[32];
    put_bounds(p);
    put_estimate_reasons(p);
    if (!a->is_changed && a->is_reproduced) {
        snprintf(text, sizeof text,
                 "Under the recorded settings the replay has the recorded peak of %s reserved, "
                 "and refuses what was refused.",
                 format_mib(a->recorded_peak_reserved, reserved));
        gmd_put_wrapped(p->out, p->columns, 0, text);
    }
    snprintf(text, sizeof text,
             "The time is that of the calls of the device, an estimate. Settings tried: %" PRIu32
             ", in %s replays.",
             a->tried, gmd_format_count(a->replays, replays));
    gmd_put_wrapped(p->out, p->columns, 0, text);
}

gmd_status gmd_advice_write_text(const gmd_advice *advice, const gmd_advice_view *view, FILE *out,
                                 gmd_error *error)
{
    const page p = {
        .advice = advice, .terminal = view->terminal, .columns = view->columns, .out = out};
    put_title(&p);
    put_leaks(&p);
    if (advice->count) {
        put_best(&p);
        put_table(&p);
    }
    put_basis(&p);
    return gmd_finish_writing(out, "the advice", error);
}
