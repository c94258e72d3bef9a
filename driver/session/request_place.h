/* request_place.h - where a session's request comes from: a line of the source, or what was
 * recorded of it. */
#ifndef GMD_DRIVER_REQUEST_PLACE_H
#define GMD_DRIVER_REQUEST_PLACE_H

#include "gmd_history.h"
#include "gmd_session_state.h"

/* What was recorded of a request; NULL: no history is replayed, or it has no such request. */
static inline const gmd_recorded *recorded_of(const gmd_session *s, uint64_t request)
{
    const gmd_workload *w = s->workload;
    return w->recorded && request < w->trace->count ? &w->recorded[request] : NULL;
}

/* The line or the origin (gmd_journal.h) of the request under way; NULL: there is none. */
static inline uint32_t place_of_request(const gmd_session *s, const gmd_request *r)
{
    const gmd_recorded *recorded = recorded_of(s, s->request_index);
    if (s->workload->recorded) {
        return recorded ? recorded->origin : 0;
    }
    return r ? r->line : 0;
}

#endif
