/* gmd_scenario.h - scripted workloads: a Lua file that reads like a training loop, run by an engine
 * that turns it into allocator requests.
 *
 * The engine knows nothing of allocators: each request goes to a sink (the driver, a recorder, a
 * test). docs/scenarios.md describes the scripts. */
#ifndef GMD_SCENARIO_H
#define GMD_SCENARIO_H

#include "gmd_error.h"
#include "gmd_inspection.h"
#include "gmd_trace.h"

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
    /* reset_peak_memory_stats(): peaks are from here on. NULL: they stay. */
    void (*reset_peaks)(void *context);
    /* The script is here, told now and then while it runs: for whoever stops one that makes no
     * requests. NULL: nobody does. */
    void (*place)(void *context, const char *file, int line);
    bool tells_lines; /* each request comes with the script's line that makes it; else with 0 */
} gmd_sink;

typedef struct gmd_param { /* "leak=true" on the command line */
    const char *key, *value;
} gmd_param;

typedef struct gmd_scenario gmd_scenario;

/* Opens NAME.lua of the folder `directory`, or the file `name` itself when it ends in ".lua". Loads
 * and checks the script without running it. An unknown name is an error that lists the known ones.
 */
gmd_status gmd_scenario_open(gmd_scenario **scenario, const char *name, const char *directory,
                             gmd_error *error);
void gmd_scenario_close(gmd_scenario *scenario); /* NULL is fine */

const char *gmd_scenario_name(const gmd_scenario *scenario);
const char *gmd_scenario_summary(const gmd_scenario *scenario); /* one line */

/* A tag that the scenario declares, in its order; NULL when there is no such index. */
const char *gmd_scenario_tag_at(const gmd_scenario *scenario, size_t index);
bool gmd_scenario_has_tag(const gmd_scenario *scenario, const char *tag);

/* A parameter that the scenario declares, in its order; false when there is no such index. */
typedef struct gmd_scenario_param {
    const char *key, *default_value, *help;
} gmd_scenario_param;
bool gmd_scenario_param_at(const gmd_scenario *scenario, size_t index, gmd_scenario_param *param);
bool gmd_scenario_declares(const gmd_scenario *scenario, const char *key);

/* Whether gmd_scenario_run() would take the parameters: GMD_BAD_INPUT names the first that it would
 * not. */
gmd_status gmd_scenario_check(gmd_scenario *scenario, const gmd_param *params, size_t param_count,
                              gmd_error *error);

/* Runs it once to its end; may be called again, each run is independent. Unknown parameters and
 * values of the wrong type are GMD_BAD_INPUT before the first request; an error in the script names
 * file and line. An out-of-memory that the script does not handle is GMD_OK with *out_of_memory
 * set. GMD_STOP ends it with GMD_OK. */
gmd_status gmd_scenario_run(gmd_scenario *scenario, const gmd_param *params, size_t param_count,
                            uint64_t seed, const gmd_sink *sink, bool *out_of_memory,
                            gmd_error *error);

/* Whether print() does nothing in the runs that follow: those that only repeat one, and where the
 * user wants to read nothing. */
void gmd_scenario_mute(gmd_scenario *scenario, bool is_muted);

/* What happens inside the next run is written into `inspection` (opened with what is wanted), which
 * stays the caller's; once it is complete, further runs leave it alone. NULL: nobody looks. The
 * requests are the same either way. */
void gmd_scenario_inspect(gmd_scenario *scenario, gmd_inspection *inspection);

/* Calls `visit` with the name of each scenario in `directory`, sorted. */
gmd_status gmd_scenario_each(const char *directory, void (*visit)(void *context, const char *name),
                             void *context, gmd_error *error);

#endif
