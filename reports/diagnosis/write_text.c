/* write_text.c - a diagnosis on a screen: what is wrong, then its evidence. */
#include "gmd_diagnosis_report.h"

#include "curve.h"
#include "oom_text.h"
#include "page.h"

#include "gmd_report_text.h"
#include "gmd_size.h"
#include "gmd_unused.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* --- what is wrong --------------------------------------------------------------------------- */

static void put_stack(const page *p, uint32_t stack)
{
    enum { COLUMN = PAGE_AMOUNT + 2 };
    size_t count;
    const uint32_t *frames = gmd_origins_stack(p->facts->places.origins, stack, &count);
    if (count) {
        fprintf(p->out, "%*sits stack, the innermost first\n", PAGE_AMOUNT, "");
    }
    for (size_t i = 0; i < count; i++) {
        fprintf(p->out, "%*s", COLUMN, "");
        page_put_place_at(p, COLUMN, frames[i]);
        fputc('\n', p->out);
    }
}

/* The program's lines that called another, the nearest first. */
static void put_callers(const page *p, uint32_t stack)
{
    enum { SHOWN = 3 };
    uint32_t callers[SHOWN];
    size_t count = gmd_places_callers_in(&p->facts->places, stack, callers, SHOWN);
    page_line line;
    if (count == 0) {
        return;
    }
    page_line_begin(&line, p);
    for (size_t i = 0; i < count; i++) {
        fputs(i ? ", " : "called by ", line.page.out);
        page_put_line(&line.page, callers[i]);
    }
    page_line_end(&line, p, PAGE_AMOUNT, PAGE_AMOUNT + 2);
}

/* What led to a finding's first line, as it held most. */
static void put_way(const page *p, const gmd_ranked_finding *ranked)
{
    uint32_t stack = gmd_finding_stack(&ranked->device->findings, ranked->finding, p->facts,
                                       ranked->finding->where[0].frame);
    if (p->view->all_frames) {
        put_stack(p, stack);
    } else {
        put_callers(p, stack);
    }
}

static void put_where(const page *p, const gmd_ranked_finding *ranked)
{
    const gmd_job_finding *finding = ranked->finding;
    char bytes[24];
    for (size_t i = 0; i < finding->where_count; i++) {
        page_line line;
        fprintf(p->out, "  %10s  ", gmd_format_size(finding->where[i].bytes, bytes));
        int column = page_put_place_at(p, PAGE_AMOUNT, finding->where[i].frame);
        page_line_begin(&line, p);
        fputs(finding->where[i].is_inferred ? ", the last line before it" : "", line.page.out);
        page_line_end_at(&line, p, column, PAGE_AMOUNT);
        if (i == 0) {
            put_way(p, ranked);
        }
    }
}

static void put_finding(page *p, const gmd_ranked_finding *ranked)
{
    const gmd_job_finding *finding = ranked->finding;
    char bytes[24], rate[24];
    const char *bold = p->view->terminal.color ? "\033[1m" : "";
    const char *plain = p->view->terminal.color ? "\033[0m" : "";
    const char *name = gmd_finding_class_name(finding->class);
    page_line line;
    fprintf(p->out, "%s%s%s", bold, name, plain);
    page_line_begin(&line, p);
    fprintf(line.page.out, ": %s", gmd_format_size(finding->bytes, bytes));
    p->facts = &ranked->device->facts;
    if (p->diagnosis->device_count > 1) {
        fprintf(line.page.out, " on device %u", p->facts->recording.device);
    }
    if (finding->bytes_per_iteration) {
        fprintf(line.page.out, ", %s per iteration",
                gmd_format_size(finding->bytes_per_iteration, rate));
    }
    fprintf(line.page.out, " (confidence %.0f %%)", finding->confidence * 100);
    page_line_end_at(&line, p, gmd_text_width(name), 2);
    put_where(p, ranked);
    gmd_put_wrapped(p->out, p->view->columns, 2, finding->evidence);
    fputs("  Fix:\n", p->out);
    gmd_put_wrapped(p->out, p->view->columns, 4, finding->fix);
    fputc('\n', p->out);
}

static void put_completeness(const page *p)
{
    const gmd_recording *r = &p->facts->recording;
    char count[32];
    if (r->begins_late) {
        gmd_put_wrapped(
            p->out, p->view->columns, 0,
            "The recording begins late: memory was there before its first event. What "
            "is reported is since then; the job's own peak may have been earlier. Blocks "
            "of before it count where an event or a segment tells of them, some with "
            "no more than was asked for: the peak and its holders are lower bounds.");
    }
    if (r->ends_early) {
        gmd_put_wrapped(p->out, p->view->columns, 0,
                        "The snapshot's segments are of a later moment than its last event: the "
                        "events that led there are missing, so that the peak is a lower bound.");
    }
    if (r->contradictions) {
        fprintf(p->out,
                r->contradictions == 1 ? "%s event contradicts others and was left out.\n"
                                       : "%s events contradict others and were left out.\n",
                gmd_format_count(r->contradictions, count));
    }
}

