/* What each function asks of the allocator, forwards and backwards, in order. The facts are those
 * of derivatives.yaml and of ATen's kernels of PyTorch 2.11; patterns/functions.lua has the same
 * calls for a comparison with recordings.
 */
#include "asks.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- views ------------------------------------------------------------------------------- */

TEST_F(bench, views_ask_for_nothing_forwards_and_a_leaf_gets_memory_of_its_own)
{
    static const char *const calls[] = {
        "out = a:permute { 2, 1 }",  "out = a:unsqueeze(2)",       "out = a:view { -1, 32 }",
        "out = a:reshape { 4, -1 }", "out = a:view { 1, 16, 64 }", "out = a:squeeze()",
    };
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
        assert_asks(A, calls[i], "", SUM "+4096" SUM_END);
    }
}

TEST_F(bench, a_reshape_of_what_has_gaps_copies_it)
{
    assert_asks(A, "out = a:transpose(1, 2):reshape { -1 }", "+4096", SUM "+4096" SUM_END);
    assert_asks(A, "out = a:transpose(1, 2):reshape { 64, 4, 4 }", "", SUM "+4096" SUM_END);
}

TEST_F(bench, dimensions_that_come_back_into_their_order_have_no_gaps)
{
    assert_asks("a = randn { 2, 8, 64, requires_grad = true }",
                "out = a:permute { 3, 1, 2 }:permute { 2, 3, 1 }:contiguous()", "",
                SUM "+4096" SUM_END);
}

TEST_F(bench, the_gradient_of_an_expansion_is_summed)
{
    assert_asks("a = randn { 16, 1, requires_grad = true }", "out = a:expand { -1, 64 }", "",
                SUM "+64" SUM_END);
}

/* --- reductions -------------------------------------------------------------------------- */

TEST_F(bench, a_sum_along_a_dimension_has_a_gradient_without_memory)
{
    assert_asks(A, "out = a:sum(2)", "+64", SUM "+4096" SUM_END);
    assert_asks(A, "out = (a * 1):sum(1, { keepdim = true })", "+4096 +256 -4096",
                SUM "+4096" SUM_END);
}

TEST_F(bench, the_gradient_of_a_mean_is_as_large_as_its_input)
{
    assert_asks(A, "out = a:mean(2)", "+64", SUM "+4096" SUM_END);
}

TEST_F(bench, a_maximum_along_a_dimension_has_values_and_indices)
{
    assert_asks(A, "out, i = a:max(2)", "+64 +128", SUM "+4096" SUM_END);
}

TEST_F(bench, the_gradient_of_the_largest_is_spread_by_a_mask)
{
    assert_asks(A, "out = a:max()", "+4",
                SUM "+1024 +1 +1024 +8192 +8 -8192 +4 +4096 -4 -8 -1024 -1 -1024" SUM_END);
}

/* --- arithmetic -------------------------------------------------------------------------- */

TEST_F(bench, a_quotient_saves_both_and_has_three_temporaries_on_the_way_back)
{
    assert_asks(A_B, "out = a / b", "+4096",
                SUM "+4096 +4096 +4096 +4096 -4096 -4096 -4096 +4096" SUM_END);
}

TEST_F(bench, a_number_by_a_tensor_is_its_reciprocal_times_the_number)
{
    assert_asks(A, "out = 3 / a", "+4096 +4096",
                SUM "+4096 +4096 +4096 +4096 -4096 -4096 -4096 -4096" SUM_END);
}

TEST_F(bench, a_difference_negates_the_second_gradient)
{
    assert_asks(A_B, "out = a - b", "+4096", SUM "+4096 +4096" SUM_END);
}

TEST_F(bench, a_number_that_is_added_leaves_the_gradient_as_it_is)
{
    assert_asks(A, "out = (a * 1) + 3", "+4096 +4096 -4096", SUM "+4096" SUM_END);
    assert_asks(A, "out = 3 - (a * 1)", "+4096 +4096 -4096", SUM "+4096 +4096 -4096" SUM_END);
}

TEST_F(bench, both_gradients_of_a_product_are_there_before_one_is_summed)
{
    assert_asks("a = randn { 16, 1, requires_grad = true }\n"
                "b = randn { 16, 64, requires_grad = true }",
                "out = a * b", "+4096", SUM "+4096 +4096 +64 -4096" SUM_END);
}

TEST_F(bench, a_power_computes_the_next_lower_one)
{
    assert_asks(A, "out = a ^ 3", "+4096", SUM "+4096 +4096 +4096 -4096 -4096" SUM_END);
    assert_asks(A, "out = a ^ 0", "+4096", SUM "+4096" SUM_END);
}

TEST_F(bench, a_root_saves_itself_and_a_logarithm_its_input)
{
    assert_asks(A, "out = a:sqrt()", "+4096", SUM "+4096 +4096 -4096" SUM_END);
    assert_asks(A, "out = a:log()", "+4096", SUM "+4096" SUM_END);
}

