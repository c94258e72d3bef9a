/* The Markdown summary of a CI job. */
#include "gmd_test.h"
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

TEST_F(sample, the_first_line_is_the_verdict)
{
    const char *text = report_on(&sample_passing, &sample_failing);
    assert_memory_equal(text, "### gmd run: \xE2\x9D\x8C fail\n",
                        strlen("### gmd run: \xE2\x9D\x8C fail\n"));
}

TEST_F(sample, each_run_is_a_row_of_the_table)
{
    const char *text = report_on(&sample_passing, &sample_exact);
    assert_contains(text, "\n| growth leak=true | \xE2\x9C\x85 pass | 2,000 | 8,000 |");
    assert_contains(text, "| 10,236 of 10,236 |");
}

TEST_F(sample, every_row_of_the_table_has_the_same_number_of_cells)
{
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

TEST_F(sample, a_violation_is_told_with_request_and_case)
{
    assert_contains(
        report_on(&sample_failing, NULL),
        "- **overlap**, request 17: b3 shares 512 B with b1 (case: gmd-cases/overlap.gmd)");
}

TEST_F(sample, a_short_phase_table_is_open)
{
    const char *text = report_on(&sample_passing, NULL);
    assert_contains(text, "| step 2 | 200.5 | 1,250.0 | 1,260.0 | 1,260.0 |");
    assert_null(strstr(text, "<details>"));
}

TEST_F(sample, a_long_phase_table_is_folded)
{
    sample_passing.phase_count = 13;
    const char *text = report_on(&sample_passing, NULL);
    assert_contains(text, "<details><summary>growth leak=true: 13 phases</summary>");
    assert_contains(text, "</details>");
}

TEST_F(sample, hostile_text_stays_text)
{
    sample_make_hostile(&sample_failing);
    const char *text = report_on(&sample_failing, NULL);
    assert_null(strstr(text, "<b>"));
    assert_contains(text, "a &lt;b&gt; &amp; \"c\" \\|");
}
