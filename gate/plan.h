/* plan.h - what the gate runs, as data: numbers of runs rather than times, so that the verdict
 * follows from the seed alone. `full` and `quick` are the two budgets. */
#ifndef GMD_GATE_PLAN_H
#define GMD_GATE_PLAN_H

#include "gate.h"

typedef struct gmd_gate_budget {
    uint32_t full, quick;
} gmd_gate_budget;

typedef struct gmd_gate_planned_part {
    const char *name, *category, *what;
    void (*run)(gmd_gate *gate);
} gmd_gate_planned_part;

extern const gmd_gate_planned_part gmd_gate_plan_parts[];
extern const size_t gmd_gate_plan_part_count;

/* Schedules for a case that states none; the first ones are those of a quick gate. */
extern const gmd_schedule gmd_gate_plan_schedules[];
extern const gmd_gate_budget gmd_gate_plan_schedule_count;
/* Orders in which the threads of a case are tried. */
extern const gmd_gate_budget gmd_gate_plan_interleavings;
/* Settings that are tried beside none. */
extern const gmd_gate_budget gmd_gate_plan_confs;

/* A kind of random sequences: what is drawn for a campaign's round is kept within these. Zero: as
 * drawn. */
typedef struct gmd_gate_kind {
    const char *name;
    gmd_gate_budget runs;
    uint32_t round_runs;
    uint32_t streams_least, streams_most, threads, devices;
    uint32_t requests, live_most;
    gmd_conditions conditions; /* the capacity and the kind of schedule; not stated: as drawn */
    bool has_no_faults, has_only_faults, has_huge_sizes, has_small_sizes, has_no_confs;
    uint8_t cap_percent, record_weight;
} gmd_gate_kind;

extern const gmd_gate_kind gmd_gate_plan_kinds[];
extern const size_t gmd_gate_plan_kind_count;

/* Sequences of the guided search. */
extern const gmd_gate_budget gmd_gate_plan_guided_runs;

/* Requests of the longest sequences of the exhaustive pass; one more where --deep gives the time.
 */
extern const gmd_gate_budget gmd_gate_plan_depth;

/* Milliseconds of measuring, for each benchmark and allocator. */
extern const gmd_gate_budget gmd_gate_plan_speed_ms;

/* Runs of each trace through which faults are swept, with each of the settings. */
extern const gmd_gate_budget gmd_gate_plan_sweep_runs;

/* Blocks that are asked for until a round was repeated often enough; and rounds that are drawn. */
extern const gmd_gate_budget gmd_gate_plan_rounds;
extern const gmd_gate_budget gmd_gate_plan_random_rounds;

#endif
