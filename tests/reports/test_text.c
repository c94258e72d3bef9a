/* Reading text of unknown origin, and numbers and tables for people. */
#include "gmd_report_text.h"
#include "gmd_test.h"

#include <stdio.h>
#include <string.h>

#define R GMD_REPLACEMENT_CHARACTER

static void assert_decodes(const char *text, const uint32_t *expected)
{
    for (size_t i = 0; expected[i]; i++) {
        assert_int_equal(gmd_utf8_next(&text), expected[i]);
    }
    assert_int_equal(gmd_utf8_next(&text), 0);
}

TEST(characters_of_each_length_decode)
{
    assert_decodes("A\xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80",
                   (const uint32_t[]){'A', 0xE9, 0x20AC, 0x1F600, 0});
}

TEST(each_stray_byte_is_one_replacement)
{
    assert_decodes("\x80\xFF"
                   "A",
                   (const uint32_t[]){R, R, 'A', 0});
}

TEST(a_sequence_cut_short_by_the_end_stays_inside_the_text)
{
    assert_decodes("\xE2\x82", (const uint32_t[]){R, R, 0});
}

TEST(overlong_forms_are_not_accepted)
{
    assert_decodes("\xC0\xAF", (const uint32_t[]){R, R, 0});
    assert_decodes("\xE0\x80\xAF", (const uint32_t[]){R, R, R, 0});
}

TEST(surrogates_and_values_past_unicode_are_not_accepted)
{
    assert_decodes("\xED\xA0\x80", (const uint32_t[]){R, R, R, 0});
    assert_decodes("\xF4\x90\x80\x80", (const uint32_t[]){R, R, R, R, 0});
}

TEST(encoding_gives_back_what_was_decoded)
{
    const char *text = "A\xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80";
    char copy[32] = "";
    FILE *out = fmemopen(copy, sizeof copy, "w");
    for (const char *at = text; *at;) {
        gmd_utf8_put(gmd_utf8_next(&at), out);
    }
    fclose(out);
    assert_string_equal(copy, text);
}

/* Controls of ASCII and of Latin 1, line separators, marks that turn the writing direction. */
TEST(what_a_terminal_acts_on_is_a_space_in_a_line)
{
    char line[64];
    gmd_utf8_copy_line(
        line, sizeof line,
        /* NOLINTNEXTLINE(misc-misleading-bidirectional): they are what it is about */
        "a\nb\x1b[1mc\xC2\x9B"
        "d\xE2\x80\xA8"
        "e\xE2\x80\xAE"
        "f\xE2\x81\xA6"
        "g\xD8\x9C"
        "h\x7F");
    assert_string_equal(line, "a b [1mc d e f g h ");
}

TEST(a_line_that_is_too_long_ends_with_a_whole_character)
{
    char line[6];
    gmd_utf8_copy_line(line, sizeof line, "abc\xE2\x82\xAC");
    assert_string_equal(line, "abc");
}

TEST(a_short_copy_of_what_fits_is_whole_with_its_control_characters)
{
    /* NOLINTNEXTLINE(misc-misleading-bidirectional): such marks are what it is about */
    static const char odd[] = "a\u202Eb\x07 c.py:12";
    char name[16];
    gmd_utf8_copy_short(name, sizeof name, odd);
    assert_string_equal(name, odd);
}

TEST(a_short_copy_lacks_the_middle)
{
    char name[16];
    gmd_utf8_copy_short(name, sizeof name, "/a/very/long/path/train.py");
    assert_string_equal(name, "/a/v\u2026train.py");
}

TEST(a_short_copy_has_whole_characters)
{
    char name[16]; /* 4 and 8 bytes beside the ellipsis: 2 and 4 of the letters */
    gmd_utf8_copy_short(name, sizeof name, "\u05D0\u05D1\u05D2\u05D3\u05D4\u05D5\u05D6\u05D7");
    assert_string_equal(name, "\u05D0\u05D1\u2026\u05D4\u05D5\u05D6\u05D7");
}

TEST(counts_have_a_comma_before_each_three_digits)
{
    char text[32];
    assert_string_equal(gmd_format_count(0, text), "0");
    assert_string_equal(gmd_format_count(999, text), "999");
    assert_string_equal(gmd_format_count(1000, text), "1,000");
    assert_string_equal(gmd_format_count(123456, text), "123,456");
    assert_string_equal(gmd_format_count(UINT64_MAX, text), "18,446,744,073,709,551,615");
}

TEST(a_table_takes_its_unit_from_its_largest_known_figure)
{
    gmd_phase phases[2] = {{.allocated = 512}, {.max_reserved = GMD_STAT_UNKNOWN}};
    assert_string_equal(gmd_table_unit_for(phases, 2).name, "KiB");
    phases[0].max_reserved = (uint64_t)2560 << 20;
    assert_string_equal(gmd_table_unit_for(phases, 2).name, "MiB");
    phases[1].max_allocated = (uint64_t)130 << 30;
    assert_string_equal(gmd_table_unit_for(phases, 2).name, "GiB");
}

TEST(a_figure_in_a_unit_is_grouped_before_its_decimals)
{
    char text[40];
    const gmd_table_unit mib = {"MiB", 1 << 20, 1};
    assert_string_equal(gmd_format_in_unit((uint64_t)2560 << 20, mib, text), "2,560.0");
    assert_string_equal(gmd_format_in_unit(1 << 19, mib, text), "0.5");
}

TEST(an_unknown_figure_is_a_dash)
{
    char text[40];
    assert_string_equal(
        gmd_format_in_unit(GMD_STAT_UNKNOWN, (gmd_table_unit){"KiB", 1024, 1}, text), "-");
}

TEST(a_table_of_24_rows_is_whole_and_of_25_keeps_both_ends)
{
    uint32_t first, resume;
    gmd_phases_to_leave_out(24, &first, &resume);
    assert_int_equal(first, resume);
    gmd_phases_to_leave_out(25, &first, &resume);
    assert_int_equal(first, 8);
    assert_int_equal(resume, 17);
}

TEST(a_full_disk_is_reported_with_what_could_not_be_written)
{
    FILE *full = fopen("/dev/full", "w");
    if (!full) {
        skip();
    }
    gmd_error error;
    fputs("text", full);
    gmd_status status = gmd_finish_writing(full, "the JSON report", &error);
    fclose(full);
    assert_int_equal(status, GMD_FAILED);
    assert_string_equal(error.text, "cannot write the JSON report: No space left on device");
}
