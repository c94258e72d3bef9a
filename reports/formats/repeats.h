/* repeats.h - what repeated runs of one workload have in common and how far they are apart. */
#ifndef GMD_REPORTS_REPEATS_H
#define GMD_REPORTS_REPEATS_H

#include "gmd_json.h"
#include "gmd_report.h"

/* The array "repeats" of an open object: runs with other seeds; nothing where there are none. */
void repeats_json(gmd_json *json, const gmd_report *report);

/* The runs that the outcome is one of; NULL: it is one by itself. */
const gmd_repeat *repeat_of(const gmd_report *report, size_t outcome);

/* How many of the runs pass. */
size_t repeat_passes(const gmd_report *report, const gmd_repeat *repeat);

/* What an entry of "repeats" begins with: whose runs they are, how many and which. */
void repeat_head_json(gmd_json *json, const gmd_report *report, const gmd_repeat *repeat);

/* Whether the outcome is one of several runs and has no finding of its own: the statistics stand
 * for it. */
bool is_repeated(const gmd_report *report, size_t outcome);

/* A table of a workload's runs with other seeds: least, median and most. */
void repeat_terminal(const gmd_report *report, const gmd_repeat *repeat, FILE *out,
                     gmd_terminal terminal);

#endif
