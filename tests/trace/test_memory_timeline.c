/* torch.profiler's memory timeline in both forms: as torch/profiler/_memory_profiler.py writes
 * them. Categories there: parameter, optimizer_state, input, temporary, activation, gradient,
 * autograd_detail, unknown. */
#include "gmd_memory_timeline.h"
#include "trace_test.h"

#include <stdio.h>
#include <string.h>

static gmd_memory_timeline seen;

static int free_seen(void **state)
{
    (void)state;
    gmd_memory_timeline_free(&seen);
    return 0;
}

FIXTURE(timeline, NULL, free_seen);

static gmd_status parse(const char *text, gmd_error *error)
{
    return gmd_memory_timeline_parse(&seen, (const uint8_t *)text, strlen(text), "timeline.json",
                                     error);
}

static void see(const char *text)
{
    gmd_error error = {""};
    gmd_status status = parse(text, &error);
    assert_string_equal(error.text, "");
    assert_int_equal(status, GMD_OK);
}

static void refuse(const char *text, const char *message)
{
    gmd_error error = {""};
    assert_int_equal(parse(text, &error), GMD_BAD_INPUT);
    assert_contains(error.text, message);
    assert_int_equal(seen.count, 0);
}

TEST_F(timeline, sizes_by_category_are_those_of_their_time)
{
    see("[[10, 20], [[0, 1, 2, 3, 4, 5, 6, 7, 8], [0, 100, 0, 0, 0, 0, 0, 0, 0]]]");
    assert_int_equal(seen.count, 2);
    assert_int_equal(seen.rows[0].time_us, 10);
    assert_int_equal(seen.rows[0].bytes[GMD_PARAMETER], 1);
    assert_int_equal(seen.rows[0].bytes[GMD_OPTIMIZER_STATE], 2);
    assert_int_equal(seen.rows[0].bytes[GMD_INPUT], 3);
    assert_int_equal(seen.rows[0].bytes[GMD_ACTIVATION], 5);
    assert_int_equal(seen.rows[0].bytes[GMD_GRADIENT], 6);
    assert_int_equal(seen.rows[0].bytes[GMD_TEMPORARY], 4 + 7); /* with autograd_detail */
    assert_int_equal(seen.rows[0].bytes[GMD_CATEGORY_UNKNOWN], 8);
    assert_int_equal(gmd_timeline_allocated(&seen.rows[0]), 36);
}

TEST_F(timeline, the_peak_is_the_first_row_with_the_most)
{
    see("[[1, 2, 3], [[0,1,0,0,0,0,0,0,0], [0,9,0,0,0,0,0,0,0], [0,0,9,0,0,0,0,0,0]]]");
    assert_int_equal(gmd_timeline_peak(&seen), 1);
}

TEST_F(timeline, raw_events_add_up)
{
    see("[[-1, 1, 100, 0], [5000, 2, 30, 4], [5900, 2, 7, 3], [6000, 4, -30, 4]]");
    assert_int_equal(seen.count, 3); /* two of one microsecond */
    assert_int_equal(seen.rows[0].bytes[GMD_PARAMETER], 100);
    assert_int_equal(gmd_timeline_allocated(&seen.rows[1]), 137);
    assert_int_equal(seen.rows[1].time_us, 5);
    assert_int_equal(gmd_timeline_allocated(&seen.rows[2]), 107);
    assert_int_equal(gmd_timeline_peak(&seen), 1);
}

TEST_F(timeline, a_raw_version_moves_its_bytes_to_another_category)
{
    see("[[1000, 2, 50, 3], [2000, 3, -50, 3], [2000, 3, 50, 5]]");
    assert_int_equal(seen.rows[1].bytes[GMD_TEMPORARY], 0);
    assert_int_equal(seen.rows[1].bytes[GMD_GRADIENT], 50);
}

TEST_F(timeline, both_forms_may_be_empty)
{
    see("[]");
    assert_int_equal(seen.count, 0);
    see("[[], []]");
    assert_int_equal(seen.count, 0);
}

TEST_F(timeline, what_it_is_not_is_refused_with_its_byte)
{
    refuse("[1, 2]",
           "timeline.json: byte 1: not torch.profiler's memory timeline: expected a list");
    refuse("[[1, 2, 3]]", "expected lists of 4 numbers, or times and sizes");
    refuse("[[1], [[0, 1]]]", "expected a list of 9 numbers");
    refuse("[[1, 2], [[0,1,0,0,0,0,0,0,0]]]", "expected as many sizes as times");
    refuse("[[1], [[0,1,0,0,0,0,0,0,0], [0,1,0,0,0,0,0,0,0]]]", "expected as many sizes as times");
    refuse("[[1, 2, 50, 8]]", "expected a category from 0 to 7");
    refuse("[[1, 2, 50, -1]]", "expected a category from 0 to 7");
    refuse("[[1, 2, 5.5, 3]]", "expected ',' or ']'");
    refuse("[[1, 2, \"a\", 3]]", "expected a whole number");
    refuse("[[1, 2, 9223372036854775808, 3]]", "expected a number of at most 64 bits");
    refuse("[[1, 4, -50, 3]]", "expected no more memory freed than there was");
    refuse("[[1, 2, 9223372036854775807, 3], [1, 2, 1, 3]]", "expected sums of at most 64 bits");
    refuse("[[1, 2, 9223372036854775807, 3], [1, 2, 1, 4]]", "expected sums of at most 64 bits");
    refuse("[[1, 2, 50, 3]] x", "expected nothing behind the list");
}

TEST_F(timeline, the_least_number_is_read)
{
    refuse("[[1, 4, -9223372036854775808, 3]]", "expected no more memory freed than there was");
}

TEST_F(timeline, a_file_that_is_cut_is_refused_wherever_it_is_cut)
{
    static const char *const wholes[] = {"[[10,20],[[0,1,2,3,4,5,6,7,8],[0,9,0,0,0,0,0,0,0]]]",
                                         "[[-1,1,100,0],[5000,2,30,4]]"};
    for (size_t i = 0; i < sizeof wholes / sizeof *wholes; i++) {
        for (size_t length = 0; length < strlen(wholes[i]); length++) {
            char text[200];
            snprintf(text, sizeof text, "%.*s", (int)length, wholes[i]);
            refuse(text, "not torch.profiler's memory timeline");
        }
    }
}
