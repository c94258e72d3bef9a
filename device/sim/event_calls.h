/* event_calls.h - nodes of a launched graph that record an event, or wait for one. */
#ifndef GMD_SIM_EVENT_CALLS_H
#define GMD_SIM_EVENT_CALLS_H

#include "stream_table.h"

int event_record_by_graph(cudaEvent_t handle, stream *s);
int event_wait_by_graph(cudaEvent_t handle, stream *s);

#endif
