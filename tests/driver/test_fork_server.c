/* Many inputs in one process: each under its own header where the allocator can
 * follow, and what is found comes from that input only; and what an allocator does to the memory
 * that the processes share harms nobody else. */
#include "driver_test.h"
#include "gmd_fork_server.h"

#include <signal.h>
#include <sys/wait.h>

static gmd_run_options options;
static gmd_fork_server *server;
static gmd_trace trace;

static int close_server(void **state)
{
    (void)state;
    gmd_fork_server_close(server);
    gmd_trace_free(&trace);
    server = NULL;
    return 0;
}

FIXTURE(server, NULL, close_server);

/* With the options as they are. */
static void open_as_set(void)
{
    gmd_error error = {""};
    if (gmd_fork_server_open(&server, &options, &error) != GMD_OK) {
        fail_msg("%s", error.text);
    }
}

static void open_server(const char *allocator)
{
    options = options_on(allocator);
    open_as_set();
}

#define INPUTS_MAX 4

/* `texts` end with NULL. */
static gmd_persistent_result run_persistent(const char *const texts[])
{
    gmd_persistent_input traces[INPUTS_MAX] = {{.probed_refusal = 0}};
    gmd_error error = {""};
    size_t count = 0;
    for (; texts[count]; count++) {
        traces[count].trace = parse_lines(texts[count]);
    }
    gmd_persistent_result result;
    gmd_status status = gmd_fork_server_run_persistent(server, traces, count, &result, &error);
    for (size_t i = 0; i < count; i++) {
        gmd_trace_free(&traces[i].trace);
    }
    assert_int_equal(status, GMD_OK);
    return result;
}

static const char small_device[] = "capacity 4MiB\nexpect oom a 30MiB s0\n";
static const char large_device[] = "capacity 256MiB\nexpect alloc a 200MiB s0\n";
static const char two_devices[] = "devices 2\nexpect alloc a 30MiB s0 device 1\n";
static const char own_device[] = "expect alloc a 60MiB s0\nexpect oom b 60MiB s0\n";

static uint64_t asked_of(const gmd_outcome *o, const char *oracle)
{
    for (uint32_t i = 0; i < o->oracle_count; i++) {
        if (strcmp(o->oracles[i].name, oracle) == 0) {
            return o->oracles[i].asked;
        }
    }
    fail_msg("%s is not there", oracle);
    return 0;
}

static const char two_blocks[] = "alloc a 512 s0\nalloc b 512 s0\n";

TEST_F(server, what_the_oracles_looked_at_is_of_all_inputs)
{
    options = options_on("reference");
    options.judging.costs = GMD_COSTS_SAMPLED;
    open_as_set();
    gmd_persistent_result r =
        run_persistent((const char *const[]){two_blocks, two_blocks, two_blocks, NULL});
    assert_int_equal(r.passed, 3);
    assert_int_equal(asked_of(r.outcome, "alignment"), 6);
}

TEST_F(server, what_they_looked_at_includes_the_input_that_shows_something)
{
    options = options_on("reference");
    options.judging.costs = GMD_COSTS_SAMPLED;
    open_as_set();
    gmd_persistent_result r = run_persistent(
        (const char *const[]){two_blocks, "alloc a 512 s0\nexpect oom b 512 s0\n", NULL});
    assert_true(r.is_suspect);
    assert_int_equal(asked_of(r.outcome, "alignment"), 4);
}

TEST_F(server, inputs_run_under_their_own_headers)
{
    open_server("reference");
    assert_true(gmd_fork_server_follow(server, &options));
    for (int order = 0; order < 3; order++) {
        gmd_persistent_result s = run_persistent(
            (const char *const[]){small_device, large_device, two_devices, own_device, NULL});
        assert_false(s.is_suspect);
        assert_int_equal(s.passed, 4);
        assert_int_equal(s.requests, 5);
    }
}

TEST_F(server, the_input_that_shows_something_is_the_suspect)
{
    open_server("reference");
    gmd_fork_server_follow(server, &options);
    const char *const texts[] = {small_device, "capacity 4MiB\nexpect alloc a 30MiB s0\n",
                                 own_device, NULL};
    for (int order = 0; order < 2; order++) {
        gmd_persistent_result s = run_persistent(texts);
        assert_true(s.is_suspect);
        assert_int_equal(s.passed, 1);
        assert_string_equal(s.outcome->violations[0].oracle, "expect");
    }
}

TEST_F(server, a_refused_header_is_the_input_s_own)
{
    open_server("reference");
    gmd_fork_server_follow(server, &options);
    gmd_persistent_result s =
        run_persistent((const char *const[]){own_device, "conf no_such:1\n", NULL});
    assert_true(s.is_suspect);
    assert_int_equal(s.passed, 1);
    assert_int_equal(s.outcome->verdict, GMD_ERROR);
    s = run_persistent((const char *const[]){own_device, NULL});
    assert_int_equal(s.passed, 1);
}

