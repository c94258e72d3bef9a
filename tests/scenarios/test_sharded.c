/* The memory of fully_shard() and ZeroRedundancyOptimizer on one of two ranks. The facts are those
 * of torch/distributed/fsdp/_fully_shard/, zero_redundancy_optimizer.py and TensorShape.cu of
 * PyTorch 2.11; tests/scenarios/twins/draw_sharded.py has programs for a comparison with
 * recordings.
 *
 * The model has two weights, of 1024 and of 512 bytes. "+N -M" is an allocation and a free. Tables
 * of what a kernel copies, some 40 to 80 bytes, come and go. */
#include "gmd_test.h"
#include "scenario_bench.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* cuBLAS's workspaces are there before. */
#define WARM                                                                                       \
    "k = nn.Linear { 4, 4, bias = false }\nk(randn { 1, 4, requires_grad = true "                  \
    "}):sum():backward()\nk = nil\n"
#define RANKS "dist.init_process_group { world_size = 2 }\n"
#define MODEL                                                                                      \
    WARM RANKS "first = nn.Linear { 16, 16, bias = false }\n"                                      \
               "last = nn.Linear { 16, 8, bias = false }\n"                                        \
               "body = nn.Sequential { first, last }\nx = randn { 2, 16 }\n"
#define PARTS MODEL "fully_shard(first)\nfully_shard(last)\nfully_shard(body)\n"

static bench *run_script(const char *text)
{
    bench *run = bench_run(text);
    bench_assert_ok(run);
    return run;
}

/* What `call` asks for, after `before`. */
static void assert_asks(const char *before, const char *call, const char *expected)
{
    char text[2048];
    snprintf(text, sizeof text, "%sphase 'before'\n%s\nphase 'after'\n", before, call);
    assert_string_equal(bench_asked_in(run_script(text), "after"), expected);
}

static void assert_refused(const char *text, const char *part)
{
    bench_assert_refused(bench_run(text), part);
}

/* --- rows ---------------------------------------------------------------------------------- */

TEST_F(bench, a_rank_keeps_its_rows_of_each_parameter)
{
    assert_asks(MODEL, "fully_shard(first)", "+512 -1024");
}

TEST_F(bench, all_parameters_of_a_module_are_there_until_all_rows_are)
{
    assert_asks(MODEL, "fully_shard(body)", "+512 +256 -512 -1024");
}

TEST_F(bench, a_part_that_is_sharded_has_its_own_parameters)
{
    assert_asks(MODEL "fully_shard(first)\n", "fully_shard(body)", "+256 -512");
}

TEST_F(bench, rows_that_cannot_be_shared_out_evenly_are_padded)
{
    assert_asks(RANKS "m = nn.Linear { 4, 5, bias = false }\n", "fully_shard(m)", "+48 -80");
}

TEST_F(bench, the_last_rank_has_the_rows_that_are_left)
{
    bench *run = run_script("dist.init_process_group { world_size = 2, rank = 1 }\n"
                            "m = nn.Linear { 4, 5, bias = false }\nfully_shard(m)\n"
                            "m(randn { 2, 4 }):sum():backward()\n"
                            "o = optim.SGD { m, momentum = 0.9 }\no:step()\nphase(o:nbytes())\n");
    assert_string_equal(run->phases[0].label, "32");
}

/* --- forward passes ------------------------------------------------------------------------ */

TEST_F(bench, parameters_are_gathered_into_a_buffer_and_copied_from_it)
{
    assert_asks(MODEL "fully_shard(last)\n", "y = last(x)", "+512 +512 +48 -48 +64 -512");
}

TEST_F(bench, gathered_parameters_of_another_type_are_converted_first)
{
    assert_asks(MODEL "fully_shard(last, { param_dtype = 'bfloat16' })\n", "y = last(x)",
                "+64 +128 +256 -128 +256 +48 -48 +32 -256");
}

TEST_F(bench, parts_give_up_their_parameters_and_the_buffer_stays_until_the_next_is_copied)
{
    assert_asks(PARTS, "y = body(x)",
                "+1024 +1024 +48 -48 +128 -1024 +512 +512 +48 -48 -1024 +64 -512 -512");
}

TEST_F(bench, the_outermost_module_keeps_its_parameters_unless_it_is_told_otherwise)
{
    assert_asks(MODEL "fully_shard(last, { reshard_after_forward = true })\n", "y = last(x)",
                "+512 +512 +48 -48 +64 -512 -512");
}

TEST_F(bench, parameters_that_are_kept_are_not_gathered_again)
{
    assert_asks(MODEL "fully_shard(last)\ny = last(x)\n", "z = last(x)", "+64");
}

