#include "plan.h"

#include "gmd_size.h"

#define COUNT(list) (sizeof(list) / sizeof *(list))

const gmd_schedule plan_schedules[] = {
    {.kind = GMD_SCHEDULE_TIMED},
    {.kind = GMD_SCHEDULE_LAZY},
    {.kind = GMD_SCHEDULE_SEEDED, .seed = 1},
    {.kind = GMD_SCHEDULE_EAGER},
    {.kind = GMD_SCHEDULE_SEEDED, .seed = 2},
    {.kind = GMD_SCHEDULE_SEEDED, .seed = 3},
};
const plan_budget plan_schedule_count = {COUNT(plan_schedules), 3};
const plan_budget plan_interleavings = {48, 16};
const plan_budget plan_confs = {CONF_MAX, 2};
const plan_budget plan_scenario_confs = {3, 1};

const plan_kind plan_kinds[] = {
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
const size_t plan_kind_count = COUNT(plan_kinds);

const plan_budget plan_guided_runs = {6000, 1000};
const plan_budget plan_depth = {4, 3};
const plan_budget plan_speed_ms = {1000, 200};
const plan_budget plan_sweep_runs = {120, 30};
const plan_budget plan_rounds = {8192, 4096};
const plan_budget plan_random_rounds = {60, 12};
