/* The scenarios of the folder: each bound tells the leaking variant from the fixed one, and what a
 * header says of growth is so. Bounds on reserved memory need an allocator: tests/cli runs those.
 */
#include "gmd_test.h"
#include "scenario_bench.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MIB ((uint64_t)1 << 20)

/* --- every scenario ---------------------------------------------------------------------- */

typedef void scenario_check(const char *name, bool has_leak);

static bool has_param(const char *name, const char *key)
{
    gmd_scenario *scenario;
    gmd_scenario_param param;
    gmd_error error;
    bool found = false;
    assert_int_equal(gmd_scenario_open(&scenario, name, GMD_SCENARIO_FOLDER, &error), GMD_OK);
    for (size_t i = 0; gmd_scenario_param_at(scenario, i, &param); i++) {
        found |= strcmp(param.key, key) == 0;
    }
    gmd_scenario_close(scenario);
    return found;
}

static void visit(void *context, const char *name)
{
    scenario_check *const *check = context;
    (*check)(name, has_param(name, "leak"));
}

static void check_all(scenario_check *check)
{
    gmd_error error;
    assert_int_equal(gmd_scenario_each(GMD_SCENARIO_FOLDER, visit, &check, &error), GMD_OK);
}

static void check_frees(const char *name, bool has_leak)
{
    static const char *const variants[] = {"leak=false", "leak=true"};
    for (size_t i = 0; i < (has_leak ? 2 : 1); i++) {
        bench *run = bench_run_named(name, has_leak ? variants[i] : "", 3);
        bench_assert_ok(run);
        assert_int_equal(run->allocated, 0);
        bench_free(run);
    }
}

TEST(every_scenario_frees_what_it_allocated)
{
    check_all(check_frees);
}

static void check_blind(const char *name, bool has_leak)
{
    bench *run = bench_run_named_blind(name);
    (void)has_leak;
    bench_assert_ok(run);
    assert_in_range(run->bound_count, 1, 8);
    bench_free(run);
}

TEST(every_scenario_states_a_bound_where_memory_is_not_known)
{
    check_all(check_blind);
}

static void check_fixed(const char *name, bool has_leak)
{
    if (!has_leak) {
        return;
    }
    bench *run = bench_run_named(name, "leak=false", 0);
    bench_assert_ok(run);
    if (run->bound_count == 0) {
        fail_msg("%s states no bound", name);
    }
    for (size_t i = 0; i < run->bound_count; i++) {
        const bench_bound *bound = &run->bounds[i];
        assert_false(bound->leaks);
        if (bound->peak > bound->bytes) {
            fail_msg("%s passes its bound of %llu: %llu", name, (unsigned long long)bound->bytes,
                     (unsigned long long)bound->peak);
        }
    }
    bench_free(run);
}

TEST(every_fixed_variant_holds_its_bounds)
{
    check_all(check_fixed);
}

static void check_with(const char *name, bool has_leak, const char *key, unsigned long long value)
{
    char params[128];
    bool has_iterations = has_param(name, "iterations") && strcmp(key, "iterations") != 0;
    snprintf(params, sizeof params, "%s%s=%llu%s", has_leak ? "leak=false " : "", key, value,
             has_iterations ? " iterations=5" : "");
    bench *run = bench_run_named(name, params, 0);
    for (size_t i = 0; run->status == GMD_OK && i < run->bound_count; i++) {
        if (run->bounds[i].peak > run->bounds[i].bytes) {
            fail_msg("%s %s passes its bound of %llu: %llu", name, params,
                     (unsigned long long)run->bounds[i].bytes,
                     (unsigned long long)run->bounds[i].peak);
        }
    }
    bench_free(run);
}

/* Each whole number at 1, a tenth, half, twice and ten times its default; what a script refuses is
 * left out. */
