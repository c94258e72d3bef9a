#include "database.h"

#include <stddef.h>
#include <sys/stat.h>

#define APPLICATION_ID   0x676D6431 /* "gmd1": tells our files from those of others */
#define TEXT_OF(number)  #number
#define NUMBER_AS(macro) TEXT_OF(macro)

static const char tables[] =
    "CREATE TABLE run (id INTEGER PRIMARY KEY, time INTEGER NOT NULL, gmd TEXT NOT NULL,"
    " command TEXT NOT NULL, allocator TEXT NOT NULL, device TEXT NOT NULL,"
    " verdict TEXT NOT NULL, conditions TEXT NOT NULL DEFAULT '');"
    "CREATE TABLE outcome (id INTEGER PRIMARY KEY, run INTEGER NOT NULL REFERENCES run,"
    " workload TEXT NOT NULL, kind TEXT NOT NULL, seed TEXT NOT NULL, verdict TEXT NOT NULL,"
    " requests INTEGER NOT NULL, device_calls INTEGER NOT NULL, seconds REAL NOT NULL,"
    " allocated_peak INTEGER, reserved_peak INTEGER, retries INTEGER, ooms INTEGER);"
    "CREATE TABLE violation (outcome INTEGER NOT NULL REFERENCES outcome, oracle TEXT NOT NULL,"
    " request INTEGER NOT NULL, message TEXT NOT NULL, case_path TEXT);"
    "CREATE INDEX outcome_of_workload ON outcome (workload, kind);"
    "PRAGMA application_id = " NUMBER_AS(APPLICATION_ID) ";";

/* To stores of before, where a workload with other settings was the same one. */
static const char added_later[] = "ALTER TABLE run ADD COLUMN conditions TEXT NOT NULL DEFAULT '';";

/* What only a reader who may write can put right. */
static gmd_status fail_recovery(const char *path, gmd_error *error)
{
    return gmd_fail(error, GMD_BAD_INPUT,
                    "%.300s: whoever wrote to it last was interrupted, and what was not committed "
                    "cannot be taken back here: copy it with %.300s-journal to where both can be "
                    "written",
                    path, path);
}

gmd_status database_fail(sqlite3 *database, const char *path, gmd_error *error)
{
    int code = sqlite3_errcode(database);
    if (sqlite3_extended_errcode(database) == SQLITE_READONLY_ROLLBACK) {
        return fail_recovery(path, error);
    }
    gmd_status status = code == SQLITE_NOMEM ? GMD_NO_MEMORY
                        : code == SQLITE_NOTADB || code == SQLITE_CANTOPEN ||
                                code == SQLITE_READONLY || code == SQLITE_ERROR ||
                                code == SQLITE_CORRUPT
                            ? GMD_BAD_INPUT
                            : GMD_FAILED;
    return gmd_fail(error, status, "%.300s: %s", path, sqlite3_errmsg(database));
}

static bool read_number(sqlite3 *database, const char *query, sqlite3_int64 *number)
{
    sqlite3_stmt *statement = NULL;
    bool is_read = sqlite3_prepare_v2(database, query, -1, &statement, NULL) == SQLITE_OK &&
                   sqlite3_step(statement) == SQLITE_ROW;
    *number = is_read ? sqlite3_column_int64(statement, 0) : 0;
    sqlite3_finalize(statement);
    return is_read;
}

bool database_has_conditions(sqlite3 *database)
{
    sqlite3_int64 count;
    return read_number(database,
                       "SELECT count(*) FROM pragma_table_info('run') WHERE name = 'conditions'",
                       &count) &&
           count > 0;
}

/* --- what a store may hold ------------------------------------------------------------------ */

/* Anybody may have made the file. A view or a trigger of theirs would run in our place, and a
 * virtual table calls code; indexes and SQLite's own tables do not matter. */
static const char foreign_objects[] =
    "SELECT count(*) FROM sqlite_master WHERE type IN ('view', 'trigger')"
    " OR (type = 'table' AND name NOT IN ('run', 'outcome', 'violation')"
    " AND substr(name, 1, 7) <> 'sqlite_')"
    " OR (type = 'table' AND sql LIKE 'CREATE VIRTUAL%')";

