/* Opening scenarios, their parameters, and everything that can be wrong with a script. */
#include "gmd_test.h"
#include "scenario_bench.h"

#include <stdio.h>
#include <string.h>

static void assert_refused(const char *text, const char *message)
{
    bench *run = bench_run(text);
    bench_assert_refused(run, message);
    bench_free(run);
}

static void assert_file_refused(const char *text, const char *message)
{
    bench *run = bench_run_file_text(text);
    bench_assert_refused(run, message);
    assert_int_equal(run->requests, 0);
    bench_free(run);
}

static void assert_param_refused(const char *params, const char *message)
{
    bench *run = bench_run_named("gradient_accumulation", params, 0);
    bench_assert_refused(run, message);
    assert_int_equal(run->requests, 0);
    bench_free(run);
}

static gmd_scenario *opened;

static int close_opened(void **state)
{
    (void)state;
    gmd_scenario_close(opened);
    opened = NULL;
    return 0;
}

FIXTURE(scenario, NULL, close_opened);

TEST_F(scenario, an_unknown_scenario_is_refused_with_the_known_ones)
{
    gmd_error error;
    gmd_status status = gmd_scenario_open(&opened, "resnet", GMD_SCENARIO_FOLDER, &error);
    assert_int_equal(status, GMD_BAD_INPUT);
    assert_null(opened);
    assert_non_null(
        strstr(error.text, "unknown scenario 'resnet' (did you mean resnet50?); there are: "));
    assert_non_null(strstr(error.text, " gradient_accumulation, "));
    assert_non_null(strstr(error.text, ", variable_batch")); /* the last: none is cut off */
}

TEST_F(bench, parts_of_a_sequential_have_numbers_from_either_end)
{
    bench *run =
        bench_run("m = nn.Sequential { nn.Linear { 8, 8 }, nn.ReLU(), nn.Linear { 8, 4 } }\n"
                  "assert(#m == 3 and m[4] == nil and m[0] == nil and m[-4] == nil)\n"
                  "assert(m[1]:nbytes() == 288 and m[-1]:nbytes() == 144)\n"
                  "n = 0\n"
                  "for _, part in ipairs(m) do n = n + part:nbytes() end\n"
                  "assert(n == m:nbytes())\n"
                  "m[1]:requires_grad_(false)\n"
                  "y = m[1](randn { 2, 8 })\n"
                  "assert(y.grad_fn == nil)");
    assert_string_equal(run->error.text, "");
    run = bench_run("m = nn.Linear { 8, 8 }\nx = m[1]");
    assert_int_equal(run->status, GMD_BAD_INPUT);
}

TEST_F(bench, a_tag_is_a_word)
{
    assert_file_refused("scenario { name = 'a', summary = 'b', tags = { 'two words' } }",
                        ":1: a tag is a word of small letters, digits and '_'");
    assert_file_refused("scenario { name = 'a', summary = 'b', tags = 'leak' }", "tags = {");
}

TEST_F(scenario, a_scenario_has_the_tags_that_it_declares)
{
    gmd_error error;
    assert_int_equal(gmd_scenario_open(&opened, "hidden_state", GMD_SCENARIO_FOLDER, &error),
                     GMD_OK);
    assert_string_equal(gmd_scenario_tag_at(opened, 0), "retention");
    assert_null(gmd_scenario_tag_at(opened, 1));
    assert_true(gmd_scenario_has_tag(opened, "retention"));
    assert_false(gmd_scenario_has_tag(opened, "pressure"));
}

TEST_F(scenario, a_name_does_not_lead_out_of_the_folder)
{
    gmd_error error;
    const char *name = "../scenarios/hidden_state";
    assert_int_equal(gmd_scenario_open(&opened, name, GMD_SCENARIO_FOLDER, &error), GMD_BAD_INPUT);
}

TEST_F(scenario, a_missing_file_is_refused_by_name)
{
    gmd_error error;
    assert_int_equal(gmd_scenario_open(&opened, "no/such.lua", ".", &error), GMD_BAD_INPUT);
    assert_non_null(strstr(error.text, "no/such.lua"));
}

TEST_F(bench, a_bound_of_nothing_is_refused)
{
    bench *run = bench_run("x = 1\nbound { allocated = 0 }");
    bench_assert_refused(run, ":3: bound { } needs allocated = BYTES or reserved = BYTES, above 0");
    run = bench_run("bound { alocated = 1 }");
    bench_assert_refused(run, "alocated");
}

