/* Many inputs in one process: each under its own header where the allocator can
 * follow, and what is found is that of the input alone; and what an allocator does to the memory
 * that the processes share harms nobody else. */
#include "gmd_fork_server.h"
#include "gmd_size.h"
#include "gmd_test.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

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

/* --- an allocator that writes over the shared memory --------------------------------------- */

static const gmd_outcome *run_text(gmd_fork_server *n, const char *lines)
{
    char text[1024];
    gmd_trace trace;
    gmd_error error = {""};
    const gmd_outcome *outcome = NULL;
    int length = snprintf(text, sizeof text, "gmd-trace 1\n%s", lines);
    assert_int_equal(gmd_trace_parse(&trace, text, (size_t)length, "test", &error), GMD_OK);
    gmd_status status = gmd_fork_server_run(n, &trace, &outcome, &error);
    gmd_trace_free(&trace);
    if (status != GMD_OK) {
        fail_msg("%s", error.text);
    }
    return outcome;
}

/* Without a third allocation, also where requests are made again. */
static const char no_block[] = "empty_cache\n";
static const char three_blocks[] = "alloc a 4096 s0\nalloc b 4096 s0\nalloc c 4096 s0\n";

typedef struct bystander {
    pid_t process;
    char number[24];
} bystander;

static int begin_bystander(void **state)
{
    static bystander b;
    b.process = fork();
    if (b.process == 0) {
        pause();
        _exit(EXIT_SUCCESS);
    }
    snprintf(b.number, sizeof b.number, "%ld", (long)b.process);
    setenv("GMD_PLANT_PROCESS", b.number, 1);
    setenv("GMD_PLANT", "fill_and_hang", 1);
    *state = &b;
    return b.process < 0;
}

static int end_bystander(void **state)
{
    bystander *b = *state;
    unsetenv("GMD_PLANT");
    unsetenv("GMD_PLANT_PROCESS");
    kill(b->process, SIGKILL);
    return waitpid(b->process, NULL, 0) == b->process ? 0 : -1;
}

FIXTURE(bystander, begin_bystander, end_bystander);

static bool is_alive(const bystander *b)
{
    return waitpid(b->process, NULL, WNOHANG) == 0;
}

static gmd_run_options hasty_options(void)
{
    gmd_run_options options = options_of(GMD_TEST_PLANTED);
    options.process.call_budget_s = 1;
    return options;
}

TEST_F(bystander, a_run_that_hangs_is_killed_and_no_process_that_it_names)
{
    const gmd_run_options options = hasty_options();
    gmd_fork_server *n = open_server(&options);
    const gmd_outcome *o = run_text(n, three_blocks);
    assert_true(is_alive(*state));
    assert_int_equal(o->violation_count, 1);
    assert_string_equal(o->violations[0].identity.kind, "progress.overwrote_gmd");
    assert_int_equal(run_text(n, no_block)->verdict, GMD_PASS);
    gmd_fork_server_close(n);
}

TEST_F(bystander, many_inputs_that_end_so_are_suspected_and_the_next_run_is_judged)
{
    const gmd_run_options options = hasty_options();
    gmd_fork_server *n = open_server(&options);
    gmd_persistent_result r =
        run_persistent(n, (const char *const[]){no_block, three_blocks, NULL});
    assert_true(is_alive(*state));
    assert_true(r.is_suspect);
    assert_true(r.passed <= 1);
    assert_int_equal(run_text(n, no_block)->verdict, GMD_PASS);
    gmd_fork_server_close(n);
}

TEST_F(bystander, a_run_of_its_own_is_killed_likewise)
{
    const gmd_run_options options = hasty_options();
    gmd_trace trace;
    gmd_error error = {""};
    gmd_outcome *o = calloc(1, sizeof *o);
    char text[1024];
    int length = snprintf(text, sizeof text, "gmd-trace 1\n%s", three_blocks);
    assert_int_equal(gmd_trace_parse(&trace, text, (size_t)length, "test", &error), GMD_OK);
    const gmd_workload workload = {
        .name = "test", .kind = "trace", .trace = &trace, .body = gmd_play_trace};
    assert_int_equal(gmd_run_isolated(&options, &workload, o, &error), GMD_OK);
    assert_true(is_alive(*state));
    assert_string_equal(o->violations[0].identity.kind, "progress.overwrote_gmd");
    gmd_trace_free(&trace);
    free(o);
}
