/* minimize_internal.h - what the steps of the minimiser share. */
#ifndef GMD_MINIMIZE_INTERNAL_H
#define GMD_MINIMIZE_INTERNAL_H

#include "minimize.h"

typedef struct gmd_minimizer {
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
} gmd_minimizer;

/* The candidate is `best` with the `count` requests in `spare` and, where `header` is not NULL, the
 * header lines of that. True: it shows the cause, and is the best now. */
bool gmd_minimizer_try(gmd_minimizer *m, size_t count, const gmd_trace *header);

/* Copies the requests of `best` to `spare`. */
void gmd_minimizer_begin(gmd_minimizer *m);

/* An interleaving under which the candidate seems to show the cause. */
bool gmd_minimizer_find_seed(gmd_minimizer *m, const gmd_trace *candidate, uint64_t *seed);

/* Each gives true where it changed something. */
bool gmd_minimizer_untangle(gmd_minimizer *m); /* interleaved threads: none, or for less long */
bool gmd_minimizer_drop(gmd_minimizer *m);     /* blocks and requests: fewer of them */
bool gmd_minimizer_simplify(gmd_minimizer *m); /* what is left: simpler */

#endif
