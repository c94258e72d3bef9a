/* gmd_check.h - replay --check: the allocator must do what was recorded.
 *
 * On the simulated device every address, every segment that was asked for or given back, in order,
 * every out-of-memory, the final segments and blocks, and the statistics that the recorder left
 * must be the recorded ones. On a real device addresses differ: there outcomes and statistics are
 * compared. */
#ifndef GMD_CHECK_H
#define GMD_CHECK_H

#include "gmd_check_input.h"
#include "gmd_session.h"

/* The body for gmd_workload: `context` is a gmd_check_input. Stops at the first difference. */
gmd_status gmd_check_history(void *context, gmd_session *session, gmd_error *error);

/* Why this history cannot be checked, as a complete message; GMD_OK when it can. */
gmd_status gmd_check_possible(const gmd_history *history, const gmd_snapshot *snapshot,
                              const char *name, gmd_error *error);

#endif
