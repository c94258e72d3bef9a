/* watch.h - a process that makes requests is watched until it has something to say, stands still,
 * or the time is over. */
#ifndef GMD_WATCH_H
#define GMD_WATCH_H

#include "gmd_shared.h"

#include <signal.h>

typedef struct process_watch {
    int descriptor; /* readable when there is something to be had of the process, or it has ended */
    const shared_run *shared; /* where its beats and stages are seen */
    double budget_s;          /* for one request, for loading, and for the clean-up */
    double loading_budget_s;  /* for loading, where that has another; 0: it has not */
    double deadline_s;        /* on gmd_clock_s; 0: none */
    const volatile sig_atomic_t *is_interrupted; /* NULL: nobody interrupts */
    /* Called now and then with the seconds since the start; NULL: nothing is. */
    void (*show)(void *context, double seconds);
    /* Asked now and then: the process will not answer any more, whatever the time; NULL: nobody
     * knows. */
    bool (*is_lost)(void *context);
    void *context;
} process_watch;

typedef enum watch_end {
    WATCH_SPOKE,       /* there is something to be had of it */
    WATCH_STOOD_STILL, /* for the whole budget, and goes on standing */
    WATCH_OUT_OF_TIME, /* the deadline is there */
    WATCH_INTERRUPTED, /* the user does not want to wait */
    WATCH_LOST,        /* is_lost said so */
} watch_end;

watch_end watch_process(const process_watch *watch);

#endif
