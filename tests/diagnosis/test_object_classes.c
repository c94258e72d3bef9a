/* The classes of what objects and caches of a program keep, likewise (test_classes.c). */
#include "planted.h"

#include <stdio.h>

FIXTURE(job, planted_open_job, planted_close_job);
FIXTURE(script, planted_open_script, planted_close_script);

enum { ITERATIONS = 12 };

/* --- reference_cycle ------------------------------------------------------------------------- */

/* Each iteration adds a part, and makes a copy of all parts, one at a time, if it searches them. */
static void add_parts(planted *p, bool searches)
{
    uint32_t add = planted_origin(p, "index.py:9 add index.py:30 main");
    uint32_t search = planted_origin(p, "index.py:14 search index.py:31 main");
    for (int i = 0; i < ITERATIONS; i++) {
        planted_at(p, add);
        planted_alloc(p, 8 * GMD_MIB);
        planted_at(p, search);
        for (int part = 0; part <= (searches ? i : 0); part++) {
            planted_free_block(p, planted_alloc(p, 16 * GMD_MIB));
        }
    }
}

TEST_F(script, what_is_added_and_forgotten_waits_for_the_collector)
{
    add_parts(*state, false);
    assert_found(*state, GMD_FINDING_REFERENCE_CYCLE);
}

/* Most of what can be asked for was asked for early. */
TEST_F(job, what_grows_by_ever_less_is_a_cache_that_fills)
{
    enum { LOOKUPS = 30, EARLY = 10, LATE_ONCE_IN = 4 };
    planted_job *job = *state;
    for (int i = 0; i < LOOKUPS; i++) {
        planted_at(job->p, job->call);
        if (i < EARLY || i % LATE_ONCE_IN == 0) {
            planted_alloc(job->p, 64 * GMD_MIB);
        }
        planted_train(job);
    }
    assert_healthy(job->p);
}

/* An output of each iteration is kept, of a size that varies: of the first half and the second. */
static void keep_varying(planted_job *job, const int *early, const int *late)
{
    enum { EACH = 8 };
    for (int i = 0; i < 2 * EACH; i++) {
        planted_train(job);
        planted_at(job->p, job->call);
        planted_alloc(job->p, (uint64_t)(i < EACH ? early[i] : late[i - EACH]) * GMD_MIB);
    }
}

TEST_F(job, what_grows_in_each_iteration_and_by_less_late_by_chance_is_a_leak)
{
    keep_varying(*state, (const int[]){9, 3, 14, 6, 12, 8, 10, 7},
                 (const int[]){4, 8, 3, 6, 2, 7, 5, 3});
    assert_found(((planted_job *)*state)->p, GMD_FINDING_RETAINED_GRAPH);
}

TEST_F(job, what_grows_by_much_less_late_is_a_cache_that_fills)
{
    keep_varying(*state, (const int[]){9, 9, 14, 9, 12, 9, 10, 9},
                 (const int[]){2, 1, 2, 1, 1, 2, 1, 1});
    assert_healthy(((planted_job *)*state)->p);
}

TEST_F(script, what_each_iteration_works_on_again_is_kept_on_purpose)
{
    add_parts(*state, true);
    assert_healthy(*state);
}

TEST_F(script, what_objects_are_made_with_in_each_iteration_waits_for_the_collector)
{
    uint32_t made =
        planted_origin(*state, "nodes.py:4 __init__ nodes.py:20 run nodes.py:30 <module>");
    for (int i = 0; i < ITERATIONS; i++) {
        planted_at(*state, made);
        planted_alloc(*state, 16 * GMD_MIB);
    }
    assert_found(*state, GMD_FINDING_REFERENCE_CYCLE);
}

