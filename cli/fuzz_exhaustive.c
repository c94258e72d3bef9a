#include "fuzz_exhaustive.h"

#include "found.h"
#include "search_outcome.h"

#include "gmd_clock.h"
#include "gmd_exhaustive.h"
#include "gmd_min.h"
#include "gmd_size.h"
#include "gmd_status_line.h"

#include <inttypes.h>
#include <stdio.h>

#define DEFAULT_CAPACITY (32 * GMD_MIB) /* few blocks fill it */
#define MINIMIZE_SECONDS 60

bool cli_parse_depth(const char *text, uint32_t *depth)
{
    uint64_t value;
    bool is_depth = gmd_parse_u64(text, &value) && value >= 1 && value <= GMD_SEQUENCE_MAX;
    *depth = is_depth ? (uint32_t)value : 0;
    return is_depth;
}

/* How far it came, as a campaign tells of itself. */
static gmd_search_status status_of(const gmd_exhaustive_result *r, size_t findings)
{
    return (gmd_search_status){.seconds = r->seconds,
                               .runs = r->runs,
                               .requests = r->requests,
                               .findings = findings,
                               .features = (uint32_t)gmd_min(r->states, UINT32_MAX)};
}

typedef struct progress {
    gmd_status_line line;
    bool is_shown;
    cli_course *course;
} progress;

static void note_progress(void *context, const gmd_exhaustive_result *r, size_t findings)
{
    progress *p = context;
    const gmd_search_status status = status_of(r, findings);
    cli_course_note(p->course, &status);
    if (!p->is_shown) {
        return;
    }
    gmd_status_show(&p->line, r->seconds,
                    "%zu found, %s, length %" PRIu32 ": %" PRIu64 " runs (%.0f/s), %" PRIu64
                    " states",
                    findings, r->schedule, r->length, r->runs,
                    r->seconds > 0 ? (double)r->runs / r->seconds : 0, r->states);
}

static void note_alphabet(gmd_outcome *o, const gmd_exhaustive_result *r, bool has_schedule)
{
    char *note = o->notes[o->note_count++];
    int used = snprintf(note, sizeof o->notes[0], "the alphabet: alloc of");
    for (uint32_t i = 0; i < r->alphabet.size_count; i++) {
        used += snprintf(note + used, sizeof o->notes[0] - (size_t)used, "%s %" PRIu64,
                         i ? "," : "", r->alphabet.sizes[i]);
    }
    used += snprintf(note + used, sizeof o->notes[0] - (size_t)used,
                     " B on %" PRIu32 " streams, free, use, record, wait, sync, empty_cache",
                     r->alphabet.stream_count);
    if (r->alphabet.pool_count) {
        used += snprintf(note + used, sizeof o->notes[0] - (size_t)used,
                         ", begin_pool, end_pool and release_pool of %" PRIu32 " pools%s",
                         r->alphabet.pool_count,
                         r->alphabet.has_captures
                             ? ", begin_capture and end_capture of streams into them, launch"
                             : "");
    }
    snprintf(note + used, sizeof o->notes[0] - (size_t)used, "; %s",
             has_schedule ? "the given schedule" : "schedules lazy, eager and timed");
}

static void add_outcome(cli_results *results, const cli_options *options, uint32_t depth,
                        const gmd_findings *findings, const gmd_exhaustive_result *r,
                        gmd_status status, const gmd_error *error)
{
    gmd_outcome *o = cli_results_add(results, "exhaustive", "fuzz");
    if (!o) {
        return;
    }
    o->requests = r->requests;
    o->seconds = r->seconds;
    o->seed = options->run.seed;
    gmd_exhaustive_statement(r, findings->count, depth, o->notes[o->note_count++],
                             sizeof o->notes[0]);
    o->known_count = r->known;
    gmd_outcome_note_known(o);
    note_alphabet(o, r, gmd_schedule_is_stated(&options->run.conditions.schedule));
    if (r->unconfirmed) {
        snprintf(o->notes[o->note_count++], sizeof o->notes[0],
                 "%" PRIu64 " runs showed something only after others in one process",
                 r->unconfirmed);
    }
    cli_add_findings(o, findings, &r->judged);
    cli_keep_found(results, findings);
    cli_end_search(o, r->is_interrupted ? GMD_INTERRUPTED : status, error);
}

static void note_coverage(cli_results *results, const cli_course *course,
                          const gmd_exhaustive_result *r)
{
    cli_results_cover(results, "Different sequences", r->sequences);
    cli_results_cover(results, "Sequences before symmetry reduction", r->unreduced);
    cli_results_cover(results, "Runs: each sequence under each schedule", r->runs);
    cli_results_cover(results, "Different states of the allocator", r->states);
    cli_results_cover(results, "Sequences that show a defect", r->cut);
    results->course = course->moments;
    results->course_length = course->count;
}

gmd_status cli_exhaustive(const cli_options *given, const cli_exhaustive_scope *scope,
                          cli_course *course, cli_results *results, gmd_error *error)
{
    char origin[64];
    gmd_run_options run = given->run;
    run.judging.costs = GMD_COSTS_SAMPLED;
    if (run.device.kind != GMD_DEVICE_SIM) {
        return gmd_fail(
            error, GMD_BAD_INPUT,
            "--exhaustive: needs the simulated device, where each sequence begins anew");
    }
    if (run.conditions.limit_bytes) {
        return gmd_fail(error, GMD_BAD_INPUT,
                        "--limit: not with --exhaustive; --capacity sets the size of its device");
    }
    run.conditions.capacity_bytes =
        given->has_capacity ? run.conditions.capacity_bytes : DEFAULT_CAPACITY;
    run.conditions.device_count = 1;
    run.conditions.interleave = (gmd_schedule){0};
    cli_keep_budget(results,
                    gmd_options_hurried(&run, GMD_EXHAUSTIVE_HANG_S).process.call_budget_s);
    cli_found found = {.options = given, .command = "fuzz", .start = gmd_clock_s()};
    snprintf(origin, sizeof origin, "found by: gmd fuzz --exhaustive %" PRIu32, scope->depth);
    gmd_findings findings = {.out_directory = run.cases.directory,
                             .origin = origin,
                             .allocator = run.subject.allocator,
                             .minimize_seconds = MINIMIZE_SECONDS,
                             .tell = cli_tell_found,
                             .listener = &found};
    progress shown = {.is_shown = run.process.shows_progress, .course = course};
    gmd_exhaustive_options options = {.run = &run,
                                      .depth = scope->depth,
                                      .with_pools = scope->with_pools,
                                      .with_captures = scope->with_captures,
                                      .seconds = scope->seconds,
                                      .progress = note_progress,
                                      .context = &shown};
    gmd_exhaustive_result result;
    gmd_status status = gmd_exhaustive(&options, &findings, &result, error);
    gmd_status_clear(&shown.line);
    if (status == GMD_OK || findings.count) {
        const gmd_search_status end = status_of(&result, findings.count);
        cli_course_end(course, &end);
        note_coverage(results, course, &result);
        add_outcome(results, given, scope->depth, &findings, &result, status, error);
        status = GMD_OK;
    }
    gmd_findings_free(&findings);
    return status;
}
