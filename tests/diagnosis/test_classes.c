/* Each class of what grows by its graph or its gradients speaks of a history that has its mistake,
 * and is silent on the same one mended. */
#include "planted.h"

#include <stdio.h>
#include <string.h>

FIXTURE(job, planted_open_job, planted_close_job);
FIXTURE(script, planted_open_script, planted_close_script);

enum { ITERATIONS = 12 };

TEST_F(job, a_plain_training_is_healthy)
{
    for (int i = 0; i < ITERATIONS; i++) {
        planted_train(*state);
    }
    assert_healthy(((planted_job *)*state)->p);
}

/* --- gradient_accumulation ------------------------------------------------------------------- */

TEST_F(job, gradients_that_nothing_zeroes_accumulate)
{
    planted_job *job = *state;
    for (int i = 0; i < ITERATIONS; i++) {
        planted_forward(job);
        planted_backward(job, false);
        planted_step(job);
    }
    assert_found(job->p, GMD_FINDING_GRADIENT_ACCUMULATION);
}

/* Gradients are zeroed, and stay where they are. */
static void train_and_zero_in_place(planted_job *job)
{
    planted_annotate(job->p, "Optimizer.zero_grad#SGD.zero_grad", GMD_ANNOTATION_START);
    planted_annotate(job->p, "Optimizer.zero_grad#SGD.zero_grad", GMD_ANNOTATION_END);
    planted_forward(job);
    planted_backward(job, false);
    planted_step(job);
}

TEST_F(job, gradients_that_are_zeroed_in_place_are_kept)
{
    for (int i = 0; i < ITERATIONS; i++) {
        train_and_zero_in_place(*state);
    }
    assert_found(((planted_job *)*state)->p, GMD_FINDING_GRADIENT_ACCUMULATION);
}

/* A frozen model that is gone through for what comes before it: the gradients of its activations
 * are as large as its weights, and none is added to anything. */
TEST_F(job, gradients_of_activations_as_large_as_weights_do_not_accumulate)
{
    planted_job *job = *state;
    job->activation = 2 * GMD_MIB;
    for (int i = 0; i < ITERATIONS; i++) {
        planted_zero_grad(job);
        planted_forward(job);
        planted_at(job->p, 0);
        for (int layer = 0; layer < PLANTED_LAYERS; layer++) {
            planted_free_block(job->p, planted_alloc(job->p, job->activation));
        }
        planted_drop_graph(job);
        planted_step(job);
    }
    assert_healthy(job->p);
}

TEST_F(job, blocks_of_before_the_recording_tell_of_no_gradients_that_are_zeroed_in_place)
{
    planted_job *job = *state;
    for (int i = 0; i < ITERATIONS; i++) {
        if (i == 2) {
            planted_begin_late(job->p);
        }
        train_and_zero_in_place(job);
    }
    assert_healthy(job->p);
}

TEST_F(job, of_two_batches_for_a_step_the_gradients_may_add_up)
{
    planted_job *job = *state;
    for (int i = 0; i < ITERATIONS; i++) {
        planted_forward(job);
        planted_backward(job, false);
        planted_train(job);
    }
    assert_healthy(job->p);
}

static void train_and_copy_gradients(planted_job *job)
{
    planted_forward(job);
    planted_backward(job, false);
    planted_at(job->p, job->loop);
    for (int i = 0; i < PLANTED_LAYERS; i++) { /* copies stay */
        planted_alloc(job->p, 2 * GMD_MIB);
        planted_alloc(job->p, 4096);
    }
    planted_step(job);
    planted_zero_grad(job);
}

TEST_F(job, copies_of_gradients_that_are_stored_are_gradients)
{
    planted_job *job = *state;
    for (int i = 0; i < ITERATIONS; i++) {
        train_and_copy_gradients(job);
    }
    assert_found(job->p, GMD_FINDING_GRADIENT_ACCUMULATION);
}

/* Hooks of tensors are called by the thread of backward(): a stack begins with them. */
TEST_F(job, copies_that_hooks_store_are_gradients)
{
    planted_job *job = *state;
    uint32_t hook = planted_origin(job->p, "train.py:50 watch train.py:40 <lambda>");
    for (int i = 0; i < ITERATIONS; i++) {
        planted_forward(job);
        planted_backward(job, false);
        planted_at(job->p, hook);
        for (int k = 0; k < PLANTED_LAYERS; k++) {
            planted_alloc(job->p, 2 * GMD_MIB);
            planted_alloc(job->p, 4096);
        }
        planted_step(job);
        planted_zero_grad(job);
    }
    assert_found(job->p, GMD_FINDING_GRADIENT_ACCUMULATION);
}

