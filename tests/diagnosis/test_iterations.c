/* Where iterations begin. */
#include "planted.h"

#include <stdio.h>

typedef struct found {
    uint32_t count, other, shown;
    gmd_iteration_source source;
} found;

static found find(planted *p)
{
    gmd_facts f;
    gmd_error error;
    assert_int_equal(gmd_facts_make(&f, planted_snapshot(p), 0, &error), GMD_OK);
    found it = {f.iterations.count, f.iterations.other, gmd_iterations_shown(&f.iterations),
                f.iterations.source};
    gmd_facts_free(&f);
    return it;
}

FIXTURE(job, planted_open_job, planted_close_job);
FIXTURE(script, planted_open_script, planted_close_script);

TEST_F(job, steps_of_an_optimizer_end_iterations)
{
    planted_job *job = *state;
    for (int i = 0; i < 7; i++) {
        planted_train(job);
    }
    found it = find(job->p);
    assert_int_equal(it.source, GMD_ITERATIONS_ANNOTATED);
    assert_int_equal(it.count, 8); /* what comes after the last step, zero_grad, is a rest */
    assert_int_equal(it.shown, 7);
}

static void evaluate(planted_job *job)
{
    planted_forward(job);
    planted_drop_graph(job);
}

TEST_F(job, without_annotations_they_are_found_in_what_repeats)
{
    planted_job *job = *state;
    for (int i = 0; i < 9; i++) {
        evaluate(job);
    }
    found it = find(job->p);
    assert_int_equal(it.source, GMD_ITERATIONS_FROM_EVENTS);
    assert_int_equal(it.count, 9);
}

TEST_F(job, a_loop_after_the_last_step_is_another_one)
{
    planted_job *job = *state;
    for (int i = 0; i < 5; i++) {
        planted_train(job);
    }
    for (int i = 0; i < 8; i++) {
        evaluate(job);
    }
    found it = find(job->p);
    assert_int_equal(it.other, 6);
    assert_int_equal(it.count, 14);
}

TEST_F(job, it_is_where_few_steps_were_recorded)
{
    planted_job *job = *state;
    planted_train(job);
    planted_train(job);
    for (int i = 0; i < 12; i++) {
        evaluate(job);
    }
    found it = find(job->p);
    assert_int_equal(it.other, 3);
    assert_int_equal(it.count, 15);
}

TEST_F(job, few_passes_after_few_steps_may_be_part_of_a_long_one)
{
    planted_job *job = *state;
    planted_train(job);
    planted_train(job);
    for (int i = 0; i < 6; i++) {
        evaluate(job);
    }
    assert_int_equal(find(job->p).count, 3);
}

TEST_F(job, a_loop_after_the_last_step_may_have_ever_new_sizes)
{
    planted_job *job = *state;
    for (int i = 0; i < 5; i++) {
        planted_train(job);
    }
    for (uint64_t i = 0; i < 20; i++) {
        for (int line = 30; line < 34; line++) {
            char frames[160];
            snprintf(frames, sizeof frames,
                     "net.py:%d forward torch/nn/modules/module.py:1790 _call_impl "
                     "train.py:70 evaluate train.py:99 <module>",
                     line);
            planted_at(job->p, planted_origin(job->p, frames));
            planted_free_block(job->p, planted_alloc(job->p, job->activation + i * GMD_MIB));
        }
        planted_at(job->p, planted_origin(job->p, "train.py:71 evaluate train.py:99 <module>"));
        planted_free_block(job->p, planted_alloc(job->p, (i + 1) * GMD_KIB));
    }
    found it = find(job->p);
    assert_int_equal(it.other, 6);
    assert_int_equal(it.count, 26);
}

TEST_F(job, an_iteration_that_is_cut_does_not_hide_the_others)
{
    planted_job *job = *state;
    for (int i = 0; i < 9; i++) {
        evaluate(job);
    }
    planted_forward(job);
    assert_int_equal(find(job->p).count, 10);
}

TEST_F(job, layers_of_a_first_pass_are_no_iterations)
{
    planted_job *job = *state;
    planted_forward(job);
    planted_refuse(job->p, 1 << 30);
    assert_int_equal(find(job->p).count, 0);
}

