/* gmd_scenario.h - scripted workloads: a Lua file that reads like a training loop, run by an engine
 * that turns it into allocator requests.
 *
 * The engine knows nothing of allocators: each request goes to a sink (gmd_sink.h).
 * docs/scenarios.md describes the scripts. Thread safety: a scenario belongs to one thread. */
#ifndef GMD_SCENARIO_H
#define GMD_SCENARIO_H

#include "gmd_error.h"
#include "gmd_sink.h"

#include <stdio.h>

typedef struct gmd_param { /* "leak=true" on the command line */
    const char *key, *value;
} gmd_param;

typedef struct gmd_scenario gmd_scenario;
struct gmd_workspaces;

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

/* Checks the parameters as gmd_scenario_run() does: GMD_BAD_INPUT names the first that is refused.
 */
gmd_status gmd_scenario_check(gmd_scenario *scenario, const gmd_param *params, size_t param_count,
                              gmd_error *error);

/* Runs it once to its end; may be called again, each run is independent. Unknown parameters and
 * values of the wrong type are GMD_BAD_INPUT before the first request; an error in the script names
 * file and line. An out-of-memory that the script does not handle is GMD_OK with *out_of_memory
 * set. GMD_STOP ends it with GMD_OK. */
gmd_status gmd_scenario_run(gmd_scenario *scenario, const gmd_param *params, size_t param_count,
                            uint64_t seed, const gmd_sink *sink, bool *out_of_memory,
                            gmd_error *error);

/* Later runs take the workspaces of cuDNN from `table`, which is borrowed; NULL: from the one that
 * gmd is built with. */
void gmd_scenario_use_workspaces(gmd_scenario *scenario, const struct gmd_workspaces *table);
/* Later runs add a line to `calls`, which is borrowed, for each different call of cuDNN whose
 * workspace the table does not have (docs/workspaces.md, "The format"). NULL: they do not. */
void gmd_scenario_list_unrecorded(gmd_scenario *scenario, FILE *calls);

/* Silences print() in later runs: in those that only repeat one, and where the user wants no
 * output. */
void gmd_scenario_mute(gmd_scenario *scenario, bool is_muted);

/* Calls `visit` with the name of each scenario in `directory`, sorted. */
gmd_status gmd_scenario_each(const char *directory, void (*visit)(void *context, const char *name),
                             void *context, gmd_error *error);

#endif
