/* Which work runs after which, in every schedule. */
#include "state.h"

bool host_is_after(point p)
{
    return !p.on || p.on->head >= p.ticket;
}

enum { STREAMS_SEARCHED = 64 };

typedef struct reach { /* part of a stream's queue that must run before */
    const stream *on;
    uint64_t searched, upto;
} reach;

/* All that a stream does up to `ticket` must run before, too. False: too many streams. */
static bool extend(reach *reaches, size_t *count, const stream *on, uint64_t ticket)
{
    size_t i = 0;
    while (i < *count && reaches[i].on != on) {
        i++;
    }
    if (i == STREAMS_SEARCHED) {
        return false;
    }
    if (i == *count) {
        reaches[(*count)++] = (reach){.on = on, .searched = on->head, .upto = on->head};
    }
    reaches[i].upto = ticket > reaches[i].upto ? ticket : reaches[i].upto;
    return true;
}

/* Whether the waits in the queues lead from what is on `s` to `p`. What is complete needs no wait:
 * its completion stands for order. With too many streams in between, the answer is that they do. */
static bool waits_for(const stream *s, point p)
{
    reach reaches[STREAMS_SEARCHED];
    size_t count = 0;
    extend(reaches, &count, s, s->tail);
    for (size_t i = 0; i < count;) {
        reach *r = &reaches[i];
        if (r->searched >= r->upto) {
            i++;
            continue;
        }
        const entry *e = &r->on->ring[r->searched++ % r->on->ring_size];
        if (e->kind != ENTRY_WAIT) {
            continue;
        }
        if ((e->wait.on == p.on && e->wait.ticket >= p.ticket) ||
            !extend(reaches, &count, e->wait.on, e->wait.ticket)) {
            return true;
        }
        i = 0; /* any of them may reach further now */
    }
    return false;
}

/* The default stream's rules: it waits for every blocking stream, and each of them for it. */
static bool is_ordered_by_default(const stream *s, const stream *other)
{
    const stream *first = sim.devices[s->device].legacy;
    bool are_blocking = !(s->flags & cudaStreamNonBlocking) &&
                        !(other->flags & cudaStreamNonBlocking) && s->device == other->device;
    return are_blocking && (s == first || other == first);
}

bool stream_is_after(const stream *s, point p)
{
    return p.on == s || host_is_after(p) || is_ordered_by_default(s, p.on) || waits_for(s, p);
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