TEST_F(job, what_the_first_iteration_makes_hides_no_stored_gradients)
{
    planted_job *job = *state;
    planted_forward(job);
    planted_alloc(job->p, 30 * GMD_MIB); /* a workspace */
    planted_drop_graph(job);
    for (int i = 0; i < ITERATIONS / 2; i++) {
        train_and_copy_gradients(job);
    }
    assert_found(job->p, GMD_FINDING_GRADIENT_ACCUMULATION);
}

/* After backward() a line makes blocks of these sizes, which stay. */
static void train_and_keep_after_backward(planted_job *job, const uint64_t *sizes, int count)
{
    for (int i = 0; i < ITERATIONS; i++) {
        planted_forward(job);
        planted_backward(job, false);
        planted_at(job->p, planted_origin(job->p, "train.py:12 train train.py:99 <module>"));
        for (int k = 0; k < count; k++) {
            planted_alloc(job->p, sizes[k]);
        }
        planted_step(job);
        planted_zero_grad(job);
    }
}

/* A line joins all gradients; `bytes` more than they are together. */
static void train_and_join_gradients(planted_job *job, uint64_t bytes)
{
    const uint64_t all = PLANTED_LAYERS * (2 * GMD_MIB + 4096);
    train_and_keep_after_backward(job, (const uint64_t[]){all + bytes}, 1);
}

TEST_F(job, a_vector_of_all_gradients_that_is_stored_is_gradients)
{
    train_and_join_gradients(*state, 0);
    assert_found(((planted_job *)*state)->p, GMD_FINDING_GRADIENT_ACCUMULATION);
}

TEST_F(job, a_block_of_another_size_is_not)
{
    train_and_join_gradients(*state, 512);
    assert_found(((planted_job *)*state)->p, GMD_FINDING_RETAINED_GRAPH);
}

TEST_F(job, half_of_their_size_is_their_half_precision)
{
    const uint64_t all = PLANTED_LAYERS * (2 * GMD_MIB + 4096);
    train_and_keep_after_backward(*state, (const uint64_t[]){all / 2}, 1);
    assert_found(((planted_job *)*state)->p, GMD_FINDING_GRADIENT_ACCUMULATION);
}

/* A recurrent network has its weights in one block, and so their gradient; copies are of parts. */
TEST_F(job, copies_of_other_sizes_that_are_as_much_together_are_gradients)
{
    const uint64_t all = PLANTED_LAYERS * (2 * GMD_MIB + 4096);
    const uint64_t parts[] = {5 * GMD_MIB, 3 * GMD_MIB, all - 8 * GMD_MIB};
    train_and_keep_after_backward(*state, parts, 3);
    assert_found(((planted_job *)*state)->p, GMD_FINDING_GRADIENT_ACCUMULATION);
}

/* Each backward() makes a sparse gradient anew: with the rows of the one before, which it then
 * frees, or without. */
static void train_sparsely(planted_job *job, bool appends)
{
    size_t rows = 0;
    for (uint64_t i = 0; i < ITERATIONS; i++) {
        planted_forward(job);
        planted_backward(job, false);
        size_t more = planted_alloc(job->p, 2 * GMD_MIB * (appends ? i + 1 : 1));
        if (i > 0) {
            planted_free_block(job->p, rows);
        }
        rows = more;
        planted_step(job);
        planted_zero_grad(job);
    }
}

TEST_F(job, sparse_gradients_that_are_appended_to_accumulate)
{
    planted_job *job = *state;
    train_sparsely(job, true);
    gmd_job_findings findings = planted_findings(job->p, 0);
    assert_int_equal(findings.count, 1);
    assert_int_equal(findings.items[0].class, GMD_FINDING_GRADIENT_ACCUMULATION);
    assert_int_equal(findings.items[0].bytes_per_iteration, 2 * GMD_MIB);
    assert_non_null(strstr(findings.items[0].fix, "train.py:10"));
    gmd_job_findings_free(&findings);
}

TEST_F(job, gradients_that_backward_makes_anew_each_time_do_not)
{
    train_sparsely(*state, false);
    assert_healthy(((planted_job *)*state)->p);
}

/* Every third iteration backward() makes gradients that are stored. */
TEST_F(job, the_line_before_gradients_that_some_iterations_store_is_named)
{
    planted_job *job = *state;
    uint32_t sample = planted_origin(job->p, "train.py:70 sample train.py:99 <module>");
    for (int i = 0; i < ITERATIONS; i++) {
        planted_train(job);
        if (i % 3 == 2) {
            planted_at(job->p, sample);
            planted_free_block(job->p, planted_alloc(job->p, GMD_MIB));
            planted_at(job->p, 0);
            for (int k = 0; k < PLANTED_LAYERS; k++) {
                planted_alloc(job->p, 2 * GMD_MIB);
                planted_alloc(job->p, 4096);
            }
        }
    }
    gmd_job_findings findings = planted_findings(job->p, 0);
    assert_int_equal(findings.count, 1);
    assert_int_equal(findings.items[0].class, GMD_FINDING_GRADIENT_ACCUMULATION);
    assert_non_null(strstr(findings.items[0].fix, "train.py:70"));
    gmd_job_findings_free(&findings);
}

