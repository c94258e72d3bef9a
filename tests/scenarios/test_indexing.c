/* What functions of indices, masks, orders and spreads ask of the allocator, and further modules.
 * The facts are those of derivatives.yaml and of ATen's kernels of PyTorch 2.11. */
#include "asks.h"

#include <stdio.h>
#include <string.h>

/* --- indices ----------------------------------------------------------------------------- */

TEST_F(bench, what_is_selected_has_a_gradient_as_large_as_the_whole)
{
    assert_asks(A "\ni = randint { 8 }", "out = a:index_select(1, i)", "+2048",
                SUM "+4096" SUM_END);
    assert_asks(A "\ni = randint { 4, 64 }", "out = a:gather(1, i)", "+1024", SUM "+4096" SUM_END);
    assert_asks("w = randn { 16, 64, requires_grad = true }\ni = randint { 8 }",
                "out = i:embedding(w)", "+2048", NULL);
}

/* 4000 indices are sorted; of 100 rows the sums of parts are added to the gradient as they come, of
 * 4000 they are gathered in a place for each of 4400 parts. */
TEST_F(bench, few_rows_of_many_indices_take_no_place_for_each_part)
{
    bench *few = bench_run("w = randn { 100, 64, requires_grad = true }\ni = randint { 4000 }\n"
                           "i:embedding(w):sum():backward()\n");
    bench *many = bench_run("w = randn { 4000, 64, requires_grad = true }\ni = randint { 4000 }\n"
                            "i:embedding(w):sum():backward()\n");
    bench_assert_ok(few);
    bench_assert_ok(many);
    assert_true(few->largest == (uint64_t)4000 * 64 * 4);  /* the rows of the gradient */
    assert_true(many->largest == (uint64_t)4400 * 64 * 4); /* the parts */
}

/* Its derivative is given the input, and not its sizes only. */
TEST_F(bench, a_gather_keeps_its_input)
{
    bench *run = bench_run("a = randn { 16, 64, requires_grad = true } * 1\n"
                           "out = a:gather(1, randint { 4, 64 })\na = nil\nphase 'a'\n"
                           "a = randn { 16, 64, requires_grad = true } * 1\n"
                           "out = a:index_select(1, randint { 4 })\na = nil\nphase 'b'");
    bench_assert_ok(run);
    assert_int_equal(bench_at(run, "a"), 4096 + 4096 + 1024 + 2048);
    assert_int_equal(bench_at(run, "b"), 4096 + 1024 + 512);
}

TEST_F(bench, sums_by_index_are_a_copy)
{
    assert_asks(A "\ni = randint { 4, 64 }\nb = randn { 4, 64, requires_grad = true }",
                "out = a:scatter_add(1, i, b)", "+4096", SUM "+1024 +4096" SUM_END);
    assert_asks(
        "a = randn { 4, 64 }\ni = randint { 4, 64 }\nb = randn { 4, 64, dtype = 'bfloat16' }",
        "out = autocast('bfloat16', function() return a:scatter_add(1, i, b) end)",
        "+1024 +1024 -1024", "");
}

TEST_F(bench, indices_that_do_not_fit_are_refused)
{
    bench *run = bench_run("a = randn { 4, 4 }:index_select(1, randn { 2 })");
    bench_assert_refused(run, "index_select takes indices of int64 or int32; these are float32");
    run = bench_run("a = randn { 4, 4 }:gather(1, randint { 2, 5 })");
    bench_assert_refused(run, "gather: indices [2, 5] do not lie in [4, 4]");
    run = bench_run("a = randn { 4, 4 }:topk(5)");
    bench_assert_refused(run, "topk: 5 of 4");
}

/* --- masks ------------------------------------------------------------------------------- */

#define MASK A "\nm = a:gt(0)\n"

TEST_F(bench, a_mask_has_a_byte_for_each_element)
{
    assert_asks(A, "out = a:gt(0)", "+1024", "");
    assert_asks(A "\nb = randn { 64 }", "out = a:le(b)", "+1024", "");
}

