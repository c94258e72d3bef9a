/* What a graph keeps, and what backward frees and leaves. */
#include "gmd_test.h"
#include "scenario_bench.h"

#include <string.h>

/* x -> x*x -> mean: the square saves x (1 KiB). w keeps a gradient of 1 KiB. */
#define LEAF "w = empty { 256, requires_grad = true };\n"

/* The sum of the second bias, 128 bytes, comes after what the block kept between its parts, 4096.
 */
TEST_F(bench, what_a_checkpoint_computed_again_goes_before_gradients_are_summed)
{
    bench *run = bench_run(
        "k = nn.Linear { 4, 4 }\nk(randn { 1, 4, requires_grad = true }):sum():backward()\n"
        "m = nn.Sequential { nn.Linear { 64, 64 }, nn.GELU(), nn.Linear { 64, 32 } }\n"
        "c = nn.Checkpointed { m }\nx = randn { 16, 64 }\n"
        "y = tanh(m(x)):sum()\nphase 'a'\ny:backward()\nphase 'kept'\n"
        "y = tanh(c(x)):sum()\nphase 'b'\ny:backward()\nphase 'again'\n");
    bench_assert_ok(run);
    assert_non_null(strstr(bench_asked_in(run, "kept"), "+8192 +128"));
    assert_non_null(strstr(bench_asked_in(run, "again"), "+8192 -4096 +128"));
}

TEST_F(bench, a_graph_keeps_what_its_operations_saved)
{
    bench *run = bench_run(LEAF "loss = relu(w * 2):square():mean()\nphase 'end'");
    bench_assert_ok(run);
    /* w, what relu and square share (relu's result), and the loss; w * 2 is saved by nobody */
    assert_int_equal(bench_at(run, "end"), 1024 + 1024 + 512);
}

TEST_F(bench, without_a_leaf_that_needs_a_gradient_nothing_is_saved)
{
    bench *run = bench_run("w = empty { 256 }\nloss = relu(w * 2):square():mean()\nphase 'end'");
    bench_assert_ok(run);
    assert_int_equal(bench_at(run, "end"), 1024 + 512);
}

TEST_F(bench, under_no_grad_nothing_is_saved)
{
    bench *run =
        bench_run(LEAF "no_grad(function() loss = relu(w * 2):square():mean() end)\nphase 'end'");
    bench_assert_ok(run);
    assert_int_equal(bench_at(run, "end"), 1024 + 512);
}

TEST_F(bench, backward_frees_what_was_saved_and_leaves_the_gradients)
{
    bench *run = bench_run(LEAF "loss = relu(w * 2):square():mean()\n"
                                "loss:backward()\nphase 'end'");
    bench_assert_ok(run);
    assert_int_equal(bench_at(run, "end"), 1024 + 1024 + 512); /* w, its gradient, the loss */
}

TEST_F(bench, retain_graph_keeps_what_was_saved)
{
    bench *run = bench_run(LEAF "loss = relu(w * 2):square():mean()\n"
                                "loss:backward { retain_graph = true }\nphase 'first'\n"
                                "loss:backward()\nphase 'second'");
    bench_assert_ok(run);
    assert_int_equal(bench_at(run, "first"), 3 * 1024 + 512);
    assert_int_equal(bench_at(run, "second"), 2 * 1024 + 512);
}

TEST_F(bench, a_second_backward_without_retain_graph_is_refused)
{
    bench *run = bench_run(LEAF "loss = w:square():mean()\nloss:backward()\nloss:backward()");
    bench_assert_refused(run, ".lua:5: backward() went through this graph already");
}

TEST_F(bench, the_first_gradient_is_adopted_and_the_next_added_in_place)
{
    bench *run = bench_run(LEAF "(w * 2):mean():backward();\nphase 'first';\n"
                                "(w * 2):mean():backward()\nphase 'second'");
    bench_assert_ok(run);
    assert_int_equal(bench_at(run, "first"), 2048);
    /* at most: w, its gradient, two gradients in passing, loss and its gradient */
    assert_int_equal(bench_at(run, "second"), 2048);
    assert_true(bench_peak_at(run, "second") <= 4 * 1024 + 2 * 512);
}

TEST_F(bench, a_gradient_that_is_a_broadcast_view_is_copied)
{
    bench *run = bench_run(LEAF "w:sum():backward()\nphase 'end'");
    bench_assert_ok(run);
    assert_int_equal(bench_at(run, "end"), 2048);
}

TEST_F(bench, gradients_of_two_uses_are_summed_in_place)
{
    bench *run = bench_run(LEAF "(relu(w) + relu(w)):mean():backward()\nphase 'end'");
    bench_assert_ok(run);
    assert_int_equal(bench_at(run, "end"), 2048);
}

