/* gmd_inspect.h - what was seen inside a run, as tables and as JSON (scenarios/gmd_inspection.h).
 */
#ifndef GMD_REPORTS_INSPECT_H
#define GMD_REPORTS_INSPECT_H

#include "gmd_inspection.h"
#include "gmd_json.h"
#include "gmd_terminal.h"

/* The key "inspection" of an open object; nothing for NULL. */
void gmd_inspection_json(gmd_json *json, const gmd_inspection *inspection);

/* The tables that were asked for; nothing for NULL. */
void gmd_inspection_terminal(const gmd_inspection *inspection, FILE *out, gmd_terminal terminal);
void gmd_inspect_lines(const gmd_inspection *inspection, FILE *out, gmd_terminal terminal);
void gmd_inspect_timeline(const gmd_inspection *inspection, FILE *out, gmd_terminal terminal);
void gmd_inspect_tensors(const gmd_inspection *inspection, FILE *out, gmd_terminal terminal);
void gmd_inspect_retention(const gmd_inspection *inspection, FILE *out, gmd_terminal terminal);

#endif
