/* Each class speaks of a history that has its mistake, and is silent on the same one mended. */
#include "planted.h"

#include <string.h>

static int open_job(void **state)
{
    static planted_job job;
    job = planted_job_new(planted_new());
    *state = &job;
    return 0;
}

static int close_job(void **state)
{
    planted_free(((planted_job *)*state)->p);
    return 0;
}

FIXTURE(job, open_job, close_job);

/* A program whose stacks are lines alone. */
static int open_script(void **state)
{
    *state = planted_new();
    return 0;
}

static int close_script(void **state)
{
    planted_free(*state);
    return 0;
}

FIXTURE(script, open_script, close_script);

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

/* After backward() a line joins what it made; `bytes` more than all gradients together. */
static void train_and_join_gradients(planted_job *job, uint64_t bytes)
{
    const uint64_t all = PLANTED_LAYERS * (2 * GMD_MIB + 4096);
    for (int i = 0; i < ITERATIONS; i++) {
        planted_forward(job);
        planted_backward(job, false);
        planted_at(job->p, planted_origin(job->p, "train.py:12 train train.py:99 <module>"));
        planted_alloc(job->p, all + bytes);
        planted_step(job);
        planted_zero_grad(job);
    }
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

/* --- hidden_state ---------------------------------------------------------------------------- */

static uint32_t recurrent_call(planted *p)
{
    return planted_origin(p, "torch/nn/modules/rnn.py:1169 forward "
                             "torch/nn/modules/module.py:1790 _call_impl train.py:11 train "
                             "train.py:99 <module>");
}

TEST_F(job, a_recurrent_state_that_keeps_its_graph_is_a_hidden_state)
{
    planted_job *job = *state;
    uint32_t call = recurrent_call(job->p);
    for (int i = 0; i < ITERATIONS; i++) {
        planted_at(job->p, job->loop);
        size_t batch = planted_alloc(job->p, GMD_MIB);
        planted_at(job->p, call);
        planted_alloc(job->p, 6 * GMD_MIB); /* output, state and what is saved stay */
        planted_alloc(job->p, 512 * GMD_KIB);
        planted_alloc(job->p, 9 * GMD_MIB);
        planted_at(job->p, job->loop);
        planted_free_block(job->p, batch);
    }
    assert_found(job->p, GMD_FINDING_HIDDEN_STATE);
}

TEST_F(job, a_recurrent_state_that_is_detached_is_not)
{
    planted_job *job = *state;
    uint32_t call = recurrent_call(job->p);
    size_t held = 0;
    for (int i = 0; i < ITERATIONS; i++) {
        planted_at(job->p, call);
        size_t output = planted_alloc(job->p, 6 * GMD_MIB),
               next = planted_alloc(job->p, 512 * GMD_KIB);
        size_t saved = planted_alloc(job->p, 9 * GMD_MIB);
        planted_at(job->p, job->loop);
        planted_free_block(job->p, saved);
        planted_free_block(job->p, output);
        if (i > 0) {
            planted_free_block(job->p, held);
        }
        held = next;
    }
    assert_healthy(job->p);
}

/* A state goes from iteration to iteration; `first` is where it begins. */
static void carry_on(planted_job *job, uint32_t first)
{
    uint32_t update = planted_origin(job->p, "train.py:12 train train.py:99 <module>");
    planted_at(job->p, first);
    planted_alloc(job->p, 5 * GMD_MIB);
    for (int i = 0; i < ITERATIONS; i++) {
        planted_at(job->p, job->call);
        planted_free_block(job->p, planted_alloc(job->p, 2 * GMD_MIB));
        planted_alloc(job->p, 7 * GMD_MIB);
        planted_at(job->p, update);
        planted_alloc(job->p, 5 * GMD_MIB); /* the state, and what is saved for backward() */
        planted_alloc(job->p, 5 * GMD_MIB);
    }
}

TEST_F(job, a_state_that_began_before_the_loop_and_stays_is_a_hidden_state)
{
    planted_job *job = *state;
    carry_on(job, planted_origin(job->p, "train.py:8 train train.py:99 <module>"));
    assert_found(job->p, GMD_FINDING_HIDDEN_STATE);
}

TEST_F(script, a_state_of_a_program_without_modules_is_one_too)
{
    planted *p = *state;
    planted_at(p, planted_origin(p, "filter.py:8 main"));
    planted_alloc(p, 5 * GMD_MIB);
    for (int i = 0; i < ITERATIONS; i++) {
        planted_at(p, planted_origin(p, "filter.py:11 main"));
        planted_free_block(p, planted_alloc(p, 5 * GMD_MIB));
        planted_at(p, planted_origin(p, "filter.py:12 main"));
        planted_alloc(p, 5 * GMD_MIB);
    }
    assert_found(p, GMD_FINDING_HIDDEN_STATE);
}

/* Derivatives by the state itself: backward() runs, and no parameter gets a gradient. */
TEST_F(job, a_state_that_moves_by_its_own_derivatives_is_one_too)
{
    planted_job *job = *state;
    uint32_t move = planted_origin(job->p, "sample.py:12 main");
    planted_at(job->p, planted_origin(job->p, "sample.py:8 main"));
    planted_alloc(job->p, 5 * GMD_MIB);
    for (int i = 0; i < ITERATIONS; i++) {
        planted_at(job->p, job->call);
        planted_alloc(job->p, 7 * GMD_MIB);
        planted_free_block(job->p, planted_alloc(job->p, 9 * GMD_MIB));
        planted_at(job->p, 0);
        planted_free_block(job->p, planted_alloc(job->p, 5 * GMD_MIB));
        planted_at(job->p, move);
        planted_alloc(job->p, 5 * GMD_MIB);
    }
    assert_found(job->p, GMD_FINDING_HIDDEN_STATE);
}

TEST_F(job, what_the_loops_own_line_made_before_the_first_iteration_is_no_state)
{
    planted_job *job = *state;
    carry_on(job, planted_origin(job->p, "train.py:12 train train.py:99 <module>"));
    assert_found(job->p, GMD_FINDING_EVAL_GRAPH);
}

TEST_F(job, a_parameter_of_that_size_is_no_state)
{
    planted_job *job = *state;
    carry_on(job,
             planted_origin(job->p, "torch/nn/modules/linear.py:99 __init__ train.py:8 train"));
    assert_found(job->p, GMD_FINDING_EVAL_GRAPH);
}

TEST_F(job, backward_passes_that_lengthen_go_through_a_chain)
{
    planted_job *job = *state;
    for (int i = 0; i < ITERATIONS; i++) {
        planted_forward(job);
        for (int k = 0; k <= i; k++) {
            planted_backward(job, true);
        }
        planted_step(job);
        planted_zero_grad(job);
    }
    assert_found(job->p, GMD_FINDING_HIDDEN_STATE);
}

/* Functions alone, no module: torch.autograd's own frames tell that PyTorch was recorded, and so
 * that what has no frames is of backward(). Each time it makes a block more. */
TEST_F(script, backward_passes_that_lengthen_are_seen_where_no_module_is)
{
    planted *p = *state;
    uint32_t step = planted_origin(p, "solve.py:10 main"),
             other = planted_origin(p, "solve.py:11 main"),
             call = planted_origin(p, "torch/autograd/__init__.py:120 _make_grads "
                                      "torch/autograd/__init__.py:340 backward solve.py:12 main");
    for (int i = 0; i < ITERATIONS; i++) {
        planted_at(p, step);
        planted_alloc(p, 8 * GMD_MIB);
        planted_at(p, other);
        planted_free_block(p, planted_alloc(p, 3 * GMD_MIB));
        planted_at(p, call);
        size_t first = planted_alloc(p, 512);
        planted_at(p, 0);
        for (int k = 0; k <= i; k++) {
            planted_free_block(p, planted_alloc(p, 8 * GMD_MIB));
        }
        planted_at(p, call);
        planted_free_block(p, first);
    }
    assert_found(p, GMD_FINDING_HIDDEN_STATE);
}

/* After each step a field is moved on, and the graph of that stays: without the field before, or
 * with it. */
static void move_on(planted_job *job, bool keeps_fields)
{
    uint32_t call = planted_origin(job->p, "torch/nn/modules/conv.py:548 forward "
                                           "torch/nn/modules/module.py:1790 _call_impl "
                                           "train.py:15 train");
    uint32_t sum = planted_origin(job->p, "train.py:15 train");
    size_t before = 0;
    for (int i = 0; i < ITERATIONS; i++) {
        planted_at(job->p, call);
        planted_alloc(job->p, 6 * GMD_MIB);
        size_t between = planted_alloc(job->p, 5 * GMD_MIB);
        planted_alloc(job->p, 8 * GMD_MIB);
        planted_at(job->p, sum);
        planted_free_block(job->p, between);
        size_t field = planted_alloc(job->p, 4 * GMD_MIB);
        if (i > 0 && !keeps_fields) {
            planted_free_block(job->p, before);
        }
        before = field;
        planted_train(job);
    }
}

TEST_F(job, a_graph_that_stays_without_its_result_hangs_on_the_next_one)
{
    move_on(*state, false);
    assert_found(((planted_job *)*state)->p, GMD_FINDING_HIDDEN_STATE);
}

TEST_F(job, a_graph_that_stays_with_its_result_is_retained)
{
    move_on(*state, true);
    assert_found(((planted_job *)*state)->p, GMD_FINDING_RETAINED_GRAPH);
}

/* --- eval_graph ------------------------------------------------------------------------------ */

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
                                           "train.py:11 train");
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

