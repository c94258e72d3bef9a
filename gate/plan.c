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
    {"rounds", correctness, "the same round again and again needs no more memory", gmd_gate_rounds},
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
     .schedule = GMD_SCHEDULE_LAZY,
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
     .capacity_bytes = 64 * GMD_GIB},
    {.name = "long churn, few blocks",
     .runs = {12, 3},
     .round_runs = 1,
     .streams_least = 2,
     .threads = 1,
     .requests = 60000,
     .live_most = 40,
     .has_no_faults = true,
     .capacity_bytes = 4 * GMD_GIB},
};
const size_t gmd_gate_plan_kind_count = COUNT(gmd_gate_plan_kinds);

const gmd_gate_sweep gmd_gate_plan_sweeps[] = {
    {"one stream", "gmd-trace 1\n"
                   "capacity 256MiB\n"
                   "alloc a 1000 s1\n"
                   "alloc b 3MiB s1\n"
                   "use b s1\n"
                   "alloc c 24MiB s1\n"
                   "free b\n"
                   "alloc d 2MiB s1\n"
                   "free a\n"
                   "alloc e 40MiB s1\n"
                   "free c\n"
                   "alloc f 20MiB s1\n"
                   "free d\n"
                   "free e\n"
                   "empty_cache\n"
                   "alloc g 30MiB s1\n"
                   "free g\n"
                   "free f\n"},
    {"one stream, malloc and free alone", "gmd-trace 1\n"
                                          "capacity 256MiB\n"
                                          "alloc a 1000 s1\n"
                                          "alloc b 5MiB s1\n"
                                          "use b s1\n"
                                          "free b\n"
                                          "alloc c 6MiB s1\n"
                                          "alloc d 1 s2\n"
                                          "free a\n"
                                          "alloc e 60MiB s2\n"
                                          "free c\n"
                                          "alloc f 5MiB s2\n"
                                          "free e\n"
                                          "alloc g 61MiB s1\n"},
    {"streams with records", "gmd-trace 1\n"
                             "capacity 256MiB\n"
                             "schedule lazy\n"
                             "alloc a 4MiB s1\n"
                             "use a s2 10us\n"
                             "record a s2\n"
                             "use a s3 10us\n"
                             "record a s3\n"
                             "free a\n"
                             "alloc b 4MiB s1\n"
                             "use b s1\n"
                             "record b s2\n"
                             "free b\n"
                             "alloc c 4MiB s2\n"
                             "wait s1 s2\n"
                             "alloc d 12MiB s1\n"
                             "record d s3\n"
                             "free d\n"
                             "sync\n"
                             "alloc e 12MiB s1\n"
                             "free c\n"
                             "alloc f 4MiB s3\n"},
    {"several devices", "gmd-trace 1\n"
                        "devices 2\n"
                        "capacity 128MiB\n"
                        "alloc a 2MiB s1\n"
                        "alloc b 2MiB s1 device 1\n"
                        "use b s1\n"
                        "device 1\n"
                        "alloc c 24MiB s1\n"
                        "alloc d 24MiB s0 device 1\n"
                        "free a\n"
                        "free b\n"
                        "alloc e 1MiB s2 device 1\n"
                        "device 0\n"
                        "free d\n"
                        "alloc f 26MiB s1 device 1\n"
                        "free c\n"},
    {"near the memory's end", "gmd-trace 1\n"
                              "capacity 40MiB\n"
                              "alloc a 10MiB s1\n"
                              "alloc b 8MiB s1\n"
                              "alloc c 16MiB s2\n"
                              "use a s1 10us\n"
                              "free a\n"
                              "alloc d 12MiB s2\n"
                              "free b\n"
                              "alloc e 18MiB s1\n"
                              "free c\n"
                              "alloc f 30MiB s1\n"
                              "free d\n"
                              "alloc g 4MiB s2\n"},
};
const size_t gmd_gate_plan_sweep_count = COUNT(gmd_gate_plan_sweeps);
const gmd_gate_budget gmd_gate_plan_sweep_runs = {120, 30};
