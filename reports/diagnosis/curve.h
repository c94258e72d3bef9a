/* curve.h - allocated and reserved memory over time, in lines of characters. */
#ifndef GMD_REPORTS_CURVE_H
#define GMD_REPORTS_CURVE_H

#include "gmd_diagnosis_report.h"

/* Writes the curve of a device, with a mark where each iteration begins as far as they fit. */
gmd_status curve_put(const gmd_facts *facts, const gmd_diagnosis_view *view, FILE *out,
                     gmd_error *error);

#endif
