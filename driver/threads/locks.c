#include "locks.h"

#include "choices.h"
#include "turns.h"

#include <errno.h>
#include <string.h>

bool scheduler_is_active(void)
{
    const scheduled_thread *t = turns_me;
    return t && t->is_in_subject && !t->calls;
}

static void stand_at(const void *lock)
{
    turns_me->stand = (gmd_stand){GMD_STANDS_AT_LOCK, lock};
}

static void note_held(scheduled_thread *t, const void *object)
{
    if (t->held_count < HELD_MAX) {
        t->held[t->held_count++] = object;
    }
}

/* From the latest backwards: locks are usually given back in reverse order. */
static void note_given_back(scheduled_thread *t, const void *object)
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
static int take(scheduled_thread *t, void *object, int (*attempt)(void *object), bool is_timed)
{
    for (;;) {
        turns_lock();
        int result = attempt(object);
        if (result != EBUSY) {
            if (has_got_it(result)) {
                note_held(t, object);
            }
            turns_unlock();
            return result;
        }
        turns_block(t, FOR_LOCK, object, is_timed);
        if (t->has_timed_out) {
            return ETIMEDOUT;
        }
    }
}

int scheduler_lock(void *object, int (*attempt)(void *object), bool is_timed)
{
    stand_at(object);
    turns_yield(turns_me);
    return take(turns_me, object, attempt, is_timed);
}

int scheduler_try_lock(void *object, int (*attempt)(void *object))
{
    stand_at(object);
    turns_yield(turns_me);
    turns_lock();
    int result = attempt(object);
    if (has_got_it(result)) {
        note_held(turns_me, object);
    }
    turns_unlock();
    return result;
}

int scheduler_unlock(void *object, int (*release)(void *object))
{
    stand_at(object);
    turns_lock();
    int result = release(object);
    if (result == 0) {
        note_given_back(turns_me, object);
        turns_wake(FOR_LOCK, object);
    }
    turns_me->state = THREAD_READY;
    turns_seek(turns_me);
    return result;
}

int scheduler_wait_signal(void *condition, void *mutex, int (*release)(void *mutex),
                          int (*attempt)(void *mutex), bool is_timed)
{
    scheduled_thread *t = turns_me;
    stand_at(mutex);
    turns_yield(t);
    turns_lock();
    int result = release(mutex);
    if (result != 0) {
        turns_unlock();
        return result;
    }
    note_given_back(t, mutex);
    turns_wake(FOR_LOCK, mutex);
    turns_block(t, FOR_SIGNAL, condition, is_timed);
    bool has_timed_out = t->has_timed_out;
    result = take(t, mutex, attempt, false);
    return has_got_it(result) && has_timed_out ? ETIMEDOUT : result;
}

void scheduler_signal(void *condition, bool is_for_all)
{
    scheduled_thread *t = scheduler_is_active() ? turns_me : NULL;
    turns_lock();
    if (is_for_all) {
        turns_wake(FOR_SIGNAL, condition);
    } else {
        unsigned waiting[GMD_MAX_THREADS];
        size_t count = 0;
        for (unsigned i = 0; i < turn_state.config.thread_count; i++) {
            const scheduled_thread *other = &turn_state.threads[i];
            if (other->state == THREAD_BLOCKED && other->reason == FOR_SIGNAL &&
                other->object == condition) {
                waiting[count++] = i;
            }
        }
        if (count) {
            turn_state.threads[waiting[choices_any(count)]].state = THREAD_READY;
        }
    }
    if (t) {
        t->state = THREAD_READY;
        turns_seek(t);
        return;
    }
    if (turn_state.current == NOBODY && turn_state.joined == turn_state.config.thread_count) {
        turns_pass(NULL);
    }
    turns_unlock();
}

void scheduler_begin_once(void *object)
{
    stand_at(object);
    turns_yield(turns_me);
    turns_lock();
    while (turns_holder(object) && turns_holder(object) != turns_me) {
        turns_block(turns_me, FOR_LOCK, object, false);
        turns_lock();
    }
    note_held(turns_me, object);
    turns_unlock();
}

void scheduler_end_once(void *object)
{
    turns_lock();
    note_given_back(turns_me, object);
    turns_wake(FOR_LOCK, object);
    turns_unlock();
}

bool scheduler_stand_back(void)
{
    scheduled_thread *t = turns_me;
    turns_lock();
    bool found = false;
    for (unsigned i = 0; i < turn_state.config.thread_count; i++) {
        found |= &turn_state.threads[i] != t && turn_state.threads[i].state == THREAD_READY;
    }
    if (!found) {
        turns_unlock();
        return false;
    }
    t->state = THREAD_BLOCKED; /* not to be chosen: */
    t->reason = FOR_REQUEST;
    if (turn_state.current == turns_index(t)) {
        turns_pass(t);
    }
    t->state = THREAD_READY; /* only when another has the turn */
    turns_seek(t);
    return true;
}
