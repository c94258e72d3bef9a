/* turns.c - who has the turn. */
#include "turns.h"

#include "deadlock.h"

/* Some races need a switch at one point and none for long after it, others many of them: how often
 * the turn is passed on is the seed's choice, too, from every second yield point to every 64th. */
void gmd_turns_seed(uint64_t seed)
{
    gmd_turns.random.state = seed;
    gmd_turns.keep_below =
        UINT64_MAX - (UINT64_MAX >> (1 + gmd_random_next(&gmd_turns.random) % 6));
}

size_t gmd_turns_choose(size_t count, bool first_can_go_on)
{
    if (count == 1) {
        return 0;
    }
    if (gmd_turns.config.is_explicit) {
        return gmd_turns.next_choice < gmd_turns.config.choice_count
                   ? gmd_turns.config.choices[gmd_turns.next_choice++] % count
                   : 0;
    }
    if (!first_can_go_on) {
        return gmd_random_next(&gmd_turns.random) % count;
    }
    return gmd_random_next(&gmd_turns.random) < gmd_turns.keep_below
               ? 0
               : 1 + gmd_random_next(&gmd_turns.random) % (count - 1);
}

static size_t find_ready(unsigned ready[GMD_MAX_THREADS])
{
    size_t count = 0;
    for (unsigned i = 0; i < gmd_turns.config.thread_count; i++) {
        unsigned index = (gmd_turns.last + i) % gmd_turns.config.thread_count;
        if (gmd_turns.threads[index].state == GMD_THREAD_READY) {
            ready[count++] = index;
        }
    }
    return count;
}

/* Nobody can run. A wait with a time limit ends first; then what happens out of sight may help. */
static bool find_way_out(void)
{
    bool has_blocked = false, has_hope = false;
    for (unsigned i = 0; i < gmd_turns.config.thread_count; i++) {
        gmd_turns_thread *t = &gmd_turns.threads[i];
        if (t->state == GMD_THREAD_BLOCKED && t->is_timed) {
            t->has_timed_out = true;
            t->state = GMD_THREAD_READY;
            return true;
        }
        has_blocked |= t->state == GMD_THREAD_BLOCKED;
        has_hope |= t->state == GMD_THREAD_ASTRAY ||
                    (t->state == GMD_THREAD_BLOCKED && gmd_turns_may_be_freed_from_outside(t));
    }
    if (has_blocked && !has_hope) {
        gmd_turns_report_deadlock();
    }
    return false;
}

void gmd_turns_pass(const gmd_turns_thread *caller)
{
    unsigned ready[GMD_MAX_THREADS];
    size_t count = find_ready(ready);
    if (count == 0 && find_way_out()) {
        count = find_ready(ready);
    }
    if (count == 0) {
        gmd_turns.current = GMD_NOBODY;
        return;
    }
    unsigned next = ready[gmd_turns_choose(count, ready[0] == gmd_turns.last)];
    gmd_turns_thread *t = &gmd_turns.threads[next];
    gmd_turns.current = next;
    gmd_turns.last = next;
    t->state = GMD_THREAD_RUNNING;
    if (t != caller) {
        sem_post(&t->turn);
    }
}

void gmd_turns_seek(gmd_turns_thread *t)
{
    if (gmd_turns.current == gmd_turns_index(t) || gmd_turns.current == GMD_NOBODY) {
        gmd_turns_pass(t);
    }
    bool has_turn = gmd_turns.current == gmd_turns_index(t);
    gmd_turns_unlock();
    if (!has_turn) {
        gmd_turns_wait_for(&t->turn);
        if (gmd_turns.config.resumed) {
            gmd_turns.config.resumed(gmd_turns.config.context, gmd_turns_index(t));
        }
    }
    atomic_fetch_add(&gmd_turns.operations, 1);
}

void gmd_turns_yield(gmd_turns_thread *t)
{
    gmd_turns_lock();
    t->state = GMD_THREAD_READY;
    gmd_turns_seek(t);
}

void gmd_turns_block(gmd_turns_thread *t, gmd_wait_reason reason, const void *object, bool is_timed)
{
    t->state = GMD_THREAD_BLOCKED;
    t->reason = reason;
    t->object = object;
    t->is_timed = is_timed;
    t->has_timed_out = false;
    gmd_turns_seek(t);
}

void gmd_turns_wake(gmd_wait_reason reason, const void *object)
{
    for (unsigned i = 0; i < gmd_turns.config.thread_count; i++) {
        gmd_turns_thread *t = &gmd_turns.threads[i];
        if (t->state == GMD_THREAD_BLOCKED && t->reason == reason &&
            (!object || t->object == object)) {
            t->state = GMD_THREAD_READY;
        }
    }
}
