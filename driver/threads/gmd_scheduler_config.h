/* gmd_scheduler_config.h - what scheduler_start is given. */
#ifndef GMD_SCHEDULER_CONFIG_H
#define GMD_SCHEDULER_CONFIG_H

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

/* Where in the allocator a thread stands that could go on. */
typedef enum gmd_stand_kind {
    GMD_STANDS_AT_ENTRY,
    GMD_STANDS_AT_ACCESS, /* `at`: where the allocator's code goes on */
    GMD_STANDS_AT_LOCK,   /* `at`: the lock */
    GMD_STANDS_AT_CALL,   /* `at`: the name of a CUDA function */
} gmd_stand_kind;

typedef struct gmd_stand {
    gmd_stand_kind kind;
    const void *at;
} gmd_stand;

/* How the next thread is chosen: docs/interleaving.md has what each guarantees. */
typedef enum scheduler_policy {
    SCHEDULER_RANDOM,   /* by the seed: the turn passes on every now and then */
    SCHEDULER_EXPLICIT, /* by `choices` */
    SCHEDULER_BOUNDED,  /* by the seed: the turn passes on at `point_count` of the first `steps` */
    SCHEDULER_PCT,      /* by the seed: by priorities, which change at so many */
} scheduler_policy;

typedef struct scheduler_config {
    unsigned thread_count; /* 1 to GMD_MAX_THREADS */
    scheduler_policy policy;
    /* Each yield point at which more than
     * one thread can run takes one byte, modulo their number: 0 goes on with the thread that has
     * the turn (or, if it cannot, with the next by index), 1 takes the next one by index, and so
     * on. When they are used up, each choice is 0. Kept by reference. */
    const uint8_t *choices;
    size_t choice_count;
    uint64_t seed;
    unsigned point_count; /* at most GMD_SCHEDULE_DEPTH_MAX */
    uint64_t steps;       /* moments at which more than one thread can run */
    bool expects_lapses;  /* the watchdog waits for milliseconds, as it else does after three */
    void *context;
    /* The thread has got the turn again. Called in that thread. May be NULL. */
    void (*resumed)(void *context, unsigned thread);
    /* `from` lost the turn in the allocator though it could go on. With the scheduler's lock held:
     * it may note that, and no more. `to_stand`: NULL where `to` is not in the allocator. May be
     * NULL. */
    void (*preempted)(void *context, unsigned from, const gmd_stand *from_stand, unsigned to,
                      const gmd_stand *to_stand);
    /* Nobody can go on, `thread` among them. Must not return. */
    void (*deadlocked)(void *context, unsigned thread, const gmd_deadlock *deadlock);
    /* What the thread is doing, for that sentence: "alloc a 512 s1". */
    void (*describe)(void *context, unsigned thread, char *text, size_t size);
} scheduler_config;

#endif