/* A model and an optimizer for each of several runs, which stay; what they hold is one leak. */
TEST_F(job, the_state_of_an_optimizer_that_is_made_with_each_model_counts)
{
    planted_job *job = *state;
    uint32_t made =
        planted_origin(job->p, "torch/nn/modules/linear.py:106 __init__ folds.py:9 build "
                               "folds.py:99 <module>");
    for (int i = 0; i < ITERATIONS; i++) {
        planted_at(job->p, made);
        planted_alloc(job->p, 5 * GMD_MIB);
        planted_at(job->p, job->call);
        size_t output = planted_alloc(job->p, 2 * GMD_MIB);
        size_t next = planted_alloc(job->p, 2 * GMD_MIB);
        planted_at(job->p, job->step);
        planted_alloc(job->p, 10 * GMD_MIB);
        planted_free_block(job->p, output);
        planted_free_block(job->p, next);
    }
    gmd_job_findings findings = planted_findings(job->p, 0);
    assert_int_equal(findings.count, 1);
    assert_int_equal(findings.items[0].bytes, (uint64_t)ITERATIONS * 15 * GMD_MIB);
    assert_int_equal(findings.items[0].bytes_per_iteration, 15 * GMD_MIB);
    gmd_job_findings_free(&findings);
}

TEST_F(job, models_that_each_iteration_makes_and_uses_wait_for_the_collector)
{
    planted_job *job = *state;
    uint32_t made =
        planted_origin(job->p, "torch/nn/modules/linear.py:106 __init__ search.py:9 build "
                               "search.py:20 <module>");
    for (int i = 0; i < ITERATIONS; i++) {
        planted_at(job->p, made);
        planted_alloc(job->p, 5 * GMD_MIB);
        planted_alloc(job->p, 5 * GMD_MIB);
        planted_at(job->p, job->call);
        size_t output = planted_alloc(job->p, 2 * GMD_MIB);
        planted_at(job->p, job->loop);
        planted_free_block(job->p, output);
    }
    assert_found(job->p, GMD_FINDING_REFERENCE_CYCLE);
}

/* Models of the first one's sizes, with their gradients. */
TEST_F(job, parameters_of_models_that_stay_are_no_gradients)
{
    planted_job *job = *state;
    uint32_t made =
        planted_origin(job->p, "torch/nn/modules/linear.py:106 __init__ folds.py:9 build "
                               "folds.py:99 <module>");
    for (int i = 0; i < ITERATIONS; i++) {
        const uint32_t at[] = {made, 0};
        for (size_t k = 0; k < sizeof at / sizeof *at; k++) {
            planted_at(job->p, at[k]);
            planted_alloc(job->p, 2 * GMD_MIB);
            planted_alloc(job->p, 4096);
        }
        planted_forward(job);
        planted_drop_graph(job);
    }
    assert_found(job->p, GMD_FINDING_REFERENCE_CYCLE);
}

TEST_F(job, layers_of_one_large_model_do_not)
{
    planted_job *job = *state;
    uint32_t made = planted_origin(job->p, "torch/nn/modules/linear.py:106 __init__ big.py:9 build "
                                           "big.py:20 <module>");
    planted_at(job->p, made);
    for (int i = 0; i < 40; i++) {
        planted_alloc(job->p, 5 * GMD_MIB);
        planted_alloc(job->p, GMD_MIB);
        planted_alloc(job->p, 2 * GMD_MIB);
    }
    planted_forward(job);
    planted_drop_graph(job);
    assert_healthy(job->p);
}

TEST_F(script, what_a_loop_loads_does_not)
{
    uint32_t loaded = planted_origin(*state, "load.py:4 load load.py:20 run load.py:30 <module>");
    for (int i = 0; i < ITERATIONS; i++) {
        planted_at(*state, loaded);
        planted_alloc(*state, 16 * GMD_MIB);
    }
    assert_healthy(*state);
}

