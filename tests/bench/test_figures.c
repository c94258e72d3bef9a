#include "figures.h"

#include "gmd_test.h"

/* The values count - 1, ..., 1, 0. */
static bench_estimate estimate_of_first(size_t count)
{
    static double values[2000];
    for (size_t i = 0; i < count; i++) {
        values[i] = (double)(count - 1 - i);
    }
    return bench_estimate_of(values, count);
}

TEST(the_median_of_an_odd_number_is_the_middle_value)
{
    assert_float_equal(estimate_of_first(9).median, 4, 1e-12);
}

TEST(the_median_of_an_even_number_is_between_the_middle_values)
{
    assert_float_equal(estimate_of_first(10).median, 4.5, 1e-12);
}

TEST(a_single_value_is_its_own_interval)
{
    bench_estimate e = estimate_of_first(1);
    double width = e.high - e.low;
    assert_float_equal(width, 0, 1e-12);
}

TEST(seven_values_need_their_whole_range)
{
    bench_estimate e = estimate_of_first(7);
    assert_float_equal(e.low, 0, 1e-12);
    assert_float_equal(e.high, 6, 1e-12);
}

/* The 40th and the 61st of 100: tables of the sign test. */
TEST(a_hundred_values_need_their_middle_twenty_two)
{
    bench_estimate e = estimate_of_first(100);
    assert_float_equal(e.low, 39, 1e-12);
    assert_float_equal(e.high, 60, 1e-12);
}

TEST(more_values_than_the_exact_sum_can_take_make_the_same_interval)
{
    double exact = estimate_of_first(1000).low, approximate = estimate_of_first(1003).low;
    assert_true(approximate - exact > -1.5 && approximate - exact < 3);
}
