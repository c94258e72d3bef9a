/* gmd_space.h - makes any sequence one that a campaign allows: without what its options leave out,
 * and what the allocator or the device does not have. Thread safety: none is needed. */
#ifndef GMD_SPACE_H
#define GMD_SPACE_H

#include "gmd_profile.h"

/* Requests that the space has not are left out; devices, streams and threads beyond what is allowed
 * become others. An interleaving by choices becomes one by a seed: many inputs share a process. */
void gmd_space_fit(const gmd_profile_space *space, gmd_trace *trace);

/* Likewise the header: settings that the allocator is not known to take are left out, what the
 * campaign fixes is put in. */
gmd_status gmd_space_fit_header(const gmd_profile_space *space, gmd_conditions *header,
                                gmd_error *error);

/* Puts `header` (devices, memory, settings, schedule) in place of the trace's own,
 * and its requests onto the devices that are then there. */
gmd_status gmd_space_take_header(const gmd_profile_space *space, gmd_trace *trace,
                                 const gmd_conditions *header, gmd_error *error);

#endif
