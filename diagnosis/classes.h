/* classes.h - the classes of what can be wrong, one file each: what it looks at, when it speaks,
 * and what it says. */
#ifndef GMD_DIAGNOSIS_CLASSES_H
#define GMD_DIAGNOSIS_CLASSES_H

#include "gmd_facts.h"
#include "gmd_job_finding.h"
#include "retention.h"

/* What all classes look at. */
typedef struct class_view {
    const gmd_facts *facts;
    const retention *retained;
} class_view;

/* A class looks, and fills in what it found but for its class: false: nothing is wrong of its kind.
 */
typedef bool class_look(const class_view *view, gmd_job_finding *finding);

class_look look_for_gradient_accumulation, look_for_retained_graph, look_for_hidden_state,
    look_for_eval_graph, look_for_reference_cycle, look_for_checkpoint_cache;

/* --- what several classes share (evidence.c) ------------------------------------------------- */

/* Whether a group grows from iteration to iteration and is never given back: a leak. */
bool group_grows(const class_view *view, const retained_group *group);

/* Adds a group's bytes to the finding, and its line to where they are, most bytes first. */
void blame_group(gmd_job_finding *finding, const class_view *view, const retained_group *group);
void blame_line(gmd_job_finding *finding, uint32_t frame, uint64_t bytes, bool is_inferred);

/* The user's line that led to a moment at which no frames were recorded: the last one before it. */
uint32_t line_before(const gmd_facts *facts, uint32_t moment);

__attribute__((format(printf, 2, 3))) void say_evidence(gmd_job_finding *finding,
                                                        const char *format, ...);
__attribute__((format(printf, 2, 3))) void say_fix(gmd_job_finding *finding, const char *format,
                                                   ...);

/* Whether blocks of a group were asked for by way of a file of a library. */
bool group_passes(const class_view *view, const retained_group *group, const char *file);

#endif
