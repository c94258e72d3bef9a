/* Attention: what each kernel asks of the allocator, and which one is taken. The sequences of
 * multi-head attention over two inputs, and of cuDNN's kernel, were recorded with torch 2.11 on an
 * H200; the others are of PyTorch's source. */
#include "gmd_test.h"
#include "scenario_bench.h"

#include <stdio.h>
#include <string.h>

/* Runs `call`, which makes `out`, and a backward pass of its sum. */
static bench *run_call(const char *inputs, const char *call)
{
    char text[2048];
    snprintf(text, sizeof text,
             "k = nn.Linear { 4, 4 }\nk(randn { 1, 4 }):sum():backward()\n%s\nphase 'inputs'\n"
             "%s\nphase 'forward'\nout:sum():backward()\nphase 'backward'\n",
             inputs, call);
    bench *run = bench_run(text);
    bench_assert_ok(run);
    return run;
}

static void assert_asks(const char *inputs, const char *call, const char *forward,
                        const char *backward)
{
    bench *run = run_call(inputs, call);
    assert_string_equal(bench_asked_in(run, "forward"), forward);
    assert_string_equal(bench_asked_in(run, "backward"), backward);
    bench_free(run);
}

/* A transformer's memory of 64 tokens, and 64 new ones: 16 sequences, 256 features, 4 heads. */
TEST_F(bench, attention_over_another_input_asks_for_what_was_recorded)
{
    static const char forward[] =
        "+1048576 +1048576 +2097152 +4194304 +4194304 -4194304 +1048576 +16384 +1048576 +1048576";
    static const char backward[] =
        /* the projection of the heads, whose gradient is copied */
        "+1048576 -1048576 +1048576 +262144 +1024 +2097152 +8 -8 -2097152 -1048576 -1048576 "
        /* the kernel */
        "+1048576 +1048576 +2097152 +2097152 +1048576 +16384 +16384 -16384 -1048576 +1049600 "
        "-16384 -1049600 -1048576 -1048576 -1048576 -4194304 -16384 -1048576 "
        /* heads to features */
        "+2097152 -2097152 +2097152 -2097152 +1048576 -1048576 +2097152 -2097152 +2097152 -2097152 "
        "+1048576 -1048576 +4194304 -2097152 +4194304 -2097152 -4194304 +4194304 -4194304 "
        /* the projections, and the whole of their weights */
        "+2048 +8388608 +16 -16 -8388608 +524288 -4194304 -2097152 +1024 +2097152 +8 -8 -2097152 "
        "+262144 +1048576 -1048576 -1048576 +3072 -1024 -2048 +786432 -262144 -524288";
    bench *run =
        run_call("m = nn.MultiheadAttention { 256, 4, batch_first = true, need_weights = false }\n"
                 "g = randn { 16, 64, 256, requires_grad = true }\nc = randn { 16, 128, 256 }",
                 "out = m(g, c, c) * 1");
    assert_non_null(strstr(bench_asked_in(run, "forward"), forward));
    assert_non_null(strstr(bench_asked_in(run, "backward"), backward));
    bench_free(run);
}

/* A projection of a document of 8,192 tokens in 16 bits, split into queries, keys and values of 8
 * heads. */
TEST_F(bench, the_kernel_of_cudnn_asks_for_what_was_recorded)
{
    assert_asks("project = nn.Linear { 256, 768 }:to('bfloat16')\n"
                "d = project(randn { 1, 8192, 256, dtype = 'bfloat16' })\n"
                "l = d:chunk(3, -1)\n"
                "function heads(i) return l[i]:view { 1, 8192, 8, 32 }:transpose(2, 3) end\n"
                "q, k, v = heads(1), heads(2), heads(3)\nl = nil",
                "out = scaled_dot_product_attention(q, k, v)", "+8 +8 +4194304 +262144 +256 -256",
                /* the sum, a copy of its gradient, the kernel */
                "+2 +1024 +4 -4 -1024 +2 +4194304 +4194304 +4194304 +4194304 +8651008 -8651008 "
                "-4194304 -262144 -8 -8 "
                /* queries, keys and values joined, and the projection */
                "+12582912 -4194304 -4194304 -4194304 +393216 +1536 +50331648 +24 -24 -50331648 "
                "-12582912 -4194304 -2 -2");
}

/* --- in evaluation ----------------------------------------------------------------------- */

