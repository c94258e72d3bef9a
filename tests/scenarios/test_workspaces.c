/* Tables of cuDNN's workspaces: what is read, what is refused, and what a run takes from them. */
#include "gmd_test.h"
#include "scenario_bench.h"

#include "gmd_workspaces.h"

#include <stdlib.h>
#include <string.h>

#define HEAD "gmd-workspaces 1\ngpu NVIDIA H200\ncudnn 91002\ntorch 2.11.0+cu130\n"
#define CONV                                                                                       \
    "dtype=float32 in=8x64x56x56 weight=128x64x3x3 stride=1x1 padding=1x1 dilation=1x1 groups=1 "  \
    "layout=contiguous benchmark=off"
#define RNN                                                                                        \
    "dtype=float32 kind=lstm batch=4 length=7 features=64 hidden=128 layers=2 directions=1 "       \
    "packed=off"

static gmd_workspaces *table_of(const char *text)
{
    gmd_workspaces *table;
    gmd_error error = {""};
    if (gmd_workspaces_parse(&table, text, strlen(text), "table", &error) != GMD_OK) {
        fail_msg("%s", error.text);
    }
    return table;
}

static void assert_refused(const char *text, const char *message)
{
    gmd_workspaces *table;
    gmd_error error = {""};
    assert_int_equal(gmd_workspaces_parse(&table, text, strlen(text), "table", &error),
                     GMD_BAD_INPUT);
    assert_null(table);
    assert_string_equal(error.text, message);
}

/* --- reading ----------------------------------------------------------------------------- */

TEST(a_recorded_call_is_found)
{
    gmd_workspaces *table = table_of(HEAD "conv forward " CONV " bytes=123\n");
    const gmd_workspace_call call = {.op = GMD_CONV_FORWARD,
                                     .input = {8, 64, 56, 56},
                                     .weight = {128, 64, 3, 3},
                                     .stride = {1, 1},
                                     .padding = {1, 1},
                                     .dilation = {1, 1},
                                     .groups = 1};
    assert_int_equal(gmd_workspaces_find(table, &call)->bytes, 123);
    gmd_workspaces_close(table);
}

TEST(a_call_that_differs_in_one_number_is_not_found)
{
    gmd_workspaces *table = table_of(HEAD "conv forward " CONV " bytes=123\n");
    gmd_workspace_call call = gmd_workspaces_at(table, 0)->call;
    call.benchmark = 1;
    assert_null(gmd_workspaces_find(table, &call));
    gmd_workspaces_close(table);
}

/* --- other batches ------------------------------------------------------------------------ */

#define LINE(batch, bytes)                                                                         \
    "conv forward dtype=float32 in=" batch "x64x56x56 weight=128x64x3x3 stride=1x1 padding=1x1 "   \
    "dilation=1x1 groups=1 layout=contiguous benchmark=off bytes=" bytes "\n"

/* What the table says of the call with another batch; UINT64_MAX: nothing. */
static uint64_t interpolated(const char *lines, int64_t batch)
{
    uint64_t bytes = UINT64_MAX;
    gmd_workspaces *table = table_of(lines);
    gmd_workspace_call call = gmd_workspaces_at(table, 0)->call;
    call.input[0] = batch;
    bool is_known = gmd_workspaces_interpolate(table, &call, &bytes);
    gmd_workspaces_close(table);
    assert_int_equal(is_known, bytes != UINT64_MAX);
    return bytes;
}

TEST(a_batch_between_two_that_were_recorded_is_interpolated)
{
    assert_int_equal(interpolated(HEAD LINE("32", "900") LINE("8", "300") LINE("1", "7777"), 20),
                     600);
}

TEST(a_batch_beyond_all_that_were_recorded_grows_in_proportion)
{
    assert_int_equal(interpolated(HEAD LINE("32", "900") LINE("8", "300"), 64), 1800);
    assert_int_equal(interpolated(HEAD LINE("32", "900") LINE("8", "300"), 4), 150);
}

TEST(a_call_is_not_interpolated_from_itself)
{
    assert_int_equal(interpolated(HEAD LINE("8", "300"), 8), UINT64_MAX);
}

TEST(trials_are_not_interpolated)
{
    uint64_t bytes;
    gmd_workspaces *table = table_of(HEAD "conv forward " CONV " bytes=123\n");
    gmd_workspace_call call = gmd_workspaces_at(table, 0)->call;
    call.input[0] = 3;
    call.benchmark = 1;
    assert_false(gmd_workspaces_interpolate(table, &call, &bytes));
    gmd_workspaces_close(table);
}

/* --- calls that are like it ----------------------------------------------------------------- */

