/* curve.h - memory over time, in lines of characters. */
#ifndef GMD_REPORTS_CURVE_H
#define GMD_REPORTS_CURVE_H

#include "gmd_diagnosis_report.h"

/* Writes the curve of a device, with a mark where each iteration begins as far as they fit. */
gmd_status curve_put(const gmd_facts *facts, const gmd_diagnosis_view *view, FILE *out,
                     gmd_error *error);

enum { CURVE_MOST_CELLS = 200 };

/* How many characters a curve has on a screen; 0: there is no room for one. */
int curve_cells(const gmd_diagnosis_view *view);

/* Writes one line: the highest value, and each value as a share of `highest`. One of 0 is as the
 * one before it. */
void curve_put_row(const char *label, const uint64_t *values, int cells, uint64_t highest,
                   const gmd_diagnosis_view *view, FILE *out);

#endif
