#include "plan.h"

#include "gmd_size.h"

#define COUNT(list) (sizeof(list) / sizeof *(list))

static const char correctness[] = "correctness";

const gmd_gate_planned_part gmd_gate_plan_parts[] = {
    {"first", correctness, "it loads, serves and takes back a few blocks", gmd_gate_first},
    {"cases", correctness, "sequences that real allocators failed on", gmd_gate_cases},
    {"scenarios", correctness, "what training loops ask for, with leaks and without",
     gmd_gate_scenarios},
    {"faults", correctness, "each call that takes memory fails in turn", gmd_gate_faults},
    {"random", correctness, "random sequences of several kinds", gmd_gate_random},
    {"exhaustive", correctness, "every short sequence over a small alphabet", gmd_gate_exhaustive},
    {"rounds", correctness, "the same round again and again needs no more memory", gmd_gate_rounds},
    {"memory", "memory", "what scenarios and recorded histories take", gmd_gate_memory},
    {"speed", "speed", "what requests cost", gmd_gate_speed},
};
const size_t gmd_gate_plan_part_count = COUNT(gmd_gate_plan_parts);

const gmd_schedule gmd_gate_plan_schedules[] = {
    {.kind = GMD_SCHEDULE_TIMED},
    {.kind = GMD_SCHEDULE_LAZY},
    {.kind = GMD_SCHEDULE_SEEDED, .seed = 1},
    {.kind = GMD_SCHEDULE_EAGER},
    {.kind = GMD_SCHEDULE_SEEDED, .seed = 2},
    {.kind = GMD_SCHEDULE_SEEDED, .seed = 3},
};
const gmd_gate_budget gmd_gate_plan_schedule_count = {COUNT(gmd_gate_plan_schedules), 3};
const gmd_gate_budget gmd_gate_plan_interleavings = {48, 16};
const gmd_gate_budget gmd_gate_plan_confs = {GMD_GATE_CONF_MAX, 2};

const gmd_gate_kind gmd_gate_plan_kinds[] = {
    {.name = "near the limit, one stream",
     .runs = {6000, 1200},
     .round_runs = 48,
     .streams_most = 2,
     .threads = 1,
     .devices = 1,
     .cap_percent = 45,
     .has_no_faults = true},
    {.name = "streams with waits and records, late completion",
     .runs = {6000, 1200},
     .round_runs = 48,
     .streams_least = 3,
     .threads = 1,
     .conditions.schedule.kind = GMD_SCHEDULE_LAZY,
     .record_weight = 80,
     .has_no_faults = true},
    {.name = "streams, any completion",
     .runs = {5000, 1000},
     .round_runs = 48,
     .streams_least = 2,
     .threads = 1,
     .has_no_faults = true},
    {.name = "threads interleaved",
     .runs = {1600, 320},
     .round_runs = 16,
     .threads = 3,
     .requests = 60,
     .has_no_faults = true},
    {.name = "several devices",
     .runs = {3000, 600},
     .round_runs = 48,
     .devices = 2,
     .threads = 1,
     .has_no_faults = true},
    {.name = "device calls that fail",
     .runs = {5000, 1000},
     .round_runs = 48,
     .threads = 1,
     .has_only_faults = true},
    {.name = "huge sizes",
     .runs = {1200, 300},
     .round_runs = 48,
     .threads = 1,
     .has_huge_sizes = true,
     .has_no_faults = true},
    {.name = "everything at once", .runs = {4000, 800}, .round_runs = 48},
    {.name = "long churn, many blocks",
     .runs = {12, 3},
     .round_runs = 1,
     .threads = 1,
     .requests = 60000,
     .live_most = 4000,
     .has_no_faults = true,
     .has_small_sizes = true,
     .conditions.capacity_bytes = 64 * GMD_GIB},
    {.name = "long churn, few blocks",
     .runs = {12, 3},
     .round_runs = 1,
     .streams_least = 2,
     .threads = 1,
     .requests = 60000,
     .live_most = 40,
     .has_no_faults = true,
     .conditions.capacity_bytes = 4 * GMD_GIB},
};
const size_t gmd_gate_plan_kind_count = COUNT(gmd_gate_plan_kinds);

const gmd_gate_budget gmd_gate_plan_guided_runs = {6000, 1000};
const gmd_gate_budget gmd_gate_plan_depth = {4, 3};
const gmd_gate_budget gmd_gate_plan_speed_ms = {1000, 200};
const gmd_gate_budget gmd_gate_plan_sweep_runs = {120, 30};
const gmd_gate_budget gmd_gate_plan_rounds = {8192, 4096};
const gmd_gate_budget gmd_gate_plan_random_rounds = {60, 12};
