/* The user's own line, and the parts of PyTorch that a stack goes through. */
#include "gmd_places.h"
#include "planted.h"

static int open_planted(void **state)
{
    *state = planted_new();
    return 0;
}

static int close_planted(void **state)
{
    planted_free(*state);
    return 0;
}

FIXTURE(history, open_planted, close_planted);

static gmd_place place_of(planted *p, uint32_t origin, unsigned *parts)
{
    gmd_places places;
    gmd_error error;
    const gmd_snapshot *s = planted_snapshot(p);
    assert_int_equal(gmd_places_make(&places, &s->origins, &error), GMD_OK);
    gmd_place place = gmd_places_get(&places, gmd_places_frame(&places, origin));
    if (parts) {
        *parts = gmd_places_parts(&places, origin);
    }
    gmd_places_free(&places);
    return place;
}

TEST_F(history, the_innermost_line_that_is_no_librarys_is_the_users)
{
    uint32_t origin = planted_origin(*state, "/x/site-packages/torch/nn/functional.py:1 relu "
                                             "model.py:7 forward train.py:3 <module>");
    gmd_place place = place_of(*state, origin, NULL);
    assert_string_equal(place.file, "model.py");
    assert_int_equal(place.line, 7);
}

/* Frames of C++ were recorded, too. */
TEST_F(history, a_thread_without_python_is_no_place_in_a_program_of_python)
{
    planted_at(*state, planted_origin(*state, "torch/nn/functional.py:1 relu train.py:3 main"));
    planted_alloc(*state, GMD_MIB);
    uint32_t origin = planted_origin(*state, "libtorch_cpu.so:5 torch::autograd::Engine::main "
                                             "/lib/libc.so.6:1220299 ??");
    assert_string_equal(place_of(*state, origin, NULL).file, "");
}

static unsigned parts_of(planted *p, const char *frames)
{
    unsigned parts;
    place_of(p, planted_origin(p, frames), &parts);
    return parts;
}

TEST_F(history, the_thread_of_backward_calls_a_function_that_the_program_does_not)
{
    planted_origin(*state, "train.py:7 forward train.py:3 <module>");
    assert_true(parts_of(*state, "train.py:9 make train.py:8 unpack") & GMD_PART_BACKWARD);
}

TEST_F(history, a_function_that_the_program_calls_is_not_of_that_thread)
{
    planted_origin(*state, "train.py:7 forward train.py:3 <module>");
    assert_false(parts_of(*state, "train.py:7 forward") & GMD_PART_BACKWARD);
}

TEST_F(history, a_thread_that_a_library_starts_is_not_that_one)
{
    planted_origin(*state, "train.py:7 forward train.py:3 <module>");
    assert_false(parts_of(*state, "train.py:8 test /usr/lib/python3.12/threading.py:1032 "
                                  "_bootstrap") &
                 GMD_PART_BACKWARD);
}

TEST_F(history, where_no_stack_goes_out_to_the_programs_start_no_thread_is_known)
{
    assert_false(parts_of(*state, "train.py:9 make train.py:8 unpack") & GMD_PART_BACKWARD);
}

TEST_F(history, in_a_program_without_python_it_is)
{
    uint32_t origin = planted_origin(*state, "rmm/pool.hpp:5 allocate serve.cpp:9 main");
    assert_string_equal(place_of(*state, origin, NULL).file, "serve.cpp");
}

TEST_F(history, of_libraries_alone_the_outermost_line_stands)
{
    uint32_t origin =
        planted_origin(*state, "torch/optim/sgd.py:1 step torch/autograd/function.py:2 apply");
    gmd_place place = place_of(*state, origin, NULL);
    assert_true(place.is_library);
    assert_int_equal(place.line, 2);
}

TEST_F(history, no_frames_are_no_place)
{
    assert_string_equal(place_of(*state, 0, NULL).file, "");
}

TEST_F(history, what_has_no_python_is_of_the_thread_of_backward)
{
    unsigned parts;
    planted_origin(*state, "train.py:3 <module>");
    place_of(*state, 0, &parts);
    assert_true(parts & GMD_PART_BACKWARD);
}