/* The model's blocks, of before the recording, have frames; the history has none. */
TEST_F(job, what_has_no_frames_is_of_backward_only_where_others_of_the_history_have_some)
{
    planted_job *job = *state;
    job->loop = job->call = job->step = job->zero = 0;
    planted_begin_late(job->p);
    for (int i = 0; i < ITERATIONS; i++) {
        planted_train(job);
        planted_at(job->p, 0);
        planted_alloc(job->p, 5 * GMD_MIB);
    }
    assert_found(job->p, GMD_FINDING_RETAINED_GRAPH);
}

/* --- retained_graph -------------------------------------------------------------------------- */

TEST_F(job, what_an_optimizer_gathers_is_its_history)
{
    planted_job *job = *state;
    for (int i = 0; i < ITERATIONS; i++) {
        planted_train(job);
        planted_at(job->p, job->step);
        planted_alloc(job->p, 5 * GMD_MIB);
    }
    assert_healthy(job->p);
}

/* Trainers give an optimizer all of an iteration as a closure. */
TEST_F(job, what_a_closure_of_an_optimizer_keeps_is_no_history)
{
    planted_job *job = *state;
    uint32_t closure = planted_origin(
        job->p, "net.py:7 forward torch/nn/modules/module.py:1790 _call_impl train.py:30 closure "
                "torch/optim/adam.py:227 step train.py:99 <module>");
    for (int i = 0; i < ITERATIONS; i++) {
        planted_train(job);
        planted_at(job->p, closure);
        planted_alloc(job->p, 5 * GMD_MIB);
    }
    assert_found(job->p, GMD_FINDING_RETAINED_GRAPH);
}

/* `optimizer`: whose steps make a block each that stays. */
static void step_without_frames(planted *p, const char *optimizer, int every)
{
    planted_at(p, 0);
    for (int i = 0; i < 2 * ITERATIONS; i++) {
        planted_free_block(p, planted_alloc(p, 2 * GMD_MIB));
        planted_annotate(p, optimizer, GMD_ANNOTATION_START);
        planted_free_block(p, planted_alloc(p, GMD_MIB));
        if (i % every == 0) {
            planted_alloc(p, 9 * GMD_MIB);
        }
        planted_annotate(p, optimizer, GMD_ANNOTATION_END);
    }
}

TEST_F(script, without_frames_each_step_of_an_optimizer_without_history_may_be_a_closures)
{
    step_without_frames(*state, "Optimizer.step#Adam.step", 1);
    assert_found(*state, GMD_FINDING_RETAINED_GRAPH);
}

TEST_F(script, without_frames_an_optimizer_may_keep_its_history)
{
    step_without_frames(*state, "Optimizer.step#LBFGS.step", 1);
    assert_healthy(*state);
}

TEST_F(script, without_frames_what_comes_with_some_steps_is_the_state_of_further_parameters)
{
    step_without_frames(*state, "Optimizer.step#Adam.step", 3);
    assert_healthy(*state);
}

TEST_F(job, a_queue_that_is_emptied_more_slowly_than_it_fills_grows)
{
    planted_job *job = *state;
    size_t queue[2 * ITERATIONS];
    for (size_t i = 0; i < ITERATIONS; i++) {
        planted_train(job);
        planted_at(job->p, job->call);
        queue[2 * i] = planted_alloc(job->p, 4 * GMD_MIB);
        queue[2 * i + 1] = planted_alloc(job->p, 4 * GMD_MIB);
        planted_free_block(job->p, queue[i]);
    }
    assert_found(job->p, GMD_FINDING_RETAINED_GRAPH);
}

TEST_F(job, what_a_growing_line_made_before_the_recording_counts)
{
    enum { KEPT = 3 * GMD_MIB };
    planted_job *job = *state;
    for (int i = 0; i < 20; i++) {
        if (i == 14) {
            planted_begin_late(job->p); /* as a ring does that overflows */
        }
        planted_train(job);
        planted_at(job->p, job->call);
        planted_alloc(job->p, KEPT);
    }
    gmd_job_findings findings = planted_findings(job->p, 0);
    assert_int_equal(findings.count, 1);
    assert_int_equal(findings.items[0].bytes, 19 * KEPT); /* the last one may go yet */
    gmd_job_findings_free(&findings);
}

