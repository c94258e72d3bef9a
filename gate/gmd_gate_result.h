/* gmd_gate_result.h - what `gmd gate` did and found: plain data that the report writers read.
 *
 * A gate has categories (correctness; memory and speed are to come), a category has parts, a part
 * has items: one case, one scenario, one kind of random sequences. */
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
    bool was_run; /* false: the gate ended before it, or it was not asked for */
} gmd_gate_part;

/* One cause. */
typedef struct gmd_gate_finding {
    gmd_violation violation; /* of the minimised case; case_path: its file, may be empty */
    char cause[256];         /* the message without what differs from run to run */
    char part[24], item[96]; /* that came upon it first */
    char replay[1024];       /* the command that shows it again */
    size_t case_requests;
    uint64_t hits;
    double seconds; /* since the gate began */
} gmd_gate_finding;

typedef struct gmd_gate_result {
    gmd_gate_part *parts;
    size_t part_count;
    gmd_gate_finding *findings; /* the worst first */
    size_t finding_count;
    gmd_oracle_result oracles[GMD_ORACLE_MAX]; /* which of them can judge this allocator */
    uint32_t oracle_count;
    double seconds;
    uint64_t seed;
    bool is_quick;
    char ended_early[240]; /* why not all of it was run; empty: all was */
} gmd_gate_result;

gmd_verdict gmd_gate_verdict(const gmd_gate_result *result);
gmd_verdict gmd_gate_part_verdict(const gmd_gate_part *part);
/* Sums over the items. */
uint64_t gmd_gate_part_runs(const gmd_gate_part *part);
uint64_t gmd_gate_part_requests(const gmd_gate_part *part);
double gmd_gate_part_seconds(const gmd_gate_part *part);
size_t gmd_gate_part_skipped(const gmd_gate_part *part);
/* Findings that the part came upon first. */
size_t gmd_gate_part_findings(const gmd_gate_result *result, const gmd_gate_part *part);

void gmd_gate_result_free(gmd_gate_result *result);

#endif
