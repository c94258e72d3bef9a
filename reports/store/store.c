#include "gmd_store.h"

#include "database.h"

#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>

/* --- one row ----------------------------------------------------------------------------- */

typedef struct row {
    sqlite3_stmt *statement;
    int column; /* bound so far */
    bool failed;
} row;

static row begin_row(sqlite3 *database, const char *sql)
{
    row r = {.statement = NULL};
    r.failed = sqlite3_prepare_v2(database, sql, -1, &r.statement, NULL) != SQLITE_OK;
    return r;
}

static void put_text(row *r, const char *text)
{
    r->failed = r->failed || sqlite3_bind_text(r->statement, ++r->column, text, -1,
                                               SQLITE_TRANSIENT) != SQLITE_OK;
}

/* GMD_STAT_UNKNOWN is NULL, and so is what SQLite's numbers have no room for. */
static void put_number(row *r, uint64_t number)
{
    int column = ++r->column;
    if (!r->failed) {
        r->failed = (number > INT64_MAX ? sqlite3_bind_null(r->statement, column)
                                        : sqlite3_bind_int64(r->statement, column,
                                                             (sqlite3_int64)number)) != SQLITE_OK;
    }
}

static void put_seconds(row *r, double seconds)
{
    r->failed = r->failed || sqlite3_bind_double(r->statement, ++r->column, seconds) != SQLITE_OK;
}

static bool end_row(row *r)
{
    bool is_done = !r->failed && sqlite3_step(r->statement) == SQLITE_DONE;
    sqlite3_finalize(r->statement);
    return is_done;
}

/* --- a report ---------------------------------------------------------------------------- */

static bool add_run(sqlite3 *database, const gmd_report *report, time_t when)
{
    row r = begin_row(database, "INSERT INTO run (time, gmd, command, allocator, device, verdict,"
                                " conditions) VALUES (?, ?, ?, ?, ?, ?, ?)");
    put_number(&r, (uint64_t)when);
    put_text(&r, report->version);
    put_text(&r, report->command);
    put_text(&r, report->allocator);
    put_text(&r, report->device);
    put_text(&r, gmd_verdict_name(gmd_report_verdict(report)));
    put_text(&r, report->conditions ? report->conditions : "");
    return end_row(&r);
}

static bool add_violation(sqlite3 *database, uint64_t outcome, const gmd_violation *violation)
{
    row r = begin_row(database, "INSERT INTO violation (outcome, oracle, request, message,"
                                " case_path) VALUES (?, ?, ?, ?, ?)");
    put_number(&r, outcome);
    put_text(&r, violation->oracle);
    put_number(&r, violation->request);
    put_text(&r, violation->message);
    put_text(&r, *violation->case_path ? violation->case_path : NULL);
    return end_row(&r);
}

static bool add_outcome(sqlite3 *database, uint64_t run, const gmd_report *report, size_t index)
{
    const gmd_outcome *o = report->outcomes[index];
    char title[GMD_TITLE_TEXT], seed[24];
    const uint64_t unknown = GMD_STAT_UNKNOWN;
    snprintf(seed, sizeof seed, "%" PRIu64, o->seed);
    row r =
        begin_row(database, "INSERT INTO outcome (run, workload, kind, seed, verdict, requests,"
                            " device_calls, seconds, allocated_peak, reserved_peak, retries, ooms)"
                            " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)");
    put_number(&r, run);
    put_text(&r, gmd_outcome_title(report, index, title));
    put_text(&r, o->kind);
    put_text(&r, seed);
    put_text(&r, gmd_verdict_name(o->verdict));
    put_number(&r, o->requests);
    put_number(&r, o->device_calls);
    put_seconds(&r, o->seconds);
    put_number(&r, o->has_stats ? o->stats.allocated_bytes_peak : unknown);
    put_number(&r, o->has_stats ? o->stats.reserved_bytes_peak : unknown);
    put_number(&r, o->has_stats ? o->stats.num_alloc_retries : unknown);
    put_number(&r, o->has_stats ? o->stats.num_ooms : unknown);
    bool is_added = end_row(&r);
    uint64_t id = (uint64_t)sqlite3_last_insert_rowid(database);
    for (uint32_t i = 0; i < o->violation_count && is_added; i++) {
        is_added = add_violation(database, id, &o->violations[i]);
    }
    return is_added;
}

gmd_status gmd_store_check(const char *path, gmd_error *error)
{
    struct stat info;
    sqlite3 *database;
    if (stat(path, &info) != 0 || (S_ISREG(info.st_mode) && info.st_size == 0)) {
        return GMD_OK;
    }
    gmd_status status = database_open(&database, path, false, error);
    if (status == GMD_OK) {
        sqlite3_close(database);
    }
    return status;
}

gmd_status gmd_store_add(const char *path, const gmd_report *report, time_t when, gmd_error *error)
{
    sqlite3 *database;
    gmd_status status = database_open(&database, path, true, error);
    if (status != GMD_OK) {
        return status;
    }
    bool is_added = add_run(database, report, when);
    uint64_t run = (uint64_t)sqlite3_last_insert_rowid(database);
    for (size_t i = 0; i < report->outcome_count && is_added; i++) {
        /* What could not be read or found was no workload. */
        is_added = strcmp(report->outcomes[i]->kind, "input") == 0 ||
                   add_outcome(database, run, report, i);
    }
    if (!is_added || sqlite3_exec(database, "COMMIT", NULL, NULL, NULL) != SQLITE_OK) {
        status = database_fail(database, path, error);
    }
    sqlite3_close(database); /* what was not committed is taken back */
    return status;
}