#define LIKE(batch, out, bytes)                                                                    \
    "conv forward dtype=float32 in=" batch "x64x56x56 weight=" out "x64x3x3 stride=1x1 "           \
    "padding=1x1 dilation=1x1 groups=1 layout=contiguous benchmark=off bytes=" bytes "\n"

/* What is said of a call with 8 images and 128 channels out. */
static gmd_workspace_guess nearest_to(const char *lines)
{
    gmd_workspace_guess guess = {0, 0, 0};
    gmd_workspaces *table = table_of(lines);
    gmd_workspace_call call = gmd_workspaces_at(table, 0)->call;
    call.input[0] = 8;
    call.weight[0] = 128;
    assert_true(gmd_workspaces_nearest(table, &call, &guess));
    gmd_workspaces_close(table);
    return guess;
}

TEST(what_a_workspace_is_made_of_is_made_of_the_calls_own_sizes)
{
    /* Copies of input and output, and the weight once: of 4 images, 128 channels, and 16 bytes. */
    const gmd_workspace_guess guess = nearest_to(HEAD LIKE("4", "128", "9928720"));
    assert_int_equal(guess.bytes, 2 * (3211264 + 6422528) + 294912 + 16);
    assert_int_equal(guess.least, guess.bytes);
    assert_int_equal(guess.most, guess.bytes);
}

TEST(a_workspace_of_a_few_bytes_is_one_of_every_size)
{
    assert_int_equal(nearest_to(HEAD LIKE("1024", "128", "400")).bytes, 400);
}

TEST(the_nearest_call_is_the_estimate_and_the_others_are_its_range)
{
    const gmd_workspace_guess guess =
        nearest_to(HEAD LIKE("1", "512", "0") LIKE("4", "128", "9928720") LIKE("2", "16", "80"));
    assert_int_equal(guess.bytes, 2 * (3211264 + 6422528) + 294912 + 16);
    assert_int_equal(guess.least, 0);
    assert_int_equal(guess.most, guess.bytes);
}

TEST(no_call_says_anything_of_another_direction_layout_or_grouping_or_is_held)
{
    const char *const others[] = {
        "conv backward_data dtype=float32 in=4x64x56x56 weight=128x64x3x3 stride=1x1 padding=1x1 "
        "dilation=1x1 groups=1 layout=contiguous benchmark=off bytes=7",
        "conv forward dtype=float32 in=4x64x56x56 weight=128x64x3x3 stride=1x1 padding=1x1 "
        "dilation=1x1 groups=1 layout=channels_last benchmark=off bytes=7",
        "conv forward dtype=bfloat16 in=4x64x56x56 weight=128x64x3x3 stride=1x1 padding=1x1 "
        "dilation=1x1 groups=1 layout=contiguous benchmark=off bytes=7",
        "conv forward dtype=float32 in=4x64x56x56 weight=128x32x3x3 stride=1x1 padding=1x1 "
        "dilation=1x1 groups=2 layout=contiguous benchmark=off bytes=7",
        "conv forward dtype=float32 in=4x64x56x56 weight=128x64x3x3 stride=1x1 padding=1x1 "
        "dilation=1x1 groups=1 layout=contiguous benchmark=on bytes=7",
        "conv forward dtype=float32 in=4x64x56x56 weight=128x64x3x3 stride=1x1 padding=1x1 "
        "dilation=1x1 groups=1 layout=contiguous benchmark=off bytes=7 held",
    };
    gmd_workspaces *table = table_of(HEAD LIKE("8", "128", "400"));
    const gmd_workspace_call call = gmd_workspaces_at(table, 0)->call;
    gmd_workspaces_close(table);
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        char text[512];
        gmd_workspace_guess guess;
        snprintf(text, sizeof text, HEAD "%s\n", others[i]);
        table = table_of(text);
        assert_false(gmd_workspaces_nearest(table, &call, &guess));
        gmd_workspaces_close(table);
    }
}

TEST(thousands_of_calls_are_each_found)
{
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    fputs(HEAD, out);
    for (int i = 1; i <= 3000; i++) {
        fprintf(out,
                "rnn forward dtype=float32 kind=gru batch=%d length=7 features=64 hidden=128 "
                "layers=1 directions=1 packed=off training=on bytes=%d\n",
                i, 10 * i);
    }
    fclose(out);
    gmd_workspaces *table = table_of(text);
    for (size_t i = 0; i < 3000; i++) {
        const gmd_workspace *item = gmd_workspaces_at(table, i);
        assert_ptr_equal(gmd_workspaces_find(table, &item->call), item);
    }
    gmd_workspaces_close(table);
    free(text);
}

TEST(the_builtin_table_is_one)
{
    gmd_workspaces *table;
    gmd_error error = {""};
    assert_int_equal(gmd_workspaces_builtin(&table, &error), GMD_OK);
    gmd_workspaces_close(table);
}

