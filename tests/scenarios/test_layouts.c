/* What operations copy because of how their operands lie, and how their results lie. The facts are
 * those of TensorIterator, of cuda/Blas.cpp and of the kernels of PyTorch 2.11. */
#include "asks.h"

#include <stdio.h>
#include <string.h>

#define HEADS(name) name " = randn { 2, 16, 8, 4, requires_grad = true }"
#define X           "x = randn { 16, 64, requires_grad = true }"
#define ACROSS      X "\na = x:transpose(1, 2)\n"

/* --- products ---------------------------------------------------------------------------- */

/* [batch, length, heads, depth] seen with the heads before the length: no three dimensions. */
TEST_F(bench, heads_that_were_moved_are_copied_for_a_product_and_kept)
{
    assert_asks(HEADS("q") "\n" HEADS("k"),
                "out = bmm(q:transpose(2, 3), k:transpose(2, 3):transpose(3, 4))",
                "+4096 +4096 +16384", NULL);
    assert_asks("q = randn { 2, 8, 16, 4 }\nk = randn { 2, 8, 16, 4 }",
                "out = bmm(q:transpose(2, 3):contiguous():transpose(2, 3), k:transpose(3, 4))",
                "+4096 +4096 +16384 -4096 -4096", "");
}

TEST_F(bench, the_last_two_dimensions_are_read_by_columns_without_a_copy)
{
    assert_asks("q = randn { 2, 8, 16, 4 }\nk = randn { 2, 8, 16, 4 }",
                "out = bmm(q, k:transpose(3, 4))", "+16384", "");
    assert_asks("q = randn { 16, 16, 4 }\nk = randn { 16, 16, 4 }",
                "out = bmm(q, k:transpose(2, 3))", "+16384", "");
}

TEST_F(bench, a_batch_that_lies_innermost_is_copied_for_the_call)
{
    assert_asks("q = randn { 16, 4, 16 }\nk = randn { 16, 4, 16 }",
                "out = bmm(q:permute { 3, 1, 2 }, k:permute { 3, 2, 1 })",
                "+16384 +4096 +4096 -4096 -4096", "");
}

TEST_F(bench, a_matrix_multiplies_all_rows_of_a_batch)
{
    assert_asks("a = randn { 4, 16, 16 }\nb = randn { 16, 8, requires_grad = true }",
                "out = matmul(a, b)", "+2048", SUM "+512 +2048 -2048" SUM_END);
    assert_asks("a = randn { 4, 16, 16 }\nb = randn { 4, 16, 8 }",
                "out = matmul(a:narrow(1, 1, 1), b)", "+2048", "");
}

/* Both products of the way back copy a gradient that has no steps. */
TEST_F(bench, an_expanded_gradient_is_copied_for_each_product)
{
    assert_asks(X "\nh = nn.Linear { 64, 32 }", "out = h(x)", "+2048",
                SUM "+4096 +2048 -2048 +8192 +2048 -2048 +128" SUM_END);
}

TEST_F(bench, a_linear_layer_reads_a_matrix_by_columns)
{
    assert_asks("h = nn.Linear { 16, 4 }\n" ACROSS, "out = h(a)", "+1024", NULL);
    assert_asks("h = nn.Linear { 16, 4 }\nx = randn { 4, 16, 64 }", "out = h(x:transpose(2, 3))",
                "+16384 +4096", NULL);
    assert_asks("h = nn.Linear { 16, 4 }\nx = randn { 8, 8, 16 }", "out = h(x:narrow(1, 1, 4))",
                "+512", NULL);
    assert_asks("h = nn.Linear { 16, 4 }\nx = randn { 8, 8, 64 }", "out = h(x:narrow(3, 1, 16))",
                "+1024", NULL);
}

/* --- kernels that read rows -------------------------------------------------------------- */

TEST_F(bench, a_softmax_of_a_transposed_input_copies_it_for_the_call)
{
    assert_asks(ACROSS, "out = a:softmax()", "+4096 +4096 -4096", NULL);
    assert_asks(ACROSS, "out = a:log_softmax()", "+4096 +4096 -4096",
                SUM "+4096 +4096 -4096 +4096 -4096" SUM_END);
}

/* The input is kept as it lies and copied once more on the way back. */
TEST_F(bench, a_layer_norm_of_a_transposed_input_copies_it_for_the_call)
{
    assert_asks(ACROSS "n = nn.LayerNorm { 16 }", "out = n(a)", "+4096 +4096 +256 +256 -4096",
                SUM "+4096 +4096 +64 +64 +4096 -4096 -4096 -256 -256 +4096 -4096" SUM_END);
}

TEST_F(bench, a_cross_entropy_of_transposed_logits_copies_them_for_the_call)
{
    assert_asks(ACROSS "b = randint { 64 }", "out = cross_entropy(a, b)", "+4096 +4096 -4096 +4 +4",
                NULL);
}

