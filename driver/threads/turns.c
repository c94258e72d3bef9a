/* turns.c - who has the turn. */
#include "turns.h"

#include "deadlock.h"

/* Some races need a switch at one point and none for long after it, others many of them: how often
 * the turn is passed on is the seed's choice, too, from every second yield point to every 64th. */
void turns_seed(uint64_t seed)
{
    turn_state.random.state = seed;
    turn_state.keep_below =
        UINT64_MAX - (UINT64_MAX >> (1 + gmd_random_next(&turn_state.random) % 6));
}

size_t turns_choose(size_t count, bool first_can_go_on)
{
    if (count == 1) {
        return 0;
    }
    if (turn_state.config.is_explicit) {
        return turn_state.next_choice < turn_state.config.choice_count
                   ? turn_state.config.choices[turn_state.next_choice++] % count
                   : 0;
    }
    if (!first_can_go_on) {
        return gmd_random_next(&turn_state.random) % count;
    }
    return gmd_random_next(&turn_state.random) < turn_state.keep_below
               ? 0
               : 1 + gmd_random_next(&turn_state.random) % (count - 1);
}

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
    unsigned next = ready[turns_choose(count, ready[0] == turn_state.last)];
    scheduled_thread *t = &turn_state.threads[next];
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