TEST(a_refusal_names_the_line_and_what_was_expected)
{
    assert_refused("", "table:1: expected 'gmd-workspaces 1', the first line of a table of "
                       "workspaces");
    assert_refused("gmd-workspaces 1\ngpu A\ntorch 2\nconv forward " CONV " bytes=1",
                   "table:4: expected gpu, cudnn and torch before the calls, found no 'cudnn'");
    assert_refused(HEAD "pool forward", "table:5: expected conv or rnn, found 'pool'");
    assert_refused(HEAD "conv backward " CONV " bytes=1",
                   "table:5: expected forward, backward_data or backward_weight, found 'backward'");
    assert_refused(HEAD "conv forward " CONV,
                   "table:5: expected bytes=, found 'the end of the line'");
    assert_refused(HEAD "conv forward " CONV " bytes=1MiB",
                   "table:5: expected a number of bytes, of at most 1 PiB, found '1MiB'");
    assert_refused(HEAD "conv forward " CONV " bytes=1 groups=1",
                   "table:5: expected each field once, found 'groups'");
    assert_refused(HEAD "conv forward " CONV " strides=1x1 bytes=1",
                   "table:5: expected a field of conv (did you mean stride?), found 'strides'");
    assert_refused(HEAD "conv forward dtype=float33",
                   "table:5: expected float32 or float64 or float16 or bfloat16, found 'float33'");
    assert_refused(HEAD "conv forward in=8x64x56",
                   "table:5: expected in=four numbers, AxBxCxD, each of 1 to 2147483648, found "
                   "'8x64x56'");
}

TEST(what_no_call_can_be_is_refused)
{
    assert_refused(HEAD "conv forward " CONV " bytes=1 tried=2",
                   "table:5: tried= is of benchmark=on");
    assert_refused(HEAD "conv forward " CONV " bytes=1 reserve=2", "table:5: reserve= is of RNNs");
    assert_refused(HEAD "rnn forward " RNN " training=on bytes=1 tried=2",
                   "table:5: tried= is of convolutions");
    assert_refused(HEAD "conv forward dtype=float32 in=8x6x5x5 weight=4x6x3x3 stride=1x1 "
                        "padding=1x1 dilation=1x1 groups=2 layout=contiguous benchmark=off bytes=1",
                   "table:5: the channels of in= are not those of weight= times groups=");
    assert_refused(HEAD "conv forward dtype=float32 in=8x6x5x5 weight=4x6x9x3 stride=1x1 "
                        "padding=1x1 dilation=1x1 groups=1 layout=contiguous benchmark=off bytes=1",
                   "table:5: the kernel of weight= is larger than the padded in=");
}

TEST(two_lines_of_one_call_agree_or_are_refused)
{
    gmd_workspaces *table =
        table_of(HEAD "conv forward " CONV " bytes=1\nconv forward " CONV " bytes=1\n");
    assert_int_equal(gmd_workspaces_count(table), 1);
    gmd_workspaces_close(table);
    assert_refused(HEAD "conv forward " CONV " bytes=1\nconv forward " CONV " bytes=2\n",
                   "table:6: line 5 says otherwise of the same call");
}

/* --- runs -------------------------------------------------------------------------------- */

static const char convolution[] = "conv = nn.Conv2d { 64, 128, 3, padding = 1, bias = false }\n"
                                  "x = randn { 8, 64, 56, 56 }\n"
                                  "phase('made')\n"
                                  "y = conv(x)\n"
                                  "phase('forward')\n";

TEST_F(bench, a_run_takes_the_recorded_workspace)
{
    gmd_workspaces *table = table_of(HEAD "conv forward " CONV " bytes=5000000\n");
    bench *run = bench_run_recorded(convolution, table);
    assert_string_equal(bench_asked_in(run, "forward"), "+12845056 +5000000 -5000000");
    assert_int_equal(run->workspaces.recorded, 1);
    assert_int_equal(run->workspaces.estimated, 0);
    assert_int_equal(run->workspaces.worst_error, 0);
    gmd_workspaces_close(table);
}

TEST_F(bench, a_run_estimates_what_was_not_recorded_and_says_how_far_it_may_be_off)
{
    gmd_workspaces *table = table_of(HEAD "conv backward_data " CONV " bytes=5000000\n");
    bench *run = bench_run_recorded(convolution, table);
    assert_int_equal(run->workspaces.recorded, 0);
    assert_int_equal(run->workspaces.estimated, 1);
    assert_in_range(run->workspaces.worst_error, run->workspaces.median_error + 1, UINT64_MAX);
    gmd_workspaces_close(table);
}

/* --- the range of the figures --------------------------------------------------------------- */

