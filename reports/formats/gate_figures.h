/* gate_figures.h - the gate's categories in each format: the verdict of each, and of memory and
 * speed the figures that changed, the worst first. */
#ifndef GMD_REPORTS_GATE_FIGURES_H
#define GMD_REPORTS_GATE_FIGURES_H

#include "gmd_json.h"
#include "gmd_report.h"

/* Figures that are worse, with the commands that measure the first again and accept all. */
void gate_regressions_terminal(const gmd_gate_result *gate, FILE *out, gmd_terminal terminal);
/* A line for each category, and what there is to say of the baseline. */
void gate_categories_terminal(const gmd_gate_result *gate, FILE *out, gmd_terminal terminal);

void gate_categories_markdown(const gmd_gate_result *gate, FILE *out);

/* The keys "categories", "baseline" and "figures" of an open object. */
void gate_figures_json(gmd_json *json, const gmd_gate_result *gate);

/* The values of a figure's key "change", by gmd_gate_change; NULL is the end. */
extern const char *const gate_changes[];

/* <failure> and <system-out> of a test case whose figures are worse. */
void gate_figures_junit(const gmd_gate_result *gate, const gmd_gate_part *part,
                        const gmd_gate_item *item, FILE *out);

#endif