TEST_F(bench, what_is_filled_by_a_mask_has_its_gradient_filled_in_a_copy)
{
    assert_asks(MASK, "out = a:masked_fill(m, 0)", "+4096", SUM "+4096" SUM_END);
    assert_asks(MASK "b = a * 1", "out = b:masked_fill_(m, 0)", "", NULL);
    bench *run = bench_run("a = randn { 4 }:masked_fill(randn { 4 }, 0)");
    bench_assert_refused(run, "masked_fill takes a mask of bool; this one is float32");
}

TEST_F(bench, a_choice_between_two_puts_zeros_into_both_gradients)
{
    assert_asks(MASK "b = randn { 16, 64, requires_grad = true }", "out = where(m, a, b)", "+4096",
                SUM "+4 +4096 -4 +4 +4096 -4" SUM_END);
    assert_asks(MASK, "out = where(m, a, 0)", "+4 +4096 -4", SUM "+4 +4096 -4" SUM_END);
}

TEST_F(bench, a_triangle_is_a_copy_and_so_is_its_gradient)
{
    assert_asks(A, "out = a:tril()", "+4096", SUM "+4096" SUM_END);
    assert_asks(A, "out = a:triu(1)", "+4096", SUM "+4096" SUM_END);
}

/* --- orders and spreads ------------------------------------------------------------------ */

TEST_F(bench, the_gradient_of_running_sums_is_turned_round_twice)
{
    assert_asks(A, "out = a:cumsum(1)", "+4096", SUM "+4096 +4096 +4096 -4096 -4096" SUM_END);
}

TEST_F(bench, sorted_elements_have_values_and_indices)
{
    assert_asks(A, "out, i = a:sort()", "+4096 +8192 +512 -512", SUM "+4096" SUM_END);
    assert_asks(A, "out, i = a:topk(4)", "+256 +512", SUM "+4096" SUM_END);
    assert_asks(A, "out, i = a:min(2)", "+64 +128", SUM "+4096" SUM_END);
    assert_asks(A, "out = a:argmax(2)", "+128", "");
}

/* Each is what a probe on an H200 took at its peak. */
TEST_F(bench, long_sorts_take_lists_by_how_many_there_are)
{
    assert_asks("a = randn { 5, 40456 }", "out, i = a:sort()",
                "+809120 +1618240 +1618240 +1618240 +809120 +2475263 -2475263 -1618240 -1618240 "
                "-809120",
                "");
    assert_asks("a = randn { 100000 }", "out, i = a:sort()",
                "+400000 +800000 +800000 +1228287 -1228287 -800000", "");
    assert_asks("a = randn { 200, 6000 }", "out, i = a:sort()",
                "+4800000 +9600000 +9600000 +14400255 -14400255 -9600000", "");
    assert_asks("a = randn { 100000, dtype = 'float16' }", "out, i = a:sort()",
                "+200000 +800000 +800000 +1023231 -1023231 -800000", "");
}

TEST_F(bench, blocks_that_share_a_slice_count_digits_for_the_largest)
{
    assert_asks("a = randn { 16, 50000 }", "out, i = a:topk(5)", "+320 +640 +425663 -425663", "");
    assert_asks("a = randn { 16, 5000 }", "out, i = a:topk(5)", "+320 +640", "");
}

TEST_F(bench, whole_numbers_are_copied_to_be_summed_in_64_bits)
{
    assert_asks("a = zeros { 16, 64, dtype = 'int32' }", "out = a:sum()", "+8192 +8 -8192", "");
    assert_asks("a = zeros { 16, 64, dtype = 'int64' }", "out = a:sum()", "+8", "");
}

/* 2 / (n - 1) * grad * (a - mean); of a deviation first grad / (2 * result) */
TEST_F(bench, a_variance_has_a_mean_and_a_difference_on_the_way_back)
{
    assert_asks(A, "out = a:var(2)", "+64", SUM "+64 +4096 +64 +4096 -64 -4096 -64" SUM_END);
    assert_asks(A, "out = a:std(2)", "+64",
                SUM "+16 +64 +64 -64 -16 +64 +4096 +64 +4096 -64 -4096 -64 -64" SUM_END);
}