TEST_F(server, a_run_between_orders_has_a_process_of_its_own)
{
    open_server("reference");
    gmd_fork_server_follow(server, &options);
    gmd_error error = {""};
    trace = parse_lines("expect alloc a 60MiB s0\n");
    for (int i = 0; i < 3; i++) {
        const gmd_outcome *o;
        assert_int_equal(run_persistent((const char *const[]){large_device, NULL}).passed, 1);
        assert_int_equal(gmd_fork_server_run(server, &trace, &o, &error), GMD_OK);
        assert_int_equal(o->verdict, GMD_PASS);
        assert_int_equal(o->stats.reserved_bytes_peak, 60 * GMD_MIB);
    }
}

TEST_F(server, a_black_box_follows_to_no_header)
{
    open_server(GMD_TEST_PLANTED);
    assert_false(gmd_fork_server_follow(server, &options));
    trace = parse_lines("devices 1\ncapacity 64MiB\n");
    assert_false(gmd_fork_server_can_follow(server, &trace));
}

/* --- an allocator that writes over the shared memory --------------------------------------- */

/* Without a third allocation, also where requests are made again. */
static const char no_block[] = "empty_cache\n";
static const char three_blocks[] = "alloc a 4096 s0\nalloc b 4096 s0\nalloc c 4096 s0\n";

static pid_t bystander;

static int begin_bystander(void **state)
{
    char number[24];
    (void)state;
    bystander = fork();
    if (bystander == 0) {
        pause();
        _exit(EXIT_SUCCESS);
    }
    snprintf(number, sizeof number, "%ld", (long)bystander);
    setenv("GMD_PLANT_PROCESS", number, 1);
    setenv("GMD_PLANT", "fill_and_hang", 1);
    return bystander < 0;
}

static int end_bystander(void **state)
{
    unsetenv("GMD_PLANT");
    unsetenv("GMD_PLANT_PROCESS");
    kill(bystander, SIGKILL);
    bool is_gone = waitpid(bystander, NULL, 0) == bystander;
    return close_server(state) == 0 && is_gone ? 0 : -1;
}

FIXTURE(bystander, begin_bystander, end_bystander);

static bool is_alive(void)
{
    return waitpid(bystander, NULL, WNOHANG) == 0;
}

static void open_hasty_server(void)
{
    gmd_error error = {""};
    options = options_on(GMD_TEST_PLANTED);
    options.process.call_budget_s = 1;
    if (gmd_fork_server_open(&server, &options, &error) != GMD_OK) {
        fail_msg("%s", error.text);
    }
}

static const gmd_outcome *run_text(const char *lines)
{
    gmd_error error = {""};
    const gmd_outcome *outcome = NULL;
    gmd_trace_free(&trace);
    trace = parse_lines(lines);
    if (gmd_fork_server_run(server, &trace, &outcome, &error) != GMD_OK) {
        fail_msg("%s", error.text);
    }
    return outcome;
}

TEST_F(bystander, a_run_that_hangs_is_killed_and_no_process_that_it_names)
{
    open_hasty_server();
    const gmd_outcome *o = run_text(three_blocks);
    assert_true(is_alive());
    assert_int_equal(o->violation_count, 1);
    assert_string_equal(o->violations[0].identity.kind, "progress.overwrote_gmd");
    assert_int_equal(run_text(no_block)->verdict, GMD_PASS);
}

TEST_F(bystander, many_inputs_that_end_so_are_suspected_and_the_next_run_is_judged)
{
    open_hasty_server();
    gmd_persistent_result r = run_persistent((const char *const[]){no_block, three_blocks, NULL});
    assert_true(is_alive());
    assert_true(r.is_suspect);
    assert_true(r.passed <= 1);
    assert_int_equal(run_text(no_block)->verdict, GMD_PASS);
}

TEST_F(bystander, a_run_of_its_own_is_killed_likewise)
{
    gmd_error error = {""};
    options = options_on(GMD_TEST_PLANTED);
    options.process.call_budget_s = 1;
    trace = parse_lines(three_blocks);
    const gmd_workload workload = {
        .name = "test", .kind = "trace", .trace = &trace, .body = gmd_play_trace};
    gmd_outcome *o = calloc(1, sizeof *o);
    assert_non_null(o);
    gmd_status status = gmd_run_isolated(&options, &workload, o, &error);
    char kind[64];
    snprintf(kind, sizeof kind, "%s", o->violations[0].identity.kind);
    free(o);
    assert_int_equal(status, GMD_OK);
    assert_true(is_alive());
    assert_string_equal(kind, "progress.overwrote_gmd");
}
