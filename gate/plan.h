/* plan.h - what the gate runs, as data: numbers of runs rather than times, so that the verdict
 * follows from the seed alone. `full` and `quick` are the two budgets. */
#ifndef GMD_GATE_PLAN_H
#define GMD_GATE_PLAN_H

#include "gmd_conditions.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CONF_MAX 16 /* settings of an allocator that are tried at most */

typedef struct plan_budget {
    uint32_t full, quick;
} plan_budget;

/* Schedules for a case that states none; the first ones are those of a quick gate. */
extern const gmd_schedule plan_schedules[];
extern const plan_budget plan_schedule_count;
/* Orders in which the threads of a case are tried. */
extern const plan_budget plan_interleavings;
/* Settings that are tried beside none. */
extern const plan_budget plan_confs, plan_scenario_confs;

/* A kind of random sequences: limits on what is drawn for a round of a campaign. Zero: as drawn. */
typedef struct plan_kind {
    const char *name;
    plan_budget runs;
    uint32_t round_runs;
    uint32_t streams_least, streams_most, threads, devices;
    uint32_t requests, live_most;
    gmd_conditions conditions; /* the capacity and the kind of schedule; not stated: as drawn */
    bool has_no_faults, has_only_faults, has_huge_sizes, has_small_sizes, has_no_confs;
    uint8_t cap_percent, record_weight;
} plan_kind;

extern const plan_kind plan_kinds[];
extern const size_t plan_kind_count;

/* Sequences of the guided search. */
extern const plan_budget plan_guided_runs;

/* Requests of the longest sequences of the exhaustive pass; one more where --deep gives the time.
 */
extern const plan_budget plan_depth;

/* Milliseconds of measuring, for each benchmark and allocator. */
extern const plan_budget plan_speed_ms;

/* Runs of each trace through which faults are swept, with each of the settings. */
extern const plan_budget plan_sweep_runs;

/* Blocks that are asked for until a round was repeated often enough; and rounds that are drawn. */
extern const plan_budget plan_rounds;
extern const plan_budget plan_random_rounds;

#endif
