/* Sentences, rows and tables on screens of some width. */
#include "gmd_test.h"

#include "gmd_fitted_table.h"
#include "gmd_report_text.h"

#include <stdlib.h>
#include <string.h>

typedef struct screen {
    FILE *out;
    char *text;
    size_t size;
} screen;

static screen seen;

static int open_screen(void **state)
{
    (void)state;
    seen.out = open_memstream(&seen.text, &seen.size);
    return seen.out ? 0 : -1;
}

static int close_screen(void **state)
{
    (void)state;
    fclose(seen.out);
    free(seen.text);
    return 0;
}

FIXTURE(screen, open_screen, close_screen);

static const char *shown(void)
{
    fflush(seen.out);
    return seen.text;
}

static const gmd_terminal narrow = {.columns = 20};

static const char *flow(const char *text)
{
    int at = 0;
    gmd_put_flowing(seen.out, narrow, 2, &at, text);
    return shown();
}

TEST_F(screen, a_line_ends_before_the_word_that_has_no_room)
{
    assert_string_equal(flow("one two three four five"), "one two three four\n  five");
}

TEST_F(screen, a_line_does_not_end_between_a_figure_and_its_unit)
{
    assert_string_equal(flow("the peak was at 12.5 MiB, then"),
                        "the peak was at\n  12.5 MiB, then");
}

TEST_F(screen, a_word_that_is_spelt_like_a_unit_is_one_behind_a_figure_only)
{
    assert_string_equal(flow("the pool of plan B was"), "the pool of plan B\n  was");
}

TEST_F(screen, a_wrapped_sentence_does_not_part_a_figure_from_its_unit)
{
    gmd_put_wrapped(seen.out, 20, 2, "the peak was at 12.5 MiB");
    assert_string_equal(shown(), "  the peak was at\n  12.5 MiB\n");
}

static const char *put_beside(const char *text)
{
    fputs("  12.5 MiB", seen.out);
    gmd_put_beside(seen.out, narrow, 10, 4, text);
    return shown();
}

TEST_F(screen, what_a_row_is_of_stands_behind_its_figures)
{
    assert_string_equal(put_beside("train.py"), "  12.5 MiB  train.py\n");
}

TEST_F(screen, what_a_row_is_of_stands_below_where_there_is_no_room)
{
    assert_string_equal(put_beside("training.py:7 step"),
                        "  12.5 MiB\n    training.py:7\n    step\n");
}

TEST_F(screen, text_that_was_held_goes_on_from_where_the_line_is)
{
    gmd_held_text held;
    fputs("  peak: ", seen.out);
    FILE *text = gmd_held_text_begin(&held, seen.out);
    fputs("one two ", text);
    fputs("three", text);
    gmd_held_text_put(&held, narrow, 8, 4);
    assert_string_equal(shown(), "  peak: one two\n    three\n");
}

/* --- tables ------------------------------------------------------------------------------- */

static const char *put_table(int width)
{
    static const gmd_fitted_column columns[] = {{.heading = "who", .is_text = true, .least = 20},
                                                {.heading = "bytes"},
                                                {.heading = "line", .leaves = 1}};
    static const char *const row[] = {"model.encoder.layers.7.weight", "1,234", "17"};
    gmd_fitted_table table = {.columns = columns, .column_count = 3};
    assert_true(gmd_fitted_table_add(&table, row));
    gmd_fitted_table_fit(&table, width);
    gmd_fitted_table_put(&table, seen.out, (gmd_terminal){0});
    gmd_fitted_table_free(&table);
    return shown();
}

TEST_F(screen, a_table_with_room_is_whole)
{
    assert_string_equal(put_table(80), "  who                            bytes  line\n"
                                       "  model.encoder.layers.7.weight  1,234    17\n");
}

TEST_F(screen, a_name_is_shortened_before_a_column_leaves)
{
    assert_string_equal(put_table(36), "  who                    bytes  line\n"
                                       "  model.enc....7.weight  1,234    17\n");
}

TEST_F(screen, a_column_leaves_before_a_name_is_shorter_than_its_least)
{
    assert_string_equal(put_table(28), "  who                  bytes\n"
                                       "  model.en....7.weight 1,234\n");
}

TEST_F(screen, a_name_is_shorter_than_its_least_where_nothing_else_can_leave)
{
    assert_string_equal(put_table(22), "  who            bytes\n"
                                       "  model...weight 1,234\n");
}