/* After each step a pass is kept, in a function of this name. */
static void train_and_pass(planted_job *job, const char *frames)
{
    uint32_t call = planted_origin(job->p, frames);
    for (int i = 0; i < ITERATIONS; i++) {
        planted_train(job);
        planted_at(job->p, call);
        for (int k = 0; k < PLANTED_LAYERS; k++) {
            planted_alloc(job->p, job->activation);
        }
    }
}

TEST_F(job, graphs_that_a_function_named_for_it_keeps_are_of_an_evaluation)
{
    train_and_pass(*state, "torch/nn/modules/module.py:1790 _call_impl train.py:60 validate_all");
    assert_found(((planted_job *)*state)->p, GMD_FINDING_EVAL_GRAPH);
}

TEST_F(job, graphs_of_another_function_beside_the_training_are_retained)
{
    train_and_pass(*state, "torch/nn/modules/module.py:1790 _call_impl train.py:60 embed_all");
    assert_found(((planted_job *)*state)->p, GMD_FINDING_RETAINED_GRAPH);
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
        job, planted_origin(job->p, "torch/nn/modules/module.py:1790 _call_impl train.py:60 rank"));
    assert_found(job->p, GMD_FINDING_EVAL_GRAPH);
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
                                              "train.py:11 train");
    uint32_t kept = planted_origin(job->p, "torch/nn/modules/activation.py:734 forward "
                                           "torch/nn/modules/module.py:1790 _call_impl "
                                           "train.py:60 validate");
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

