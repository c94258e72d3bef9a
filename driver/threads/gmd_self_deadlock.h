/* gmd_self_deadlock.h - the allocator waits while nobody is there who could end the wait: a lock
 * that it left locked, or takes a second time. It is reported at once, rather than after a
 * time limit of twenty seconds.
 *
 * Only where requests run one after the other: while one is in the allocator, the driver's other
 * threads are idle, so that only threads of the allocator's own, or another process, could help.
 * Interleaved threads are the scheduler's (gmd_scheduler.h).
 *
 * Thread safety: what is entered belongs to the calling thread. */
#ifndef GMD_SELF_DEADLOCK_H
#define GMD_SELF_DEADLOCK_H

#include <stdbool.h>
#include <stddef.h>
#include <time.h>

typedef struct self_deadlock_watch {
    void *context;
    unsigned (*own_threads)(void *context); /* of the driver's, the calling one among them */
    /* What is waited for: "the lock at libx.so+0x40c0 (left locked, or taken twice)", and its name:
     * "libx.so+0x40c0", or "". Must not return. */
    void (*stuck)(void *context, const char *what, const char *name);
} self_deadlock_watch;

/* The calling thread is in the allocator, and nobody else is; `watch` must last until it is out. */
void self_deadlock_enter(const self_deadlock_watch *watch);
void self_deadlock_leave(void);

/* --- for interpose.c --------------------------------------------------------------------- */

bool self_deadlock_is_inside(void);

/* Until when a wait is left to itself: another process may give a lock back. CLOCK_MONOTONIC. */
struct timespec self_deadlock_patience(void);

/* That time is over. Returns where somebody else might help yet. `what`: "the lock"; `why`: " (left
 * locked, or taken twice)". */
void self_deadlock_waits(const char *what, const char *why, const void *object);

/* "libx.so+0x40c0": a name that is the same in every run; "" for what is in no library's data. */
void gmd_object_name(const void *object, char *text, size_t size);

/* "the lock at libx.so+0x40c0"; where it is in no library's data, "the lock". */
void name_object(const char *what, const void *object, char *text, size_t size);

#endif
