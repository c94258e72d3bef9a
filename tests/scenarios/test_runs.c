/* How a run ends, that it can be repeated, and that the variants differ as their headers say. */
#include "gmd_test.h"
#include "scenario_bench.h"

#include <string.h>

TEST_F(bench, out_of_memory_that_nobody_handles_ends_the_run)
{
    bench *run =
        bench_run_limited("a = empty { 256 }\nb = empty { 1024 }\nphase 'not reached'", 2048);
    bench_assert_ok(run);
    assert_true(run->out_of_memory);
    assert_int_equal(run->phase_count, 0);
    assert_int_equal(run->allocated, 0);
}

TEST_F(bench, a_script_can_handle_out_of_memory)
{
    bench *run = bench_run_limited("ok, why = pcall(function() x = empty { 1024 } end)\n"
                                   "assert(not ok and why ~= nil)\n"
                                   "x = empty { 256 }\n"
                                   "phase 'smaller'",
                                   2048);
    bench_assert_ok(run);
    assert_false(run->out_of_memory);
    assert_int_equal(bench_at(run, "smaller"), 1024);
}

TEST_F(bench, out_of_memory_raised_again_is_still_out_of_memory)
{
    bench *run = bench_run_limited("ok, why = pcall(empty, { 1024 })\nerror(why, 0)", 2048);
    bench_assert_ok(run);
    assert_true(run->out_of_memory);
}

/* Wherever the memory ends in training: no crash, and everything is given back. */
TEST_F(bench, out_of_memory_anywhere_in_training_leaves_nothing)
{
    const char *training =
        "m = nn.TransformerEncoder { layers = 1, features = 64, heads = 4 }\n"
        "l = nn.LSTM { 64, 64 }\n"
        "c = nn.Conv2d { 1, 4, kernel = 3 }\n"
        "o = optim.AdamW { m, l, c, lr = 1 }\n"
        "for i = 1, 2 do\n"
        "  x = m(randn { 4, 8, 64 })\n"
        "  y, h = l(x)\n"
        "  z = c(y:reshape { 4, 1, 16, 32 }):square():mean() + y:square():mean()\n"
        "  z:backward() o:step() o:zero_grad()\n"
        "end\n"
        "phase 'done'";
    bool ran_out = true;
    for (uint64_t limit = 512; ran_out; limit += limit / 16 + 512) {
        bench *run = bench_run_limited(training, limit);
        bench_assert_ok(run);
        ran_out = run->out_of_memory;
        assert_int_equal(run->allocated, 0);
        assert_int_equal(run->phase_count, ran_out ? 0 : 1);
        bench_free(run);
    }
}

TEST_F(bench, stop_ends_the_run_without_further_requests)
{
    for (uint64_t stop = 1; stop <= 40; stop++) {
        bench *run = bench_run_stopped("m = nn.Linear { 8, 8 }\n"
                                       "pcall(function() m(empty { 4, 8 }):mean():backward() end)\n"
                                       "for i = 1, 100 do x = empty { 8 } end\n",
                                       stop);
        bench_assert_ok(run);
        assert_false(run->out_of_memory);
        assert_int_equal(run->requests, stop);
        assert_int_equal(run->after_stop, 0);
        bench_free(run);
    }
}

TEST_F(bench, the_same_seed_gives_the_same_requests)
{
    bench *first = bench_run_named("variable_batch", "iterations=10", 7);
    bench *second = bench_run_named("variable_batch", "iterations=10", 7);
    bench *other = bench_run_named("variable_batch", "iterations=10", 8);
    bench_assert_ok(first);
    assert_true(first->hash == second->hash);
    assert_true(first->hash != other->hash);
}

static gmd_served count_request(void *context, const gmd_request *request)
{
    (void)request;
    ++*(uint64_t *)context;
    return GMD_SERVED;
}

TEST(an_open_scenario_can_be_run_again_with_other_parameters)
{
    gmd_scenario *scenario;
    gmd_error error;
    uint64_t requests[3] = {0};
    const gmd_param three = {"iterations", "3"};
    bool out_of_memory;
    assert_int_equal(gmd_scenario_open(&scenario, "hidden_state", GMD_SCENARIO_FOLDER, &error),
                     GMD_OK);
    for (size_t i = 0; i < 3; i++) {
        gmd_sink sink = {.context = &requests[i], .request = count_request};
        assert_int_equal(
            gmd_scenario_run(scenario, &three, i < 2 ? 1 : 0, 0, &sink, &out_of_memory, &error),
            GMD_OK);
    }
    gmd_scenario_close(scenario);
    assert_int_equal(requests[0], requests[1]);
    assert_true(requests[2] > requests[1]);
}

