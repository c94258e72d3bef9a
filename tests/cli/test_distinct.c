/* Runs of files that have one name: each report says which file each is of. */
#include "distinct.h"
#include "gmd_test.h"
#include "gmd_text.h"

#include <stdio.h>
#include <stdlib.h>

enum { RUNS = 3 };

static gmd_outcome *runs[RUNS];

static int allocate(void **state)
{
    (void)state;
    for (size_t i = 0; i < RUNS; i++) {
        runs[i] = calloc(1, sizeof *runs[i]);
    }
    return 0;
}

static int release(void **state)
{
    (void)state;
    for (size_t i = 0; i < RUNS; i++) {
        free(runs[i]);
    }
    return 0;
}

FIXTURE(distinct, allocate, release);

/* Files of these paths, each named by its last part; "" is a run of no file, named "c.gmd". */
static void given(const char *first, const char *second, const char *third)
{
    const char *const paths[RUNS] = {first, second, third};
    for (size_t i = 0; i < RUNS; i++) {
        const char *base = gmd_file_name(paths[i]);
        snprintf(runs[i]->path, sizeof runs[i]->path, "%s", paths[i]);
        snprintf(runs[i]->name, sizeof runs[i]->name, "%.200s", *base ? base : "c.gmd");
        cli_tell_apart(runs[i], paths, RUNS);
    }
}

static void assert_named(const char *first, const char *second, const char *third)
{
    assert_string_equal(runs[0]->name, first);
    assert_string_equal(runs[1]->name, second);
    assert_string_equal(runs[2]->name, third);
}

TEST_F(distinct, other_names_stay_short)
{
    given("old/a.gmd", "new/b.gmd", "new/c.gmd");
    assert_named("a.gmd", "b.gmd", "c.gmd");
}

TEST_F(distinct, one_folder_more_tells_two_files_apart)
{
    given("deep/down/old/c.gmd", "up/new/c.gmd", "new/d.gmd");
    assert_named("old/c.gmd", "new/c.gmd", "d.gmd");
}

TEST_F(distinct, as_many_folders_as_it_takes_are_named)
{
    given("x/old/run/c.gmd", "x/new/run/c.gmd", "x/new/play/c.gmd");
    assert_named("old/run/c.gmd", "new/run/c.gmd", "play/c.gmd");
}

TEST_F(distinct, a_path_that_ends_another_is_whole)
{
    given("c.gmd", "a/c.gmd", "b/a/c.gmd");
    assert_named("c.gmd", "a/c.gmd", "b/a/c.gmd");
}

TEST_F(distinct, one_file_run_twice_keeps_its_name)
{
    given("a/c.gmd", "a/c.gmd", "a/c.gmd");
    assert_named("c.gmd", "c.gmd", "c.gmd");
}

TEST_F(distinct, what_is_no_file_keeps_its_name)
{
    given("", "a/c.gmd", "b/c.gmd");
    assert_named("c.gmd", "a/c.gmd", "b/c.gmd");
}

TEST_F(distinct, a_path_that_is_too_long_for_a_name_is_not_cut)
{
    char first[500], second[500];
    snprintf(first, sizeof first, "a/%0400d/c.gmd", 0);
    snprintf(second, sizeof second, "b/%0400d/c.gmd", 0);
    given(first, second, "d.gmd");
    assert_named("c.gmd", "c.gmd", "d.gmd");
}
