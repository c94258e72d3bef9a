/* gmd_exhaustive.h - every sequence up to a length over a small alphabet (gmd_sequences.h), under
 * each schedule: what is not found so is not there, in that scope.
 *
 * Lengths come one after the other, so that a defect is found by as few requests as it needs. What
 * begins with requests that show a defect shows nothing else: such sequences are left out. The last
 * request's refusal is looked into; those of earlier ones were, in shorter sequences. */
#ifndef GMD_EXHAUSTIVE_H
#define GMD_EXHAUSTIVE_H

#include "gmd_findings.h"
#include "gmd_sequences.h"

#include <signal.h>

#define GMD_EXHAUSTIVE_SCHEDULES 3
#define GMD_EXHAUSTIVE_HANG_S    2 /* at most; a request of these takes microseconds */

typedef struct gmd_exhaustive_result {
    uint64_t runs;            /* sequences carried out, each once for every schedule */
    uint64_t sequences;       /* of them under the first schedule: different ones */
    uint64_t unreduced;       /* with every order and naming, up to the length */
    uint64_t states;          /* different ones seen of the allocator (gmd_persistent_result) */
    uint64_t cut;             /* sequences that show a defect: what begins so was left out */
    uint64_t unconfirmed;     /* runs that showed something only after others in one process */
    uint64_t requests, known; /* known: violations that did not count */
    double seconds;
    uint32_t length;      /* under way, or the last one */
    const char *schedule; /* likewise */
    bool is_complete;     /* neither interrupted nor out of time */
    bool is_interrupted;
    gmd_judged judged; /* what the oracles saw of it */
    gmd_alphabet alphabet;
} gmd_exhaustive_result;

typedef struct gmd_exhaustive_options {
    const gmd_run_options
        *run;           /* its capacity is the device's; its schedule, if any, the only one */
    uint32_t depth;     /* from 1 to GMD_SEQUENCE_MAX */
    bool with_pools;    /* the alphabet has private pools, where the allocator has them */
    bool with_captures; /* and captures into them, where it has pools */
    double seconds;     /* 0: no limit */
    const volatile sig_atomic_t *is_interrupted;
    void (*progress)(void *context, const gmd_exhaustive_result *so_far,
                     size_t findings); /* NULL: none */
    void *context;
} gmd_exhaustive_options;

/* GMD_BAD_INPUT: the allocator refuses the device or its settings. */
gmd_status gmd_exhaustive(const gmd_exhaustive_options *options, gmd_findings *findings,
                          gmd_exhaustive_result *result, gmd_error *error);

/* One sentence: what was proved, or how far it got. */
const char *gmd_exhaustive_statement(const gmd_exhaustive_result *result, size_t findings,
                                     uint32_t depth, char *text, size_t size);

#endif
