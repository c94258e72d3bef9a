/* gmd_sink.h - where a workload sends its requests: the driver, a recorder, a test. The workload
 * knows nothing of what carries them out. Calls come from one thread. */
#ifndef GMD_SINK_H
#define GMD_SINK_H

#include "gmd_trace.h"
#include "gmd_workspace_use.h"

typedef enum gmd_served {
    GMD_SERVED,
    GMD_OUT_OF_MEMORY, /* ALLOC only: the allocator returned NULL */
    GMD_STOP, /* the run is over (a violation was found): unwind without further requests */
} gmd_served;

typedef struct gmd_sink_memory { /* bytes */
    uint64_t allocated, max_allocated, reserved, max_reserved;
    uint64_t active; /* and what is freed and waits for a stream; UINT64_MAX: the allocator keeps no
                        statistics, and the others are what can be seen from outside */
} gmd_sink_memory;

/* How much memory a scenario takes from here on, as it states itself. */
typedef struct gmd_bound {
    bool is_reserved; /* of reserved bytes; else of allocated ones */
    bool leaks;       /* this variant passes it on purpose: that is shown, and nothing is wrong */
    uint64_t bytes;
} gmd_bound;

typedef struct gmd_sink {
    void *context;
    /* Carries out one request. `block` ids are the engine's: dense from 0, never used twice. */
    gmd_served (*request)(void *context, const gmd_request *request);
    /* A phase has ended: record the allocator's figures under this label. */
    void (*phase)(void *context, const char *label);
    /* The allocator's figures now, for scripts that adapt to them; false: not known. */
    bool (*memory)(void *context, gmd_sink_memory *memory);
    /* A bound is stated, to be held to the end of the run. NULL: nobody checks. */
    void (*bound)(void *context, const gmd_bound *bound);
    /* Before each phase, and at the end of a run: where its workspaces came from so far. NULL:
     * nobody asks. */
    void (*workspaces)(void *context, const gmd_workspace_use *use);
    /* reset_peak_memory_stats(): peaks are from here on. NULL: they stay. */
    void (*reset_peaks)(void *context);
    /* Called now and then while the script runs, with the place where it is: for whoever stops a
     * script that makes no requests. May be NULL. */
    void (*place)(void *context, const char *file, int line);
    bool tells_lines; /* each request comes with the script's line that makes it; else with 0 */
} gmd_sink;

#endif
