/* gmd_diagnosis.h - what is wrong in a recorded job: history -> facts -> findings.
 *
 * gmd_facts holds what was read out of one device's events; each class of finding
 * (class_*.c, listed in classes.c) looks at the facts and says what it found. */
#ifndef GMD_DIAGNOSIS_H
#define GMD_DIAGNOSIS_H

#include "gmd_categories.h"
#include "gmd_error.h"
#include "gmd_holders.h"
#include "gmd_iterations.h"
#include "gmd_places.h"
#include "gmd_recording.h"

/* One list: the classes of design.md section 8, in the order in which findings of equal bytes are
 * told. */
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
    uint64_t bytes_per_iteration; /* by which it grows; 0: it does not */
    gmd_finding_place where[GMD_FINDING_PLACES]; /* most to blame first */
    size_t where_count;
    char evidence[GMD_FINDING_TEXT]; /* a sentence with the figures that show it */
    char fix[GMD_FINDING_TEXT];      /* a line of code, and what it does */
} gmd_job_finding;

/* All that was read out of one device's events. */
typedef struct gmd_facts {
    const gmd_snapshot *snapshot;
    gmd_places places;
    gmd_recording recording;
    gmd_iterations iterations;
    gmd_categories categories;
} gmd_facts;

gmd_status gmd_facts_make(gmd_facts *facts, const gmd_snapshot *snapshot, uint8_t device,
                          gmd_error *error);
void gmd_facts_free(gmd_facts *facts);

typedef struct gmd_job_findings { /* most bytes first; none: healthy */
    gmd_job_finding *items;
    size_t count;
} gmd_job_findings;

gmd_status gmd_job_findings_find(gmd_job_findings *findings, const gmd_facts *facts,
                                 gmd_error *error);
void gmd_job_findings_free(gmd_job_findings *findings);

const char *gmd_finding_class_name(gmd_finding_class class);

/* One device of a snapshot. */
typedef struct gmd_device_diagnosis {
    gmd_facts facts;
    gmd_job_findings findings;
} gmd_device_diagnosis;

/* A whole snapshot. The devices that have events or segments, the one with the highest peak first.
 */
typedef struct gmd_diagnosis {
    const char *name;      /* of the file, for people */
    gmd_snapshot snapshot; /* owned */
    gmd_device_diagnosis *devices;
    size_t device_count;
} gmd_diagnosis;

/* Reads and diagnoses a file; `path` must stay as long as the diagnosis. On failure it is empty. */
gmd_status gmd_diagnose(gmd_diagnosis *diagnosis, const char *path, gmd_error *error);
void gmd_diagnosis_free(gmd_diagnosis *diagnosis);

/* Findings of all devices. */
size_t gmd_diagnosis_finding_count(const gmd_diagnosis *diagnosis);

/* Whether the events explain all memory of a device. Where not, its peak is what it was while it
 * was recorded, and may have been higher before or after. */
static inline bool gmd_is_complete(const gmd_recording *r)
{
    return !r->begins_late && !r->ends_early && r->contradictions == 0;
}

#endif