/* The script with a table that says nothing of its convolution. */
static bench *run_with_an_estimate(const char *script)
{
    gmd_workspaces *table = table_of(HEAD "conv backward_data " CONV " bytes=5000000\n");
    bench *run = bench_run_recorded(script, table);
    gmd_workspaces_close(table);
    assert_int_equal(run->workspaces.estimated, 1);
    return run;
}

TEST_F(bench, an_estimate_in_the_peak_makes_it_a_range)
{
    bench *run = run_with_an_estimate(convolution);
    assert_true(run->workspaces.peak_less > 0 && run->workspaces.peak_more > 0);
    assert_true(run->workspaces.one_more >= run->workspaces.peak_more);
}

TEST_F(bench, an_estimate_below_the_peak_makes_no_range_of_it)
{
    char script[512];
    snprintf(script, sizeof script, "big = randn { 1024, 1024, 1024 } big = nil\n%s", convolution);
    bench *run = run_with_an_estimate(script);
    assert_int_equal(run->workspaces.peak_less, 0);
    assert_int_equal(run->workspaces.peak_more, 0);
    assert_true(run->workspaces.one_more > 0); /* what is reserved may differ */
}

TEST_F(bench, a_reset_of_the_peaks_forgets_the_range)
{
    char script[512];
    snprintf(script, sizeof script, "%s\nx, y = nil, nil\ncuda.reset_peak_memory_stats()",
             convolution);
    bench *run = run_with_an_estimate(script);
    assert_int_equal(run->workspaces.peak_more, 0);
}

TEST_F(bench, a_recorded_workspace_leaves_no_range)
{
    gmd_workspaces *table = table_of(HEAD "conv forward " CONV " bytes=5000000\n");
    bench *run = bench_run_recorded(convolution, table);
    assert_int_equal(run->workspaces.peak_less + run->workspaces.peak_more, 0);
    assert_int_equal(run->workspaces.one_less + run->workspaces.one_more, 0);
    gmd_workspaces_close(table);
}

TEST_F(bench, a_convolution_whose_channels_come_last_is_looked_up_as_one)
{
    gmd_workspaces *table =
        table_of(HEAD "conv forward dtype=float32 in=8x64x56x56 weight=128x64x3x3 stride=1x1 "
                      "padding=1x1 dilation=1x1 groups=1 layout=channels_last benchmark=off "
                      "bytes=5000000\n");
    bench *run =
        bench_run_recorded("conv = nn.Conv2d { 64, 128, 3, padding = 1 }\n"
                           "x = randn { 8, 64, 56, 56 }:to { memory_format = \"channels_last\" }\n"
                           "no_grad(function() y = conv(x) end)",
                           table);
    assert_int_equal(run->workspaces.recorded, 1);
    assert_int_equal(run->workspaces.estimated, 0);
    gmd_workspaces_close(table);
}

TEST_F(bench, trials_ask_for_what_was_recorded_of_them)
{
    gmd_workspaces *table =
        table_of(HEAD "conv forward dtype=float32 in=8x64x56x56 weight=128x64x3x3 stride=1x1 "
                      "padding=1x1 dilation=1x1 groups=1 layout=contiguous benchmark=on "
                      "bytes=5000000 tried=70000000\n");
    char script[512];
    snprintf(script, sizeof script, "cudnn.benchmark(true)\n%s", convolution);
    bench *run = bench_run_recorded(script, table);
    assert_string_equal(bench_asked_in(run, "forward"),
                        "+12845056 +70000000 -70000000 +5000000 -5000000");
    assert_int_equal(run->workspaces.recorded, 2);
    gmd_workspaces_close(table);
}

TEST_F(bench, an_rnn_takes_the_recorded_workspace_and_reserve)
{
    gmd_workspaces *table =
        table_of(HEAD "rnn forward " RNN " training=on bytes=7000000 reserve=900000\n"
                      "rnn backward " RNN " training=on bytes=8000000\n");
    bench *run = bench_run_recorded("net = nn.LSTM { 64, 128, layers = 2 }\n"
                                    "x = randn { 4, 7, 64 }\n"
                                    "phase('made')\n"
                                    "y = net(x)\n"
                                    "phase('forward')\n"
                                    "y:sum():backward()\n"
                                    "phase('backward')\n",
                                    table);
    bench_assert_ok(run);
    assert_non_null(strstr(bench_asked_in(run, "forward"), "+7000000 +900000 -7000000"));
    assert_non_null(strstr(bench_asked_in(run, "backward"), "+8000000 -8000000"));
    assert_int_equal(run->workspaces.recorded, 3); /* the way back has two calls */
    assert_int_equal(run->workspaces.estimated, 0);
    gmd_workspaces_close(table);
}