TEST_F(bench, elementwise_derivatives_have_temporaries_of_their_own)
{
    assert_asks(A, "out = a:abs()", "+4096", SUM "+4096 +4096 -4096" SUM_END);
    assert_asks(A, "out = a:sin()", "+4096", SUM "+4096 +4096 -4096" SUM_END);
    assert_asks(A, "out = a:cos()", "+4096", SUM "+4096 +4096 +4096 -4096 -4096" SUM_END);
    assert_asks(A, "out = a:clamp(0, 1)", "+4096",
                SUM "+4 +1024 +1024 +4096 -1024 -1024 -4" SUM_END);
}

TEST_F(bench, numbers_in_order_take_8_bytes_each)
{
    assert_asks("", "out = arange(64)", "+512", "");
    assert_asks("", "out = arange(16, 64)", "+384", "");
    assert_asks("", "out = full { 16, 64, value = 3 }", "+4096", "");
}

/* --- modules ----------------------------------------------------------------------------- */

static void assert_label(const char *text, const char *label)
{
    bench *run = bench_run(text);
    bench_assert_ok(run);
    assert_string_equal(run->phases[run->phase_count - 1].label, label);
    bench_free(run);
}

#define SIZES "phase(table.concat({ y:size(1), y:size(2), y:size(3), y:size(4) }, ' '))"

TEST_F(bench, a_transposed_convolution_gives_the_sizes_that_torch_gives)
{
    assert_label("y = nn.ConvTranspose2d { 4, 8, 3, stride = 2, padding = 1, output_padding = 1 }"
                 "(randn { 2, 4, 16, 16 })\n" SIZES,
                 "2 8 32 32");
    assert_label("m = nn.ConvTranspose2d { 4, 8, 3, groups = 2 }\nphase('' .. m:nbytes())", "608");
    bench *run = bench_run("y = nn.ConvTranspose2d { 4, 8, 3 }(randn { 2, 3, 16, 16 })");
    bench_assert_refused(run, "ConvTranspose2d takes [batch, 4, height, width]");
}

TEST_F(bench, a_transposed_convolution_saves_its_input_and_its_weight)
{
    assert_label(
        "x = randn { 2, 4, 8, 8, requires_grad = true }\nm = nn.ConvTranspose2d { 4, 8, 3 }\n"
        "m(x):sum():backward()\np, g = m:nbytes()\nassert(p == g)\n"
        "phase('' .. x.grad:nbytes())",
        "2048");
}

TEST_F(bench, an_identity_asks_for_nothing)
{
    assert_asks(A "\nm = nn.Identity()", "out = m(a)", "", NULL);
}

TEST_F(bench, a_step_of_an_lstm_keeps_gates_states_and_a_workspace)
{
    assert_asks("m = nn.LSTMCell { 16, 16 }\nx = randn { 16, 16 }\nh, c = randn { 16, 16 }, randn "
                "{ 16, 16 }",
                "out, d = m(x, h, c)", "+4096 +4096 +4096 +1024 +1024", NULL);
    assert_label("m = nn.LSTMCell { 16, 16 }\nh, c = m(randn { 4, 16 })\nfor i = 1, 3 do\n"
                 "  h, c = m(randn { 4, 16 }, h, c)\nend\nh:sum():backward()\np, g = m:nbytes()\n"
                 "assert(p == g)\nphase(table.concat({ c:size(1), c:size(2) }, ' '))",
                 "4 16");
}

TEST_F(bench, a_dropout_between_layers_keeps_random_states_for_good)
{
    bench *run =
        bench_run("m = nn.LSTM { 8, 8, layers = 2, dropout = 0.5 }\nx = randn { 4, 8, 8 }\n"
                  "phase 'a'\nno_grad(function() m(x) end)\nphase 'b'\nm:eval()\n"
                  "no_grad(function() m(x) end)\nphase 'c'");
    bench_assert_ok(run);
    assert_int_equal(bench_at(run, "b") - bench_at(run, "a"), 132 * 1024 * 48);
    assert_int_equal(bench_at(run, "c"), bench_at(run, "b"));
}