TEST_F(bench, a_module_that_is_resharded_gives_up_its_parameters)
{
    assert_asks(MODEL "fully_shard(last)\ny = last(x)\n", "last:reshard()", "-512");
}

TEST_F(bench, a_module_that_is_unsharded_has_them_before_it_is_called)
{
    assert_asks(MODEL "fully_shard(last)\n", "last:unshard()", "+512 +512 +48 -48 -512");
}

/* --- backward passes ----------------------------------------------------------------------- */

#define STEP "y = last(x):sum()\n"

TEST_F(bench, gradients_are_copied_to_a_buffer_and_what_is_reduced_is_the_ranks)
{
    assert_asks(MODEL "fully_shard(last)\n" STEP, "y:backward()",
                "+4 +512 +64 -64 -512 +512 +80 -80 -512 +256 -512 -4");
}

TEST_F(bench, the_part_before_is_gathered_while_one_is_at_work)
{
    bench *run =
        run_script(PARTS "y = body(x):sum()\nphase 'forward'\ny:backward()\nphase 'backward'\n");
    const char *asked = bench_asked_in(run, "backward");
    /* the last part's buffer and parameters, and the first part's buffer */
    const char *expected = "+4 +512 +512 +48 -48 -512 +1024";
    if (strncmp(asked, expected, strlen(expected)) != 0) {
        fail_msg("'%s' does not begin with '%s'", asked, expected);
    }
}

static uint64_t left_by_backward(const char *options, const char *before)
{
    char text[2048];
    snprintf(text, sizeof text,
             MODEL "fully_shard(last%s)\n%s" STEP "a = cuda.requested().bytes\ny:backward()\n"
                   "phase(cuda.requested().bytes - a)\n",
             options, before);
    bench *run = run_script(text);
    return strtoull(run->phases[0].label, NULL, 10);
}

/* The gathered weight, 512, goes, and what was saved for it, the rows of a gradient, 256, come. */
TEST_F(bench, a_gradient_that_is_not_reduced_stays_whole)
{
    uint64_t reduced = left_by_backward("", "");
    uint64_t whole = left_by_backward("", "last:set_requires_gradient_sync(false)\n");
    assert_int_equal(whole - reduced, 512 - 256);
}

TEST_F(bench, a_gradient_that_waits_for_its_reduction_has_the_type_of_that)
{
    const char *options = ", { param_dtype = 'bfloat16', reduce_dtype = 'float32' }";
    uint64_t reduced = left_by_backward(options, "");
    uint64_t whole = left_by_backward(options, "last:set_requires_gradient_sync(false)\n");
    assert_int_equal(whole - reduced, 512 - 256);
}

TEST_F(bench, parameters_stay_after_a_backward_pass_where_that_is_said)
{
    uint64_t given_up = left_by_backward("", "");
    uint64_t kept = left_by_backward("", "last:set_reshard_after_backward(false)\n");
    assert_int_equal(kept - given_up, 512);
}

TEST_F(bench, a_frozen_parameter_is_gathered_and_gets_no_gradient)
{
    bench *run = run_script(MODEL "fully_shard(last)\nlast:requires_grad_(false)\n"
                                  "y = last(randn { 2, 16, requires_grad = true }):sum()\n"
                                  "y:backward()\nphase((select(2, last:nbytes())))\n");
    assert_string_equal(run->phases[0].label, "0");
}

TEST_F(bench, the_setting_after_forward_passes_can_be_changed)
{
    assert_asks(MODEL "fully_shard(last)\nlast:set_reshard_after_forward(true)\n", "y = last(x)",
                "+512 +512 +48 -48 +64 -512 -512");
}

TEST_F(bench, gradients_are_cleared_with_the_last_of_them)
{
    assert_asks(MODEL "fully_shard(body)\no = optim.SGD { body }\nbody(x):sum():backward()\n",
                "o:zero_grad()", "-768");
}

TEST_F(bench, a_model_that_goes_takes_all_along)
{
    bench *run = run_script(PARTS "o = optim.Adam { body }\nfor i = 1, 2 do\n"
                                  "  body(x):sum():backward()\n  o:step()\n  o:zero_grad()\nend\n"
                                  "y = body(x)\ny, o, body, first, last, x = nil\n"
                                  "phase(cuda.requested().bytes)\n");
    bench *empty = run_script(WARM "phase(cuda.requested().bytes)\n");
    assert_string_equal(run->phases[0].label, empty->phases[0].label);
}

