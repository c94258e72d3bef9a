/* gmd_limit.h: what shows only beyond a clause of the contract is a limit of that clause; what
 * shows with the contract kept to is a defect. The library under test ends the process where a
 * caller does what GMD_LOOSE forbids. */
#include "fuzz_test.h"

#include "gmd_contract.h"
#include "gmd_limit.h"

static gmd_run_options options;
static gmd_contract contract;
static gmd_runner runner;

static int close_runner(void **state)
{
    gmd_runner_close(&runner);
    unsetenv("GMD_LOOSE");
    return free_made(state);
}

FIXTURE(limit, NULL, close_runner);

/* The limit of what the trace shows first, under the contract and beyond some of its clauses. */
static const char *limit_of(const char *loose, const char *profile, const char *beyond,
                            const char *requests)
{
    static char limit[128];
    char text[300];
    const gmd_outcome *outcome;
    gmd_error error = {""};
    int length = snprintf(text, sizeof text, "gmd-profile 1\n%s", profile);
    demand_ok(gmd_contract_parse(&contract, text, (size_t)length, "mine.profile", &error), &error);
    demand_ok(gmd_contract_go_beyond(&contract, beyond, &error), &error);
    setenv("GMD_LOOSE", loose, 1);
    options = options_for(GMD_TEST_LOOSE);
    options.judging.contract = &contract;
    gmd_runner_init(&runner, &options);
    snprintf(text, sizeof text, "gmd-trace 1\n%s", requests);
    const gmd_trace *trace = make_trace(text);
    demand_ok(gmd_runner_run(&runner, trace, &outcome, &error), &error);
    assert_int_equal(outcome->verdict, GMD_FAIL);
    const gmd_identity cause = outcome->violations[0].identity;
    gmd_limit_find(&runner, trace, &cause, limit, sizeof limit);
    return limit;
}

TEST_F(limit, what_needs_a_request_that_the_contract_forbids_is_a_limit_of_that_clause)
{
    assert_string_equal(limit_of("zero_bytes", "zero_bytes outside\nlargest 1GiB\n", "all",
                                 "alloc a 1 s1\nalloc b 0 s1\n"),
                        "zero_bytes");
}

TEST_F(limit, what_shows_with_the_contract_kept_to_is_a_defect)
{
    assert_string_equal(limit_of("zero_bytes", "largest 1GiB\n", "all", "alloc b 0 s1\n"), "");
}

TEST_F(limit, a_promise_that_is_not_made_is_one_as_well)
{
    assert_string_equal(limit_of("pressure", "pressure keeps\nstreams outlive_blocks\n", "pressure",
                                 "capacity 64MiB\nalloc a 20MiB s1\nalloc b 20MiB s1\nfree a\n"
                                 "free b\nexpect alloc c 50MiB s1\n"),
                        "pressure");
}

TEST_F(limit, without_a_contract_there_is_none)
{
    char limit[8] = "?";
    gmd_error error = {""};
    const gmd_outcome *outcome;
    setenv("GMD_LOOSE", "zero_bytes", 1);
    options = options_for(GMD_TEST_LOOSE);
    gmd_runner_init(&runner, &options);
    const gmd_trace *trace = make_trace("gmd-trace 1\nalloc a 0 s1\n");
    demand_ok(gmd_runner_run(&runner, trace, &outcome, &error), &error);
    const gmd_identity cause = outcome->violations[0].identity;
    gmd_limit_find(&runner, trace, &cause, limit, sizeof limit);
    assert_string_equal(limit, "");
}
