/* Sizes, durations and counts as people write and read them. */
#include "gmd_size.h"
#include "gmd_test.h"

#include <string.h>

static void assert_size(const char *text, uint64_t expected)
{
    uint64_t bytes = 0;
    assert_true(gmd_parse_size(text, &bytes));
    assert_int_equal(bytes, expected);
}

/* Refused, and the caller's value is as it was. */
static void assert_no_size(const char *text)
{
    uint64_t bytes = 123;
    assert_false(gmd_parse_size(text, &bytes));
    assert_int_equal(bytes, 123);
}

TEST(every_unit_is_a_power_of_1024)
{
    assert_size("7", 7);
    assert_size("7B", 7);
    assert_size("7KiB", 7 * GMD_KIB);
    assert_size("7MiB", 7 * GMD_MIB);
    assert_size("7GiB", 7 * GMD_GIB);
    assert_size("7TiB", 7 * (GMD_GIB << 10));
}

TEST(a_fraction_is_rounded_to_the_nearest_byte)
{
    assert_size("1.5KiB", 1536);
    assert_size("0.25MiB", 262144);
    assert_size("1.2GiB", 1288490189); /* 1288490188.8 */
    assert_size("1.0000", 1);
}

TEST(the_largest_size_is_exact)
{
    assert_size("18446744073709551615", UINT64_MAX);
    assert_size("16777215TiB", (uint64_t)16777215 << 40);
}

TEST(a_size_over_64_bits_is_refused)
{
    assert_no_size("18446744073709551616");
    assert_no_size("16777216TiB");
    assert_no_size("99999999999999999999999999");
    assert_no_size("16777215.9999999999999999999TiB");
}

TEST(what_is_no_number_is_refused)
{
    assert_no_size("");
    assert_no_size("MiB");
    assert_no_size("-1");
    assert_no_size("+1");
    assert_no_size(" 1");
    assert_no_size("0x10");
    assert_no_size("1e9");
    assert_no_size(".5GiB");
    assert_no_size("1.GiB");
    assert_no_size("1.2.3GiB");
}

TEST(an_unknown_unit_or_a_rest_is_refused)
{
    assert_no_size("1 MiB");
    assert_no_size("1MB");
    assert_no_size("1mib");
    assert_no_size("1M");
    assert_no_size("1MiBx");
    assert_no_size("1PiB");
}

TEST(a_long_fraction_costs_no_precision)
{
    assert_size("0.50000000000000000000000000000000000000000000000000GiB", GMD_GIB / 2);
    assert_size("0.99999999999999999999GiB", GMD_GIB);
}

static void assert_duration(const char *text, uint64_t expected)
{
    uint64_t ns = 0;
    assert_true(gmd_parse_duration(text, &ns));
    assert_int_equal(ns, expected);
}

static void assert_no_duration(const char *text)
{
    uint64_t ns = 123;
    assert_false(gmd_parse_duration(text, &ns));
    assert_int_equal(ns, 123);
}

TEST(durations_are_in_nanoseconds)
{
    assert_duration("0ns", 0);
    assert_duration("50ns", 50);
    assert_duration("50us", 50000);
    assert_duration("50ms", 50000000);
    assert_duration("2s", 2000000000);
    assert_duration("18446744073s", 18446744073000000000u);
}

TEST(a_duration_needs_its_unit_and_64_bits)
{
    assert_no_duration("50");
    assert_no_duration("50min");
    assert_no_duration("us");
    assert_no_duration("-5us");
    assert_no_duration("1.5us");
    assert_no_duration("18446744074s");
}

TEST(a_number_is_decimal_digits_and_nothing_else)
{
    uint64_t value = 123;
    assert_true(gmd_parse_u64("18446744073709551615", &value));
    assert_int_equal(value, UINT64_MAX);
    assert_true(gmd_parse_u64("007", &value));
    assert_int_equal(value, 7);
    const char *const refused[] = {"",   "-1",  "+1",  " 1",
                                   "1 ", "0x1", "1.0", "18446744073709551616"};
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        assert_false(gmd_parse_u64(refused[i], &value));
        assert_int_equal(value, 7);
    }
}

static void assert_shown(uint64_t bytes, const char *expected)
{
    char text[24];
    assert_string_equal(gmd_format_size(bytes, text), expected);
}

TEST(sizes_are_shown_in_the_unit_that_fits)
{
    assert_shown(0, "0 B");
    assert_shown(512, "512 B");
    assert_shown(1023, "1023 B");
    assert_shown(GMD_KIB, "1.0 KiB");
    assert_shown(GMD_MIB * 3 / 2, "1.5 MiB");
    assert_shown(GMD_GIB * 5 / 2, "2.50 GiB");
    assert_shown(UINT64_MAX, "17179869184.00 GiB");
}

TEST(rounding_up_moves_to_the_next_unit)
{
    assert_shown(GMD_MIB - 1, "1.0 MiB");
    assert_shown(GMD_GIB - 1, "1.00 GiB");
    assert_shown(GMD_MIB - 64, "1023.9 KiB");
}

TEST(an_exact_size_reads_back_as_the_same_number)
{
    const uint64_t sizes[] = {0,           1,       512,         825968,         GMD_MIB,
                              GMD_MIB + 1, GMD_GIB, 3 * GMD_GIB, 2560 * GMD_MIB, UINT64_MAX};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        char text[24];
        assert_size(gmd_format_exact_size(sizes[i], text), sizes[i]);
    }
}

TEST(an_exact_size_is_short_where_it_can_be)
{
    char text[24];
    assert_string_equal(gmd_format_exact_size(2560 * GMD_MIB, text), "2560MiB");
    assert_string_equal(gmd_format_exact_size(4 * GMD_GIB, text), "4GiB");
    assert_string_equal(gmd_format_exact_size(825968, text), "825968");
}

TEST(a_size_in_a_sentence_has_a_unit)
{
    char text[24];
    assert_string_equal(gmd_format_bytes(2560 * GMD_MIB, text), "2560MiB");
    assert_string_equal(gmd_format_bytes(825968, text), "825968 B");
    assert_string_equal(gmd_format_bytes(UINT64_MAX, text), "18446744073709551615 B");
}
