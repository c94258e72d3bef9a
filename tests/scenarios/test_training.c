/* What training takes besides the model: optimizers' state and temporaries, groups of parameters,
 * models in 16 bits, GradScaler. The facts are those of torch/optim and torch/amp of 2.11; the
 * sequences of RMSprop, Adagrad, AMSGrad and GradScaler were recorded on an H200.
 *
 * Each test has parameters of 4096 and 1024 bytes with gradients. */
#include "gmd_test.h"
#include "scenario_bench.h"

#include <stdio.h>
#include <string.h>

#define TRAINED                                                                                    \
    "a = randn { 32, 32, requires_grad = true }\nb = randn { 16, 16, requires_grad = true };\n"    \
    "(a:sum() + b:sum()):backward()\n"

/* What the statements ask for, in order. */
static void assert_asks(const char *before, const char *statements, const char *asked)
{
    char text[1024];
    snprintf(text, sizeof text, TRAINED "%s\nphase 'before'\n%s\nphase 'after'\n", before,
             statements);
    bench *run = bench_run(text);
    bench_assert_ok(run);
    assert_string_equal(bench_asked_in(run, "after"), asked);
    bench_free(run);
}

/* --- optimizers -------------------------------------------------------------------------- */

TEST_F(bench, rmsprop_keeps_the_mean_square_and_takes_its_root_for_all_at_once)
{
    assert_asks("o = optim.RMSprop { a, b }", "o:step()", "+4096 +1024 +4096 +1024 -1024 -4096");
    assert_asks("o = optim.RMSprop { a, b }\no:step()", "o:step()", "+4096 +1024 -1024 -4096");
}

TEST_F(bench, rmsprop_keeps_a_buffer_with_momentum_and_a_mean_where_it_is_centered)
{
    assert_asks("o = optim.RMSprop { a, momentum = 0.9 }", "o:step()", "+4096 +4096 +4096 -4096");
    assert_asks("o = optim.RMSprop { a, centered = true }", "o:step()", "+4096 +4096 +4096 -4096");
}

TEST_F(bench, rmsprop_one_after_the_other_keeps_a_root_until_the_next_one_is_made)
{
    assert_asks("o = optim.RMSprop { a, b, foreach = false }\no:step()", "o:step()",
                "+4096 +1024 -4096 -1024");
}

TEST_F(bench, adagrad_has_its_sums_from_the_beginning)
{
    assert_asks("", "o = optim.Adagrad { a, b }", "+4096 +1024");
}

TEST_F(bench, adagrad_takes_roots_and_multiplied_gradients_of_all)
{
    assert_asks("o = optim.Adagrad { a, b }", "o:step()",
                "+4096 +1024 +4096 +1024 -1024 -4096 -1024 -4096");
}

TEST_F(bench, amsgrad_keeps_a_third_state)
{
    assert_asks("o = optim.Adam { a, amsgrad = true }", "o:step()",
                "+4096 +4096 +4096 +4096 -4096");
    assert_asks("o = optim.AdamW { a, amsgrad = true, fused = true }", "o:step()",
                "+4 +4096 +4096 +4096");
}

TEST_F(bench, nesterov_is_in_place_for_all_at_once_and_a_new_gradient_one_after_the_other)
{
    assert_asks("o = optim.SGD { a, b, momentum = 0.9, nesterov = true }\no:step()", "o:step()",
                "");
    assert_asks("o = optim.SGD { a, b, momentum = 0.9, nesterov = true, foreach = false }\n"
                "o:step()",
                "o:step()", "+4096 -4096 +1024 -1024");
}

TEST_F(bench, nesterov_without_momentum_is_refused)
{
    bench *run = bench_run(TRAINED "o = optim.SGD { a, nesterov = true }\n");
    bench_assert_refused(run, "nesterov: a momentum is needed");
}

TEST_F(bench, a_step_takes_its_temporaries_for_one_group_after_the_other)
{
    assert_asks("o = optim.Adam { a }\no:add_param_group { b }\no:step()", "o:step()",
                "+4096 -4096 +1024 -1024");
}

TEST_F(bench, a_group_has_a_decay_of_its_own)
{
    assert_asks("o = optim.SGD { a }\no:add_param_group { b, weight_decay = 0.1 }", "o:step()",
                "+1024 -1024");
}

