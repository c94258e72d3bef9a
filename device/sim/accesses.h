/* accesses.h - what queued work touches. A kernel keeps its ranges until it completes, a few of
 * them without an allocation. */
#ifndef GMD_SIM_ACCESSES_H
#define GMD_SIM_ACCESSES_H

#include "entry.h"

bool accesses_keep(access_list *list, const gmd_sim_access *accesses, size_t count);
void accesses_drop(access_list *list);
/* The work runs now: on memory that is gone it breaks the device. */
void accesses_carry_out(const access_list *list, int device);
void device_break(int device);

#endif
