/* gmd_known.h: an entry covers the defect that it names, and no other. */
#include "gmd_known.h"

#include "gmd_test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static gmd_known known;
static known_context context;
static gmd_error error;

static int reset(void **state)
{
    (void)state;
    known = (gmd_known){.count = 0};
    context = (known_context){.fault_count = 0};
    return 0;
}

static int release(void **state)
{
    (void)state;
    gmd_known_free(&known);
    return 0;
}

FIXTURE(known, reset, release);

static gmd_status read_list(const char *text)
{
    char path[] = "/tmp/gmd-known-XXXXXX";
    int file = mkstemp(path);
    assert_int_equal(write(file, text, strlen(text)), strlen(text));
    close(file);
    gmd_status status = gmd_known_read(&known, path, &error);
    unlink(path);
    return status;
}

static bool has(const char *oracle, const char *message)
{
    return known_find(&known, &context, oracle, message) != NULL;
}

TEST_F(known, an_entry_is_of_its_oracle_and_cause)
{
    assert_int_equal(read_list("# a comment\nleak: 2 streams are left\n"), GMD_OK);
    assert_true(has("leak", "device 0: 2 streams are left"));
    assert_false(has("leak", "device 0: 3 streams are left"));
    assert_false(has("data", "device 0: 2 streams are left"));
}

TEST_F(known, a_fault_of_the_function_must_have_been_planted)
{
    assert_int_equal(read_list("stream_order: nothing makes | fault cudaEventRecord\n"), GMD_OK);
    assert_false(has("stream_order", "nothing makes stream 1 wait"));
    snprintf(context.faults[context.fault_count++], sizeof *context.faults, "cudaMalloc");
    assert_false(has("stream_order", "nothing makes stream 1 wait"));
    snprintf(context.faults[context.fault_count++], sizeof *context.faults, "cudaEventRecord");
    assert_true(has("stream_order", "nothing makes stream 1 wait"));
}

TEST_F(known, all_conditions_must_be_met)
{
    assert_int_equal(read_list("progress | conf expandable_segments:True | destroy\n"), GMD_OK);
    snprintf(context.conf, sizeof context.conf, "max_split_size_mb:20,expandable_segments:True");
    assert_false(has("progress", "any"));
    context.has_destroyed = true;
    assert_true(has("progress", "any"));
}

/* A capture opens a pool, too; not every pool is a capture's. */
TEST_F(known, a_capture_must_have_been_begun)
{
    assert_int_equal(read_list("progress: a | begin_capture\nprogress: b | begin_pool\n"), GMD_OK);
    context.has_begun_pool = true;
    assert_false(has("progress", "a"));
    assert_true(has("progress", "b"));
    context.has_captured = true;
    assert_true(has("progress", "a"));
}

TEST_F(known, another_device_must_have_been_asked)
{
    assert_int_equal(read_list("data | device\n"), GMD_OK);
    assert_false(has("data", "any"));
    context.has_second_device = true;
    assert_true(has("data", "any"));
}

TEST_F(known, an_entry_can_end_the_judging_of_the_run)
{
    assert_int_equal(read_list("size: 18446744073709 | end\nleak: streams\n"), GMD_OK);
    assert_true(known_find(&known, &context, "size", "18446744073709551615 B")->spoils);
    assert_false(known_find(&known, &context, "leak", "2 streams are left")->spoils);
}

TEST_F(known, a_condition_that_is_none_is_refused_with_its_line)
{
    assert_int_equal(read_list("leak\nleak: streams | on Mondays\n"), GMD_BAD_INPUT);
    assert_non_null(
        strstr(error.text,
               ":2: expected 'fault FUNCTION', 'conf TEXT', 'destroy', 'device', 'begin_pool', "
               "'begin_capture' or 'end' behind '|', found 'on Mondays'"));
    assert_int_equal(known.count, 0);
}

TEST_F(known, a_bar_with_nothing_behind_it_is_refused)
{
    static const char *const lists[] = {"leak |\n", "leak | # later\n", "leak: a | end |\n",
                                        "leak || end\n"};
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++) {
        assert_int_equal(read_list(lists[i]), GMD_BAD_INPUT);
        assert_non_null(strstr(error.text, ":1: expected 'fault FUNCTION'"));
    }
}
