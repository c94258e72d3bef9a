/* What completes when.
 *
 * Streams run side by side, each one entry after another. An entry starts when it is queued, when
 * the entry before it has ended, and, for a wait, when what it waits for has; it ends its duration
 * later. Entries complete in the order in which they end, and have their effect on memory then. */
#include "schedule.h"

#include "completion.h"
#include "due.h"
#include "host_functions.h"

#include "gmd_assert.h"
#include "gmd_min.h"

#include <stdlib.h>

static uint64_t add_saturating(uint64_t a, uint64_t b)
{
    uint64_t sum;
    return __builtin_add_overflow(a, b, &sum) ? UINT64_MAX : sum;
}

/* The stream whose first entry ends next, among those that are needed; NULL: none. */
static stream *next_needed(uint64_t *end_ns)
{
    stream *best = NULL;
    *end_ns = 0;
    for (uint32_t i = 0; i < streams.active_count; i++) {
        stream *s = streams.active[i];
        uint64_t end;
        if (s->need <= s->head || !can_complete(s, &end)) {
            continue;
        }
        if (!best || end < *end_ns ||
            (end == *end_ns &&
             entry_at(s, s->head + 1)->sequence < entry_at(best, best->head + 1)->sequence)) {
            best = s;
            *end_ns = end;
        }
    }
    return best;
}

static void complete_until(uint64_t now_ns)
{
    uint64_t end;
    for (stream *s; (s = due_first(&end)) && end <= now_ns;) {
        complete_first(s, end);
    }
}

static void need_up_to(stream *s, uint64_t ticket)
{
    streams.needed_count += s->need <= s->head && ticket > s->head;
    s->need = ticket;
}

/* Passes the need of a stream on to those that its entries wait for; true when that changed one. */
static bool follow_waits(stream *s)
{
    bool changed = false;
    uint64_t from = gmd_max(s->need_followed, s->head);
    for (uint64_t t = from + 1; t <= s->need; t++) {
        const entry *e = entry_at(s, t);
        if (e->kind == ENTRY_WAIT && e->wait.on->need < e->wait.ticket) {
            need_up_to(e->wait.on, e->wait.ticket);
            changed = true;
        }
    }
    s->need_followed = gmd_max(s->need, from);
    return changed;
}

static void follow_all_waits(void)
{
    for (bool changed = true; changed;) {
        changed = false;
        for (uint32_t i = 0; i < streams.active_count; i++) {
            changed |= follow_waits(streams.active[i]);
        }
    }
}

void schedule_eager(void)
{
    uint64_t end;
    for (stream *s; (s = due_first(&end));) {
        complete_first(s, sim.now_ns);
    }
}

/* --- schedules that choose --------------------------------------------------------------- */

static bool is_choosing(void)
{
    return sim.config.schedule == GMD_SIM_SEEDED ||
           (sim.config.schedule == GMD_SIM_EXPLICIT && sim.choices_used < sim.config.choice_count);
}

/* Seeds differ in how slow their device is: most defects need work that stays unfinished for long.
 */
static bool device_is_slow(void)
{
    uint64_t mask = (2u << sim.config.schedule_seed % 6) - 1;
    return (gmd_random_next(&sim.schedule_random) & mask) != 0;
}

static uint64_t choose_below(uint64_t options)
{
    if (options <= 1) {
        return 0;
    }
    uint64_t choice = sim.config.schedule == GMD_SIM_SEEDED
                          ? gmd_random_next(&sim.schedule_random)
                          : sim.config.choices[sim.choices_used++];
    return choice % options;
}

static uint32_t count_completable(bool needed_only)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < streams.active_count; i++) {
        const stream *s = streams.active[i];
        uint64_t end;
        count += (!needed_only || s->need > s->head) && can_complete(s, &end);
    }
    return count;
}

static bool any_needed_can_complete(void)
{
    for (uint32_t i = 0; i < streams.active_count; i++) {
        const stream *s = streams.active[i];
        uint64_t end;
        if (s->need > s->head && can_complete(s, &end)) {
            return true;
        }
    }
    return false;
}

