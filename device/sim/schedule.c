/* What completes when.
 *
 * Streams run side by side, each one entry after another. An entry starts when it is queued, when
 * the entry before it has ended, and, for a wait, when what it waits for has; it ends its duration
 * later. Entries complete in the order in which they end, and have their effect on memory then. */
#include "queue.h"

#include <stdlib.h>

static uint64_t add_saturating(uint64_t a, uint64_t b)
{
    uint64_t sum;
    return __builtin_add_overflow(a, b, &sum) ? UINT64_MAX : sum;
}

/* The stream whose first entry ends next, among all or only those that are needed; NULL: none. */
static stream *next_to_complete(bool needed_only, uint64_t *end_ns)
{
    stream *best = NULL;
    *end_ns = 0;
    for (uint32_t i = 0; i < streams.active_count; i++) {
        stream *s = streams.active[i];
        uint64_t end;
        if ((needed_only && s->need <= s->head) || !queue_can_complete(s, &end)) {
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
    for (stream *s; (s = next_to_complete(false, &end)) && end <= now_ns;) {
        queue_complete_first(s, end);
    }
}

static bool anything_needed(void)
{
    for (uint32_t i = 0; i < streams.active_count; i++) {
        if (streams.active[i]->need > streams.active[i]->head) {
            return true;
        }
    }
    return false;
}

/* Passes the need of a stream on to those that its entries wait for; true when that changed one. */
static bool follow_waits(stream *s)
{
    bool changed = false;
    uint64_t from = s->need_followed > s->head ? s->need_followed : s->head;
    for (uint64_t t = from + 1; t <= s->need; t++) {
        const entry *e = entry_at(s, t);
        if (e->kind == ENTRY_WAIT && e->wait.on->need < e->wait.ticket) {
            e->wait.on->need = e->wait.ticket;
            changed = true;
        }
    }
    s->need_followed = s->need > from ? s->need : from;
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

/* --- chosen schedules -------------------------------------------------------------------- */

static bool is_chosen(void)
{
    return sim.config.schedule == GMD_SIM_SEEDED ||
           (sim.config.schedule == GMD_SIM_EXPLICIT && sim.choice_next < sim.config.choice_count);
}

/* The next choice, out of 0 to `count` - 1 (splitmix64). */
static uint32_t choose(uint32_t count)
{
    if (sim.config.schedule == GMD_SIM_EXPLICIT) {
        return sim.config.choices[sim.choice_next++] % count;
    }
    uint64_t z = sim.choice_random += UINT64_C(0x9E3779B97F4A7C15);
    z = (z ^ z >> 30) * UINT64_C(0xBF58476D1CE4E5B9);
    z = (z ^ z >> 27) * UINT64_C(0x94D049BB133111EB);
    return (uint32_t)((z ^ z >> 31) % count);
}

static uint32_t count_candidates(void)
{
    uint32_t count = 0;
    uint64_t end;
    for (uint32_t i = 0; i < streams.active_count; i++) {
        count += queue_can_complete(streams.active[i], &end);
    }
    return count;
}

/* The candidate whose first entry was queued `n`th, from 0. */
static stream *candidate(uint32_t n)
{
    uint64_t after = 0, end;
    for (stream *best;; after = entry_at(best, best->head + 1)->sequence) {
        best = NULL;
        for (uint32_t i = 0; i < streams.active_count; i++) {
            stream *s = streams.active[i];
            uint64_t sequence = entry_at(s, s->head + 1)->sequence;
            if (sequence > after && queue_can_complete(s, &end) &&
                (!best || sequence < entry_at(best, best->head + 1)->sequence)) {
                best = s;
            }
        }
        if (!best || n-- == 0) {
            return best;
        }
    }
}

void schedule_step(void)
{
    while (streams.active_count && is_chosen()) {
        uint32_t count = count_candidates();
        uint32_t choice = count ? choose(count + 1) : 0;
        if (choice == 0) {
            return;
        }
        queue_complete_first(candidate(choice - 1), sim.now_ns);
    }
    if (sim.config.schedule == GMD_SIM_EXPLICIT) {
        complete_until(sim.now_ns);
    }
}

void schedule_eager(void)
{
    uint64_t end;
    for (stream *s; (s = next_to_complete(false, &end));) {
        queue_complete_first(s, sim.now_ns);
    }
}

/* --- forced progress --------------------------------------------------------------------- */

/* The stream that completes an entry next while something is needed; NULL: none can. */
static stream *next_of_forced(uint64_t *end_ns)
{
    if (is_chosen()) {
        uint32_t count = count_candidates();
        stream *s = count ? candidate(choose(count)) : NULL;
        *end_ns = sim.now_ns;
        return s;
    }
    stream *s = next_to_complete(sim.config.schedule == GMD_SIM_LAZY, end_ns);
    /* What is needed may wait for a value that other work writes. */
    return s ? s : next_to_complete(false, end_ns);
}

/* Nothing can complete: all that is needed waits for values that nobody writes. A real device would
 * hang; here one of the waits ends, and the call is told. */
static void give_up_a_wait(void)
{
    for (uint32_t i = 0; i < streams.active_count; i++) {
        stream *s = streams.active[i];
        entry *e = entry_at(s, s->head + 1);
        if (e->kind == ENTRY_WAIT_VALUE) {
            e->kind = ENTRY_NOTHING;
            sim.late_misuse = "a synchronising call waits for a value that no queued work writes";
            return;
        }
    }
    abort(); /* a cycle of waits: the simulator itself is broken */
}

/* Makes time pass until nothing is needed any more. A wait refers to a ticket that was queued
 * before it, so something can always complete. */
static void force_needed(void)
{
    sim.forced_waits++;
    if (sim.config.schedule == GMD_SIM_LAZY) {
        follow_all_waits();
    }
    while (anything_needed()) {
        uint64_t end;
        stream *s = next_of_forced(&end);
        if (s) {
            queue_complete_first(s, end);
            sim.now_ns = end > sim.now_ns ? end : sim.now_ns;
        } else if (sim.running) {
            sim_wait_for_host();
        } else {
            give_up_a_wait();
        }
    }
    if (sim.config.schedule == GMD_SIM_TIMED) {
        complete_until(sim.now_ns);
    }
}

void stream_force_unknown(stream *s, uint64_t ticket)
{
    if (s->head < ticket) {
        s->need = s->need > ticket ? s->need : ticket;
        force_needed();
    }
}

void stream_force(stream *s, uint64_t ticket)
{
    if (ticket < s->tail) {
        stream_force_unknown(s, ticket);
        host_join_at(s, ticket);
        return;
    }
    vclock *c = clock_share(stream_clock(s));
    stream_force_unknown(s, ticket);
    host_join((point){.on = s, .ticket = ticket}, c);
    clock_release(c);
}

void streams_force_device(int device)
{
    bool is_needed = false;
    for (uint32_t i = 0; i < streams.active_count; i++) {
        stream *s = streams.active[i];
        if (device < 0 || s->device == device) {
            s->need = s->tail;
            is_needed = true;
        }
    }
    if (is_needed) {
        force_needed();
    }
    host_join_device(device);
}

void device_break(int device, cudaError_t error, const char *misuse)
{
    sim.devices[device].broken = error;
    sim.late_misuse = misuse;
}

/* --- control ----------------------------------------------------------------------------- */

uint64_t gmd_sim_now(void)
{
    sim_lock();
    uint64_t now = sim.now_ns;
    sim_unlock();
    return now;
}

void gmd_sim_advance(uint64_t duration_ns)
{
    sim_lock();
    sim_start();
    uint64_t to = add_saturating(sim.now_ns, duration_ns);
    if (sim.config.schedule == GMD_SIM_TIMED ||
        (sim.config.schedule == GMD_SIM_EXPLICIT && !is_chosen())) {
        complete_until(to);
    }
    sim.now_ns = to > sim.now_ns ? to : sim.now_ns;
    sim_unlock();
}

uint64_t gmd_sim_forced_waits(void)
{
    sim_lock();
    uint64_t count = sim.forced_waits;
    sim_unlock();
    return count;
}
