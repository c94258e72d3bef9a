/* gmd_gate_result.h - what `gmd gate` did and found: plain data that the report writers read.
 *
 * A gate has categories (correctness, memory, speed), a category has parts, a part has items: one
 * case, one scenario, one kind of random sequences, one benchmark. Correctness has findings; memory
 * and speed have figures, which are held against those of a baseline. */
#ifndef GMD_GATE_RESULT_H
#define GMD_GATE_RESULT_H

#include "gmd_outcome.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum gmd_gate_fate {
    GMD_GATE_PASSED,
    GMD_GATE_FAILED,  /* it came upon a finding, its own or one of an earlier item */
    GMD_GATE_SKIPPED, /* not run: `detail` says why */
} gmd_gate_fate;

typedef struct gmd_gate_item {
    char name[96];
    int fate;         /* gmd_gate_fate */
    char detail[240]; /* SKIPPED: the reason; otherwise what a reader should know, mostly empty */
    uint64_t runs, requests;
    double seconds;
    uint64_t hits; /* runs that ended with a finding */
} gmd_gate_item;

typedef struct gmd_gate_part {
    const char *name;     /* "cases" */
    const char *category; /* "correctness" */
    const char *what;     /* one line for people */
    gmd_gate_item *items;
    size_t item_count, item_capacity;
    bool was_run; /* false: the gate ended before it, it was not asked for, or had nothing to run */
    char reason[240]; /* not run: why, where it is known */
} gmd_gate_part;

typedef enum gmd_gate_change {
    GMD_GATE_UNJUDGED, /* the baseline has no such figure, or there is none */
    GMD_GATE_SAME,     /* or within what measuring varies by */
    GMD_GATE_BETTER,
    GMD_GATE_WORSE,
    GMD_GATE_LOST, /* the baseline has it, and now it could not be measured: `detail` */
} gmd_gate_change;

typedef struct gmd_gate_span { /* low and high are value's own where it is exact */
    double value, low, high;
} gmd_gate_span;

/* Less is better, always. */
typedef struct gmd_gate_figure {
    char category[16];         /* "memory", "speed": the part's name, too */
    char item[96];             /* "scenarios/gpt/ample"; no white space */
    char name[24];             /* "peak_reserved" */
    char unit[16];             /* "B", "ppm", "calls", "instructions", "ratio" */
    gmd_gate_span now, before; /* before: of the baseline; 0 for UNJUDGED */
    gmd_gate_change change;
    double excess;    /* share of `before` that there is more of now; below 0: less */
    char detail[120]; /* LOST: why */
} gmd_gate_figure;

#define GMD_GATE_NOTE_MAX    8
#define GMD_GATE_COMMAND_MAX 4400 /* with an item */

typedef struct gmd_gate_against { /* the baseline; all empty: there is none */
    char path[512];
    bool was_written;    /* --update-baseline */
    char commands[4096]; /* "gmd gate --allocator ... --baseline ...": what is added makes one
                            figure again, or accepts what there is */
    char notes[GMD_GATE_NOTE_MAX][320];
    size_t note_count;
} gmd_gate_against;

/* One cause. */
typedef struct gmd_gate_finding {
    gmd_violation violation;       /* of the minimised case; case_path: its file, may be empty */
    char cause[GMD_IDENTITY_TEXT]; /* what the defect is called (gmd_identity_print) */
    char part[24], item[96];       /* that came upon it first */
    char replay[4096];             /* the command that shows it again */
    size_t case_requests;
    char
        unfinished[128]; /* why the case may be larger than it need be; empty: it is the smallest */
    uint64_t hits;
    double seconds; /* since the gate began */
} gmd_gate_finding;

typedef enum gmd_gate_end {
    GMD_GATE_ENOUGH,      /* all was run, or enough was found */
    GMD_GATE_INTERRUPTED, /* by the user */
    GMD_GATE_BROKEN,      /* by a failure of gmd or of the machine */
} gmd_gate_end;

typedef struct gmd_gate_result {
    gmd_gate_part *parts;
    size_t part_count;
    gmd_gate_finding *findings; /* the worst first */
    size_t finding_count;
    gmd_gate_figure *figures; /* by category; of one, the worst first */
    size_t figure_count, figure_capacity;
    gmd_gate_against baseline;
    gmd_oracle_result oracles[GMD_ORACLE_MAX]; /* which of them can judge this allocator, and what
                                                  they looked at and took in all runs */
    uint32_t oracle_count;
    double seconds;
    uint64_t seed;
    uint64_t known_count; /* violations that are known (--known): no findings */
    uint64_t restarts;    /* of fork servers that were gone (gmd_fork_server.h) */
    uint64_t left_behind; /* processes of the library that had to be ended */
    bool is_quick;
    char ended_early[240]; /* why not all of it was run; empty: all was */
    gmd_gate_end ended_by; /* likewise, in one word */
} gmd_gate_result;

/* GMD_UNFINISHED: it was interrupted, GMD_ERROR: gmd or the machine failed, whatever was found
 * until then; GMD_ERROR also: it ended before all was judged, and found nothing until then. */
gmd_verdict gmd_gate_verdict(const gmd_gate_result *result);
gmd_verdict gmd_gate_part_verdict(const gmd_gate_part *part);
/* "correctness", "memory", "speed", in this order; NULL: there are no more. */
const char *gmd_gate_category(size_t index);
/* `*was_run`: any part of it was. */
gmd_verdict gmd_gate_category_verdict(const gmd_gate_result *result, const char *category,
                                      bool *was_run);
bool gmd_gate_is_regression(const gmd_gate_figure *figure);
/* The share of `before` that there is more of now; where that was 0, how much there is. */
double gmd_gate_excess(gmd_gate_span now, gmd_gate_span before);
/* Figures of the category with that change; of the part's item, too, where `item` is not NULL. */
size_t gmd_gate_figures(const gmd_gate_result *result, const char *category, const char *item,
                        gmd_gate_change change);
/* WORSE and LOST together. */
size_t gmd_gate_regressions(const gmd_gate_result *result, const char *category, const char *item);

/* "peak_reserved 2.1 GiB, was 1.8 GiB (+16.7 %)"; in `text`. */
const char *gmd_gate_figure_text(const gmd_gate_figure *figure, char *text, size_t size);
/* The command that measures the figure again. */
const char *gmd_gate_figure_command(const gmd_gate_result *result, const gmd_gate_figure *figure,
                                    char *text, size_t size);

/* Sums over the items. */
uint64_t gmd_gate_part_runs(const gmd_gate_part *part);
uint64_t gmd_gate_part_requests(const gmd_gate_part *part);
double gmd_gate_part_seconds(const gmd_gate_part *part);
size_t gmd_gate_part_skipped(const gmd_gate_part *part);
/* Findings that the part came upon first. */
size_t gmd_gate_part_findings(const gmd_gate_result *result, const gmd_gate_part *part);

/* The gate as one run, for reports that know of runs only. `outcome` is empty before. */
void gmd_gate_outcome(const gmd_gate_result *result, gmd_outcome *outcome);

void gmd_gate_result_free(gmd_gate_result *result);

#endif