/* A line that calls itself puts something aside at each depth; another works beside it. */
TEST_F(script, what_one_line_puts_aside_is_of_objects_however_many_blocks_it_has)
{
    planted *p = *state;
    uint32_t other = planted_origin(p, "solve.py:30 main");
    uint32_t depths[3] = {planted_origin(p, "solve.py:12 descend solve.py:31 main"),
                          planted_origin(p, "solve.py:12 descend solve.py:14 descend"),
                          planted_origin(p, "solve.py:12 descend solve.py:14 descend solve.py:14 "
                                            "descend")};
    for (int i = 0; i < ITERATIONS; i++) {
        planted_at(p, other);
        planted_free_block(p, planted_alloc(p, 12 * GMD_MIB));
        for (int k = 0; k < 3; k++) {
            planted_at(p, depths[k]);
            planted_alloc(p, (uint64_t)(8 >> k) * GMD_MIB);
            planted_alloc(p, (uint64_t)(8 >> k) * GMD_MIB);
        }
    }
    assert_found(p, GMD_FINDING_REFERENCE_CYCLE);
}

/* Each iteration evaluates with the model, and keeps two blocks of its own. */
static void keep_of_evaluation(planted_job *job, uint32_t second)
{
    for (int i = 0; i < ITERATIONS; i++) {
        planted_at(job->p, job->call);
        size_t output = planted_alloc(job->p, job->activation);
        planted_at(job->p, job->loop);
        planted_alloc(job->p, 8 * GMD_MIB);
        planted_at(job->p, second);
        planted_alloc(job->p, 4 * GMD_MIB);
        planted_alloc(job->p, 2 * GMD_MIB);
        planted_free_block(job->p, output);
    }
}

TEST_F(job, blocks_of_several_lines_and_no_module_that_stay_are_of_objects)
{
    planted_job *job = *state;
    keep_of_evaluation(job, planted_origin(job->p, "train.py:12 train train.py:99 <module>"));
    assert_found(job->p, GMD_FINDING_REFERENCE_CYCLE);
}

TEST_F(job, with_those_of_modules_they_are_a_graph)
{
    planted_job *job = *state;
    keep_of_evaluation(job, job->call);
    assert_found(job->p, GMD_FINDING_EVAL_GRAPH);
}

/* Each iteration makes something that stays, before the model is called or after it. */
static void train_and_keep(planted_job *job, bool before)
{
    uint32_t made = planted_origin(job->p, "train.py:30 play train.py:99 <module>");
    for (int i = 0; i < ITERATIONS; i++) {
        if (before) {
            planted_at(job->p, made);
            planted_alloc(job->p, 6 * GMD_MIB);
        }
        planted_train(job);
        if (!before) {
            planted_at(job->p, made);
            planted_alloc(job->p, 6 * GMD_MIB);
        }
    }
}

TEST_F(job, what_stays_and_was_first_made_before_the_model_was_called_is_no_graph)
{
    train_and_keep(*state, true);
    assert_found(((planted_job *)*state)->p, GMD_FINDING_REFERENCE_CYCLE);
}

TEST_F(job, what_stays_and_was_made_after_it_may_be)
{
    train_and_keep(*state, false);
    assert_found(((planted_job *)*state)->p, GMD_FINDING_RETAINED_GRAPH);
}

/* A job that only calls a model keeps the last of its activations, or all of them. */
static void call_and_keep(planted_job *job, bool keeps_all)
{
    uint32_t activation = planted_origin(job->p, "torch/nn/modules/activation.py:143 forward "
                                                 "torch/nn/modules/module.py:1790 _call_impl "
                                                 "search.py:20 best search.py:99 <module>");
    uint32_t input = planted_origin(job->p, "search.py:19 best search.py:99 <module>");
    for (int i = 0; i < ITERATIONS; i++) {
        planted_at(job->p, input);
        size_t positions = planted_alloc(job->p, 2 * GMD_MIB);
        planted_at(job->p, activation);
        size_t first = planted_alloc(job->p, 8 * GMD_MIB);
        planted_alloc(job->p, 8 * GMD_MIB);
        planted_alloc(job->p, 7 * GMD_MIB);
        planted_at(job->p, input);
        planted_free_block(job->p, planted_alloc(job->p, 5 * GMD_MIB));
        if (!keeps_all) {
            planted_free_block(job->p, first);
            planted_free_block(job->p, positions);
        }
    }
}

TEST_F(job, activations_that_stay_while_others_of_the_pass_go_are_of_objects)
{
    call_and_keep(*state, false);
    assert_found(((planted_job *)*state)->p, GMD_FINDING_REFERENCE_CYCLE);
}

