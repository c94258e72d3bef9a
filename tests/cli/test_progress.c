/* What the status lines of long work say. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "progress.h"

static char text[CLI_LEFT_BYTES];

static void the_time_left_follows_from_the_part_that_is_done(void **state)
{
    (void)state;
    assert_string_equal(cli_time_left(25, 100, 10, text), ", 30 s left");
}

static void long_times_are_told_in_larger_units(void **state)
{
    (void)state;
    assert_string_equal(cli_time_left(1, 31, 60, text), ", 30 min left");
    assert_string_equal(cli_time_left(1, 31, 3600, text), ", 30.0 h left");
}

static void nothing_is_said_where_the_end_is_not_known(void **state)
{
    (void)state;
    assert_string_equal(cli_time_left(25, 0, 10, text), "");
    assert_string_equal(cli_time_left(0, 100, 10, text), "");
}

static void nothing_is_said_past_the_end(void **state)
{
    (void)state;
    assert_string_equal(cli_time_left(101, 100, 10, text), "");
}

static void the_first_instants_promise_nothing(void **state)
{
    (void)state;
    assert_string_equal(cli_time_left(1, 100, 0.01, text), "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_time_left_follows_from_the_part_that_is_done),
        cmocka_unit_test(long_times_are_told_in_larger_units),
        cmocka_unit_test(nothing_is_said_where_the_end_is_not_known),
        cmocka_unit_test(nothing_is_said_past_the_end),
        cmocka_unit_test(the_first_instants_promise_nothing),
    };
    return cmocka_run_group_tests_name("progress", tests, NULL, NULL);
}