TEST_F(bench, the_gradient_of_an_input_has_the_type_of_the_input)
{
    assert_asks("a = randn { 16, 64, dtype = 'bfloat16', requires_grad = true }\n"
                "b = randn { 16, 64, requires_grad = true }",
                "out = a * b", "+4096", SUM "+4096 +4096 +2048 -4096" SUM_END);
}

/* --- losses ------------------------------------------------------------------------------ */

TEST_F(bench, a_mean_of_squared_errors_keeps_memory_for_all_of_them)
{
    assert_asks(A_B, "out = mse_loss(a, b)", "+4096 +4096 -4096", SUM "+4096 +4096" SUM_END);
    assert_asks(A_B, "out = mse_loss(a, b, { reduction = 'none' })", "+4096",
                SUM "+4096 +4096" SUM_END);
}

TEST_F(bench, binary_cross_entropy_computes_a_sigmoid_on_the_way_back)
{
    assert_asks(A "\nb = randn { 16, 64 }", "out = binary_cross_entropy_with_logits(a, b)",
                "+4096 +4096 +4 -4096 -4096", SUM "+4096 +4096 -4096" SUM_END);
}

TEST_F(bench, the_divergence_is_a_difference_of_two_products)
{
    assert_asks(A "\nb = randn { 16, 64 }", "out = kl_div(a, b, { reduction = 'sum' })",
                "+4096 +4096 +4096 -4096 -4096 +4 -4096", SUM "+4096 +4096 -4096" SUM_END);
}

TEST_F(bench, a_loss_of_each_row_is_as_long_as_the_batch)
{
    assert_asks(A "\nb = randint { 16 }", "out = cross_entropy(a, b, { reduction = 'none' })",
                "+4096 +64 +4", SUM "+4096 -4 +4096 -4096 -4096" SUM_END);
}

TEST_F(bench, losses_and_logarithms_are_computed_in_32_bits_under_autocast)
{
    assert_asks("a = randn { 16, 64, dtype = 'bfloat16', requires_grad = true }\n"
                "b = randn { 16, 64 }",
                "out = autocast('bfloat16', function()\n"
                "return mse_loss(a, b, { reduction = 'none' }) end)",
                "+4096 +4096", SUM "+4096 -4096 +2048 -4096" SUM_END);
    assert_asks("a = randn { 16, 64, dtype = 'bfloat16', requires_grad = true }",
                "out = autocast('bfloat16', function() return a:log() end)", "+4096 +4096",
                SUM "+4096 -4096 +2048 -4096" SUM_END);
}

/* --- modules ----------------------------------------------------------------------------- */

#define IMAGE "x = randn { 2, 8, 8, 8, requires_grad = true }\n"

TEST_F(bench, a_group_norm_scales_channels_and_keeps_statistics_of_groups)
{
    assert_asks(
        IMAGE "g = nn.GroupNorm { 4, 8 }", "out = g(x)", "+4096 +32 +32 +64 +64 -64 -64",
        SUM "+4096 +4096 +32 +32 +64 +64 +32 +32 +64 -32 -32 -64 -64 -64 -4096 -32 -32" SUM_END);
}

TEST_F(bench, an_rms_norm_keeps_one_number_a_row)
{
    assert_asks(A "\nr = nn.RMSNorm { 64 }", "out = r(a)", "+4096 +64",
                SUM "+4096 +4096 +256 -4096 -64" SUM_END);
}

TEST_F(bench, a_batch_norm_of_rows_keeps_statistics_of_columns)
{
    assert_asks(A "\nn = nn.BatchNorm1d { 64 }", "out = n(a)", "+4096 +256 +256",
                SUM "+256 +256 +256 +256 +4096 -256 -256 -256 -256" SUM_END);
}

TEST_F(bench, a_batch_norm_of_rows_keeps_statistics_in_evaluation_too)
{
    assert_asks(A "\nn = nn.BatchNorm1d { 64 }\nn:eval()", "out = n(a)", "+4096 +256 +256", NULL);
}

/* 8 blocks of 16 threads share a channel; 4 sums of each forwards, 2 backwards. */
TEST_F(bench, many_rows_are_normalised_by_several_blocks_through_a_buffer)
{
    assert_asks("a = randn { 2048, 32, requires_grad = true }\nn = nn.BatchNorm1d { 32 }",
                "out = n(a) * 2", "+262144 +128 +128 +4096 +4 -4 -4096 +262144 -262144", NULL);
}

TEST_F(bench, pools_and_upsampling_have_gradients_of_the_input)
{
    assert_asks(IMAGE, "out = nn.AvgPool2d { 2 }(x)", "+1024", SUM "+4096 +1024 -1024" SUM_END);
    assert_asks(IMAGE, "out = nn.AdaptiveAvgPool2d { 2 }(x)", "+256",
                SUM "+4096 +256 -256" SUM_END);
    assert_asks(IMAGE, "out = nn.Upsample { scale_factor = 2 }(x)", "+16384",
                SUM "+4096 +16384 -16384" SUM_END);
}