/* Bytes that a call leaves, and its peak, beyond what was there; the second call counts. */
static void assert_grows(const char *module, const char *block, uint64_t live, uint64_t peak)
{
    char text[1024];
    snprintf(text, sizeof text,
             "m = %s\nm:eval()\nx = randn { 3, 33, 256 }\n"
             "function call() %s end\ncall()\nout, w = nil, nil\nphase 'before'\n"
             "cuda.reset_peak_memory_stats()\ncall()\nphase 'after'\n",
             module, block);
    bench *run = bench_run(text);
    bench_assert_ok(run);
    uint64_t before = run->phases[0].requested;
    assert_int_equal(run->phases[1].requested - before, live);
    assert_int_equal(run->phases[1].max_requested - before, peak);
    bench_free(run);
}

#define NO_GRAD "no_grad(function() out, w = m(x) end)"
#define ENCODER "nn.TransformerEncoderLayer { 256, 8, hidden = 1024"

/* Recorded with torch 2.11 on an H200. */
TEST_F(bench, what_needs_no_gradient_in_evaluation_is_one_call)
{
    assert_grows("nn.MultiheadAttention { 256, 8, batch_first = true }", NO_GRAD, 114444, 611424);
    assert_grows("nn.MultiheadAttention { 256, 8, batch_first = true, need_weights = false }",
                 NO_GRAD, 101376, 506880);
    assert_grows(ENCODER " }", NO_GRAD, 101376, 608256);
    assert_grows(ENCODER ", gelu = true, norm_first = true }", NO_GRAD, 101376, 709632);
}

/* Gradients, autocast and an odd number of heads are in the way. */
TEST_F(bench, the_one_call_is_not_taken_where_pytorch_does_not_take_it)
{
    static const char *const ways[][2] = {
        {ENCODER " }", "out = m(x)"},
        {ENCODER " }", "no_grad(function() autocast('bfloat16', function() out = m(x) end) end)"},
        {"nn.TransformerEncoderLayer { 256, 1, hidden = 1024 }", NO_GRAD},
    };
    for (size_t i = 0; i < sizeof ways / sizeof ways[0]; i++) {
        char text[512];
        snprintf(text, sizeof text,
                 "m = %s\nm:eval()\nx = randn { 3, 33, 256 }\ncuda.reset_peak_memory_stats()\n"
                 "phase 'before'\n%s\nphase 'after'\n",
                 ways[i][0], ways[i][1]);
        bench *run = bench_run(text);
        bench_assert_ok(run);
        assert_true(run->phases[1].max_requested - run->phases[0].requested != 608256);
        bench_free(run);
    }
}

/* --- which kernel ------------------------------------------------------------------------ */

#define HEADS(type)                                                                                \
    "q = randn { 2, 4, 64, 32, dtype = '" type "', requires_grad = true }\n"                       \
    "k, v = q * 1, q * 1"

static const char *name_of(const char *inputs, const char *options)
{
    static char label[128];
    char text[1024];
    snprintf(text, sizeof text,
             "%s\nphase(scaled_dot_product_attention(q, k, v, { %s }).grad_fn.name)\n", inputs,
             options);
    bench *run = bench_run(text);
    bench_assert_ok(run);
    snprintf(label, sizeof label, "%s", run->phases[0].label);
    bench_free(run);
    return label;
}

#define CUDNN     "ScaledDotProductCudnnAttentionBackward"
#define FLASH     "ScaledDotProductFlashAttentionBackward"
#define EFFICIENT "ScaledDotProductEfficientAttentionBackward"

TEST_F(bench, sixteen_bits_are_for_cudnn_and_more_for_the_memory_efficient_kernel)
{
    assert_string_equal(name_of(HEADS("bfloat16"), ""), CUDNN);
    assert_string_equal(name_of(HEADS("float32"), ""), EFFICIENT);
    assert_null(strstr(name_of(HEADS("float64"), ""), "ScaledDotProduct"));
}

TEST_F(bench, cudnn_takes_heads_of_up_to_256_on_an_h200)
{
    assert_string_equal(
        name_of("q = randn { 2, 4, 64, 256, dtype = 'float16', requires_grad = true }\n"
                "k, v = q * 1, q * 1",
                ""),
        CUDNN);
}