static void check_sizes(const char *name, bool has_leak)
{
    gmd_scenario *scenario;
    gmd_scenario_param param;
    gmd_error error;
    assert_int_equal(gmd_scenario_open(&scenario, name, GMD_SCENARIO_FOLDER, &error), GMD_OK);
    for (size_t i = 0; gmd_scenario_param_at(scenario, i, &param); i++) {
        char *end;
        unsigned long long value = strtoull(param.default_value, &end, 10);
        if (*end || end == param.default_value || strcmp(param.key, "max_instructions") == 0) {
            continue;
        }
        check_with(name, has_leak, param.key, 1);
        check_with(name, has_leak, param.key, value / 10);
        check_with(name, has_leak, param.key, value / 2);
        check_with(name, has_leak, param.key, 2 * value);
        check_with(name, has_leak, param.key, 10 * value);
    }
    gmd_scenario_close(scenario);
}

TEST(every_model_and_fixed_variant_holds_its_bounds_at_other_sizes)
{
    check_all(check_sizes);
}

static void check_leaking(const char *name, bool has_leak)
{
    if (!has_leak) {
        return;
    }
    bench *run = bench_run_named(name, "leak=true", 0);
    bench_assert_ok(run);
    for (size_t i = 0; i < run->bound_count; i++) {
        const bench_bound *bound = &run->bounds[i];
        assert_true(bound->leaks);
        if (!bound->is_reserved && bound->peak <= bound->bytes) {
            fail_msg("%s stays within its bound of %llu: %llu", name,
                     (unsigned long long)bound->bytes, (unsigned long long)bound->peak);
        }
    }
    bench_free(run);
}

TEST(every_leaking_variant_passes_its_bounds)
{
    check_all(check_leaking);
}

/* --- what does not make sense --------------------------------------------------------------- */

TEST_F(bench, a_request_that_can_never_be_admitted_is_refused)
{
    bench *run = bench_run_named("inference_serving", "capacity=4607", 0);
    bench_assert_refused(run, "capacity must be at least max_prompt + max_output");
}

TEST_F(bench, shapes_without_a_number_are_refused)
{
    bench *run = bench_run_named("variable_batch", "shapes=abc", 0);
    bench_assert_refused(run, "shapes: BATCHxLENGTH ... expected");
}

static void check_bounds_agree(const char *name, bool has_leak)
{
    if (!has_leak) {
        return;
    }
    bench *leak = bench_run_named(name, "leak=true", 0);
    bench *fixed = bench_run_named(name, "leak=false", 0);
    assert_int_equal(leak->bound_count, fixed->bound_count);
    for (size_t i = 0; i < leak->bound_count; i++) {
        assert_int_equal(leak->bounds[i].bytes, fixed->bounds[i].bytes);
    }
    bench_free(leak);
    bench_free(fixed);
}

TEST(both_variants_state_the_same_bound)
{
    check_all(check_bounds_agree);
}

/* --- growth ------------------------------------------------------------------------------ */

/* From phase `from` to phase `to` of the leaking variant allocated memory grows by so much; in the
 * fixed one it is the same at both. */
typedef struct growth {
    const char *name, *params, *from, *to;
    uint64_t bytes;
} growth;

static void grows_by_what_its_header_says(void **state)
{
    const growth *g = *state;
    char params[128];
    snprintf(params, sizeof params, "leak=true %s", g->params);
    bench *leak = bench_run_named(g->name, params, 0);
    snprintf(params, sizeof params, "leak=false %s", g->params);
    bench *fixed = bench_run_named(g->name, params, 0);
    bench_assert_ok(leak);
    bench_assert_ok(fixed);
    assert_int_equal(bench_at(leak, g->to) - bench_at(leak, g->from), g->bytes);
    assert_int_equal(bench_at(fixed, g->to), bench_at(fixed, g->from));
    bench_free(leak);
    bench_free(fixed);
}

/* A validation graph: the input and the mask, four hidden activations, what layer_norm and
 * cross_entropy save; outputs; two losses. */
