/* request_place.h - where a session's request comes from: a line of the source, or what was
 * recorded of it. */
#ifndef GMD_DRIVER_REQUEST_PLACE_H
#define GMD_DRIVER_REQUEST_PLACE_H

#include "gmd_history.h"
#include "gmd_session_state.h"

/* What was recorded of the request under way; NULL: no history is replayed, or it is over. */
static inline const gmd_recorded *recorded_of(const gmd_session *s)
{
    const gmd_workload *w = s->workload;
    return w->recorded && s->request_index < w->trace->count ? &w->recorded[s->request_index]
                                                             : NULL;
}

/* The line or the origin (gmd_journal.h) of a request; NULL: of none. */
static inline uint32_t place_of_request(const gmd_session *s, const gmd_request *r)
{
    const gmd_recorded *recorded = recorded_of(s);
    if (s->workload->recorded) {
        return recorded ? recorded->origin : 0;
    }
    return r ? r->line : 0;
}

#endif