TEST_F(bench, a_module_cannot_become_part_of_itself)
{
    static const char *const cycles[] = {
        "m = nn.Sequential {}\nn = nn.Sequential { m }\nm:append(n)\ny = m(randn { 1 })",
        "m = nn.Sequential {}\n\nm:append(nn.Residual(m))\nm:nbytes()",
        "m = nn.Sequential {}\n\nm:append(nn.Checkpointed(m))\nm:nbytes()",
        "m = nn.Sequential {}\n\nm:append(m)\noptim.SGD { m }",
    };
    for (size_t i = 0; i < sizeof cycles / sizeof *cycles; i++) {
        bench *run = bench_run(cycles[i]);
        bench_assert_refused(run, ":4: a module cannot be part of itself");
        bench_free(run);
    }
}

TEST_F(bench, modules_appended_to_the_innermost_are_nested_as_deep)
{
    bench *run = bench_run("m = nn.Sequential {}\ninner = m\nfor i = 1, 100000 do\n"
                           "  n = nn.Sequential {}\n  inner:append(n)\n  inner = n\nend\n"
                           "y = m(randn { 1 })");
    bench_assert_refused(run, ":6: modules are nested more than 64 deep");
}

TEST_F(bench, modules_of_shared_parts_are_refused_where_their_number_explodes)
{
    bench *run = bench_run("m = nn.Sequential {}\nfor i = 1, 60 do\n"
                           "  m = nn.Sequential { m, m }\nend\nm:nbytes()");
    bench_assert_refused(run, ":4: a module that is part of another can have 65536 parts");
}

TEST_F(bench, a_bound_counts_from_where_it_is_stated)
{
    bench *run = bench_run("x = empty { 1024 }\nx = nil\ny = empty { 256 }\n"
                           "bound { allocated = 2048 }\nz = empty { 256 }");
    bench_assert_ok(run);
    assert_int_equal(run->bound_count, 1);
    assert_int_equal(run->bounds[0].bytes, 2048);
    assert_int_equal(run->bounds[0].peak, 2048);
}

TEST_F(bench, an_error_without_a_place_gets_that_of_its_line)
{
    bench *run = bench_run("x = 1\nerror('bare', 0)");
    bench_assert_refused(run, ":3: bare");
    run = bench_run("x = 1\n\nerror({})");
    bench_assert_refused(run, ":4: the script raised an error that is not a string");
}

TEST_F(bench, brackets_that_the_parser_cannot_follow_are_reported_by_line)
{
    char text[1024] = "y = 1\nx = ";
    size_t used = strlen(text);
    memset(text + used, '(', 400);
    bench *run = bench_run(text);
    bench_assert_refused(run, ".lua:3: C stack overflow");
}

TEST_F(scenario, a_missing_folder_is_refused_by_name)
{
    gmd_error error;
    assert_int_equal(gmd_scenario_open(&opened, "x", "no/such", &error), GMD_BAD_INPUT);
    assert_non_null(strstr(error.text, "no/such"));
}

static void follow_name(void *context, const char *name)
{
    char *last = context;
    assert_true(strcmp(last, name) < 0);
    snprintf(last, 64, "%s", name);
}

TEST(the_folder_is_listed_sorted)
{
    char last[64] = "";
    gmd_error error;
    assert_int_equal(gmd_scenario_each(GMD_SCENARIO_FOLDER, follow_name, last, &error), GMD_OK);
    assert_string_equal(last, "vit");
}

TEST_F(scenario, a_scenario_tells_its_name_summary_and_parameters_in_order)
{
    gmd_scenario_param param;
    gmd_error error;
    assert_int_equal(gmd_scenario_open(&opened, "hidden_state", GMD_SCENARIO_FOLDER, &error),
                     GMD_OK);
    assert_string_equal(gmd_scenario_name(opened), "hidden_state");
    assert_non_null(strstr(gmd_scenario_summary(opened), "detach"));
    assert_true(gmd_scenario_param_at(opened, 0, &param));
    assert_string_equal(param.key, "leak");
    assert_string_equal(param.default_value, "true");
    assert_true(gmd_scenario_param_at(opened, 1, &param));
    assert_string_equal(param.key, "iterations");
    assert_string_equal(param.default_value, "25");
    assert_false(gmd_scenario_param_at(opened, 100, &param));
}

TEST_F(bench, an_unknown_parameter_is_refused_with_the_known_ones)
{
    assert_param_refused("lek=true",
                         "gradient_accumulation has no parameter 'lek' (did you mean leak?); "
                         "there are: leak, iterations, batch, classes, "
                         "max_instructions");
}

