/* recording.h - the requests of a scenario as a trace: recorded as if everything were served, so
 * that any allocator can be asked the same ones. */
#ifndef GMD_GATE_RECORDING_H
#define GMD_GATE_RECORDING_H

#include "state.h"

#include "gmd_scenario.h"

typedef struct scenario_recording {
    gmd_trace trace;
    uint64_t peak_bytes; /* of what is live at once, as asked for */
} scenario_recording;

/* Calls `visit` with each scenario that ships with gmd, opened, until the gate is over. */
void gate_each_scenario(gate_state *gate, void (*visit)(gate_state *gate, gmd_scenario *scenario));

/* On failure there is nothing to free. */
gmd_status recording_make(scenario_recording *recording, gmd_scenario *scenario,
                          const gmd_param *params, size_t param_count, uint64_t seed,
                          gmd_error *error);
void recording_free(scenario_recording *recording);

#endif
