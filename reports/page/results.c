/* results.c - what commands wrote with --json as inputs of a page: runs by the report that they
 * were made of, others by the tables that their rows make. */
#include "gmd_page.h"

#include "findings.h"
#include "result_summary.h"
#include "state.h"
#include "table.h"

#include "gmd_result_file.h"
#include "gmd_result_json.h"
#include "gmd_size.h"

#include <stdio.h>
#include <string.h>

enum { MOST_COLUMNS = 12 };

/* A key of each row, and the column that it makes. `at`: which element, where it is an array. */
typedef struct json_column {
    const char *key;
    table_column column;
    size_t at;
} json_column;

/* An array of objects in the result, and the table that it makes. */
typedef struct json_table {
    const char *key, *title;
    json_column columns[MOST_COLUMNS]; /* the last is followed by one without a key */
} json_table;

typedef struct result_kind {
    const char *command, *kind;
    const char *subject; /* the key of what it is about */
    result_summary *summarise;
    json_table tables[3]; /* likewise */
} result_kind;

static const result_kind kinds[] = {
    {"bench",
     "bench",
     "allocator",
     summary_of_bench,
     {{"results",
       "Benchmarks",
       {{"name", {"Benchmark", "text"}, 0},
        {"allocator", {"Allocator", "text"}, 0},
        {"ns_per_op", {"Time of an operation", "ns"}, 0},
        {"interval", {"Low", "ns"}, 0},
        {"interval", {"High", "ns"}, 1},
        {"ratio", {"Ratio to the first", "ratio"}, 0},
        {"ratio_interval", {"Ratio, low", "ratio"}, 0},
        {"ratio_interval", {"Ratio, high", "ratio"}, 1},
        {"rounds", {"Rounds", "count"}, 0},
        {"disturbed_rounds", {"Disturbed", "count"}, 0},
        {"skipped", {"Skipped", "text"}, 0},
        {"failed", {"Failed", "text"}, 0}}}}},
    {"advise",
     "advice",
     "snapshot",
     summary_of_advice,
     {{"settings",
       "Settings and their predicted peaks",
       {{"conf", {"PYTORCH_CUDA_ALLOC_CONF", "text"}, 0},
        {"recorded", {"Recorded", "text"}, 0},
        {"fits", {"Fits", "text"}, 0},
        {"peak_reserved", {"Peak reserved", "B"}, 0},
        {"peak_allocated", {"Peak allocated", "B"}, 0},
        {"smallest_capacity", {"Smallest capacity", "B"}, 0},
        {"retries", {"Retries", "count"}, 0},
        {"ooms", {"Out of memory", "count"}, 0},
        {"device_calls", {"Device calls", "count"}, 0},
        {"exact", {"Exact", "text"}, 0}}},
      {"leaks",
       "What leaks",
       {{"class", {"Class", "text"}, 0},
        {"bytes", {"Bytes", "B"}, 0},
        {"bytes_per_iteration", {"Per iteration", "B"}, 0},
        {"file", {"File", "text"}, 0},
        {"line", {"Line", "count"}, 0}}}}},
    {"diff",
     "diff",
     "snapshot_after",
     summary_of_diff,
     {{"lines",
       "Difference by line",
       {{"file", {"File", "text"}, 0},
        {"line", {"Line", "count"}, 0},
        {"function", {"Function", "text"}, 0},
        {"before", {"Before", "B"}, 0},
        {"after", {"After", "B"}, 0},
        {"change", {"Difference", "B"}, 0}}},
      {"categories",
       "Difference by category",
       {{"category", {"Category", "text"}, 0},
        {"before", {"Before", "B"}, 0},
        {"after", {"After", "B"}, 0},
        {"change", {"Difference", "B"}, 0}}},
      {"figures",
       "Figures",
       {{"figure", {"Figure", "text"}, 0},
        {"before", {"Before", "count"}, 0},
        {"after", {"After", "count"}, 0},
        {"change", {"Difference", "count"}, 0}}}}},
    {"diagnose",
     "snapshot",
     "snapshot",
     summary_of_diagnosis,
     {{"findings",
       "Findings",
       {{"class", {"Class", "text"}, 0},
        {"bytes", {"Bytes", "B"}, 0},
        {"bytes_per_iteration", {"Per iteration", "B"}, 0},
        {"evidence", {"Evidence", "text"}, 0},
        {"fix", {"Fix", "text"}, 0}}}}},
};

