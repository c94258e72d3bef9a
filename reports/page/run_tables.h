/* run_tables.h - the figures of runs and of a gate as tables of a page. */
#ifndef GMD_REPORTS_PAGE_RUN_TABLES_H
#define GMD_REPORTS_PAGE_RUN_TABLES_H

#include "document.h"

#include "gmd_report.h"

/* Runs, phases, bounds, oracles, notes: those that there is anything of. */
void tables_of_runs(document *to, const gmd_report *report, uint32_t input);

/* Parts, items and figures of its gate. */
void tables_of_gate(document *to, const gmd_gate_result *gate, uint32_t input);

#endif
