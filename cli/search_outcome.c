#include "search_outcome.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void mark_failed(gmd_outcome *o, const char *oracle)
{
    for (uint32_t i = 0; i < o->oracle_count; i++) {
        if (strcmp(o->oracles[i].name, oracle) == 0) {
            o->oracles[i].fate = GMD_ORACLE_FAILED;
            o->oracles[i].reason[0] = '\0';
        }
    }
}

/* What a single run was suspected of, and did not show by itself, is no verdict. */
static void take_judged(gmd_outcome *o, const gmd_judged *judged)
{
    o->oracle_count = judged->count;
    memcpy(o->oracles, judged->oracles, sizeof judged->oracles);
    for (uint32_t i = 0; i < o->oracle_count; i++) {
        bool was_judged = o->oracles[i].fate != GMD_ORACLE_SKIPPED;
        o->oracles[i].fate = was_judged ? GMD_ORACLE_PASSED : GMD_ORACLE_SKIPPED;
    }
}

static void note_unwritten(gmd_outcome *o, const gmd_findings *findings)
{
    const char *first = NULL;
    size_t count = 0;
    for (size_t i = 0; i < findings->count; i++) {
        bool is_unwritten = findings->items[i].unwritten[0];
        first = is_unwritten && !first ? findings->items[i].unwritten : first;
        count += is_unwritten;
    }
    if (count && o->note_count < GMD_NOTE_MAX) {
        snprintf(o->notes[o->note_count++], sizeof o->notes[0],
                 "%zu case%s could not be written, first: %s", count, count == 1 ? "" : "s", first);
    }
}

void cli_add_findings(gmd_outcome *o, const gmd_findings *findings, const gmd_judged *judged)
{
    take_judged(o, judged);
    o->verdict = findings->count ? GMD_FAIL : o->verdict;
    for (size_t i = 0; i < findings->count; i++) {
        mark_failed(o, findings->items[i].violation.oracle);
        if (o->violation_count < GMD_VIOLATION_MAX) {
            o->violations[o->violation_count++] = findings->items[i].violation;
        }
    }
    note_unwritten(o, findings);
}

void cli_keep_found(cli_results *results, const gmd_findings *findings)
{
    results->found = calloc(findings->count + 1, sizeof *results->found);
    results->found_count = results->found ? findings->count : 0;
    for (size_t i = 0; i < results->found_count; i++) {
        const gmd_finding *f = &findings->items[i];
        results->found[i] = (gmd_campaign_finding){f->seconds, f->hits, f->requests};
    }
}

void cli_keep_budget(cli_results *results, double budget_s)
{
    cli_options defaults;
    cli_options_init(&defaults);
    bool is_usual = !(budget_s < defaults.run.process.call_budget_s ||
                      budget_s > defaults.run.process.call_budget_s);
    results->hang_s = is_usual ? 0 : budget_s;
    cli_options_free(&defaults);
}

void cli_end_search(gmd_outcome *o, gmd_status status, const gmd_error *error)
{
    if (status == GMD_OK) {
        return;
    }
    bool is_interrupted = status == GMD_INTERRUPTED;
    o->verdict = is_interrupted ? GMD_UNFINISHED : GMD_ERROR;
    o->error_status = status;
    if (is_interrupted) {
        snprintf(o->error, sizeof o->error,
                 "interrupted after %" PRIu64 " requests: the rest of the "
                 "search was not made",
                 o->requests);
    } else {
        snprintf(o->error, sizeof o->error, "%s", error->text);
    }
}
