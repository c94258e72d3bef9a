/* recording.h - the requests of a scenario as a trace: recorded as if everything were served, so
 * that any allocator can be asked the same ones. */
#ifndef GMD_GATE_RECORDING_H
#define GMD_GATE_RECORDING_H

#include "gate.h"

#include "gmd_scenario.h"

typedef struct gmd_gate_recording {
    gmd_trace trace;
    uint64_t peak_bytes; /* of what is live at once, as asked for */
} gmd_gate_recording;

/* Calls `visit` with each scenario that ships with gmd, opened, until the gate is over. */
void gmd_gate_each_scenario(gmd_gate *gate, void (*visit)(gmd_gate *gate, gmd_scenario *scenario));

/* On failure there is nothing to free. */
gmd_status gmd_gate_record(gmd_gate_recording *recording, gmd_scenario *scenario,
                           const gmd_param *params, size_t param_count, uint64_t seed,
                           gmd_error *error);
void gmd_gate_recording_free(gmd_gate_recording *recording);

#endif
