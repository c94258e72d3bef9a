/* faults.h - an illegal access ends all that CUDA does in the process, and CUDA tells neither the
 * kernel nor the address. What is known of the work that was queued last, and of the blocks that
 * were freed last, is reported before the program notices. */
#ifndef GMD_FAULTS_H
#define GMD_FAULTS_H

#include "guard_state.h"
#include "launches.h"

struct recent_works *recent_works_create(void); /* NULL: no host memory */
void recent_works_destroy(struct recent_works *w);

/* Work that was queued, with the blocks whose addresses it has. */
void guard_note_work(guard *g, const launches_work *work);

/* Work of which order found that it uses a freed block. */
void guard_note_accused(guard *g, const finding *f);

/* A number for "all work so far", and that it is over, without an illegal access. */
uint64_t guard_works_so_far(guard *g);
void guard_works_are_over(guard *g, uint64_t so_far);

/* What CUDA answered: if it speaks of an illegal access, that is reported, once. */
void guard_see_result(guard *g, int device, int result, uint32_t stack);

#endif