TEST_F(job, an_output_of_each_iteration_that_is_kept_is_a_retained_graph)
{
    planted_job *job = *state;
    for (int i = 0; i < ITERATIONS; i++) {
        planted_train(job);
        planted_at(job->p, job->call);
        planted_alloc(job->p, 5 * GMD_MIB); /* stays */
    }
    assert_found(job->p, GMD_FINDING_RETAINED_GRAPH);
}

/* Each iteration keeps four blocks, each of a line of its own or all of one. */
static void keep_four(planted_job *job, bool of_several_lines)
{
    char frames[128];
    for (int i = 0; i < ITERATIONS; i++) {
        for (int k = 0; k < 4; k++) {
            snprintf(frames, sizeof frames,
                     "torch/nn/modules/linear.py:134 forward torch/nn/modules/module.py:1790 "
                     "_call_impl train.py:%d train train.py:99 <module>",
                     of_several_lines ? 30 + k : 30);
            planted_at(job->p, planted_origin(job->p, frames));
            planted_alloc(job->p, 5 * GMD_MIB);
        }
        planted_train(job);
    }
}

static bool is_said_to_keep_graphs(planted_job *job)
{
    gmd_job_findings findings = planted_findings(job->p, 0);
    assert_int_equal(findings.count, 1);
    assert_int_equal(findings.items[0].class, GMD_FINDING_RETAINED_GRAPH);
    bool is_said = strstr(findings.items[0].evidence, "and with it the graph that made it") != NULL;
    gmd_job_findings_free(&findings);
    return is_said;
}

TEST_F(job, what_several_lines_keep_is_said_to_be_a_graph)
{
    keep_four(*state, true);
    assert_true(is_said_to_keep_graphs(*state));
}

TEST_F(job, what_one_line_keeps_may_be_results_however_many)
{
    keep_four(*state, false);
    assert_false(is_said_to_keep_graphs(*state));
}

TEST_F(job, an_output_that_the_next_one_replaces_is_not)
{
    planted_job *job = *state;
    size_t output = 0;
    for (int i = 0; i < ITERATIONS; i++) {
        planted_train(job);
        planted_at(job->p, job->call);
        size_t next = planted_alloc(job->p, 5 * GMD_MIB);
        if (i > 0) {
            planted_free_block(job->p, output);
        }
        output = next;
    }
    assert_healthy(job->p);
}

TEST_F(job, results_that_are_small_may_be_collected)
{
    planted_job *job = *state;
    for (int i = 0; i < ITERATIONS; i++) {
        planted_train(job);
        planted_at(job->p, job->loop);
        planted_alloc(job->p, 64 * GMD_KIB);
    }
    assert_healthy(job->p);
}

TEST_F(job, what_fills_up_and_then_stays_is_no_leak)
{
    planted_job *job = *state;
    for (int i = 0; i < ITERATIONS; i++) {
        planted_train(job);
        planted_at(job->p, job->loop);
        if (i < ITERATIONS / 2) { /* a replay buffer, or a cache */
            planted_alloc(job->p, 8 * GMD_MIB);
        }
    }
    assert_healthy(job->p);
}

static void train_and_keep_every(planted_job *job, int iterations, int every)
{
    for (int i = 0; i < iterations; i++) {
        planted_train(job);
        planted_at(job->p, job->call);
        if (i % every == 0) {
            planted_alloc(job->p, 9 * GMD_MIB); /* stays */
        }
    }
}

TEST_F(job, what_is_kept_of_every_sixth_iteration_adds_up)
{
    planted_job *job = *state;
    train_and_keep_every(job, 5 * ITERATIONS, 6);
    assert_found(job->p, GMD_FINDING_RETAINED_GRAPH);
}

/* What a cache had been filled with before is not known. */
TEST_F(job, in_a_recording_that_begins_late_it_does_where_it_comes_often_enough)
{
    planted_job *job = *state;
    train_and_keep_every(job, 6, 6);
    planted_begin_late(job->p);
    train_and_keep_every(job, 5 * ITERATIONS, 6);
    assert_found(job->p, GMD_FINDING_RETAINED_GRAPH);
}

TEST_F(job, in_a_recording_that_begins_late_a_few_times_tell_nothing)
{
    planted_job *job = *state;
    train_and_keep_every(job, 6, 6);
    planted_begin_late(job->p);
    train_and_keep_every(job, 2 * ITERATIONS, 6);
    assert_healthy(job->p);
}

