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

/* `whole`: the runs' time, where each of them is told of; 0: not known. */
static void put_costs(gmd_json *json, const oracle_row *row, double whole)
{
    bool is_timed = row->asked && row->seconds > 0; /* of few moments maybe none was */
    if (row->asked) {
        gmd_json_u64(json, NULL, row->asked);
    } else {
        gmd_json_null(json, NULL);
    }
    if (is_timed) {
        table_seconds(json, row->seconds);
        table_seconds(json, row->seconds / (double)row->asked);
    } else {
        gmd_json_null(json, NULL);
        gmd_json_null(json, NULL);
    }
    if (is_timed && whole > 0) {
        gmd_json_exact(json, NULL, row->seconds / whole);
    } else if (whole > 0) {
        gmd_json_null(json, NULL);
    }
}

static void put_oracle(gmd_json *json, const oracle_row *row, double whole, bool has_costs)
{
    table_row(json);
    gmd_json_string(json, NULL, row->name);
    gmd_json_string(json, NULL, holds_when(row->name));
    gmd_json_u64(json, NULL, row->fates[GMD_ORACLE_PASSED]);
    gmd_json_u64(json, NULL, row->fates[GMD_ORACLE_FAILED]);
    gmd_json_u64(json, NULL, row->fates[GMD_ORACLE_SKIPPED]);
    gmd_json_u64(json, NULL, row->violations);
    if (has_costs) {
        put_costs(json, row, whole);
    }
    gmd_json_string(json, NULL, row->reason);
    table_row_end(json);
}

/* 0: there are many runs of which only the sum is known, perhaps several at a time. */
static double time_of_runs(const gmd_report *report)
{
    double seconds = 0;
    for (size_t i = 0; i < report->outcome_count; i++) {
        seconds += report->outcomes[i]->seconds;
    }
    return report->gate || report->course_length ? 0 : seconds;
}

static gmd_json *begin_table(document *to, uint32_t input, bool are_counted, bool has_whole)
{
    static const table_column verdicts[] = {{"Oracle", "text"},   {"Holds when", "text"},
                                            {"Passed", "count"},  {"Failed", "count"},
                                            {"Skipped", "count"}, {"Violations", "count"}};
    static const table_column costs[] = {
        {"Moments seen", "count"}, {"Time", "ns"}, {"Time per moment", "ns"}};
    table_column list[sizeof verdicts / sizeof *verdicts + sizeof costs / sizeof *costs + 2];
    size_t count = sizeof verdicts / sizeof *verdicts;
    memcpy(list, verdicts, sizeof verdicts);
    if (are_counted) {
        memcpy(&list[count], costs, sizeof costs);
        count += sizeof costs / sizeof *costs;
        if (has_whole) {
            list[count++] = (table_column){"Share of the runs' time", "ratio"};
        }
    }
    list[count++] = (table_column){"Why skipped", "text"};
    return table_begin(to, "oracles", "Oracles", input, list, count);
}

void table_of_oracles(document *to, const gmd_report *report, uint32_t input)
{
    double whole = time_of_runs(report);
    oracle_rows rows = {.count = 0};
    list_oracles(report, &rows);
    if (!rows.count) {
        return;
    }
    gmd_json *json = begin_table(to, input, rows.are_counted, whole > 0);
    for (size_t i = 0; i < rows.count; i++) {
        put_oracle(json, &rows.items[i], whole, rows.are_counted);
    }
    table_end(json);
}
