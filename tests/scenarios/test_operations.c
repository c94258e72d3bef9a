/* What operations, views, streams, mixed precision, checkpointing and cuDNN's trial ask of the
 * allocator. */
#include "gmd_test.h"
#include "scenario_bench.h"

#define KIB ((uint64_t)1024)
#define MIB ((uint64_t)1 << 20)

/* Runs the text and gives how many bytes more are allocated at phase "b" than at "a". */
static int64_t growth(const char *text)
{
    bench *run = bench_run(text);
    bench_assert_ok(run);
    int64_t bytes = (int64_t)bench_at(run, "b") - (int64_t)bench_at(run, "a");
    bench_free(run);
    return bytes;
}

/* The peak above what is allocated at phase "a". */
static uint64_t peak_above(const char *text)
{
    bench *run = bench_run(text);
    bench_assert_ok(run);
    uint64_t bytes = bench_peak_at(run, "b") - bench_at(run, "a");
    bench_free(run);
    return bytes;
}

/* --- views and joins --------------------------------------------------------------------- */

TEST(views_take_no_memory)
{
    assert_int_equal(growth("x = randn { 256, 1024 }\nphase 'a'\n"
                            "y = x:transpose(1, 2)\nz = x:narrow(2, 1, 10)\nw = x:select(1)\n"
                            "u = x:unbind()\nphase 'b'"),
                     0);
}

TEST(a_view_keeps_the_whole_storage)
{
    assert_int_equal(growth("x = randn { 256, 1024 }\nphase 'a'\n"
                            "y = x:select(1)\nx = nil\nphase 'b'"),
                     0);
}

TEST(contiguous_copies_only_what_has_gaps)
{
    assert_int_equal(growth("x = randn { 256, 1024 }\nphase 'a'\ny = x:contiguous()\nphase 'b'"),
                     0);
    assert_int_equal(growth("x = randn { 256, 1024 }\nphase 'a'\n"
                            "y = x:transpose(1, 2):contiguous()\nphase 'b'"),
                     MIB);
}

TEST(the_gradient_of_a_part_is_as_large_as_the_whole)
{
    assert_int_equal(growth("x = randn { 256, 1024, requires_grad = true }\nphase 'a'\n"
                            "x:select(1):sum():backward()\nphase 'b'"),
                     MIB);
}

TEST(joining_takes_the_memory_of_all_parts)
{
    assert_int_equal(growth("x = randn { 256, 1024 }\nphase 'a'\ny = cat { x, x, x }\nphase 'b'"),
                     3 * MIB);
    assert_int_equal(growth("x = randn { 256, 1024 }\nphase 'a'\ny = stack { x, x }\nphase 'b'"),
                     2 * MIB);
}

TEST_F(bench, parts_that_do_not_fit_are_refused)
{
    bench *run = bench_run("x = cat { randn { 2, 3 }, randn { 2, 4 } }");
    bench_assert_refused(run, "cat: shapes [2, 3] and [2, 4] differ");
}

/* --- in place ---------------------------------------------------------------------------- */

TEST(changes_in_place_take_no_memory)
{
    assert_int_equal(growth("x = randn { 256, 1024 }\nphase 'a'\n"
                            "x:mul_(2):add_(x):relu_():zero_()\nphase 'b'"),
                     0);
}

TEST_F(bench, a_leaf_that_requires_a_gradient_cannot_be_multiplied_in_place)
{
    bench *run = bench_run("x = randn { 4, requires_grad = true }\nx:mul_(2)");
    bench_assert_refused(run, "a leaf that requires a gradient cannot be changed in place");
}

/* --- products and reductions ------------------------------------------------------------- */

TEST(a_product_of_batches_saves_both_sides)
{
    assert_int_equal(growth("w = randn { 64, 64 }\nv = w * 1\n"
                            "k = bmm(randn { 1, 2, 2 }, randn { 1, 2, 2 })\nk = nil\nphase 'a'\n"
                            "a = randn { 4, 256, 256, requires_grad = true }\n"
                            "c = bmm(a * 1, a * 1):sum()\nphase 'b'"),
                     MIB + 2 * MIB + 512);
}

/* setReduceConfig gives 63 blocks of 32 x 4 threads to each group of 128 columns, and each thread
 * leaves a partial sum. */