/* A replay buffer: the oldest entry makes way for the newest. */
static void train_with_buffer(planted_job *job, size_t *buffer, int room, int from, int end)
{
    for (int i = from; i < end; i++) {
        planted_train(job);
        planted_at(job->p, job->loop);
        if (i >= room) {
            planted_free_block(job->p, buffer[i % room]);
        }
        buffer[i % room] = planted_alloc(job->p, 8 * GMD_MIB);
    }
}

TEST_F(job, a_buffer_that_gets_full_late_is_no_leak)
{
    enum { ROOM = 2 * ITERATIONS };
    planted_job *job = *state;
    size_t buffer[ROOM];
    train_with_buffer(job, buffer, ROOM, 0, ROOM + 6);
    assert_healthy(job->p);
}

TEST_F(job, a_full_buffer_of_a_recording_that_begins_late_is_no_leak)
{
    enum { ROOM = 2 * ITERATIONS };
    planted_job *job = *state;
    size_t buffer[ROOM];
    train_with_buffer(job, buffer, ROOM, 0, ROOM);
    planted_begin_late(job->p);
    train_with_buffer(job, buffer, ROOM, ROOM, ROOM + ITERATIONS);
    assert_healthy(job->p);
}

/* The entries that go were made before the recording. */
TEST_F(job, a_buffer_that_gets_full_in_a_recording_that_begins_late_is_no_leak)
{
    enum { ROOM = ITERATIONS };
    planted_job *job = *state;
    size_t buffer[ROOM];
    train_with_buffer(job, buffer, ROOM, 0, ROOM / 2);
    planted_begin_late(job->p);
    train_with_buffer(job, buffer, ROOM, ROOM / 2, ROOM + ROOM / 2);
    assert_healthy(job->p);
}

/* Entries are of two sizes; from the time when it is full those of one size make way. Without
 * frames a size is all that tells entries apart. */
TEST_F(script, a_buffer_that_gets_full_in_a_recording_without_frames_is_no_leak)
{
    planted *p = *state;
    size_t entries[ITERATIONS];
    planted_at(p, 0);
    for (int i = 0; i < 2 * ITERATIONS; i++) {
        planted_annotate(p, "Optimizer.step#SGD.step", GMD_ANNOTATION_START);
        planted_free_block(p, planted_alloc(p, GMD_MIB));
        planted_annotate(p, "Optimizer.step#SGD.step", GMD_ANNOTATION_END);
        planted_free_block(p, planted_alloc(p, 2 * GMD_MIB));
        planted_alloc(p, 8 * GMD_MIB);
        if (i < ITERATIONS) {
            entries[i] = planted_alloc(p, 9 * GMD_MIB);
        } else {
            planted_free_block(p, entries[i - ITERATIONS]);
        }
    }
    assert_healthy(p);
}

/* --- eval_graph ------------------------------------------------------------------------------ */

/* Four calls in an iteration, whose results are kept: they may be what the job is for. */
TEST_F(job, results_that_are_kept_while_all_before_them_goes_are_no_graph)
{
    planted_job *job = *state;
    for (int i = 0; i < ITERATIONS; i++) {
        planted_at(job->p, job->call);
        for (uint64_t k = 0; k < 4; k++) {
            size_t first = planted_alloc(job->p, (20 + k) * GMD_MIB);
            size_t second = planted_alloc(job->p, 10 * GMD_MIB);
            planted_free_block(job->p, first);
            planted_alloc(job->p, GMD_MIB / 8);
            planted_free_block(job->p, second);
        }
    }
    assert_healthy(job->p);
}

TEST_F(job, an_evaluation_that_holds_all_its_layers_builds_a_graph)
{
    planted_job *job = *state;
    for (int i = 0; i < ITERATIONS; i++) {
        planted_forward(job);
        planted_drop_graph(job);
    }
    assert_found(job->p, GMD_FINDING_EVAL_GRAPH);
}

/* Results of several calls are held until the iteration's end; what is between the layers is not.
 */
TEST_F(job, an_evaluation_whose_activation_functions_keep_nothing_does_not)
{
    planted_job *job = *state;
    uint32_t gelu = planted_origin(job->p, "torch/nn/modules/activation.py:734 forward "
                                           "torch/nn/modules/module.py:1790 _call_impl "
                                           "train.py:11 train train.py:99 <module>");
    for (int i = 0; i < ITERATIONS; i++) {
        size_t results[8];
        for (int k = 0; k < 8; k++) {
            planted_at(job->p, gelu);
            size_t between = planted_alloc(job->p, job->activation / 2);
            planted_at(job->p, job->call);
            results[k] = planted_alloc(job->p, job->activation + (uint64_t)k * GMD_MIB);
            planted_free_block(job->p, between);
        }
        planted_at(job->p, job->loop);
        for (int k = 0; k < 8; k++) {
            planted_free_block(job->p, results[k]);
        }
    }
    assert_healthy(job->p);
}

