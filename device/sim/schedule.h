/* schedule.h - what completes when. */
#ifndef GMD_SIM_SCHEDULE_H
#define GMD_SIM_SCHEDULE_H

#include "stream_table.h"

/* With GMD_SIM_EAGER, completes what can be. */
void schedule_eager(void);
/* At the begin of an API call: lets work complete where the schedule decides that now. */
void schedule_progress(void);
/* Time passes. */
void schedule_advance(uint64_t duration_ns);

/* Makes time pass until `s` is complete up to `ticket`, or until all of a group is. The host then
 * knows only what host_learn is told. Host functions run meanwhile, without the lock: what was
 * looked up before must be looked up again. */
void stream_force(stream *s, uint64_t ticket);
void streams_force_group(int device, stream_group group); /* -1: every device */
bool streams_are_idle(int device, stream_group group);

#endif
