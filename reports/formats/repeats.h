/* repeats.h - what repeated runs of one workload have in common and how far they are apart. */
#ifndef GMD_REPORTS_REPEATS_H
#define GMD_REPORTS_REPEATS_H

#include "gmd_json.h"
#include "gmd_report.h"

/* The array "repeats" of an open object; nothing where nothing was repeated. */
void repeats_json(gmd_json *json, const gmd_report *report);

/* Whether the outcome is one of several runs and has no finding of its own: the statistics stand
 * for it. */
bool is_repeated(const gmd_report *report, size_t outcome);

/* A table for each workload: least, median and most. */
void repeats_terminal(const gmd_report *report, FILE *out, gmd_terminal terminal);

#endif