TEST_F(job, a_pass_that_stays_as_a_whole_is_a_graph)
{
    call_and_keep(*state, true);
    assert_found(((planted_job *)*state)->p, GMD_FINDING_EVAL_GRAPH);
}

/* Pairs pile up, and are collected in a line after as many iterations as given, one after the
 * other.
 */
static void pile_up(planted_job *job, uint32_t collected, const int *runs, int count)
{
    size_t pile[64];
    for (int run = 0; run < count; run++) {
        for (int i = 0; i < runs[run]; i++) {
            planted_at(job->p, job->loop);
            pile[i] = planted_alloc(job->p, 16 * GMD_MIB);
            planted_free_block(job->p, planted_alloc(job->p, GMD_MIB));
        }
        planted_at(job->p, collected);
        for (int i = 0; i < runs[run]; i++) {
            planted_free_block(job->p, pile[i]);
        }
    }
}

TEST_F(job, what_goes_at_uneven_moments_waits_for_the_collector)
{
    static const int runs[] = {5, 9, 6, 11, 4};
    planted_job *job = *state;
    pile_up(job, job->loop, runs, 5);
    assert_found(job->p, GMD_FINDING_REFERENCE_CYCLE);
}

/* A full collection waits until as many objects as a share of all have survived. */
TEST_F(job, what_piles_up_for_longer_and_goes_in_another_file_waits_for_it_too)
{
    static const int runs[] = {6, 14, 3};
    planted_job *job = *state;
    uint32_t elsewhere = planted_origin(job->p, "loop.py:83 steps train.py:99 <module>");
    pile_up(job, elsewhere, runs, 3);
    assert_found(job->p, GMD_FINDING_REFERENCE_CYCLE);
}

TEST_F(job, what_a_line_clears_that_makes_nothing_is_gathered_on_purpose)
{
    static const int runs[] = {5, 9, 6, 11, 4};
    planted_job *job = *state;
    uint32_t clear = planted_origin(job->p, "train.py:20 train train.py:99 <module>");
    pile_up(job, clear, runs, 5);
    assert_healthy(job->p);
}

/* CPython lets go of a list's items from the last one on. */
TEST_F(job, what_goes_last_first_is_a_list_that_is_cleared)
{
    static const int runs[] = {5, 9, 6, 11, 4};
    planted_job *job = *state;
    for (int run = 0; run < 5; run++) {
        size_t list[64];
        planted_at(job->p, job->loop);
        for (int i = 0; i < runs[run]; i++) {
            list[i] = planted_alloc(job->p, 16 * GMD_MIB);
            planted_free_block(job->p, planted_alloc(job->p, GMD_MIB));
        }
        for (int i = runs[run]; i-- > 0;) {
            planted_free_block(job->p, list[i]);
        }
    }
    assert_healthy(job->p);
}

/* Those of several lists by turns, and the lists go with a dictionary: neither order. */
TEST_F(job, what_several_lists_hold_does_not)
{
    static const int runs[] = {6, 10, 6, 12, 4};
    planted_job *job = *state;
    for (int run = 0; run < 5; run++) {
        size_t lists[64];
        planted_at(job->p, job->loop);
        for (int i = 0; i < runs[run]; i++) {
            lists[i] = planted_alloc(job->p, 16 * GMD_MIB);
            planted_free_block(job->p, planted_alloc(job->p, GMD_MIB));
        }
        for (int list = 0; list < 2; list++) {
            for (int i = runs[run] - 2 + list; i >= 0; i -= 2) {
                planted_free_block(job->p, lists[i]);
            }
        }
    }
    assert_healthy(job->p);
}

/* Two of each four iterations make a value each, and the third lets go of those of the four before,
 * in two lines. */
