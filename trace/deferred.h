/* deferred.h - frees that waited for other streams: how a replay makes them wait as long.
 *
 * A snapshot does not hold the calls of record_stream, nor what the other streams did. But it has
 * the moment when each such free was completed: in an allocation, when the allocator looked whether
 * its events were done, or where a retry or an empty_cache() waited for all of them. A replay on
 * the simulated device can therefore put work of its own behind each of these blocks, on streams of
 * its own, that ends right before that allocation, or when it is waited for. */
#ifndef GMD_TRACE_DEFERRED_H
#define GMD_TRACE_DEFERRED_H

#include "free_runs.h"
#include "gmd_error.h"
#include "gmd_snapshot.h"

#include <stdbool.h>

typedef struct deferred_event {
    bool is_deferred;     /* free_requested that waited */
    bool is_awaited;      /* an allocation that completed such frees: the clock moves before it */
    bool is_emptied;      /* the last of those that an empty_cache() completed and nothing else */
    uint32_t helper;      /* is_deferred: the stream that the block waits for, from 0 */
    uint64_t duration_ns; /* is_deferred: of the work on it */
} deferred_event;

typedef struct deferred_plan {
    deferred_event *events; /* one for each event of the snapshot */
    uint32_t helper_count;
} deferred_plan;

#define DEFERRED_STEP_NS                                                                           \
    UINT64_C(1000) /* by which the clock moves before an awaited allocation                        \
                    */

/* The runs are those of the same snapshot. GMD_BAD_INPUT: frees were completed by nothing that does
 * so. */
gmd_status deferred_plan_make(deferred_plan *plan, const gmd_snapshot *snapshot,
                              const free_runs *runs, const char *name, gmd_error *error);
void deferred_plan_free(deferred_plan *plan);

#endif
