/* minimizer.h - what the steps of the minimiser share. */
#ifndef MINIMIZER_H
#define MINIMIZER_H

#include "gmd_cause.h"
#include "gmd_minimize_limits.h"
#include "gmd_runner.h"

typedef struct minimizer {
    gmd_trace *best; /* the smallest that shows the cause */
    gmd_runner *runner;
    const gmd_identity *cause;
    const gmd_minimize_limits *limits;
    gmd_minimized *result;
    double start;
    gmd_request *spare; /* the requests of the candidate; as many as `best` began with */
    bool is_over;       /* a limit was reached, or a run failed */
    gmd_status status;
    gmd_error *error;
} minimizer;

/* The candidate is `best` with the `count` requests in `spare` and, where `header` is not NULL,
 * under those conditions. True: it shows the cause, and is the best now. */
bool minimizer_try(minimizer *m, size_t count, const gmd_conditions *header);

/* False: the limits are reached, or it was interrupted. */
bool minimizer_may_try(const minimizer *m);

/* Tries `best` without these requests, and without those on these blocks, to which it adds what the
 * dropped requests allocate. What no pool then allows goes, too. */
bool minimizer_try_without(minimizer *m, const bool *drops_request, bool *drops_block);

/* Marks the requests of `best` in long runs of turns, for which there is room. That fewer turns do
 * not show the cause is known there: to drop them one by one would take as many tries. */
void minimizer_mark_counted(const minimizer *m, bool *is_counted);

/* Copies the requests of `best` to `spare`. */
void minimizer_begin(minimizer *m);

/* Each gives true where it changed something. */
bool minimizer_untangle(minimizer *m); /* interleaved threads: none, or for less long */
bool minimizer_count(minimizer *m);    /* what is repeated: fewer turns */
bool minimizer_drop(minimizer *m);     /* blocks and requests: fewer of them */
bool minimizer_simplify(minimizer *m); /* what is left: simpler */

#endif
