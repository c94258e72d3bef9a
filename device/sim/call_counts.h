/* call_counts.h - how many calls of each function there were since the reset, and the faults that
 * are planted by these counts. */
#ifndef GMD_SIM_CALL_COUNTS_H
#define GMD_SIM_CALL_COUNTS_H

#include "call_record.h"

bool counts_add(sim_call *call); /* counts it; true: a planted fault answers it */
void counts_add_misuse(void);
void counts_reset(void); /* counts and faults */

#endif
