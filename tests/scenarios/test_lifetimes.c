/* When memory is freed: Python's rules for variables, temporaries, containers. */
#include "gmd_test.h"
#include "scenario_bench.h"

static void assert_bytes(const char *script, const char *label, uint64_t expected)
{
    bench *run = bench_run(script);
    bench_assert_ok(run);
    assert_int_equal(bench_at(run, label), expected);
    bench_free(run);
}

TEST_F(bench, rebinding_frees_the_old_value_after_the_new_one_is_there)
{
    bench *run = bench_run("x = empty { 256 }\n"
                           "x = empty { 256 }\n"
                           "phase 'end'");
    bench_assert_ok(run);
    assert_int_equal(bench_at(run, "end"), 1024);
    assert_int_equal(bench_peak_at(run, "end"), 2048);
}

TEST(nil_deletes_a_variable)
{
    assert_bytes("x = empty { 256 } x = nil phase 'end'", "end", 0);
}

TEST(two_variables_of_one_tensor_share_it)
{
    assert_bytes("x = empty { 256 } y = x x = nil phase 'end'", "end", 1024);
}

TEST(a_view_keeps_the_storage)
{
    assert_bytes("x = empty { 256 } y = x:view { 16, 16 } x = nil phase 'end'", "end", 1024);
}

TEST(a_temporary_dies_when_the_call_that_it_is_passed_to_returns)
{
    assert_bytes("x = relu(empty { 256 }) phase 'end'", "end", 1024);
}

TEST(a_temporary_in_a_table_is_consumed_too)
{
    assert_bytes("m = nn.Sequential { nn.Linear { 128, 1, bias = false } } m = nil phase 'end'",
                 "end", 0);
}

TEST(a_result_that_nobody_takes_dies_with_its_statement)
{
    assert_bytes("empty { 256 } phase 'end'", "end", 0);
}

TEST(all_values_of_a_multiple_assignment_live)
{
    assert_bytes("x, y, z = empty { 256 }, empty { 256 }, empty { 256 } phase 'end'", "end", 3072);
}

TEST(a_helper_does_not_kill_the_temporaries_of_its_caller)
{
    assert_bytes(
        "calls = 0\n"
        "function helper(t) calls = calls + 1; scratch = empty { 256 }; return relu(t) end\n"
        "x = empty { 256 } + helper(empty { 256 })\n"
        "scratch = nil\n"
        "phase 'end'",
        "end", 1024);
}

TEST(a_tail_call_does_not_kill_the_temporaries_of_the_function_it_replaces)
{
    assert_bytes("n = 0\n"
                 "function inner(t) n = n + 1; return relu(t) end\n"
                 "function outer() return inner(empty { 256 }) end\n"
                 "x = outer()\n"
                 "phase 'end'",
                 "end", 1024);
}

TEST_F(bench, a_hold_keeps_a_value_to_the_end_of_its_block)
{
    bench *run = bench_run("do\n"
                           "  local h <close> = hold(empty { 256 })\n"
                           "  y = relu(h)\n"
                           "  y = relu(h)\n"
                           "  phase 'inside'\n"
                           "end\n"
                           "phase 'after'");
    bench_assert_ok(run);
    assert_int_equal(bench_at(run, "inside"), 2048);
    assert_int_equal(bench_at(run, "after"), 1024);
}

TEST_F(bench, a_local_kept_too_long_is_an_error_with_file_line_and_remedy)
{
    bench *run = bench_run("local t = empty { 256 }\n"
                           "x = relu(t)\n"
                           "y = relu(t)\n");
    bench_assert_refused(run, ".lua:4: this tensor is gone");
    bench_assert_refused(run, "assign it to a global, or hold(x)");
}

TEST_F(bench, a_lua_table_is_no_reference)
{
    bench *run = bench_run("t = { empty { 256 } }\n"
                           "phase 'next'\n"
                           "x = relu(t[1])");
    bench_assert_refused(run, ".lua:4: this tensor is gone");
    assert_int_equal(bench_at(run, "next"), 0);
}

TEST_F(bench, a_list_is_a_reference)
{
    bench *run = bench_run("kept = list()\n"
                           "for i = 1, 3 do kept:append(empty { 256 }) end\n"
                           "phase 'three'\n"
                           "kept:pop()\n"
                           "phase 'two'\n"
                           "kept:clear()\n"
                           "phase 'none'");
    bench_assert_ok(run);
    assert_int_equal(bench_at(run, "three"), 3072);
    assert_int_equal(bench_at(run, "two"), 2048);
    assert_int_equal(bench_at(run, "none"), 0);
}

