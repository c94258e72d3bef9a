/* gmd_diff_report.h - two snapshots side by side: what grew. */
#ifndef GMD_DIFF_REPORT_H
#define GMD_DIFF_REPORT_H

#include "gmd_comparison.h"
#include "gmd_diagnosis.h"

#include <stdio.h>

/* Two snapshots at their peaks, or at their ends. */
typedef struct gmd_diff {
    const gmd_diagnosis *before, *after;
    gmd_comparison lines, stacks, categories; /* of the moment */
    bool is_of_end;                           /* else of the peak */
} gmd_diff;

/* The devices with the highest peaks are compared. The diagnoses must stay as long as the diff. */
gmd_status gmd_diff_make(gmd_diff *diff, const gmd_diagnosis *before, const gmd_diagnosis *after,
                         bool is_of_end, gmd_error *error);
void gmd_diff_free(gmd_diff *diff);

/* By how much allocated bytes grew; 0: they did not. */
uint64_t gmd_diff_growth(const gmd_diff *diff);

/* A table of at most `rows` rows on a screen; docs/schema/diff.schema.json; a table for a comment
 * in a code review. */
gmd_status gmd_diff_write_text(const gmd_diff *diff, uint32_t rows, FILE *out, gmd_error *error);
gmd_status gmd_diff_write_json(const gmd_diff *diff, const char *version, uint64_t threshold,
                               FILE *out, gmd_error *error);
gmd_status gmd_diff_write_markdown(const gmd_diff *diff, uint32_t rows, FILE *out,
                                   gmd_error *error);

#endif
