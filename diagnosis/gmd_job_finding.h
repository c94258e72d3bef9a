/* gmd_job_finding.h - one thing that is wrong in a recorded job. */
#ifndef GMD_JOB_FINDING_H
#define GMD_JOB_FINDING_H

#include "gmd_places.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* One list: the classes of design.md section 8, in the order in which findings of equal bytes are
 * reported. */
#define GMD_FINDING_CLASSES(CLASS)                                                                 \
    CLASS(GRADIENT_ACCUMULATION, "gradient_accumulation")                                          \
    CLASS(RETAINED_GRAPH, "retained_graph")                                                        \
    CLASS(HIDDEN_STATE, "hidden_state")                                                            \
    CLASS(EVAL_GRAPH, "eval_graph")                                                                \
    CLASS(REFERENCE_CYCLE, "reference_cycle")                                                      \
    CLASS(CHECKPOINT_CACHE, "checkpoint_cache")                                                    \
    CLASS(FRAGMENTATION, "fragmentation")                                                          \
    CLASS(CACHED_NOT_RELEASED, "cached_not_released")                                              \
    CLASS(CROSS_STREAM_PENDING, "cross_stream_pending")                                            \
    CLASS(TRUE_CAPACITY, "true_capacity")

typedef enum gmd_finding_class {
#define GMD_FINDING_CLASS_NUMBER(name, text) GMD_FINDING_##name,
    GMD_FINDING_CLASSES(GMD_FINDING_CLASS_NUMBER)
#undef GMD_FINDING_CLASS_NUMBER
        GMD_FINDING_CLASS_COUNT
} gmd_finding_class;

enum { GMD_FINDING_TEXT = 400, GMD_FINDING_PLACES = 8 };

typedef struct gmd_finding_place {
    uint32_t frame;   /* of the origins; GMD_NO_PLACE */
    uint64_t bytes;   /* that it holds of what was found */
    bool is_inferred; /* no frames were recorded there: it is the line that led to it */
} gmd_finding_place;

typedef struct gmd_job_finding {
    gmd_finding_class class;
    double confidence;            /* 0 to 1 */
    uint64_t bytes;               /* held, or unusable, because of it, where it was most */
    bool is_of_ends;              /* what it counts is counted at the ends of iterations */
    uint64_t bytes_per_iteration; /* by which it grows; 0: it does not */
    gmd_finding_place where[GMD_FINDING_PLACES]; /* most to blame first */
    size_t where_count;
    char evidence[GMD_FINDING_TEXT]; /* a sentence with the figures that show it */
    char fix[GMD_FINDING_TEXT];      /* a line of code, and what it does */
} gmd_job_finding;

#endif
