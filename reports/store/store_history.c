/* store_history.c - what the runs in a store say of each workload over time. */
#include "database.h"
#include "gmd_report_text.h"
#include "gmd_store.h"

#include <inttypes.h>
#include <string.h>

enum {
    WORKLOAD,
    KIND,
    ALLOCATOR,
    DEVICE,
    TIME,
    VERSION,
    VERDICT,
    REQUESTS,
    CALLS,
    ALLOCATED,
    RESERVED,
    RETRIES,
    CONDITIONS,
    AGE
};

/* The runs of each workload are numbered from the newest, so that the last ones are chosen in one
 * pass. */
#define QUERY(conditions)                                                                          \
    "SELECT * FROM (SELECT o.workload, o.kind, r.allocator, r.device, r.time, r.gmd, o.verdict,"   \
    " o.requests, o.device_calls, o.allocated_peak, o.reserved_peak, o.retries, " conditions       \
    " AS conditions, row_number() OVER (PARTITION BY o.workload, o.kind, r.allocator, r.device,"   \
    " " conditions " ORDER BY r.id DESC, o.id DESC) AS age"                                        \
    " FROM outcome o JOIN run r ON o.run = r.id) WHERE age <= ?"                                   \
    " ORDER BY workload, kind, allocator, device, conditions, age DESC"

static const char query[] = QUERY("r.conditions"), query_of_old_store[] = QUERY("''");

typedef struct history {
    FILE *out;
    char group[2000]; /* workload, kind, allocator, device, conditions of the row before */
    bool has_before;
    sqlite3_int64 reserved_before;
    size_t groups;
} history;

static const char *text_at(sqlite3_stmt *row, int column)
{
    const char *text = (const char *)sqlite3_column_text(row, column);
    return text ? text : "";
}

static void put_heading(history *h, sqlite3_stmt *row)
{
    fputs(h->groups++ ? "\n" : "", h->out);
    gmd_utf8_put_line(text_at(row, WORKLOAD), h->out);
    fputs(" (", h->out);
    gmd_utf8_put_line(text_at(row, KIND), h->out);
    fputs("), ", h->out);
    gmd_utf8_put_line(text_at(row, ALLOCATOR), h->out);
    fputs(" on ", h->out);
    gmd_utf8_put_line(text_at(row, DEVICE), h->out);
    fputs(*text_at(row, CONDITIONS) ? ", " : "", h->out);
    gmd_utf8_put_line(text_at(row, CONDITIONS), h->out);
    fprintf(h->out, "\n  %-20s %-10s %-7s %10s %12s %15s %15s %8s %8s\n", "when (UTC)", "gmd",
            "verdict", "requests", "device calls", "peak allocated", "peak reserved", "change",
            "retries");
}

static void put_count(history *h, sqlite3_stmt *row, int column, int width)
{
    char text[32] = "-";
    if (sqlite3_column_type(row, column) != SQLITE_NULL) {
        gmd_format_count((uint64_t)sqlite3_column_int64(row, column), text);
    }
    fprintf(h->out, " %*s", width, text);
}

static void put_bytes(history *h, sqlite3_stmt *row, int column)
{
    const gmd_table_unit mib = {"MiB", 1 << 20, 1};
    char number[40], text[48] = "-";
    if (sqlite3_column_type(row, column) != SQLITE_NULL) {
        gmd_format_in_unit((uint64_t)sqlite3_column_int64(row, column), mib, number);
        snprintf(text, sizeof text, "%s MiB", number);
    }
    fprintf(h->out, " %15s", text);
}

/* The change of the reserved peak against the row before. */
static void put_change(history *h, sqlite3_stmt *row)
{
    char text[32] = "";
    bool is_known = sqlite3_column_type(row, RESERVED) != SQLITE_NULL;
    sqlite3_int64 now = sqlite3_column_int64(row, RESERVED);
    if (is_known && h->has_before && h->reserved_before > 0) {
        double change = 100.0 * ((double)now / (double)h->reserved_before - 1);
        snprintf(text, sizeof text, now == h->reserved_before ? "=" : "%+.1f%%", change);
    }
    fprintf(h->out, " %8s", text);
    h->has_before = is_known;
    h->reserved_before = now;
}

static void put_row(history *h, sqlite3_stmt *row)
{
    char group[sizeof h->group], when[32] = "?";
    snprintf(group, sizeof group, "%s\n%s\n%s\n%s\n%s", text_at(row, WORKLOAD), text_at(row, KIND),
             text_at(row, ALLOCATOR), text_at(row, DEVICE), text_at(row, CONDITIONS));
    if (h->groups == 0 || strcmp(group, h->group) != 0) {
        memcpy(h->group, group, sizeof group);
        h->has_before = false;
        put_heading(h, row);
    }
    time_t at = (time_t)sqlite3_column_int64(row, TIME);
    struct tm utc;
    if (gmtime_r(&at, &utc)) {
        strftime(when, sizeof when, "%Y-%m-%d %H:%M:%S", &utc);
    }
    fprintf(h->out, "  %-20s %-10s %-7s", when, text_at(row, VERSION), text_at(row, VERDICT));
    put_count(h, row, REQUESTS, 10);
    put_count(h, row, CALLS, 12);
    put_bytes(h, row, ALLOCATED);
    put_bytes(h, row, RESERVED);
    put_change(h, row);
    put_count(h, row, RETRIES, 8);
    putc('\n', h->out);
}

gmd_status gmd_store_history(const char *path, size_t most, FILE *out, gmd_error *error)
{
    sqlite3 *database;
    sqlite3_stmt *rows = NULL;
    history h = {.out = out};
    gmd_status status = database_open(&database, path, false, error);
    if (status != GMD_OK) {
        return status;
    }
    int step = SQLITE_ERROR;
    const char *sql = database_has_conditions(database) ? query : query_of_old_store;
    if (sqlite3_prepare_v2(database, sql, -1, &rows, NULL) == SQLITE_OK &&
        sqlite3_bind_int64(rows, 1, (sqlite3_int64)most) == SQLITE_OK) {
        while ((step = sqlite3_step(rows)) == SQLITE_ROW) {
            put_row(&h, rows);
        }
    }
    if (step != SQLITE_DONE) {
        status = database_fail(database, path, error);
    } else if (h.groups == 0) {
        fputs("no runs yet\n", out);
    }
    sqlite3_finalize(rows);
    sqlite3_close(database);
    return status == GMD_OK ? gmd_finish_writing(out, "the history", error) : status;
}
