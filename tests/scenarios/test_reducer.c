/* The memory of nn.DistributedDataParallel. The facts are those of reducer.cpp, comm.hpp and
 * parallel/distributed.py of PyTorch 2.11; patterns/ddp.lua has loops for a comparison with
 * recordings.
 *
 * The model has two weights, of 1024 and of 512 bytes; the gradient of the latter arrives first.
 * "+N -M" is an allocation and a free. */
#include "gmd_test.h"
#include "scenario_bench.h"

#include <stdio.h>
#include <string.h>

/* cuBLAS's workspaces are there before. */
#define WARM "k = nn.Linear { 4, 4 }\nk(randn { 1, 4 }):sum():backward()\n"
#define MODEL                                                                                      \
    WARM "first = nn.Linear { 16, 16, bias = false }\n"                                            \
         "last = nn.Linear { 16, 8, bias = false }\n"                                              \
         "body = nn.Sequential { first, last }\nx = randn { 2, 16 }\n"

static bench *run_script(const char *text)
{
    bench *run = bench_run(text);
    bench_assert_ok(run);
    return run;
}

/* What wrapping `model` asks for, after `before`. */
static void assert_wrapping_asks(const char *before, const char *model, const char *expected)
{
    char text[1024];
    snprintf(text, sizeof text,
             "%sphase 'before'\nd = nn.DistributedDataParallel { %s }\nphase 'wrapped'\n", before,
             model);
    assert_string_equal(bench_asked_in(run_script(text), "wrapped"), expected);
}

/* What the forward pass asks for first, after a step with zero_grad(). */
static void assert_second_pass_begins(const char *before, const char *wrapped, const char *zero,
                                      const char *expected)
{
    char text[1024];
    snprintf(text, sizeof text,
             "%sd = nn.DistributedDataParallel { %s }\no = optim.SGD { d }\n"
             "d(x):sum():backward()\no:step()\no:zero_grad { set_to_none = %s }\nphase 'step'\n"
             "out = d(x)\nphase 'second'\n",
             before, wrapped, zero);
    const char *asked = bench_asked_in(run_script(text), "second");
    if (strncmp(asked, expected, strlen(expected)) != 0) {
        fail_msg("'%s' does not begin with '%s'", asked, expected);
    }
}

static void assert_refused(const char *text, const char *part)
{
    char script[1024];
    snprintf(script, sizeof script, MODEL "%s\n", text);
    bench_assert_refused(bench_run(script), part);
}

/* --- wrapping a model ---------------------------------------------------------------------- */

TEST_F(bench, the_parameters_are_sent_together_and_all_gradients_get_one_bucket)
{
    assert_wrapping_asks(MODEL, "body", "+1536 -1536 +1536");
}

TEST_F(bench, a_single_parameter_is_sent_from_where_it_lies)
{
    assert_wrapping_asks(MODEL, "first", "+1024");
}

TEST_F(bench, a_frozen_parameter_is_sent_and_is_in_no_bucket)
{
    assert_wrapping_asks(MODEL "first:requires_grad_(false)\n", "body", "+1536 -1536 +512");
}

TEST_F(bench, more_than_250_mib_are_sent_in_pieces_of_which_two_are_on_their_way)
{
    assert_wrapping_asks(
        "p = {}\nfor i = 1, 6 do p[i] = nn.Linear { 8192, 4096, bias = false } end\n"
        "body = nn.Sequential(p)\n",
        "body",
        "+268435456 +268435456 -268435456 +268435456 -268435456 -268435456 "
        "+805306368");
}

TEST_F(bench, counts_are_sent_apart_from_numbers)
{
    /* weight and bias, two running statistics of 8 numbers; a second module's; two counts */
    assert_wrapping_asks("body = nn.Sequential { nn.BatchNorm1d { 8 }, nn.BatchNorm1d { 8 } }\n",
                         "body", "+256 +16 -256 -16 +128");
}

TEST_F(bench, buffers_are_sent_in_each_forward_pass)
{
    bench *run = run_script("body = nn.BatchNorm1d { 8 }\nbody:eval()\nx = randn { 2, 8 }\n"
                            "d = nn.DistributedDataParallel { body }\nphase 'before'\n"
                            "no_grad(function() y = d(x) end)\nphase 'pass'\n");
    assert_string_equal(bench_asked_in(run, "pass"), "+64 -64 +64 +32 +32 -32 -32");
}

/* --- buckets ------------------------------------------------------------------------------- */

TEST_F(bench, buckets_are_made_anew_in_the_order_of_arrival_before_the_second_forward_pass)
{
    assert_second_pass_begins(MODEL, "body, bucket = 1", "true", "-1536 +512 +1024 +");
}

TEST_F(bench, a_bucket_is_full_once_it_has_reached_its_limit)
{
    assert_second_pass_begins(MODEL, "body, bucket = 513", "true", "-1536 +1536 +");
    assert_second_pass_begins(MODEL, "body, bucket = 512", "true", "-1536 +512 +1024 +");
}

