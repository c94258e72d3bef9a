/* marks.h - which of the harness's work wrote to memory last (gmd_sim_mark). Off, and free of cost,
 * until the harness marks something; a reset switches them off. */
#ifndef GMD_SIM_MARKS_H
#define GMD_SIM_MARKS_H

#include "state.h"

bool marks_are_on(void);
void marks_start(void);
void marks_reset(void);

/* Work has written to the range; `mark` 0: it leaves none. */
void marks_write(uint64_t address, uint64_t size, uint64_t mark);
void marks_copy(uint64_t to, uint64_t from, uint64_t size);

/* Places of physical memory that is not at an address of its own. */
uint64_t marks_new_place(uint64_t size);
void marks_forget(uint64_t from, uint64_t size); /* that memory is gone */

/* virtual_memory.c: the place of what is mapped at `address` of a reservation, and how much of
 * `size` lies in one run there. False: nothing is. */
bool virtual_place(const allocation *a, uint64_t address, uint64_t size, uint64_t *at,
                   uint64_t *length);

#endif
