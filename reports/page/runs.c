/* runs.c - runs as inputs of a page. */
#include "gmd_page.h"

#include "findings.h"
#include "history.h"
#include "run_tables.h"
#include "state.h"
#include "violations.h"

#include "gmd_memory_file.h"
#include "gmd_report_text.h"
#include "gmd_text.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- histories ------------------------------------------------------------------------------- */

/* What torch.cuda.memory._snapshot() would tell of run number `index`: written and read as that, so
 * that a run's history is made by the same rules as a recorded one. */
static gmd_status snapshot_of(const gmd_report *report, size_t index, gmd_snapshot *snapshot,
                              gmd_error *error)
{
    gmd_report one = *report;
    char *bytes = NULL;
    size_t size = 0;
    one.outcomes = &report->outcomes[index];
    one.journals = &report->journals[index];
    one.outcome_count = 1;
    FILE *out = open_memstream(&bytes, &size);
    gmd_status status = out ? gmd_report_snapshot(&one, out, error)
                            : gmd_fail(error, GMD_NO_MEMORY, "no host memory");
    if (out && fclose(out) != 0 && status == GMD_OK) {
        status = gmd_fail(error, GMD_NO_MEMORY, "no host memory for the history of a run");
    }
    if (status == GMD_OK) {
        status = gmd_snapshot_parse(snapshot, (const uint8_t *)bytes, size,
                                    report->outcomes[index]->name, error);
    }
    free(bytes);
    return status;
}

enum { MOST_VIOLATION_MARKS = GMD_VIOLATION_MAX };

static size_t list_marks(const gmd_outcome *o, const run_history *of, size_t device,
                         history_mark marks[MOST_VIOLATION_MARKS])
{
    size_t count = 0, index;
    for (uint32_t i = 0; i < o->violation_count && i < GMD_VIOLATION_MAX; i++) {
        uint32_t event;
        if (run_history_find(of, o->violations[i].request, &index, &event) && index == device) {
            marks[count++] = (history_mark){event, o->violations[i].oracle, "violation"};
        }
    }
    return count;
}

static void write_histories(const gmd_outcome *o, const char *title, uint32_t input,
                            const run_history *of)
{
    char name[GMD_TITLE_TEXT + 24];
    history_mark marks[MOST_VIOLATION_MARKS];
    for (size_t i = 0; i < of->count; i++) {
        history *h = &of->histories[i];
        snprintf(name, sizeof name, "%s", title);
        if (of->count > 1) {
            snprintf(name, sizeof name, "%s, device %u", title, h->facts->recording.device);
        }
        history_write(h, name, input, marks, list_marks(o, of, i, marks));
    }
}

/* With a history that cannot be made the run is told of all the same: a run whose allocator wrote
 * over its journal has none. */
static gmd_status add_history(gmd_page *page, const gmd_report *report, size_t index,
                              const char *title, uint32_t input, gmd_error *error)
{
    const gmd_outcome *o = report->outcomes[index];
    document *to = &page->document;
    const history_source source = {
        .is_job = strcmp(o->kind, "trace") != 0, /* a case is no program that could leak */
        .counts_requests = !report->recorded && strcmp(report->device, "sim") == 0};
    gmd_snapshot snapshot = {0};
    gmd_diagnosis diagnosis = {0};
    gmd_status status = snapshot_of(report, index, &snapshot, error);
    if (status == GMD_OK) {
        status = gmd_diagnosis_make(&diagnosis, &snapshot, o->name, error);
    }
    run_history of = {.journal = report->journals[index],
                      .histories = calloc(diagnosis.device_count + 1, sizeof *of.histories)};
    uint32_t first = to->lists[DOCUMENT_HISTORIES].count;
    for (; status == GMD_OK && of.histories && of.count < diagnosis.device_count; of.count++) {
        status = history_make(&of.histories[of.count], to, &diagnosis.devices[of.count],
                              first + (uint32_t)of.count, source, error);
    }
    violations_of_outcome(to, o, title, input, status == GMD_OK ? &of : NULL);
    if (status == GMD_OK) {
        write_histories(o, title, input, &of);
    }
    if (status == GMD_OK && source.is_job) {
        findings_of_diagnosis(of.histories, &diagnosis, input);
    }
    for (size_t i = 0; of.histories && i < of.count; i++) {
        history_free(&of.histories[i]);
    }
    free(of.histories);
    gmd_diagnosis_free(&diagnosis);
    return status == GMD_BAD_INPUT ? GMD_OK : status;
}

/* --- the whole ------------------------------------------------------------------------------- */

static const char *kind_of(const gmd_report *report)
{
    return report->gate ? "gate" : strcmp(report->command, "fuzz") == 0 ? "campaign" : "run";
}

static const char *summary_of(const gmd_report *report, char *text, size_t size)
{
    char count[32];
    size_t failed = 0;
    uint64_t requests = 0, violations = 0;
    for (size_t i = 0; i < report->outcome_count; i++) {
        failed += report->outcomes[i]->verdict != GMD_PASS;
        requests += report->outcomes[i]->requests;
        violations += report->outcomes[i]->violation_count;
    }
    int used = snprintf(text, size, "%.300s on %s: ", gmd_file_name(report->allocator),
                        strcmp(report->device, "sim") == 0 ? "the simulated device" : "a GPU");
    if (report->outcome_count > 1) {
        used += snprintf(text + used, size - (size_t)used, "%zu of %zu runs passed, ",
                         report->outcome_count - failed, report->outcome_count);
    }
    used += snprintf(text + used, size - (size_t)used, "%s requests, ",
                     gmd_format_count(requests, count));
    snprintf(text + used, size - (size_t)used, "%s violation%s",
             gmd_format_count(violations, count), violations == 1 ? "" : "s");
    return text;
}

static uint32_t add_input(gmd_page *page, const gmd_report *report)
{
    char name[GMD_TITLE_TEXT + 40] = "gmd ", summary[700], title[GMD_TITLE_TEXT];
    if (report->outcome_count == 1 && !report->gate) {
        snprintf(name, sizeof name, "%s", gmd_outcome_title(report, 0, title));
    } else if (report->outcome_count) {
        snprintf(name, sizeof name, "gmd %s, %zu run%s", report->command, report->outcome_count,
                 report->outcome_count == 1 ? "" : "s");
    }
    if (report->gate) {
        snprintf(name, sizeof name, "gate of %.300s", report->allocator);
    }
    return page_add_input(page, &(page_input){name, kind_of(report),
                                              gmd_verdict_name(gmd_report_verdict(report)),
                                              summary_of(report, summary, sizeof summary)});
}

gmd_status gmd_page_add_report(gmd_page *page, const gmd_report *report, gmd_error *error)
{
    char title[GMD_TITLE_TEXT];
    gmd_status status = GMD_OK;
    uint32_t input = add_input(page, report);
    for (size_t i = 0; status == GMD_OK && i < report->outcome_count; i++) {
        gmd_outcome_title(report, i, title);
        if (report->journals && report->journals[i]) {
            status = add_history(page, report, i, title, input, error);
        } else if (!report->gate) {
            violations_of_outcome(&page->document, report->outcomes[i], title, input, NULL);
        }
    }
    if (report->gate) {
        violations_of_gate(&page->document, report->gate, input);
        tables_of_gate(&page->document, report->gate, input);
    }
    table_of_campaign(&page->document, report, input);
    tables_of_runs(&page->document, report, input);
    return status;
}
