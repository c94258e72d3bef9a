/* pprof.h - a heap profile in pprof's format, as jax.profiler.device_memory_profile() and others
 * write it (gmd_pprof.h): who holds how much memory now, by stack. */
#ifndef GMD_TRACE_PPROF_H
#define GMD_TRACE_PPROF_H

#include "gmd_error.h"
#include "gmd_snapshot.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Whether it begins as such a profile does, with what its samples count. */
bool pprof_is(const uint8_t *data, size_t size);

/* Each sample becomes as many blocks as it counts, one after the other in a segment for each
 * device. `user_metadata` has the label "kind" (JAX: "buffer", "executable"). GMD_BAD_INPUT: it is
 * damaged, has no sample type in bytes, or refers to what is not there; the message has the byte.
 */
gmd_status pprof_parse(gmd_snapshot *snapshot, const uint8_t *data, size_t size, const char *name,
                       gmd_error *error);

#endif
