/* some_fail.c - a test program of which one test fails on purpose: test_program.sh looks at what
 * its main function makes of that. */
#include "gmd_test.h"

#include <stdio.h>

static int open_group(void **state)
{
    (void)state;
    puts("the group begins");
    return 0;
}

static int close_group(void **state)
{
    (void)state;
    puts("the group ends");
    return 0;
}

static int open_pool(void **state)
{
    *state = "a pool";
    puts("the pool is opened");
    return 0;
}

static int close_pool(void **state)
{
    printf("%s is closed\n", (const char *)*state);
    return 0;
}

FIXTURE(pool, open_pool, close_pool);

TEST(the_first_passes) {}

TEST_F(pool, the_second_fails)
{
    assert_string_equal(*state, "no pool");
}

TEST_F(pool, the_third_is_skipped)
{
    skip();
}

static void has_its_row(void **state)
{
    assert_int_equal(*(const int *)*state, 4);
}

static int four = 4, five = 5;
TEST_ROW("row four", has_its_row, &four);
TEST_ROW("row five", has_its_row, &five);

TEST_GROUP(open_group, close_group);
