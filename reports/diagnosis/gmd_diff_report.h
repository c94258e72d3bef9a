/* gmd_diff_report.h - two recordings, or results, side by side: what grew. */
#ifndef GMD_DIFF_REPORT_H
#define GMD_DIFF_REPORT_H

#include "gmd_comparison.h"
#include "gmd_diff_input.h"
#include "gmd_terminal.h"

#include <stdio.h>

/* A figure of either side, or of both. */
typedef struct gmd_diff_figure_row {
    const gmd_diff_figure *before, *after; /* NULL: it is not known there */
} gmd_diff_figure_row;

/* Both at their peaks, or at their ends. */
typedef struct gmd_diff {
    const gmd_diff_input *before, *after;
    gmd_comparison lines, stacks, categories; /* of the moment */
    gmd_diff_figure_row *figures;             /* those of the first, then what the second adds */
    size_t figure_count;
    bool is_of_end; /* else of the peak */
} gmd_diff;

/* The inputs must stay as long as the diff. */
gmd_status gmd_diff_make(gmd_diff *diff, const gmd_diff_input *before, const gmd_diff_input *after,
                         bool is_of_end, gmd_error *error);
void gmd_diff_free(gmd_diff *diff);

/* By how much allocated bytes grew; 0: they did not. */
uint64_t gmd_diff_growth(const gmd_diff *diff);

/* A table of at most `rows` rows on a screen; docs/schema/diff.schema.json; a table for a comment
 * in a code review. */
gmd_status gmd_diff_write_text(const gmd_diff *diff, uint32_t rows, gmd_terminal terminal,
                               FILE *out, gmd_error *error);
gmd_status gmd_diff_write_json(const gmd_diff *diff, const char *version, uint64_t threshold,
                               FILE *out, gmd_error *error);
gmd_status gmd_diff_write_markdown(const gmd_diff *diff, uint32_t rows, FILE *out,
                                   gmd_error *error);

#endif