TEST_F(history, python_that_the_engine_calls_is_of_backward_too)
{
    unsigned parts;
    uint32_t origin =
        planted_origin(*state, "flow.py:9 backward torch/autograd/function.py:317 apply");
    place_of(*state, origin, &parts);
    assert_true(parts & GMD_PART_BACKWARD);
}

TEST_F(history, a_functions_forward_is_not)
{
    unsigned parts;
    uint32_t origin = planted_origin(
        *state, "flow.py:9 forward torch/autograd/function.py:317 apply train.py:3 <module>");
    place_of(*state, origin, &parts);
    assert_int_equal(parts, GMD_PART_FUNCTION | GMD_PART_PYTHON);
}

TEST_F(history, the_lines_that_called_a_line_are_those_outside_of_it)
{
    gmd_places places;
    gmd_error error;
    uint32_t callers[4];
    uint32_t origin = planted_origin(*state, "/x/site-packages/torch/nn/functional.py:1 relu "
                                             "net.py:7 forward torch/nn/modules/module.py:1 inner "
                                             "train.py:9 step train.py:3 <module>");
    assert_int_equal(gmd_places_make(&places, &planted_snapshot(*state)->origins, &error), GMD_OK);
    uint32_t frame = gmd_places_frame(&places, origin);
    assert_int_equal(gmd_places_callers(&places, frame, callers, 4), 2);
    assert_int_equal(gmd_places_get(&places, callers[0]).line, 9);
    assert_int_equal(gmd_places_get(&places, callers[1]).line, 3);
    gmd_places_free(&places);
}

TEST_F(history, the_lines_that_called_a_stack_are_its_own)
{
    gmd_places places;
    gmd_error error;
    uint32_t callers[4];
    planted_origin(*state, "pool.py:4 take train.py:7 load train.py:3 <module>");
    uint32_t origin = planted_origin(*state, "pool.py:4 take train.py:9 step train.py:3 <module>");
    assert_int_equal(gmd_places_make(&places, &planted_snapshot(*state)->origins, &error), GMD_OK);
    uint32_t stack = gmd_origins_get(places.origins, origin).stack;
    assert_int_equal(gmd_places_callers_in(&places, stack, callers, 4), 2);
    assert_int_equal(gmd_places_get(&places, callers[0]).line, 9);
    gmd_places_free(&places);
}

TEST_F(history, a_file_that_a_package_made_as_it_ran_is_the_packages)
{
    assert_true(gmd_is_library_file("/tmp/torch_geometric.nn.conv.gat_conv_propagate_q7.py"));
    assert_true(gmd_is_library_file("/tmp/torchinductor_me/ab/cab3.py"));
    assert_false(gmd_is_library_file("src/timm.py"));
}

#define OPTIMIZER "torch/optim/adam.py:227 step torch/optim/optimizer.py:533 wrapper "

TEST_F(history, what_a_closure_calls_is_not_of_the_optimizer)
{
    assert_false(parts_of(*state, "net.py:7 forward torch/nn/modules/module.py:1790 _call_impl "
                                  "loops/automatic.py:140 closure " OPTIMIZER "train.py:3 main") &
                 GMD_PART_OPTIMIZER);
    assert_false(parts_of(*state, "torch/nn/modules/module.py:1790 _call_impl " OPTIMIZER
                                  "train.py:3 main") &
                 GMD_PART_OPTIMIZER);
    assert_true(parts_of(*state, OPTIMIZER "train.py:3 main") & GMD_PART_OPTIMIZER);
}

TEST_F(history, an_optimizer_of_the_programs_own_is_one)
{
    assert_true(parts_of(*state, "lion.py:9 update lion.py:7 step torch/optim/optimizer.py:533 "
                                 "wrapper train.py:3 main") &
                GMD_PART_OPTIMIZER);
}

#define COMPILED "torch/_functorch/_aot_autograd/runtime_wrappers.py:9 forward "

TEST_F(history, the_function_that_runs_a_compiled_model_is_none_of_the_programs)
{
    assert_int_equal(parts_of(*state, COMPILED "torch/autograd/function.py:317 apply "
                                               "net.py:7 forward train.py:3 <module>"),
                     GMD_PART_PYTHON | GMD_PART_INSIDE);
    const char *back = "net.py:7 forward " COMPILED "torch/autograd/function.py:317 apply";
    assert_true(parts_of(*state, back) & GMD_PART_BACKWARD);
    assert_false(parts_of(*state, back) & (GMD_PART_PYTHON | GMD_PART_FUNCTION));
    assert_string_equal(place_of(*state, planted_origin(*state, back), NULL).file, "");
}

