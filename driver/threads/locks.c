#include "locks.h"

#include "turns.h"

#include <errno.h>
#include <string.h>

bool gmd_scheduler_is_active(void)
{
    const gmd_turns_thread *t = gmd_turns_me;
    return t && t->is_in_subject && !t->calls;
}

static void note_held(gmd_turns_thread *t, const void *object)
{
    if (t->held_count < GMD_HELD_MAX) {
        t->held[t->held_count++] = object;
    }
}

/* From the latest backwards: locks are usually given back in reverse order. */
static void note_given_back(gmd_turns_thread *t, const void *object)
{
    for (unsigned i = t->held_count; i-- > 0;) {
        if (t->held[i] == object) {
            memmove(&t->held[i], &t->held[i + 1], (t->held_count - i - 1) * sizeof t->held[0]);
            t->held_count--;
            return;
        }
    }
}

static bool has_got_it(int result)
{
    return result == 0 || result == EOWNERDEAD;
}

/* Without the yield point before it. */
static int take(gmd_turns_thread *t, void *object, int (*attempt)(void *object), bool is_timed)
{
    for (;;) {
        gmd_turns_lock();
        int result = attempt(object);
        if (result != EBUSY) {
            if (has_got_it(result)) {
                note_held(t, object);
            }
            gmd_turns_unlock();
            return result;
        }
        gmd_turns_block(t, GMD_FOR_LOCK, object, is_timed);
        if (t->has_timed_out) {
            return ETIMEDOUT;
        }
    }
}

int gmd_scheduler_lock(void *object, int (*attempt)(void *object), bool is_timed)
{
    gmd_turns_yield(gmd_turns_me);
    return take(gmd_turns_me, object, attempt, is_timed);
}

int gmd_scheduler_try_lock(void *object, int (*attempt)(void *object))
{
    gmd_turns_yield(gmd_turns_me);
    gmd_turns_lock();
    int result = attempt(object);
    if (has_got_it(result)) {
        note_held(gmd_turns_me, object);
    }
    gmd_turns_unlock();
    return result;
}

int gmd_scheduler_unlock(void *object, int (*release)(void *object))
{
    gmd_turns_lock();
    int result = release(object);
    if (result == 0) {
        note_given_back(gmd_turns_me, object);
        gmd_turns_wake(GMD_FOR_LOCK, object);
    }
    gmd_turns_me->state = GMD_THREAD_READY;
    gmd_turns_seek(gmd_turns_me);
    return result;
}

int gmd_scheduler_wait_signal(void *condition, void *mutex, int (*release)(void *mutex),
                              int (*attempt)(void *mutex), bool is_timed)
{
    gmd_turns_thread *t = gmd_turns_me;
    gmd_turns_yield(t);
    gmd_turns_lock();
    int result = release(mutex);
    if (result != 0) {
        gmd_turns_unlock();
        return result;
    }
    note_given_back(t, mutex);
    gmd_turns_wake(GMD_FOR_LOCK, mutex);
    gmd_turns_block(t, GMD_FOR_SIGNAL, condition, is_timed);
    bool has_timed_out = t->has_timed_out;
    result = take(t, mutex, attempt, false);
    return has_got_it(result) && has_timed_out ? ETIMEDOUT : result;
}

void gmd_scheduler_signal(void *condition, bool is_for_all)
{
    gmd_turns_thread *t = gmd_scheduler_is_active() ? gmd_turns_me : NULL;
    gmd_turns_lock();
    if (is_for_all) {
        gmd_turns_wake(GMD_FOR_SIGNAL, condition);
    } else {
        unsigned waiting[GMD_MAX_THREADS];
        size_t count = 0;
        for (unsigned i = 0; i < gmd_turns.config.thread_count; i++) {
            const gmd_turns_thread *other = &gmd_turns.threads[i];
            if (other->state == GMD_THREAD_BLOCKED && other->reason == GMD_FOR_SIGNAL &&
                other->object == condition) {
                waiting[count++] = i;
            }
        }
        if (count) {
            gmd_turns.threads[waiting[gmd_turns_choose(count, false)]].state = GMD_THREAD_READY;
        }
    }
    if (t) {
        t->state = GMD_THREAD_READY;
        gmd_turns_seek(t);
        return;
    }
    if (gmd_turns.current == GMD_NOBODY && gmd_turns.joined == gmd_turns.config.thread_count) {
        gmd_turns_pass(NULL);
    }
    gmd_turns_unlock();
}

void gmd_scheduler_begin_once(void *object)
{
    gmd_turns_yield(gmd_turns_me);
    gmd_turns_lock();
    while (gmd_turns_holder(object) && gmd_turns_holder(object) != gmd_turns_me) {
        gmd_turns_block(gmd_turns_me, GMD_FOR_LOCK, object, false);
        gmd_turns_lock();
    }
    note_held(gmd_turns_me, object);
    gmd_turns_unlock();
}

void gmd_scheduler_end_once(void *object)
{
    gmd_turns_lock();
    note_given_back(gmd_turns_me, object);
    gmd_turns_wake(GMD_FOR_LOCK, object);
    gmd_turns_unlock();
}

bool gmd_scheduler_stand_back(void)
{
    gmd_turns_thread *t = gmd_turns_me;
    gmd_turns_lock();
    bool found = false;
    for (unsigned i = 0; i < gmd_turns.config.thread_count; i++) {
        found |= &gmd_turns.threads[i] != t && gmd_turns.threads[i].state == GMD_THREAD_READY;
    }
    if (!found) {
        gmd_turns_unlock();
        return false;
    }
    t->state = GMD_THREAD_BLOCKED; /* not to be chosen: */
    t->reason = GMD_FOR_REQUEST;
    if (gmd_turns.current == gmd_turns_index(t)) {
        gmd_turns_pass(t);
    }
    t->state = GMD_THREAD_READY; /* only when another has the turn */
    gmd_turns_seek(t);
    return true;
}
