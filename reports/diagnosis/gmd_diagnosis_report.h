/* gmd_diagnosis_report.h - a diagnosis for a person, and as JSON. */
#ifndef GMD_DIAGNOSIS_REPORT_H
#define GMD_DIAGNOSIS_REPORT_H

#include "gmd_diagnosis.h"
#include "gmd_terminal.h"

#include <stdio.h>

typedef struct gmd_diagnosis_view {
    gmd_terminal terminal;
    int columns;     /* of the text; 80 where it does not go to a terminal */
    bool all_frames; /* stacks whole, those of libraries too */
    uint32_t rows;   /* of each table */
} gmd_diagnosis_view;

/* Writes what is wrong, its evidence, and who holds the memory. */
gmd_status gmd_diagnosis_write_text(const gmd_diagnosis *diagnosis, const gmd_diagnosis_view *view,
                                    FILE *out, gmd_error *error);

/* Writes what differs between several, the ranks of one job or times of it: their peaks, and the
 * lines that hold more in one than in another. At most GMD_COMPARED_MAX of them. */
gmd_status gmd_diagnosis_write_differences(const gmd_diagnosis *diagnoses, size_t count,
                                           const gmd_diagnosis_view *view, FILE *out,
                                           gmd_error *error);

/* Writes the diagnosis of one snapshot or several: docs/schema/diagnose.schema.json */
gmd_status gmd_diagnosis_write_json(const gmd_diagnosis *diagnoses, size_t count,
                                    const char *version, FILE *out, gmd_error *error);

#endif
