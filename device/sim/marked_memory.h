/* marked_memory.h - marks of memory by its address (marks.h). */
#ifndef GMD_SIM_MARKED_MEMORY_H
#define GMD_SIM_MARKED_MEMORY_H

#include "gmd_sim.h"

/* Work has written to the range; `mark` 0: it leaves none. */
void marks_write(uint64_t address, uint64_t size, uint64_t mark);
void marks_copy(uint64_t to, uint64_t from, uint64_t size);

/* As gmd_sim_find_mark. */
bool marks_find(uint64_t address, uint64_t size, uint64_t mark, gmd_sim_marked *out);

#endif
