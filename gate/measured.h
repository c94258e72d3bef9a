/* measured.h - the figures of memory and speed: kept, and held against the baseline. */
#ifndef GMD_GATE_MEASURED_H
#define GMD_GATE_MEASURED_H

#include "state.h"

/* Before the first part and after the last one. */
gmd_status gate_open_baseline(gate_state *gate, gmd_error *error);
gmd_status gate_close_baseline(gate_state *gate, gmd_error *error);

/* Whether figures are wanted; where not, the part under way says why. */
bool gate_wants_figures(gate_state *gate);

/* A figure of the item under way. */
void gate_add_figure(gate_state *gate, const char *name, const char *unit, gmd_gate_span now);
/* None of the item's figures could be measured; those of the baseline are lost. */
void gate_lose_figures(gate_state *gate, const char *reason);

#endif