TEST_F(job, two_requests_that_repeat_among_many_are_chance)
{
    planted_job *job = *state;
    planted_at(job->p, job->loop);
    for (uint64_t i = 0; i < 300; i++) {
        planted_free_block(job->p, planted_alloc(job->p, i % 100 == 0 ? 512 : 1024 + 512 * i));
    }
    assert_int_equal(find(job->p).count, 0);
}

/* Each iteration has a few requests of its own, and many of a layer that it applies as often as it
 * likes. */
TEST_F(script, layers_that_are_applied_now_more_now_less_do_not_hide_iterations)
{
    static const int depths[] = {9, 24, 3, 17, 30, 12, 21, 6};
    planted *p = *state;
    uint32_t loop = planted_origin(p, "deep.py:10 main deep.py:99 <module>");
    uint32_t layer = planted_origin(p, "deep.py:20 forward deep.py:99 <module>");
    for (size_t i = 0; i < sizeof depths / sizeof *depths; i++) {
        size_t applied[32];
        planted_at(p, loop);
        size_t batch = planted_alloc(p, GMD_MIB), loss = planted_alloc(p, 512);
        planted_at(p, layer);
        for (int k = 0; k < depths[i]; k++) {
            applied[k] = planted_alloc(p, 2 * GMD_MIB);
        }
        for (int k = 0; k < depths[i]; k++) {
            planted_free_block(p, applied[k]);
        }
        planted_free_block(p, batch);
        planted_free_block(p, loss);
    }
    assert_int_equal(find(p).count, 8);
}

TEST_F(job, backward_passes_that_lengthen_hide_no_iterations)
{
    enum { ITERATIONS = 9 };
    planted_job *job = *state;
    for (int i = 0; i < ITERATIONS; i++) {
        planted_forward(job);
        for (int k = 0; k <= 3 * i; k++) {
            planted_backward(job, true);
        }
    }
    assert_int_equal(find(job->p).count, ITERATIONS);
}

TEST_F(job, iterations_of_ever_new_sizes_are_known_by_their_stacks)
{
    enum { ITERATIONS = 9 };
    planted_job *job = *state;
    for (uint64_t i = 0; i < ITERATIONS; i++) {
        planted_at(job->p, job->call);
        size_t output = planted_alloc(job->p, (2 + i) * GMD_MIB);
        planted_at(job->p, job->loop);
        planted_free_block(job->p, planted_alloc(job->p, (1 + 2 * i) * GMD_MIB));
        planted_at(job->p, job->step);
        planted_free_block(job->p, planted_alloc(job->p, (3 + i) * GMD_MIB));
        planted_free_block(job->p, output);
    }
    assert_int_equal(find(job->p).count, ITERATIONS);
}

/* A model of many layers is built, and used until the job runs out of memory. */
TEST_F(job, what_builds_a_model_is_no_loop_of_a_job_that_ends_in_its_first_pass)
{
    planted_job *job = *state;
    for (int i = 0; i < 30; i++) {
        planted_at(job->p, job->loop);
        planted_alloc(job->p, 3 * GMD_MIB);
        planted_alloc(job->p, GMD_MIB);
    }
    planted_at(job->p, job->call);
    for (uint64_t i = 0; i < 30; i++) {
        planted_alloc(job->p, (10 + i) * GMD_MIB);
    }
    planted_refuse(job->p, 50 * GMD_MIB);
    assert_int_equal(find(job->p).count, 0);
}

/* A request of each size, and two of one, around that which comes once; no frames tell them apart,
 * and the set-up asks for a part of them. */
TEST_F(script, requests_before_and_behind_the_one_that_comes_once_keep_step_with_it)
{
    planted *p = *state;
    planted_alloc(p, 3 * GMD_MIB);
    planted_alloc(p, 3 * GMD_MIB);
    for (int i = 0; i < 9; i++) {
        static const uint64_t sizes[] = {5, 3, 3, 3, 7, 5, 3};
        for (size_t k = 0; k < sizeof sizes / sizeof *sizes; k++) {
            planted_free_block(p, planted_alloc(p, sizes[k] * GMD_MIB));
        }
    }
    assert_int_equal(find(p).count, 9);
}
