/* The JUnit report: what a CI server counts. It also leaves *.junit.xml in the working folder for
 * the test reports/junit_schema. */
#include "gmd_test.h"
#include "sample.h"

#include <stdlib.h>
#include <string.h>

/* Writes the report, and a copy to FILE.junit.xml. */
static const char *report_on(const char *file, const gmd_outcome *first, const gmd_outcome *second,
                             const gmd_outcome *third)
{
    sample_text = sample_written(gmd_report_junit, sample_report("run", first, second, third));
    assert_non_null(sample_text);
    char path[64];
    snprintf(path, sizeof path, "%s.junit.xml", file);
    FILE *copy = fopen(path, "w");
    assert_non_null(copy);
    fputs(sample_text, copy);
    fclose(copy);
    return sample_text;
}

#define assert_contains(text, part) assert_non_null(strstr((text), (part)))

TEST_F(sample, each_run_is_a_suite_with_a_case_for_each_oracle)
{
    const char *text = report_on("passing", &sample_passing, &sample_exact, NULL);
    assert_int_equal(sample_count(text, "<testsuite "), 2);
    assert_contains(text,
                    "<testcase classname=\"gmd.sim.scenario.growth leak=true\" name=\"overlap\"");
    assert_contains(text,
                    "<testcase classname=\"gmd.sim.scenario.growth leak=true\" name=\"backing\"");
}

TEST_F(sample, the_tallies_count_what_is_there)
{
    const char *text = report_on("mixed", &sample_passing, &sample_failing, &sample_exact);
    assert_contains(text,
                    "<testsuites name=\"gmd\" tests=\"10\" failures=\"1\" errors=\"0\" time=");
    assert_int_equal(sample_count(text, "<testcase "), 10);
    assert_int_equal(sample_count(text, "<failure "), 1);
    assert_int_equal(sample_count(text, "<skipped "), 1);
}

TEST_F(sample, a_skipped_oracle_says_why)
{
    assert_contains(report_on("skipped", &sample_passing, NULL, NULL),
                    "<skipped message=\"no device figures\"/>");
}

TEST_F(sample, a_violation_is_a_failure_with_message_request_and_case)
{
    const char *text = report_on("violation", &sample_failing, NULL, NULL);
    assert_contains(text, "<failure message=\"b3 shares 512 B with b1\" type=\"overlap.shared\">");
    assert_contains(text, "request 17: b3 shares 512 B with b1\ncase: gmd-cases/overlap.gmd");
}

/* Servers group by the type, and a test case has room for one failure. */
TEST_F(sample, the_type_of_a_failure_names_each_kind_once)
{
    gmd_violation *v = sample_failing.violations;
    v[1] = v[2] = v[0];
    snprintf(v[1].identity.kind, sizeof v[1].identity.kind, "overlap.no_host_memory");
    sample_failing.violation_count = 3;
    const char *text = report_on("kinds", &sample_failing, NULL, NULL);
    assert_int_equal(sample_count(text, "<failure "), 1);
    assert_contains(text, " type=\"overlap.shared, overlap.no_host_memory\">");
}

TEST_F(sample, an_exact_check_is_a_passing_case)
{
    const char *text = report_on("exact", &sample_exact, NULL, NULL);
    assert_contains(text, "name=\"exact\"");
    assert_int_equal(sample_count(text, "<failure"), 0);
}

TEST_F(sample, a_check_that_differs_is_a_failure_with_both_sides)
{
    sample_differ();
    const char *text = report_on("differs", &sample_exact, NULL, NULL);
    assert_contains(text, "<failure message=\"512 of 10236 requests matched\" type=\"exact\">");
    assert_contains(text, "expected: 0x10000\ngot: 0x20000");
    assert_int_equal(sample_count(text, "<failure"), 1);
}

TEST_F(sample, an_error_is_an_error_and_not_a_failure)
{
    sample_passing.verdict = GMD_ERROR;
    snprintf(sample_passing.error, sizeof sample_passing.error, "no gmd_malloc in plugin.so");
    const char *text = report_on("error", &sample_passing, NULL, NULL);
    assert_contains(text, "<error message=\"no gmd_malloc in plugin.so\" type=\"error\"/>");
    assert_int_equal(sample_count(text, "<failure"), 0);
}

TEST_F(sample, a_failure_that_no_oracle_owns_is_never_green)
{
    sample_passing.verdict = GMD_FAIL;
    const char *text = report_on("unexplained", &sample_passing, NULL, NULL);
    assert_int_equal(sample_count(text, "<failure"), 1);
    assert_contains(text, "failures=\"1\"");
}

/* Hostile names are all the same, which those of a real report never are. */
static void tell_apart(gmd_outcome *outcome, char mark)
{
    outcome->name[0] = mark;
    for (uint32_t i = 0; i < outcome->oracle_count; i++) {
        outcome->oracles[i].name[0] = (char)('1' + i);
    }
}

TEST_F(sample, hostile_text_is_escaped_and_forbidden_characters_are_dropped)
{
    sample_exact.check.exact = false;
    sample_exact.check.first_difference.present = true;
    sample_make_hostile(&sample_passing);
    sample_make_hostile(&sample_failing);
    sample_make_hostile(&sample_exact);
    tell_apart(&sample_passing, '1');
    tell_apart(&sample_failing, '2');
    tell_apart(&sample_exact, '3');
    const char *text = report_on("hostile", &sample_passing, &sample_failing, &sample_exact);
    assert_contains(text, "a &lt;b&gt; &amp; &quot;c&quot; |  \xEF\xBF\xBD &#10;]]&gt; \xC3\xA9");
    assert_null(strchr(text, '\x01'));
}
