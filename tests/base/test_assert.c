/* Assertions of the three tiers, as a program compiled at TEST_LEVEL sees them. CMake makes one
 * program of each level. */
#include "gmd_test.h"

#undef GMD_ASSERT_LEVEL
#define GMD_ASSERT_LEVEL TEST_LEVEL
#include "../assertion_test.h"

static int evaluations;

static bool evaluate(bool value)
{
    evaluations++;
    return value;
}

static void always(void *value)
{
    GMD_ASSERT(evaluate(*(bool *)value), "the cheap one holds");
}

static void internal(void *value)
{
    GMD_ASSERT_INTERNAL(evaluate(*(bool *)value), "the internal one holds");
}

static void valid(void *value)
{
    GMD_ASSERT_VALID(evaluate(*(bool *)value) ? NULL : "parts are sums");
}

static void expect_from_level(void (*tier)(void *), int level)
{
    bool wrong = false;
    assertion_end end = assertion_test(tier, &wrong);
    assert_int_equal(end.is_assertion, TEST_LEVEL >= level);
    assert_int_equal(end.is_silent, TEST_LEVEL < level);
}

TEST(each_tier_ends_the_process_from_its_level_on)
{
    expect_from_level(always, 1);
    expect_from_level(internal, 2);
    expect_from_level(valid, 3);
}

TEST(what_holds_goes_on_silently)
{
    bool right = true;
    assert_true(assertion_test(always, &right).is_silent);
    assert_true(assertion_test(internal, &right).is_silent);
    assert_true(assertion_test(valid, &right).is_silent);
}

TEST(a_tier_above_the_level_is_not_evaluated)
{
    bool right = true;
    evaluations = 0;
    always(&right);
    internal(&right);
    valid(&right);
    assert_int_equal(evaluations, TEST_LEVEL);
}

TEST(the_line_names_place_function_condition_and_meaning)
{
    bool wrong = false;
    assertion_end end = assertion_test(always, &wrong);
    const char *const parts[] = {"gmd: assertion failed: tests/base/test_assert.c:", ": always: ",
                                 "evaluate(*(bool *)value): ", "the cheap one holds\n"};
    const char *at = end.said;
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        at = strstr(at, parts[i]);
        assert_non_null(at);
        at += strlen(parts[i]);
    }
    assert_string_equal(at, ""); /* one line */
}

TEST(what_a_walk_found_is_in_the_line)
{
    bool wrong = false;
    assertion_end end = assertion_test(valid, &wrong);
    assert_int_equal(strstr(end.said, ": parts are sums\n") != NULL, TEST_LEVEL == 3);
}

static void say_much(void *context)
{
    (void)context;
    static char text[4000];
    memset(text, 'x', sizeof text - 1);
    const gmd_assertion what = {"file.c", 1, "condition", text};
    gmd_assert_fail(&what, __func__);
}

TEST(a_long_text_is_cut_and_still_a_line)
{
    assertion_end end = assertion_test(say_much, NULL);
    assert_true(end.is_assertion);
    assert_int_equal(end.said[strlen(end.said) - 1], '\n');
}