static growth metrics = {"metrics", "iterations=6", "4", "5",
                         MIB * 2 * 2 + MIB * 4 * 8 + 4096 + 2048000 + 4096 + 512 + 2048000 + 1024};
static growth metrics_of_other_sizes = {
    "metrics", "iterations=4 batch=256 hidden=2048 validate=128 classes=512", "2", "3",
    MIB / 2 + MIB / 4 + 4 * MIB + 1024 + MIB / 4 + 1024 + 512 + MIB / 2 + 1024};
static growth logging = {"logging_tensors", "iterations=8", "3", "5", MIB * 6 * 4 + 1024};
static growth checkpoint_cache = {"checkpoint_cache", "iterations=6", "2", "5", 3 * MIB * 8 * 4};
static growth checkpoint_cache_of_other_sizes = {
    "checkpoint_cache", "iterations=4 layers=3 batch=256", "2", "3", MIB * 3 * 1};
static growth awaitable = {"awaitable_cycle", "iterations=8 objects=0", "2", "7", 5 * MIB * 4 * 8};
static growth closure = {"closure_cycle", "iterations=6 layers=1 interval=1", "1", "4",
                         3 * (uint64_t)4 * 4 * (MIB + 1024)};
/* Two passes of the discriminator: images, what four layers made of them, one number and a target
 * for each image; two losses. */
static growth gan = {"gan", "iterations=8", "4", "6",
                     2 * (2 * (MIB * 3 + 4 * MIB + 1024 + 1024) + UINT64_C(2) * 512)};
static growth evaluation = {"evaluation", "iterations=6", "1", "5", 0};

TEST_ROW("metrics grows", grows_by_what_its_header_says, &metrics);
TEST_ROW("metrics of other sizes grows", grows_by_what_its_header_says, &metrics_of_other_sizes);
TEST_ROW("logging_tensors grows", grows_by_what_its_header_says, &logging);
TEST_ROW("checkpoint_cache grows", grows_by_what_its_header_says, &checkpoint_cache);
TEST_ROW("checkpoint_cache of other sizes grows", grows_by_what_its_header_says,
         &checkpoint_cache_of_other_sizes);
TEST_ROW("awaitable_cycle grows", grows_by_what_its_header_says, &awaitable);
TEST_ROW("closure_cycle grows", grows_by_what_its_header_says, &closure);
TEST_ROW("gan grows", grows_by_what_its_header_says, &gan);
TEST_ROW("evaluation does not grow", grows_by_what_its_header_says, &evaluation);

/* --- claims of single scenarios ---------------------------------------------------------- */

TEST_F(bench, an_evaluation_with_graph_holds_the_input_and_a_result_for_each_layer)
{
    bench *leak = bench_run_named("evaluation", "iterations=3 layers=5", 0);
    bench *fixed = bench_run_named("evaluation", "iterations=3 layers=5 leak=false", 0);
    assert_int_equal(bench_at(leak, "2") - bench_at(fixed, "2"), MIB * 6 * 8);
    /* the next graph is whole before this one goes */
    assert_in_range(bench_peak_at(leak, "2") - bench_at(leak, "2"), MIB * 6 * 8, MIB * 8 * 8);
}

TEST_F(bench, a_kept_grad_fn_keeps_what_its_iteration_saved)
{
    /* log_softmax, classes and the total weight of cross_entropy */
    const uint64_t loss = 1024 * 10 * 4 + 1024 * 8 + 512;
    bench *leak = bench_run_named("dynamic_graph", "iterations=10", 5);
    uint64_t least = UINT64_MAX, most = 0;
    for (size_t i = 1; i < leak->phase_count; i++) {
        uint64_t grown = leak->phases[i].allocated - leak->phases[i - 1].allocated - loss;
        assert_int_equal(grown % (MIB * 4), 0);
        least = grown < least ? grown : least;
        most = grown > most ? grown : most;
    }
    assert_true(least >= MIB * 3 * 4 && most <= MIB * 14 * 4);
    assert_true(least < most); /* the depth differs */
}