TEST_F(bench, many_rows_are_summed_by_several_blocks_through_a_buffer)
{
    bench *run = bench_run("layer = nn.Linear { 1, 2000 }\n"
                           "y = layer(randn { 4000, 1 }) * 2\ny:sum():backward()");
    bench_assert_ok(run);
    assert_int_equal(run->largest, (uint64_t)63 * 128 * 2000 * 4);
}

/* The gradient of a sum is one element, expanded: a thread loads one at a time, and one block is
 * enough. */
TEST_F(bench, rows_of_an_expanded_gradient_are_summed_without_a_buffer)
{
    bench *run = bench_run("layer = nn.Linear { 1, 2000 }\n"
                           "layer(randn { 4000, 1 }):sum():backward()");
    bench_assert_ok(run);
    assert_int_equal(run->largest, 32 * MIB); /* cuBLAS's */
}

TEST(a_normalised_row_keeps_a_mean_and_a_deviation)
{
    assert_int_equal(growth("norm = nn.LayerNorm { 1024 }\nx = randn { 256, 1024 }\nphase 'a'\n"
                            "y = norm(x)\nphase 'b'"),
                     MIB + 2 * KIB);
}

/* --- mixed precision --------------------------------------------------------------------- */

TEST_F(bench, autocast_copies_a_weight_once_and_drops_the_copy_with_the_block)
{
    static const char text[] =
        "layer = nn.Linear { 1024, 1024, bias = false }\nx = randn { 16, 1024 }\n"
        "w = layer(x)\nw = nil\nphase 'a'\n"
        "no_grad(function()\n"
        "  autocast('bfloat16', function()\n"
        "    y = layer(x)\n    z = layer(x)\n    phase 'inside'\n  end)\nend)\n"
        "phase 'b'";
    bench *run = bench_run(text);
    bench_assert_ok(run);
    assert_int_equal(bench_at(run, "inside") - bench_at(run, "a"), 2 * MIB + 64 * KIB);
    assert_int_equal(bench_at(run, "b") - bench_at(run, "a"), 64 * KIB);
}

TEST_F(bench, gradients_stay_in_32_bits_under_autocast)
{
    bench *run = bench_run("layer = nn.Linear { 1024, 1024 }\n"
                           "autocast('bfloat16', function()\n"
                           "  loss = layer(randn { 16, 1024 }):sum()\nend)\n"
                           "loss:backward()\n"
                           "parameters, gradients = layer:nbytes()\n"
                           "assert(parameters == gradients and parameters == 4 * 1025 * 1024)");
    bench_assert_ok(run);
}

/* --- checkpointing ----------------------------------------------------------------------- */

#define STACK                                                                                      \
    "body = nn.Sequential { nn.Linear { 512, 512 }, nn.ReLU(), nn.Linear { 512, 512 } }\n"         \
    "x = randn { 512, 512, requires_grad = true }\n"                                               \
    "y = body(x)\ny = nil\nphase 'a'\n"

TEST(a_checkpointed_module_keeps_only_its_output)
{
    assert_int_equal(growth(STACK "y = checkpoint(body, x)\nphase 'b'"), MIB);
    assert_int_equal(growth(STACK "y = body(x)\nphase 'b'"), 2 * MIB);
}

/* And cublasLt's workspace: the autograd thread adds a bias for the first time. */
TEST(a_checkpointed_module_gets_the_same_gradients)
{
    assert_int_equal(growth(STACK "checkpoint(body, x):sum():backward()\nphase 'b'"),
                     growth(STACK "body(x):sum():backward()\nphase 'b'") + (int64_t)MIB);
}

TEST_F(bench, going_back_twice_through_a_checkpoint_is_refused)
{
    bench *run = bench_run(STACK "y = checkpoint(body, x):sum()\ny:backward()\ny:backward()");
    bench_assert_refused(run, "backward() went through this graph already");
}

/* --- streams ----------------------------------------------------------------------------- */

TEST(work_on_another_stream_has_its_own_products_workspace)
{
    assert_int_equal(growth("layer = nn.Linear { 64, 64, bias = false }\nx = randn { 64, 64 }\n"
                            "y = layer(x)\ny = nil\nside = cuda.Stream()\nphase 'a'\n"
                            "cuda.stream(side, function() y = layer(x) end)\nphase 'b'"),
                     32 * MIB + 16 * KIB);
}

