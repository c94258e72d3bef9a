/* CUDA graphs in scripts. The facts are those of torch/cuda/graphs.py and CUDAGraph.cpp of PyTorch
 * 2.11; tests/scenarios/twins/draw_replayed.py has programs for a comparison with recordings. */
#include "gmd_test.h"
#include "scenario_bench.h"

#include <string.h>

#define GRAPH "g = cuda.CUDAGraph()\nx = randn { 4, 4 }\nphase 'before'\n"

static void assert_asks(const char *text, const char *phase, const char *expected)
{
    bench *run = bench_run(text);
    bench_assert_ok(run);
    assert_string_equal(bench_asked_in(run, phase), expected);
}

static void assert_refused(const char *text, const char *part)
{
    bench_assert_refused(bench_run(text), part);
}

/* Seed and offset of the random numbers come first. */
TEST_F(bench, a_capture_asks_for_what_the_function_asks_for)
{
    assert_asks(GRAPH "cuda.graph(g, function() y = x + 1 end)\nphase 'after'\n", "after",
                "+8 +8 +64");
}

TEST_F(bench, a_second_graph_shares_the_states_of_random_numbers)
{
    assert_asks(GRAPH "cuda.graph(g, function() y = x + 1 end)\nh = cuda.CUDAGraph()\n"
                      "phase 'one'\ncuda.graph(h, function() z = x + 1 end)\nphase 'two'\n",
                "two", "+64");
}

TEST_F(bench, the_last_graph_that_goes_takes_them_along)
{
    assert_asks(GRAPH
                "cuda.graph(g, function() y = x + 1 end)\nphase 'one'\ng = nil\nphase 'gone'\n",
                "gone", "-8 -8");
}

TEST_F(bench, a_replay_asks_for_nothing)
{
    assert_asks(GRAPH "cuda.graph(g, function() y = x + 1 end)\nphase 'one'\ng:replay()\n"
                      "phase 'replayed'\n",
                "replayed", "");
}

TEST_F(bench, what_a_function_returns_is_the_value_of_the_capture)
{
    bench *run =
        bench_run(GRAPH "y = cuda.graph(g, function() return x + 1 end)\nphase(y:size(1))\n");
    bench_assert_ok(run);
    assert_string_equal(run->phases[1].label, "4");
}

TEST_F(bench, a_graph_that_was_reset_can_be_captured_anew)
{
    bench *run = bench_run(GRAPH "cuda.graph(g, function() y = x + 1 end)\ng:reset()\n"
                                 "cuda.graph(g, function() y = x + 1 end)\ng:replay()\n");
    bench_assert_ok(run);
}

TEST_F(bench, graphs_that_are_gone_leave_their_pools_to_others)
{
    bench *run = bench_run("x = randn { 4 }\nfor i = 1, 200 do\n  g = cuda.CUDAGraph()\n"
                           "  cuda.graph(g, function() y = x + 1 end)\nend\n");
    bench_assert_ok(run);
}

TEST_F(bench, more_than_64_pools_are_refused)
{
    assert_refused("x = randn { 4 }\nall = list()\nfor i = 1, 65 do\n  g = cuda.CUDAGraph()\n"
                   "  all:append(g)\n  cuda.graph(g, function() y = x + 1 end)\nend\n",
                   "at most 64 graphs");
}

TEST_F(bench, an_error_in_a_function_ends_the_capture)
{
    bench *run = bench_run(GRAPH "pcall(function() cuda.graph(g, function() error('no') end) end)\n"
                                 "h = cuda.CUDAGraph()\ncuda.graph(h, function() y = x + 1 end)\n");
    bench_assert_ok(run);
}

TEST_F(bench, what_cannot_be_part_of_a_graph_is_refused)
{
    assert_refused(GRAPH "cuda.graph(g, function() cuda.synchronize() end)\n",
                   "not while a graph is captured");
    assert_refused(GRAPH "cuda.graph(g, function() cuda.empty_cache() end)\n",
                   "not while a graph is captured");
    assert_refused(GRAPH "cuda.graph(g, function() x:sum():item() end)\n",
                   "not while a graph is captured");
    assert_refused(GRAPH "cuda.graph(g, function() g:reset() end)\n",
                   "not while a graph is captured");
    assert_refused(GRAPH
                   "cuda.graph(g, function() cuda.graph(cuda.CUDAGraph(), function() end) end)\n",
                   "not while a graph is captured");
}

TEST_F(bench, a_graph_that_was_not_captured_is_refused)
{
    assert_refused(GRAPH "g:replay()\n", "was not captured");
    assert_refused(GRAPH "g:pool()\n", "was not captured");
    assert_refused(GRAPH "cuda.graph(g, function() end)\ncuda.graph(g, function() end)\n",
                   "was captured already");
}
