#include "gmd_findings.h"
#include "gmd_log.h"

#include "gmd_cause.h"
#include "gmd_clock.h"
#include "gmd_grow.h"
#include "gmd_hash.h"
#include "gmd_limit.h"
#include "gmd_output.h"
#include "gmd_reproducer.h"
#include "gmd_rounds.h"
#include "gmd_utf8.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A request's budget is so much smaller, at least, while a hang is minimised. */
#define HASTE 4
/* Budgets of a request that a run with a hang takes, the oracles' questions with it. */
#define LAST_RUN 1.5

static gmd_finding *find(const gmd_findings *findings, const gmd_identity *cause)
{
    for (size_t i = 0; i < findings->count; i++) {
        if (gmd_identity_equal(&findings->items[i].cause, cause)) {
            return &findings->items[i];
        }
    }
    return NULL;
}

bool gmd_findings_hit(gmd_findings *findings, const gmd_violation *violation)
{
    gmd_finding *finding = find(findings, &violation->identity);
    if (finding) {
        finding->hits++;
    }
    bool is_shared = findings->board && gmd_board_hit(findings->board, &violation->identity);
    return finding != NULL || is_shared;
}

static gmd_finding *add(gmd_findings *findings)
{
    if (!GMD_GROW(&findings->items, &findings->capacity, findings->count + 1)) {
        return NULL;
    }
    gmd_finding *finding = findings->items ? &findings->items[findings->count++] : NULL;
    if (finding) {
        *finding = (gmd_finding){0};
    }
    return finding;
}

void gmd_findings_free(gmd_findings *findings)
{
    free(findings->items);
    findings->items = NULL;
    findings->count = findings->capacity = 0;
}

/* The same defect has the same file in every campaign. */
static void name_case(const gmd_findings *findings, const gmd_identity *cause, char *path,
                      size_t size)
{
    char text[GMD_IDENTITY_TEXT];
    gmd_identity_print(cause, text);
    uint64_t hash = gmd_hash_bytes(GMD_HASH_OF_NOTHING, text, strlen(text));
    snprintf(path, size, "%s/%s-%08" PRIx32 ".gmd", findings->out_directory, cause->kind,
             (uint32_t)(hash ^ hash >> 32));
}

/* Violations of an older gmd have an oracle only. */
static void print_verdict(const gmd_violation *violation, char text[GMD_IDENTITY_TEXT])
{
    if (*violation->identity.kind) {
        gmd_identity_print(&violation->identity, text);
    } else {
        snprintf(text, GMD_IDENTITY_TEXT, "%s", violation->oracle);
    }
}

static void write_lines(FILE *out, const char *text, const gmd_violation *violation,
                        const char *origin, const char *allocator)
{
    const char *rest = strchr(text, '\n');
    size_t first = rest ? (size_t)(rest + 1 - text) : strlen(text);
    fwrite(text, 1, first, out);
    char verdict[GMD_IDENTITY_TEXT];
    print_verdict(violation, verdict);
    fprintf(out, "# %s: ", verdict);
    gmd_utf8_put_line(violation->message, out);
    fputs("\n# ", out);
    gmd_utf8_put_line(origin, out);
    fputs(" --allocator ", out);
    gmd_utf8_put_line(allocator, out);
    fprintf(out, "\n%s", text + first);
}

gmd_status gmd_case_file_write(const gmd_trace *trace, const gmd_violation *violation,
                               const char *origin, const char *allocator, const char *path,
                               gmd_error *error)
{
    char *text = NULL;
    size_t size = 0;
    FILE *memory = open_memstream(&text, &size);
    gmd_trace shown = *trace; /* one device is what there is without a word */
    shown.conditions.device_count =
        trace->conditions.device_count > 1 ? trace->conditions.device_count : 0;
    gmd_status status = memory ? gmd_trace_write(&shown, memory, error)
                               : gmd_fail(error, GMD_NO_MEMORY, "no host memory for a case");
    if (memory) {
        fclose(memory);
    }
    gmd_output out;
    if (status == GMD_OK) {
        status = gmd_output_open(&out, path, error);
    }
    if (status == GMD_OK) {
        write_lines(out.stream, text, violation, origin, allocator);
        status = gmd_output_close(&out, status, error);
    }
    free(text);
    return status;
}

#define PROGRAM_REQUESTS 4096 /* nobody reads a program of more statements */

