/* parts.h - the parts of the battery, each in the file of its name. A part begins and ends its own
 * items. */
#ifndef GMD_GATE_PARTS_H
#define GMD_GATE_PARTS_H

#include "state.h"

void part_first(gate_state *gate);
void part_cases(gate_state *gate);
void part_scenarios(gate_state *gate);
void part_faults(gate_state *gate);
void part_random(gate_state *gate);
void part_exhaustive(gate_state *gate);
void part_rounds(gate_state *gate);
void part_memory(gate_state *gate);
void part_speed(gate_state *gate);

/* --deep: more items of "random" until the time is over. */
void part_random_more(gate_state *gate);

/* --rounds: one round from a file, the only item of "rounds". */
void part_rounds_of_file(gate_state *gate, const char *path);

#endif
