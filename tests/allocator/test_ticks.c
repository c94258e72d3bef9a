/* Readings of the processor's clock as times. */
#include "gmd_test.h"
#include "ticks.h"

#define SECOND_NS ((int64_t)1000000000)
#define SECOND_US ((uint64_t)1000000)

/* 3 ticks a ns, from 1,000 s on, for 10 s. */
static const ticks_moment from = {.ticks = 5000000000u, .real_ns = 1000 * SECOND_NS};
static const ticks_moment to = {.ticks = 5000000000u + 30000000000u,
                                .monotonic_ns = 10 * SECOND_NS,
                                .real_ns = 1010 * SECOND_NS};

TEST(a_reading_in_between_is_a_time_in_proportion)
{
    assert_int_equal(ticks_to_us(from.ticks, &from, &to), 1000 * SECOND_US);
    assert_int_equal(ticks_to_us(from.ticks + 7500000000u, &from, &to), 1002500000);
    assert_int_equal(ticks_to_us(to.ticks, &from, &to), 1010 * SECOND_US);
}

TEST(a_reading_from_before_is_an_earlier_time)
{
    assert_int_equal(ticks_to_us(from.ticks - 3000000000u, &from, &to), 999 * SECOND_US);
}

TEST(the_wall_clock_s_being_set_changes_only_where_it_began)
{
    ticks_moment set_back = to;
    set_back.real_ns = 500 * SECOND_NS;
    assert_int_equal(ticks_to_us(to.ticks, &from, &set_back), 1010 * SECOND_US);
}

TEST(without_a_rate_all_happened_at_the_beginning)
{
    ticks_moment same_ticks = to, same_time = to, backwards = to;
    same_ticks.ticks = from.ticks;
    same_time.monotonic_ns = from.monotonic_ns;
    backwards.ticks = from.ticks - 1000;
    assert_int_equal(ticks_to_us(to.ticks, &from, &from), 1000 * SECOND_US);
    assert_int_equal(ticks_to_us(to.ticks, &from, &same_ticks), 1000 * SECOND_US);
    assert_int_equal(ticks_to_us(to.ticks, &from, &same_time), 1000 * SECOND_US);
    assert_int_equal(ticks_to_us(to.ticks, &from, &backwards), 1000 * SECOND_US);
}

TEST(no_time_is_before_1970)
{
    assert_int_equal(ticks_to_us(from.ticks - 4000 * (uint64_t)SECOND_NS, &from, &to), 0);
}

TEST(a_moment_is_read_from_clocks_that_advance)
{
    ticks_moment first = ticks_moment_now(), second = ticks_moment_now();
    assert_true(second.ticks > first.ticks);
    assert_true(second.monotonic_ns > first.monotonic_ns);
    assert_in_range(ticks_to_us(second.ticks, &first, &second), (uint64_t)first.real_ns / 1000,
                    (uint64_t)first.real_ns / 1000 + 60 * SECOND_US);
}
