/* The states that chain the graphs of iterations, likewise (test_classes.c). */
#include "planted.h"

#include <stdio.h>

FIXTURE(job, planted_open_job, planted_close_job);
FIXTURE(script, planted_open_script, planted_close_script);

enum { ITERATIONS = 12 };

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

/* Each iteration decodes a sequence, whose graph is kept. The module makes the first state where it
 * is called without one. */
static void decode_and_keep(planted_job *job, bool begins_anew)
{
    uint32_t call = recurrent_call(job->p);
    uint32_t makes_state =
        planted_origin(job->p, "torch/nn/modules/rnn.py:1160 forward "
                               "torch/nn/modules/module.py:1790 _call_impl train.py:11 train "
                               "train.py:99 <module>");
    for (int i = 0; i < ITERATIONS; i++) {
        planted_annotate(job->p, "ProfilerStep#", GMD_ANNOTATION_START);
        planted_at(job->p, makes_state);
        if (begins_anew || i == 0) {
            planted_alloc(job->p, GMD_MIB);
        }
        for (int token = 0; token < 4; token++) {
            planted_at(job->p, call);
            planted_alloc(job->p, 4 * GMD_MIB);
            planted_alloc(job->p, GMD_MIB);
            planted_at(job->p, job->call);
            planted_free_block(job->p, planted_alloc(job->p, 2 * GMD_MIB));
        }
        planted_annotate(job->p, "ProfilerStep#", GMD_ANNOTATION_END);
    }
}

TEST_F(job, graphs_of_sequences_that_begin_with_a_state_of_their_own_are_of_an_evaluation)
{
    decode_and_keep(*state, true);
    assert_found(((planted_job *)*state)->p, GMD_FINDING_EVAL_GRAPH);
}

TEST_F(job, graphs_of_sequences_that_go_on_with_a_state_are_chained)
{
    decode_and_keep(*state, false);
    assert_found(((planted_job *)*state)->p, GMD_FINDING_HIDDEN_STATE);
}

/* After each step the program generates a sequence with a cell; its own line makes a state for each
 * sequence, or a mask for each call, of the same size. */
static void generate_and_keep(planted_job *job, bool for_each_call)
{
    uint32_t cell = planted_origin(job->p, "torch/nn/modules/rnn.py:1500 forward "
                                           "torch/nn/modules/module.py:1790 _call_impl "
                                           "train.py:61 speak train.py:99 <module>");
    uint32_t own = planted_origin(job->p, "train.py:60 speak train.py:99 <module>");
    for (int i = 0; i < ITERATIONS; i++) {
        planted_train(job);
        for (int call = 0; call < 4; call++) {
            planted_at(job->p, own);
            if (for_each_call || call == 0) {
                planted_alloc(job->p, GMD_MIB);
            }
            planted_at(job->p, cell);
            planted_alloc(job->p, 5 * GMD_MIB);
            planted_alloc(job->p, GMD_MIB);
        }
    }
}

TEST_F(job, sequences_for_which_the_program_makes_a_state_are_of_an_evaluation)
{
    generate_and_keep(*state, false);
    assert_found(((planted_job *)*state)->p, GMD_FINDING_EVAL_GRAPH);
}

