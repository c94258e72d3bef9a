/* Which work runs after which, in every schedule. */
#include "state.h"

bool host_is_after(point p)
{
    return !p.on || p.on->head >= p.ticket;
}

bool stream_is_after(const stream *s, point p)
{
    return p.on == s || host_is_after(p);
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
