#include "smallest.h"

#include "run_workload.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PAGE ((uint64_t)2 << 20) /* what the device hands out at least */

typedef struct search {
    const gmd_run_options *options;
    const gmd_workload *workload;
    gmd_outcome *latest;
    char (*notes)[sizeof((gmd_outcome *)0)->notes[0]];
    uint32_t note_count;
    uint64_t low, high; /* fails at low, runs at high */
} search;

__attribute__((format(printf, 2, 3))) static void note(search *s, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    if (s->note_count < GMD_NOTE_MAX) {
        vsnprintf(s->notes[s->note_count++], sizeof s->notes[0], format, arguments);
    }
    va_end(arguments);
}

static double in_mib(uint64_t bytes)
{
    return (double)bytes / (1 << 20);
}

static bool ran_out(const gmd_outcome *outcome)
{
    return outcome->verdict == GMD_FAIL && outcome->violation_count > 0 &&
           strcmp(outcome->violations[0].oracle, "expect") == 0;
}

static gmd_status try_limit(search *s, uint64_t limit, gmd_error *error)
{
    gmd_run_options options = *s->options;
    options.cases.directory = NULL; /* out of memory is what it looks for */
    options.conditions.limit_bytes = limit;
    return gmd_run_isolated(&options, s->workload, s->latest, error);
}

/* Statistics may have been reset by the script: the phases tell of what was before. */
static uint64_t reserved_at_peak(const gmd_outcome *outcome)
{
    uint64_t peak = 0;
    if (outcome->has_stats && outcome->stats.reserved_bytes_peak != GMD_STAT_UNKNOWN) {
        peak = outcome->stats.reserved_bytes_peak;
    }
    for (uint32_t i = 0; i < outcome->phase_count; i++) {
        uint64_t here = outcome->phases[i].max_reserved;
        peak = here != GMD_STAT_UNKNOWN && here > peak ? here : peak;
    }
    return peak;
}

static void note_trial(search *s, uint64_t limit)
{
    const gmd_stats *stats = &s->latest->stats;
    if (ran_out(s->latest)) {
        note(s, "limit %.0f MiB: out of memory", in_mib(limit));
    } else if (s->latest->has_stats && stats->num_alloc_retries != GMD_STAT_UNKNOWN) {
        note(s, "limit %.0f MiB: runs, with %" PRIu64 " retries and %" PRIu64 " refusals",
             in_mib(limit), stats->num_alloc_retries, stats->num_ooms);
    } else {
        note(s, "limit %.0f MiB: runs", in_mib(limit));
    }
}

/* True while there is something to look for and nothing but memory failed. */
static bool goes_on(const search *s, gmd_status status)
{
    return status == GMD_OK && (s->latest->verdict == GMD_PASS || ran_out(s->latest)) &&
           s->high - s->low > PAGE;
}

static gmd_status bisect(search *s, gmd_error *error)
{
    gmd_status status = GMD_OK;
    while (goes_on(s, status)) {
        uint64_t middle = s->low + (s->high - s->low) / 2 / PAGE * PAGE;
        status = try_limit(s, middle, error);
        if (status == GMD_OK) {
            note_trial(s, middle);
        }
        if (status == GMD_OK && ran_out(s->latest)) {
            s->low = middle;
        } else {
            s->high = middle;
        }
    }
    return status;
}

static gmd_status keep_result(search *s, uint64_t limit, cli_results *results, uint64_t peak,
                              gmd_error *error)
{
    gmd_run_options options = *s->options;
    options.conditions.limit_bytes = limit;
    gmd_status status = cli_run_workload(results, &options, s->workload, error);
    if (status != GMD_OK && status != GMD_INTERRUPTED) {
        return status;
    }
    gmd_outcome *kept = results->items[results->count - 1];
    if (kept->verdict == GMD_PASS && peak && kept->note_count < GMD_NOTE_MAX) {
        kept->smallest_limit_bytes = s->high;
        snprintf(
            kept->notes[kept->note_count++], sizeof kept->notes[0],
            "the smallest limit that it runs in is %.0f MiB; without one %.0f MiB were reserved "
            "at the peak",
            in_mib(s->high), in_mib(peak));
    }
    for (uint32_t i = 0; i < s->note_count && kept->note_count < GMD_NOTE_MAX; i++) {
        memcpy(kept->notes[kept->note_count++], s->notes[i], sizeof s->notes[i]);
    }
    cli_results_done(results);
    return status;
}

/* The latest trial was not made to its end; the notes say what those before it came to. */
static gmd_status keep_interrupted(search *s, cli_results *results)
{
    gmd_error none;
    gmd_outcome *kept = cli_results_add(results, s->workload->name, s->workload->kind);
    if (!kept) {
        return gmd_fail(&none, GMD_NO_MEMORY, "no host memory for the results");
    }
    *kept = *s->latest;
    kept->note_count = 0;
    for (uint32_t i = 0; i < s->note_count; i++) {
        memcpy(kept->notes[kept->note_count++], s->notes[i], sizeof s->notes[i]);
    }
    cli_results_done(results);
    return GMD_INTERRUPTED;
}

static gmd_status find(search *s, cli_results *results, gmd_error *error)
{
    gmd_status status = try_limit(s, s->options->conditions.limit_bytes, error);
    if (status != GMD_OK) {
        return status == GMD_INTERRUPTED ? keep_interrupted(s, results) : status;
    }
    if (s->latest->verdict != GMD_PASS) { /* once more, to be reported */
        return keep_result(s, s->options->conditions.limit_bytes, results, 0, error);
    }
    uint64_t peak = reserved_at_peak(s->latest);
    if (peak == 0) {
        return gmd_fail(error, GMD_BAD_INPUT,
                        "--smallest-limit: neither the allocator nor the device tells how much "
                        "memory is reserved");
    }
    s->high = (peak + PAGE - 1) / PAGE * PAGE;
    status = bisect(s, error);
    if (status == GMD_INTERRUPTED) {
        return keep_interrupted(s, results);
    }
    return status == GMD_OK ? keep_result(s, s->high, results, peak, error) : status;
}

gmd_status cli_smallest_run(cli_results *results, const gmd_run_options *options,
                            const gmd_workload *workload, gmd_error *error)
{
    search s = {.options = options, .workload = workload};
    s.latest = calloc(1, sizeof *s.latest);
    s.notes = calloc(GMD_NOTE_MAX, sizeof *s.notes);
    gmd_status status = s.latest && s.notes
                            ? find(&s, results, error)
                            : gmd_fail(error, GMD_NO_MEMORY, "no host memory for the results");
    free(s.latest);
    free(s.notes);
    return status;
}
