/* turns.c - who has the turn. */
#include "turns.h"

#include "choices.h"
#include "deadlock.h"

static size_t find_ready(unsigned ready[GMD_MAX_THREADS])
{
    size_t count = 0;
    for (unsigned i = 0; i < turn_state.config.thread_count; i++) {
        unsigned index = (turn_state.last + i) % turn_state.config.thread_count;
        if (turn_state.threads[index].state == THREAD_READY) {
            ready[count++] = index;
        }
    }
    return count;
}

/* Nobody can run. A wait with a time limit ends first; then what happens outside the scheduler may
 * help. */
static bool find_way_out(void)
{
    bool has_blocked = false, has_hope = false;
    for (unsigned i = 0; i < turn_state.config.thread_count; i++) {
        scheduled_thread *t = &turn_state.threads[i];
        if (t->state == THREAD_BLOCKED && t->is_timed) {
            t->has_timed_out = true;
            t->state = THREAD_READY;
            return true;
        }
        has_blocked |= t->state == THREAD_BLOCKED;
        has_hope |= t->state == THREAD_ASTRAY ||
                    (t->state == THREAD_BLOCKED && turns_may_be_freed_from_outside(t));
    }
    if (has_blocked && !has_hope) {
        turns_report_deadlock();
    }
    return false;
}

static void note_preemption(bool can_go_on, const scheduled_thread *next)
{
    const scheduled_thread *from = &turn_state.threads[turn_state.last];
    if (can_go_on && from->is_in_subject && turn_state.config.preempted) {
        turn_state.config.preempted(turn_state.config.context, turn_state.last, &from->stand,
                                    turns_index(next), next->is_in_subject ? &next->stand : NULL);
    }
}

void turns_pass(const scheduled_thread *caller)
{
    unsigned ready[GMD_MAX_THREADS];
    size_t count = find_ready(ready);
    if (count == 0 && find_way_out()) {
        count = find_ready(ready);
    }
    if (count == 0) {
        turn_state.current = NOBODY;
        return;
    }
    bool can_go_on = ready[0] == turn_state.last;
    unsigned next = ready[choices_next(ready, count, can_go_on)];
    scheduled_thread *t = &turn_state.threads[next];
    if (next != turn_state.last) {
        note_preemption(can_go_on, t);
        t->accesses = 0;
    }
    turn_state.current = next;
    turn_state.last = next;
    t->state = THREAD_RUNNING;
    if (t != caller) {
        sem_post(&t->turn);
    }
}

void turns_seek(scheduled_thread *t)
{
    if (turn_state.current == turns_index(t) || turn_state.current == NOBODY) {
        turns_pass(t);
    }
    bool has_turn = turn_state.current == turns_index(t);
    turns_unlock();
    if (!has_turn) {
        turns_wait_for(&t->turn);
        if (turn_state.config.resumed) {
            turn_state.config.resumed(turn_state.config.context, turns_index(t));
        }
    }
    atomic_fetch_add(&turn_state.operations, 1);
}

void turns_yield(scheduled_thread *t)
{
    turns_lock();
    t->state = THREAD_READY;
    turns_seek(t);
}

void turns_block(scheduled_thread *t, wait_reason reason, const void *object, bool is_timed)
{
    t->state = THREAD_BLOCKED;
    t->reason = reason;
    t->object = object;
    t->is_timed = is_timed;
    t->has_timed_out = false;
    turns_seek(t);
}

void turns_wake(wait_reason reason, const void *object)
{
    for (unsigned i = 0; i < turn_state.config.thread_count; i++) {
        scheduled_thread *t = &turn_state.threads[i];
        if (t->state == THREAD_BLOCKED && t->reason == reason && (!object || t->object == object)) {
            t->state = THREAD_READY;
        }
    }
}