TEST_F(bench, a_stream_block_ends_also_by_an_error)
{
    bench *run =
        bench_run("side = cuda.Stream()\n"
                  "pcall(cuda.stream, side, function() error('x') end)\n"
                  "layer = nn.Linear { 64, 64, bias = false }\n"
                  "x = randn { 64, 64 }\ny = layer(x)\nphase 'a'\nz = layer(x)\nphase 'b'");
    bench_assert_ok(run);
    assert_int_equal(bench_at(run, "b") - bench_at(run, "a"), 16 * KIB);
}

/* --- optimizers -------------------------------------------------------------------------- */

#define TRAINED                                                                                    \
    "a = nn.Linear { 512, 512, bias = false }\nb = nn.Linear { 512, 512, bias = false }\n"         \
    "b(a(randn { 8, 512 })):sum():backward()\n"

/* The moments, and on top of them for a moment the roots. */
TEST(adam_takes_the_roots_of_all_parameters_at_once)
{
    assert_int_equal(peak_above(TRAINED "c = nil\nphase 'a'\no = optim.Adam { a, b }\n"
                                        "for i = 1, 40 do o:step() end\nphase 'b'"),
                     4 * MIB + 2 * MIB);
}

TEST(adam_in_a_loop_takes_two_temporaries_of_a_parameter)
{
    assert_int_equal(peak_above("a = nn.Linear { 512, 512, bias = false }\n"
                                "a(randn { 8, 512 }):sum():backward()\nphase 'a'\n"
                                "o = optim.Adam { a, foreach = false }\no:step()\nphase 'b'"),
                     2 * MIB + 2 * MIB);
}

TEST(weight_decay_takes_a_sum_for_each_gradient_but_not_with_adamw)
{
    assert_int_equal(peak_above(TRAINED "c = nil\nphase 'a'\n"
                                        "o = optim.SGD { a, b, weight_decay = 0.1 }\n"
                                        "for i = 1, 40 do o:step() end\nphase 'b'"),
                     2 * MIB);
    /* Adam lets go of the sums before it takes the roots. */
    assert_int_equal(peak_above(TRAINED "c = nil\nphase 'a'\n"
                                        "o = optim.Adam { a, b, weight_decay = 0.1 }\n"
                                        "for i = 1, 40 do o:step() end\nphase 'b'"),
                     4 * MIB + 2 * MIB);
    assert_int_equal(peak_above(TRAINED "c = nil\nphase 'a'\n"
                                        "o = optim.AdamW { a, b, weight_decay = 0.1 }\n"
                                        "for i = 1, 40 do o:step() end\nphase 'b'"),
                     4 * MIB + 2 * MIB);
}

TEST(a_fused_step_keeps_its_count_on_the_device)
{
    assert_int_equal(growth(TRAINED
                            "phase 'a'\no = optim.AdamW { a, b, fused = true }\n"
                            "o:step()\nassert(o:nbytes() == 4 * 1024 * 1024 + 8)\nphase 'b'"),
                     4 * MIB + KIB);
}

/* --- cuDNN's trial ----------------------------------------------------------------------- */

#define CONVOLUTION                                                                                \
    "cudnn.benchmark(true)\nlayer = nn.Conv2d { 64, 64, kernel = 3, padding = 1, bias = false }\n" \
    "x = randn { 8, 64, 14, 14 }\nphase 'a'\n"

TEST_F(bench, the_first_call_of_its_kind_tries_the_large_workspaces)
{
    bench *run = bench_run(CONVOLUTION "y = layer(x)\nphase 'b'");
    bench_assert_ok(run);
    /* 512 maps and 4096 pairs of channels as spectra of 16 x 16, twice, and the weight */
    assert_int_equal(run->largest, (uint64_t)2304 * (512 + 4096) + (uint64_t)64 * 64 * 9 * 4);
}

TEST_F(bench, the_second_call_of_its_kind_tries_nothing)
{
    bench *once = bench_run(CONVOLUTION "y = layer(x)"), *twice;
    twice = bench_run(CONVOLUTION "y = layer(x)\ny = nil\ncuda.synchronize()\nphase 'b'\n"
                                  "y = layer(x)");
    bench_assert_ok(once);
    bench_assert_ok(twice);
    /* output and workspace, allocated and freed */
    assert_int_equal(twice->requests - once->requests, 4 + 1);
}

TEST_F(bench, a_trial_that_does_not_fit_asks_for_half_as_much)
{
    bench *run = bench_run_limited(CONVOLUTION "y = layer(x)\nphase 'b'", 6 * MIB);
    bench_assert_ok(run);
    assert_false(run->out_of_memory);
    assert_in_range(run->largest, 2 * MIB, 6 * MIB);
}