/* --- reference_cycle ------------------------------------------------------------------------- */

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
        planted_origin(job->p, "torch/nn/modules/linear.py:106 __init__ folds.py:9 build");
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
                               "search.py:20 main");
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
        planted_origin(job->p, "torch/nn/modules/linear.py:106 __init__ folds.py:9 build");
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
                                           "big.py:20 main");
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

TEST_F(job, what_a_line_clears_that_makes_nothing_is_gathered_on_purpose)
{
    static const int runs[] = {5, 9, 6, 11, 4};
    planted_job *job = *state;
    uint32_t clear = planted_origin(job->p, "train.py:20 train train.py:99 <module>");
    pile_up(job, clear, runs, 5);
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
                                   "torch/nn/modules/module.py:1790 _call_impl train.py:11 train"),
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
                                              "apply train.py:11 train");
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

TEST_F(job, what_a_hook_stores_of_each_pass_is_a_checkpoint_cache)
{
    planted_job *job = *state;
    uint32_t hook =
        planted_origin(job->p, "train.py:50 pack torch/nn/modules/linear.py:134 forward "
                               "torch/nn/modules/module.py:1790 _call_impl "
                               "train.py:11 train");
    for (int i = 0; i < ITERATIONS; i++) {
        planted_at(job->p, hook);
        planted_alloc(job->p, 6 * GMD_MIB);
        planted_train(job);
    }
    assert_found(job->p, GMD_FINDING_CHECKPOINT_CACHE);
}

