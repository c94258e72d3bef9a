/* The scenarios against what torch 2.11 did on an H200 (tests/data/truth, from the phases of the
 * recorded histories). Recorded figures include what PyTorch's allocator leaves unsplit at the end
 * of a block; ours here are the requests rounded to 512 bytes. */
#include "gmd_test.h"
#include "scenario_bench.h"

#include <jansson.h>
#include <math.h>
#include <stdio.h>

typedef struct truth {
    const char *recording, *scenario, *params;
    double allocated_percent, peak_percent; /* how far off each phase may be */
} truth;

static json_t *load_phases(json_t **file, const char *recording)
{
    char path[512];
    json_error_t error;
    snprintf(path, sizeof path, "%s/%s.json", GMD_TRUTH_FOLDER, recording);
    *file = json_load_file(path, 0, &error);
    if (!*file) {
        fail_msg("%s: %s", path, error.text);
    }
    json_t *phases = json_object_get(*file, "phases");
    assert_true(json_array_size(phases) > 0);
    return phases;
}

static void compare(const truth *expected, const char *label, const char *what, uint64_t ours,
                    json_int_t recorded, double percent)
{
    double off = 100.0 * ((double)ours - (double)recorded) / (double)recorded;
    if (fabs(off) > percent) {
        fail_msg("%s %s %s: recorded %lld, ours %llu, %+.2f %%", expected->recording, label, what,
                 (long long)recorded, (unsigned long long)ours, off);
    }
}

static void follows_the_recording(void **state)
{
    const truth *expected = *state;
    json_t *file, *phase, *phases = load_phases(&file, expected->recording);
    bench *run = bench_run_named(expected->scenario, expected->params, 0);
    bench_assert_ok(run);
    assert_int_equal(run->phase_count, json_array_size(phases));
    size_t i;
    json_array_foreach(phases, i, phase)
    {
        const char *label = json_string_value(json_object_get(phase, "label"));
        assert_string_equal(run->phases[i].label, label);
        compare(expected, label, "allocated", bench_at(run, label),
                json_integer_value(json_object_get(phase, "allocated")),
                expected->allocated_percent);
        compare(expected, label, "max_allocated", bench_peak_at(run, label),
                json_integer_value(json_object_get(phase, "max_allocated")),
                expected->peak_percent);
    }
    json_decref(file);
    bench_free(run);
}

static truth resnet50_leak = {"resnet50_leak", "gradient_accumulation", "leak=true", 3, 3};
static truth resnet50_fixed = {"resnet50_fixed", "gradient_accumulation", "leak=false", 3, 3};
static truth resnet50_bs32 = {"resnet50_bs32", "gradient_accumulation",
                              "leak=false batch=32 iterations=4", 3, 3};
static truth hidden_leak = {"hidden_leak", "hidden_state", "leak=true", 8, 8};
static truth hidden_fixed = {"hidden_fixed", "hidden_state", "leak=false", 8, 8};
static truth eval_leak = {"eval_leak", "evaluation", "leak=true", 0, 0};
static truth eval_fixed = {"eval_fixed", "evaluation", "leak=false", 0, 0};
static truth left_free_16 = {"left_free_16", "first_iteration_peak", "", 3, 3};
static truth seq2seq = {"seq2seq", "seq2seq", "", 3, 3};
static truth gpt_frames = {"gpt_frames", "gpt", "", 3, 3};
static truth varbatch = {"varbatch_cap6_default", "variable_batch",
                         "iterations=20 "
                         "shapes=96x138/96x147/32x106/32x164/128x117/128x131/32x95/32x75/32x75/"
                         "96x64/32x104/32x194/64x119/32x58/96x124"
                         "/128x183/32x130/128x120/32x92/32x162",
                         3, 3};
static truth cycle_fixed = {"simple_cycle_fixed", "reference_cycle", "leak=false", 0, 0};

TEST_ROW("resnet50_leak within 3 %", follows_the_recording, &resnet50_leak);
TEST_ROW("resnet50_fixed within 3 %", follows_the_recording, &resnet50_fixed);
TEST_ROW("resnet50_bs32 within 3 %", follows_the_recording, &resnet50_bs32);
TEST_ROW("hidden_leak within 8 %", follows_the_recording, &hidden_leak);
TEST_ROW("hidden_fixed within 8 %", follows_the_recording, &hidden_fixed);
TEST_ROW("eval_leak exactly", follows_the_recording, &eval_leak);
TEST_ROW("eval_fixed exactly", follows_the_recording, &eval_fixed);
TEST_ROW("left_free_16 within 3 %", follows_the_recording, &left_free_16);
TEST_ROW("seq2seq within 3 %", follows_the_recording, &seq2seq);
TEST_ROW("gpt_frames within 3 %", follows_the_recording, &gpt_frames);
TEST_ROW("varbatch_cap6_default within 3 %", follows_the_recording, &varbatch);
TEST_ROW("simple_cycle_fixed exactly", follows_the_recording, &cycle_fixed);

/* Parameters, workspaces and input of ResNet-50, to the byte; the recording has them at "start". */
TEST_F(bench, resnet50_starts_with_the_recorded_bytes)
{
    bench *run = bench_run_named("gradient_accumulation", "iterations=1", 0);
    assert_int_equal(bench_at(run, "start"), 137684480);
    /* the sizes that the recorded events have, each rounded to 512, at the same points */
    assert_int_equal(bench_at(run, "0:forward"), 223212032);
    assert_int_equal(bench_at(run, "0:backward"), 273475072);
    assert_int_equal(bench_at(run, "0:step"), 375707136);
}

/* When the collector ran in the recorded job depends on all of Python's objects; what is the same
 * is the shape: the mean height, and the number of collections. */
TEST_F(bench, uncollected_cycles_follow_the_recorded_saw_tooth)
{
    json_t *file, *phase, *phases = load_phases(&file, "simple_cycle_leak");
    bench *run = bench_run_named("reference_cycle", "", 0);
    double recorded_mean = 0, our_mean = 0;
    json_int_t before = 0;
    size_t i, recorded_drops = 0, our_drops = 0;
    json_array_foreach(phases, i, phase)
    {
        json_int_t recorded = json_integer_value(json_object_get(phase, "allocated"));
        recorded_drops += recorded < before;
        our_drops += i > 0 && run->phases[i].allocated < run->phases[i - 1].allocated;
        recorded_mean += (double)recorded;
        our_mean += (double)run->phases[i].allocated;
        before = recorded;
    }
    assert_int_equal(run->phase_count, json_array_size(phases));
    assert_in_range(our_drops, recorded_drops - 1, recorded_drops + 1);
    assert_true(fabs(our_mean / recorded_mean - 1) < 0.08);
    json_decref(file);
}
