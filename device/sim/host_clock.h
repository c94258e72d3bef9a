/* host_clock.h - what the host knows to be over: it runs before all that is queued from now on. */
#ifndef GMD_SIM_HOST_CLOCK_H
#define GMD_SIM_HOST_CLOCK_H

#include "point.h"

bool host_is_after(point p); /* whatever the host does from now on comes after it */

/* The host has waited for a point, or was told that it is complete: what it does from now on, and
 * all work that it queues, is after it. */
void host_learn(point p);
void host_learn_group(int device, stream_group group); /* all that is queued; -1: every device */

#endif