/* --- fragmentation --------------------------------------------------------------------------- */

/* Before the loop large blocks go, but small ones in the same segments stay if it `keeps` them. */
static void set_up_in_segments(planted_job *job, bool keeps)
{
    enum { SEGMENTS = 4 };
    size_t large[SEGMENTS], small[SEGMENTS];
    planted_at(job->p, job->loop);
    for (int i = 0; i < SEGMENTS; i++) {
        large[i] = planted_alloc_in(job->p, 100 * GMD_MIB, 80 * GMD_MIB);
        small[i] = planted_alloc_behind(job->p, large[i], GMD_MIB);
    }
    for (int i = 0; i < SEGMENTS; i++) {
        planted_free_block(job->p, large[i]);
        if (!keeps) {
            planted_free_block(job->p, small[i]);
        }
    }
    for (int i = 0; i < ITERATIONS; i++) {
        planted_train(job);
    }
}

TEST_F(job, what_is_idle_all_the_time_beside_blocks_that_stay_is_fragmentation)
{
    set_up_in_segments(*state, true);
    assert_found(((planted_job *)*state)->p, GMD_FINDING_FRAGMENTATION);
}

/* Each iteration gathers a block, with far more free beside it. */
static void gather_apart(planted *p, uint32_t line)
{
    uint32_t other = planted_origin(p, "tables.py:12 main");
    for (int i = 0; i < ITERATIONS; i++) {
        planted_at(p, line);
        size_t kept = planted_alloc_in(p, 64 * GMD_MIB, 8 * GMD_MIB);
        planted_at(p, other);
        planted_free_block(p, planted_alloc_behind(p, kept, 48 * GMD_MIB));
    }
}

TEST_F(script, what_lies_free_beside_what_is_gathered_is_the_greater_loss)
{
    gather_apart(*state, planted_origin(*state, "tables.py:11 main"));
    gmd_job_findings findings = planted_findings(*state, 0);
    assert_int_equal(findings.items[0].class, GMD_FINDING_FRAGMENTATION);
    gmd_job_findings_free(&findings);
}

TEST_F(job, what_lies_free_beside_a_graph_goes_with_it)
{
    planted_job *job = *state;
    gather_apart(job->p, job->call);
    gmd_job_findings findings = planted_findings(job->p, 0);
    assert_int_equal(findings.count, 1);
    assert_int_not_equal(findings.items[0].class, GMD_FINDING_FRAGMENTATION);
    gmd_job_findings_free(&findings);
}

TEST_F(job, idle_segments_that_nothing_keeps_are_not)
{
    set_up_in_segments(*state, false);
    assert_found(((planted_job *)*state)->p, GMD_FINDING_CACHED_NOT_RELEASED);
}

/* Each shape stays for some iterations. */
TEST_F(job, a_few_sizes_after_one_another_do_not_fragment)
{
    planted_job *job = *state;
    planted_at(job->p, job->loop);
    for (uint64_t i = 0; i < 4; i++) {
        planted_free_block(job->p, planted_alloc(job->p, (100 + i) * GMD_MIB));
    }
    for (uint64_t i = 0; i < 40; i++) {
        uint64_t size = (50 + i / 10) * GMD_MIB;
        planted_free_block(job->p, planted_alloc_in(job->p, 100 * GMD_MIB, size));
    }
    assert_healthy(job->p);
}

