/* gate.h - the gate's parts and findings in each format: what the writers of whole reports call
 * when there is a gate (report->gate). */
#ifndef GMD_REPORTS_GATE_H
#define GMD_REPORTS_GATE_H

#include "gmd_json.h"
#include "gmd_report.h"

/* How many items of the part have the reason or note of this one; 0: it has none, or an earlier one
 * has the same. */
size_t gate_detail_alike(const gmd_gate_part *part, size_t index);

void gate_terminal(const gmd_report *report, FILE *out, gmd_terminal terminal);
/* The whole document. */
void gate_junit(const gmd_report *report, FILE *out);
/* The values of its key "ended_by", by gmd_gate_end; NULL is the end. */
extern const char *const gate_ends[];
/* The key "gate" of an open object. */
void gate_json(gmd_json *json, const gmd_report *report);

#endif
