/* What tests, oracles and fuzzers ask of queued work, and of time. */
#include "control.h"
#include "events.h"
#include "happens_before.h"
#include "host_clock.h"
#include "lock.h"
#include "schedule.h"
#include "streams.h"

/* --- work and time ----------------------------------------------------------------------- */

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
    schedule_advance(duration_ns);
    sim_unlock();
}

uint64_t gmd_sim_forced_waits(void)
{
    sim_lock();
    uint64_t count = sim.forced_waits;
    sim_unlock();
    return count;
}

uint64_t gmd_sim_pending(cudaStream_t handle)
{
    sim_lock();
    sim_start();
    const stream *s = stream_find(sim_this_thread(), handle);
    uint64_t pending = s ? s->tail - s->head : 0;
    sim_unlock();
    return pending;
}

bool gmd_sim_event_complete(cudaEvent_t handle)
{
    sim_lock();
    const event *e = event_find(handle);
    bool complete = !e || event_is_complete(e);
    sim_unlock();
    return complete;
}

/* --- happens before ---------------------------------------------------------------------- */

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
        *where = (gmd_sim_point){.stream = s->progress.id, .ticket = s->tail};
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
