/* Which work runs after which, in every schedule.
 *
 * The host is one: what it knows of, everything that is queued later is ordered after, on whatever
 * stream and by whatever thread. So each stream keeps how far the host knows it (`known`), and a
 * clock only of what it is ordered after beyond that: by waits for events and by the default
 * stream's rules. A clock is closed: whoever is ordered after a place in a stream's work is ordered
 * after all that was ordered before that place. For places without an event, each stream keeps the
 * clocks of its entries that the host does not know yet, as versions. That work happens to be
 * complete is no order. */
#include "queue.h"

#include <stdlib.h>
#include <string.h>

/* Of versions kept for one stream. Beyond, the oldest are taken for the one after them: a place in
 * work that old, which the host never asked about, seems ordered after more than it is. */
enum { VERSIONS_MAX = 4096 };

vclock *clock_share(vclock *c)
{
    if (c) {
        c->refs++;
    }
    return c;
}

void clock_release(vclock *c)
{
    if (c && --c->refs == 0) {
        free(c);
    }
}

vclock *stream_clock(const stream *s)
{
    return s->version_count ? s->versions[s->version_count - 1].clock : NULL;
}

bool host_is_after(point p)
{
    return !p.on || p.on->known >= p.ticket;
}

static bool covers(const vclock *c, point p)
{
    if (host_is_after(p)) {
        return true;
    }
    for (uint32_t i = 0; c && i < c->count; i++) {
        if (c->part[i].on == p.on) {
            return c->part[i].ticket >= p.ticket;
        }
    }
    return false;
}

static bool covers_all(const vclock *c, const point *parts, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        if (!covers(c, parts[i])) {
            return false;
        }
    }
    return true;
}

/* --- the clocks of a stream -------------------------------------------------------------- */

void stream_forget_clock(stream *s)
{
    while (s->version_count) {
        clock_release(s->versions[--s->version_count].clock);
    }
    s->is_history_cut = false;
}

/* Drops the `count` oldest versions. */
static void drop_versions(stream *s, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        clock_release(s->versions[i].clock);
    }
    s->version_count -= count;
    memmove(s->versions, s->versions + count, s->version_count * sizeof *s->versions);
}

/* Room for one more version: those that only entries the host knows have are not needed. */
static bool make_room(stream *s)
{
    uint32_t old = 0;
    while (old + 1 < s->version_count && s->versions[old + 1].since <= s->known) {
        old++;
    }
    drop_versions(s, old);
    if (s->version_count >= VERSIONS_MAX) {
        drop_versions(s, s->version_count / 2);
        s->is_history_cut = true;
    }
    if (s->version_count < s->version_capacity / 2) {
        return true;
    }
    uint32_t capacity = s->version_capacity ? s->version_capacity * 2 : 4;
    clock_version *moved = realloc(s->versions, capacity * sizeof *moved);
    if (!moved) {
        return s->version_count < s->version_capacity;
    }
    s->versions = moved;
    s->version_capacity = capacity;
    return true;
}

/* `c` holds for what is queued from now on. */
static bool set_clock(stream *s, vclock *c)
{
    clock_version *last = s->version_count ? &s->versions[s->version_count - 1] : NULL;
    if (last && last->since == s->tail) {
        clock_release(last->clock);
        last->clock = c;
        return true;
    }
    if (s->version_count == s->version_capacity && !make_room(s)) {
        clock_release(c);
        return false;
    }
    s->versions[s->version_count++] = (clock_version){.since = s->tail, .clock = c};
    return true;
}

/* What entry `ticket` was ordered after. */
static const vclock *clock_at(const stream *s, uint64_t ticket)
{
    uint32_t i = s->version_count;
    while (i > 1 && s->versions[i - 1].since >= ticket) {
        i--;
    }
    bool has_one = i > 0 && (s->versions[i - 1].since < ticket || s->is_history_cut);
    return has_one ? s->versions[i - 1].clock : NULL;
}

/* Appends a part, unless it is known to the host or the last one already is of its stream. */
static void append(vclock *c, point p)
{
    if (host_is_after(p)) {
        return;
    }
    point *last = c->count ? &c->part[c->count - 1] : NULL;
    if (last && last->on == p.on) {
        last->ticket = last->ticket > p.ticket ? last->ticket : p.ticket;
    } else {
        c->part[c->count++] = p;
    }
}

/* The clock and the parts, merged by the id of the streams, without what is of `except`. */
static vclock *merged(const vclock *a, const point *b, uint32_t nb, const stream *except)
{
    uint32_t na = a ? a->count : 0, i = 0, j = 0;
    vclock *c = malloc(sizeof *c + ((size_t)na + nb) * sizeof(point));
    if (!c) {
        return NULL;
    }
    *c = (vclock){.refs = 1};
    while (i < na || j < nb) {
        bool takes_a = j == nb || (i < na && a->part[i].on->id <= b[j].on->id);
        point p = takes_a ? a->part[i++] : b[j++];
        if (p.on != except) {
            append(c, p);
        }
    }
    return c;
}

