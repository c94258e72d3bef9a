#include "sweep.h"

#include "found.h"
#include "rerun.h"
#include "search_outcome.h"

#include "gmd_clock.h"
#include "gmd_fault_sweep.h"
#include "gmd_findings.h"
#include "gmd_search.h"
#include "gmd_status_line.h"
#include "gmd_text.h"
#include "progress.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define MINIMIZE_SECONDS 60

bool cli_sweep_parse(const char *text, cli_sweep *which)
{
    if (!text || strcmp(text, "all") == 0) {
        *which = CLI_SWEEP_ALL;
        return true;
    }
    *which = CLI_SWEEP_MEMORY;
    return strcmp(text, "memory") == 0;
}

typedef struct sweeping {
    gmd_findings findings;
    gmd_runner *runner;
    gmd_status status;
    gmd_error *error;
    bool shows_progress;
    gmd_status_line line;
    double start; /* on gmd_clock_s */
} sweeping;

static bool note_found(void *context, const gmd_trace *trace, const gmd_violation *violation)
{
    sweeping *s = context;
    gmd_violation copy = *violation; /* the next run writes over it */
    s->status =
        gmd_findings_add(&s->findings, s->runner, trace, &copy, s->runner->runs, 0, s->error);
    return s->status == GMD_OK;
}

static void show_progress(void *context, uint64_t done, uint64_t all, const char *what)
{
    sweeping *s = context;
    char left[CLI_LEFT_BYTES];
    double seconds = gmd_clock_s() - s->start;
    cli_time_left((double)done, (double)all, seconds, left);
    if (s->shows_progress) {
        gmd_status_show(
            &s->line, seconds, "%s%s%zu found, %" PRIu64 " of %" PRIu64 " runs, %s fails",
            left + (*left ? 2 : 0), *left ? ", " : "", s->findings.count, done, all, what);
    }
}

static void show_minimising(void *context, size_t requests, uint64_t tries)
{
    sweeping *s = context;
    if (s->shows_progress) {
        gmd_status_show(&s->line, gmd_clock_s() - s->start,
                        "minimising finding %zu: %zu requests, %" PRIu64 " tries",
                        s->findings.count, requests, tries);
    }
}

static void fill_in(gmd_outcome *o, const gmd_sweep_result *result, const sweeping *s)
{
    o->requests = s->runner->requests;
    o->seconds = gmd_clock_s() - s->start;
    cli_add_findings(o, &s->findings, &s->runner->judged);
    o->known_count = s->runner->known;
    gmd_outcome_note_known(o);
    if (result->case_fails) {
        o->verdict = GMD_FAIL;
        o->violations[o->violation_count++] = result->violation;
        snprintf(o->notes[o->note_count++], sizeof o->notes[0],
                 "not swept: the case fails without any fault");
        return;
    }
    snprintf(
        o->notes[o->note_count++], sizeof o->notes[0],
        "%" PRIu64 " call%s of the allocator, %" PRIu64 " run%s with one or more of them failing",
        result->calls, result->calls == 1 ? "" : "s", result->runs, result->runs == 1 ? "" : "s");
    if (result->not_judged) {
        snprintf(o->notes[o->note_count++], sizeof o->notes[0],
                 "%" PRIu64 " runs were not judged: the fault hit the driver's own calls as well",
                 result->not_judged);
    }
    if (!result->is_complete) {
        snprintf(o->notes[o->note_count++], sizeof o->notes[0],
                 "not every call was made to fail: there are too many");
    }
}

gmd_status cli_sweep_run(cli_results *results, const gmd_run_options *options, const char *command,
                         const char *path, gmd_trace *trace, cli_sweep which, gmd_error *error)
{
    char origin[4300];
    gmd_status status = gmd_trace_absorb_options(trace, options, error);
    if (status != GMD_OK) {
        return status;
    }
    gmd_run_options given = *options;
    given.judging.costs = GMD_COSTS_SAMPLED;
    gmd_options_leave_to_traces(&given);
    const char *base = gmd_file_name(path);
    snprintf(origin, sizeof origin, "found by: gmd %s --sweep %s", command, base);
    gmd_runner runner;
    gmd_runner_init(&runner, &given);
    cli_found found = {.options = results->options, .command = command, .start = gmd_clock_s()};
    sweeping s = {.findings = {.out_directory = options->cases.directory,
                               .origin = origin,
                               .allocator = options->subject.allocator,
                               .minimize_seconds = MINIMIZE_SECONDS,
                               .progress = show_minimising,
                               .context = &s,
                               .tell = cli_tell_found,
                               .listener = &found},
                  .runner = &runner,
                  .error = error,
                  .shows_progress = options->process.shows_progress,
                  .start = gmd_clock_s()};
    gmd_profile_space space = {0};
    status = gmd_search_find_space(&space, &given, error);
    gmd_sweep_options sweep_options = {.memory_only = which == CLI_SWEEP_MEMORY,
                                       .has_budgets = space.has_budgets,
                                       .progress = show_progress,
                                       .found = note_found,
                                       .context = &s};
    gmd_sweep_result result = {0};
    if (status == GMD_OK) {
        status = gmd_sweep(trace, &runner, &sweep_options, &result, error);
    }
    status = status == GMD_OK ? s.status : status;
    gmd_status_clear(&s.line);
    bool has_begun = status == GMD_OK || status == GMD_INTERRUPTED || s.findings.count;
    gmd_outcome *o = has_begun ? cli_results_add(results, base, "sweep") : NULL;
    if (o) {
        snprintf(o->path, sizeof o->path, "%s", strlen(path) < sizeof o->path ? path : "");
        fill_in(o, &result, &s);
        cli_end_search(o, status, error);
        cli_rerun_latest(results);
        cli_results_done(results);
        status = status == GMD_INTERRUPTED ? status : GMD_OK;
    }
    gmd_findings_free(&s.findings);
    gmd_runner_close(&runner);
    return status;
}
