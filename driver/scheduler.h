/* scheduler.h - seeded interleaving of host threads: several threads run requests at the same time,
 * but exactly one of them has the turn, and who gets it next is decided at each yield point, by a
 * seed or by an explicit list of choices. The same choices give the same interleaving, so that a
 * race between two calls of an allocator is reproduced from its seed.
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
#include "gmd_trace.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { GMD_DEADLOCK_LOCKS = 4, GMD_DEADLOCK_LOCK = 80 };

/* Which threads came into it, and by which requests, is chance: what stays is the locks. */
typedef struct gmd_deadlock {
    const char *sentence;                              /* who waits for whom */
    char locks[GMD_DEADLOCK_LOCKS][GMD_DEADLOCK_LOCK]; /* those that have names, in their order */
    unsigned lock_count;
    char waits[32]; /* "held,signal": for what, where no lock has a name */
} gmd_deadlock;

typedef struct gmd_scheduler_config {
    unsigned thread_count; /* 1 to GMD_MAX_THREADS */
    bool is_explicit;      /* by `choices`, else by the seed */
    /* Each yield point at which more than
     * one thread can run takes one byte, modulo their number: 0 goes on with the thread that has
     * the turn (or, if it cannot, with the next by index), 1 takes the next one by index, and so
     * on. When they are used up, each choice is 0. Kept by reference. */
    const uint8_t *choices;
    size_t choice_count;
    uint64_t seed;
    bool expects_lapses; /* the watchdog waits for milliseconds, as it else does after three */
    void *context;
    /* The thread has got the turn again. Called in that thread. May be NULL. */
    void (*resumed)(void *context, unsigned thread);
    /* Nobody can go on, `thread` among them. Must not return. */
    void (*deadlocked)(void *context, unsigned thread, const gmd_deadlock *deadlock);
    /* What the thread is doing, for that sentence: "alloc a 512 s1". */
    void (*describe)(void *context, unsigned thread, char *text, size_t size);
} gmd_scheduler_config;

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

/* --- for interpose.c --------------------------------------------------------------------- */

/* The calling thread is scheduled, in the allocator, and not inside of a CUDA call. */
bool gmd_scheduler_is_active(void);
/* There is a scheduler in this process: whoever gives a signal must tell it. */
bool gmd_scheduler_is_on(void);

/* Takes a lock with `attempt`, which returns EBUSY while another has it. `is_timed`: ETIMEDOUT when
 * nobody else can run any more. */
int gmd_scheduler_lock(void *object, int (*attempt)(void *object), bool is_timed);
int gmd_scheduler_try_lock(void *object, int (*attempt)(void *object));
int gmd_scheduler_unlock(void *object, int (*release)(void *object));

/* Waits for a signal with the mutex given back meanwhile. 0, or ETIMEDOUT when it is timed and
 * nobody else can run any more. */
int gmd_scheduler_wait_signal(void *condition, void *mutex, int (*release)(void *mutex),
                              int (*attempt)(void *mutex), bool is_timed);
/* From any thread: wakes one scheduled waiter, or all. */
void gmd_scheduler_signal(void *condition, bool is_for_all);

/* Only one scheduled thread at a time runs what is between these two; for pthread_once. */
void gmd_scheduler_begin_once(void *object);
void gmd_scheduler_end_once(void *object);

/* The thread asked to let others run (sched_yield, a sleep). False: nobody else can. */
bool gmd_scheduler_stand_back(void);

#endif
