#include "run_workload.h"

#include "gmd_text.h"

#include <stdlib.h>
#include <string.h>

/* What is kept of the run beside its outcome, which is the last of `results`. */
static gmd_status open_notes(const cli_results *results, const gmd_workload *workload,
                             gmd_run_options *options, gmd_error *error)
{
    bool is_short = workload->trace && workload->trace->count <= GMD_CASE_LINES;
    bool keeps_journal = results->keeps_journals || is_short;
    options->recording.timeline = NULL;
    options->recording.journal = NULL;
    if (results->holds_one_run && results->count > 1) {
        return gmd_fail(error, GMD_BAD_INPUT,
                        "--snapshot holds one run, and here is a second: name one scenario or "
                        "trace, and one value for each parameter");
    }
    options->recording.timeline = results->keeps_timelines ? gmd_timeline_open(error) : NULL;
    if (results->keeps_timelines && !options->recording.timeline) {
        return GMD_NO_MEMORY;
    }
    options->recording.journal = keeps_journal ? gmd_journal_open(error) : NULL;
    return results->keeps_journals && !options->recording.journal ? GMD_NO_MEMORY : GMD_OK;
}

/* The case that a run wrote, or was, with its answers, beside its first violation. */
static gmd_case_listing *list_case(const gmd_outcome *outcome, const gmd_journal *journal)
{
    bool has_case = outcome->violation_count && outcome->violations[0].case_path[0];
    gmd_case_listing *listing = has_case ? calloc(outcome->violation_count, sizeof *listing) : NULL;
    if (listing) {
        gmd_case_listing_read(listing, outcome->violations[0].case_path, outcome, journal);
    }
    return listing;
}

/* A page of very many runs shows the histories of the first ones, and of those that failed. */
static gmd_journal *keep_journal(cli_results *results, const gmd_outcome *outcome,
                                 gmd_journal *journal)
{
    enum { MOST_EVENTS = 4000000 };
    uint64_t events = journal ? journal->count : 0;
    bool is_one_of_too_many = outcome->verdict == GMD_PASS && results->count > 1 &&
                              results->kept_events + events > MOST_EVENTS;
    if (journal && (!results->keeps_journals || is_one_of_too_many)) {
        gmd_journal_close(journal);
        return NULL;
    }
    results->kept_events += events;
    return journal;
}

/* How many outcomes before the last are called as it will be: their cases must not be replaced. */
static uint32_t count_alike(const cli_results *results, const gmd_workload *workload)
{
    const char *base = gmd_file_name(workload->name), *variant = workload->variant;
    uint32_t alike = 0;
    for (size_t i = 0; i + 1 < results->count; i++) {
        const gmd_outcome *o = results->items[i];
        alike += strcmp(gmd_file_name(o->name), base) == 0 &&
                 strcmp(o->variant, variant ? variant : "") == 0;
    }
    return alike;
}

gmd_status cli_run_workload(cli_results *results, const gmd_run_options *options,
                            const gmd_workload *workload, gmd_error *error)
{
    gmd_outcome *outcome = cli_results_add(results, workload->name, workload->kind);
    if (!outcome) {
        return gmd_fail(error, GMD_NO_MEMORY, "no host memory for the results");
    }
    gmd_run_options noted = *options;
    noted.judging.costs = GMD_COSTS_MEASURED;
    noted.cases.number = count_alike(results, workload) + 1;
    gmd_status status = open_notes(results, workload, &noted, error);
    if (status == GMD_OK) {
        status = options->interleave_seeds ? gmd_run_interleavings(&noted, workload, outcome, error)
                                           : gmd_run_isolated(&noted, workload, outcome, error);
    }
    if (status != GMD_OK && status != GMD_INTERRUPTED) {
        gmd_timeline_close(noted.recording.timeline);
        gmd_journal_close(noted.recording.journal);
        free(results->items[--results->count]);
    } else {
        size_t last = results->count - 1;
        results->timelines[last] = noted.recording.timeline;
        results->listings[last] = list_case(outcome, noted.recording.journal);
        results->journals[last] = keep_journal(results, outcome, noted.recording.journal);
    }
    return status;
}