TEST_F(bench, cycles_wait_for_gc_collect_where_it_is_called)
{
    bench *collected = bench_run_named("awaitable_cycle", "iterations=12 objects=0 interval=3", 0);
    uint64_t step = MIB * 4 * 8;
    assert_int_equal(bench_at(collected, "5"), 2 * step);
    assert_int_equal(bench_at(collected, "6"), 0);
    assert_int_equal(bench_at(collected, "8"), 2 * step);
}

TEST_F(bench, the_collector_counts_objects_and_not_bytes)
{
    bench *large = bench_run_named("awaitable_cycle", "", 0);
    bench *small = bench_run_named("awaitable_cycle", "batch=128", 0);
    assert_int_equal(large->max_allocated, 128 * small->max_allocated);
}

TEST_F(bench, buffers_made_once_ask_for_nothing_in_the_loop)
{
    bench *leak = bench_run_named("allocate_in_loop", "iterations=50", 0);
    bench *fixed = bench_run_named("allocate_in_loop", "iterations=50 leak=false", 0);
    assert_int_equal(leak->requests, 2 * 3 * 50);
    assert_int_equal(fixed->requests, 2 * 3);
    assert_int_equal(fixed->max_allocated, MIB * 3 * 128);
}

TEST_F(bench, broadcasting_makes_two_temporaries_as_large_as_all_dimensions)
{
    bench *leak = bench_run_named("broadcast_temporaries", "points=512 features=64", 0);
    bench *fixed = bench_run_named("broadcast_temporaries", "points=512 features=64 leak=false", 0);
    assert_in_range(leak->max_allocated, MIB * 2 * 64, MIB * 2 * 64 + MIB);
    assert_true(fixed->largest <= MIB * 32); /* the workspace of cuBLAS */
}

TEST_F(bench, checkpointing_saves_the_inputs_of_blocks_and_not_what_is_in_them)
{
    const char *params = "iterations=1 leak=false layers=4";
    bench *four = bench_run_named("gradient_checkpointing", params, 0);
    bench *five = bench_run_named("gradient_checkpointing", "iterations=1 leak=false layers=5", 0);
    uint64_t block = bench_at(five, "0:forward") - bench_at(four, "0:forward");
    uint64_t parameters = 4 * (uint64_t)(12 * 512 * 512 + 13 * 512);
    assert_int_equal(block, parameters + MIB * 8);
}

TEST_F(bench, autocast_halves_what_the_layers_save)
{
    bench *wide = bench_run_named("mixed_precision", "iterations=1", 0);
    bench *half = bench_run_named("mixed_precision", "iterations=1 leak=false", 0);
    uint64_t saved = bench_at(wide, "0:forward") - bench_at(wide, "0:step");
    uint64_t saved_in_16_bits = bench_at(half, "0:forward") - bench_at(half, "0:step");
    assert_in_range(saved_in_16_bits * 100 / saved, 40, 60);
}

static uint64_t activations_of_pipeline(const char *params)
{
    bench *run = bench_run_named("pipeline", params, 0);
    bench_assert_ok(run);
    uint64_t peak = bench_peak_at(run, "0:backward");
    bench_free(run);
    return peak;
}

TEST(all_forward_passes_first_keep_every_microbatch)
{
    const uint64_t pass = MIB * 3 * 8; /* the input, and the results of two layers */
    uint64_t sixteen = activations_of_pipeline("iterations=1 microbatches=16");
    uint64_t twenty = activations_of_pipeline("iterations=1 microbatches=20");
    assert_int_equal(twenty - sixteen, pass * 12);
}

