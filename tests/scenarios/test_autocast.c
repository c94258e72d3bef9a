/* Which operations autocast converts, and for how long the copies live. The facts are the lists of
 * ATen/autocast_mode.h of PyTorch 2.11 for CUDA. */
#include "asks.h"
#include "call_text.h"
#include "gmd_autocast.h"

#include <stdio.h>
#include <string.h>

/* --- every operation has a class --------------------------------------------------------- */

static bool takes_tensors(const struct script_function *function)
{
    for (const struct script_parameter *each = function->takes; each->name; each++) {
        if (each->value == VALUE_TENSOR || each->value == VALUE_TENSORS) {
            return true;
        }
    }
    return false;
}

static bool is_operation(const struct script_group *group, const struct script_function *function)
{
    return strcmp(group->prefix, "t:") == 0 || strcmp(group->prefix, "nn.") == 0 ||
           (group->prefix[0] == '\0' && takes_tensors(function));
}

static void has_a_class(const struct script_group *group, const struct script_function *function,
                        void *context)
{
    char name[128];
    enum autocast_class class;
    size_t *missing = context;
    bool is_module = strcmp(group->prefix, "nn.") == 0;
    snprintf(name, sizeof name, "%s%s", is_module ? group->prefix : "", function->name);
    if (is_operation(group, function) && !autocast_class_of(name, &class)) {
        print_error("autocast.c has no class for %s\n", name);
        ++*missing;
    }
}

TEST(each_operation_of_scripts_has_a_class)
{
    size_t missing = 0;
    call_each(has_a_class, &missing);
    assert_int_equal(missing, 0);
}

static enum autocast_class class_of(const char *name)
{
    enum autocast_class class;
    assert_true(autocast_class_of(name, &class));
    return class;
}

TEST(a_module_has_the_class_of_the_operation_that_it_calls)
{
    assert_int_equal(class_of("nn.Linear"), AUTOCAST_LOWER);
    assert_int_equal(class_of("nn.LayerNorm"), AUTOCAST_WIDE);
    assert_int_equal(class_of("nn.Softmax"), AUTOCAST_WIDE_RESULT);
    assert_int_equal(class_of("nn.GELU"), AUTOCAST_UNCHANGED);
    assert_int_equal(class_of("square"), class_of("pow"));
}

TEST(what_is_no_operation_has_no_class)
{
    enum autocast_class class;
    assert_false(autocast_class_of("no_such_operation", &class));
}

/* --- copies and how long they live ------------------------------------------------------- */

#define NARROW(type) "a = randn { 16, 64, dtype = '" type "', requires_grad = true }"
#define CAST(call)   "out = autocast('bfloat16', function() return " call " end)"

/* Both the copy and the result are in 32 bits; a square saves what it was made of. */
TEST_F(bench, a_square_is_computed_in_32_bits_and_keeps_the_copy)
{
    assert_asks(NARROW("bfloat16"), CAST("a:square()"), "+4096 +4096",
                SUM "+4096 +4096 +4096 -4096 -4096 -4096 +2048 -4096" SUM_END);
    assert_asks(NARROW("bfloat16"), CAST("a ^ 3"), "+4096 +4096", NULL);
    assert_asks(NARROW("bfloat16"), CAST("a:log()"), "+4096 +4096", NULL);
}

TEST_F(bench, what_saves_its_result_drops_the_copy_at_once)
{
    assert_asks(NARROW("bfloat16"), CAST("a:exp()"), "+4096 +4096 -4096",
                SUM "+4096 +2048 -4096" SUM_END);
    assert_asks(NARROW("bfloat16"), CAST("3 / a"), "+4096 +4096 -4096 +4096", NULL);
}

TEST_F(bench, a_sum_in_32_bits_reads_16_without_a_copy)
{
    assert_asks(NARROW("bfloat16"), CAST("a:sum(2)"), "+64", SUM "+2048" SUM_END);
    assert_asks(NARROW("bfloat16"), "out = a:sum(2)", "+32", "+2 +2 +2048 -2 -2");
}

TEST_F(bench, a_softmax_copies_bfloat16_and_reads_float16_as_it_is)
{
    assert_asks(NARROW("bfloat16"), CAST("a:softmax()"), "+4096 +4096 -4096",
                SUM "+4096 +4096 -4096 +2048 -4096" SUM_END);
    assert_asks(NARROW("float16"), CAST("a:softmax()"), "+4096", SUM "+2048 +4096 -4096" SUM_END);
}

TEST_F(bench, operations_in_no_list_stay_in_16_bits)
{
    static const char *const calls[] = {"a:relu()", "a:gelu()", "a:sqrt()",
                                        "a:tanh()", "a / 2",    "a * 2"};
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
        char call[128];
        snprintf(call, sizeof call, CAST("%s"), calls[i]);
        assert_asks(NARROW("bfloat16"), call, "+2048", NULL);
    }
}

