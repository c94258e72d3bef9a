/* Names that are spelt like one that is not known. */
#include "gmd_spelling.h"
#include "gmd_test.h"

#include <stdint.h>
#include <string.h>

static size_t distance(const char *a, const char *b)
{
    return gmd_spelling_distance(a, strlen(a), b);
}

TEST(a_distance_counts_what_is_missing_changed_or_exchanged)
{
    assert_int_equal(distance("bias", "bias"), 0);
    assert_int_equal(distance("bais", "bias"), 1);
    assert_int_equal(distance("Liner", "Linear"), 1);
    assert_int_equal(distance("sum", "max"), 3);
    assert_int_equal(distance("", "abc"), 3);
}

TEST(a_name_that_is_too_long_is_like_no_other)
{
    char name[GMD_SPELLING_MAX + 2];
    memset(name, 'a', sizeof name - 1);
    name[sizeof name - 1] = '\0';
    assert_true(distance(name, "a") == SIZE_MAX);
    assert_true(distance("a", name) == SIZE_MAX);
}

static const char *near_of(gmd_near *near, const char *name, const char *const *candidates)
{
    gmd_near_begin(near, name);
    for (; *candidates; candidates++) {
        gmd_near_offer(near, *candidates);
    }
    return gmd_near_text(near);
}

TEST(the_nearest_name_comes_first)
{
    static const char *const names[] = {"Conv1d", "Conv2d", "Linear", "conv2d", NULL};
    gmd_near near;
    assert_string_equal(near_of(&near, "Conv2D", names),
                        " (did you mean Conv2d, Conv1d or conv2d?)");
}

TEST(three_names_are_told_at_most)
{
    static const char *const names[] = {"aaaa", "aaab", "aaac", "aaad", "aaae", NULL};
    gmd_near near;
    assert_string_equal(near_of(&near, "aaaz", names), " (did you mean aaaa, aaab or aaac?)");
}

TEST(a_name_that_is_offered_twice_is_told_once)
{
    static const char *const names[] = {"sum", "sum", NULL};
    gmd_near near;
    assert_string_equal(near_of(&near, "sume", names), " (did you mean sum?)");
}

TEST(a_beginning_is_like_the_name)
{
    static const char *const names[] = {"requires_grad_", "relu", NULL};
    gmd_near near;
    assert_string_equal(near_of(&near, "requires", names), " (did you mean requires_grad_?)");
}

TEST(names_that_are_spelt_otherwise_are_not_told)
{
    static const char *const names[] = {"sum", "max", "io", NULL};
    gmd_near near;
    assert_string_equal(near_of(&near, "os", names), "");
}
