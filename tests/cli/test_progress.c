/* What the status lines of long work say. */
#include "gmd_test.h"
#include "progress.h"

static char text[CLI_LEFT_BYTES];

TEST(the_time_left_follows_from_the_part_that_is_done)
{
    assert_string_equal(cli_time_left(25, 100, 10, text), ", 30 s left");
}

TEST(long_times_are_told_in_larger_units)
{
    assert_string_equal(cli_time_left(1, 31, 60, text), ", 30 min left");
    assert_string_equal(cli_time_left(1, 31, 3600, text), ", 30.0 h left");
}

TEST(nothing_is_said_where_the_end_is_not_known)
{
    assert_string_equal(cli_time_left(25, 0, 10, text), "");
    assert_string_equal(cli_time_left(0, 100, 10, text), "");
}

TEST(nothing_is_said_past_the_end)
{
    assert_string_equal(cli_time_left(101, 100, 10, text), "");
}

TEST(the_first_instants_promise_nothing)
{
    assert_string_equal(cli_time_left(1, 100, 0.01, text), "");
}