TEST_F(bench, a_value_of_the_wrong_type_is_refused_with_what_is_expected)
{
    assert_param_refused("leak=maybe", "parameter leak=maybe: expected true or false");
    assert_param_refused("iterations=many", "expected a whole number from 1 to 100000");
    assert_param_refused("iterations=0", "expected a whole number from 1 to 100000");
    assert_param_refused("batch=-1", "expected a whole number from 1 to 4096");
    assert_param_refused("iterations=", "expected a whole number");
}

TEST_F(bench, parameters_are_variables_that_cannot_be_assigned)
{
    const char *text = "scenario { name = 't', summary = 's', params = { { 'n', 3, 'count' } } }\n"
                       "assert(n == 3)\n"
                       "n = 4\n";
    bench *run = bench_run_file_text(text);
    bench_assert_refused(run, ".lua:3: 'n' is a parameter or a function of the engine");
}

TEST_F(bench, a_syntax_error_is_found_at_opening_with_file_and_line)
{
    assert_file_refused("scenario { name = 't', summary = 's' }\nfor i = 1 do end\n", ".lua:2: ");
}

TEST_F(bench, a_script_without_a_declaration_is_refused)
{
    assert_file_refused("local x = 1\n", "a scenario begins with scenario {");
    assert_file_refused("scenario { name = 't' }\n", ".lua:1: scenario { } needs summary");
    assert_file_refused("scenario { name = 't', summary = 's', params = { { 'x' } } }\n",
                        "the default is true, false, a number or a string");
}

#define PARAM(text) "scenario { name = 't', summary = 's', params = { { " text " } } }\n"

TEST_F(bench, a_misspelt_field_of_a_declaration_is_refused_with_the_known_ones)
{
    assert_file_refused("scenario { name = 't', summary = 's', param = {} }\n",
                        ".lua:1: 'param' is not known here (did you mean params?); there are: name "
                        "summary tags params");
    assert_file_refused(PARAM("'n', 3, 'h', min = 1"),
                        ".lua:1: 'min' is not known here; there are: least most");
}

TEST_F(bench, a_default_beyond_its_own_limits_is_refused_with_its_line)
{
    assert_file_refused(PARAM("'n', 5, 'h', least = 10, most = 20"),
                        ".lua:1: default: parameter n=5: expected a whole number from 10 to 20");
    assert_file_refused(PARAM("'n', 0/0, 'h'"), ".lua:1: default: parameter n=");
    assert_file_refused(PARAM("'n', true, 'h', least = 0"),
                        ".lua:1: parameter 'n': least does not fit its type");
}

TEST_F(bench, a_parameter_is_called_like_a_variable_of_its_own)
{
    assert_file_refused(PARAM("'two words', 1, 'h'"), "it is not a valid variable name");
    assert_file_refused(PARAM("'', 1, 'h'"), "it is not a valid variable name");
    assert_file_refused(PARAM("'max_instructions', 1, 'h'"), "max_instructions already");
}

TEST_F(bench, limits_hold_for_numbers_below_zero_and_for_those_with_a_fraction)
{
    bench *run = bench_run_file_text(PARAM("'n', -5, 'h', least = -10") "assert(n == -5)\n");
    bench_assert_ok(run);
    run = bench_run_file_text(PARAM("'n', 5, 'h', most = 1e6") "assert(n == 5)\n");
    bench_assert_ok(run);
    run = bench_run_named("mixture_of_experts", "skew=0.5", 0);
    bench_assert_refused(run, "parameter skew=0.5: expected a number from 1 to 1000");
}

TEST_F(bench, what_torch_refuses_of_a_tensors_type_is_refused)
{
    assert_refused("x = empty { 4, dtype = 'int64', requires_grad = true }\n",
                   ".lua:2: only floating types can require gradients, and this is int64");
    assert_refused("e = nn.Embedding { 4, 4 }\ny = e(randn { 4 })\n",
                   ".lua:3: Embedding takes numbers of entries, int64 or int32");
    assert_refused("x = randn { 4, requires_grad = true }\nx:to('int64'):sum():backward()\n",
                   ".lua:3: backward() on a tensor that has no graph");
}