static void ask_for_new_sizes(planted_job *job, uint64_t more)
{
    for (uint64_t i = 0; i < 40; i++) {
        planted_at(job->p, job->loop);
        planted_free_block(job->p, planted_alloc(job->p, (100 - i * more) * GMD_MIB));
        planted_free_block(job->p, planted_alloc(job->p, GMD_MIB));
    }
}

TEST_F(job, sizes_that_fit_no_free_block_fragment)
{
    ask_for_new_sizes(*state, 2);
    assert_found(((planted_job *)*state)->p, GMD_FINDING_FRAGMENTATION);
}

TEST_F(job, sizes_that_are_new_to_the_end_fragment_though_segments_are_taken_early)
{
    planted_job *job = *state;
    planted_at(job->p, job->loop);
    for (uint64_t i = 0; i < 4; i++) {
        planted_free_block(job->p, planted_alloc(job->p, (100 + i) * GMD_MIB));
    }
    for (uint64_t i = 0; i < 40; i++) {
        planted_free_block(job->p, planted_alloc_in(job->p, 100 * GMD_MIB, (50 + i) * GMD_MIB));
    }
    assert_found(job->p, GMD_FINDING_FRAGMENTATION);
}

TEST_F(job, segments_that_are_taken_late_for_known_sizes_are_no_fragmentation)
{
    planted_job *job = *state;
    for (int i = 0; i < ITERATIONS; i++) {
        uint64_t room = i < ITERATIONS / 2 ? 100 : 400;
        planted_at(job->p, job->loop);
        planted_free_block(job->p, planted_alloc_in(job->p, room * GMD_MIB, 100 * GMD_MIB));
        planted_train(job);
    }
    assert_healthy(job->p);
}

TEST_F(job, memory_that_was_given_back_is_no_fragmentation)
{
    planted_job *job = *state;
    for (int i = 0; i < ITERATIONS; i++) {
        planted_train(job);
        if (i == ITERATIONS / 2) {
            ask_for_new_sizes(job, 2);
            planted_empty_cache(job->p);
        }
    }
    assert_healthy(job->p);
}

TEST_F(job, what_was_reserved_before_the_recording_may_have_been_in_use)
{
    planted_job *job = *state;
    for (int i = 0; i < 4; i++) {
        planted_train(job);
    }
    planted_free_block(job->p, planted_alloc_in(job->p, 500 * GMD_MIB, 500 * GMD_MIB));
    planted_begin_late(job->p);
    for (uint64_t i = 0; i < 40; i++) {
        planted_at(job->p, job->loop);
        planted_free_block(job->p, planted_alloc_in(job->p, 500 * GMD_MIB, (300 + i) * GMD_MIB));
    }
    assert_healthy(job->p);
}

TEST_F(job, a_first_pass_asks_for_new_sizes_only_and_fragments_nothing)
{
    planted_job *job = *state;
    size_t activations[6];
    planted_at(job->p, job->call);
    for (uint64_t i = 0; i < 6; i++) {
        activations[i] = planted_alloc(job->p, (100 + i) * GMD_MIB);
    }
    for (uint64_t i = 0; i < 6; i++) {
        planted_free_block(job->p, activations[i]);
        planted_free_block(job->p, planted_alloc(job->p, (90 + i) * GMD_MIB));
    }
    assert_healthy(job->p);
}

TEST_F(job, an_evaluation_that_takes_segments_once_fragments_nothing)
{
    planted_job *job = *state;
    for (int i = 0; i < ITERATIONS; i++) {
        planted_train(job);
        if (i % 4 == 3) {
            planted_at(job->p, job->loop);
            planted_free_block(job->p, planted_alloc(job->p, 150 * GMD_MIB));
            planted_free_block(job->p, planted_alloc(job->p, 149 * GMD_MIB));
            planted_free_block(job->p, planted_alloc(job->p, 148 * GMD_MIB));
        }
    }
    assert_healthy(job->p);
}