TEST_F(history, torch_autograd_grad_is_told_from_backward)
{
    assert_true(parts_of(*state, "torch/autograd/__init__.py:505 grad ewc.py:3 sample") &
                GMD_PART_GRAD);
    assert_false(parts_of(*state, "torch/autograd/__init__.py:381 backward train.py:3 main") &
                 GMD_PART_GRAD);
}

TEST_F(history, a_module_is_called_in_some_functions_of_its_file_and_moved_in_others)
{
    assert_true(parts_of(*state, "torch/nn/modules/module.py:1790 _call_impl train.py:3 main") &
                GMD_PART_MODULE);
    assert_int_equal(parts_of(*state, "torch/nn/modules/module.py:1300 convert train.py:3 main"),
                     GMD_PART_LAYER | GMD_PART_PYTHON | GMD_PART_INSIDE);
}

TEST_F(history, functional_makes_no_layer)
{
    assert_int_equal(parts_of(*state, "torch/nn/functional.py:9 mse_loss train.py:3 main"),
                     GMD_PART_PYTHON | GMD_PART_INSIDE);
}

TEST_F(history, attention_is_no_activation_function_though_its_file_is_theirs)
{
    assert_true(parts_of(*state, "torch/nn/functional.py:1701 relu "
                                 "torch/nn/modules/activation.py:144 forward train.py:3 main") &
                GMD_PART_ACTIVATION);
    assert_false(parts_of(*state, "torch/nn/functional.py:6489 multi_head_attention_forward "
                                  "torch/nn/modules/activation.py:1488 forward train.py:3 main") &
                 GMD_PART_ACTIVATION);
}

TEST_F(history, the_users_innermost_function_tells_whether_an_object_is_made)
{
    assert_true(parts_of(*state, "node.py:4 __init__ train.py:3 main") & GMD_PART_CONSTRUCTOR);
    assert_false(parts_of(*state, "node.py:4 make node.py:9 __init__") & GMD_PART_CONSTRUCTOR);
}

TEST_F(history, what_a_layer_calls_is_a_hook_unless_it_is_a_forward)
{
    assert_true(parts_of(*state, "train.py:9 keep torch/nn/modules/module.py:1806 inner") &
                GMD_PART_HOOK);
    assert_false(parts_of(*state, "net.py:9 forward torch/nn/modules/module.py:1790 _call_impl") &
                 GMD_PART_HOOK);
}

TEST_F(history, a_word_of_a_functions_name_tells_of_an_evaluation)
{
    assert_true(parts_of(*state, "train.py:9 step train.py:20 run_evaluation") &
                GMD_PART_EVALUATION);
    assert_true(parts_of(*state, "train.py:9 step train.py:20 test_epoch") & GMD_PART_EVALUATION);
    assert_false(parts_of(*state, "train.py:9 step train.py:20 retrieval") & GMD_PART_EVALUATION);
    assert_false(parts_of(*state, "train.py:9 step train.py:20 keep_latest") & GMD_PART_EVALUATION);
}

TEST(files_of_the_interpreter_and_of_shared_libraries_are_libraries)
{
    static const char *const libraries[] = {"/usr/bin/python3.12",
                                            "/lib/libc.so.6",
                                            "/x/torch/lib/libtorch_cpu.so",
                                            "/usr/lib/python3.12/runpy.py",
                                            "??",
                                            "<frozen importlib._bootstrap>",
                                            "engine.cpp"};
    for (size_t i = 0; i < sizeof libraries / sizeof *libraries; i++) {
        assert_true(gmd_is_library_file(libraries[i]));
    }
}

TEST(a_script_and_a_notebooks_cell_are_the_users)
{
    assert_false(gmd_is_library_file("/workspace/train.py"));
    assert_false(gmd_is_library_file("<ipython-input-3-abc>"));
    assert_false(gmd_is_library_file("python_tools/train.py"));
}
