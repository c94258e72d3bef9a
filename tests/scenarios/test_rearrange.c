/* What copies with the elements in other places, lengths of vectors and losses of errors ask of the
 * allocator. The facts are those of derivatives.yaml and of ATen's kernels of PyTorch 2.11; the
 * same calls are among the recorded twins (tests/scenarios/twins/draw_operations.py). */
#include "asks.h"

#define GRAD SUM "+4096" SUM_END

TEST_F(bench, a_copy_in_another_order_has_a_gradient_in_another_order)
{
    assert_asks(A, "out = a:flip(1)", "+4096", GRAD);
    assert_asks(A, "out = a:roll(3, 2)", "+4096", SUM "+4096 +4096 -4096" SUM_END);
}

TEST_F(bench, margins_are_cut_off_the_gradient)
{
    assert_asks(A, "out = pad(a, { 0, 64 })", "+8192", GRAD);
    assert_asks(A, "out = pad(a, { 0, -32, 16, 0 })", "+4096", GRAD);
}

TEST_F(bench, what_was_repeated_is_summed)
{
    assert_asks(A, "out = a:tile { 3, 1 }", "+12288", GRAD);
}

TEST_F(bench, what_is_flattened_is_a_view)
{
    assert_asks(A, "out = a:flatten()", "", NULL);
    assert_asks(A, "out = a:t()", "", NULL);
}

TEST_F(bench, a_length_has_a_unit_vector_for_its_gradient)
{
    assert_asks(A, "out = a:norm(2)", "+64", SUM "+4096 +16 -16 +4096 -4096" SUM_END);
}

TEST_F(bench, a_sum_of_powers_keeps_the_largest_apart)
{
    assert_asks(A, "out = a:logsumexp(2)", "+64 +64 +16 -16 -64 +4096 +64 -4096 -64",
                SUM "+4096 +4096 +4096 -4096 -4096" SUM_END);
}

TEST_F(bench, losses_of_errors_take_what_they_reduce)
{
    assert_asks(A "\nb = randn { 16, 64 }", "out = l1_loss(a, b)", "+4096 +4096 +4 -4096", NULL);
    assert_asks(A "\nb = randn { 16, 64 }", "out = smooth_l1_loss(a, b)", "+4096 +4096 -4096",
                NULL);
    assert_asks(A "\nb = randn { 16, 64 }", "out = huber_loss(a, b)", "+4096 +4 -4096", NULL);
    assert_asks(A "\nb = randn { 16, 64 }", "out = binary_cross_entropy(a, b)", "+4096 +4 -4",
                NULL);
    assert_asks(A "\nb = randint { 16 }", "out = nll_loss(a, b)", "+4 +4", NULL);
}

TEST_F(bench, binary_cross_entropy_is_refused_under_autocast)
{
    bench_assert_refused(bench_run("a = rand { 4 }\nautocast('bfloat16', function()\n"
                                   "  return binary_cross_entropy(a, a)\nend)\n"),
                         "refused under autocast");
}

TEST_F(bench, a_copy_of_a_module_has_memory_of_its_own)
{
    bench *run =
        bench_run("m = nn.Sequential { nn.Linear { 16, 16 }, nn.BatchNorm1d { 16 } }\n"
                  "m(randn { 4, 16 }):sum():backward()\nphase 'a'\n"
                  "c = copy.deepcopy(m)\nphase 'b'\n"
                  "c(randn { 4, 16 }):sum():backward()\nassert(select(2, c:nbytes()) > 0)\n");
    bench_assert_ok(run);
    assert_string_equal(bench_asked_in(run, "b"), "+1024 +64 +64 +64 +64 +64 +8");
}

TEST_F(bench, a_part_at_two_places_is_copied_once)
{
    bench *run = bench_run("m = nn.Linear { 16, 16, bias = false }\ns = nn.Sequential { m, m }\n"
                           "phase 'a'\nc = copy.deepcopy(s)\nphase 'b'\n");
    bench_assert_ok(run);
    assert_string_equal(bench_asked_in(run, "b"), "+1024");
}

TEST_F(bench, what_a_copy_takes_and_is_not_known_is_refused)
{
    bench_assert_refused(bench_run("m = nn.LSTM { 4, 4 }\nc = copy.deepcopy(m)\n"),
                         "of an LSTM or GRU");
}

/* --- tied weights ------------------------------------------------------------------------ */

#define TIED                                                                                       \
    "words = nn.Embedding { 100, 64 }\nhead = nn.Linear { 64, 100, bias = false }\nphase 'a'\n"    \
    "head.weight = words.weight\nphase 'tied'\nm = nn.Sequential { words, head }\n"

TEST_F(bench, layers_that_share_a_weight_have_it_once)
{
    bench *run =
        bench_run(TIED "assert(m:nbytes() == 25600)\nm(randint { 2, 4 }):sum():backward()\n"
                       "assert(select(2, m:nbytes()) == 25600)\n"
                       "o = optim.SGD { m, momentum = 0.9 }\no:step()\n"
                       "assert(o:nbytes() == 25600)\nassert(#m:parameters() == 1)\n");
    bench_assert_ok(run);
    assert_string_equal(bench_asked_in(run, "tied"), "-25600");
}

TEST_F(bench, a_weight_of_another_size_is_refused)
{
    bench_assert_refused(bench_run("a = nn.Linear { 4, 4 }\nb = nn.Linear { 4, 8 }\n"
                                   "a.weight = b.weight\n"),
                         "a parameter [4, 4] of float32 cannot become [8, 4] of float32");
    bench_assert_refused(bench_run("a = nn.ReLU()\na.weight = randn { 4 }\n"),
                         "a weight and a bias");
    bench_assert_refused(bench_run("a = nn.LSTM { 4, 4 }\nb = a.weight\n"), "has no 'weight'");
}
