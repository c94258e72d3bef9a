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

typedef struct scheduler_config {
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
} scheduler_config;

#endif