/* A probe on an H200: the peak of the way back, beside query, key and value. */
TEST_F(bench, narrow_kernels_of_deep_heads_sum_gradients_in_32_bits)
{
    static const char script[] =
        "q = randn { 2, 4, 77, 160, dtype = 'float16', requires_grad = true }\n"
        "k = randn { 2, 4, 300, 160, dtype = 'float16', requires_grad = true }\n"
        "v = randn { 2, 4, 300, 160, dtype = 'float16', requires_grad = true }\n"
        "function go()\n"
        "  before = cuda.requested().bytes\n"
        "  out = scaled_dot_product_attention(q, k, v, { backend = 'efficient' })\n"
        "  cuda.reset_peak_memory_stats()\n"
        "  a, b, c = autograd.grad(out:sum(), { q, k, v })\n"
        "  peak = cuda.requested().peak - before\n"
        "  out, a, b, c = nil, nil, nil, nil\n"
        "end\n"
        "go()\ngo()\nx = zeros { peak }\n";
    bench *run = bench_run(script);
    assert_int_equal(run->status, GMD_OK);
    assert_int_equal(run->largest / 4, 8162596);
}

TEST_F(bench, what_cudnn_does_not_take_goes_to_the_next_kernel)
{
    assert_string_equal(name_of(HEADS("float16"), "dropout_p = 0.1"), FLASH);
    assert_string_equal(
        name_of("q = randn { 2, 4, 64, 264, dtype = 'float16', requires_grad = true }\n"
                "k, v = q * 1, q * 1",
                ""),
        EFFICIENT);
}

TEST_F(bench, a_backend_is_chosen)
{
    assert_string_equal(name_of(HEADS("bfloat16"), "backend = 'flash'"), FLASH);
    assert_string_equal(name_of(HEADS("bfloat16"), "backend = 'efficient'"), EFFICIENT);
    assert_null(strstr(name_of(HEADS("bfloat16"), "backend = 'math'"), "ScaledDotProduct"));
}

static void assert_refused(const char *inputs, const char *options, const char *message)
{
    char text[1024];
    snprintf(text, sizeof text, "%s\nr = scaled_dot_product_attention(q, k, v, { %s })\n", inputs,
             options);
    bench_assert_refused(bench_run(text), message);
}

TEST_F(bench, a_backend_that_cannot_take_the_inputs_is_refused_with_the_reason)
{
    assert_refused(HEADS("float32"), "backend = 'flash'", "the backend flash takes 16 bits");
    assert_refused(HEADS("float32"), "backend = 'cudnn'", "the backend cudnn takes 16 bits");
    assert_refused(HEADS("float64"), "backend = 'efficient'", "efficient takes 32 or 16 bits");
    assert_refused(HEADS("bfloat16") "\nm = zeros { 64, 64, dtype = 'bool' }",
                   "backend = 'flash', attn_mask = m", "the backend flash takes no mask");
    assert_refused(HEADS("float32"), "backend = 'quick'", "auto, cudnn, flash, efficient or math");
    assert_refused(HEADS("float32") "\nm = zeros { 64, 63 }", "attn_mask = m",
                   "a mask of [64, 63] does not fit the scores");
    assert_refused(HEADS("float32") "\nk, v = randn { 2, 2, 64, 32 }, randn { 2, 2, 64, 32 }", "",
                   "takes [batch, heads, length, depth]");
}

/* --- what the others ask for ------------------------------------------------------------- */

#define Q "q = randn { 2, 4, 100, 32, dtype = 'bfloat16', requires_grad = true }"

/* 51,200 bytes each; sums of 800 rows; then those of 100 rows rounded to 128. */
TEST_F(bench, flash_attention_sums_the_gradient_of_queries_in_32_bits)
{
    assert_asks(Q, "out = scaled_dot_product_attention(q, q, q, { backend = 'flash' })",
                "+51200 +3200 +16 +8",
                "+2 +2 +51200 +51200 +51200 +51200 +51200 +4096 +131072 -131072 -4096 -51200 "
                "-51200 -3200 -16 -8 -51200 -51200 -2 -2");
}

/* Rows of 100 are rounded to 128; 16 bits need no product of gradient and result. */
TEST_F(bench, memory_efficient_attention_in_16_bits_computes_its_sums_itself)
{
    bench *run = run_call(Q, "out = scaled_dot_product_attention(q, q, q, { backend = "
                             "'efficient' })");
    assert_string_equal(bench_asked_in(run, "forward"), "+51200 +4096");
    assert_non_null(strstr(bench_asked_in(run, "backward"),
                           "+51200 +51200 +51200 +51200 +3200 +262400 -3200 -262400 -51200 -4096"));
    bench_free(run);
}

/* 2 * 4 * 100 * 100 scores of 4 bytes. */
TEST_F(bench, mathematical_attention_keeps_the_scores)
{
    bench *run = run_call("q = randn { 2, 4, 100, 32, requires_grad = true }",
                          "out = scaled_dot_product_attention(q, q, q, { backend = 'math' })");
    assert_string_equal(bench_asked_in(run, "forward"),
                        "+102400 +102400 +320000 +320000 +80000 +800 +4 -4 -800 -80000 -320000 "
                        "+102400");
    bench_free(run);
}

