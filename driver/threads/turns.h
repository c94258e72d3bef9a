/* turns.h - who has the turn. With the state's lock held, but where it says otherwise. */
#ifndef GMD_TURNS_H
#define GMD_TURNS_H

#include "schedule_state.h"

/* Decides who has the turn next; `caller`, the calling thread or NULL, needs no wake-up. */
void turns_pass(const scheduled_thread *caller);
/* All that wait for the object (NULL: any) try again; who is first is a choice like any other. */
void turns_wake(wait_reason reason, const void *object);
/* These give the lock back, and return when `t`, the calling thread, has the turn. */
void turns_seek(scheduled_thread *t);
void turns_block(scheduled_thread *t, wait_reason reason, const void *object, bool is_timed);
void turns_yield(scheduled_thread *t); /* called without the lock */

#endif