/* --- recurrent networks ------------------------------------------------------------------ */

TEST_F(bench, both_directions_of_a_gru_give_their_states)
{
    bench *run = bench_run("g = nn.GRU { 8, 16, layers = 2, bidirectional = true }\n"
                           "y, h = g(randn { 4, 5, 8 })\n"
                           "assert(y:size(3) == 32 and h:size(1) == 4)");
    bench_assert_ok(run);
}

TEST_F(bench, a_cell_that_gets_no_state_is_refused)
{
    bench *run = bench_run("c = nn.GRUCell { 8, 16 }\nh = c(randn { 4, 8 })");
    bench_assert_refused(run, "GRUCell takes an input and a state");
}

/* --- all of them, out of memory anywhere ------------------------------------------------- */

static const char everything[] =
    "block = nn.GPTBlock { 32, heads = 2 }\n"
    "model = nn.gpt { vocabulary = 50, features = 32, heads = 2, layers = 1, causal = true,\n"
    "                 positions = 8, checkpoint = true }\n"
    "pair = nn.seq2seq { vocabulary = 50, features = 8, hidden = 16 }\n"
    "lstm = nn.LSTM { 8, 16, layers = 2 }\n"
    "image = nn.Sequential { nn.Conv2d { 3, 8, kernel = 3, stride = 2 }, nn.BatchNorm2d { 8 },\n"
    "                        nn.SiLU(), nn.AdaptiveAvgPool2d(), nn.Flatten() }\n"
    "cudnn.benchmark(true)\n"
    "o = optim.AdamW { block, model, pair, lstm, image, fused = true }\n"
    "for i = 1, 2 do\n"
    "  autocast('float16', function() a = block(checkpoint(block, randn { 2, 8, 32 })):sum() end)\n"
    "  a:backward()\n"
    "  model(randint { 2, 8 }):square():mean():backward()\n"
    "  pair(randint { 2, 5 }, randint { 2, 5 }):sum():backward()\n"
    "  b = lstm(randn { 2, 5, 8 })\n"
    "  cat(stack(b:unbind(2)):softmax():unbind(), 1):sum():backward()\n"
    "  image(randn { 2, 3, 32, 32 }):sum():backward()\n"
    "  clip_grad_norm(model)\n"
    "  o:step()\n"
    "  o:zero_grad()\n"
    "end\n";

TEST_F(bench, a_sum_and_a_join_have_the_type_that_torch_promotes_to)
{
    bench *run = bench_run("function is(t, name) assert(tostring(t) == 'tensor [4] ' .. name) end\n"
                           "is(randn { 4 } + randint { 4 }, 'float32')\n"
                           "is(randint { 4 } + randn { 4, dtype = 'float16' }, 'float16')\n"
                           "is(randn { 4, dtype = 'float16' } + randn {}, 'float16')\n"
                           "is(randint { 4 } + randn {}, 'float32')\n"
                           "is(ones { 4, dtype = 'bool' } * ones { 4, dtype = 'uint8' }, 'uint8')\n"
                           "is(cat { randint { 2 }, randn { 2 } }, 'float32')\n");
    bench_assert_ok(run);
}

/* As torch's parameters(), state_dict() and an optimizer's state have them. */
TEST_F(bench, a_module_that_is_used_twice_has_its_parameters_once)
{
    bench *run = bench_run("l = nn.Linear { 4, 4 }\n"
                           "s = nn.Sequential { l, nn.ReLU(), l }\n"
                           "assert(#s:parameters() == 2 and s:nbytes() == 80)\n"
                           "o = optim.Adam { s, l, s:parameters() }\n"
                           "s(randn { 2, 4 }):sum():backward()\n"
                           "o:step()\n"
                           "assert(o:nbytes() == 160)\n");
    bench_assert_ok(run);
}

TEST_F(bench, out_of_memory_at_any_request_loses_nothing)
{
    bench *whole = bench_run(everything);
    bench_assert_ok(whole);
    uint64_t peak = whole->max_allocated;
    bench_free(whole);
    for (uint64_t i = 1; i < 160; i++) { /* closely where the small ones are, then up to the peak */
        uint64_t limit = i <= 80 ? i * 16 * KIB : peak / 80 * (i - 80);
        bench *run = bench_run_limited(everything, limit);
        bench_assert_ok(run);
        assert_true(run->out_of_memory);
        assert_int_equal(run->allocated, 0);
        bench_free(run);
    }
}
