#include "sample_read.h"
#include "gmd_test.h"

#include <stdlib.h>
#include <string.h>

static sample_writer *const writers[] = {gmd_report_json, gmd_report_junit, gmd_report_markdown,
                                         gmd_report_sarif, gmd_report_openmetrics};

gmd_result_file *sample_read_back(const gmd_report *report)
{
    gmd_result_file *result;
    gmd_error error = {""};
    char *json = sample_written(gmd_report_json, report);
    assert_non_null(json);
    gmd_status status = gmd_result_file_parse(&result, json, strlen(json), "r.json", &error);
    free(json);
    assert_string_equal(status == GMD_OK ? "" : error.text, "");
    gmd_report again = gmd_result_file_report(result);
    again.rules = report->rules; /* of gmd, not of the run */
    again.rule_count = report->rule_count;
    for (size_t i = 0; i < sizeof writers / sizeof *writers; i++) {
        char *first = sample_written(writers[i], report),
             *second = sample_written(writers[i], &again);
        assert_string_equal(first, second);
        free(first);
        free(second);
    }
    return result;
}

void sample_refuse(const gmd_report *report, const char *what, const char *with,
                   const char *message)
{
    gmd_result_file *result;
    gmd_error error = {""};
    char *json = sample_written(gmd_report_json, report), *text = NULL;
    size_t size;
    assert_non_null(json);
    char *at = strstr(json, what);
    if (!at) {
        fail_msg("no '%s' in %s", what, json);
    }
    FILE *out = open_memstream(&text, &size);
    assert_non_null(out);
    fprintf(out, "%.*s%s%s", (int)(at - json), json, with, at + strlen(what));
    fclose(out);
    free(json);
    gmd_status status = gmd_result_file_parse(&result, text, size, "r.json", &error);
    free(text);
    assert_int_equal(status, GMD_BAD_INPUT);
    assert_null(result);
    assert_memory_equal(error.text, "r.json:", 7);
    if (!strstr(error.text, message)) {
        fail_msg("expected '%s', got '%s'", message, error.text);
    }
}