TEST_F(bench, a_group_norm_keeps_a_copy_in_rows)
{
    assert_asks("x = randn { 2, 8, 8, 8, requires_grad = true }\nn = nn.GroupNorm { 2, 8 }",
                "out = n(x:transpose(3, 4))", "+4096 +4096 +16 +16 +64 +64 -64 -64", NULL);
    assert_asks("x = randn { 2, 8, 8, 8, requires_grad = true }\nn = nn.BatchNorm2d { 8 }",
                "out = n(x:transpose(3, 4))", "+4096 +4096 +32 +32", NULL);
}

TEST_F(bench, a_batch_norm_of_rows_reads_them_as_they_lie)
{
    assert_asks(ACROSS "n = nn.BatchNorm1d { 16 }", "out = n(a)", "+4096 +64 +64",
                SUM "+64 +64 +64 +64 +4096 -64 -64 -64 -64 +4096 -4096" SUM_END);
}

TEST_F(bench, a_pool_copies_a_transposed_image_for_the_call)
{
    assert_asks("x = randn { 2, 8, 8, 8, requires_grad = true }",
                "out = nn.AvgPool2d { 2 }(x:transpose(3, 4))", "+1024 +4096 -4096", NULL);
}

/* --- how results lie --------------------------------------------------------------------- */

TEST_F(bench, an_elementwise_result_lies_as_its_operand)
{
    static const char *const calls[] = {
        "(a * 2):contiguous()",   "a:gelu():contiguous()", "a:relu():contiguous()",
        "(a + a):contiguous()",   "(a / 2):contiguous()",  "a:to('bfloat16'):float():contiguous()",
        "a:clone():contiguous()",
    };
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
        char text[256];
        snprintf(text, sizeof text,
                 "x = randn { 16, 64 }\na = x:transpose(1, 2)\nphase 'a'\nout = %s\n"
                 "phase 'b'\n",
                 calls[i]);
        bench *run = bench_run(text);
        bench_assert_ok(run);
        if (!strstr(bench_asked_in(run, "b"), "+4096 -") ||
            bench_at(run, "b") - bench_at(run, "a") != 4096) {
            fail_msg("%s: %s", calls[i], bench_asked_in(run, "b"));
        }
        bench_free(run);
    }
}

TEST_F(bench, the_first_operand_that_is_not_broadcast_decides_how_a_result_lies)
{
    static const char copied[] = "+4096 +4096 -4096";
    assert_asks(ACROSS "b = randn { 64, 16 }", "out = (a * b):contiguous()", copied, NULL);
    assert_asks(ACROSS "b = randn { 64, 16 }", "out = (b * a):contiguous()", "+4096", NULL);
    assert_asks(ACROSS "b = randn { 64, 1 }", "out = (b * a):contiguous()", copied, NULL);
}

/* [64, 16] by rows, seen as the leaf's [16, 64] it lies by columns. */
TEST_F(bench, a_gradient_that_does_not_lie_as_its_leaf_is_copied)
{
    assert_asks(ACROSS "b = randn { 64, 16 }", "out = b * a", "+4096",
                SUM "+4096 +4096 -4096" SUM_END);
}

/* --- in place ---------------------------------------------------------------------------- */

TEST_F(bench, a_product_in_place_copies_what_the_other_gradient_needs)
{
    assert_asks(A_B "\nc = a * 1", "out = c:mul_(b)", "+4096", NULL);
    assert_asks(A_B "\nc = a * 1", "out = c:mul_(b:detach())", "", NULL);
    assert_asks(A "\nc = a * 1", "out = c:mul_(2)", "", NULL);
}

/* --- recurrent networks ------------------------------------------------------------------ */

/* The states of zeros, the copy if there is one, output and states. */
static void assert_recurrent(const char *sizes, const char *asks)
{
    char text[256];
    snprintf(text, sizeof text,
             "m = nn.LSTM { 8, 8 }\nx = randn { %s }\nphase 'x'\nno_grad(function() y = m(x) end)\n"
             "phase 'a'\n",
             sizes);
    bench *run = bench_run(text);
    bench_assert_ok(run);
    const char *asked = bench_asked_in(run, "a");
    if (strncmp(asked, asks, strlen(asks)) != 0) {
        fail_msg("%s: expected %s, asked for %s", sizes, asks, asked);
    }
    bench_free(run);
}

TEST_F(bench, a_batch_of_one_is_not_copied_for_a_recurrent_network)
{
    assert_recurrent("4, 8, 8", "+128 +128 +1024 +1024 +128 +128 ");
    assert_recurrent("1, 32, 8", "+32 +32 +1024 +32 +32 ");
    assert_recurrent("32, 1, 8", "+1024 +1024 +1024 +1024 +1024 +8");
}

TEST_F(bench, what_a_recurrent_network_gives_is_no_copy_for_the_next)
{
    bench *run = bench_run("m, n = nn.LSTM { 8, 8 }, nn.LSTM { 8, 8 }\nx = randn { 4, 8, 8 }\n"
                           "no_grad(function()\n  y = m(x)\n  phase 'a'\n  z = n(y)\n"
                           "  phase 'b'\nend)");
    bench_assert_ok(run);
    assert_true(strstr(bench_asked_in(run, "b"), "+128 +128 +1024 +128 +128 ") != NULL);
}