/* --- values ---------------------------------------------------------------------------------- */

static const json_t *value_of(const json_t *row, const json_column *c)
{
    const json_t *value = json_object_get(row, c->key);
    return json_is_array(value) ? json_array_get(value, c->at) : value;
}

static bool fits(const json_t *value, const json_column *c)
{
    bool is_text = strcmp(c->column.unit, "text") == 0;
    return !value || json_is_null(value) ||
           (is_text ? json_is_string(value) || json_is_boolean(value) : json_is_number(value));
}

static void put_value(gmd_json *json, const json_t *value)
{
    if (json_is_string(value)) {
        gmd_json_string(json, NULL, json_string_value(value));
    } else if (json_is_boolean(value)) {
        gmd_json_string(json, NULL, json_is_true(value) ? "yes" : "no");
    } else if (json_is_integer(value)) {
        gmd_json_i64(json, NULL, json_integer_value(value));
    } else if (json_is_real(value)) {
        gmd_json_exact(json, NULL, json_real_value(value));
    } else {
        gmd_json_null(json, NULL);
    }
}

/* --- tables ---------------------------------------------------------------------------------- */

static gmd_status check_rows(const json_t *rows, const json_table *t, const char *name,
                             gmd_error *error)
{
    for (size_t i = 0; i < json_array_size(rows); i++) {
        const json_t *row = json_array_get(rows, i);
        if (!json_is_object(row)) {
            return gmd_fail(error, GMD_BAD_INPUT, "%.200s: %s[%zu]: expected an object", name,
                            t->key, i);
        }
        for (const json_column *c = t->columns; c < t->columns + MOST_COLUMNS && c->key; c++) {
            if (!fits(value_of(row, c), c)) {
                return gmd_fail(error, GMD_BAD_INPUT, "%.200s: %s[%zu]: \"%s\": expected a %s",
                                name, t->key, i, c->key,
                                strcmp(c->column.unit, "text") == 0 ? "string" : "number");
            }
        }
    }
    return GMD_OK;
}

static void put_table(document *to, const json_t *rows, const json_table *t, uint32_t input)
{
    table_column list[MOST_COLUMNS];
    size_t count = 0;
    for (; count < MOST_COLUMNS && t->columns[count].key; count++) {
        list[count] = t->columns[count].column;
    }
    gmd_json *json = table_begin(to, t->key, t->title, input, list, count);
    for (size_t i = 0; i < json_array_size(rows); i++) {
        table_row(json);
        for (size_t k = 0; k < count; k++) {
            put_value(json, value_of(json_array_get(rows, i), &t->columns[k]));
        }
        table_row_end(json);
    }
    table_end(json);
}

/* What a diagnosis says is wrong comes first on a page, also where its history is not there. */
static void put_findings(document *to, const json_t *rows, uint32_t input)
{
    char title[400], bytes[24];
    for (size_t i = 0; i < json_array_size(rows); i++) {
        const json_t *row = json_array_get(rows, i);
        const json_t *size = json_object_get(row, "bytes");
        const char *class = json_string_value(json_object_get(row, "class"));
        int64_t value = json_is_integer(size) ? json_integer_value(size) : 0;
        snprintf(title, sizeof title, "%.300s: %s", class ? class : "?",
                 gmd_format_size(value > 0 ? (uint64_t)value : 0, bytes));
        gmd_json *json = finding_begin(to, input, title, "diagnosis");
        gmd_json_string(json, "class", class);
        gmd_json_i64(json, "bytes", value);
        gmd_json_array(json, "detail");
        gmd_json_string(json, NULL, json_string_value(json_object_get(row, "evidence")));
        gmd_json_end(json);
        gmd_json_string(json, "fix", json_string_value(json_object_get(row, "fix")));
        gmd_json_null(json, "case");
        gmd_json_array(json, "evidence");
        gmd_json_end(json);
        gmd_json_end(json);
    }
}