TEST_F(bench, a_parameter_of_a_group_is_in_no_other)
{
    assert_asks("o = optim.Adam { a }\no:add_param_group { a }", "o:step()",
                "+4096 +4096 +4096 -4096");
}

/* --- models in 16 bits ------------------------------------------------------------------- */

TEST_F(bench, a_model_in_16_bits_has_gradients_and_state_in_16_bits)
{
    bench *run = bench_run("m = nn.Sequential { nn.Linear { 32, 32 }, nn.LayerNorm { 32 }, "
                           "nn.BatchNorm1d { 32 } }\nwide, _, statistics = m:nbytes()\n"
                           "m:to('bfloat16')\n"
                           "m(randn { 8, 32, dtype = 'bfloat16' }):sum():backward()\n"
                           "parameters, gradients, buffers = m:nbytes()\n"
                           "assert(parameters == wide / 2 and gradients == wide / 2)\n"
                           "assert(buffers == (statistics - 8) / 2 + 8)\n"
                           "o = optim.Adam { m }\no:step()\nassert(o:nbytes() == wide)\n");
    bench_assert_ok(run);
    assert_int_equal(run->allocated, 0);
}

TEST_F(bench, each_parameter_is_converted_before_the_next_one)
{
    bench *run = bench_run("m = nn.Linear { 32, 32 }\nphase 'before'\nm:half()\nphase 'after'\n");
    bench_assert_ok(run);
    assert_string_equal(bench_asked_in(run, "after"), "+2048 -4096 +64 -128");
}

TEST_F(bench, a_layer_refuses_an_input_of_another_type_than_its_weights)
{
    bench *run = bench_run("m = nn.Linear { 32, 32 }:half()\ny = m(randn { 8, 32 })\n");
    bench_assert_refused(run, "the input is float32 and the weights are float16");
}

TEST_F(bench, a_recurrent_network_is_not_converted)
{
    bench *run = bench_run("m = nn.LSTM { 8, 8 }\nm:half()\n");
    bench_assert_refused(run, "what an LSTM or GRU takes in other types than float32 is not known");
}

/* --- GradScaler -------------------------------------------------------------------------- */

#define SCALED "o = optim.SGD { a }\ng = GradScaler()\n"
#define LOSS   "loss = g:scale(randn { 1 }:sum())\n"

TEST_F(bench, a_scaler_makes_its_scale_and_a_counter_when_it_is_first_used)
{
    assert_asks(SCALED "l = randn { 1 }:sum()", "s = g:scale(l)", "+4 +4 +4");
    assert_asks(SCALED "l = randn { 1 }:sum()\ng:scale(l)", "s = g:scale(l)", "+4");
}

TEST_F(bench, a_step_looks_for_infinities_and_keeps_whether_it_found_one_until_the_update)
{
    assert_asks(SCALED LOSS, "g:step(o)", "+8 +8 -8 +4 -8 +4 +4 +4 -4 -4 -4");
    assert_asks(SCALED LOSS "g:unscale_(o)", "g:step(o)", "");
    assert_asks(SCALED LOSS "g:step(o)", "g:update()", "-4");
}

TEST_F(bench, a_scaler_that_is_off_does_nothing_but_step)
{
    assert_asks("o = optim.SGD { a, momentum = 0.9 }\ng = GradScaler { enabled = false }\n"
                "l = randn { 1 }:sum()",
                "l = g:scale(l)\ng:unscale_(o)\ng:step(o)\ng:update()", "+4096");
}

static void assert_refused(const char *statements, const char *message)
{
    char text[1024];
    snprintf(text, sizeof text, TRAINED SCALED "%s\n", statements);
    bench_assert_refused(bench_run(text), message);
}

TEST_F(bench, what_a_scaler_refuses_in_pytorch_it_refuses_here)
{
    assert_refused("g:step(o)", "step: scale() was not called before");
    assert_refused(LOSS "g:step(o)\ng:step(o)", "step: it was called for this optimizer");
    assert_refused(LOSS "g:unscale_(o)\ng:unscale_(o)", "unscale_: it was called for this");
    assert_refused(LOSS "g:update()", "update: no step() since the last one");
    assert_refused("h = nn.Linear { 4, 4 }:half()\n"
                   "h(randn { 2, 4, dtype = 'float16' }):sum():backward()\n"
                   "o = optim.SGD { h }\n" LOSS "g:step(o)",
                   "gradients in float16 cannot be unscaled");
}
