/* waiting.h - the host waits for work: it completes, the host has learnt of it, and pools give
 * memory back. */
#ifndef GMD_SIM_WAITING_H
#define GMD_SIM_WAITING_H

#include "point.h"

void host_wait(point p);
void host_wait_group(int device, stream_group group); /* all that is queued */
void host_wait_device(int device);                    /* likewise; -1: of every device */

#endif