TEST_F(bench, memory_that_is_not_enough_ends_the_run)
{
    bench *run = bench_run_limited(RANKS "m = nn.Linear { 1024, 1024 }\nfully_shard(m)\n"
                                         "m(randn { 2, 1024 }):sum():backward()\n",
                                   11 << 20);
    assert_true(run->out_of_memory);
}

/* --- more ranks, and other places --------------------------------------------------------- */

#define FOUR                                                                                       \
    WARM "dist.init_process_group { world_size = 4 }\n"                                            \
         "first = nn.Linear { 16, 16, bias = false }\n"                                            \
         "last = nn.Linear { 16, 8, bias = false }\n"                                              \
         "body = nn.Sequential { first, last }\nx = randn { 2, 16 }\n"

TEST_F(bench, replicas_share_the_rows_out_among_fewer_ranks)
{
    assert_asks(FOUR, "fully_shard(first)", "+256 -1024");
    assert_asks(FOUR, "fully_shard(first, { mesh = { 2, 2 } })", "+512 -1024");
}

/* Rows that replicas have added up, in 16 bits, 128, are kept beside those in 32, 256. */
TEST_F(bench, what_replicas_add_up_stays_until_the_backward_pass_is_over)
{
    assert_asks(FOUR "fully_shard(last, { mesh = { 2, 2 }, param_dtype = 'bfloat16' })\n"
                     "y = last(x):sum()\n",
                "y:backward()",
                "+2 +256 +32 -32 -64 -256 +256 +80 -80 -256 +128 +256 -128 -256 -2");
}

TEST_F(bench, a_smaller_group_keeps_its_part_between_the_passes)
{
    assert_asks(FOUR "fully_shard(last, { reshard_after_forward = 2 })\n", "y = last(x)",
                "+512 +512 +48 -48 +64 +256 -512 -512");
}

TEST_F(bench, the_smaller_group_gathers_from_what_it_kept)
{
    bench *run = run_script(FOUR "fully_shard(last, { reshard_after_forward = 2 })\n"
                                 "y = last(x):sum()\nphase 'forward'\ny:backward()\n"
                                 "phase 'backward'\n");
    const char *expected = "+4 +512 +512 +48 -48 -256 -512";
    if (strncmp(bench_asked_in(run, "backward"), expected, strlen(expected)) != 0) {
        fail_msg("'%s' does not begin with '%s'", bench_asked_in(run, "backward"), expected);
    }
}

TEST_F(bench, rows_on_the_cpu_come_to_the_gpu_for_each_gathering)
{
    assert_asks(MODEL, "fully_shard(last, { cpu_offload = true })", "+256 -256 -512");
    assert_asks(MODEL "fully_shard(last, { cpu_offload = true })\n", "y = last(x)",
                "+256 +512 -256 +512 +48 -48 +64 -512");
}

TEST_F(bench, an_optimizer_of_rows_on_the_cpu_takes_no_memory_of_the_gpu)
{
    assert_asks(MODEL "fully_shard(last, { cpu_offload = true })\nlast(x):sum():backward()\n"
                      "o = optim.AdamW { last }\n",
                "clip_grad_norm(last)\no:step()\no:zero_grad()", "");
}

TEST_F(bench, a_module_is_gathered_ahead_where_that_is_said)
{
    assert_asks(PARTS "first:set_modules_to_forward_prefetch { last }\n", "y = body(x)",
                "+1024 +1024 +48 -48 +512 +128 -1024 +512 +48 -48 -1024 +64 -512 -512");
}

TEST_F(bench, a_module_that_was_to_be_gathered_ahead_may_go)
{
    run_script(PARTS "last:set_modules_to_forward_prefetch { first }\n"
                     "last:set_modules_to_backward_prefetch { first }\n"
                     "body, first = nil\nlast(randn { 2, 16 }):sum():backward()\n");
}

/* --- what is refused ----------------------------------------------------------------------- */