TEST_F(bench, pairs_goes_in_the_order_of_the_keys)
{
    bench *run = bench_run("local t, keys = { z = 1, a = 2, [10] = 3, [2] = 4, m = 5 }, ''\n"
                           "for k in pairs(t) do keys = keys .. k .. ' ' end\n"
                           "assert(keys == '2 10 a m z ', keys)");
    bench_assert_ok(run);
}

TEST_F(bench, the_script_sees_the_memory_figures)
{
    bench *run = bench_run("x = empty { 256 }\nassert(cuda.memory().allocated == 1024)");
    bench_assert_ok(run);
}

TEST_F(bench, peaks_begin_anew_where_the_script_resets_them)
{
    bench *run = bench_run("x = empty { 1024 }\nx = nil\nphase 'before'\n"
                           "cuda.reset_peak_memory_stats()\ny = empty { 256 }\nphase 'after'\n"
                           "assert(cuda.requested().peak == 1024)");
    bench_assert_ok(run);
    assert_int_equal(bench_peak_at(run, "before"), 4096);
    assert_int_equal(bench_peak_at(run, "after"), 1024);
}

TEST_F(bench, gradients_kept_raise_each_forward_pass_by_one_set_of_them)
{
    bench *leak = bench_run_named("gradient_accumulation", "", 0);
    bench *fixed = bench_run_named("gradient_accumulation", "leak=false", 0);
    /* 25,557,032 parameters of 4 bytes, each rounded to 512 */
    uint64_t gradients = bench_at(leak, "0:step") - bench_at(leak, "0:backward");
    assert_int_equal(gradients, 102232064);
    assert_int_equal(bench_at(leak, "3:forward") - bench_at(fixed, "3:forward"), gradients);
    assert_int_equal(bench_at(leak, "1:forward"), bench_at(leak, "4:forward"));
}

TEST_F(bench, a_state_never_detached_grows_by_one_batch_each_iteration)
{
    bench *leak = bench_run_named("hidden_state", "", 0);
    bench *fixed = bench_run_named("hidden_state", "leak=false", 0);
    /* input, output, two states, and cuDNN's reserve space */
    uint64_t batch = 1310720 + 2621440 + 2 * 131072 + 28836352;
    assert_int_equal(bench_at(leak, "24") - bench_at(leak, "23"), batch);
    assert_int_equal(bench_at(leak, "2") - bench_at(leak, "1"), batch);
    assert_int_equal(bench_at(fixed, "24"), bench_at(fixed, "1"));
}

TEST_F(bench, cycles_grow_until_the_collector_runs_and_stay_bounded_with_gc_collect)
{
    const uint64_t pair = 2 * (uint64_t)67108864;
    bench *leak = bench_run_named("reference_cycle", "", 0);
    bench *fixed = bench_run_named("reference_cycle", "leak=false", 0);
    assert_true(leak->max_allocated >= 12 * pair);
    assert_true(fixed->max_allocated <= 6 * pair);
    size_t drops = 0;
    for (size_t i = 1; i < leak->phase_count; i++) {
        drops += leak->phases[i].allocated < leak->phases[i - 1].allocated;
    }
    assert_true(drops >= 5); /* the saw-tooth */
}

TEST_F(bench, drawn_shapes_vary_and_padded_ones_do_not)
{
    bench *leak = bench_run_named("variable_batch", "", 1);
    bench *fixed = bench_run_named("variable_batch", "leak=false", 1);
    size_t same = 0;
    for (size_t i = 1; i < leak->phase_count; i++) {
        same += strcmp(strchr(leak->phases[i].label, ':'), strchr(leak->phases[0].label, ':')) == 0;
        assert_int_equal(leak->phases[i].allocated, leak->phases[0].allocated);
        assert_string_equal(strchr(fixed->phases[i].label, ':'), ":128x200");
    }
    assert_true(same < 5);
    /* the recorded end of an iteration, within 1 %: 297,095,168 */
    assert_true(leak->phases[0].allocated > 294124216 && leak->phases[0].allocated < 300066120);
}