TEST(one_forward_one_backward_keeps_as_many_as_it_warms_up_with)
{
    const uint64_t pass = MIB * 3 * 8;
    uint64_t sixteen = activations_of_pipeline("iterations=1 leak=false microbatches=16");
    uint64_t twenty = activations_of_pipeline("iterations=1 leak=false microbatches=20");
    uint64_t two_ranks = activations_of_pipeline("iterations=1 leak=false ranks=2");
    assert_int_equal(twenty, sixteen);
    assert_int_equal(sixteen - two_ranks, pass * 4); /* two stages of two ranks fewer */
}

/* 64 tokens more: 4 layers of 2 * 12 heads, 128^2 - 64^2 scores of 4 bytes. */
TEST_F(bench, written_scores_grow_with_the_square_of_the_length)
{
    bench *leak = bench_run_named("attention_scores", "iterations=1 length=128", 0);
    bench *fixed = bench_run_named("attention_scores", "iterations=1 length=128 leak=false", 0);
    bench_assert_ok(leak);
    bench_assert_ok(fixed);
    uint64_t scores = (uint64_t)4 * 2 * 12 * 128 * 128 * 4;
    uint64_t more = bench_at(leak, "0:forward") - bench_at(fixed, "0:forward");
    assert_true(more > scores && more < 2 * scores);
}

TEST_F(bench, a_frozen_base_has_neither_gradients_nor_moments)
{
    bench *leak = bench_run_named("lora", "iterations=1", 0);
    bench *fixed = bench_run_named("lora", "iterations=1 leak=false", 0);
    uint64_t base = bench_at(leak, "start"), grown = bench_at(leak, "0:step") - base;
    assert_in_range(grown, 2 * base, 2 * base + 160 * MIB); /* two moments, and workspaces */
    assert_true(bench_at(fixed, "0:step") < bench_at(fixed, "start") + 120 * MIB);
}

TEST_F(bench, a_capacity_makes_every_step_the_same)
{
    bench *leak = bench_run_named("mixture_of_experts", "", 0);
    bench *fixed = bench_run_named("mixture_of_experts", "leak=false", 0);
    size_t last = fixed->phase_count - 1;
    assert_int_equal(fixed->phases[last].max_allocated, fixed->phases[1].max_allocated);
    assert_true(leak->phases[last].max_allocated > leak->phases[1].max_allocated);
}

TEST_F(bench, pages_are_asked_for_once_in_a_while)
{
    bench *leak = bench_run_named("inference_serving", "iterations=100", 0);
    bench *fixed = bench_run_named("inference_serving", "iterations=100 leak=false", 0);
    assert_true(leak->requests > 5 * fixed->requests);
    assert_int_equal(fixed->largest, (uint64_t)64 * 32 * 1024); /* a page of 64 tokens */
}

TEST_F(bench, trials_of_algorithms_peak_ten_times_as_high_as_training)
{
    bench *run = bench_run_named("first_iteration_peak", "iterations=2", 0);
    bench_assert_ok(run);
    assert_true(bench_peak_at(run, "epoch0") > 10 * bench_peak_at(run, "epoch1"));
}

static bool trains_within(uint64_t limit)
{
    bench *run = bench_run_named_limited("first_iteration_peak", "iterations=2", limit);
    bench_assert_ok(run);
    bool trains = !run->out_of_memory;
    bench_free(run);
    return trains;
}

TEST_F(bench, the_smallest_memory_that_trains_is_the_steady_peak)
{
    bench *run = bench_run_named("first_iteration_peak", "iterations=2", 0);
    uint64_t steady = bench_peak_at(run, "epoch1"), low = 0, high = bench_peak_at(run, "epoch0");
    bench_free(run);
    while (high - low > MIB) {
        uint64_t middle = low + (high - low) / 2;
        if (trains_within(middle)) {
            high = middle;
        } else {
            low = middle;
        }
    }
    assert_in_range(high, steady - steady / 50, steady + steady / 50);
}
