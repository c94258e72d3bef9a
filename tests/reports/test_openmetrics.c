/* The OpenMetrics text: what a monitoring system scrapes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "sample.h"

#include <stdlib.h>
#include <string.h>

static const char *metrics_of(const gmd_report *report)
{
    sample_text = sample_written(gmd_report_openmetrics, report);
    assert_non_null(sample_text);
    return sample_text;
}

#define assert_contains(text, part) assert_non_null(strstr((text), (part)))

static const char labels[] =
    "run=\"growth leak=true\",kind=\"scenario\",allocator=\"reference\",device=\"sim\"";

static void assert_sample(const char *text, const char *name, const char *more, const char *value)
{
    char line[256];
    snprintf(line, sizeof line, "\n%s{%s%s} %s\n", name, labels, more, value);
    assert_contains(text, line);
}

static void the_text_ends_with_its_end_mark(void **state)
{
    (void)state;
    const char *text = metrics_of(sample_report("run", &sample_passing, NULL, NULL));
    assert_string_equal(text + strlen(text) - 7, "\n# EOF\n");
}

static void a_figure_has_a_sample_for_each_run(void **state)
{
    (void)state;
    const char *text = metrics_of(sample_report("run", &sample_passing, &sample_failing, NULL));
    assert_sample(text, "gmd_run_requests", "", "2000");
    assert_int_equal(sample_count(text, "\ngmd_run_requests{"), 2);
    assert_int_equal(sample_count(text, "# TYPE gmd_run_requests gauge\n"), 1);
}

static void whether_it_passed_is_a_number(void **state)
{
    (void)state;
    const char *text = metrics_of(sample_report("run", &sample_passing, &sample_failing, NULL));
    assert_sample(text, "gmd_run_passed", "", "1");
    assert_contains(text, "gmd_run_passed{run=\"short.gmd\",kind=\"trace\",allocator=\"reference\","
                          "device=\"sim\"} 0\n");
}

static void bytes_have_their_unit(void **state)
{
    (void)state;
    const char *text = metrics_of(sample_report("run", &sample_passing, NULL, NULL));
    assert_contains(text, "# UNIT gmd_run_reserved_peak_bytes bytes\n");
    assert_sample(text, "gmd_run_reserved_peak_bytes", "", "9223372036854775807");
}

static void what_nobody_kept_has_no_sample(void **state)
{
    (void)state;
    const char *text = metrics_of(sample_report("run", &sample_passing, &sample_failing, NULL));
    assert_int_equal(sample_count(text, "\ngmd_run_ooms{"), 0);
    assert_int_equal(sample_count(text, "\ngmd_run_allocated_bytes{"), 1);
}

static void a_skipped_oracle_is_not_a_passed_one(void **state)
{
    (void)state;
    const char *text = metrics_of(sample_report("run", &sample_passing, NULL, NULL));
    assert_sample(text, "gmd_oracle", ",oracle=\"leak\",gmd_oracle=\"passed\"", "0");
    assert_sample(text, "gmd_oracle", ",oracle=\"leak\",gmd_oracle=\"skipped\"", "1");
}

static void runs_that_are_alike_are_told_apart(void **state)
{
    (void)state;
    const char *text = metrics_of(sample_report("run", &sample_exact, &sample_exact, NULL));
    assert_int_equal(sample_count(text, "gmd_run_passed{run=\"real.pickle.gz\","), 1);
    assert_int_equal(sample_count(text, "gmd_run_passed{run=\"real.pickle.gz #2\","), 1);
}

static void a_part_of_the_gate_that_was_not_run_has_no_sample(void **state)
{
    (void)state;
    gmd_gate_part parts[] = {{.name = "cases", .category = "correctness", .was_run = true},
                             {.name = "random", .category = "correctness"}};
    gmd_gate_result gate = {.parts = parts, .part_count = 2};
    gmd_report report = *sample_report("gate", &sample_passing, NULL, NULL);
    report.gate = &gate;
    const char *text = metrics_of(&report);
    assert_contains(text, "gmd_gate_part_findings{category=\"correctness\",part=\"cases\"} 0\n");
    assert_null(strstr(text, "part=\"random\""));
}

static void hostile_text_is_escaped(void **state)
{
    (void)state;
    sample_make_hostile(&sample_passing);
    const char *text = metrics_of(sample_report("run", &sample_passing, NULL, NULL));
    assert_contains(text, "a <b> & \\\"c\\\" | \x01 \xEF\xBF\xBD \\n]]> \xC3\xA9");
}

#define CLAIM(name) cmocka_unit_test_setup_teardown(name, sample_setup, sample_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CLAIM(the_text_ends_with_its_end_mark),
        CLAIM(a_figure_has_a_sample_for_each_run),
        CLAIM(whether_it_passed_is_a_number),
        CLAIM(bytes_have_their_unit),
        CLAIM(what_nobody_kept_has_no_sample),
        CLAIM(a_skipped_oracle_is_not_a_passed_one),
        CLAIM(runs_that_are_alike_are_told_apart),
        CLAIM(a_part_of_the_gate_that_was_not_run_has_no_sample),
        CLAIM(hostile_text_is_escaped),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