/* --- who holds the memory -------------------------------------------------------------------- */

typedef struct titled_amount {
    const char *title; /* "Peak" */
    const gmd_amount *amount;
    uint32_t moment;
    bool is_lower_bound;
} titled_amount;

static titled_amount peak_of(const gmd_recording *r)
{
    return (titled_amount){"Peak", &r->peak.amount, r->peak.allocated_at,
                           gmd_is_peak_lower_bound(r)};
}

static titled_amount end_of(const gmd_recording *r)
{
    return (titled_amount){"End", &r->at_end, r->last, gmd_is_lower_bound(r, r->last)};
}

static gmd_status put_amount(const page *p, const titled_amount *a)
{
    char allocated[24], reserved[24];
    page_line line;
    page_line_begin(&line, p);
    FILE *out = line.page.out;
    fprintf(out, "%s: %s%s allocated", a->title, a->is_lower_bound ? "at least " : "",
            gmd_format_size(a->amount->allocated, allocated));
    if (page_is_of_pytorch(p)) {
        fprintf(out, " of %s reserved", gmd_format_size(a->amount->reserved, reserved));
    }
    if (page_is_of_pytorch(p) || p->diagnosis->snapshot.has_events) {
        fputs(", ", out);
        page_put_moment(&line.page, a->moment);
    }
    page_line_end(&line, p, 0, 2);
    return page_put_holders(p, a->moment, p->view->rows);
}

static gmd_status put_peak_and_end(const page *p)
{
    const titled_amount peak = peak_of(&p->facts->recording), end = end_of(&p->facts->recording);
    gmd_status status = put_amount(p, &peak);
    return status == GMD_OK ? put_amount(p, &end) : status;
}

/* --- memory that is free and does not serve -------------------------------------------------- */

static bool has_free(const gmd_free_memory *free_memory)
{
    for (int cause = 0; cause < GMD_FREE_CAUSE_COUNT; cause++) {
        if (free_memory->by_cause[cause]) {
            return true;
        }
    }
    return false;
}

static void put_keepers(const page *p, const gmd_free_memory *free_memory)
{
    enum { SHOWN = 3 };
    char bytes[24];
    if (free_memory->keeper_count == 0 || free_memory->by_cause[GMD_FREE_SPLIT] == 0) {
        return;
    }
    fputs("  Kept by blocks of\n", p->out);
    for (size_t i = 0; i < free_memory->keeper_count && i < SHOWN; i++) {
        fprintf(p->out, "  %10s  ", gmd_format_size(free_memory->keepers[i].bytes, bytes));
        page_put_place_at(p, PAGE_AMOUNT, free_memory->keepers[i].frame);
        fputc('\n', p->out);
    }
}

static gmd_status put_unused(const page *p)
{
    const gmd_recording *r = &p->facts->recording;
    gmd_unused unused;
    char bytes[24];
    gmd_status status = gmd_unused_find(&unused, p->facts, p->error);
    if (status != GMD_OK) {
        return status;
    }
    page_line line;
    page_line_begin(&line, p);
    fprintf(line.page.out, "Most reserved: %s, ", gmd_format_size(r->peak.amount.reserved, bytes));
    page_put_moment(&line.page, r->peak.reserved_at);
    fputs(", of it not allocated", line.page.out);
    page_line_end(&line, p, 0, 2);
    page_put_causes(p, &unused.free);
    if (unused.free.rounding) {
        page_put_amount(p, unused.free.rounding,
                        "in blocks, beyond what was asked for: not in the sum");
    }
    put_keepers(p, &unused.free);
    if (unused.has_request && has_free(&unused.refused)) {
        page_line_begin(&line, p);
        fputs("The last request that took memory: ", line.page.out);
        page_put_request(&line.page, unused.requested, unused.origin);
        fputs("; free then", line.page.out);
        page_line_end(&line, p, 2, 4);
        page_put_causes(p, &unused.refused);
    }
    gmd_unused_release(&unused);
    return GMD_OK;
}

/* --- the whole ------------------------------------------------------------------------------- */

static void put_iterations(const page *p, const gmd_facts *facts)
{
    uint32_t shown = gmd_iterations_shown(&facts->iterations);
    if (facts->iterations.count) {
        fprintf(p->out, ", %" PRIu32 " iteration%s", shown, shown == 1 ? "" : "s");
    }
}

