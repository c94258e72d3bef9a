/* watch.h - a process that makes requests is watched until it has something to say, or stands
 * still. */
#ifndef GMD_WATCH_H
#define GMD_WATCH_H

#include "gmd_shared.h"

typedef struct gmd_watch {
    int descriptor; /* readable when there is something to be had of the process, or it has ended */
    const gmd_shared *shared; /* where its beats and stages are seen */
    double budget_s;          /* for one request, for loading, and for the clean-up */
    /* Called now and then with the seconds since the start; NULL: nothing is. */
    void (*show)(void *context, double seconds);
    void *context;
} gmd_watch;

/* Waits. False: the process stood still for the whole budget, and goes on standing. */
bool gmd_watch_process(const gmd_watch *watch);

#endif
