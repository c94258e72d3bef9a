/* gmd_outcome.h - what one run found: the result model that the driver fills in and every report
 * writer reads. One outcome is one scenario, trace or history run once on one allocator.
 *
 * It is plain data of fixed size: the driver's child process writes it into memory shared with its
 * parent, so that what was found before a crash survives the crash. */
#ifndef GMD_OUTCOME_H
#define GMD_OUTCOME_H

#include "gmd_abi.h"
#include "gmd_error.h"
#include "gmd_kind.h"
#include "gmd_stated_bound.h"
#include "gmd_workspace_use.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#define GMD_VIOLATION_MAX 32
#define GMD_PHASE_MAX     2048
#define GMD_ORACLE_MAX    32
#define GMD_NOTE_MAX      16
#define GMD_BOUND_MAX     64

typedef enum gmd_verdict {
    GMD_PASS,  /* nothing wrong found */
    GMD_FAIL,  /* a violation, an unmet expectation, or a history that was not reproduced */
    GMD_ERROR, /* the run could not be carried out; `error` says why */
    /* "interrupted": the user ended it. What was found until then is there, the rest was not
     * judged; `error` says how far it came. */
    GMD_UNFINISHED,
} gmd_verdict;

typedef struct gmd_violation {
    char oracle[24];
    gmd_identity identity; /* what makes it the same defect as another one */
    uint64_t request; /* index from 0 of the request after which it showed; the count: at the end */
    bool is_at_end;   /* after the last request: in the clean-up, or with all given back */
    uint8_t device_number; /* that the oracle judged, counted from 1; 0: not known */
    char message[600];     /* for people */
    char case_path[256];   /* a .gmd file that replays it; empty when none was written */
    char limit[128];       /* the clauses of the contract beyond which only it shows, "largest,pool"
                              (gmd_limit.h); empty: it is within the contract, or nobody asked */
} gmd_violation;

/* When it showed, as the reports say it: "request 7", or "at the end". */
enum { GMD_MOMENT_TEXT = 32 };
static inline const char *gmd_violation_moment(const gmd_violation *violation,
                                               char text[GMD_MOMENT_TEXT])
{
    snprintf(text, GMD_MOMENT_TEXT, violation->is_at_end ? "at the end" : "request %" PRIu64,
             violation->request);
    return text;
}

typedef enum gmd_oracle_fate {
    GMD_ORACLE_PASSED,
    GMD_ORACLE_FAILED,
    GMD_ORACLE_SKIPPED
} gmd_oracle_fate;

/* What a run tells of what its oracles looked at and took. */
typedef enum gmd_costs {
    GMD_COSTS_IGNORED,
    GMD_COSTS_MEASURED, /* of this run */
    GMD_COSTS_SAMPLED   /* of many short runs: only their sum means anything */
} gmd_costs;

typedef struct gmd_oracle_result {
    char name[24];
    gmd_oracle_fate fate;
    char reason[160]; /* SKIPPED: what it could not see */
    uint64_t asked;   /* moments that it looked at; 0 also where nobody counted */
    double seconds;   /* that it took, as far as its moments were timed (gmd_judge.h) */
} gmd_oracle_result;

/* A named point of a scenario or history; bytes, as memory_allocated() and its kin give them. */
typedef struct gmd_phase {
    char label[64];
    uint64_t allocated, max_allocated, reserved, max_reserved;
    /* Where a scenario's workspaces are estimated: by how much less or more the peak of allocated
     * bytes, and the reserved bytes and their peak, may be. */
    uint64_t peak_less, peak_more, reserved_less, reserved_more;
} gmd_phase;

/* A deviation of the recorded version that the allocator kept to, and where it mattered. */
typedef struct gmd_check_quirk {
    char name[24];
    uint64_t count;        /* requests */
    uint64_t requests[16]; /* indices of the first ones */
} gmd_check_quirk;

/* replay --check: the allocator against what was recorded. */
typedef struct gmd_check {
    bool present;
    bool exact; /* every request, device event, the end state, and the statistics that were there */
    uint64_t requests, matched;
    bool is_cut_off; /* not exact only because a violation ended it, with no difference so far */
    uint64_t cut_off_at; /* then: the request that the violation came with */
    struct {
        bool present;
        uint64_t request; /* index from 0; `requests`: at the end */
        char what[32];    /* "address", "segment_alloc", "segment_free", "oom", "statistics",
                             "end_state" */
        char expected[200], got[200];
        char text[120]; /* the request as a line of .gmd */
    } first_difference;
    bool end_state_checked, statistics_checked;
    uint64_t device_events;    /* segment_alloc, segment_free and oom events compared */
    uint64_t blocks_compared;  /* of the final snapshot */
    uint64_t figures_compared; /* statistics: figures of NAME.json, or of the operations file */
    uint64_t limit_bytes;      /* the memory limit that was set; 0: none */
    bool limit_inferred;
    gmd_check_quirk quirks[8]; /* those that mattered */
    uint32_t quirk_count;
} gmd_check;

