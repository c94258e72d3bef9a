/* gmd_threads.h - the host threads that a trace names: each request runs on its thread, one at a
 * time, in the order of the trace. (CUDA's current device and last error belong to a thread.) */
#ifndef GMD_THREADS_H
#define GMD_THREADS_H

#include "gmd_error.h"
#include "gmd_trace.h"

typedef struct worker worker;

typedef struct host_threads {         /* zero-initialised: none started */
    worker *workers[GMD_MAX_THREADS]; /* index 0, the main thread, stays NULL */
    unsigned current;                 /* where the work under way runs */
} host_threads;

/* Runs `work` on thread `index` (0, the main one, to GMD_MAX_THREADS - 1, started at first use) and
 * waits for its end. To be called on the main thread, or for the thread that it is called on. A
 * hand-over costs as much as ten requests: what goes together is better one piece of work. */
gmd_status threads_call(host_threads *threads, unsigned index, void (*work)(void *context),
                        void *context, gmd_error *error);
void threads_join(host_threads *threads);

#endif