/* Beside the case. */
static gmd_status write_programs(const gmd_trace *trace, const gmd_violation *violation,
                                 const char *origin, const char *allocator, const char *path,
                                 gmd_error *error)
{
    char verdict[GMD_IDENTITY_TEXT];
    print_verdict(violation, verdict);
    const gmd_reproducer reproducer = {.trace = trace,
                                       .verdict = verdict,
                                       .message = violation->message,
                                       .origin = origin,
                                       .allocator = allocator};
    return trace->count <= PROGRAM_REQUESTS ? gmd_reproducer_write_beside(&reproducer, path, error)
                                            : GMD_OK;
}

gmd_status gmd_case_file_write_all(const gmd_trace *trace, const gmd_violation *violation,
                                   const char *origin, const char *allocator, const char *path,
                                   gmd_error *error)
{
    gmd_status status = gmd_case_file_write(trace, violation, origin, allocator, path, error);
    return status == GMD_OK ? write_programs(trace, violation, origin, allocator, path, error)
                            : status;
}

bool gmd_is_hang(const gmd_violation *violation)
{
    return gmd_identity_is(&violation->identity, GMD_KIND(progress, hang));
}

bool gmd_is_without_end(const gmd_violation *violation)
{
    return gmd_is_hang(violation) ||
           gmd_identity_is(&violation->identity, GMD_KIND(progress, deadlock));
}

/* The case that is left must show its cause under the budget that was given, too: what is only slow
 * is no hang there. */
static bool still_hangs(const gmd_trace *smallest, gmd_runner *runner, const gmd_identity *cause,
                        gmd_violation *violation)
{
    const gmd_outcome *outcome;
    gmd_error error;
    const gmd_violation *found = NULL;
    if (gmd_runner_run(runner, smallest, &outcome, &error) == GMD_OK) {
        found = gmd_cause_find(outcome, cause);
    }
    if (found) {
        *violation = *found;
    }
    return found != NULL;
}

/* Each try of a hang takes as long as the request's budget: it gets a smaller one, and the time for
 * all of them leaves some for the last run. */
static gmd_status minimize_hang(const gmd_findings *findings, const gmd_finding *finding,
                                gmd_runner *runner, gmd_trace *smallest,
                                gmd_minimize_limits *limits, gmd_minimized *minimized,
                                gmd_error *error)
{
    const gmd_run_options *given = runner->given;
    double share = given->process.call_budget_s / HASTE;
    const gmd_run_options hasty =
        gmd_options_hurried(given, share < findings->hang_seconds ? share : findings->hang_seconds);
    if (limits->seconds > 0) {
        double left = limits->seconds - LAST_RUN * given->process.call_budget_s;
        limits->seconds = left > limits->seconds / 2 ? left : limits->seconds / 2;
    }
    runner->given = &hasty;
    gmd_runner_renew(runner);
    gmd_status status = gmd_minimize(smallest, runner, &finding->cause, limits, minimized, error);
    runner->given = given;
    gmd_runner_renew(runner);
    if (status == GMD_OK &&
        !still_hangs(smallest, runner, &finding->cause, &minimized->violation)) {
        status = gmd_options_interrupted(given)
                     ? gmd_fail(error, GMD_INTERRUPTED, "interrupted before its last run")
                     : gmd_fail(error, GMD_BAD_INPUT,
                                "what took %g s in a smaller case takes less than %g s",
                                hasty.process.call_budget_s, given->process.call_budget_s);
    }
    return status;
}

static gmd_status minimize(const gmd_findings *findings, const gmd_finding *finding,
                           gmd_runner *runner, gmd_trace *smallest, gmd_minimized *minimized,
                           gmd_error *error)
{
    gmd_minimize_limits limits = {.seconds = findings->minimize_seconds,
                                  .tries = findings->minimize_tries,
                                  .progress = findings->progress,
                                  .context = findings->context};
    bool is_hang = gmd_is_hang(&finding->violation) && findings->hang_seconds > 0;
    return is_hang ? minimize_hang(findings, finding, runner, smallest, &limits, minimized, error)
                   : gmd_minimize(smallest, runner, &finding->cause, &limits, minimized, error);
}

static void tell(const gmd_findings *findings, const gmd_finding *finding)
{
    if (findings->tell) {
        findings->tell(findings->listener, finding);
    }
}

