/* deadlock.c - who waits for whom, when nobody can go on. */
#include "deadlock.h"

#include "gmd_self_deadlock.h"

#include <stdio.h>
#include <string.h>

#define SENTENCE_BYTES 560

bool turns_may_be_freed_from_outside(const scheduled_thread *t)
{
    switch (t->reason) {
    case GMD_FOR_LOCK:
        return !turns_holder(t->object) && turns_has_foreign_threads();
    case GMD_FOR_SIGNAL:
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

static void describe_wait(const scheduled_thread *t, const void **numbered, size_t *count,
                          char *text, size_t size)
{
    char name[160];
    if (t->reason == GMD_FOR_REQUEST) {
        snprintf(text, size, "for the request that its next one needs");
        return;
    }
    name_lock(t->object, numbered, count, name, sizeof name);
    if (t->reason == GMD_FOR_SIGNAL) {
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
                 holder->state == GMD_THREAD_DONE ? ", which has ended" : "");
    }
}

/* With the lock held, which nobody needs any more. */
void turns_report_deadlock(void)
{
    char sentence[SENTENCE_BYTES] = "deadlock: ";
    const void *numbered[GMD_MAX_THREADS];
    size_t count = 0, at = strlen(sentence);
    unsigned first = GMD_NOBODY;
    for (unsigned i = 0; i < turn_state.config.thread_count && at < sizeof sentence; i++) {
        const scheduled_thread *t = &turn_state.threads[i];
        if (t->state == GMD_THREAD_BLOCKED && (t->reason != GMD_FOR_REQUEST)) {
            char who[120], what[280];
            turn_state.config.describe(turn_state.config.context, i, who, sizeof who);
            describe_wait(t, numbered, &count, what, sizeof what);
            int length = snprintf(sentence + at, sizeof sentence - at, "%s%s waits %s",
                                  first == GMD_NOBODY ? "" : "; ", who, what);
            at += length > 0 ? (size_t)length : 0;
            first = first == GMD_NOBODY ? i : first;
        }
    }
    turn_state.config.deadlocked(turn_state.config.context, first == GMD_NOBODY ? 0 : first,
                                 sentence);
}
