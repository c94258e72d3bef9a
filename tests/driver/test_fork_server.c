/* Many inputs in one process: each under its own header where the allocator can
 * follow, and what is found comes from that input only. */
#include "driver_test.h"
#include "gmd_fork_server.h"

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

static void open_server(const char *allocator)
{
    gmd_error error = {""};
    options = options_on(allocator);
    if (gmd_fork_server_open(&server, &options, &error) != GMD_OK) {
        fail_msg("%s", error.text);
    }
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
