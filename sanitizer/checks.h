/* checks.h - verifications of all that a guard watches. */
#ifndef GMD_CHECKS_H
#define GMD_CHECKS_H

#include "guard_types.h"

/* Queues them, and waits for nothing. */
void guard_launch_checks(guard *g);

/* Verifies everything, waits for the devices, and gives the number of findings so far. */
uint64_t guard_check(guard *g);

#endif
