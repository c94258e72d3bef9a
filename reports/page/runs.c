/* runs.c - runs as inputs of a page. */
#include "gmd_page.h"

#include "campaign_tables.h"
#include "findings.h"
#include "run_history.h"
#include "run_tables.h"
#include "state.h"
#include "violations.h"

#include "gmd_report_text.h"
#include "gmd_text.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* --- runs ------------------------------------------------------------------------------------ */

static const char no_history[] =
    "a JSON result has no history; gmd run CASE --html FILE shows them";

static gmd_status add_run(gmd_page *page, const gmd_report *report, size_t index, uint32_t input,
                          gmd_error *error)
{
    char title[GMD_TITLE_TEXT];
    document *to = &page->document;
    run_history of = {.absent = no_history};
    gmd_status status = GMD_OK;
    gmd_outcome_title(report, index, title);
    if (report->journals && report->journals[index]) {
        status = run_history_open(&of, to, report, index, error);
    }
    violations_of_outcome(to, report->outcomes[index], title, input, &of);
    troubles_of_outcome(to, report->outcomes[index], title, input);
    run_history_write(&of, title, input);
    if (status == GMD_OK && of.is_job && of.count) {
        findings_of_diagnosis(of.histories, &of.diagnosis, input);
    }
    run_history_close(&of);
    return status;
}

/* --- findings of a gate and of a campaign ---------------------------------------------------- */

static bool is_campaign(const gmd_report *report)
{
    return strcmp(report->command, "fuzz") == 0 && report->outcome_count == 1;
}

/* The history of the case, which was run once more. */
static gmd_status open_case(run_history *of, gmd_page *page, const gmd_report *report, size_t index,
                            char title[GMD_TITLE_TEXT], gmd_error *error)
{
    const gmd_rerun *rerun = index < report->rerun_count ? &report->reruns[index] : NULL;
    *of = (run_history){.absent = rerun ? rerun->reason : no_history};
    if (!rerun || !rerun->journal) {
        return GMD_OK;
    }
    gmd_report one = *report;
    one.outcomes = &rerun->outcome;
    one.journals = &rerun->journal;
    one.outcome_count = 1;
    one.repeat_count = 0;
    gmd_outcome_title(&one, 0, title);
    return run_history_open(of, &page->document, &one, 0, error);
}

static gmd_status add_finding(gmd_page *page, const gmd_report *report, size_t index,
                              uint32_t input, gmd_error *error)
{
    char title[GMD_TITLE_TEXT] = "";
    run_history of;
    gmd_status status = open_case(&of, page, report, index, title, error);
    if (report->gate) {
        finding_of_gate(&page->document, &report->gate->findings[index], input, &of);
    } else {
        violation_of_campaign(&page->document, report, index, input, &of);
    }
    run_history_write(&of, title, input);
    run_history_close(&of);
    return status;
}

static gmd_status add_findings(gmd_page *page, const gmd_report *report, uint32_t input,
                               gmd_error *error)
{
    gmd_status status = GMD_OK;
    size_t count =
        report->gate ? report->gate->finding_count : report->outcomes[0]->violation_count;
    for (size_t i = 0; status == GMD_OK && i < count; i++) {
        status = add_finding(page, report, i, input, error);
    }
    if (!report->gate) {
        troubles_of_outcome(&page->document, report->outcomes[0], report->outcomes[0]->name, input);
    }
    return status;
}

/* --- the whole ------------------------------------------------------------------------------- */

static const char *kind_of(const gmd_report *report)
{
    return report->gate ? "gate" : strcmp(report->command, "fuzz") == 0 ? "campaign" : "run";
}

/* What the device refused and the allocator passed on, or served after another try. */
static void sum_refusals(const gmd_report *report, uint64_t *refused, uint64_t *retried)
{
    *refused = *retried = 0;
    for (size_t i = 0; i < report->outcome_count; i++) {
        const gmd_outcome *o = report->outcomes[i];
        const uint64_t ooms = o->has_stats ? o->stats.num_ooms : GMD_STAT_UNKNOWN;
        const uint64_t tries = o->has_stats ? o->stats.num_alloc_retries : GMD_STAT_UNKNOWN;
        *refused += ooms == GMD_STAT_UNKNOWN ? 0 : ooms;
        *retried += tries == GMD_STAT_UNKNOWN ? 0 : tries;
    }
}

/* ", 3 requests refused for lack of memory, 2 tries again" */
static void put_refusals(const gmd_report *report, char *text, size_t size)
{
    char count[32];
    uint64_t refused, retried;
    sum_refusals(report, &refused, &retried);
    size_t used = 0;
    if (refused) {
        used = (size_t)snprintf(text, size, ", %s request%s refused for lack of memory",
                                gmd_format_count(refused, count), refused == 1 ? "" : "s");
    }
    if (retried) {
        snprintf(text + used, size - used, ", %s allocation%s tried again with the cache emptied",
                 gmd_format_count(retried, count), retried == 1 ? "" : "s");
    }
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
    used += snprintf(text + used, size - (size_t)used, "%s violation%s",
                     gmd_format_count(violations, count), violations == 1 ? "" : "s");
    put_refusals(report, text + used, size - (size_t)used);
    return text;
}

static uint32_t add_input(gmd_page *page, const gmd_report *report)
{
    char name[GMD_TITLE_TEXT + 40], summary[700], title[GMD_TITLE_TEXT];
    if (report->gate || is_campaign(report)) {
        snprintf(name, sizeof name, "%s of %.300s", report->command, report->allocator);
    } else if (report->outcome_count == 1) {
        snprintf(name, sizeof name, "%s", gmd_outcome_title(report, 0, title));
    } else {
        snprintf(name, sizeof name, "%s, %zu runs", report->command, report->outcome_count);
    }
    return page_add_input(page, &(page_input){name, kind_of(report),
                                              gmd_verdict_name(gmd_report_verdict(report)),
                                              summary_of(report, summary, sizeof summary)});
}

gmd_status gmd_page_add_report(gmd_page *page, const gmd_report *report, gmd_error *error)
{
    gmd_status status = GMD_OK;
    uint32_t input = add_input(page, report);
    if (report->gate || is_campaign(report)) {
        status = add_findings(page, report, input, error);
    } else {
        for (size_t i = 0; status == GMD_OK && i < report->outcome_count; i++) {
            status = add_run(page, report, i, input, error);
        }
    }
    if (report->gate) {
        tables_of_gate(&page->document, report->gate, input);
    }
    table_of_campaign(&page->document, report, input);
    table_of_coverage(&page->document, report, input);
    tables_of_runs(&page->document, report, input);
    return status;
}
