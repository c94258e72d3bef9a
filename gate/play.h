/* play.h - traces run for the item under way, which gets their runs and findings. */
#ifndef GMD_GATE_PLAY_H
#define GMD_GATE_PLAY_H

#include "state.h"

/* The settings of a trace; NULL: none. False: no host memory. */
bool gate_set_conf(gate_state *gate, gmd_trace *trace, const char *conf);

/* The battery's options with the settings of --conf, if any: for runs of no trace that has settings
 * of its own. */
gmd_run_options gate_options_as_given(const gate_state *gate);

/* What was to be run could not be: refused (GMD_BAD_INPUT), which the item notes; else the gate
 * fails, since it must not pass what it did not run. */
void gate_cannot_run(gate_state *gate, gmd_status status, const char *reason);

/* Closes it; what went wrong beside its runs is the gate's to tell. */
void gate_close_runner(gate_state *gate, gmd_runner *runner);

/* Runs the trace by itself. False: it was refused. */
bool gate_play(gate_state *gate, gmd_runner *runner, const gmd_trace *trace);

/* Runs many traces of the same header in few processes, and a suspect again by itself. */
void gate_play_persistent(gate_state *gate, gmd_runner *runner, gmd_persistent_input *traces,
                          size_t count);

#endif
