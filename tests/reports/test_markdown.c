/* The Markdown summary of a CI job. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "sample.h"

#include <stdlib.h>
#include <string.h>

static const char *report_on(const gmd_outcome *first, const gmd_outcome *second)
{
    sample_text = sample_written(gmd_report_markdown, sample_report("run", first, second, NULL));
    assert_non_null(sample_text);
    return sample_text;
}

#define assert_contains(text, part) assert_non_null(strstr((text), (part)))

static void the_first_line_is_the_verdict(void **state)
{
    (void)state;
    const char *text = report_on(&sample_passing, &sample_failing);
    assert_memory_equal(text, "### gmd run: \xE2\x9D\x8C fail\n",
                        strlen("### gmd run: \xE2\x9D\x8C fail\n"));
}

static void each_run_is_a_row_of_the_table(void **state)
{
    (void)state;
    const char *text = report_on(&sample_passing, &sample_exact);
    assert_contains(text, "\n| growth leak=true | \xE2\x9C\x85 pass | 2,000 | 8,000 |");
    assert_contains(text, "| 10,236 of 10,236 |");
}

static void every_row_of_the_table_has_the_same_number_of_cells(void **state)
{
    (void)state;
    sample_make_hostile(&sample_failing);
    char *text = strdup(report_on(&sample_passing, &sample_failing));
    unsigned rows = 0;
    for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n")) {
        if (line[0] == '|' && !strstr(line, "step") && !strstr(line, "model") &&
            !strstr(line, "phase") && sample_count(line, "--:") != 4) {
            assert_int_equal(sample_count(line, "|") - sample_count(line, "\\|"), 11);
            rows++;
        }
    }
    free(text);
    assert_int_equal(rows, 4);
}

static void a_violation_is_told_with_request_and_case(void **state)
{
    (void)state;
    assert_contains(
        report_on(&sample_failing, NULL),
        "- **overlap**, request 17: b3 shares 512 B with b1 (case: gmd-cases/overlap.gmd)");
}

static void a_short_phase_table_is_open(void **state)
{
    (void)state;
    const char *text = report_on(&sample_passing, NULL);
    assert_contains(text, "| step 2 | 200.5 | 1,250.0 | 1,260.0 | 1,260.0 |");
    assert_null(strstr(text, "<details>"));
}

static void a_long_phase_table_is_folded(void **state)
{
    (void)state;
    sample_passing.phase_count = 13;
    const char *text = report_on(&sample_passing, NULL);
    assert_contains(text, "<details><summary>growth leak=true: 13 phases</summary>");
    assert_contains(text, "</details>");
}

static void hostile_text_stays_text(void **state)
{
    (void)state;
    sample_make_hostile(&sample_failing);
    const char *text = report_on(&sample_failing, NULL);
    assert_null(strstr(text, "<b>"));
    assert_contains(text, "a &lt;b&gt; &amp; \"c\" \\|");
}

#define CLAIM(name) cmocka_unit_test_setup_teardown(name, sample_setup, sample_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CLAIM(the_first_line_is_the_verdict),
        CLAIM(each_run_is_a_row_of_the_table),
        CLAIM(every_row_of_the_table_has_the_same_number_of_cells),
        CLAIM(a_violation_is_told_with_request_and_case),
        CLAIM(a_short_phase_table_is_open),
        CLAIM(a_long_phase_table_is_folded),
        CLAIM(hostile_text_stays_text),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
