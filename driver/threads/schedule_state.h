/* schedule_state.h - the state of the scheduler (gmd_scheduler.h), which its files share:
 * scheduler.c, as threads come and go; turns.c, who has the turn; locks.c, what interpose.c asks
 * for; deadlock.c, who waits for whom; watchdog.c, threads that block or spin outside the
 * scheduler's control. */
#ifndef GMD_SCHEDULE_STATE_H
#define GMD_SCHEDULE_STATE_H

#include "gmd_random.h"
#include "gmd_scheduler_config.h"

#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <sys/types.h>
#include <time.h>

#define NOBODY   UINT32_MAX
#define HELD_MAX 64
#define NEVER    UINT64_MAX

typedef enum thread_state {
    THREAD_ABSENT,
    THREAD_READY,   /* could run */
    THREAD_RUNNING, /* has the turn */
    THREAD_BLOCKED,
    THREAD_ASTRAY, /* lost its turn to the watchdog: runs, or is blocked, out of our hands */
    THREAD_DONE,
} thread_state;

typedef enum wait_reason { FOR_LOCK, FOR_SIGNAL, FOR_REQUEST } wait_reason;

typedef struct scheduled_thread {
    thread_state state;
    wait_reason reason; /* BLOCKED */
    const void *object; /* BLOCKED for a lock or a signal */
    bool is_timed, has_timed_out;
    bool is_in_subject;
    gmd_stand stand;
    unsigned calls; /* of CUDA under way: a host function's are within another */
    sem_t turn;
    pid_t id;
    clockid_t clock;            /* of its processor time */
    const void *held[HELD_MAX]; /* locks, the latest last; beyond that many, none is named */
    unsigned held_count;
    gmd_random plain;  /* which plain accesses are yield points */
    unsigned accesses; /* yield points at accesses to memory since it got the turn */
} scheduled_thread;

/* Everything is under `lock`, a semaphore since the functions of mutexes are our callers. */
struct turn_state {
    scheduler_config config;
    scheduled_thread threads[GMD_MAX_THREADS];
    sem_t lock;
    unsigned current, last, joined; /* current: who has the turn, or NOBODY */
    gmd_random random;
    uint64_t
        keep_below; /* of 2^64: the thread that has the turn goes on for random numbers below */
    uint64_t plain_mask; /* one of mask + 1 plain accesses is a yield point; NEVER: none */
    size_t next_choice;
    uint64_t step; /* choices that were made, of bounded preemptions and PCT */
    uint64_t points[GMD_SCHEDULE_DEPTH_MAX];
    int64_t priorities[GMD_MAX_THREADS], lowest; /* PCT: the highest goes on */
    unsigned lapses;
    atomic_uint_fast64_t operations; /* moves whenever the turn's holder comes by */
    pthread_t watchdog;
    pid_t watchdog_id;
    sem_t ending; /* posted once: the watchdog is to end */
};

extern struct turn_state turn_state;
extern _Thread_local scheduled_thread *turns_me; /* NULL: not a scheduled thread */

static inline unsigned turns_index(const scheduled_thread *t)
{
    return (unsigned)(t - turn_state.threads);
}

void turns_wait_for(sem_t *semaphore);
void turns_lock(void);
void turns_unlock(void);

/* With the lock held: the scheduled thread that holds a lock; NULL: none does. */
const scheduled_thread *turns_holder(const void *object);
/* For assertions, with the lock held: whether exactly the thread that has the turn runs. The
 * sentence that does not hold; NULL: all does. turns_unlock asks. */
const char *turns_violation(void);
/* The process has threads that are neither scheduled nor the watchdog. */
bool turns_has_foreign_threads(void);

#endif