/* A full disk costs the file, not the finding. */
static void write_case(const gmd_findings *findings, gmd_finding *finding,
                       const gmd_trace *smallest)
{
    char path[sizeof finding->violation.case_path];
    gmd_error error = {""};
    name_case(findings, &finding->cause, path, sizeof path);
    gmd_output_folder(findings->out_directory); /* the next line reports a failure */
    gmd_status status = gmd_case_file_write(smallest, &finding->violation, findings->origin,
                                            findings->allocator, path, &error);
    if (status == GMD_OK) {
        status = write_programs(smallest, &finding->violation, findings->origin,
                                findings->allocator, path, &error);
        snprintf(finding->violation.case_path, sizeof path, "%s", path);
    }
    if (status != GMD_OK) {
        snprintf(finding->unwritten, sizeof finding->unwritten, "%.250s", error.text);
        tell(findings, finding);
    }
}

static void note_unfinished(const gmd_findings *findings, gmd_finding *finding, gmd_runner *runner,
                            gmd_status status, const gmd_minimized *minimized,
                            const gmd_error *error)
{
    char *text = finding->unfinished;
    enum { SIZE = sizeof finding->unfinished };
    bool is_round = gmd_rounds_is_growth(&finding->violation); /* minimised as one, before */
    if (status == GMD_OK ? minimized->is_complete : is_round) {
        *text = '\0';
    } else if (status != GMD_OK) {
        snprintf(text, SIZE, "not minimised: %.100s", error->text);
    } else if (gmd_options_interrupted(runner->given)) {
        snprintf(text, SIZE, "minimised until it was interrupted");
    } else if (findings->minimize_tries && minimized->tries >= findings->minimize_tries) {
        snprintf(text, SIZE, "minimised until its %" PRIu64 " runs were over",
                 findings->minimize_tries);
    } else {
        snprintf(text, SIZE, "minimised until its time was over");
    }
}

/* One that cannot be reproduced is kept whole: it says at least what was running. */
static gmd_status make_case(gmd_findings *findings, gmd_finding *finding, gmd_runner *runner,
                            const gmd_trace *trace, gmd_error *error)
{
    gmd_trace smallest = {0};
    gmd_minimized minimized = {0};
    gmd_status status = gmd_trace_copy(&smallest, trace, error);
    if (status != GMD_OK) {
        return status;
    }
    double start = gmd_clock_s();
    status = minimize(findings, finding, runner, &smallest, &minimized, error);
    finding->minimize_seconds = gmd_clock_s() - start;
    note_unfinished(findings, finding, runner, status, &minimized, error);
    if (status == GMD_OK) {
        finding->violation = minimized.violation;
        gmd_limit_find(runner, &smallest, &finding->cause, finding->violation.limit,
                       sizeof finding->violation.limit);
    }
    const gmd_trace *made = status == GMD_OK ? &smallest : trace;
    finding->requests = made->count;
    if (findings->out_directory) { /* also where minimising failed: what there is, is kept */
        write_case(findings, finding, made);
    }
    status = status == GMD_BAD_INPUT || status == GMD_INTERRUPTED ? GMD_OK : status;
    gmd_trace_free(&smallest);
    return status;
}

gmd_status gmd_findings_add(gmd_findings *findings, gmd_runner *runner, const gmd_trace *trace,
                            const gmd_violation *violation, uint64_t run, double seconds,
                            gmd_error *error)
{
    if (gmd_findings_hit(findings, violation) ||
        (findings->board && !gmd_board_claim(findings->board, &violation->identity))) {
        return GMD_OK;
    }
    gmd_finding *finding = add(findings);
    if (!finding) {
        return gmd_fail(error, GMD_NO_MEMORY, "no host memory for the findings");
    }
    finding->cause = violation->identity;
    finding->violation = *violation;
    finding->hits = 1;
    finding->run = run;
    finding->seconds = seconds;
    if (findings->board) { /* should this process not come to its end */
        gmd_board_publish(findings->board, finding);
    }
    tell(findings, finding);
    GMD_LOG(FUZZ, "finding in run %" PRIu64 ": %s: %s", run, violation->oracle, violation->message);
    gmd_status status = make_case(findings, finding, runner, trace, error);
    if (findings->board) {
        gmd_board_publish(findings->board, finding);
    }
    return status;
}

gmd_status gmd_findings_take(gmd_findings *findings, const gmd_finding *finding, gmd_error *error)
{
    gmd_finding *own = add(findings);
    if (!own) {
        return gmd_fail(error, GMD_NO_MEMORY, "no host memory for the findings");
    }
    *own = *finding;
    return GMD_OK;
}