static gmd_status check_content(sqlite3 *database, const char *path, gmd_error *error)
{
    sqlite3_int64 foreign, version;
    if (!read_number(database, foreign_objects, &foreign) ||
        !read_number(database, "PRAGMA user_version", &version)) {
        return database_fail(database, path, error);
    }
    if (foreign) {
        return gmd_fail(error, GMD_BAD_INPUT,
                        "%.300s: holds views, triggers or tables that no gmd makes: not read",
                        path);
    }
    return version == 0 ? GMD_OK
                        : gmd_fail(error, GMD_BAD_INPUT,
                                   "%.300s: is of version %lld, expected 0: a later gmd or another "
                                   "program made it",
                                   path, (long long)version);
}

/* What a file says of itself cannot make SQLite run anything: settings of the connection. */
static bool harden(sqlite3 *database)
{
    static const struct {
        int setting, value;
    } settings[] = {{SQLITE_DBCONFIG_DEFENSIVE, 1},
                    {SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0},
                    {SQLITE_DBCONFIG_ENABLE_TRIGGER, 0},
                    {SQLITE_DBCONFIG_ENABLE_VIEW, 0}};
    for (size_t i = 0; i < sizeof settings / sizeof *settings; i++) {
        if (sqlite3_db_config(database, settings[i].setting, settings[i].value, NULL) !=
            SQLITE_OK) {
            return false;
        }
    }
    return true;
}

/* Under a lock, so that of two processes that meet an empty file one makes the tables. */
static gmd_status check(sqlite3 *database, const char *path, bool creates, gmd_error *error)
{
    sqlite3_int64 id, objects;
    if (!read_number(database, "PRAGMA application_id", &id) ||
        !read_number(database, "SELECT count(*) FROM sqlite_master", &objects)) {
        return database_fail(database, path, error);
    }
    if (id == APPLICATION_ID) {
        gmd_status status = check_content(database, path, error);
        if (status != GMD_OK) {
            return status;
        }
    }
    if (id == APPLICATION_ID && (!creates || database_has_conditions(database))) {
        return GMD_OK;
    }
    if (id == APPLICATION_ID) {
        return sqlite3_exec(database, added_later, NULL, NULL, NULL) == SQLITE_OK
                   ? GMD_OK
                   : database_fail(database, path, error);
    }
    if (objects > 0 || id != 0 || !creates) {
        return gmd_fail(error, GMD_BAD_INPUT,
                        "%.300s: is not a store of gmd's runs, as --store makes it", path);
    }
    return sqlite3_exec(database, tables, NULL, NULL, NULL) == SQLITE_OK
               ? GMD_OK
               : database_fail(database, path, error);
}

/* To be read, too, it is opened to be written: where a writer was killed in a commit, SQLite takes
 * back what it left before anybody reads. A file that cannot be written SQLite opens to be read.
 *
 * Commits go through a rollback journal, SQLite's default: a store is one file that can be copied
 * and read from anywhere, network folders too, which a write-ahead log rules out; a run writes one
 * transaction, so that the log's readers beside a writer would gain nothing. */
gmd_status database_open(sqlite3 **database, const char *path, bool creates, gmd_error *error)
{
    int flags = SQLITE_OPEN_READWRITE | (creates ? SQLITE_OPEN_CREATE : 0);
    gmd_status status = GMD_OK;
    struct stat info;
    *database = NULL;
    if (stat(path, &info) == 0 && S_ISDIR(info.st_mode)) { /* SQLite: "disk I/O error" */
        return gmd_fail(error, GMD_BAD_INPUT, "%.300s: is a folder, and no store of gmd's runs",
                        path);
    }
    if (sqlite3_open_v2(path, database, flags, NULL) != SQLITE_OK || !harden(*database)) {
        status = database_fail(*database, path, error);
    }
    sqlite3_busy_timeout(*database, 10000);
    if (status == GMD_OK && creates &&
        sqlite3_exec(*database, "BEGIN IMMEDIATE", NULL, NULL, NULL) != SQLITE_OK) {
        status = database_fail(*database, path, error);
    }
    if (status == GMD_OK) {
        status = check(*database, path, creates, error);
    }
    if (status != GMD_OK) {
        sqlite3_close(*database);
        *database = NULL;
    }
    return status;
}
