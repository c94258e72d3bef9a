/* The store of runs: what `--store` keeps and `gmd report --history` shows. */
#include "gmd_random.h"
#include "gmd_store.h"
#include "gmd_test.h"
#include "sample.h"

#include <signal.h>
#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
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

/* --- a writer that was killed --------------------------------------------------------------- */

static void execute(sqlite3 *database, const char *sql)
{
    assert_int_equal(sqlite3_exec(database, sql, NULL, NULL, NULL), SQLITE_OK);
}

/* In a cache of one page a transaction reaches the file before its end. */
static void die_within_a_transaction(void)
{
    sqlite3 *database;
    sqlite3_open(path, &database);
    sqlite3_exec(
        database,
        "PRAGMA cache_size = 1; BEGIN; DELETE FROM outcome; WITH RECURSIVE n(i) AS (SELECT "
        "1 UNION ALL SELECT i + 1 FROM n WHERE i < 5000) INSERT INTO violation SELECT 1, "
        "'o', i, 'a message that takes its place', NULL FROM n;",
        NULL, NULL, NULL);
    raise(SIGKILL);
}

static void leave_a_hot_journal(void)
{
    char journal[64];
    int status;
    struct stat info;
    add_at(1, &sample_passing, NULL);
    pid_t writer = fork();
    if (writer == 0) {
        die_within_a_transaction();
    }
    assert_int_equal(waitpid(writer, &status, 0), writer);
    assert_int_equal(WTERMSIG(status), SIGKILL);
    snprintf(journal, sizeof journal, "%s-journal", path);
    assert_int_equal(stat(journal, &info), 0);
    assert_true(info.st_size > 0);
}

TEST_F(store, a_history_is_read_after_a_writer_was_killed_in_a_commit)
{
    leave_a_hot_journal();
    assert_contains(history_of(10), "1970-01-01 00:00:01");
}

TEST_F(store, a_store_is_checked_and_written_after_a_writer_was_killed_in_a_commit)
{
    leave_a_hot_journal();
    assert_int_equal(gmd_store_check(path, &error), GMD_OK);
    add_at(2, &sample_passing, NULL);
    assert_contains(history_of(10), "1970-01-01 00:00:01");
}

static void write_until_killed(void)
{
    for (time_t when = 2;; when++) {
        gmd_store_add(path, sample_report("run", &sample_passing, NULL, NULL), when, &error);
    }
}

TEST_F(store, fifty_writers_that_are_killed_at_any_moment_leave_a_store)
{
    enum { WRITERS = 50, MOST_US = 20000 };
    gmd_random random = {19};
    add_at(1, &sample_passing, NULL);
    for (int i = 0; i < WRITERS; i++) {
        pid_t writer = fork();
        if (writer == 0) {
            write_until_killed();
        }
        usleep((useconds_t)gmd_random_below(&random, MOST_US));
        kill(writer, SIGKILL);
        waitpid(writer, NULL, 0);
        assert_int_equal(gmd_store_check(path, &error), GMD_OK);
        assert_contains(history_of(100000), "1970-01-01 00:00:01");
        free(shown);
        shown = NULL;
    }
}

/* --- a store that somebody else made ---------------------------------------------------------- */

static void plant(const char *sql)
{
    sqlite3 *database;
    add_at(1, &sample_passing, NULL);
    assert_int_equal(sqlite3_open(path, &database), SQLITE_OK);
    execute(database, sql);
    sqlite3_close(database);
}

static void expect_refused(const char *reason)
{
    assert_string_equal(history_of(10), "(failed)");
    assert_contains(error.text, reason);
    assert_int_equal(gmd_store_check(path, &error), GMD_BAD_INPUT);
    assert_int_equal(
        gmd_store_add(path, sample_report("run", &sample_passing, NULL, NULL), 2, &error),
        GMD_BAD_INPUT);
}

TEST_F(store, a_view_in_the_place_of_a_table_is_refused)
{
    plant("ALTER TABLE run RENAME TO hidden; CREATE VIEW run AS SELECT * FROM hidden;");
    expect_refused("views, triggers or tables that no gmd makes");
}

TEST_F(store, a_trigger_is_refused_and_does_not_run)
{
    plant("CREATE TRIGGER wipe AFTER INSERT ON run BEGIN DELETE FROM outcome; END;");
    expect_refused("views, triggers or tables that no gmd makes");
}

TEST_F(store, another_version_is_refused)
{
    plant("PRAGMA user_version = 7");
    expect_refused("is of version 7, expected 0");
}

TEST_F(store, another_programs_database_is_refused)
{
    plant("PRAGMA application_id = 7");
    expect_refused("is not a store of gmd's runs");
}

TEST_F(store, an_index_of_the_users_is_welcome)
{
    plant("CREATE INDEX mine ON run (time)");
    assert_contains(history_of(10), "1970-01-01 00:00:01");
}
