/* Many inputs in one process: each under its own header where the allocator can
 * follow, and what is found comes from that input only. */
#include "gmd_fork_server.h"
#include "gmd_size.h"
#include "gmd_test.h"

#include <stdio.h>
#include <string.h>

static gmd_run_options options_of(const char *allocator)
{
    return (gmd_run_options){.subject.allocator = allocator,
                             .subject.lib_directory = GMD_TEST_LIB_DIR,
                             .device.kind = GMD_DEVICE_SIM,
                             .conditions.device_count = 1,
                             .conditions.capacity_bytes = 64 * GMD_MIB,
                             .process.call_budget_s = 20};
}

static gmd_fork_server *open_server(const gmd_run_options *options)
{
    gmd_fork_server *n = NULL;
    gmd_error error = {""};
    if (gmd_fork_server_open(&n, options, &error) != GMD_OK) {
        fail_msg("%s", error.text);
    }
    return n;
}

#define INPUTS_MAX 4

/* `texts` end with NULL. */
static gmd_persistent_result run_persistent(gmd_fork_server *n, const char *const texts[])
{
    gmd_persistent_input traces[INPUTS_MAX] = {{.probed_refusal = 0}};
    gmd_error error = {""};
    size_t count = 0;
    for (; texts[count]; count++) {
        char text[1024];
        int length = snprintf(text, sizeof text, "gmd-trace 1\n%s", texts[count]);
        assert_int_equal(
            gmd_trace_parse(&traces[count].trace, text, (size_t)length, "test", &error), GMD_OK);
    }
    gmd_persistent_result result;
    gmd_status status = gmd_fork_server_run_persistent(n, traces, count, &result, &error);
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

TEST(inputs_run_under_their_own_headers)
{
    const gmd_run_options options = options_of("reference");
    gmd_fork_server *n = open_server(&options);
    assert_true(gmd_fork_server_follow(n, &options));
    for (int order = 0; order < 3; order++) {
        gmd_persistent_result s = run_persistent(
            n, (const char *const[]){small_device, large_device, two_devices, own_device, NULL});
        assert_false(s.is_suspect);
        assert_int_equal(s.passed, 4);
        assert_int_equal(s.requests, 5);
    }
    gmd_fork_server_close(n);
}

TEST(the_input_that_shows_something_is_the_suspect)
{
    const gmd_run_options options = options_of("reference");
    gmd_fork_server *n = open_server(&options);
    gmd_fork_server_follow(n, &options);
    const char *const texts[] = {small_device, "capacity 4MiB\nexpect alloc a 30MiB s0\n",
                                 own_device, NULL};
    for (int order = 0; order < 2; order++) {
        gmd_persistent_result s = run_persistent(n, texts);
        assert_true(s.is_suspect);
        assert_int_equal(s.passed, 1);
        assert_string_equal(s.outcome->violations[0].oracle, "expect");
    }
    gmd_fork_server_close(n);
}

TEST(a_refused_header_is_the_input_s_own)
{
    const gmd_run_options options = options_of("reference");
    gmd_fork_server *n = open_server(&options);
    gmd_fork_server_follow(n, &options);
    gmd_persistent_result s =
        run_persistent(n, (const char *const[]){own_device, "conf no_such:1\n", NULL});
    assert_true(s.is_suspect);
    assert_int_equal(s.passed, 1);
    assert_int_equal(s.outcome->verdict, GMD_ERROR);
    s = run_persistent(n, (const char *const[]){own_device, NULL});
    assert_int_equal(s.passed, 1);
    gmd_fork_server_close(n);
}

TEST(a_run_between_orders_has_a_process_of_its_own)
{
    const gmd_run_options options = options_of("reference");
    gmd_fork_server *n = open_server(&options);
    gmd_fork_server_follow(n, &options);
    gmd_trace trace;
    gmd_error error = {""};
    char text[] = "gmd-trace 1\nexpect alloc a 60MiB s0\n";
    assert_int_equal(gmd_trace_parse(&trace, text, strlen(text), "test", &error), GMD_OK);
    for (int i = 0; i < 3; i++) {
        const gmd_outcome *o;
        assert_int_equal(run_persistent(n, (const char *const[]){large_device, NULL}).passed, 1);
        assert_int_equal(gmd_fork_server_run(n, &trace, &o, &error), GMD_OK);
        assert_int_equal(o->verdict, GMD_PASS);
        assert_int_equal(o->stats.reserved_bytes_peak, 60 * GMD_MIB);
    }
    gmd_trace_free(&trace);
    gmd_fork_server_close(n);
}

TEST(a_black_box_follows_to_no_header)
{
    const gmd_run_options options = options_of(GMD_TEST_PLANTED);
    gmd_fork_server *n = open_server(&options);
    assert_false(gmd_fork_server_follow(n, &options));
    gmd_trace trace = {.conditions.device_count = 1,
                       .conditions.capacity_bytes = options.conditions.capacity_bytes};
    assert_false(gmd_fork_server_can_follow(n, &trace));
    gmd_fork_server_close(n);
}
