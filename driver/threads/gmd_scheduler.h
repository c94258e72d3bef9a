/* gmd_scheduler.h - seeded interleaving of host threads: several threads run requests at the same
 * time, but exactly one of them has the turn, and who gets it next is decided at each yield point,
 * by a seed or by an explicit list of choices. The same choices give the same interleaving, so that
 * a race between two calls of an allocator is reproduced from its seed.
 *
 * Yield points are the boundaries of requests, every CUDA call (before and after), and every
 * operation on a mutex, read-write lock or condition variable of pthread, which C++'s are made of.
 * interpose.c puts gmd's versions of those in front of the C library's: a thread that would block
 * gives its turn away instead and gets none until what it waits for may have happened. When no
 * thread can go on, that is a deadlock, and told as one.
 *
 * A thread that blocks or spins in another way is noticed by a watchdog, which takes its turn away
 * until it comes to a yield point again. From there on threads may run at the same time, and the
 * choices no longer decide everything: gmd_scheduler_lapses counts these cases.
 *
 * One scheduler at a time in a process. */
#ifndef GMD_SCHEDULER_H
#define GMD_SCHEDULER_H

#include "gmd_error.h"
#include "gmd_scheduler_config.h"

gmd_status gmd_scheduler_start(const gmd_scheduler_config *config, gmd_error *error);
/* After every thread has left. */
void gmd_scheduler_stop(void);

/* The calling thread is number `index` from now on; returns when all have joined and it has the
 * turn. */
void gmd_scheduler_join(unsigned index);
void gmd_scheduler_leave(void); /* it needs no turn any more */

/* A yield point of the caller's own. */
void gmd_scheduler_yield(void);

/* Gives the turn away until `is_ready`, which is asked with the turn held, says yes. */
void gmd_scheduler_wait(bool (*is_ready)(void *context, unsigned thread), void *context);
/* What such threads wait for may have happened. */
void gmd_scheduler_changed(void);

/* Yield points other than the above count only between these two: in the allocator under test. Out
 * of it, what the thread does is not interrupted. */
void gmd_scheduler_enter_subject(void);
void gmd_scheduler_leave_subject(void);

/* For gmd_sim_set_yield. */
void gmd_scheduler_at_call(void *context, const char *function, bool is_before);

/* How often a thread lost its turn because it blocked or spun out of sight. */
unsigned gmd_scheduler_lapses(void);

/* The process has threads that are neither scheduled nor the watchdog: the allocator's own, which
 * could give a signal or a lock back. */
bool gmd_scheduler_has_foreign_threads(void);

/* There is a scheduler in this process: whoever gives a signal must tell it. */
bool gmd_scheduler_is_on(void);

#endif
