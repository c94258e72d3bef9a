#include "oracle_table.h"

#include "table.h"

#include "gmd_kind.h"

#include <string.h>

typedef struct oracle_row {
    const char *name, *reason; /* reason: why it was skipped, the first time */
    uint64_t fates[GMD_ORACLE_SKIPPED + 1];
    uint64_t asked, violations;
    double seconds;
} oracle_row;

typedef struct oracle_rows {
    oracle_row items[GMD_ORACLE_MAX];
    size_t count;
    bool are_counted; /* what each looked at and took is known */
} oracle_rows;

static void note_oracle(oracle_rows *rows, const gmd_oracle_result *result)
{
    size_t i = 0;
    while (i < rows->count && strcmp(rows->items[i].name, result->name) != 0) {
        i++;
    }
    if (i == GMD_ORACLE_MAX || (unsigned)result->fate > GMD_ORACLE_SKIPPED) {
        return;
    }
    if (i == rows->count) {
        rows->items[rows->count++] = (oracle_row){.name = result->name, .reason = ""};
    }
    rows->items[i].fates[result->fate]++;
    rows->items[i].asked += result->asked;
    rows->items[i].seconds += result->seconds;
    rows->are_counted = rows->are_counted || result->asked;
    if (result->fate == GMD_ORACLE_SKIPPED && !*rows->items[i].reason) {
        rows->items[i].reason = result->reason;
    }
}

static const char *holds_when(const char *oracle)
{
    for (int i = 0; i < GMD_JUDGE_COUNT; i++) {
        if (strcmp(gmd_judges[i].name, oracle) == 0) {
            return gmd_judges[i].holds_when;
        }
    }
    return "";
}

static void count_violation(oracle_rows *rows, const char *oracle)
{
    for (size_t i = 0; i < rows->count; i++) {
        rows->items[i].violations += strcmp(rows->items[i].name, oracle) == 0;
    }
}

static void list_oracles(const gmd_report *report, oracle_rows *rows)
{
    for (size_t i = 0; i < report->outcome_count; i++) {
        const gmd_outcome *o = report->outcomes[i];
        for (uint32_t k = 0; k < o->oracle_count && k < GMD_ORACLE_MAX; k++) {
            note_oracle(rows, &o->oracles[k]);
        }
        for (uint32_t k = 0; !report->gate && k < o->violation_count; k++) {
            count_violation(rows, o->violations[k].oracle);
        }
    }
    for (size_t i = 0; report->gate && i < report->gate->finding_count; i++) {
        count_violation(rows, report->gate->findings[i].violation.oracle);
    }
}

/* --- the table ------------------------------------------------------------------------------- */

/* What is known of the oracles. */
typedef struct table_kind {
    bool is_of_many; /* runs of a gate or a campaign: only sums are known, and a verdict on all */
    bool has_costs;
    double seconds; /* of the runs; 0: not known, as several were made at a time */
} table_kind;

static table_kind kind_of(const gmd_report *report, const oracle_rows *rows)
{
    table_kind kind = {.is_of_many = report->gate || report->course_length,
                       .has_costs = rows->are_counted};
    for (size_t i = 0; i < report->outcome_count && !kind.is_of_many; i++) {
        kind.seconds += report->outcomes[i]->seconds;
    }
    return kind;
}

static void put_verdicts(gmd_json *json, const oracle_row *row, bool is_of_many)
{
    bool is_skipped = row->fates[GMD_ORACLE_SKIPPED] && !row->asked && !row->violations;
    if (is_of_many) {
        gmd_json_string(json, NULL, row->violations ? "fail" : is_skipped ? "skipped" : "pass");
    } else {
        gmd_json_u64(json, NULL, row->fates[GMD_ORACLE_PASSED]);
        gmd_json_u64(json, NULL, row->fates[GMD_ORACLE_FAILED]);
        gmd_json_u64(json, NULL, row->fates[GMD_ORACLE_SKIPPED]);
    }
    gmd_json_u64(json, NULL, row->violations);
}

static void put_costs(gmd_json *json, const oracle_row *row, const table_kind *kind)
{
    bool is_timed = row->asked && row->seconds > 0; /* of few moments maybe none was */
    table_figure(json, row->asked ? row->asked : GMD_STAT_UNKNOWN);
    if (is_timed) {
        table_seconds(json, row->seconds);
        table_seconds(json, row->seconds / (double)row->asked);
    } else {
        gmd_json_null(json, NULL);
        gmd_json_null(json, NULL);
    }
    if (!kind->is_of_many && is_timed && kind->seconds > 0) {
        gmd_json_exact(json, NULL, row->seconds / kind->seconds);
    } else if (!kind->is_of_many) {
        gmd_json_null(json, NULL);
    }
}

static void put_oracle(gmd_json *json, const oracle_row *row, const table_kind *kind)
{
    table_row(json);
    gmd_json_string(json, NULL, row->name);
    gmd_json_string(json, NULL, holds_when(row->name));
    put_verdicts(json, row, kind->is_of_many);
    if (kind->has_costs) {
        put_costs(json, row, kind);
    }
    gmd_json_string(json, NULL, row->reason);
    table_row_end(json);
}

typedef struct column_list {
    table_column items[12];
    size_t count;
} column_list;

static void add_column(column_list *list, const char *name, const char *unit)
{
    list->items[list->count++] = (table_column){name, unit};
}

static column_list columns_of(const table_kind *kind)
{
    column_list list = {.count = 0};
    add_column(&list, "Oracle", "text");
    add_column(&list, "Holds when", "text");
    if (kind->is_of_many) {
        add_column(&list, "Verdict", "text");
    } else {
        add_column(&list, "Passed", "count");
        add_column(&list, "Failed", "count");
        add_column(&list, "Skipped", "count");
    }
    add_column(&list, "Violations", "count");
    if (kind->has_costs) {
        add_column(&list, "Moments seen", "count");
        add_column(&list, "Time", "ns");
        add_column(&list, "Time per moment", "ns");
    }
    if (kind->has_costs && !kind->is_of_many) {
        add_column(&list, "Share of the runs' time", "ratio");
    }
    add_column(&list, "Why skipped", "text");
    return list;
}

void table_of_oracles(document *to, const gmd_report *report, uint32_t input)
{
    oracle_rows rows = {.count = 0};
    list_oracles(report, &rows);
    if (!rows.count) {
        return;
    }
    const table_kind kind = kind_of(report, &rows);
    const column_list columns = columns_of(&kind);
    gmd_json *json = table_begin(to, "oracles", "Oracles", input, columns.items, columns.count);
    for (size_t i = 0; i < rows.count; i++) {
        put_oracle(json, &rows.items[i], &kind);
    }
    table_end(json);
}
