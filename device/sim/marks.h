/* marks.h - which of the harness's work wrote to physical memory last (gmd_sim_mark), by its place:
 * memory of cudaMalloc lies where its address says; physical memory that is mapped has a place of
 * its own beyond all addresses (marked_memory.h finds it). Off, and free of cost, until the harness
 * marks something; a reset switches them off. */
#ifndef GMD_SIM_MARKS_H
#define GMD_SIM_MARKS_H

#include <stdbool.h>
#include <stdint.h>

bool marks_are_on(void);
bool marks_are_known(void); /* on, and the host had memory for all of them */
void marks_start(void);
void marks_reset(void);

/* Places of physical memory that is not at an address of its own. */
uint64_t marks_new_place(uint64_t size);
void marks_forget(uint64_t from, uint64_t size); /* that memory is gone */

/* `mark` 0: something else was written there, or the memory is gone. */
void marks_write_places(uint64_t from, uint64_t to, uint64_t mark);
/* The first run of marked places that ends behind `place`; NULL: none. */
const struct gmd_interval *marks_run_after(uint64_t place);

#endif