/* Converted, then rows of 100 padded to 104. */
TEST_F(bench, a_mask_of_truth_becomes_one_that_is_added_and_rows_of_it_are_aligned)
{
    bench *run = run_call("q = randn { 2, 4, 100, 32, requires_grad = true }\n"
                          "b = zeros { 100, 100, dtype = 'bool' }",
                          "out = scaled_dot_product_attention(q, q, q, { attn_mask = b })");
    assert_string_equal(bench_asked_in(run, "forward"),
                        "+10000 +40000 -10000 +41600 -40000 +102400 +4096");
    bench_free(run);
}

/* 60 features are padded to 64 for the kernel; the result is a part of what it makes. */
TEST_F(bench, flash_attention_pads_the_depth_to_a_multiple_of_8)
{
    bench *run = run_call("q = randn { 2, 4, 64, 60, dtype = 'bfloat16', requires_grad = true }",
                          "out = scaled_dot_product_attention(q, q, q)");
    assert_string_equal(bench_asked_in(run, "forward"), "+65536 +65536 +65536 +65536 +2048 +16 +8");
    bench_free(run);
}

/* A gradient of keys and values for each of 8 heads, and of 2 in the end. */
TEST_F(bench, grouped_queries_need_gradients_for_all_heads_for_a_while)
{
    bench *run = run_call("q = randn { 1, 8, 64, 32, dtype = 'bfloat16', requires_grad = true }\n"
                          "c = randn { 1, 2, 64, 32, dtype = 'bfloat16', requires_grad = true }",
                          "out = scaled_dot_product_attention(q, c, c, { enable_gqa = true, "
                          "backend = 'flash' })");
    assert_non_null(strstr(bench_asked_in(run, "backward"),
                           "+32768 +8192 +8192 +4096 +131072 +32768 +32768 -32768 -32768"));
    bench_free(run);
}

/* repeat_interleave gives a copy in rows, however its input lies. */
TEST_F(bench, shared_heads_that_lie_transposed_are_repeated)
{
    bench *run = run_call("q = randn { 1, 8, 64, 32, requires_grad = true }\n"
                          "c = randn { 1, 64, 2, 32, requires_grad = true }",
                          "out = scaled_dot_product_attention(q, c:transpose(2, 3) * 1, "
                          "c:transpose(2, 3), { enable_gqa = true, backend = 'math' })");
    assert_int_equal(run->allocated, 0);
    bench_free(run);
}

/* --- modules ----------------------------------------------------------------------------- */

/* 2 * 4 heads, 64 by 64 scores. */
TEST_F(bench, asking_for_the_weights_writes_attention_out)
{
    bench *run = bench_run("m = nn.MultiheadAttention { 256, 4, batch_first = true }\n"
                           "x = randn { 2, 64, 256 }\nout, w = m(x, x, x)\n"
                           "assert(w:dim() == 3 and w:size(2) == 64 and w:nbytes() == 32768);\n"
                           "(out:sum() + w:sum()):backward()\n");
    bench_assert_ok(run);
    assert_int_equal(run->allocated, 0);
}

TEST_F(bench, a_decoder_layer_of_pytorch_is_made_of_two_attentions_and_a_feed_forward)
{
    bench *run = bench_run("m = nn.TransformerDecoderLayer { 64, 4, hidden = 128 }\n"
                           "parameters = m:nbytes()\n"
                           "assert(parameters == 4 * (2 * (4 * 64 * 64 + 4 * 64) + 2 * 64 * 128 + "
                           "128 + 64 + 6 * 64))\n"
                           "d = nn.TransformerDecoder { layers = 3, features = 64, heads = 4, "
                           "hidden = 128 }\n"
                           "assert(d:nbytes() == 3 * parameters)\n"
                           "y = d(randn { 2, 5, 64 }, randn { 2, 9, 64 })\n"
                           "assert(y:size(2) == 5)\ny:sum():backward()\n");
    bench_assert_ok(run);
    assert_int_equal(run->allocated, 0);
}

TEST_F(bench, a_decoder_without_what_was_encoded_is_refused)
{
    bench_assert_refused(bench_run("m = nn.TransformerDecoderLayer { 64, 4 }\n"
                                   "y = m(randn { 2, 5, 64 })\n"),
                         "a decoder takes two tensors");
}
