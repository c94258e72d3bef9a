/* gmd_timeline_report.h - torch.profiler's memory timeline for a person, as JSON, and as one side
 * of a diff: how much memory there was, and what for. */
#ifndef GMD_TIMELINE_REPORT_H
#define GMD_TIMELINE_REPORT_H

#include "gmd_diagnosis_report.h"
#include "gmd_diff_input.h"
#include "gmd_memory_timeline.h"

/* `name`: of the file. */
gmd_status gmd_timeline_write_text(const gmd_memory_timeline *timeline, const char *name,
                                   const gmd_diagnosis_view *view, FILE *out, gmd_error *error);

/* docs/schema/diagnose.schema.json */
gmd_status gmd_timeline_write_json(const gmd_memory_timeline *timeline, const char *name,
                                   const char *version, FILE *out, gmd_error *error);

/* By category only: the file has no lines. On failure the input is empty. */
gmd_status gmd_timeline_compared(gmd_diff_input *input, const gmd_memory_timeline *timeline,
                                 const char *name, bool is_of_end, gmd_error *error);

#endif
