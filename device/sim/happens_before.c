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
#include "happens_before.h"

#include "host_clock.h"
#include "push.h"

/* Without the default stream's rules. */
static bool has_seen(const stream *s, point p)
{
    return p.on == s || host_is_after(p) || gmd_past_on(s->before, &p.on->progress) >= p.ticket;
}

bool stream_follow(stream *s, point p)
{
    if (has_seen(s, p)) {
        return true;
    }
    gmd_past *joined;
    gmd_past_item item = {&p.on->progress, p.ticket};
    if (!gmd_past_join(s->before, p.before, item, &s->progress, &joined)) {
        return false;
    }
    if (!stream_push_wait(s, p.on, p.ticket)) {
        gmd_past_drop(joined);
        return false;
    }
    gmd_past_drop(s->before);
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
bool stream_follow_default(stream *s)
{
    const stream *first = sim.devices[s->device].legacy;
    if (s == first) {
        return order_default_after_all(s);
    }
    if (!stream_follow(s, stream_point(first))) {
        return false;
    }
    s->saw_default = first->tail;
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
