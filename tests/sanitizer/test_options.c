#include "options.h"

#include "gmd_test.h"

#include <string.h>

static const char *refusal(const char *text)
{
    static gmd_error error;
    sanitizer_options options;
    error.text[0] = '\0';
    assert_int_equal(sanitizer_options_parse(&options, text, &error), GMD_BAD_INPUT);
    return error.text;
}

static sanitizer_options parsed(const char *text)
{
    sanitizer_options options;
    gmd_error error = {""};
    assert_int_equal(sanitizer_options_parse(&options, text, &error), GMD_OK);
    return options;
}

TEST(a_tier_is_a_set_of_options)
{
    assert_false(parsed("cheap").fills_fresh);
    assert_true(parsed("full").fills_fresh);
}

TEST(an_option_overrides_its_tier)
{
    assert_int_equal(parsed("cheap,zone:4KiB").zone_bytes, 4096);
    assert_true(parsed("cheap,fresh:nan").fills_fresh);
    assert_int_equal(parsed("full,interval:500ms").interval_ns, 500000000);
    assert_string_equal(parsed("full,report:/tmp/found.jsonl").report, "/tmp/found.jsonl");
}

TEST(an_unknown_tier_is_refused_with_those_that_there_are)
{
    assert_string_equal(refusal("dear"),
                        "sanitizer: there is no tier 'dear'; tiers are cheap, full, unmap");
}

TEST(an_unknown_option_is_refused_with_those_that_there_are)
{
    assert_non_null(
        strstr(refusal("cheap,zones:1"), "there is no option 'zones'; there are zone, "));
}

TEST(a_wrong_value_is_refused_with_what_it_may_be)
{
    assert_string_equal(refusal("cheap,zone:big"),
                        "sanitizer: zone is 'big'; it is a size of 8 B to 1GiB (512, 64KiB)");
    assert_non_null(strstr(refusal("cheap,fresh:0"), "it is as_is or nan"));
    assert_non_null(strstr(refusal("cheap,quarantine_blocks:-1"), "it is a number"));
}

TEST(an_option_without_a_value_is_refused)
{
    assert_non_null(strstr(refusal("cheap,zone"), "'zone' is no KEY:VALUE"));
}
