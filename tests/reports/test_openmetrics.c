/* The OpenMetrics text: what a monitoring system scrapes. */
#include "gmd_test.h"
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

TEST_F(sample, the_text_ends_with_its_end_mark)
{
    const char *text = metrics_of(sample_report("run", &sample_passing, NULL, NULL));
    assert_string_equal(text + strlen(text) - 7, "\n# EOF\n");
}

TEST_F(sample, a_figure_has_a_sample_for_each_run)
{
    const char *text = metrics_of(sample_report("run", &sample_passing, &sample_failing, NULL));
    assert_sample(text, "gmd_run_requests", "", "2000");
    assert_int_equal(sample_count(text, "\ngmd_run_requests{"), 2);
    assert_int_equal(sample_count(text, "# TYPE gmd_run_requests gauge\n"), 1);
}

TEST_F(sample, whether_it_passed_is_a_number)
{
    const char *text = metrics_of(sample_report("run", &sample_passing, &sample_failing, NULL));
    assert_sample(text, "gmd_run_passed", "", "1");
    assert_contains(text, "gmd_run_passed{run=\"short.gmd\",kind=\"trace\",allocator=\"reference\","
                          "device=\"sim\"} 0\n");
}

TEST_F(sample, bytes_have_their_unit)
{
    const char *text = metrics_of(sample_report("run", &sample_passing, NULL, NULL));
    assert_contains(text, "# UNIT gmd_run_reserved_peak_bytes bytes\n");
    assert_sample(text, "gmd_run_reserved_peak_bytes", "", "9223372036854775807");
}

TEST_F(sample, what_nobody_kept_has_no_sample)
{
    const char *text = metrics_of(sample_report("run", &sample_passing, &sample_failing, NULL));
    assert_int_equal(sample_count(text, "\ngmd_run_ooms{"), 0);
    assert_int_equal(sample_count(text, "\ngmd_run_allocated_bytes{"), 1);
}

TEST_F(sample, a_skipped_oracle_is_not_a_passed_one)
{
    const char *text = metrics_of(sample_report("run", &sample_passing, NULL, NULL));
    assert_sample(text, "gmd_oracle", ",oracle=\"leak\",gmd_oracle=\"passed\"", "0");
    assert_sample(text, "gmd_oracle", ",oracle=\"leak\",gmd_oracle=\"skipped\"", "1");
}

TEST_F(sample, runs_that_are_alike_are_told_apart)
{
    const char *text = metrics_of(sample_report("run", &sample_exact, &sample_exact, NULL));
    assert_int_equal(sample_count(text, "gmd_run_passed{run=\"real.pickle.gz\","), 1);
    assert_int_equal(sample_count(text, "gmd_run_passed{run=\"real.pickle.gz #2\","), 1);
}

TEST_F(sample, a_part_of_the_gate_that_was_not_run_has_no_sample)
{
    gmd_gate_part parts[] = {{.name = "cases", .category = "correctness", .was_run = true},
                             {.name = "random", .category = "correctness"}};
    gmd_gate_result gate = {.parts = parts, .part_count = 2};
    gmd_report report = *sample_report("gate", &sample_passing, NULL, NULL);
    report.gate = &gate;
    const char *text = metrics_of(&report);
    assert_contains(text, "gmd_gate_part_findings{category=\"correctness\",part=\"cases\"} 0\n");
    assert_null(strstr(text, "part=\"random\""));
}

TEST_F(sample, hostile_text_is_escaped)
{
    sample_make_hostile(&sample_passing);
    const char *text = metrics_of(sample_report("run", &sample_passing, NULL, NULL));
    assert_contains(text, "a <b> & \\\"c\\\" |   \xEF\xBF\xBD \\n]]> \xC3\xA9");
}
