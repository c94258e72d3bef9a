/* A run that the user ends: what it came to stays, and nothing of it passes for judged. */
#include "driver_test.h"

#include "gmd_fork_server.h"

static const volatile sig_atomic_t interrupted = 1;

static gmd_outcome *outcome;
static gmd_error error;

static int allocate(void **state)
{
    (void)state;
    outcome = calloc(1, sizeof *outcome);
    return outcome ? 0 : -1;
}

static int release(void **state)
{
    (void)state;
    free(outcome);
    return 0;
}

FIXTURE(run, allocate, release);

static gmd_status run_interrupted(void)
{
    gmd_run_options options = options_on("cudamalloc");
    options.process.is_interrupted = &interrupted;
    gmd_trace trace = parse_lines("alloc a 512 s1\nfree a\n");
    gmd_workload workload = {
        .name = "test.gmd", .kind = "trace", .trace = &trace, .body = gmd_play_trace};
    gmd_status status = gmd_run_isolated(&options, &workload, outcome, &error);
    gmd_trace_free(&trace);
    return status;
}

TEST_F(run, an_interrupted_run_has_an_outcome)
{
    assert_int_equal(run_interrupted(), GMD_INTERRUPTED);
    assert_int_equal(outcome->verdict, GMD_UNFINISHED);
    assert_non_null(strstr(outcome->error, "interrupted after "));
}

TEST_F(run, no_oracle_passes_an_interrupted_run)
{
    run_interrupted();
    for (uint32_t i = 0; i < outcome->oracle_count; i++) {
        assert_int_not_equal(outcome->oracles[i].fate, GMD_ORACLE_PASSED);
    }
}

/* What hangs is not waited for, and is no finding either. */
TEST_F(run, a_request_that_is_interrupted_blames_nobody)
{
    volatile sig_atomic_t is_interrupted = 0;
    gmd_fork_server *server = NULL;
    const gmd_outcome *seen;
    gmd_run_options options = options_on(GMD_TEST_PLANTED);
    options.process.is_interrupted = &is_interrupted;
    gmd_trace trace = parse_lines("alloc a 512 s1\nfree a\n");
    setenv("GMD_PLANT", "hang", 1);
    assert_int_equal(gmd_fork_server_open(&server, &options, &error), GMD_OK);
    unsetenv("GMD_PLANT");
    is_interrupted = 1;
    gmd_status status = gmd_fork_server_run(server, &trace, &seen, &error);
    gmd_fork_server_close(server);
    gmd_trace_free(&trace);
    assert_int_equal(status, GMD_INTERRUPTED);
}
