/* gmd_contract_probe.h - finds out an allocator's contract (gmd_contract.h) by trying: for each
 * clause short sequences that tell its terms apart, from the strictest term on, until nothing is
 * found. What is found out is what the allocator does, which may be more than it promises, or a
 * defect: each term has what was seen with the stricter one, for a reader to decide.
 *
 * Simulated device only. Thread safety: one probe at a time. */
#ifndef GMD_CONTRACT_PROBE_H
#define GMD_CONTRACT_PROBE_H

#include "gmd_contract.h"
#include "gmd_driver.h"

enum { GMD_PROBE_TEXT = 300, GMD_PROBE_PROMISES = 16, GMD_PROBE_DEFECTS = 12 };

typedef enum gmd_promise_fate {
    GMD_PROMISE_KEPT,
    GMD_PROMISE_BROKEN,
    GMD_PROMISE_UNSEEN, /* its oracle could not look */
} gmd_promise_fate;

/* One promise that was tried (gmd_promise). */
typedef struct gmd_tried_promise {
    const char *name; /* "prompt"; NULL: there are no more */
    gmd_promise_fate fate;
    char why_not[GMD_PROBE_TEXT]; /* what was found, or what could not be seen */
} gmd_tried_promise;

typedef struct gmd_contract_probe {
    gmd_contract contract;
    char found[GMD_CLAUSE_COUNT][GMD_PROBE_TEXT]; /* with the stricter term; empty: nothing */
    bool is_open[GMD_CLAUSE_COUNT];               /* even the last term shows something */
    gmd_tried_promise promises[GMD_PROBE_PROMISES];
    char defects[GMD_PROBE_DEFECTS][GMD_PROBE_TEXT]; /* with requests that any contract allows, or
                                                        with each term of a clause; these count no
                                                        further */
    uint32_t defect_count;
    uint64_t runs;
} gmd_contract_probe;

/* `run`: the allocator, its settings, what is known of it, how long a request may take.
 * GMD_BAD_INPUT: it cannot be loaded, or its settings are refused. */
gmd_status gmd_contract_probe_run(const gmd_run_options *run, gmd_contract_probe *probe,
                                  gmd_error *error);

/* The profile, with what was seen in comments (probe_text.c). */
void gmd_contract_probe_write(const gmd_contract_probe *probe, const char *allocator, FILE *out);

#endif