TEST_F(bench, an_instance_norm_keeps_statistics_of_each_channel_of_each_image)
{
    assert_asks("x = randn { 2, 8, 8, 8, requires_grad = true }\nm = nn.InstanceNorm2d { 8 }",
                "out = m(x)", "+4096 +64 +64", SUM "+4096 -64 -64" SUM_END);
    assert_asks("x = randn { 2, 8, 8, 8, requires_grad = true }\n"
                "m = nn.InstanceNorm2d { 8, affine = true }",
                "out = m(x)", "+64 +64 +4096 +64 +64 -64", NULL);
}

/* --- channels last ----------------------------------------------------------------------- */

#define LAST                                                                                       \
    "m = nn.Sequential { nn.Conv2d { 8, 8, 3, padding = 1, bias = false }, nn.BatchNorm2d { 8 },"  \
    " nn.ReLU(), nn.MaxPool2d { 2 } }\nm:to_channels_last()\n"                                     \
    "x = randn { 2, 8, 8, 8, requires_grad = true }\n"

TEST_F(bench, weights_are_laid_anew_one_after_the_other)
{
    bench *run = bench_run("m = nn.Conv2d { 8, 8, 3 }\nphase 'a'\nm:to_channels_last()\nphase 'b'\n"
                           "m:to_channels_last()\nphase 'c'");
    bench_assert_ok(run);
    assert_string_equal(bench_asked_in(run, "b"), "+2304 -2304");
    assert_string_equal(bench_asked_in(run, "c"), "");
}

/* Each result has its channels last: as rows it must be copied, as it is it must not. */
TEST_F(bench, the_layout_is_kept_through_a_model)
{
    bench *run = bench_run(LAST "y = m(x:to { memory_format = 'channels_last' })\nphase 'a'\n"
                                "z = y:to { memory_format = 'channels_last' }\nphase 'b'\n"
                                "z = y:contiguous()\nphase 'c'");
    bench_assert_ok(run);
    assert_string_equal(bench_asked_in(run, "b"), "");
    assert_string_equal(bench_asked_in(run, "c"), "+1024");
}

TEST_F(bench, images_that_are_joined_keep_their_layout_if_all_have_it)
{
    bench *run =
        bench_run("a = randn { 2, 8, 8, 8 }\nb = a:to { memory_format = 'channels_last' }\n"
                  "c, d = cat({ b, b }, 2), cat({ a, b }, 2)\nphase 'a'\n"
                  "y = c:to { memory_format = 'channels_last' }\nphase 'b'\n"
                  "y = d:contiguous()\nphase 'c'");
    bench_assert_ok(run);
    assert_string_equal(bench_asked_in(run, "b"), "");
    assert_string_equal(bench_asked_in(run, "c"), "");
}

TEST_F(bench, an_image_in_rows_is_copied_for_weights_with_channels_last)
{
    bench *run = bench_run("m = nn.Conv2d { 8, 8, 1, bias = false }\nm:to_channels_last()\n"
                           "x = randn { 2, 8, 8, 8 }\nphase 'a'\nno_grad(function() y = m(x) end)\n"
                           "phase 'b'");
    bench_assert_ok(run);
    assert_true(strncmp(bench_asked_in(run, "b"), "+4096 +4096 ", 12) == 0);
    assert_int_equal(bench_at(run, "b") - bench_at(run, "a"), 4096);
}

TEST_F(bench, gradients_lie_as_their_weights_do)
{
    bench *run = bench_run(LAST "y = m(x:to { memory_format = 'channels_last' })\n"
                                "y:sum():backward()\np, g = m:nbytes()\nassert(p == g)\n"
                                "phase 'a'\nz = x.grad:contiguous()\nphase 'b'");
    bench_assert_ok(run);
    assert_string_equal(bench_asked_in(run, "b"), "");
}