TEST_F(bench, the_first_bucket_has_1_mib_and_others_25_where_nothing_is_said)
{
    assert_second_pass_begins(
        "p = {}\nfor i = 1, 28 do p[i] = nn.Linear { 512, 512, bias = false } end\n"
        "body = nn.Sequential(p)\nx = randn { 2, 512 }\n",
        "body", "true", "-29360128 +1048576 +26214400 +2097152 +");
}

#define LAYERS                                                                                     \
    "p = {}\nfor i = 1, 5 do p[i] = nn.Linear { 512, 512 } end\nbody = nn.Sequential(p)\n"         \
    "x = randn { 2, 512 }\n"

/* As the reducer of torch 1.13 has them (_get_zeros_like_grad_buckets()). */
TEST_F(bench, the_buckets_of_whole_models_are_those_of_torch)
{
    assert_second_pass_begins(LAYERS, "body", "true", "-5253120 +1050624 +4202496 +");
    assert_second_pass_begins(
        "body = nn.Sequential { nn.Conv2d { 4, 256, 3, padding = 1 }, nn.BatchNorm2d { 256 }, "
        "nn.Conv2d { 256, 256, 3 } }\nx = randn { 2, 4, 4, 4 }\n",
        "body, bucket = MiB", "true", "-2400256 +2359296 +40960 +");
    assert_second_pass_begins(
        "body = nn.TransformerEncoder { layers = 3, features = 256, heads = 4, hidden = 1024 }\n"
        "x = randn { 2, 1, 256 }\n",
        "body, bucket = MiB", "true",
        "-9477120 +1051648 +1052672 +1054720 +1051648 +1052672 +1054720 +1051648 +1052672 "
        "+1054720 +");
}

/* As in torch 2.11; in 1.13 the first bucket has 1 MiB all the same. */
TEST_F(bench, a_limit_that_is_given_is_that_of_the_first_bucket_too)
{
    assert_second_pass_begins(LAYERS, "body, bucket = 2 * MiB", "true",
                              "-5253120 +2101248 +2101248 +1050624 +");
}

TEST_F(bench, gradients_that_are_views_keep_the_old_bucket_until_the_last_has_moved)
{
    assert_second_pass_begins(MODEL, "body, bucket = 1, gradient_as_bucket_view = true", "false",
                              "+512 +1024 -1536 +");
}

TEST_F(bench, buckets_are_made_anew_once)
{
    bench *run = run_script(MODEL "d = nn.DistributedDataParallel { body }\n"
                                  "for i = 1, 4 do d(x):sum():backward() phase(i) end\n");
    assert_non_null(strstr(bench_asked_in(run, "2"), "1536"));
    assert_null(strstr(bench_asked_in(run, "3"), "1536"));
    assert_string_equal(bench_asked_in(run, "3"), bench_asked_in(run, "4"));
}

TEST_F(bench, a_pass_without_gradients_leaves_the_buckets_as_they_are)
{
    bench *run = run_script(MODEL "d = nn.DistributedDataParallel { body, bucket = 1 }\n"
                                  "d(x):sum():backward()\nphase 'first'\n"
                                  "no_grad(function() y = d(x) end)\nphase 'evaluated'\n"
                                  "y = nil\nphase 'gone'\n");
    assert_null(strstr(bench_asked_in(run, "evaluated"), "1536"));
    assert_int_equal(bench_at(run, "gone"), bench_at(run, "first"));
}

TEST_F(bench, a_forward_pass_without_a_backward_pass_makes_no_buckets)
{
    bench *run = run_script(MODEL "d = nn.DistributedDataParallel { body, bucket = 1 }\n"
                                  "y = d(x)\nphase 'first'\ny = d(x)\nphase 'second'\n");
    assert_null(strstr(bench_asked_in(run, "second"), "1536"));
}

/* --- gradients ----------------------------------------------------------------------------- */

/* Bytes that a step leaves, beyond what was there before it. */
static uint64_t left_by_a_step(const char *options)
{
    char text[1024];
    snprintf(text, sizeof text,
             MODEL "d = nn.DistributedDataParallel { body%s }\nphase 'before'\n"
                   "d(x):sum():backward()\nphase 'after'\n",
             options);
    bench *run = run_script(text);
    return bench_at(run, "after") - bench_at(run, "before");
}

TEST_F(bench, gradients_stay_beside_the_buckets)
{
    assert_int_equal(left_by_a_step(""), 1536);
}

TEST_F(bench, gradients_that_are_views_have_no_memory_of_their_own)
{
    assert_int_equal(left_by_a_step(", gradient_as_bucket_view = true"), 0);
}

TEST_F(bench, a_gradient_moves_into_its_bucket_before_the_next_one_is_made)
{
    /* the sum's gradients, the layer's weight, what goes on to the next layer, and its weight */
    bench *run = run_script(MODEL "d = nn.DistributedDataParallel { body, bucket = 1, "
                                  "gradient_as_bucket_view = true }\nout = d(x):sum()\n"
                                  "phase 'forward'\nout:backward()\nphase 'backward'\n");
    const char *asked = bench_asked_in(run, "backward");
    const char *freed = strstr(asked, "-512"), *next = strstr(asked, "+1024");
    assert_non_null(freed);
    assert_non_null(next);
    assert_true(freed < next);
}

