/* The store of runs: what `--store` keeps and `gmd report --history` shows. */
#include "gmd_store.h"
#include "gmd_test.h"
#include "sample.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char path[] = "store_XXXXXX.db";
static char *shown;
static gmd_error error;

static int reset(void **state)
{
    (void)state;
    sample_reset();
    snprintf(path, sizeof path, "store_XXXXXX.db");
    int file = mkstemps(path, 3);
    return file < 0 ? -1 : close(file); /* an empty file is a store to be */
}

static int release(void **state)
{
    (void)state;
    free(shown);
    shown = NULL;
    return unlink(path);
}

FIXTURE(store, reset, release);

static void add_at(time_t when, const gmd_outcome *first, const gmd_outcome *second)
{
    gmd_status status =
        gmd_store_add(path, sample_report("run", first, second, NULL), when, &error);
    assert_int_equal(status, GMD_OK);
}

static const char *history_of(size_t most)
{
    size_t size;
    FILE *out = open_memstream(&shown, &size);
    assert_non_null(out);
    gmd_status status = gmd_store_history(path, most, out, &error);
    fclose(out);
    return status == GMD_OK ? shown : "(failed)";
}

#define assert_contains(text, part) assert_non_null(strstr((text), (part)))

TEST_F(store, an_empty_store_says_so)
{
    assert_int_equal(gmd_store_add(path, sample_report("run", NULL, NULL, NULL), 0, &error),
                     GMD_OK);
    assert_string_equal(history_of(10), "no runs yet\n");
}

TEST_F(store, each_workload_has_its_runs_in_order)
{
    add_at(86400, &sample_passing, &sample_failing);
    add_at(172800, &sample_passing, NULL);
    const char *text = history_of(10);
    assert_contains(text, "growth leak=true (scenario), reference on sim\n");
    assert_contains(text, "short.gmd (trace), reference on sim\n");
    assert_int_equal(sample_count(text, "1970-01-02 00:00:00"), 2);
    assert_int_equal(sample_count(text, "1970-01-03 00:00:00"), 1);
    assert_true(strstr(text, "1970-01-02") < strstr(text, "1970-01-03"));
}

TEST_F(store, a_change_of_the_reserved_peak_is_shown)
{
    sample_passing.stats.reserved_bytes_peak = 100 << 20;
    add_at(1, &sample_passing, NULL);
    sample_passing.stats.reserved_bytes_peak = 110 << 20;
    add_at(2, &sample_passing, NULL);
    add_at(3, &sample_passing, NULL);
    const char *text = history_of(10);
    assert_int_equal(sample_count(text, "+10.0%"), 1);
    assert_int_equal(sample_count(text, " = "), 1);
}

TEST_F(store, a_figure_that_nobody_kept_is_a_dash)
{
    add_at(1, &sample_failing, NULL);
    assert_contains(history_of(10), "fail ");
    assert_contains(shown, "   -");
}

TEST_F(store, only_the_last_runs_are_shown)
{
    for (time_t day = 0; day < 5; day++) {
        add_at(day * 86400, &sample_exact, NULL);
    }
    const char *text = history_of(2);
    assert_int_equal(sample_count(text, "1970-01-0"), 2);
    assert_contains(text, "1970-01-05");
}

TEST_F(store, other_allocators_have_a_history_of_their_own)
{
    gmd_report report = *sample_report("run", &sample_exact, NULL, NULL);
    assert_int_equal(gmd_store_add(path, &report, 1, &error), GMD_OK);
    report.allocator = "mine.so";
    assert_int_equal(gmd_store_add(path, &report, 2, &error), GMD_OK);
    assert_int_equal(sample_count(history_of(10), "when (UTC)"), 2);
}

TEST_F(store, hostile_text_is_kept_as_text)
{
    sample_make_hostile(&sample_failing);
    add_at(1, &sample_failing, NULL);
    assert_contains(history_of(10), "a <b> & \"c\" |");
}

TEST_F(store, a_file_of_another_kind_is_refused_and_kept)
{
    char line[16] = "";
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    for (int i = 0; i < 100; i++) {
        fputs("not a database\n", file);
    }
    fclose(file);
    assert_int_equal(gmd_store_add(path, sample_report("run", NULL, NULL, NULL), 0, &error),
                     GMD_BAD_INPUT);
    assert_contains(error.text, path);
    file = fopen(path, "r");
    assert_non_null(fgets(line, sizeof line, file));
    fclose(file);
    assert_string_equal(line, "not a database\n");
}

TEST_F(store, a_history_of_no_file_is_bad_input)
{
    assert_int_equal(gmd_store_history("no_such.db", 1, stdout, &error), GMD_BAD_INPUT);
}