TEST_F(bench, more_tensors_than_a_module_takes_are_refused)
{
    assert_refused("l = nn.Linear { 4, 4 }\ny = l(randn { 2, 4 }, randn { 2, 4 })\n",
                   ".lua:3: Linear takes 1 tensor, and here are 2");
    assert_refused("l = nn.GRU { 4, 4 }\nx = randn { 2, 3, 4 }\ny = l(x, x, x)\n",
                   ".lua:4: GRU takes 2 tensors, and here are 3");
}

TEST_F(bench, what_does_not_fit_is_not_copied)
{
    assert_refused("x = randn { 4 }\nx:copy_(randn { 5 })\n",
                   ".lua:3: copy_: shape [5] does not fit into [4]");
    assert_refused("x = randn { 4 }\nx:copy_()\n", ".lua:3: t:copy_: from: tensor expected");
    bench *run = bench_run("x = randn { 2, 4 }\nx:copy_(randn { 1, 4 }):copy_(randn { 4 })\n");
    bench_assert_ok(run);
}

TEST_F(bench, bytecode_is_refused)
{
    assert_file_refused("\x1bLua...", "attempt to load a binary chunk");
}

TEST_F(bench, a_runtime_error_names_file_and_line)
{
    assert_refused("x = 1\ny = x.field.more\n", ".lua:3: ");
    assert_refused("x = nn.Linear { 8 }\n",
                   ".lua:2: nn.Linear: out_features: a whole number expected");
    assert_refused("x = empty { 1, 2, -3 }\n",
                   ".lua:2: empty: sizes: -3 is not between 0 and 1099511627776");
    assert_refused(
        "x = empty { 8, dtipe = 'int64' }\n",
        ".lua:2: empty: 'dtipe' is not known here (did you mean dtype?); it is called as "
        "empty { sizes [, dtype = \"float32\", requires_grad = false] }");
    assert_refused("x = nn.Linear { 8, 8, bais = false }\n",
                   ".lua:2: nn.Linear: 'bais' is not known here (did you mean bias?)");
    assert_refused("x = relu(17)\n", ".lua:2: relu: tensor: tensor expected, got number");
    assert_refused("error({})\n", "an error that is not a string");
    assert_refused("error(42)\n", ".lua:2: 42");
}

TEST_F(bench, an_endless_loop_is_stopped_with_its_line)
{
    bench *run = bench_run_budget("\nwhile true do end\n", "1000000");
    bench_assert_refused(run, ".lua:3: the script used up its 1000000 instructions");
}

TEST_F(bench, pcall_does_not_stop_the_end_of_an_endless_loop)
{
    bench *run = bench_run_named("hidden_state", "max_instructions=10000 iterations=100000", 0);
    bench_assert_refused(run, "the script used up its 10000 instructions");
    run = bench_run_budget(
        "while true do pcall(function() while true do x = random(5) end end) end", "1000000");
    bench_assert_refused(run, "the script used up its");
}

/* Found by fuzz_scenario: a thousand million containers and a collection for each second one. */
TEST_F(bench, collections_count_as_instructions)
{
    bench *run = bench_run_budget("\ngc.set_threshold(1, 0, 0)\n"
                                  "gc.background { 1000000000, free_lists = 1000000000 }\n",
                                  "1000000");
    bench_assert_refused(run, ".lua:4: the script used up its 1000000 instructions");
}

TEST_F(bench, endless_recursion_and_endless_tables_are_errors)
{
    assert_refused("function f() return 1 + f() end\nf()\n", "stack overflow");
    assert_refused("local t, i = {}, 1\nwhile true do t[i] = i i = i + 1 end\n", "too much memory");
}

TEST_F(bench, modules_nested_without_end_are_refused)
{
    assert_refused("m = nn.ReLU()\nfor i = 1, 1000 do m = nn.Sequential { m } end\n",
                   ".lua:3: modules are nested more than 64 deep");
}

TEST_F(bench, the_outside_world_is_not_there)
{
    static const char *const names[] = {
        "io",         "os",          "require",        "load",       "loadfile",     "dofile",
        "debug",      "package",     "collectgarbage", "coroutine",  "setmetatable", "rawset",
        "string.rep", "string.find", "string.dump",    "math.random"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        char text[64];
        snprintf(text, sizeof text, "assert(%s == nil)\n", names[i]);
        bench *run = bench_run(text);
        bench_assert_ok(run);
        bench_free(run);
    }
}

TEST_F(bench, sizes_that_overflow_are_just_too_large)
{
    bench *run =
        bench_run_limited("x = empty { 1099511627776, 1099511627776, 1099511627776 }\n", 1 << 20);
    bench_assert_ok(run);
    assert_true(run->out_of_memory);
}
