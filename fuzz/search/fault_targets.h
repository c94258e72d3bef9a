/* fault_targets.h - which calls of an allocator a random sequence can make fail: those that it was
 * seen to make, and that fail where memory, of the device or the host, runs out. */
#ifndef GMD_FAULT_TARGETS_H
#define GMD_FAULT_TARGETS_H

#include "gmd_profile.h"
#include "gmd_runner.h"

/* Runs a few requests with each of the space's settings, and adds the functions that the allocator
 * calls to the space. Settings that are refused add none. */
gmd_status fault_targets_find(gmd_profile_space *space, gmd_runner *runner, gmd_error *error);

#endif
