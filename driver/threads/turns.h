/* turns.h - the state of the scheduler (scheduler.h), and what its files share.
 *
 * scheduler.c: threads come and go; turns.c: who has the turn; locks.c: what interpose.c asks for;
 * deadlock.c: who waits for whom; watchdog.c: threads that block or spin out of sight. */
#ifndef GMD_TURNS_H
#define GMD_TURNS_H

#include "scheduler.h"

#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <sys/types.h>
#include <time.h>

#define GMD_NOBODY   UINT32_MAX
#define GMD_HELD_MAX 64

typedef enum gmd_thread_state {
    GMD_THREAD_ABSENT,
    GMD_THREAD_READY,   /* could run */
    GMD_THREAD_RUNNING, /* has the turn */
    GMD_THREAD_BLOCKED,
    GMD_THREAD_ASTRAY, /* lost its turn to the watchdog: runs, or is blocked, out of our hands */
    GMD_THREAD_DONE,
} gmd_thread_state;

typedef enum gmd_wait_reason { GMD_FOR_LOCK, GMD_FOR_SIGNAL, GMD_FOR_REQUEST } gmd_wait_reason;

typedef struct gmd_turns_thread {
    gmd_thread_state state;
    gmd_wait_reason reason; /* BLOCKED */
    const void *object;     /* BLOCKED for a lock or a signal */
    bool is_timed, has_timed_out;
    bool is_in_subject;
    unsigned calls; /* of CUDA under way: a host function's are within another */
    sem_t turn;
    pid_t id;
    clockid_t clock;                /* of its processor time */
    const void *held[GMD_HELD_MAX]; /* locks, the latest last; beyond that many, none is named */
    unsigned held_count;
} gmd_turns_thread;

/* Everything is under `lock`, a semaphore since the functions of mutexes are our callers. */
struct gmd_turns {
    gmd_scheduler_config config;
    gmd_turns_thread threads[GMD_MAX_THREADS];
    sem_t lock;
    unsigned current, last, joined; /* current: who has the turn, or GMD_NOBODY */
    uint64_t random;
    uint64_t
        keep_below; /* of 2^64: the thread that has the turn goes on for random numbers below */
    size_t next_choice;
    unsigned lapses;
    atomic_uint_fast64_t operations; /* moves whenever the turn's holder comes by */
    pthread_t watchdog;
    pid_t watchdog_id;
    sem_t ending; /* posted once: the watchdog is to end */
};

extern struct gmd_turns gmd_turns;
extern _Thread_local gmd_turns_thread *gmd_turns_me; /* NULL: not a scheduled thread */

static inline unsigned gmd_turns_index(const gmd_turns_thread *t)
{
    return (unsigned)(t - gmd_turns.threads);
}

void gmd_turns_wait_for(sem_t *semaphore);
void gmd_turns_lock(void);
void gmd_turns_unlock(void);

/* turns.c; with the lock held. */
void gmd_turns_seed(uint64_t seed);
size_t gmd_turns_choose(size_t count, bool first_can_go_on); /* one of `count` */
/* Decides who has the turn next; `caller`, the calling thread or NULL, needs no wake-up. */
void gmd_turns_pass(const gmd_turns_thread *caller);
/* All that wait for the object (NULL: any) try again; who is first is a choice like any other. */
void gmd_turns_wake(gmd_wait_reason reason, const void *object);
/* These give the lock back, and return when `t`, the calling thread, has the turn. */
void gmd_turns_seek(gmd_turns_thread *t);
void gmd_turns_block(gmd_turns_thread *t, gmd_wait_reason reason, const void *object,
                     bool is_timed);
void gmd_turns_yield(gmd_turns_thread *t); /* called without the lock */

/* deadlock.c; with the lock held. */
const gmd_turns_thread *gmd_turns_holder(const void *object);
/* The allocator has threads of its own that could end the wait. */
bool gmd_turns_may_be_freed_from_outside(const gmd_turns_thread *t);
void gmd_turns_report_deadlock(void);

void *gmd_turns_watch(void *unused); /* watchdog.c: a thread's body */

#endif