TEST_F(job, an_evaluation_that_frees_each_layer_does_not)
{
    planted_job *job = *state;
    for (int i = 0; i < ITERATIONS; i++) {
        planted_at(job->p, job->loop);
        size_t held = planted_alloc(job->p, job->activation);
        planted_at(job->p, job->call);
        for (int k = 0; k < PLANTED_LAYERS; k++) {
            size_t next = planted_alloc(job->p, job->activation);
            planted_free_block(job->p, held);
            held = next;
        }
        planted_at(job->p, job->loop);
        planted_free_block(job->p, held);
    }
    assert_healthy(job->p);
}

/* A second model's pass stands beside each training step; its graph goes as the next pass of it is
 * done. `keeps_graph`: the step keeps its own graph, too. */
static void train_beside(planted_job *job, bool keeps_graph)
{
    planted_job teacher = *job;
    for (int i = 0; i < ITERATIONS; i++) {
        planted_job next = *job;
        planted_forward(&next);
        if (i > 0) {
            planted_drop_graph(&teacher);
        }
        teacher = next;
        planted_forward(job);
        planted_backward(job, keeps_graph);
        if (keeps_graph) {
            planted_drop_graph(job);
        }
        planted_step(job);
        planted_zero_grad(job);
    }
}

TEST_F(job, the_graph_of_a_teacher_that_outlives_each_backward_pass_is_an_evaluations)
{
    train_beside(*state, false);
    assert_found(((planted_job *)*state)->p, GMD_FINDING_EVAL_GRAPH);
}

TEST_F(job, a_graph_that_outlives_backward_as_all_do_is_kept_on_purpose)
{
    train_beside(*state, true);
    assert_healthy(((planted_job *)*state)->p);
}

/* A pass of another function is kept. */
static void keep_pass(planted_job *job, const char *frames)
{
    planted_at(job->p, planted_origin(job->p, frames));
    for (int k = 0; k < PLANTED_LAYERS; k++) {
        planted_alloc(job->p, job->activation);
    }
}

/* One after each step. */
static void train_and_pass(planted_job *job, const char *frames)
{
    for (int i = 0; i < ITERATIONS; i++) {
        planted_train(job);
        keep_pass(job, frames);
    }
}

TEST_F(job, graphs_that_a_function_named_for_it_keeps_are_of_an_evaluation)
{
    train_and_pass(*state, "torch/nn/modules/module.py:1790 _call_impl train.py:60 validate_all "
                           "train.py:99 <module>");
    assert_found(((planted_job *)*state)->p, GMD_FINDING_EVAL_GRAPH);
}

static const char *const of_another_function =
    "torch/nn/modules/module.py:1790 _call_impl train.py:60 embed_all train.py:99 <module>";

TEST_F(job, graphs_of_another_function_after_the_training_are_of_an_evaluation)
{
    train_and_pass(*state, of_another_function);
    assert_found(((planted_job *)*state)->p, GMD_FINDING_EVAL_GRAPH);
}

TEST_F(job, those_before_it_are_retained)
{
    planted_job *job = *state;
    for (int i = 0; i < ITERATIONS; i++) {
        keep_pass(job, of_another_function);
        planted_train(job);
    }
    assert_found(job->p, GMD_FINDING_RETAINED_GRAPH);
}

TEST_F(job, values_that_no_module_makes_after_the_training_are_a_metrics)
{
    planted_job *job = *state;
    const char *const own[] = {"train.py:60 sharpness train.py:99 <module>",
                               "train.py:61 sharpness train.py:99 <module>"};
    for (int i = 0; i < ITERATIONS; i++) {
        planted_train(job);
        keep_pass(job, own[0]);
        keep_pass(job, own[1]);
        planted_alloc(job->p, 4);
    }
    assert_found(job->p, GMD_FINDING_RETAINED_GRAPH);
}

static uint32_t origin_in(planted *p, const char *library, const char *line)
{
    char frames[256];
    snprintf(frames, sizeof frames, "%s %s train.py:99 <module>", library, line);
    return planted_origin(p, frames);
}

/* After each step, or before it, lines call the model again and keep that pass, or the loss, too.
 */