TEST_F(bench, what_is_in_32_bits_already_is_not_copied)
{
    assert_asks(A, CAST("a:exp()"), "+4096", NULL);
    assert_asks("a = randn { 16, 64, dtype = 'float64', requires_grad = true }", CAST("a:exp()"),
                "+8192", NULL);
    assert_asks("a = randint { 16, 64 }", CAST("a:sum()"), "+8", "");
}

TEST_F(bench, an_upsampled_image_has_32_bits)
{
    assert_asks(
        "x = randn { 2, 8, 8, 8, dtype = 'bfloat16' }\nu = nn.Upsample { scale_factor = 2 }",
        CAST("u(x)"), "+4096 +16384 -4096", "");
}

/* Classes: the loss converts the logarithms. Probabilities: only their sum has 32 bits. */
TEST_F(bench, a_cross_entropy_has_its_logarithms_in_16_bits)
{
    assert_asks(NARROW("bfloat16") "\nb = randint { 16 }", CAST("cross_entropy(a, b)"),
                "+2048 +4096 +4 +4", SUM "+4096 -4 -4096 +2048 -4096 +2048 -2048 -2048" SUM_END);
    assert_asks(NARROW("bfloat16") "\nb = rand { 16, 64, dtype = 'bfloat16' }",
                CAST("cross_entropy(a, b)"), "+2048 +2048 +4 +4 +4 -4 -4 -2048", NULL);
}

/* --- weights ----------------------------------------------------------------------------- */

#define TWICE(module, input)                                                                       \
    "autocast('bfloat16', function()\n  y = " module "(" input ")\n  phase 'once'\n  z = " module  \
    "(" input ")\n  phase 'twice'\nend)\n"

TEST_F(bench, a_weight_of_one_dimension_less_is_copied_once)
{
    bench *run =
        bench_run("m = nn.Conv1d { 8, 8, 3, bias = false }\n"
                  "x = randn { 2, 8, 34, dtype = 'bfloat16' }\nphase 'a'\n" TWICE("m", "x"));
    bench_assert_ok(run);
    assert_true(strstr(bench_asked_in(run, "once"), "+384 ") != NULL);
    assert_true(strstr(bench_asked_in(run, "twice"), "+384") == NULL);
}

TEST_F(bench, the_weights_of_a_cell_are_copied_once)
{
    bench *run = bench_run("m = nn.GRUCell { 8, 8 }\n"
                           "x, h = randn { 2, 8 }, randn { 2, 8 }\nphase 'a'\n" TWICE("m", "x, h"));
    bench_assert_ok(run);
    assert_string_equal(bench_asked_in(run, "once"),
                        "+48 +48 +384 +384 +32 +32 +96 +33554432 +96 +160 +32");
    assert_string_equal(bench_asked_in(run, "twice"), "+32 +32 +96 +96 +160 +32");
}

/* cuDNN's networks take float16, whatever the block says, and their weights in a block of their own
 * that is made at each call. */
TEST_F(bench, a_recurrent_network_runs_in_float16)
{
    bench *run = bench_run("m = nn.LSTM { 8, 8, batch_first = false }\nx = randn { 4, 2, 8 }\n"
                           "phase 'a'\n" TWICE("m", "x"));
    bench_assert_ok(run);
    static const char block[] = "+1152 "; /* 2 bytes for each of 2 * 4 * 8 * 8 + 2 * 4 * 8 */
    assert_true(strstr(bench_asked_in(run, "once"), block) != NULL);
    assert_true(strstr(bench_asked_in(run, "twice"), block) != NULL);
    bench_free(run);
    run = bench_run("m = nn.LSTM { 8, 8 }\nx = randn { 2, 4, 8, requires_grad = true }\n"
                    "out = autocast('bfloat16', function() return (m(x)) end)\n"
                    "assert(out:nbytes() == 2 * 4 * 8 * 2)\nout:sum():backward()\n"
                    "p, g = m:nbytes()\nassert(p == g)\nassert(x.grad:nbytes() == x:nbytes())");
    bench_assert_ok(run);
}

/* The fused kernel takes input and weight of one type. */
TEST_F(bench, a_root_mean_square_under_autocast_is_computed_step_by_step)
{
    assert_asks(A "\nm = nn.RMSNorm { 64 }", CAST("m(a)"), "+4096 +64", NULL);
    assert_asks(NARROW("bfloat16") "\nm = nn.RMSNorm { 64 }", CAST("m(a)"),
                "+4096 +4096 +64 -4096 +64 -64 +4096 +4096 +2048 -4096", NULL);
}
