/* What becomes of a finding whose case takes long to run: a hang is minimised, and what kept it
 * from becoming small is said. */
#include "fuzz_test.h"

#include "gmd_findings.h"

#define BUDGET_S 0.6 /* of a request */
#define HASTE_S  0.2 /* of one, while a hang is minimised */

static gmd_run_options options;
static gmd_runner runner;
static gmd_findings findings;

static int close_all(void **state)
{
    gmd_findings_free(&findings);
    findings = (gmd_findings){0};
    gmd_runner_close(&runner);
    unsetenv("GMD_PLANT");
    return free_made(state);
}

FIXTURE(finding, NULL, close_all);

static gmd_trace *allocations(const char *header, unsigned count)
{
    char text[4000], *at = text + snprintf(text, sizeof text, "gmd-trace 1\n%s", header);
    for (unsigned i = 0; i < count; i++) {
        const char *thread = i % 2 ? "thread t1\n" : "thread main\n";
        at += snprintf(at, sizeof text - (size_t)(at - text), "%salloc b%u 1 s1\n",
                       *header ? thread : "", i);
    }
    return make_trace(text);
}

/* Adds what `trace` shows with this plant; `seconds`: for minimising. */
static const gmd_finding *find(const char *plant, const gmd_trace *trace, double seconds)
{
    const gmd_outcome *outcome;
    gmd_error error = {""};
    setenv("GMD_PLANT", plant, 1);
    options = options_for(GMD_TEST_PLANTED);
    options.process.call_budget_s = BUDGET_S;
    findings.minimize_seconds = seconds;
    findings.hang_seconds = HASTE_S;
    gmd_runner_init(&runner, &options);
    demand_ok(gmd_runner_run(&runner, trace, &outcome, &error), &error);
    assert_int_equal(outcome->verdict, GMD_FAIL);
    gmd_violation violation = outcome->violations[0];
    demand_ok(gmd_findings_add(&findings, &runner, trace, &violation, 1, 0, &error), &error);
    return &findings.items[0];
}

/* The planted allocator hangs in its third allocation. */
TEST_F(finding, a_hang_of_interleaved_threads_is_minimised)
{
    const gmd_finding *f = find("hang", allocations("interleave seed 3\n", 12), 60);
    assert_int_equal(f->requests, 3);
    assert_string_equal(f->unfinished, "");
}

TEST_F(finding, a_small_hang_has_been_seen_under_the_budget_that_was_given)
{
    const gmd_finding *f = find("hang", allocations("", 4), 60);
    assert_non_null(strstr(f->violation.message, "no answer within 0.6 s in request 2"));
}

/* Request n takes n tenths of a second: the sixth is too slow, and under the smaller budget the
 * second. */
TEST_F(finding, what_is_only_slow_in_a_smaller_case_keeps_its_own)
{
    const gmd_finding *f = find("ever_slower", allocations("", 12), 60);
    assert_int_equal(f->requests, 12);
    assert_non_null(strstr(f->unfinished, "not minimised: what took 0.15 s in a smaller case"));
}

TEST_F(finding, a_case_whose_time_was_over_says_so)
{
    const gmd_finding *f = find("hang", allocations("", 12), 0.1);
    assert_string_equal(f->unfinished, "minimised until its time was over");
}

TEST_F(finding, a_case_whose_runs_were_over_says_so)
{
    findings.minimize_tries = 2;
    const gmd_finding *f = find("overlap", allocations("", 12), 60);
    assert_string_equal(f->unfinished, "minimised until its 2 runs were over");
}
