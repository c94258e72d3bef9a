#include "rerun.h"

#include "inputs.h"
#include "interruption.h"
#include "play.h"

#include "gmd_clock.h"
#include "gmd_findings.h"

#include <stdio.h>
#include <stdlib.h>

enum { MOST_RUNS = 20 };

#define MOST_SECONDS    20 /* of all together, for a page */
#define LISTING_SECONDS 5  /* for the lines beside the findings */
#define HANG_SECONDS    1  /* of a request in a case of a hang */

/* What is the case's own comes from its file; the rest is what the command was given. */
static cli_options options_for_cases(const cli_options *given)
{
    cli_options options = *given, defaults;
    cli_options_init(&defaults);
    options.has_capacity = options.has_devices = false;
    options.run.conditions = defaults.run.conditions;
    options.run.interleave_seeds = 0;
    options.run.cases.directory = NULL;
    options.run.process.shows_progress = false;
    options.run.process.is_interrupted = cli_interruption_awaited();
    options.reading.shows_progress = false;
    options.snapshot_path = options.perfetto_path = NULL;
    options.quiet = true;
    return options;
}

/* A gate's, or those of the latest outcome. */
static size_t finding_count(const cli_results *results)
{
    return results->gate    ? results->gate->finding_count
           : results->count ? results->items[results->count - 1]->violation_count
                            : 0;
}

static const gmd_violation *violation_of(const cli_results *results, size_t index)
{
    return results->gate ? &results->gate->findings[index].violation
                         : &results->items[results->count - 1]->violations[index];
}

/* Why a case is not run; NULL: it is. */
static const char *refusal(const cli_rerun *rerun, const gmd_violation *violation,
                           const cli_options *options, double start)
{
    if (!violation->case_path[0]) {
        return "no case was written";
    }
    if (gmd_options_interrupted(&options->run)) {
        return "the command was interrupted";
    }
    if (rerun->runs.count >= MOST_RUNS) {
        return "there are too many findings to run all of their cases again";
    }
    if (!options->html_path && gmd_is_hang(violation)) {
        return "it hangs";
    }
    return gmd_clock_s() - start > (options->html_path ? MOST_SECONDS : LISTING_SECONDS)
               ? "the time for running cases again was over"
               : NULL;
}

/* What fails before the run is an outcome of its own. */
static void play_case(const char *path, const cli_options *options, cli_results *runs)
{
    gmd_trace trace = {0};
    gmd_error error = {""};
    gmd_run_options run = options->run;
    const cli_plan plan = {.options = options, .repeat = 1};
    gmd_status status = cli_read_trace(&trace, path, options, &run, &error);
    if (status == GMD_OK) {
        status = cli_play_trace(&plan, path, &run, &trace, runs, &error);
    }
    cli_results_end(runs, path, status, &error);
    gmd_trace_free(&trace);
}

/* The outcome of a case that cannot be run says why. */
static void run_case(cli_rerun *rerun, size_t index, const gmd_violation *violation,
                     const cli_options *options)
{
    cli_options hurried = *options;
    cli_results *runs = &rerun->runs;
    size_t before = runs->count;
    if (gmd_is_hang(violation)) {
        hurried.run = gmd_options_hurried(&options->run, HANG_SECONDS);
    }
    runs->options = &hurried;
    play_case(violation->case_path, &hurried, runs);
    runs->options = options;
    gmd_rerun *item = &rerun->items[index];
    if (runs->count == before) {
        item->reason = "no host memory was left for its run";
    } else if (runs->journals[before] && runs->items[before]->verdict <= GMD_FAIL) {
        item->outcome = runs->items[before];
        item->journal = runs->journals[before];
    } else {
        snprintf(rerun->reasons[index], CLI_RERUN_REASON, "the case could not be run: %.300s",
                 runs->items[before]->error);
    }
}

/* Its lines without answers, where it was not run: the finding says which of them fails. */
static void list_without_run(gmd_case_listing *listing, const gmd_violation *violation)
{
    gmd_outcome *outcome = violation->case_path[0] ? calloc(1, sizeof *outcome) : NULL;
    if (outcome) {
        outcome->violations[outcome->violation_count++] = *violation;
        gmd_case_listing_read(listing, violation->case_path, outcome, NULL);
    }
    free(outcome);
}

/* NULL: there is no host memory for them. */
static gmd_case_listing *list_cases(const cli_rerun *rerun, const cli_results *results)
{
    gmd_case_listing *listings = calloc(rerun->count, sizeof *listings);
    for (size_t i = 0; listings && i < rerun->count; i++) {
        const gmd_rerun *item = &rerun->items[i];
        if (item->outcome) {
            gmd_case_listing_read(&listings[i], violation_of(results, i)->case_path, item->outcome,
                                  item->journal);
        } else {
            list_without_run(&listings[i], violation_of(results, i));
        }
    }
    return listings;
}

/* Whether somebody sees the findings of a command, or of a part of it. */
static bool is_shown(const cli_options *given)
{
    return given->html_path || given->markdown_path || !given->quiet;
}

/* False: there is no host memory for it. */
static bool run_cases(cli_rerun *rerun, const cli_results *results, const cli_options *options)
{
    size_t count = finding_count(results);
    double start = gmd_clock_s();
    cli_results_open(&rerun->runs, options, "run");
    rerun->runs.keeps_journals = true;
    rerun->items = calloc(count, sizeof *rerun->items);
    rerun->reasons = calloc(count, sizeof *rerun->reasons);
    if (!rerun->items || !rerun->reasons) {
        return false;
    }
    for (size_t i = 0; i < count; i++) {
        const gmd_violation *violation = violation_of(results, i);
        const char *reason = refusal(rerun, violation, options, start);
        rerun->items[i].reason = reason ? reason : rerun->reasons[i];
        if (!reason) {
            run_case(rerun, i, violation, options);
        }
        rerun->count++;
    }
    rerun->runs.options = NULL;
    return true;
}

void cli_rerun_findings(cli_rerun *rerun, cli_results *results)
{
    bool is_one = results->gate || results->count == 1;
    if (!is_one || !finding_count(results) || !is_shown(results->options)) {
        return;
    }
    const cli_options options = options_for_cases(results->options);
    if (run_cases(rerun, results, &options)) {
        results->listings[0] = list_cases(rerun, results);
        results->reruns = rerun->items;
        results->rerun_count = rerun->count;
    }
}

void cli_rerun_latest(cli_results *results)
{
    cli_rerun rerun = {.count = 0};
    if (!finding_count(results) || !is_shown(results->options)) {
        return;
    }
    cli_options options = options_for_cases(results->options);
    options.html_path = NULL; /* its page has no histories of them */
    if (run_cases(&rerun, results, &options)) {
        results->listings[results->count - 1] = list_cases(&rerun, results);
    }
    cli_rerun_free(&rerun);
}

void cli_rerun_free(cli_rerun *rerun)
{
    cli_results_free(&rerun->runs);
    free(rerun->items);
    free(rerun->reasons);
    *rerun = (cli_rerun){0};
}