static void train_and_pass_again(planted_job *job, const char *pass_line, const char *loss_line,
                                 bool is_before)
{
    const char *const layer =
        "torch/nn/modules/linear.py:134 forward torch/nn/modules/module.py:1790 _call_impl";
    const char *const loss = "torch/nn/functional.py:3500 cross_entropy";
    uint32_t trained = origin_in(job->p, loss, "train.py:12 train");
    for (int i = 0; i < ITERATIONS; i++) {
        for (int part = 0; part < 2; part++) {
            if ((part == 0) != is_before) {
                planted_forward(job);
                planted_at(job->p, trained);
                size_t of_loss = planted_alloc(job->p, GMD_MIB);
                planted_at(job->p, 0);
                planted_free_block(job->p, of_loss);
                planted_backward(job, false);
                planted_step(job);
                planted_zero_grad(job);
                continue;
            }
            planted_at(job->p, origin_in(job->p, layer, pass_line));
            for (int k = 0; k < PLANTED_LAYERS; k++) {
                planted_alloc(job->p, job->activation);
            }
            if (loss_line) {
                planted_at(job->p, origin_in(job->p, loss, loss_line));
                planted_alloc(job->p, GMD_MIB);
            }
        }
    }
}

TEST_F(job, the_loss_that_a_function_beside_the_training_keeps_is_of_an_evaluation)
{
    planted_job *job = *state;
    train_and_pass_again(job, "train.py:60 on_step_end", "train.py:61 on_step_end", false);
    assert_found(job->p, GMD_FINDING_EVAL_GRAPH);
}

TEST_F(job, an_output_that_a_function_beside_the_training_keeps_is_of_an_evaluation)
{
    planted_job *job = *state;
    train_and_pass_again(job, "train.py:60 on_step_end", NULL, false);
    assert_found(job->p, GMD_FINDING_EVAL_GRAPH);
}

/* Frames of C++ were recorded: those of an operator are the same wherever it is used. */
TEST_F(job, an_operator_that_the_training_uses_too_makes_no_second_pass)
{
    planted_job *job = *state;
    const char *const multiply = "aten/src/ATen/native/BinaryOps.cpp:421 mul";
    uint32_t trained = origin_in(job->p, multiply, "train.py:12 train");
    uint32_t kept = origin_in(job->p, multiply, "train.py:60 similarity");
    uint32_t layer = origin_in(job->p,
                               "torch/nn/modules/conv.py:548 forward "
                               "torch/nn/modules/module.py:1790 _call_impl",
                               "train.py:61 similarity");
    for (int i = 0; i < ITERATIONS; i++) {
        planted_at(job->p, trained);
        size_t of_loss = planted_alloc(job->p, GMD_MIB);
        planted_at(job->p, 0);
        planted_free_block(job->p, of_loss);
        planted_train(job);
        planted_at(job->p, layer);
        planted_alloc(job->p, GMD_MIB);
        planted_at(job->p, kept);
        for (int k = 0; k < 3; k++) {
            planted_alloc(job->p, 5 * GMD_MIB);
        }
        planted_alloc(job->p, 4);
    }
    assert_found(job->p, GMD_FINDING_RETAINED_GRAPH);
}

TEST_F(job, a_second_loss_of_the_function_that_trains_is_retained)
{
    planted_job *job = *state;
    train_and_pass_again(job, "train.py:60 train", "train.py:61 train", true);
    assert_found(job->p, GMD_FINDING_RETAINED_GRAPH);
}

/* Every third iteration a pass of its own line is kept. */
static void train_and_pass_now_and_then(planted_job *job, uint32_t call)
{
    for (int i = 0; i < 2 * ITERATIONS; i++) {
        planted_train(job);
        planted_at(job->p, call);
        for (int k = 0; i % 3 == 2 && k < PLANTED_LAYERS; k++) {
            planted_alloc(job->p, job->activation);
        }
    }
}

TEST_F(job, graphs_that_are_kept_now_and_then_and_backward_never_sees_are_of_an_evaluation)
{
    planted_job *job = *state;
    train_and_pass_now_and_then(
        job, planted_origin(job->p, "torch/nn/modules/module.py:1790 _call_impl train.py:60 rank "
                                    "train.py:99 <module>"));
    assert_found(job->p, GMD_FINDING_EVAL_GRAPH);
}

/* Three steps are made with what each pass of a model finds: a rollout comes before them. */
TEST_F(job, graphs_that_are_kept_now_and_then_from_before_the_first_training_are_retained)
{
    planted_job *job = *state;
    for (int i = 0; i < 2 * ITERATIONS; i++) {
        if (i % 3 == 0) {
            keep_pass(job, "torch/nn/modules/module.py:1790 _call_impl train.py:15 train "
                           "train.py:99 <module>");
        }
        planted_train(job);
    }
    assert_found(job->p, GMD_FINDING_RETAINED_GRAPH);
}

