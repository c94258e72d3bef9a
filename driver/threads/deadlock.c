/* deadlock.c - who waits for whom, when nobody can go on. */
#include "deadlock.h"

#include "gmd_self_deadlock.h"

#include <stdio.h>
#include <string.h>

#define SENTENCE_BYTES 560

bool turns_may_be_freed_from_outside(const scheduled_thread *t)
{
    switch (t->reason) {
    case FOR_LOCK:
        return !turns_holder(t->object) && turns_has_foreign_threads();
    case FOR_SIGNAL:
        return turns_has_foreign_threads();
    default:
        return false;
    }
}

/* A lock in a library's data has a name that is the same in every run; others are numbered. */
static void name_lock(const void *object, const void **numbered, size_t *count, char *text,
                      size_t size)
{
    name_object("the lock", object, text, size);
    if (strchr(text, '+')) {
        return;
    }
    size_t i = 0;
    while (i < *count && numbered[i] != object) {
        i++;
    }
    numbered[i] = object;
    *count = i == *count ? i + 1 : *count;
    snprintf(text, size, "lock %zu", i + 1);
}

/* Kept in the order of their names, each once. */
static void note_lock(gmd_deadlock *d, const char *lock)
{
    unsigned i = 0;
    while (i < d->lock_count && strcmp(d->locks[i], lock) < 0) {
        i++;
    }
    bool is_there = i < d->lock_count && strcmp(d->locks[i], lock) == 0;
    if (!is_there && d->lock_count < GMD_DEADLOCK_LOCKS) {
        memmove(d->locks + i + 1, d->locks + i, (d->lock_count - i) * sizeof d->locks[0]);
        snprintf(d->locks[i], sizeof d->locks[i], "%s", lock);
        d->lock_count++;
    }
}

typedef enum wait_kind {
    WAIT_HELD,
    WAIT_LEFT,
    WAIT_OWN,
    WAIT_SIGNAL,
    WAIT_UNHELD,
    WAITS
} wait_kind;

static wait_kind wait_kind_of(const scheduled_thread *t)
{
    const scheduled_thread *holder = t->reason == FOR_SIGNAL ? NULL : turns_holder(t->object);
    return t->reason == FOR_SIGNAL        ? WAIT_SIGNAL
           : !holder                      ? WAIT_UNHELD
           : holder == t                  ? WAIT_OWN
           : holder->state == THREAD_DONE ? WAIT_LEFT
                                          : WAIT_HELD;
}

static void note_wait(gmd_deadlock *d, const scheduled_thread *t, bool seen[WAITS])
{
    char name[GMD_DEADLOCK_LOCK];
    gmd_object_name(t->object, name, sizeof name);
    seen[wait_kind_of(t)] = true;
    if (*name) {
        note_lock(d, name);
    }
}

static void name_waits(gmd_deadlock *d, const bool seen[WAITS])
{
    static const char *const names[WAITS] = {"held", "left", "own", "signal", "unheld"};
    size_t used = 0;
    for (int i = 0; i < WAITS && !d->lock_count; i++) {
        if (seen[i]) {
            used += (size_t)snprintf(d->waits + used, sizeof d->waits - used, "%s%s",
                                     used ? "," : "", names[i]);
        }
    }
}

static void describe_wait(const scheduled_thread *t, const void **numbered, size_t *count,
                          char *text, size_t size)
{
    char name[160];
    if (t->reason == FOR_REQUEST) {
        snprintf(text, size, "for the request that its next one needs");
        return;
    }
    name_lock(t->object, numbered, count, name, sizeof name);
    if (t->reason == FOR_SIGNAL) {
        snprintf(text, size, "for a signal that nobody gives (condition variable: %s)", name);
        return;
    }
    const scheduled_thread *holder = turns_holder(t->object);
    if (!holder) {
        snprintf(text, size, "for %s, which no thread of the trace holds", name);
    } else if (holder == t) {
        snprintf(text, size, "for %s, which it holds itself", name);
    } else {
        char other[120];
        turn_state.config.describe(turn_state.config.context, turns_index(holder), other,
                                   sizeof other);
        snprintf(text, size, "for %s, held by %s%s", name, other,
                 holder->state == THREAD_DONE ? ", which has ended" : "");
    }
}

/* With the lock held, which nobody needs any more. */
void turns_report_deadlock(void)
{
    char sentence[SENTENCE_BYTES] = "deadlock: ";
    const void *numbered[GMD_MAX_THREADS];
    size_t count = 0, at = strlen(sentence);
    unsigned first = NOBODY;
    gmd_deadlock deadlock = {.sentence = sentence};
    bool seen[WAITS] = {false};
    for (unsigned i = 0; i < turn_state.config.thread_count && at < sizeof sentence; i++) {
        const scheduled_thread *t = &turn_state.threads[i];
        if (t->state == THREAD_BLOCKED && (t->reason != FOR_REQUEST)) {
            char who[120], what[280];
            turn_state.config.describe(turn_state.config.context, i, who, sizeof who);
            describe_wait(t, numbered, &count, what, sizeof what);
            note_wait(&deadlock, t, seen);
            int length = snprintf(sentence + at, sizeof sentence - at, "%s%s waits %s",
                                  first == NOBODY ? "" : "; ", who, what);
            at += length > 0 ? (size_t)length : 0;
            first = first == NOBODY ? i : first;
        }
    }
    name_waits(&deadlock, seen);
    turn_state.config.deadlocked(turn_state.config.context, first == NOBODY ? 0 : first, &deadlock);
}