TEST_F(job, values_that_the_next_ones_replace_do_not)
{
    enum { RUNS = 6, EACH = 4 };
    planted_job *job = *state;
    uint32_t other = planted_origin(job->p, "train.py:20 train train.py:99 <module>");
    size_t values[RUNS * EACH];
    for (int i = 0; i < RUNS * EACH; i++) {
        planted_at(job->p, job->loop);
        if (i % EACH < 2) {
            values[i] = planted_alloc(job->p, 16 * GMD_MIB);
        } else if (i % EACH == 2 && i > EACH) {
            planted_free_block(job->p, values[i - 6]);
            planted_at(job->p, other);
            planted_free_block(job->p, values[i - 5]);
        }
        planted_at(job->p, job->loop);
        planted_free_block(job->p, planted_alloc(job->p, GMD_MIB));
    }
    assert_healthy(job->p);
}

/* As many each time, in one of two lines by turns. */
static void collect_in_turns(planted_job *job, uint32_t one, uint32_t other)
{
    for (int i = 0; i < 3; i++) {
        pile_up(job, one, (const int[]){5}, 1);
        pile_up(job, other, (const int[]){5}, 1);
    }
}

TEST_F(job, what_goes_in_several_lines_that_make_something_waits_for_the_collector)
{
    planted_job *job = *state;
    collect_in_turns(job, job->loop,
                     planted_origin(job->p, "train.py:20 train train.py:99 <module>"));
    assert_found(job->p, GMD_FINDING_REFERENCE_CYCLE);
}

TEST_F(job, what_two_lines_clear_that_make_nothing_does_not)
{
    planted_job *job = *state;
    collect_in_turns(job, planted_origin(job->p, "train.py:20 train train.py:99 <module>"),
                     planted_origin(job->p, "train.py:25 train train.py:99 <module>"));
    assert_healthy(job->p);
}

TEST_F(job, what_piles_up_for_longer_each_time_waits_for_the_collector)
{
    static const int runs[] = {5, 9, 14, 20};
    planted_job *job = *state;
    uint32_t anywhere = planted_origin(job->p, "train.py:20 train train.py:99 <module>");
    pile_up(job, anywhere, runs, 4);
    assert_found(job->p, GMD_FINDING_REFERENCE_CYCLE);
}

TEST_F(job, what_goes_inside_a_librarys_function_waits_for_the_collector)
{
    planted_job *job = *state;
    pile_up(job,
            planted_origin(job->p, "torch/nn/modules/linear.py:134 forward "
                                   "torch/nn/modules/module.py:1790 _call_impl train.py:11 train "
                                   "train.py:99 <module>"),
            (const int[]){6, 5}, 2);
    assert_found(job->p, GMD_FINDING_REFERENCE_CYCLE);
}

TEST_F(job, a_free_with_the_stack_of_its_allocation_tells_of_no_collector)
{
    planted_job *job = *state;
    job->loop = job->call;
    pile_up(job, job->call, (const int[]){6, 5}, 2);
    assert_healthy(job->p);
}

/* A program that calls no module, as its stacks show. */
TEST_F(script, what_a_line_clears_that_makes_nothing_is_gathered_on_purpose_without_modules_too)
{
    planted *p = *state;
    planted_job job = {.p = p, .loop = planted_origin(p, "queue.py:9 main")};
    pile_up(&job, planted_origin(p, "queue.py:20 main"), (const int[]){5, 9, 6, 11, 4}, 5);
    assert_healthy(p);
}

/* Blocks from before the recording go with those of the line, the older ones first. */
TEST_F(job, what_was_piled_up_before_the_recording_tells_of_the_collector)
{
    planted_job *job = *state;
    size_t pile[8];
    for (int i = 0; i < 8; i++) {
        if (i == 5) {
            planted_begin_late(job->p);
        }
        planted_at(job->p, job->loop);
        pile[i] = planted_alloc(job->p, 16 * GMD_MIB);
        planted_free_block(job->p, planted_alloc(job->p, GMD_MIB));
    }
    planted_at(job->p, planted_origin(job->p, "loop.py:83 steps train.py:99 <module>"));
    for (int i = 0; i < 8; i++) {
        planted_free_block(job->p, pile[i]);
    }
    pile_up(job, job->loop, (const int[]){8}, 1);
    assert_found(job->p, GMD_FINDING_REFERENCE_CYCLE);
}

