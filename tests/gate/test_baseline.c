/* A baseline is a text file that says what it was made of, and what it cannot be read for; figures
 * change for the worse by whatever is exact, and by more than they vary where they are not. */
#include "baseline.h"
#include "gmd_test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char path[] = "/tmp/gmd-baseline-XXXXXX";

static int make_file(void **state)
{
    (void)state;
    int file = mkstemp(path);
    return file < 0 ? -1 : close(file);
}

static int remove_file(void **state)
{
    (void)state;
    return remove(path);
}

static void write_text(const char *text)
{
    FILE *out = fopen(path, "w");
    assert_non_null(out);
    fputs(text, out);
    assert_int_equal(fclose(out), 0);
}

static gmd_gate_figure figure(const char *unit, double value, double low, double high)
{
    gmd_gate_figure f = {.category = "memory",
                         .item = "scenarios/x/ample",
                         .name = "figure",
                         .now = {value, low, high}};
    snprintf(f.unit, sizeof f.unit, "%s", unit);
    return f;
}

static gmd_gate_change change(const char *unit, double before, double now, double spread)
{
    gmd_gate_figure was = figure(unit, before, before - spread, before + spread);
    gmd_gate_figure is = figure(unit, now, now - spread, now + spread);
    baseline_judge(&is, &was);
    return is.change;
}

/* --- judging ----------------------------------------------------------------------------- */

TEST(one_byte_more_is_worse)
{
    assert_int_equal(change("B", 1048576, 1048577, 0), GMD_GATE_WORSE);
}

TEST(one_byte_less_is_better)
{
    assert_int_equal(change("B", 1048576, 1048575, 0), GMD_GATE_BETTER);
}

TEST(something_where_there_was_nothing_is_worse)
{
    assert_int_equal(change("retries", 0, 1, 0), GMD_GATE_WORSE);
}

TEST(a_few_instructions_are_no_change)
{
    assert_int_equal(change("instructions", 1000, 1025, 0), GMD_GATE_SAME);
}

TEST(many_instructions_are_worse)
{
    assert_int_equal(change("instructions", 1000, 1040, 0), GMD_GATE_WORSE);
}

TEST(times_whose_intervals_meet_are_no_change)
{
    assert_int_equal(change("ratio", 1, 2, 0.5), GMD_GATE_SAME);
}

TEST(times_whose_intervals_lie_far_apart_are_worse)
{
    assert_int_equal(change("ratio", 1, 2, 0.1), GMD_GATE_WORSE);
}

/* --- the file ---------------------------------------------------------------------------- */

TEST(what_is_written_is_read_again)
{
    gmd_error error;
    gate_baseline out = {
        .allocator = "./lib mine.so", .machine = "M, 2 cores", .versus = "reference"};
    gate_baseline in;
    gmd_gate_figure exact = figure("B", 21474836480.0, 21474836480.0, 21474836480.0);
    gmd_gate_figure spread = figure("ratio", 1.25, 1, 1.5);
    snprintf(spread.category, sizeof spread.category, "speed");
    assert_int_equal(baseline_set(&out, &spread, &error), GMD_OK);
    assert_int_equal(baseline_set(&out, &exact, &error), GMD_OK);
    baseline_sort(&out);
    assert_int_equal(baseline_write(&out, path, &error), GMD_OK);
    assert_int_equal(baseline_read(&in, path, &error), GMD_OK);
    assert_string_equal(in.allocator, "./lib mine.so");
    const gmd_gate_figure *f = baseline_find(&in, "memory", "scenarios/x/ample", "figure");
    assert_non_null(f);
    assert_true(f->now.value == exact.now.value && f->now.high == exact.now.value);
    f = baseline_find(&in, "speed", "scenarios/x/ample", "figure");
    assert_non_null(f);
    assert_true(f->now.low == 1 && f->now.value == 1.25 && f->now.high == 1.5);
    baseline_free(&out);
    baseline_free(&in);
}

TEST(figures_are_written_in_order)
{
    char text[2000] = "";
    gmd_error error;
    gate_baseline b;
    write_text("gmd-baseline 1\nmemory b x 2 B\nmemory a y 1 B\nmemory a x 1 B\n");
    assert_int_equal(baseline_read(&b, path, &error), GMD_OK);
    assert_int_equal(baseline_write(&b, path, &error), GMD_OK);
    FILE *in = fopen(path, "r");
    assert_non_null(in);
    assert_true(fread(text, 1, sizeof text - 1, in) > 0);
    fclose(in);
    assert_non_null(strstr(text, "memory a x 1 B\nmemory a y 1 B\n\nmemory b x 2 B\n"));
    baseline_free(&b);
}

TEST(comments_and_empty_lines_are_left_out)
{
    gmd_error error;
    gate_baseline b;
    write_text("gmd-baseline 1\n# why\n\nmemory a x 1 B   # since the pools were split\n");
    assert_int_equal(baseline_read(&b, path, &error), GMD_OK);
    assert_int_equal(b.count, 1);
    baseline_free(&b);
}

static void refuses(const char *text, const char *part)
{
    gmd_error error = {""};
    gate_baseline b;
    write_text(text);
    assert_int_equal(baseline_read(&b, path, &error), GMD_BAD_INPUT);
    if (!strstr(error.text, part)) {
        fail_msg("'%s' does not say '%s'", error.text, part);
    }
}

TEST(another_file_is_no_baseline)
{
    refuses("{\"gmd\": 1}\n", ":1: expected 'gmd-baseline 1'");
    refuses("", ":1: expected 'gmd-baseline 1'");
}

TEST(a_file_without_figures_is_no_baseline)
{
    refuses("gmd-baseline 1\nallocator reference\n", "no figures");
}

TEST(a_figure_that_stands_there_twice_is_refused)
{
    refuses("gmd-baseline 1\nmemory b y 1 B\nmemory a x 1 B\nmemory b y 2 B\n",
            "'memory b y' stands there twice");
}

TEST(another_version_is_refused)
{
    refuses("gmd-baseline 12\n", ":1: expected 'gmd-baseline 1'");
}

TEST(a_line_that_is_none_is_named)
{
    refuses("gmd-baseline 1\nallocator x\nmemory a x plenty B\n", ":3: expected 'CATEGORY ITEM");
    refuses("gmd-baseline 1\nmemory a x -1 B\n", ":2: ");
    refuses("gmd-baseline 1\nmemory a x nan B\n", ":2: ");
    refuses("gmd-baseline 1\nweight a x 1 B\n", ":2: ");
    refuses("gmd-baseline 1\nspeed a x 1 ratio 2 3\n", ":2: ");
    refuses("gmd-baseline 1\nspeed a x 1 ratio 0.5 3 4\n", ":2: ");
    refuses("<<<<<<< HEAD\n", ":1: ");
}

TEST_GROUP(make_file, remove_file);
