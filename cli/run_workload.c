#include "run_workload.h"

#include "gmd_text.h"

#include <stdlib.h>
#include <string.h>

/* What is kept of the run beside its outcome, which is the last of `results`. */
static gmd_status open_notes(const cli_results *results, gmd_run_options *options, gmd_error *error)
{
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
    options->recording.journal = results->keeps_journals ? gmd_journal_open(error) : NULL;
    return results->keeps_journals && !options->recording.journal ? GMD_NO_MEMORY : GMD_OK;
}

/* A page of very many runs shows the histories of the first ones, and of those that failed. */
static gmd_journal *keep_journal(cli_results *results, const gmd_outcome *outcome,
                                 gmd_journal *journal)
{
    enum { MOST_EVENTS = 4000000 };
    uint64_t events = journal ? journal->count : 0;
    if (journal && outcome->verdict == GMD_PASS && results->count > 1 &&
        results->kept_events + events > MOST_EVENTS) {
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
    noted.judging.measures_costs = true;
    noted.cases.number = count_alike(results, workload) + 1;
    gmd_status status = open_notes(results, &noted, error);
    if (status == GMD_OK) {
        status = options->interleave_seeds ? gmd_run_interleavings(&noted, workload, outcome, error)
                                           : gmd_run_isolated(&noted, workload, outcome, error);
    }
    if (status != GMD_OK && status != GMD_INTERRUPTED) {
        gmd_timeline_close(noted.recording.timeline);
        gmd_journal_close(noted.recording.journal);
        free(results->items[--results->count]);
    } else {
        results->timelines[results->count - 1] = noted.recording.timeline;
        results->journals[results->count - 1] =
            keep_journal(results, outcome, noted.recording.journal);
    }
    return status;
}
