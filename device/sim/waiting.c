#include "waiting.h"

#include "host_clock.h"
#include "pools.h"
#include "schedule.h"

/* What else is queued while host functions run, beside other threads, has not been waited for. */
void host_wait(point p)
{
    gmd_past_keep(p.before);
    stream_force(p.on, p.ticket);
    host_learn(p);
    pools_synchronised();
    gmd_past_drop(p.before);
}

void host_wait_group(int device, stream_group group)
{
    streams_force_group(device, group);
    host_learn_group(device, group);
    pools_synchronised();
}

void host_wait_device(int device)
{
    host_wait_group(device, STREAMS_ALL);
}