TEST_F(job, one_size_does_not)
{
    ask_for_new_sizes(*state, 0);
    assert_healthy(((planted_job *)*state)->p);
}

/* --- cached_not_released --------------------------------------------------------------------- */

static void search_then_train(planted_job *job, bool empties)
{
    planted_at(job->p, job->loop);
    planted_free_block(job->p, planted_alloc(job->p, 900 * GMD_MIB));
    if (empties) {
        planted_empty_cache(job->p);
    }
    for (int i = 0; i < ITERATIONS; i++) {
        planted_train(job);
    }
}

TEST_F(job, what_an_early_phase_needed_stays_in_the_cache)
{
    search_then_train(*state, false);
    assert_found(((planted_job *)*state)->p, GMD_FINDING_CACHED_NOT_RELEASED);
}

TEST_F(job, an_emptied_cache_does_not)
{
    search_then_train(*state, true);
    assert_healthy(((planted_job *)*state)->p);
}

TEST_F(job, less_than_an_iteration_tells_nothing_of_the_cache)
{
    planted_job *job = *state;
    planted_free_block(job->p, planted_alloc(job->p, 900 * GMD_MIB));
    planted_begin_late(job->p);
    planted_train(job);
    assert_healthy(job->p);
}

/* --- cross_stream_pending -------------------------------------------------------------------- */

/* A second stream works with each batch, and is so many behind. */
static void load_ahead(planted_job *job, int behind)
{
    size_t batches[ITERATIONS];
    for (int i = 0; i < ITERATIONS; i++) {
        planted_at(job->p, job->loop);
        batches[i] = planted_alloc(job->p, 16 * GMD_MIB);
        planted_train(job);
        planted_at(job->p, job->loop);
        planted_request_free(job->p, batches[i]);
        if (i >= behind) {
            planted_complete_free(job->p, batches[i - behind]);
        }
    }
}

TEST_F(job, frees_that_wait_for_a_stream_far_behind_are_pending)
{
    load_ahead(*state, 8);
    assert_found(((planted_job *)*state)->p, GMD_FINDING_CROSS_STREAM_PENDING);
}

TEST_F(job, two_batches_in_flight_are_wanted)
{
    load_ahead(*state, 2);
    assert_healthy(((planted_job *)*state)->p);
}

/* --- true_capacity --------------------------------------------------------------------------- */

TEST_F(job, a_refusal_that_ends_a_job_that_does_not_grow_is_its_capacity)
{
    planted_job *job = *state;
    for (int i = 0; i < ITERATIONS; i++) {
        planted_train(job);
    }
    planted_forward(job);
    planted_refuse(job->p, 200 * GMD_MIB);
    assert_found(job->p, GMD_FINDING_TRUE_CAPACITY);
}

TEST_F(job, a_refusal_that_the_job_survives_is_not)
{
    planted_job *job = *state;
    for (int i = 0; i < ITERATIONS; i++) {
        if (i == 4) {
            planted_refuse(job->p, 200 * GMD_MIB);
        }
        planted_train(job);
    }
    assert_healthy(job->p);
}

TEST_F(job, a_first_pass_that_is_refused_has_layers_and_no_leak)
{
    planted_job *job = *state;
    job->activation = 40 * GMD_MIB;
    planted_forward(job);
    planted_refuse(job->p, 40 * GMD_MIB);
    assert_found(job->p, GMD_FINDING_TRUE_CAPACITY);
}

TEST_F(job, a_leak_that_ends_out_of_memory_is_the_leak)
{
    planted_job *job = *state;
    for (int i = 0; i < ITERATIONS; i++) {
        planted_train(job);
        planted_at(job->p, job->call);
        planted_alloc(job->p, 20 * GMD_MIB);
    }
    planted_refuse(job->p, 20 * GMD_MIB);
    assert_found(job->p, GMD_FINDING_RETAINED_GRAPH);
}