TEST_F(job, what_the_program_makes_for_each_call_is_no_new_state)
{
    generate_and_keep(*state, true);
    assert_found(((planted_job *)*state)->p, GMD_FINDING_HIDDEN_STATE);
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
    uint32_t move = planted_origin(job->p, "sample.py:12 main sample.py:99 <module>");
    planted_at(job->p, planted_origin(job->p, "sample.py:8 main sample.py:99 <module>"));
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

/* `next`: the line of a cell that makes the next state. */
static void follow(planted_job *job, const char *next)
{
    uint32_t state = planted_origin(job->p, next);
    planted_at(job->p, planted_origin(job->p, "bus.py:31 main bus.py:99 <module>"));
    planted_alloc(job->p, 5 * GMD_MIB);
    for (int i = 0; i < ITERATIONS; i++) {
        planted_at(job->p, job->loop);
        planted_free_block(job->p, planted_alloc(job->p, 3 * GMD_MIB));
        planted_at(job->p, job->call);
        planted_alloc(job->p, 7 * GMD_MIB);
        planted_free_block(job->p, planted_alloc(job->p, 9 * GMD_MIB));
        planted_alloc(job->p, 6 * GMD_MIB);
        planted_at(job->p, state);
        planted_alloc(job->p, 5 * GMD_MIB);
    }
}

TEST_F(job, a_state_that_a_cell_of_the_programs_own_makes_is_one_too)
{
    follow(*state, "cell.py:23 forward torch/nn/modules/module.py:1790 _call_impl "
                   "bus.py:35 main bus.py:99 <module>");
    assert_found(((planted_job *)*state)->p, GMD_FINDING_HIDDEN_STATE);
}

TEST_F(job, what_a_layer_of_pytorch_makes_is_no_state_though_its_input_has_that_size)
{
    follow(*state, "torch/nn/modules/conv.py:9 forward torch/nn/modules/module.py:1790 _call_impl "
                   "bus.py:35 main bus.py:99 <module>");
    assert_found(((planted_job *)*state)->p, GMD_FINDING_EVAL_GRAPH);
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
    carry_on(job, planted_origin(job->p, "torch/nn/modules/linear.py:99 __init__ train.py:8 train "
                                         "train.py:99 <module>"));
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
                                           "train.py:15 train train.py:99 <module>");
    uint32_t sum = planted_origin(job->p, "train.py:15 train train.py:99 <module>");
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

/* A function of the program moves a state on, which goes as the next one begins: each takes the
 * one before. What stays is made in another line than the state. */
static void move_by_a_function(planted_job *job, const char *function)
{
    char frames[2][128];
    for (int i = 0; i < 2; i++) {
        snprintf(frames[i], sizeof frames[i], "%strain.py:%d %s train.py:99 <module>",
                 i == 0 ? "torch/nn/modules/module.py:1790 _call_impl " : "", 40 + i, function);
    }
    uint32_t call = planted_origin(job->p, frames[0]), sum = planted_origin(job->p, frames[1]);
    size_t before = 0;
    for (int i = 0; i < ITERATIONS; i++) {
        planted_at(job->p, call);
        planted_alloc(job->p, 8 * GMD_MIB);
        planted_at(job->p, sum);
        if (i > 0) {
            planted_free_block(job->p, before);
        }
        before = planted_alloc(job->p, 4 * GMD_MIB);
        planted_train(job);
    }
}

TEST_F(job, a_state_is_made_by_another_line_of_the_function_that_keeps_its_graph)
{
    move_by_a_function(*state, "advance");
    assert_found(((planted_job *)*state)->p, GMD_FINDING_HIDDEN_STATE);
}

/* The program's own lines make three values on the way to the next state, which stay; the state
 * goes as the next one is begun. */
static void move_in_parts(planted_job *job, uint64_t last_part)
{
    const uint64_t parts[] = {4 * GMD_MIB, 4 * GMD_MIB, last_part};
    uint32_t part = planted_origin(job->p, "train.py:40 advance train.py:99 <module>"),
             sum = planted_origin(job->p, "train.py:41 advance train.py:99 <module>");
    size_t before = 0;
    for (int i = 0; i < ITERATIONS; i++) {
        planted_at(job->p, part);
        for (size_t k = 0; k < sizeof parts / sizeof *parts; k++) {
            planted_alloc(job->p, parts[k]);
        }
        planted_at(job->p, sum);
        if (i > 0) {
            planted_free_block(job->p, before);
        }
        before = planted_alloc(job->p, 4 * GMD_MIB);
        planted_train(job);
    }
}

TEST_F(job, values_of_a_states_size_on_the_way_to_it_are_the_graph_of_a_recursion)
{
    move_in_parts(*state, 4 * GMD_MIB);
    assert_found(((planted_job *)*state)->p, GMD_FINDING_HIDDEN_STATE);
}

TEST_F(job, values_of_several_sizes_that_no_module_makes_are_of_objects)
{
    move_in_parts(*state, 6 * GMD_MIB);
    assert_found(((planted_job *)*state)->p, GMD_FINDING_REFERENCE_CYCLE);
}

/* Modules make two blocks that stay and, in another function, a result: the model takes it, and it
 * goes in the backward() of the next iteration, or between that one's two blocks. */
static void move_by_the_model(planted_job *job, bool backward_frees)
{
    uint32_t encode = planted_origin(job->p, "torch/nn/modules/conv.py:548 forward "
                                             "torch/nn/modules/module.py:1790 _call_impl "
                                             "train.py:40 encode train.py:99 <module>");
    uint32_t decode = planted_origin(job->p, "torch/nn/modules/conv.py:548 forward "
                                             "torch/nn/modules/module.py:1790 _call_impl "
                                             "train.py:50 decode train.py:99 <module>");
    size_t before = 0;
    for (int i = 0; i < ITERATIONS; i++) {
        planted_at(job->p, encode);
        planted_alloc(job->p, 6 * GMD_MIB);
        if (i > 0 && !backward_frees) {
            planted_free_block(job->p, before);
        }
        planted_alloc(job->p, 8 * GMD_MIB);
        planted_at(job->p, decode);
        size_t result = planted_alloc(job->p, 4 * GMD_MIB);
        planted_forward(job);
        planted_backward(job, false);
        if (i > 0 && backward_frees) {
            planted_free_block(job->p, before);
        }
        planted_step(job);
        planted_zero_grad(job);
        before = result;
    }
}

TEST_F(job, a_result_that_the_next_iterations_backward_frees_was_taken_by_the_model)
{
    move_by_the_model(*state, true);
    assert_found(((planted_job *)*state)->p, GMD_FINDING_HIDDEN_STATE);
}

TEST_F(job, a_result_that_goes_on_its_way_through_the_model_is_no_state)
{
    move_by_the_model(*state, false);
    assert_found(((planted_job *)*state)->p, GMD_FINDING_RETAINED_GRAPH);
}

/* What stays beside the training: an output of a layer, and what the program's own line makes of
 * it, of these bytes. */
static void keep_beside_training(planted_job *job, uint64_t last_bytes)
{
    uint32_t layer = planted_origin(job->p, "torch/nn/modules/conv.py:548 forward "
                                            "torch/nn/modules/module.py:1790 _call_impl "
                                            "train.py:40 follow train.py:99 <module>");
    uint32_t sum = planted_origin(job->p, "train.py:41 follow train.py:99 <module>");
    for (int i = 0; i < ITERATIONS; i++) {
        planted_forward(job);
        planted_at(job->p, layer);
        planted_alloc(job->p, 5 * GMD_MIB);
        planted_at(job->p, sum);
        planted_alloc(job->p, last_bytes);
        planted_backward(job, false);
        planted_step(job);
        planted_zero_grad(job);
    }
}

TEST_F(job, a_graph_beside_the_training_that_ends_like_what_it_is_made_of_leads_to_a_state)
{
    keep_beside_training(*state, 5 * GMD_MIB);
    assert_found(((planted_job *)*state)->p, GMD_FINDING_HIDDEN_STATE);
}

TEST_F(job, one_that_ends_with_a_number_is_retained)
{
    keep_beside_training(*state, 4);
    assert_found(((planted_job *)*state)->p, GMD_FINDING_RETAINED_GRAPH);
}

/* The function that trains calls backward(). */
static void call_backward(planted_job *job)
{
    planted_at(job->p, planted_origin(job->p, "torch/autograd/__init__.py:120 _make_grads "
                                              "torch/autograd/__init__.py:340 backward "
                                              "train.py:12 train train.py:99 <module>"));
    planted_free_block(job->p, planted_alloc(job->p, 4));
    planted_train(job);
}

/* A simulator is stepped in plain operations; several of a step's values stay, of a state's size.
 */
TEST_F(job, values_that_lines_of_a_simulator_keep_beside_the_training_lead_to_a_state)
{
    planted_job *job = *state;
    const char *const lines[] = {"train.py:74 step train.py:99 <module>",
                                 "train.py:75 step train.py:99 <module>",
                                 "train.py:76 step train.py:99 <module>"};
    for (int i = 0; i < ITERATIONS; i++) {
        planted_forward(job);
        for (size_t k = 0; k < sizeof lines / sizeof *lines; k++) {
            planted_at(job->p, planted_origin(job->p, lines[k]));
            planted_alloc(job->p, 4 * GMD_MIB);
        }
        planted_backward(job, false);
        planted_step(job);
        planted_zero_grad(job);
    }
    assert_found(job->p, GMD_FINDING_HIDDEN_STATE);
}

/* A step of something that the program spells out keeps much, and replaces a small value by the
 * next one, in a line of this function. */
static void replace_in(planted_job *job, const char *function)
{
    char frames[2][96];
    for (int i = 0; i < 2; i++) {
        snprintf(frames[i], sizeof frames[i], "train.py:%d %s train.py:99 <module>", 70 + i,
                 function);
    }
    size_t angles = 0;
    for (int i = 0; i < ITERATIONS; i++) {
        planted_at(job->p, planted_origin(job->p, frames[0]));
        planted_alloc(job->p, 14 * GMD_MIB);
        planted_at(job->p, planted_origin(job->p, frames[1]));
        size_t next = planted_alloc(job->p, 120 * GMD_KIB);
        if (i > 0) {
            planted_free_block(job->p, angles);
        }
        angles = next;
        call_backward(job);
    }
}

TEST_F(job, what_an_object_replaces_in_the_function_that_keeps_much_is_a_state)
{
    replace_in(*state, "step");
    assert_found(((planted_job *)*state)->p, GMD_FINDING_HIDDEN_STATE);
}

/* With the stacks of allocations, frees tell of no line that replaces anything. */
TEST_F(job, where_frees_have_the_stacks_of_allocations_nothing_is_known_to_be_replaced)
{
    planted_copy_frames_to_frees(((planted_job *)*state)->p);
    replace_in(*state, "step");
    assert_found(((planted_job *)*state)->p, GMD_FINDING_RETAINED_GRAPH);
}

TEST_F(job, a_variable_of_the_loop_is_none)
{
    planted_job *job = *state;
    replace_in(job, "train");
    gmd_job_findings findings = planted_findings(job->p, 0);
    assert_int_equal(findings.count, 1);
    assert_int_not_equal(findings.items[0].class, GMD_FINDING_HIDDEN_STATE);
    gmd_job_findings_free(&findings);
}

/* The loop takes an average over a second pass of the model, whose graph stays; it begins with a
 * value from before. Or a number of each iteration stays, too: a list has it. */
static void take_average(planted_job *job, bool keeps_numbers)
{
    uint32_t layer = planted_origin(job->p, "torch/nn/modules/conv.py:548 forward "
                                            "torch/nn/modules/module.py:1790 _call_impl "
                                            "train.py:21 train train.py:99 <module>");
    uint32_t other = planted_origin(job->p, "train.py:22 train train.py:99 <module>");
    planted_at(job->p, planted_origin(job->p, "train.py:9 train train.py:99 <module>"));
    size_t average = planted_alloc(job->p, 2 * GMD_MIB);
    for (int i = 0; i < ITERATIONS; i++) {
        planted_at(job->p, layer);
        planted_alloc(job->p, 6 * GMD_MIB);
        planted_at(job->p, other);
        planted_alloc(job->p, 3 * GMD_MIB);
        if (keeps_numbers) {
            planted_alloc(job->p, 4);
        }
        call_backward(job);
        planted_at(job->p, planted_origin(job->p, "train.py:25 train train.py:99 <module>"));
        size_t next = planted_alloc(job->p, 2 * GMD_MIB);
        planted_free_block(job->p, average);
        average = next;
    }
}

TEST_F(job, a_variable_that_begins_with_a_value_from_before_the_loop_is_a_state)
{
    take_average(*state, false);
    assert_found(((planted_job *)*state)->p, GMD_FINDING_HIDDEN_STATE);
}

TEST_F(job, beside_a_list_of_numbers_it_may_be_detached)
{
    take_average(*state, true);
    assert_found(((planted_job *)*state)->p, GMD_FINDING_RETAINED_GRAPH);
}
