/* gmd_play.h - the body of a workload that is a trace. */
#ifndef GMD_PLAY_H
#define GMD_PLAY_H

#include "gmd_run_options.h"

/* Plays `workload.trace`; context is ignored. */
gmd_status gmd_play_trace(void *context, gmd_session *session, gmd_error *error);

#endif