TEST_F(bench, what_cannot_be_sharded_is_refused)
{
    assert_refused("m = nn.Linear { 4, 4 }\nfully_shard(m)\n", "there are no ranks");
    assert_refused("dist.init_process_group { world_size = 1 }\nm = nn.Linear { 4, 4 }\n"
                   "fully_shard(m)\n",
                   "there are no ranks");
    assert_refused(RANKS RANKS, "is there already");
    assert_refused("dist.init_process_group { world_size = 2, rank = 2 }\n", "is not below");
    assert_refused(RANKS "m = nn.Linear { 4, 4 }\nfully_shard(m)\nfully_shard(m)\n",
                   "it is sharded already");
    assert_refused(RANKS "m = nn.LSTM { 4, 4 }\nfully_shard(m)\n", "LSTM or GRU");
    assert_refused(RANKS "m = nn.Linear { 4, 4 }\nd = nn.DistributedDataParallel { m }\n"
                         "fully_shard(d)\n",
                   "DistributedDataParallel");
    assert_refused(RANKS "m = nn.Linear { 4, 4 }\nfully_shard(m, { reduce_dtype = 'bfloat16' })\n",
                   "narrower type");
    assert_refused(RANKS "m = nn.Linear { 4, 4 }\nfully_shard(m, { param_dtype = 'int64' })\n",
                   "a floating type expected");
    assert_refused(RANKS "m = nn.Linear { 4, 4 }\nfully_shard(m)\n"
                         "c = nn.Checkpointed { m }\nc(randn { 2, 4 })\n",
                   "cannot be checkpointed");
    assert_refused(RANKS "m = nn.Linear { 4, 4 }\nn = nn.Sequential { m }\nfully_shard(n)\n"
                         "fully_shard(m)\n",
                   "parts come first");
    assert_refused(RANKS "m = nn.Linear { 4, 4 }\nfully_shard(m)\nm:half()\n",
                   "convert it before fully_shard()");
    assert_refused(RANKS "m = nn.Linear { 4, 4 }\nfully_shard(m)\n"
                         "nn.DistributedDataParallel { m }\n",
                   "the model is sharded");
    assert_refused("m = nn.Linear { 4, 4 }\nm:reshard()\n", "fully_shard() was not called");
    assert_refused(RANKS "m = nn.Linear { 4, 4 }\nfully_shard(m, { mesh = { 2, 2 } })\n",
                   "2 times 2 are not the 2 ranks");
    assert_refused(RANKS "m = nn.Linear { 4, 4 }\nfully_shard(m, { mesh = { 2, 1 } })\n",
                   "of which there are two at least");
    assert_refused(RANKS "m = nn.Linear { 4, 4 }\nfully_shard(m, { reshard_after_forward = 2 })\n",
                   "divides that of the shards");
    assert_refused(RANKS "m = nn.Linear { 4, 4 }\nn = nn.Linear { 4, 4 }\nfully_shard(m)\n"
                         "m:set_modules_to_forward_prefetch { n }\n",
                   "of a module that is to be gathered ahead");
    assert_refused(RANKS "m = nn.Linear { 4, 4 }\nfully_shard(m, { cpu_offload = true })\n"
                         "n = nn.Linear { 4, 4 }\nm(randn { 2, 4 }):sum():backward()\n"
                         "optim.SGD { m, n }:step()\n",
                   "on the GPU, or all of them on the CPU");
}

/* --- ZeRO stage 1 -------------------------------------------------------------------------- */

#define ZERO(options)                                                                              \
    MODEL "o = optim.ZeroRedundancyOptimizer { body, optimizer_class = 'SGD', momentum = "         \
          "0.9" options " }\n"

TEST_F(bench, a_rank_has_the_state_of_its_share_of_the_parameters)
{
    bench *run = run_script(ZERO("") "body(x):sum():backward()\no:step()\nphase(o:nbytes())\n");
    assert_string_equal(run->phases[0].label, "1024");
}

TEST_F(bench, the_gradients_of_other_ranks_parameters_are_cleared_as_well)
{
    assert_asks(ZERO("") "body(x):sum():backward()\n", "o:zero_grad()", "-1024 -512");
}

TEST_F(bench, the_parameters_of_each_rank_move_into_one_block)
{
    assert_asks(MODEL,
                "o = optim.ZeroRedundancyOptimizer { body, optimizer_class = 'SGD', "
                "parameters_as_bucket_view = true }",
                "+1024 -1024 +512 -512");
}

TEST_F(bench, an_optimizer_that_cannot_be_shared_out_is_refused)
{
    assert_refused(MODEL "optim.ZeroRedundancyOptimizer { body, optimizer_class = 'Adagrad' }\n",
                   "SGD, Adam or AdamW expected");
    assert_refused(MODEL "optim.ZeroRedundancyOptimizer { body, optimizer_class = 'Adam', "
                         "momentum = 0.9 }\n",
                   "Adam has no momentum");
    assert_refused(ZERO("") "o:add_param_group { last }\n", "has one group");
    assert_refused("m = nn.Linear { 4, 4 }\n"
                   "optim.ZeroRedundancyOptimizer { m, optimizer_class = 'SGD' }\n",
                   "there are no ranks");
}