/* Several blocks of an iteration stay, of a program that calls no module. */
TEST_F(script, without_modules_and_backward_several_blocks_are_no_graph)
{
    planted *p = *state;
    for (int i = 0; i < ITERATIONS; i++) {
        for (int line = 10; line < 14; line++) {
            char frames[64];
            snprintf(frames, sizeof frames, "search.py:%d walk search.py:30 main", line);
            planted_at(p, planted_origin(p, frames));
            planted_alloc(p, (uint64_t)line * GMD_MIB);
            planted_free_block(p, planted_alloc(p, 30 * GMD_MIB));
        }
    }
    assert_found(p, GMD_FINDING_REFERENCE_CYCLE);
}

TEST_F(job, what_an_optimizer_lets_go_does_not)
{
    planted_job *job = *state;
    pile_up(job, job->step, (const int[]){6, 5}, 2);
    assert_healthy(job->p);
}

TEST_F(job, what_goes_every_fifth_iteration_is_collected_on_purpose)
{
    static const int runs[] = {5, 5, 5, 5, 5, 5};
    planted_job *job = *state;
    pile_up(job, job->loop, runs, 6);
    assert_healthy(job->p);
}

/* Each collection leaves what is in use while it runs: that got older, and is not looked at again.
 */
TEST_F(script, what_goes_at_even_moments_and_leaves_more_each_time_waits_for_the_collector)
{
    enum { RUNS = 5, EACH = 6 };
    planted *p = *state;
    uint32_t loop = planted_origin(p, "loop.py:10 main"),
             collected = planted_origin(p, "loop.py:20 main");
    for (int run = 0; run < RUNS; run++) {
        size_t pile[EACH];
        for (int i = 0; i < EACH; i++) {
            planted_at(p, loop);
            pile[i] = planted_alloc(p, 16 * GMD_MIB);
            planted_free_block(p, planted_alloc(p, GMD_MIB));
        }
        planted_at(p, collected);
        for (int i = 0; i < EACH - 1; i++) {
            planted_free_block(p, pile[i]);
        }
    }
    assert_found(p, GMD_FINDING_REFERENCE_CYCLE);
}

/* Each iteration admits a request; now and then some are served to their end, not the oldest. */
TEST_F(script, what_is_served_in_any_order_does_not)
{
    static const int ends[][4] = {{6, 2, 3, 4},    {10, 0, 1, 5},    {13, 7, 8, 9},
                                  {16, 6, 10, 11}, {21, 12, 13, 14}, {23, 15, 16, 17}};
    planted *p = *state;
    uint32_t loop = planted_origin(p, "serve.py:10 main");
    uint32_t end = planted_origin(p, "serve.py:20 main");
    size_t requests[26], next = 0;
    for (int i = 0; i < 26; i++) {
        planted_at(p, loop);
        requests[i] = planted_alloc(p, 32 * GMD_MIB);
        planted_free_block(p, planted_alloc(p, GMD_MIB));
        if (next < sizeof ends / sizeof *ends && ends[next][0] == i) {
            planted_at(p, end);
            for (int k = 1; k < 4; k++) {
                planted_free_block(p, requests[ends[next][k]]);
            }
            next++;
        }
    }
    assert_healthy(p);
}

/* Answers of uneven lengths, whose cache a token replaces two tokens later and the answer's end
 * drops. */
TEST_F(script, a_cache_that_each_token_replaces_does_not)
{
    static const int lengths[] = {7, 9, 8, 12, 9};
    planted *p = *state;
    uint32_t token = planted_origin(p, "answer.py:10 main"),
             end = planted_origin(p, "answer.py:20 main");
    for (size_t k = 0; k < sizeof lengths / sizeof *lengths; k++) {
        size_t cache[16];
        for (int i = 0; i < lengths[k]; i++) {
            planted_at(p, token);
            cache[i] = planted_alloc(p, (uint64_t)(16 + i) * GMD_MIB);
            planted_free_block(p, planted_alloc(p, GMD_MIB));
            if (i >= 2) {
                planted_free_block(p, cache[i - 2]);
            }
        }
        planted_at(p, end);
        planted_free_block(p, cache[lengths[k] - 2]);
        planted_free_block(p, cache[lengths[k] - 1]);
    }
    assert_healthy(p);
}

