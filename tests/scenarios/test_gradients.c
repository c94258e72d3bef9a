/* autograd.grad(), and derivatives of derivatives. The facts are those of torch/autograd and
 * derivatives.yaml of PyTorch 2.11; the penalties of tests/scenarios/twins/draw_replayed.py are
 * programs for a comparison with recordings.
 *
 * "+N -M" is an allocation and a free. */
#include "gmd_test.h"
#include "scenario_bench.h"

#include <stdio.h>

/* cuBLAS's workspaces of both threads are there before. */
#define WARM                                                                                       \
    "k = nn.Linear { 4, 4 }\nk(randn { 1, 4, requires_grad = true }):sum():backward()\nk = nil\n"
#define CRITIC(activation)                                                                         \
    WARM "m = nn.Sequential { nn.Linear { 16, 8, bias = false }, " activation                      \
         ", nn.Linear { 8, 1, bias = false } }\nx = randn { 4, 16, requires_grad = true }\n"

static void assert_asks(const char *before, const char *call, const char *expected)
{
    char text[2048];
    snprintf(text, sizeof text, "%sphase 'before'\n%s\nphase 'after'\n", before, call);
    bench *run = bench_run(text);
    bench_assert_ok(run);
    assert_string_equal(bench_asked_in(run, "after"), expected);
}

static void assert_refused(const char *text, const char *part)
{
    bench_assert_refused(bench_run(text), part);
}

TEST_F(bench, a_gradient_by_an_input_is_a_tensor_and_nothing_is_kept)
{
    assert_asks("a = randn { 64, requires_grad = true }\nb = a:square():sum()\n",
                "g = autograd.grad(b, { a })\nphase(a.grad and 1 or 0)\ng = nil", "-256");
}

TEST_F(bench, weights_get_no_gradients)
{
    bench *run = bench_run(CRITIC("nn.ReLU()") "g = autograd.grad(m(x):sum(), { x })\n"
                                               "phase((select(2, m:nbytes())))\n");
    bench_assert_ok(run);
    assert_string_equal(run->phases[0].label, "0");
}

TEST_F(bench, there_is_a_gradient_for_each_input)
{
    assert_asks("a = randn { 64, requires_grad = true }\nb = randn { 64, requires_grad = true }\n"
                "c = (a * b):sum()\n",
                "g, h = autograd.grad(c, { a, b })", "+4 +256 +256 -4");
}

/* The last weight by the expanded gradient, copied for cuBLAS; the mask's derivative; a product. */
TEST_F(bench, a_derivative_that_is_recorded_keeps_what_its_own_needs)
{
    assert_asks(CRITIC("nn.ReLU()") "s = m(x):sum()\n",
                "g = autograd.grad(s, { x }, { create_graph = true })",
                "+4 +128 +16 -16 +128 -128 +256");
}

TEST_F(bench, the_derivative_of_a_mask_gives_zeros_to_what_the_mask_is_of)
{
    bench *run = bench_run(CRITIC(
        "nn.LeakyReLU { 0.2 }") "g = autograd.grad(m(x):sum(), { x }, { create_graph = true })\n"
                                "l = g:square():sum()\nl:backward()\nphase((select(2, "
                                "m:nbytes())))\n");
    bench_assert_ok(run);
    assert_string_equal(run->phases[0].label, "544"); /* both weights have one */
}

TEST_F(bench, all_memory_is_given_back)
{
    bench *run = bench_run(
        CRITIC("nn.Tanh()") "g = autograd.grad(m(x):sum(), { x }, { create_graph = true })\n"
                            "l = g:square():sum()\nl:backward()\n"
                            "g, l, m, x = nil\nphase(cuda.requested().bytes)\n");
    bench *empty = bench_run(WARM "phase(cuda.requested().bytes)\n");
    bench_assert_ok(run);
    assert_string_equal(run->phases[0].label, empty->phases[0].label);
}

TEST_F(bench, what_is_not_known_is_refused)
{
    assert_refused("a = randn { 4, requires_grad = true }\n"
                   "autograd.grad(a:exp():sum(), { a }, { create_graph = true })\n",
                   "ExpBackward computes is not known");
    assert_refused("m = nn.Linear { 4, 4 }\nx = randn { 2, 4 }\n"
                   "autograd.grad(m(x):sum(), m:parameters(), { create_graph = true })\n",
                   "the gradient by its input is known");
    assert_refused("a = randn { 4, requires_grad = true }\nb = randn { 4, requires_grad = true }\n"
                   "autograd.grad(a:sum(), { b })\n",
                   "input 1 is not in the graph");
    assert_refused("a = randn { 4 }\nautograd.grad(a:sum(), { a })\n", "has no graph");
    assert_refused("a = randn { 4, requires_grad = true }\nautograd.grad(a:square(), { a })\n",
                   "give a gradient");
    assert_refused("a = randn { 4, requires_grad = true }\nautograd.grad(a:sum(), {})\n",
                   "inputs expected");
}