static bool join_parts(stream *s, const point *parts, uint32_t count)
{
    if (covers_all(stream_clock(s), parts, count)) {
        return true;
    }
    vclock *c = merged(stream_clock(s), parts, count, s);
    if (!c || !set_clock(s, c)) {
        return false;
    }
    s->changes++;
    stream_mark_ahead(s);
    return true;
}

bool stream_join(stream *s, point p, const vclock *known)
{
    return p.on == s ||
           (join_parts(s, &p, 1) && (!known || join_parts(s, known->part, known->count)));
}

/* --- what the host knows ----------------------------------------------------------------- */

void stream_mark_ahead(stream *s)
{
    if (!s->is_ahead) {
        s->is_ahead = true;
        s->ahead_index = streams.ahead_count;
        streams.ahead[streams.ahead_count++] = s;
    }
}

/* The stream leaves the list where the host knows all of it; one that is destroyed, too, can be
 * used again then: its tickets mean nothing that is not known. */
static void settle(stream *s)
{
    const vclock *c = stream_clock(s);
    if (!s->is_ahead || s->known < s->tail || (c && !covers_all(NULL, c->part, c->count))) {
        return;
    }
    stream *last = streams.ahead[--streams.ahead_count];
    streams.ahead[s->ahead_index] = last;
    last->ahead_index = s->ahead_index;
    s->is_ahead = false;
    stream_forget_clock(s);
    stream_recycle_unused(s);
}

static void learn(point p)
{
    if (p.on && p.on->known < p.ticket) {
        p.on->known = p.ticket;
        settle(p.on);
    }
}

void host_join(point p, const vclock *known)
{
    for (uint32_t i = 0; known && i < known->count; i++) {
        learn(known->part[i]);
    }
    learn(p);
}

void host_join_stream(stream *s)
{
    vclock *c = clock_share(stream_clock(s));
    host_join(stream_point(s), c);
    clock_release(c);
    settle(s);
}

void host_join_at(stream *s, uint64_t ticket)
{
    host_join((point){.on = s, .ticket = ticket}, clock_at(s, ticket));
}

/* A stream has unfinished work here only where another thread queued it during the wait. */
void host_join_device(int device)
{
    for (uint32_t i = streams.ahead_count; i-- > 0;) {
        stream *s = i < streams.ahead_count ? streams.ahead[i] : NULL;
        if (!s || (device >= 0 && s->device != device)) {
            continue;
        }
        if (s->head == s->tail) {
            host_join_stream(s);
        } else if (s->need > s->known) {
            host_join_at(s, s->need);
        }
    }
}

/* --- questions --------------------------------------------------------------------------- */

/* What the default stream's rules put before the next work of `s`. */
static bool default_rules_cover(const stream *s, point p)
{
    if (!stream_is_blocking(s)) {
        return false;
    }
    const stream *legacy = sim.devices[s->device].legacy;
    if (s != legacy) {
        return p.on == legacy || covers(stream_clock(legacy), p);
    }
    for (uint32_t i = 0; i < streams.ahead_count; i++) {
        const stream *other = streams.ahead[i];
        if (other->device == s->device && stream_is_blocking(other) &&
            (other == p.on || covers(stream_clock(other), p))) {
            return true;
        }
    }
    return false;
}

bool stream_is_after(const stream *s, point p)
{
    return p.on == s || covers(stream_clock(s), p) || default_rules_cover(s, p);
}

bool stream_follow(stream *s, point p)
{
    if (!p.on || p.on == s || host_is_after(p)) {
        return true;
    }
    return stream_join(s, p, clock_at(p.on, p.ticket)) &&
           (p.on->head >= p.ticket || queue_push_wait(s, p));
}

/* --- control ----------------------------------------------------------------------------- */

/* A stream of `device`; its legacy default stream for NULL. */
static stream *find(int device, cudaStream_t handle)
{
    if (!device_exists(device)) {
        return NULL;
    }
    return handle ? stream_find(sim_this_thread(), handle) : sim.devices[device].legacy;
}

int gmd_sim_point_of(int device, cudaStream_t handle, gmd_sim_point *out)
{
    sim_lock();
    sim_start();
    const stream *s = find(device, handle);
    if (s) {
        *out = (gmd_sim_point){.stream = s->id, .ticket = s->tail};
    }
    sim_unlock();
    return s ? 0 : -1;
}

static point inside(gmd_sim_point p)
{
    return (point){.on = p.ticket ? stream_by_id(p.stream) : NULL, .ticket = p.ticket};
}

bool gmd_sim_is_ordered(gmd_sim_point p, int device, cudaStream_t handle)
{
    sim_lock();
    sim_start();
    const stream *s = find(device, handle);
    bool is_ordered = s && stream_is_after(s, inside(p));
    sim_unlock();
    return is_ordered;
}

bool gmd_sim_is_known(gmd_sim_point p)
{
    sim_lock();
    sim_start();
    bool is_known = host_is_after(inside(p));
    sim_unlock();
    return is_known;
}
