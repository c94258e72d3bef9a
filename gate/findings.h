/* findings.h - the findings of a gate: noted while its parts run, reported at its end. */
#ifndef GMD_GATE_FINDINGS_H
#define GMD_GATE_FINDINGS_H

#include "state.h"

/* Before the first part and after the last one. */
void gate_open_findings(gate_state *gate);
void gate_close_findings(gate_state *gate);

/* A run of `trace` ended with `violation`. */
void gate_add_finding(gate_state *gate, gmd_runner *runner, const gmd_trace *trace,
                      const gmd_violation *violation);
/* Whether it is found already; if so, it counts once more and needs no second look. */
bool gate_is_known(gate_state *gate, const gmd_violation *violation);
/* After others added to `found`: gives the new ones to the item under way. */
void gate_take_findings(gate_state *gate);

/* Writes them into the result: the worst first, each with the command that shows it again. */
void gate_write_findings(gate_state *gate);

#endif
