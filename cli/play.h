/* play.h - one scenario or trace against the allocator, once or with several seeds. */
#ifndef GMD_CLI_PLAY_H
#define GMD_CLI_PLAY_H

#include "results.h"
#include "variants.h"

#include "gmd_workspaces.h"

#include <stdio.h>

#define CLI_REPEAT_MAX 1000

typedef struct cli_plan {
    const cli_options *options;
    const char *directory;        /* of the scenarios */
    const cli_variants *variants; /* of all parameters given */
    uint64_t repeat;              /* runs of each, with consecutive seeds */
    uint64_t placement_seeds;     /* how many orders of addresses are drawn; 0: as options say */
    uint32_t inspect;             /* GMD_INSPECT_...: what is looked at inside */
    const char *at;               /* the phase at whose end; NULL: at the end of the script */
    const gmd_workspaces *workspaces; /* NULL: those that gmd is built with */
    FILE *unrecorded;                 /* gets the calls that no table has; or NULL */
    bool finds_smallest_limit;        /* of scenarios, instead of repeating them */
} cli_plan;

/* Every variant of the scenario `name`. `is_of_group`: parameters that it does not declare are left
 * out; else they are refused. */
gmd_status cli_play_scenario(const cli_plan *plan, const char *name, bool is_of_group,
                             cli_results *results, gmd_error *error);

gmd_status cli_play_trace(const cli_plan *plan, const char *path, const gmd_run_options *options,
                          const gmd_trace *trace, cli_results *results, gmd_error *error);

#endif
