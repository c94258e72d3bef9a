/* gmd_report.h - what gmd says at the end of a command, once for each reader: a program (JSON), a
 * CI server (JUnit XML), a CI job summary (Markdown), a code host (SARIF), a monitoring system
 * (OpenMetrics) and a person (the terminal).
 *
 * The writers only read; they take any outcome, also one cut short by a crash. Text from outside
 * (file names, messages, labels) is escaped for its format, invalid UTF-8 becomes U+FFFD. Numbers
 * have '.' as their decimal point in the C locale, which gmd never leaves. Thread safety: pure
 * functions of their arguments, apart from the stream. */
#ifndef GMD_REPORT_H
#define GMD_REPORT_H

#include "gmd_case_listing.h"
#include "gmd_error.h"
#include "gmd_gate_result.h"
#include "gmd_inspection.h"
#include "gmd_journal.h"
#include "gmd_outcome.h"
#include "gmd_terminal.h"
#include "gmd_timeline.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* Runs of one workload: the outcomes from number `first` on. They differ in their seeds; or, of
 * placements, in the order of the device's addresses: the first run has rising ones, each other an
 * order of its own seed. */
typedef struct gmd_repeat {
    size_t first, count;
    bool is_of_placements;
} gmd_repeat;

/* How far a campaign was at a time. */
typedef struct gmd_campaign_moment {
    double seconds; /* since it began */
    uint64_t runs, requests, findings;
    uint64_t features, inputs; /* of the allocator's state, seen so far (of an exhaustive search
                                  states); in the corpus */
} gmd_campaign_moment;

/* A class of what a campaign is to bring about, and how many of it were seen. */
typedef struct gmd_coverage {
    char what[96];
    uint64_t seen;
} gmd_coverage;

enum { GMD_COVERAGE_MAX = 16 };

/* How a campaign came upon a violation. */
typedef struct gmd_campaign_finding {
    double seconds;       /* since it began */
    uint64_t hits;        /* runs that showed it */
    size_t case_requests; /* of the minimised case */
} gmd_campaign_finding;

/* The case of what a gate or a campaign found, run once more for its history. */
typedef struct gmd_rerun {
    const gmd_outcome *outcome; /* NULL: it was not run */
    const gmd_journal *journal;
    const char *reason; /* why it was not run: the end of a sentence */
} gmd_rerun;

/* An oracle and the line that says what it holds. */
typedef struct gmd_report_rule {
    const char *name, *holds_when;
} gmd_report_rule;

typedef struct gmd_report {
    const char *version; /* of gmd */
    const char
        *command; /* "run" adds "scenarios" to the JSON, "replay" adds "replays" and "check" */
    const char *allocator;  /* SPEC of the command line */
    const char *profile;    /* the allocator's contract, as it was named; NULL: none */
    const char *beyond;     /* its clauses that were not kept to, likewise; NULL: none */
    const char *device;     /* "sim" or "cuda" */
    const char *conditions; /* of the command line, that its figures depend on; NULL: none given */
    uint64_t seed;
    const gmd_outcome *const *outcomes;
    size_t outcome_count;
    /* What was seen inside each outcome's run; NULL: nothing, in any of them. */
    const gmd_inspection *const *inspections;
    const gmd_timeline *const *timelines; /* of each outcome's run; NULL: none has one */
    const gmd_journal *const *journals;   /* likewise */
    /* The cases of each outcome's violations, or of the gate's findings, in their order; likewise.
     */
    const gmd_case_listing *const *listings;
    const gmd_snapshot *recorded; /* the history that each run replays: what its events' origins are
                                     of; NULL: none is replayed */
    const gmd_report_rule *rules; /* all oracles, whether they could judge or not */
    size_t rule_count;
    const gmd_repeat *repeats; /* statistics of each are shown */
    size_t repeat_count;
    const gmd_campaign_moment *course; /* of "fuzz", in order; NULL: none is known */
    size_t course_length;
    const gmd_coverage *coverage; /* likewise, at its end; up to GMD_COVERAGE_MAX */
    size_t coverage_count;
    const gmd_campaign_finding *found; /* of the violations of "fuzz"'s one outcome, in their order;
                                          NULL: not known */
    size_t found_count;
    const char *replay_options; /* what 'gmd run CASE' needs to show a campaign's case again; NULL:
                                   it is no campaign */
    double hang_s;            /* likewise: a request that took longer is a hang; 0: as for 'gmd run'
                                 without --timeout */
    const char *command_line; /* that makes this report again; NULL: not given */
    const gmd_gate_result *gate; /* "gate": its parts and findings; NULL: another command */
    /* The cases of "gate"'s findings, or of the violations of the one outcome of "fuzz", in their
     * order; NULL: nothing was run again. */
    const gmd_rerun *reruns;
    size_t rerun_count;
} gmd_report;

/* The worst verdict of all outcomes: interrupted over error over fail over pass. No outcome at all
 * is an error, for nothing was checked. */
gmd_verdict gmd_report_verdict(const gmd_report *report);

/* "pass", "fail", "error" or "interrupted". */
const char *gmd_verdict_name(gmd_verdict verdict);

/* What tells outcome number `index` from the others of the report, "growth leak=true seed 8": its
 * name, what it was run with, and where that is not enough which of those that are alike it is. */
enum { GMD_TITLE_TEXT = 448 };
const char *gmd_outcome_title(const gmd_report *report, size_t index, char text[GMD_TITLE_TEXT]);

/* The command that shows the case of a campaign's violation again. False: it is no campaign's, or
 * no case was written. */
bool gmd_report_replay(const gmd_report *report, const gmd_violation *violation, char *text,
                       size_t size);

/* Each writes the whole report to `out` and flushes it. GMD_FAILED: a write failed (a full disk);
 * part of the report may then be there. */
gmd_status gmd_report_json(const gmd_report *report, FILE *out, gmd_error *error);
gmd_status gmd_report_junit(const gmd_report *report, FILE *out, gmd_error *error);
gmd_status gmd_report_markdown(const gmd_report *report, FILE *out, gmd_error *error);
gmd_status gmd_report_sarif(const gmd_report *report, FILE *out, gmd_error *error);
gmd_status gmd_report_openmetrics(const gmd_report *report, FILE *out, gmd_error *error);
/* Only runs that have a timeline are in it. */
gmd_status gmd_report_perfetto(const gmd_report *report, FILE *out, gmd_error *error);
/* The first run that has a journal, as torch.cuda.memory._snapshot() would tell of it; where none
 * has, an empty snapshot. */
gmd_status gmd_report_snapshot(const gmd_report *report, FILE *out, gmd_error *error);

/* What a person sees at the end of `gmd run` and `gmd replay`. Write errors are left in
 * ferror(out). */
void gmd_report_terminal(const gmd_report *report, FILE *out, gmd_terminal terminal);

/* The same in parts, for runs that are shown as soon as they are over: outcome number `index`, and
 * what stands below all of them. `is_first`: nothing was shown before. Each flushes `out`. */
void gmd_report_terminal_run(const gmd_report *report, size_t index, bool is_first, FILE *out,
                             gmd_terminal terminal);
void gmd_report_terminal_end(const gmd_report *report, bool is_first, FILE *out,
                             gmd_terminal terminal);

#endif
