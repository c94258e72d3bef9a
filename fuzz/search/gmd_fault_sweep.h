/* gmd_fault_sweep.h - the fault sweep: each call that the allocator makes to the device fails in a
 * run of its own, and every run must have a clean outcome.
 *
 * This is how SQLite tests its handling of out-of-memory. The case runs once with its calls listed;
 * then, for each call in turn, with `fault FUNCTION N ERROR` before the request that makes the
 * call: once with this call failing, once with every later call of the function failing too. */
#ifndef GMD_FAULT_SWEEP_H
#define GMD_FAULT_SWEEP_H

#include "gmd_cause.h"
#include "gmd_runner.h"

/* How often a call failed that came after these calls in its request, from sweep to sweep: what an
 * allocator does once in ten thousand requests is to be reached as soon as it has been seen. */
enum { GMD_SWEPT_PATHS = 4096 };
typedef struct gmd_swept_paths { /* zero-initialised: nothing was swept */
    uint16_t counts[GMD_SWEPT_PATHS];
} gmd_swept_paths;

typedef struct gmd_sweep_options {
    bool memory_only; /* only calls that a device without memory refuses */
    bool others_only; /* only the other ones, each once: they fail for a moment, not for ever */
    /* Only waits and what they rest on (gmd_fault_is_wait), each once: first those that come after
     * the calls that were swept the least, whose count grows. NULL: all calls alike. */
    gmd_swept_paths *paths;
    bool
        is_persistent; /* many runs in one process; those that show something again by themselves */
    bool has_budgets;  /* the device can also be made to run out of memory at each size */
    uint64_t runs;     /* at most; 0: no limit. The calls are then taken evenly from all */
    /* Called after each run, for a status line; may be NULL. */
    void (*progress)(void *context, uint64_t done, uint64_t all, const char *what);
    /* Called after each run that did not end cleanly, with the case that shows it: false ends the
     * sweep. */
    bool (*found)(void *context, const gmd_trace *trace, const gmd_violation *violation);
    /* With `is_persistent`: what it shows needs no run by itself. NULL: nothing is known. */
    bool (*is_known)(void *context, const gmd_violation *violation);
    void *context;
} gmd_sweep_options;

typedef struct gmd_sweep_result {
    uint64_t calls;          /* that the allocator made */
    uint64_t runs;           /* with one of them failing */
    uint64_t not_judged;     /* runs in which the fault hit a call of the driver's own */
    bool is_complete;        /* false: more calls than can be listed, or a limit */
    bool is_cut_off;         /* by the runner's deadline */
    bool case_fails;         /* without any fault: nothing was swept */
    bool case_is_refused;    /* likewise: it cannot be run, and the status says why */
    gmd_violation violation; /* then */
} gmd_sweep_result;

gmd_status gmd_sweep(const gmd_trace *trace, gmd_runner *runner, const gmd_sweep_options *options,
                     gmd_sweep_result *result, gmd_error *error);

#endif