TEST_F(bench, a_leaky_relu_in_place_asks_for_nothing)
{
    assert_asks(A, "out = nn.LeakyReLU()(a)", "+4096", SUM "+4096" SUM_END);
    assert_asks(A, "out = nn.LeakyReLU { inplace = true }(a * 1)", "+4096",
                SUM "+4096 +4096 -4096" SUM_END);
}

TEST_F(bench, a_depthwise_convolution_has_no_workspace)
{
    assert_asks(IMAGE "c = nn.Conv2d { 8, 8, 3, padding = 1, groups = 8, bias = false }",
                "out = c(x)", "+4096", SUM "+4096 +4096 +288 -4096" SUM_END);
}

static size_t parameters_of(const char *module)
{
    char text[256];
    snprintf(text, sizeof text, "c = %s\nphase('' .. c:nbytes())", module);
    bench *run = bench_run(text);
    bench_assert_ok(run);
    size_t bytes = (size_t)strtoull(run->phases[0].label, NULL, 10);
    bench_free(run);
    return bytes;
}

TEST_F(bench, a_group_of_channels_has_weights_for_its_own_only)
{
    assert_int_equal(parameters_of("nn.Conv2d { 8, 16, 3, bias = false }"), 4 * 16 * 8 * 9);
    assert_int_equal(parameters_of("nn.Conv2d { 8, 16, 3, bias = false, groups = 4 }"),
                     4 * 16 * 2 * 9);
    assert_int_equal(parameters_of("nn.Conv1d { 8, 16, 5 }"), 4 * (16 * 8 * 5 + 16));
    assert_int_equal(parameters_of("nn.Conv2d { 8, 16, { 1, 3 }, bias = false }"), 4 * 16 * 8 * 3);
}

static void assert_sizes(const char *module, const char *input, const char *sizes)
{
    char text[512];
    snprintf(text, sizeof text,
             "y = %s(%s)\nlocal t = {}\nfor i = 1, y:dim() do t[i] = y:size(i) end\n"
             "phase(table.concat(t, ' '))",
             module, input);
    bench *run = bench_run(text);
    bench_assert_ok(run);
    assert_string_equal(run->phases[0].label, sizes);
    bench_free(run);
}

TEST_F(bench, windows_give_the_sizes_that_torch_gives)
{
    assert_sizes("nn.Conv2d { 4, 8, 3, dilation = 2 }", "randn { 1, 4, 9, 9 }", "1 8 5 5");
    assert_sizes("nn.Conv2d { 4, 8, { 1, 3 }, stride = { 1, 2 } }", "randn { 1, 4, 9, 9 }",
                 "1 8 9 4");
    assert_sizes("nn.Conv1d { 4, 8, 5, stride = 2, padding = 1 }", "randn { 2, 4, 20 }", "2 8 9");
    assert_sizes("nn.AvgPool2d { 3, stride = 2, padding = 1 }", "randn { 1, 4, 9, 9 }", "1 4 5 5");
    assert_sizes("nn.Upsample { scale_factor = 1.5 }", "randn { 1, 4, 9, 9 }", "1 4 13 13");
    assert_sizes("nn.Flatten { 2, 3 }", "randn { 1, 4, 9, 9 }", "1 36 9");
}

/* --- frozen parameters ------------------------------------------------------------------- */

TEST_F(bench, frozen_parameters_get_no_gradient_and_their_input_is_not_saved)
{
    assert_asks("h = nn.Linear { 64, 64 }\nh:requires_grad_(false)\n" A, "out = h(a)", "+4096",
                SUM "+4096 +4096 -4096" SUM_END);
}

/* --- the calls that are recorded --------------------------------------------------------- */

static char *recorder; /* the text of a file with the twins */

static void read_recorder(const char *name)
{
    char path[512];
    snprintf(path, sizeof path, GMD_PATTERN_FOLDER "/../%s", name);
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    recorder = calloc(1, 1 << 17);
    assert_non_null(recorder);
    assert_true(fread(recorder, 1, (1 << 17) - 1, file) > 0);
    fclose(file);
}

static int free_recorder(void **state)
{
    free(recorder);
    recorder = NULL;
    return bench_free_all(state);
}

FIXTURE(recording, NULL, free_recorder);

static void assert_twins(const char *pattern, const char *file)
{
    char twin[160];
    read_recorder(file);
    bench *run = bench_run_named(pattern, "", 0);
    bench_assert_ok(run);
    assert_int_equal(run->allocated, 0);
    for (size_t i = 4; i < run->phase_count; i += 4) { /* behind the first, which warms up */
        const char *label = run->phases[i].label;
        snprintf(twin, sizeof twin, "    (\"%.*s\", ", (int)(strlen(label) - strlen(" inputs")),
                 label);
        if (!strstr(recorder, twin)) {
            fail_msg("%s has no %s", file, twin);
        }
    }
}

TEST_F(recording, each_call_of_the_functions_has_a_twin_in_the_recorder)
{
    assert_twins(GMD_PATTERN_FOLDER "/functions.lua", "record_truth.py");
}

TEST_F(recording, each_call_of_the_operations_has_a_twin_in_the_recorder)
{
    assert_twins(GMD_PATTERN_FOLDER "/operations.lua", "operation_cases.py");
}
