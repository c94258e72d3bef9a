/* watch.h - a process that makes requests is watched until it has something to say, or stands
 * still. */
#ifndef GMD_WATCH_H
#define GMD_WATCH_H

#include "gmd_shared.h"

#include <signal.h>

typedef struct process_watch {
    int descriptor; /* readable when there is something to be had of the process, or it has ended */
    const shared_run *shared; /* where its beats and stages are seen */
    double budget_s;          /* for one request, for loading, and for the clean-up */
    const volatile sig_atomic_t *is_interrupted; /* NULL: nobody interrupts */
    /* Called now and then with the seconds since the start; NULL: nothing is. */
    void (*show)(void *context, double seconds);
    void *context;
} process_watch;

/* Waits. False: the process stood still for the whole budget, and goes on standing; or the user
 * does not want to wait. */
bool watch_process(const process_watch *watch);

#endif