static stream *nth_completable(uint64_t nth, bool needed_only, uint64_t *end_ns)
{
    for (uint32_t i = 0;; i++) {
        stream *s = streams.active[i];
        if ((!needed_only || s->need > s->head) && can_complete(s, end_ns) && nth-- == 0) {
            return s;
        }
    }
}

void schedule_progress(void)
{
    while (streams.active_count && is_choosing()) {
        uint64_t end, count = count_completable(false);
        if (count == 0) {
            return;
        }
        if (sim.config.schedule == GMD_SIM_SEEDED) {
            if (device_is_slow()) {
                return;
            }
            complete_first(nth_completable(choose_below(count), false, &end), sim.now_ns);
            continue;
        }
        uint64_t choice = choose_below(count + 1);
        if (choice == 0) {
            return;
        }
        complete_first(nth_completable(choice - 1, false, &end), sim.now_ns);
    }
    if (streams.active_count && sim.config.schedule == GMD_SIM_EXPLICIT) {
        complete_until(sim.now_ns); /* the choices are used up */
    }
}

/* What completes next while a call waits. */
static stream *choose_next(uint64_t *end_ns)
{
    bool needed_only = sim.config.schedule == GMD_SIM_LAZY ||
                       (sim.config.schedule == GMD_SIM_SEEDED && device_is_slow());
    /* What is needed may wait for a value that other work writes. */
    needed_only = needed_only && any_needed_can_complete();
    if (!is_choosing()) {
        return needed_only ? next_needed(end_ns) : due_first(end_ns);
    }
    uint32_t count = count_completable(needed_only);
    return count ? nth_completable(choose_below(count), needed_only, end_ns) : NULL;
}

/* Nothing can complete: what is needed waits for values that no queued work writes. A real device
 * would hang; here one of the waits ends. */
static void give_up_a_wait(void)
{
    for (uint32_t i = 0; i < streams.active_count; i++) {
        stream *s = streams.active[i];
        entry *e = entry_at(s, s->head + 1);
        if (e->kind == ENTRY_WAIT_VALUE) {
            due_drop(s);
            e->kind = ENTRY_NOTHING;
            due_file(s);
            return;
        }
    }
    GMD_ASSERT(false, "waits make no cycle");
}

/* --- forcing ----------------------------------------------------------------------------- */

static bool is_timed(void)
{
    return sim.config.schedule == GMD_SIM_TIMED ||
           (sim.config.schedule == GMD_SIM_EXPLICIT && !is_choosing());
}

/* Makes time pass until nothing is needed any more. A wait refers to a ticket that was queued
 * before it, so something can always complete. */
static void force_needed(void)
{
    sim.forced_waits++;
    if (sim.config.schedule != GMD_SIM_TIMED) {
        follow_all_waits();
    }
    while (streams.needed_count) {
        uint64_t end;
        stream *s = choose_next(&end);
        if (!s && sim.running) {
            sim_wait_for_host();
            continue;
        }
        if (!s) {
            give_up_a_wait();
            continue;
        }
        end = end > sim.now_ns || is_timed() ? end : sim.now_ns;
        complete_first(s, end);
        sim.now_ns = gmd_max(end, sim.now_ns);
    }
    if (is_timed()) {
        complete_until(sim.now_ns);
    }
}

void stream_force(stream *s, uint64_t ticket)
{
    if (s->head < ticket) {
        need_up_to(s, ticket);
        force_needed();
    }
}

bool streams_are_idle(int device, stream_group group)
{
    for (uint32_t i = 0; i < streams.active_count; i++) {
        if (stream_is_in(streams.active[i], device, group)) {
            return false;
        }
    }
    return true;
}

void streams_force_group(int device, stream_group group)
{
    bool is_needed = false;
    for (uint32_t i = 0; i < streams.active_count; i++) {
        stream *s = streams.active[i];
        if (stream_is_in(s, device, group)) {
            need_up_to(s, s->tail);
            is_needed = true;
        }
    }
    if (is_needed) {
        force_needed();
    }
}

void schedule_advance(uint64_t duration_ns)
{
    uint64_t to = add_saturating(sim.now_ns, duration_ns);
    if (is_timed()) {
        complete_until(to);
    }
    sim.now_ns = to;
    schedule_progress();
}
