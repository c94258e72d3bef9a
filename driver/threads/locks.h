/* locks.h - the yield points of locks, condition variables and waiting by asking again, for
 * interpose.c. */
#ifndef GMD_LOCKS_H
#define GMD_LOCKS_H

#include <stdbool.h>

/* The calling thread is scheduled, in the allocator, and not inside of a CUDA call. */
bool scheduler_is_active(void);

/* Takes a lock with `attempt`, which returns EBUSY while another has it. `is_timed`: ETIMEDOUT when
 * nobody else can run any more. */
int scheduler_lock(void *object, int (*attempt)(void *object), bool is_timed);
int scheduler_try_lock(void *object, int (*attempt)(void *object));
int scheduler_unlock(void *object, int (*release)(void *object));

/* Waits for a signal with the mutex given back meanwhile. 0, or ETIMEDOUT when it is timed and
 * nobody else can run any more. */
int scheduler_wait_signal(void *condition, void *mutex, int (*release)(void *mutex),
                          int (*attempt)(void *mutex), bool is_timed);
/* From any thread: wakes one scheduled waiter, or all. */
void scheduler_signal(void *condition, bool is_for_all);

/* Only one scheduled thread at a time runs what is between these two; for pthread_once. */
void scheduler_begin_once(void *object);
void scheduler_end_once(void *object);

/* The thread asked to let others run (sched_yield, a sleep). False: nobody else can. */
bool scheduler_stand_back(void);

#endif
