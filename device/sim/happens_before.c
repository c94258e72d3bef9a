/* Which work runs after which, in every schedule and not only in the one at hand.
 *
 * Vector clocks. A stream's own component is the ticket of its last entry; `before` holds the
 * others, which waits bring in. The host has one clock for all its threads, since its calls are
 * ordered as they are made: hence a single number for each stream, up to where the host knows it to
 * be over, says what is before everything that is queued later, and no stream's past repeats it.
 *
 * Every past is closed: what lies before an entry in it lies in it too, or is known to the host. So
 * a point that is in a stream's past already brings nothing new, and that one ticket is known means
 * that all before it is. */
#include "queue.h"

#include "gmd_assert.h"

void stream_open(stream *s)
{
    s->is_open = true;
    s->open_index = streams.open_count;
    streams.open[streams.open_count++] = s;
}

void stream_close(stream *s)
{
    GMD_ASSERT(s->is_open && streams.open[s->open_index] == s, "a stream that closes is open");
    s->known = s->tail;
    past_drop(s->before);
    s->before = NULL;
    stream *last = streams.open[--streams.open_count];
    streams.open[s->open_index] = last;
    last->open_index = s->open_index;
    s->is_open = false;
    stream_recycle_unused(s);
}

/* --- the host ---------------------------------------------------------------------------- */

bool host_is_after(point p)
{
    return !p.on || p.on->known >= p.ticket;
}

static void learn(stream *s, uint64_t ticket)
{
    if (s->known < ticket) {
        s->known = ticket;
        if (ticket == s->tail) {
            stream_close(s);
        }
    }
}

void host_learn(point p)
{
    if (host_is_after(p)) {
        return;
    }
    past *before = past_keep(p.before); /* closing the stream gives its own up */
    for (uint32_t i = 0; before && i < before->count; i++) {
        learn(before->items[i].on, before->items[i].ticket);
    }
    past_drop(before);
    learn(p.on, p.ticket);
}

void host_learn_group(int device, stream_group group)
{
    /* Learning of one stream may close others, which moves streams of the list downwards only. */
    for (uint32_t i = streams.open_count; i-- > 0;) {
        i = i < streams.open_count ? i : streams.open_count;
        if (i < streams.open_count && stream_is_in(streams.open[i], device, group)) {
            host_learn(stream_point(streams.open[i]));
        }
    }
}

/* --- streams ----------------------------------------------------------------------------- */

/* Without the default stream's rules. */
static bool has_seen(const stream *s, point p)
{
    return p.on == s || host_is_after(p) || past_on(s->before, p.on) >= p.ticket;
}

bool stream_follow(stream *s, point p)
{
    if (has_seen(s, p)) {
        return true;
    }
    past *joined;
    if (!past_join(s->before, p.before, (past_item){p.on, p.ticket}, s, &joined)) {
        return false;
    }
    if (!queue_wait(s, p.on, p.ticket)) {
        past_drop(joined);
        return false;
    }
    past_drop(s->before);
    s->before = joined;
    return true;
}

/* Work on the default stream starts after all earlier work of the device's blocking streams... */
static bool order_default_after_all(stream *s)
{
    uint64_t entries = sim.devices[s->device].blocking_entries;
    if (s->saw_blocking == entries) {
        return true;
    }
    for (uint32_t i = 0; i < streams.open_count; i++) {
        stream *other = streams.open[i];
        if (other != s && stream_is_in(other, s->device, STREAMS_BLOCKING) &&
            other->seen_by_default != other->tail) {
            if (!stream_follow(s, stream_point(other))) {
                return false;
            }
            other->seen_by_default = other->tail;
        }
    }
    s->saw_blocking = entries;
    return true;
}

/* ... and work on those starts after all earlier work of the default stream. */
bool stream_order_default(stream *s)
{
    if (!stream_is_blocking(s) || s->capture) {
        return true;
    }
    stream *first = sim.devices[s->device].legacy;
    if (s == first) {
        return order_default_after_all(s);
    }
    if (s->saw_default != first->tail) {
        if (!stream_follow(s, stream_point(first))) {
            return false;
        }
        s->saw_default = first->tail;
    }
    return true;
}

/* As stream_order_default, for what is queued next: only looked at, nothing is queued. */
bool stream_is_after(const stream *s, point p)
{
    if (has_seen(s, p)) {
        return true;
    }
    if (!stream_is_blocking(s)) {
        return false;
    }
    const stream *first = sim.devices[s->device].legacy;
    if (s != first) {
        return has_seen(first, p);
    }
    for (uint32_t i = 0; i < streams.open_count; i++) {
        const stream *other = streams.open[i];
        if (stream_is_in(other, s->device, STREAMS_BLOCKING) && has_seen(other, p)) {
            return true;
        }
    }
    return false;
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

int gmd_sim_point_of(int device, cudaStream_t handle, gmd_sim_point *where)
{
    sim_lock();
    sim_start();
    const stream *s = find(device, handle);
    if (s) {
        *where = (gmd_sim_point){.stream = s->id, .ticket = s->tail};
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

bool gmd_sim_is_complete(gmd_sim_point p)
{
    sim_lock();
    sim_start();
    point at = inside(p);
    bool is_complete = !at.on || at.ticket <= at.on->head;
    sim_unlock();
    return is_complete;
}
