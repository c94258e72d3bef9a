/* findings.h - what is wrong, in sentences, each with the places in a page's views that show it. */
#ifndef GMD_REPORTS_PAGE_FINDINGS_H
#define GMD_REPORTS_PAGE_FINDINGS_H

#include "history.h"

/* A finding that is open: "id", "input", "title" and "kind" are there; the caller adds the others
 * and ends it with gmd_json_end(). */
gmd_json *finding_begin(document *to, uint32_t input, const char *title, const char *kind);

/* What a snapshot's diagnosis found, worst first, and then the out-of-memories of each device.
 * `histories` are those of its devices, in order. */
void findings_of_diagnosis(history *histories, const gmd_diagnosis *diagnosis, uint32_t input);

/* "train.py:37 in train" */
enum { PLACE_TEXT = 400 };
const char *place_text(const gmd_places *places, uint32_t frame, char text[PLACE_TEXT]);

#endif
