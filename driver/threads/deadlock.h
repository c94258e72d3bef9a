/* deadlock.h - who waits for whom, when nobody can go on. With the state's lock held. */
#ifndef GMD_DEADLOCK_H
#define GMD_DEADLOCK_H

#include "schedule_state.h"

/* The allocator has threads of its own that could end the wait. */
bool turns_may_be_freed_from_outside(const scheduled_thread *t);
/* Does not return. */
void turns_report_deadlock(void);

#endif