TEST_F(bench, zero_grad_to_none_frees_the_gradients_and_to_zero_keeps_them)
{
    bench *run = bench_run(LEAF "o = optim.SGD { w, lr = 1 }\n"
                                "w:square():mean():backward()\n"
                                "o:zero_grad { set_to_none = false }\nphase 'zero'\n"
                                "o:zero_grad { set_to_none = true }\nphase 'none'");
    bench_assert_ok(run);
    assert_int_equal(bench_at(run, "zero"), 2048);
    assert_int_equal(bench_at(run, "none"), 1024);
}

TEST_F(bench, optimizer_state_appears_at_the_first_step)
{
    bench *run = bench_run(LEAF "sgd = optim.SGD { w, lr = 1, momentum = 0.9 }\n"
                                "adam = optim.AdamW { w, lr = 1 }\n"
                                "sgd:step()\nphase 'no gradient yet'\n"
                                "w:square():mean():backward()\n"
                                "sgd:step()\nphase 'sgd'\n"
                                "adam:step()\nphase 'adam'\n"
                                "adam:step() sgd:step()\nphase 'again'");
    bench_assert_ok(run);
    assert_int_equal(bench_at(run, "no gradient yet"), 1024);
    assert_int_equal(bench_at(run, "sgd"), 3072);
    assert_int_equal(bench_at(run, "adam"), 5120);
    assert_int_equal(bench_at(run, "again"), 5120);
}

TEST_F(bench, whoever_keeps_a_result_keeps_its_graph)
{
    bench *run =
        bench_run(LEAF "kept = list()\n"
                       "for i = 1, 10 do kept:append((w * 2):square():mean()) end\n"
                       "phase 'graphs'\n"
                       "kept:clear()\n"
                       "for i = 1, 10 do kept:append((w * 2):square():mean():detach()) end\n"
                       "phase 'numbers'");
    bench_assert_ok(run);
    assert_int_equal(bench_at(run, "graphs"), 1024 + 10 * (1024 + 512));
    assert_int_equal(bench_at(run, "numbers"), 1024 + 10 * 512);
}

TEST_F(bench, a_graph_of_100000_operations_is_freed_without_deep_recursion)
{
    bench *run = bench_run("w = empty { 1, requires_grad = true }\n"
                           "y = w * 2\n"
                           "for i = 1, 100000 do y = y:view { 1 } end\n"
                           "y = nil\nphase 'end'");
    bench_assert_ok(run);
    assert_int_equal(bench_at(run, "end"), 512);
}

TEST_F(bench, a_kept_grad_fn_keeps_the_graph_and_not_the_tensor)
{
    bench *run = bench_run(LEAF "y = relu(w * 2) * 3\n"
                                "assert(w.grad_fn == nil and y.grad_fn.name == 'MulBackward')\n"
                                "phase 'both'\nf = y.grad_fn\ny = nil\nphase 'grad_fn'\n"
                                "f = nil\nphase 'none'");
    bench_assert_ok(run);
    assert_int_equal(bench_at(run, "both"), 3 * 1024);    /* w, relu's result, y */
    assert_int_equal(bench_at(run, "grad_fn"), 2 * 1024); /* saved by the node behind it */
    assert_int_equal(bench_at(run, "none"), 1024);
}

TEST_F(bench, a_gradient_from_elsewhere_goes_back_from_any_shape)
{
    bench *run = bench_run(LEAF "y = relu(w * 2)\ny:backward(empty { 256 })\nphase 'end'");
    bench_assert_ok(run);
    assert_int_equal(bench_at(run, "end"), 3 * 1024); /* w, its gradient, y */
    bench_free(run);
    run = bench_run(LEAF "y = relu(w)\ny:backward(empty { 255 })");
    bench_assert_refused(run, ":4: the gradient must have the shape of the tensor");
    bench_free(run);
    run = bench_run("y = empty { 256 }\ny:backward(empty { 256 })");
    bench_assert_refused(run, ":3: backward() on a tensor that has no graph");
}

TEST_F(bench, dimensions_of_1_are_broadcast_also_between_as_many_elements)
{
    bench *run = bench_run("a, b = empty { 16, 1, 8 }, empty { 1, 16, 8 }\nc = a - b\n"
                           "assert(c:size(1) == 16 and c:size(2) == 16 and c:size(3) == 8)");
    bench_assert_ok(run);
    assert_int_equal(run->max_allocated, 2 * 512 + 16 * 16 * 8 * 4);
}

TEST_F(bench, shapes_that_do_not_fit_are_refused_with_both_shapes)
{
    bench *run = bench_run("x = empty { 2, 3 } + empty { 4 }");
    bench_assert_refused(run, ".lua:2: add: shapes [2, 3] and [4] differ");
    bench_free(run);
    run = bench_run("m = nn.Linear { 8, 4 }\ny = m(empty { 2, 9 })");
    bench_assert_refused(run, ".lua:3: Linear takes 8 features");
}