/* All that is wrong is found before anything is added. */
static gmd_status add_tables(gmd_page *page, const result_kind *kind, const json_t *root,
                             const char *name, gmd_page_verdict *result, gmd_error *error)
{
    enum { MOST = sizeof kind->tables / sizeof *kind->tables };
    gmd_status status = GMD_OK;
    const char *subject = json_string_value(json_object_get(root, kind->subject));
    const char *verdict = json_string_value(json_object_get(root, "verdict"));
    if (!subject || !verdict || !json_is_array(json_object_get(root, kind->tables[0].key))) {
        return gmd_fail(error, GMD_BAD_INPUT,
                        "%.200s: expected what gmd %s writes with --json: \"%s\", \"verdict\" and "
                        "\"%s\"",
                        name, kind->command, kind->subject, kind->tables[0].key);
    }
    for (int i = 0; status == GMD_OK && i < MOST && kind->tables[i].key; i++) {
        status =
            check_rows(json_object_get(root, kind->tables[i].key), &kind->tables[i], name, error);
    }
    if (status != GMD_OK) {
        return status;
    }
    result->verdict = strcmp(verdict, "pass") == 0 ? GMD_PASS : GMD_FAIL;
    char title[400], summary[500];
    snprintf(title, sizeof title, "%s: %.300s", kind->command, subject);
    kind->summarise(root, summary, sizeof summary);
    page->has_diff = page->has_diff || strcmp(kind->command, "diff") == 0;
    uint32_t input = page_add_input(page, &(page_input){title, kind->kind, verdict, summary});
    for (int i = 0; i < MOST && kind->tables[i].key; i++) {
        const json_t *of = json_object_get(root, kind->tables[i].key);
        if (strcmp(kind->command, "diagnose") == 0) {
            put_findings(&page->document, of, input);
        } else if (json_array_size(of)) {
            put_table(&page->document, of, &kind->tables[i], input);
        }
    }
    return GMD_OK;
}

/* --- the whole ------------------------------------------------------------------------------- */

/* A fault of gmd or of the machine counts for more than one of an input. */
static gmd_page_verdict verdict_of(const gmd_report *report)
{
    gmd_page_verdict verdict = {gmd_report_verdict(report), GMD_BAD_INPUT};
    for (size_t i = 0; i < report->outcome_count; i++) {
        const gmd_outcome *o = report->outcomes[i];
        if (o->verdict == GMD_ERROR && o->error_status != GMD_BAD_INPUT) {
            verdict.error_status = o->error_status;
        }
    }
    return verdict;
}

static gmd_status add_report(gmd_page *page, const char *text, size_t size, const char *name,
                             gmd_page_verdict *verdict, gmd_error *error)
{
    gmd_result_file *result;
    gmd_status status = gmd_result_file_parse(&result, text, size, name, error);
    if (status == GMD_OK) {
        gmd_report report = gmd_result_file_report(result);
        *verdict = verdict_of(&report);
        status = gmd_page_add_report(page, &report, error);
        gmd_result_file_free(result);
    }
    return status;
}

gmd_status gmd_page_add_result(gmd_page *page, const char *text, size_t size, const char *name,
                               gmd_page_verdict *verdict, gmd_error *error)
{
    json_t *root;
    gmd_status status = gmd_result_json_load(&root, text, size, name, error);
    if (status != GMD_OK) {
        return status;
    }
    const char *command = json_string_value(json_object_get(root, "command"));
    const result_kind *kind = NULL;
    for (size_t i = 0; command && i < sizeof kinds / sizeof *kinds; i++) {
        kind = strcmp(kinds[i].command, command) == 0 ? &kinds[i] : kind;
    }
    status = kind ? add_tables(page, kind, root, name, verdict, error)
                  : add_report(page, text, size, name, verdict, error);
    json_decref(root);
    return status;
}
