/* rmm_log.h - the log that RMM's logging_resource_adaptor writes: a row of comma-separated values
 * for each allocation, each failure of one and each free.
 *
 * Format: rapidsai/rmm, cpp/src/mr/detail/logging_resource_adaptor_impl.cpp: "Thread,Time,Action,
 * Pointer,Size,Stream"; pointers and streams are hexadecimal, a null pointer is "(nil)", the time
 * is that of the day with microseconds behind a point (until 2021 behind a colon). */
#ifndef GMD_TRACE_RMM_LOG_H
#define GMD_TRACE_RMM_LOG_H

#include "gmd_error.h"
#include "gmd_snapshot.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Whether the first line is that of such a log. */
bool rmm_log_is(const uint8_t *data, size_t size);

/* GMD_BAD_INPUT: a row that is none; the message has its line. */
gmd_status rmm_log_parse(gmd_snapshot *snapshot, const uint8_t *data, size_t size, const char *name,
                         gmd_error *error);

#endif