TEST_F(job, graphs_that_are_kept_now_and_then_of_the_trained_pass_are_retained)
{
    planted_job *job = *state;
    train_and_pass_now_and_then(job, job->call);
    assert_found(job->p, GMD_FINDING_RETAINED_GRAPH);
}

TEST_F(job, activations_that_backward_frees_do_not_hide_those_that_an_evaluation_keeps)
{
    planted_job *job = *state;
    uint32_t trained = planted_origin(job->p, "torch/nn/modules/activation.py:734 forward "
                                              "torch/nn/modules/module.py:1790 _call_impl "
                                              "train.py:11 train train.py:99 <module>");
    uint32_t kept = planted_origin(job->p, "torch/nn/modules/activation.py:734 forward "
                                           "torch/nn/modules/module.py:1790 _call_impl "
                                           "train.py:60 validate train.py:99 <module>");
    for (int i = 0; i < 2 * ITERATIONS; i++) {
        planted_at(job->p, trained);
        size_t saved = planted_alloc(job->p, job->activation);
        planted_at(job->p, 0);
        planted_free_block(job->p, saved);
        planted_train(job);
        planted_at(job->p, kept);
        for (int k = 0; i % 3 == 2 && k < PLANTED_LAYERS; k++) {
            planted_alloc(job->p, job->activation);
        }
    }
    assert_found(job->p, GMD_FINDING_EVAL_GRAPH);
}

/* Derivatives by inputs: backward() runs, and no parameter gets a gradient. */
TEST_F(job, an_evaluation_by_derivatives_keeps_graphs_of_its_own)
{
    planted_job *job = *state;
    for (int i = 0; i < ITERATIONS; i++) {
        planted_forward(job); /* all of it stays */
        planted_at(job->p, 0);
        planted_alloc(job->p, 5 * GMD_MIB);
        planted_free_block(job->p, planted_alloc(job->p, 7 * GMD_MIB));
    }
    assert_found(job->p, GMD_FINDING_EVAL_GRAPH);
}

TEST_F(job, graphs_that_an_evaluation_after_the_training_keeps_are_its_own)
{
    planted_job *job = *state;
    for (int i = 0; i < ITERATIONS; i++) {
        planted_train(job);
    }
    for (int i = 0; i < ITERATIONS; i++) {
        planted_forward(job); /* all of it stays */
    }
    assert_found(job->p, GMD_FINDING_EVAL_GRAPH);
}

/* Weights of one size, without a module; each iteration's loss is kept with its graph, and
 * gradients are made of it. */
/* Where stacks are no Python's, lines alone may be those of a model. */
TEST_F(script, passes_of_a_program_of_another_language_build_graphs_too)
{
    planted *p = *state;
    uint32_t build = planted_origin(p, "serve.lua:3 main");
    uint32_t batch = planted_origin(p, "serve.lua:8 main");
    uint32_t pass = planted_origin(p, "serve.lua:9 main");
    planted_at(p, build);
    planted_alloc(p, 5 * GMD_MIB);
    for (int i = 0; i < ITERATIONS; i++) {
        size_t layers[8];
        planted_at(p, batch);
        planted_free_block(p, planted_alloc(p, 4 * GMD_MIB));
        planted_at(p, pass);
        for (int k = 0; k < 8; k++) {
            layers[k] = planted_alloc(p, 8 * GMD_MIB);
        }
        for (int k = 0; k < 8; k++) {
            planted_free_block(p, layers[k]);
        }
    }
    assert_found(p, GMD_FINDING_EVAL_GRAPH);
}

TEST_F(script, gradients_of_one_size_are_those_of_a_model_whose_weights_have_one)
{
    planted *p = *state;
    uint32_t call = planted_origin(p, "torch/autograd/__init__.py:120 _make_grads "
                                      "torch/autograd/__init__.py:340 backward fit.py:15 main");
    planted_at(p, planted_origin(p, "fit.py:5 main"));
    for (int k = 0; k < 4; k++) {
        planted_alloc(p, GMD_MIB);
    }
    for (int i = 0; i < ITERATIONS; i++) {
        planted_at(p, planted_origin(p, "fit.py:12 main"));
        planted_alloc(p, 3 * GMD_MIB);
        planted_at(p, planted_origin(p, "fit.py:13 main"));
        planted_alloc(p, 4 * GMD_MIB);
        planted_alloc(p, 5 * GMD_MIB);
        planted_at(p, call);
        size_t first = planted_alloc(p, 512);
        for (int k = 0; k < 4; k++) {
            planted_at(p, 0);
            size_t made = planted_alloc(p, GMD_MIB);
            planted_at(p, call);
            planted_free_block(p, made);
        }
        planted_free_block(p, first);
    }
    assert_found(p, GMD_FINDING_RETAINED_GRAPH);
}
