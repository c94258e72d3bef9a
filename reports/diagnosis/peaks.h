/* peaks.h - several snapshots at their peaks. */
#ifndef GMD_REPORTS_PEAKS_H
#define GMD_REPORTS_PEAKS_H

#include "gmd_comparison.h"
#include "gmd_diagnosis.h"

/* The snapshot with the highest peak; of equal ones the first. */
size_t peaks_highest(const gmd_diagnosis *diagnoses, size_t count);

/* Allocated bytes of the device with the highest peak; 0: nothing is in the snapshot. */
uint64_t peaks_bytes(const gmd_diagnosis *diagnosis);

/* Their lines side by side. A snapshot with nothing in it is GMD_BAD_INPUT. */
gmd_status peaks_compare(gmd_comparison *lines, const gmd_diagnosis *diagnoses, size_t count,
                         gmd_error *error);

#endif
