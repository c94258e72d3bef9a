/* gmd_scheduler.h - seeded interleaving of host threads: several threads run requests at the same
 * time, but exactly one of them has the turn, and who gets it next is decided at each yield point,
 * by a seed or by an explicit list of choices. The same choices give the same interleaving, so that
 * a race between two calls of an allocator is reproduced from its seed.
 *
 * Yield points are the boundaries of requests, every CUDA call (before and after), every operation
 * on a mutex, read-write lock or condition variable of pthread, which C++'s are made of, and, in a
 * library compiled with -fsanitize=thread, atomic operations and plain accesses to memory.
 * interpose.c puts gmd's versions of those in front of the C library's: a thread that would block
 * gives its turn away instead and gets none until what it waits for may have happened. When no
 * thread can go on, that is a deadlock, and reported as one.
 *
 * A thread that blocks or spins in another way is noticed by a watchdog, which takes its turn away
 * until it comes to a yield point again. From there on threads may run at the same time, and the
 * choices no longer decide everything: scheduler_lapses counts these cases.
 *
 * One scheduler at a time in a process. */
#ifndef GMD_SCHEDULER_H
#define GMD_SCHEDULER_H

#include "gmd_error.h"
#include "gmd_scheduler_config.h"
#include "gmd_tsan.h"

gmd_status scheduler_start(const scheduler_config *config, gmd_error *error);
/* After every thread has left. */
void scheduler_stop(void);

/* The calling thread is number `index` from now on; returns when all have joined and it has the
 * turn. */
void scheduler_join(unsigned index);
void scheduler_leave(void); /* it needs no turn any more */

/* A yield point of the caller's own. */
void scheduler_yield(void);

/* Gives the turn away until `is_ready`, which is asked with the turn held, says yes. */
void scheduler_wait(bool (*is_ready)(void *context, unsigned thread), void *context);
/* What such threads wait for may have happened. */
void scheduler_changed(void);

/* Yield points other than the above count only between these two: in the allocator under test. Out
 * of it, what the thread does is not interrupted. */
void scheduler_enter_subject(void);
void scheduler_leave_subject(void);

/* For gmd_sim_set_yield. */
void scheduler_at_call(void *context, const char *function, bool is_before);

/* For gmd_accesses_yield: atomic operations, and plain accesses as far as the seed takes them. */
void scheduler_at_access(const void *place, gmd_tsan_access access);

/* "at libpool.so+0x1a2c", "before or after cudaMalloc"; the same in every run. */
void scheduler_stand_text(const gmd_stand *stand, char *text, size_t size);

/* How often a thread lost its turn because it blocked or spun outside the scheduler's control. */
unsigned scheduler_lapses(void);

/* The process has threads that are neither scheduled nor the watchdog: the allocator's own, which
 * could give a signal or a lock back. */
bool scheduler_has_foreign_threads(void);

/* There is a scheduler in this process: whoever gives a signal must tell it. */
bool scheduler_is_on(void);

#endif
