/* gmd_iterations.h - the iterations of a recorded job, found in its annotations or in the stream of
 * its requests.
 *
 * An iteration goes from its first moment up to the next one's. What comes before the first one is
 * set-up: models are built, data is loaded. The first iterations are warm-up: optimizers make their
 * state, libraries their workspaces. */
#ifndef GMD_ITERATIONS_H
#define GMD_ITERATIONS_H

#include "gmd_places.h"
#include "gmd_recording.h"

typedef enum gmd_iteration_source {
    GMD_ITERATIONS_UNKNOWN,     /* none were found */
    GMD_ITERATIONS_ANNOTATED,   /* by annotations that repeat: Optimizer.step */
    GMD_ITERATIONS_FROM_EVENTS, /* by requests that repeat */
} gmd_iteration_source;

typedef struct gmd_iterations {
    uint32_t *starts; /* moments, ascending: `count` of them, and behind them the end of the last */
    uint32_t count;
    bool has_rest; /* the last is none: what comes after the optimizer's last step, and is short */
    uint32_t warm_up; /* iterations until the program asks for the same in each */
    uint32_t other;   /* the first of another loop, after the optimizer's last step: an evaluation;
                         `count`: there is none */
    gmd_iteration_source source;
    uint32_t annotation;    /* a text of the origins: what it is named by */
    uint64_t period_events; /* of the device in an iteration, the median; 0: unknown */
} gmd_iterations;

gmd_status gmd_iterations_find(gmd_iterations *iterations, const gmd_recording *recording,
                               const gmd_places *places, gmd_error *error);
void gmd_iterations_free(gmd_iterations *iterations);

/* The iteration that a moment is in; GMD_SET_UP before the first, `count` after the last. */
#define GMD_SET_UP UINT32_MAX

/* How many a person would count. */
static inline uint32_t gmd_iterations_shown(const gmd_iterations *iterations)
{
    return iterations->count - iterations->has_rest;
}

uint32_t gmd_iteration_of(const gmd_iterations *iterations, uint32_t moment);

#endif