/* What the run has had until now: a known defect may show after that only (gmd_known.h). */
typedef struct known_context {
    char conf[4097];    /* the allocator's settings: as long as a trace may state them */
    char faults[8][40]; /* functions of the device that were made to fail; the first ones */
    uint32_t fault_count;
    bool has_destroyed;     /* a stream */
    bool has_second_device; /* a request on, or for, another device than the first */
    bool has_begun_pool;    /* or has_captured, which opens one */
    bool has_captured;
    bool has_left_error; /* of the program's own, for the allocator's calls to meet */
    bool is_spoilt;      /* by a known defect: what follows may be its consequence */
} known_context;

/* In three parts: whose outcome it is, what the run found as single values, and tables, of which a
 * run writes only what it counts. Each run begins with the second part as it was before the first
 * request: what is added there is set back without a line about it (child_begin_run). */
typedef struct gmd_outcome {
    char name[256];    /* scenario name or file name */
    char path[512];    /* the file that was run, as it was given; empty: none, or it is longer */
    char kind[16];     /* "scenario", "trace", "history" */
    char variant[128]; /* the parameters, "leak=true"; may be empty */
    uint64_t seed;
    char placement[32]; /* of the device's memory, where it was drawn: "seed 3"; else empty */

    gmd_verdict verdict;     /* the first of the second part */
    gmd_status error_status; /* GMD_ERROR, GMD_UNFINISHED: whose fault it is */
    char error[768];         /* likewise */
    bool is_cut_off; /* GMD_ERROR only: the time for many runs was over, and this was the last */
    uint64_t requests;
    uint64_t device_calls; /* cudaMalloc and cudaFree together; 0 where not seen */
    double seconds;        /* wall time of the requests, without start-up and reading the input */
    uint32_t faults_planted, faults_unfired; /* `fault` requests carried out; that hit no call */
    uint64_t known_count;      /* violations that are known (--known): not among the below */
    bool has_stats, has_pools; /* the allocator exports them */
    bool has_checkpoints, has_pool_options;
    gmd_stats stats;               /* before the final clean-up */
    uint64_t smallest_limit_bytes; /* that it runs in; 0: it was not looked for */
    gmd_workspace_use workspaces;  /* of a scenario */
    gmd_check check;
    known_context known_context;
    uint32_t violation_count, oracle_count, phase_count, bound_count, note_count;
    uint32_t phases_dropped; /* beyond GMD_PHASE_MAX */

    gmd_violation violations[GMD_VIOLATION_MAX]; /* the first of the third part */
    gmd_oracle_result oracles[GMD_ORACLE_MAX];
    gmd_phase phases[GMD_PHASE_MAX];
    gmd_stated_bound bounds[GMD_BOUND_MAX];
    char notes[GMD_NOTE_MAX][640]; /* what a reader should know: "limit inferred: 2560 MiB" */
} gmd_outcome;

/* What every command notes of violations that are known. */
static inline void gmd_outcome_note_known(gmd_outcome *o)
{
    if (o->known_count && o->note_count < GMD_NOTE_MAX) {
        snprintf(o->notes[o->note_count++], sizeof o->notes[0],
                 "%" PRIu64 " known violation%s not counted", o->known_count,
                 o->known_count == 1 ? "" : "s");
    }
}

/* What a run, or many, went on in spite of: a fork server that had to be started anew, and
 * processes of the library that outlived their run. */
static inline void gmd_outcome_note_troubles(gmd_outcome *o, uint64_t restarts,
                                             uint64_t left_behind)
{
    if (restarts && o->note_count < GMD_NOTE_MAX) {
        snprintf(o->notes[o->note_count++], sizeof o->notes[0],
                 "fork server restarted %" PRIu64 " time%s", restarts, restarts == 1 ? "" : "s");
    }
    if (left_behind && o->note_count < GMD_NOTE_MAX) {
        snprintf(o->notes[o->note_count++], sizeof o->notes[0],
                 "%" PRIu64 " process%s ended that the library had left behind", left_behind,
                 left_behind == 1 ? " was" : "es were");
    }
}

#endif