static void put_event_count(const page *p, uint64_t events)
{
    char count[32];
    if (page_is_of_pytorch(p) || p->diagnosis->snapshot.has_events) {
        fprintf(p->out, ": %s event%s", gmd_format_count(events, count), events == 1 ? "" : "s");
    }
}

/* An out-of-memory that cost nothing is no finding, and is reported all the same. */
static void put_verdict(const page *p)
{
    uint64_t ooms = gmd_diagnosis_oom_count(p->diagnosis);
    char count[32];
    if (!page_is_of_pytorch(p)) {
        return;
    }
    if (p->diagnosis->snapshot.event_count == 0) {
        fputs(", no history: what is held is known, not how it came", p->out);
    } else if (p->diagnosis->finding_count == 0) {
        fputs(gmd_can_tell_leak(&p->diagnosis->devices[0].facts)
                  ? ", healthy"
                  : ", nothing found in them: too few to tell a leak",
              p->out);
    }
    if (p->diagnosis->finding_count == 0 && ooms) {
        fprintf(p->out, "; it survived %s out-of-memor%s", gmd_format_count(ooms, count),
                ooms == 1 ? "y" : "ies");
    }
}

static void put_title(const page *p)
{
    const gmd_diagnosis *d = p->diagnosis;
    page_line line;
    gmd_utf8_put_line(d->name, p->out);
    page_line_begin(&line, p);
    put_event_count(&line.page, d->snapshot.event_count);
    if (d->device_count > 1) {
        fprintf(line.page.out, ", %zu devices", d->device_count);
    } else {
        put_iterations(&line.page, &d->devices[0].facts);
    }
    put_verdict(&line.page);
    page_line_end_at(&line, p, gmd_text_width(d->name), 2);
    fputc('\n', p->out);
}

static void put_device_title(const page *p)
{
    fprintf(p->out, "Device %u", p->facts->recording.device);
    put_event_count(p, p->facts->recording.event_count);
    put_iterations(p, p->facts);
    fputs("\n\n", p->out);
}

/* What another recorder's file has: who holds the memory, and how it went. */
static gmd_status put_other(const page *p)
{
    const gmd_recording *r = &p->facts->recording;
    char count[32];
    if (!p->diagnosis->snapshot.has_events) {
        const titled_amount held = {"Held", &r->peak.amount, r->peak.allocated_at, false};
        return put_amount(p, &held);
    }
    put_completeness(p);
    if (r->oom_count) {
        fprintf(p->out, "Out of memory: %s time%s\n\n", gmd_format_count(r->oom_count, count),
                r->oom_count == 1 ? "" : "s");
    }
    gmd_status status = curve_put(p->facts, p->view, p->out, p->error);
    return status == GMD_OK ? put_peak_and_end(p) : status;
}

static gmd_status put_device(page *p, const gmd_device_diagnosis *device)
{
    p->facts = &device->facts;
    if (p->diagnosis->device_count > 1) {
        put_device_title(p);
    }
    if (!page_is_of_pytorch(p)) {
        return put_other(p);
    }
    gmd_status status = oom_text_put(p, &device->ooms);
    put_completeness(p);
    if (status == GMD_OK) {
        status = curve_put(p->facts, p->view, p->out, p->error);
    }
    if (status == GMD_OK) {
        status = put_peak_and_end(p);
    }
    return status == GMD_OK ? put_unused(p) : status;
}

static gmd_status put_diagnosis(page *p)
{
    const gmd_diagnosis *d = p->diagnosis;
    gmd_status status = GMD_OK;
    put_title(p);
    for (size_t i = 0; i < d->finding_count; i++) {
        put_finding(p, &d->findings[i]);
    }
    for (size_t i = 0; status == GMD_OK && i < d->device_count; i++) {
        fputs(i ? "\n" : "", p->out);
        status = put_device(p, &d->devices[i]);
    }
    return status;
}

gmd_status gmd_diagnosis_write_text(const gmd_diagnosis *diagnosis, const gmd_diagnosis_view *view,
                                    FILE *out, gmd_error *error)
{
    page p = {.diagnosis = diagnosis, .view = view, .out = out, .error = error};
    gmd_status status = GMD_OK;
    if (diagnosis->device_count) {
        status = put_diagnosis(&p);
    } else {
        gmd_utf8_put_line(diagnosis->name, out);
        fputs(": nothing is in it: neither events nor segments\n", out);
    }
    return status == GMD_OK ? gmd_finish_writing(out, "the diagnosis", error) : status;
}
