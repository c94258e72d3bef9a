/* results.h - the outcomes of one command, and where they go: terminal, JSON, JUnit, Markdown. */
#ifndef GMD_CLI_RESULTS_H
#define GMD_CLI_RESULTS_H

#include "options.h"

#include "gmd_gate_result.h"
#include "gmd_page.h"
#include "gmd_report.h"

typedef struct cli_results {
    gmd_outcome **items;
    gmd_inspection **inspections; /* what was seen inside each; NULL: nothing */
    gmd_timeline **timelines;     /* of each run; NULL: none was kept */
    gmd_journal **journals;       /* likewise */
    gmd_case_listing **listings;  /* of each, its cases (gmd_report.h); NULL: none */
    gmd_snapshot recorded;        /* the history that the runs replay */
    bool has_recorded;
    bool keeps_timelines, keeps_journals;
    bool holds_one_run;   /* --snapshot: a second one is refused */
    uint64_t kept_events; /* of all journals */
    const cli_options *options;
    const char *command; /* as the reports name it */
    const char *const
        *inputs; /* paths of all that is to be run, of which names are made; or NULL */
    size_t input_count;
    bool hides_passes; /* on the terminal: statistics come in their place */
    size_t count, capacity;
    size_t told; /* outcomes that the terminal has shown, or is not to show */
    bool has_shown;
    gmd_repeat *repeats;
    size_t repeat_count, repeat_capacity;
    const gmd_campaign_moment *course; /* of `gmd fuzz`; NULL: none */
    size_t course_length;
    gmd_coverage coverage[GMD_COVERAGE_MAX]; /* likewise */
    size_t coverage_count;
    gmd_campaign_finding
        *found; /* of the violations of the one outcome of `gmd fuzz`; NULL: none */
    size_t found_count;
    const char *speaker;         /* whom errors name: the command; NULL: the one that is reported */
    const gmd_gate_result *gate; /* of `gmd gate`; NULL: it is another command */
    const char *replay_options;  /* of a campaign (gmd_report.h); NULL: it is none */
    double hang_s;               /* likewise */
    const gmd_rerun *reruns;     /* of what it or a campaign found; NULL: none */
    size_t rerun_count;
} cli_results;

/* Empty; what is kept of each run is what the reports asked for need. The options must outlive it.
 */
void cli_results_open(cli_results *results, const cli_options *options, const char *command);

/* The latest run is over, and nothing is added to it any more: the terminal shows it at once, so
 * that a command that is killed has told what it found. */
void cli_results_done(cli_results *results);

/* The history that the runs replayed; taken over, for reports that show where its requests came
 * from. */
void cli_results_recorded(cli_results *results, gmd_snapshot *recorded);

/* What was seen inside the latest run; taken over. */
void cli_results_inspected(cli_results *results, gmd_inspection *inspection);

/* The outcomes from number `first` on are of the same workload with other seeds; or, where they are
 * `of_placements`, the first with rising addresses and the others in drawn orders of them. */
gmd_status cli_results_repeated(cli_results *results, size_t first, bool of_placements,
                                gmd_error *error);

/* A class of what a campaign is to bring about, and how many of it were seen. */
void cli_results_cover(cli_results *results, const char *what, uint64_t seen);

/* An outcome of its own, empty; NULL: no memory. */
gmd_outcome *cli_results_add(cli_results *results, const char *name, const char *kind);

/* Keeps a failure that came before any run as an outcome of its own, so that the reports tell of
 * it. */
void cli_results_add_error(cli_results *results, const char *name, const char *kind,
                           gmd_status status, const gmd_error *error);

/* The same where `status` is a failure; an interrupted run says so itself. */
void cli_results_end(cli_results *results, const char *name, gmd_status status,
                     const gmd_error *error);

/* Writes all reports that were asked for and returns the exit status: 3 or 2 for runs that could
 * not be carried out, 1 for findings, 0. One that cannot be written is told, and 3; the others are
 * written all the same. */
int cli_results_report(cli_results *results);

/* Adds what was run to a page, and says on standard error what could not be run. GMD_BAD_INPUT:
 * nothing was, as it could not be read, and nothing is added. */
gmd_status cli_results_add_to_page(const cli_results *results, gmd_page *page, int *exit_status,
                                   gmd_error *error);

/* Writes the other reports of a result that was read (gmd_result_file.h); the exit status is that
 * of its runs. */
int cli_results_rewrite(gmd_report report, const cli_options *options);

void cli_results_free(cli_results *results);

#endif
