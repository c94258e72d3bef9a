/* interleave.h - a trace's threads carried out at the same time, in an interleaving that a seed
 * or explicit choices decide (gmd_scheduler.h).
 *
 * The order of a thread's own requests is kept, and so is the order of the requests on one block,
 * whichever threads make them: a program passes a block on only once it has it. What concerns all
 * threads (`destroy`, `fraction`, `budget`, `fault`) waits for all requests before it, and those
 * after it wait for it. Everything else may happen in any order.
 *
 * Only calls of the allocator under test overlap; what the driver itself does is never interrupted,
 * so that the session's state needs no lock. What belongs to the request under way is put aside
 * during such a call and back after it. While a request is under way in another thread, statistics
 * and figures of the device are not read (gmd_view.is_busy), and what is compared with before the
 * request is not (gmd_view.is_overlapped). */
#ifndef GMD_INTERLEAVE_H
#define GMD_INTERLEAVE_H

#include "gmd_session_state.h"

/* The body of gmd_play_trace for such a trace. When a violation is found while other requests are
 * under way, it ends the process: those cannot be taken back, and nothing after it counts. */
gmd_status play_interleaved(gmd_session *session, gmd_error *error);

#endif