TEST_F(bench, an_attribute_is_a_reference)
{
    bench *run = bench_run("o = object()\n"
                           "o.data = empty { 256 }\n"
                           "o.name = 'plain values are kept, too'\n"
                           "phase 'set'\n"
                           "assert(o.name == 'plain values are kept, too')\n"
                           "o.data = nil\n"
                           "phase 'deleted'");
    bench_assert_ok(run);
    assert_int_equal(bench_at(run, "set"), 1024);
    assert_int_equal(bench_at(run, "deleted"), 0);
}

TEST(a_long_chain_of_objects_is_freed_without_deep_recursion)
{
    assert_bytes("head = object()\n"
                 "for i = 1, 100000 do\n"
                 "  node = object() node.next = head head = node\n"
                 "end\n"
                 "node.data = empty { 256 }\n"
                 "node = nil head = nil\n"
                 "phase 'end'",
                 "end", 0);
}

TEST_F(bench, everything_is_freed_at_the_end)
{
    bench *run = bench_run("a, b = object(), object()\n"
                           "a.other = b b.other = a a.data = empty { 256 }\n"
                           "m = nn.Linear { 8, 8 }\n"
                           "y = m(empty { 4, 8 })\n"
                           "local kept = hold(empty { 256 })\n");
    bench_assert_ok(run);
    assert_true(run->max_allocated > 0);
    assert_int_equal(run->allocated, 0);
}

/* --- the order of frees ------------------------------------------------------------------- */

/* Runs the script, at whose end nothing is left, and compares the bytes of its latest frees with
 * those given, the earliest first. */
static void assert_freed(const char *script, const uint64_t *bytes, size_t count)
{
    bench *run = bench_run(script);
    bench_assert_ok(run);
    assert_int_equal(run->allocated, 0);
    for (size_t i = 0; i < count; i++) {
        assert_int_equal(run->freed[count - 1 - i], bytes[i]);
    }
    bench_free(run);
}

#define FREED(...)                                                                                 \
    (const uint64_t[]){__VA_ARGS__}, sizeof((const uint64_t[]){__VA_ARGS__}) / sizeof(uint64_t)

#define THREE_ITEMS                                                                                \
    "l = list() l:append(empty { 128 }) l:append(empty { 256 }) l:append(empty { 384 })\n"

TEST(a_list_frees_its_last_item_first)
{
    assert_freed(THREE_ITEMS "l = nil", FREED(1536, 1024, 512));
}

TEST(a_list_that_is_cleared_frees_its_last_item_first)
{
    assert_freed(THREE_ITEMS "l:clear()", FREED(1536, 1024, 512));
}

TEST(a_list_that_the_collector_finds_frees_its_last_item_first)
{
    assert_freed(THREE_ITEMS "l:append(l) l = nil gc.collect()", FREED(1536, 1024, 512));
}

TEST(an_object_frees_its_first_attribute_first)
{
    assert_freed("o = object() o.a = empty { 128 } o.b = empty { 256 } o = nil", FREED(512, 1024));
}

TEST(a_tensor_frees_its_graph_before_its_own_memory)
{
    assert_freed("w = empty { 256, requires_grad = true }\n"
                 "loss = (w + w):square():sum()\n"
                 "loss = nil w = nil",
                 FREED(1024, 4, 1024)); /* w + w, the loss, w */
}

TEST(a_parameter_frees_its_gradient_before_its_own_memory)
{
    bench *run = bench_run("w = empty { 256, requires_grad = true }\n"
                           "loss = w:sum() loss:backward() loss = nil w = nil");
    bench_assert_ok(run);
    assert_int_equal(run->freed[1], 1024);
    assert_int_equal(run->freed[0], 1024);
    assert_true(run->freed_ids[1] > run->freed_ids[0]);
    bench_free(run);
}

TEST(a_model_frees_its_parameters_and_layers_from_the_first_on)
{
    assert_freed("m = nn.Sequential { nn.Linear { 128, 1 }, nn.Linear { 256, 2 } } m = nil",
                 FREED(512, 4, 2048, 8));
}

TEST(an_optimizer_frees_all_state_before_the_last_parameter_and_then_the_others)
{
    assert_freed("p = empty { 128, requires_grad = true }\n"
                 "q = empty { 256, requires_grad = true }\n"
                 "o = optim.SGD { p, q, lr = 1, momentum = 0.9 }\n"
                 "loss = p:sum() + q:sum() loss:backward() loss = nil\n"
                 "o:step() o:zero_grad() p = nil q = nil o = nil",
                 FREED(512, 1024, 1024, 512));
}