TEST_F(bench, a_gradient_that_is_zeroed_stays_a_view)
{
    bench *run =
        run_script(MODEL "d = nn.DistributedDataParallel { body, gradient_as_bucket_view = true "
                         "}\no = optim.SGD { d }\nfor i = 1, 3 do d(x):sum():backward()\n"
                         "o:zero_grad { set_to_none = false } phase(i) end\n");
    assert_int_equal(bench_at(run, "3"), bench_at(run, "1"));
}

TEST_F(bench, a_gradient_of_none_is_made_and_moves_again)
{
    bench *run =
        run_script(MODEL "d = nn.DistributedDataParallel { body, gradient_as_bucket_view = true "
                         "}\no = optim.SGD { d }\nfor i = 1, 3 do d(x):sum():backward()\n"
                         "o:zero_grad() phase(i) end\n");
    assert_int_equal(bench_at(run, "3"), bench_at(run, "1"));
    assert_non_null(strstr(bench_asked_in(run, "3"), "+1024"));
    assert_non_null(strstr(bench_asked_in(run, "3"), "-1024"));
}

TEST_F(bench, gradients_of_several_backward_passes_add_up)
{
    bench *run = run_script(MODEL "d = nn.DistributedDataParallel { body }\n"
                                  "a, b = d(x):sum(), d(x):sum()\na:backward()\na = nil\n"
                                  "phase 'one'\nb:backward()\nb = nil\nphase 'both'\n"
                                  "d(x):sum():backward()\nphase 'next'\n");
    assert_true(bench_at(run, "both") < bench_at(run, "one"));
    assert_int_equal(bench_at(run, "next"), bench_at(run, "both"));
}

TEST_F(bench, a_parameter_of_several_checkpoints_has_one_gradient)
{
    bench *run =
        run_script(MODEL "c = nn.Checkpointed { first }\nphase 'model'\n"
                         "d = nn.DistributedDataParallel { nn.Sequential { c, c, last } }\n"
                         "for i = 1, 3 do d(x):sum():backward() phase(i) end\n");
    assert_int_equal(bench_at(run, "3"), bench_at(run, "model") + UINT64_C(2) * 1536);
}

/* --- the end ------------------------------------------------------------------------------- */

TEST_F(bench, a_model_that_goes_takes_its_buckets_along)
{
    bench *run = run_script(MODEL "phase 'before'\n"
                                  "d = nn.DistributedDataParallel { body }\nd(x):sum():backward()\n"
                                  "optim.SGD { d }:zero_grad()\nd = nil\nphase 'after'\n");
    assert_int_equal(bench_at(run, "after"), bench_at(run, "before"));
}

TEST_F(bench, a_model_is_wrapped_again_once_the_first_has_gone)
{
    run_script(MODEL "d = nn.DistributedDataParallel { body }\nd = nil\n"
                     "d = nn.DistributedDataParallel { body }\nd(x):sum():backward()\n");
}

TEST_F(bench, memory_that_is_not_enough_ends_the_run)
{
    bench *run = bench_run_limited(
        "body = nn.Linear { 1024, 1024 }\nd = nn.DistributedDataParallel { body }\n", 6 << 20);
    assert_true(run->out_of_memory);
}

/* --- misuse -------------------------------------------------------------------------------- */

TEST_F(bench, a_parameter_without_a_gradient_is_refused_in_the_next_forward_pass)
{
    assert_refused("d = nn.DistributedDataParallel { body }\nfirst:requires_grad_(false)\n"
                   "d(x):sum():backward()\nd(x)",
                   "a parameter got no gradient in the last backward pass");
}

TEST_F(bench, a_model_is_part_of_one_only)
{
    assert_refused("d = nn.DistributedDataParallel { body }\n"
                   "e = nn.DistributedDataParallel { first }",
                   "the model is part of another one already");
}

TEST_F(bench, a_model_without_gradients_is_refused)
{
    assert_refused("d = nn.DistributedDataParallel { nn.ReLU() }",
                   "has no parameter that requires a gradient");
    assert_refused("body:requires_grad_(false)\nd = nn.DistributedDataParallel { body }",
                   "has no parameter that requires a gradient");
}

/* --- the loops that are recorded ----------------------------------------------------------- */

TEST_F(bench, the_loops_to_be_recorded_run)
{
    static const char *const variants[] = {"", "views=true", "views=true set_to_none=false",
                                           "bucket_cap_mb=4", "normalise=true"};
    for (size_t i = 0; i < sizeof variants / sizeof *variants; i++) {
        bench_assert_ok(bench_run_named(GMD_PATTERN_FOLDER "/ddp.lua", variants[i], 0));
    }
}