/* --- checkpoint_cache ------------------------------------------------------------------------ */

static void train_recomputing(planted_job *job, bool keeps)
{
    planted_forward(job);
    planted_at(job->p,
               planted_origin(job->p, "train.py:40 backward torch/autograd/function.py:317 apply"));
    size_t again = planted_alloc(job->p, 6 * GMD_MIB);
    planted_backward(job, false);
    if (!keeps) {
        planted_free_block(job->p, again);
    }
    planted_step(job);
    planted_zero_grad(job);
}

TEST_F(job, recomputed_activations_that_stay_are_a_checkpoint_cache)
{
    for (int i = 0; i < ITERATIONS; i++) {
        train_recomputing(*state, true);
    }
    assert_found(((planted_job *)*state)->p, GMD_FINDING_CHECKPOINT_CACHE);
}

TEST_F(job, recomputed_activations_that_go_are_not)
{
    for (int i = 0; i < ITERATIONS; i++) {
        train_recomputing(*state, false);
    }
    assert_healthy(((planted_job *)*state)->p);
}

/* A function of the program keeps what it made; in backward() it calls this. */
static void train_in_segments(planted_job *job, const char *again)
{
    uint32_t segment = planted_origin(job->p, "train.py:82 forward torch/autograd/function.py:581 "
                                              "apply train.py:11 train "
                                              "train.py:99 <module>");
    for (int i = 0; i < ITERATIONS; i++) {
        planted_at(job->p, segment);
        planted_alloc(job->p, 6 * GMD_MIB);
        planted_forward(job);
        planted_at(job->p, planted_origin(job->p, again));
        planted_free_block(job->p, planted_alloc(job->p, 4 * GMD_MIB));
        planted_backward(job, false);
        planted_step(job);
        planted_zero_grad(job);
    }
}

TEST_F(job, what_a_function_that_computes_again_keeps_is_a_checkpoint_cache)
{
    train_in_segments(*state, "torch/nn/modules/module.py:1790 _call_impl train.py:88 backward "
                              "torch/autograd/function.py:317 apply");
    assert_found(((planted_job *)*state)->p, GMD_FINDING_CHECKPOINT_CACHE);
}

TEST_F(job, what_another_function_keeps_is_a_circle_of_its_context)
{
    train_in_segments(*state, "train.py:88 backward torch/autograd/function.py:317 apply");
    assert_found(((planted_job *)*state)->p, GMD_FINDING_REFERENCE_CYCLE);
}

/* What saved_tensors_hooks put in place of activations is called by the thread of backward(). */
TEST_F(job, what_an_unpacking_hook_makes_and_stores_is_a_checkpoint_cache)
{
    planted_job *job = *state;
    uint32_t again = planted_origin(job->p, "train.py:66 make train.py:80 unpack");
    for (int i = 0; i < ITERATIONS; i++) {
        planted_forward(job);
        planted_at(job->p, again);
        planted_alloc(job->p, 6 * GMD_MIB);
        planted_backward(job, false);
        planted_step(job);
        planted_zero_grad(job);
    }
    assert_found(job->p, GMD_FINDING_CHECKPOINT_CACHE);
}

TEST_F(job, what_a_hook_stores_of_each_pass_is_a_checkpoint_cache)
{
    planted_job *job = *state;
    uint32_t hook =
        planted_origin(job->p, "train.py:50 pack torch/nn/modules/linear.py:134 forward "
                               "torch/nn/modules/module.py:1790 _call_impl "
                               "train.py:11 train "
                               "train.py:99 <module>");
    for (int i = 0; i < ITERATIONS; i++) {
        planted_at(job->p, hook);
        planted_alloc(job->p, 6 * GMD_MIB);
        planted_train(job);
    }
    assert_found(job->p, GMD_FINDING_CHECKPOINT_CACHE);
}
