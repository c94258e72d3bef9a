/* One input after the other in this process: each gets what it gets in a process of its own, and
 * nothing of an earlier one reaches it. */
#include "driver_test.h"
#include "gmd_in_process.h"

#include <sys/wait.h>

static gmd_in_process *opened;

static int close_opened(void **state)
{
    (void)state;
    gmd_in_process_close(opened);
    opened = NULL;
    return 0;
}

FIXTURE(in_process, NULL, close_opened);

/* In place of what is open, if anything; `options` outlive it. */
static gmd_in_process *open_with(const gmd_run_options *options)
{
    gmd_error error = {""};
    close_opened(NULL);
    if (gmd_in_process_open(&opened, options, &error) != GMD_OK) {
        fail_msg("%s", error.text);
    }
    return opened;
}

static gmd_in_process *open_reference(void)
{
    static gmd_run_options options;
    options = options_on("reference");
    return open_with(&options);
}

static gmd_status try_run(gmd_in_process *p, const char *lines, const gmd_outcome **outcome,
                          gmd_error *error)
{
    gmd_trace trace = parse_lines(lines);
    gmd_status status = gmd_in_process_run(p, &trace, outcome, error);
    gmd_trace_free(&trace);
    return status;
}

static const gmd_outcome *run(gmd_in_process *p, const char *lines)
{
    const gmd_outcome *outcome = NULL;
    gmd_error error = {""};
    if (try_run(p, lines, &outcome, &error) != GMD_OK) {
        fail_msg("%s", error.text);
    }
    return outcome;
}

static void expect_pass(const gmd_outcome *o)
{
    if (o->verdict != GMD_PASS) {
        fail_msg("%s%s", o->error, o->violation_count ? o->violations[0].message : "");
    }
}

/* In a process that has run nothing else; to be called before this one has loaded a device. */
static gmd_outcome *run_alone(const char *lines)
{
    gmd_trace trace = parse_lines(lines);
    gmd_run_options options = options_on("reference");
    options.conditions.device_count = trace.conditions.device_count
                                          ? trace.conditions.device_count
                                          : options.conditions.device_count;
    options.conditions.conf = trace.conditions.conf;
    gmd_workload workload = {
        .name = "alone", .kind = "trace", .trace = &trace, .body = gmd_play_trace};
    gmd_outcome *o = calloc(1, sizeof *o);
    gmd_error error = {""};
    if (!o || gmd_run_isolated(&options, &workload, o, &error) != GMD_OK) {
        fail_msg("%s", error.text);
    }
    gmd_trace_free(&trace);
    return o;
}

/* --- one after the other ----------------------------------------------------------------- */

static const char pools_text[] = "alloc a 1000 s1\nalloc b 3MiB s1\nuse b s2 5us\nrecord b s2\n"
                                 "free b\nalloc c 12MiB s2\nfree a\nsync\nalloc d 700 s0\n";
static const char limits_text[] = "devices 2\nconf max_split_size_mb:20\n"
                                  "alloc a 30MiB s0\nfraction 0.5\nalloc b 30MiB s0\n"
                                  "alloc c 8MiB s0 device 1\nfree a\n";

static gmd_outcome *pools_alone, *limits_alone;

static int run_each_alone(void **state)
{
    (void)state;
    pools_alone = run_alone(pools_text);
    limits_alone = run_alone(limits_text);
    return pools_alone->verdict == GMD_PASS && limits_alone->verdict == GMD_PASS ? 0 : -1;
}

static int free_outcomes(void **state)
{
    (void)state;
    free(pools_alone);
    free(limits_alone);
    return 0;
}

static void expect_same(const gmd_outcome *o, const gmd_outcome *alone)
{
    expect_pass(o);
    assert_int_equal(o->requests, alone->requests);
    assert_memory_equal(&o->stats, &alone->stats, sizeof o->stats);
}

/* --- an allocator that cannot start anew ------------------------------------------------- */

/* In a process of its own: the library stays loaded. Gives what `body` returns. */
static int in_a_child(const char *plant, int (*body)(gmd_in_process *p))
{
    pid_t child = fork();
    if (child == 0) {
        gmd_run_options options = options_on(GMD_TEST_PLANTED);
        setenv("GMD_PLANT", plant, 1);
        gmd_in_process *p = NULL;
        gmd_error error = {""};
        int result = gmd_in_process_open(&p, &options, &error) == GMD_OK ? body(p) : 100;
        gmd_in_process_close(p);
        _exit(result);
    }
    int status = 0;
    waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static int run_two(gmd_in_process *p, const char *first, const char *second)
{
    const gmd_outcome *o;
    gmd_error error;
    gmd_status status = try_run(p, first, &o, &error);
    if (status != GMD_OK || o->verdict != GMD_PASS) {
        return 99;
    }
    status = try_run(p, second, &o, &error);
    return status != GMD_OK ? 50 + (int)status : (int)o->verdict;
}

static int run_settings(gmd_in_process *p)
{
    return run_two(p, "alloc a 1MiB s0\n", "conf max_split_size_mb:40\nalloc a 1MiB s0\n");
}

static int run_what_is_stated_and_what_is_not(gmd_in_process *p)
{
    return run_two(p, "alloc a 1MiB s0\n", "devices 1\ncapacity 64MiB\nalloc a 1MiB s0\n");
}

static int run_limits(gmd_in_process *p)
{
    return run_two(p, "fraction 0.5\nbudget 32MiB\nfault cudaMalloc 9 2\nalloc a 20MiB s0\n",
                   "alloc a 30MiB s0\nexpect alloc b 30MiB s0\n");
}

static int run_planted(gmd_in_process *p)
{
    const gmd_outcome *o;
    gmd_error error;
    for (int i = 0; i < 20; i++) {
        if (try_run(p, "alloc a 4KiB s0\nalloc b 4KiB s0\nfree a\nfree b\n", &o, &error) !=
            GMD_OK) {
            return 99;
        }
        if (o->verdict != GMD_PASS) {
            return strcmp(o->violations[0].oracle, "overlap");
        }
    }
    return 98;
}

/* First: this one and the next three fork, before this process has loaded a device. */

TEST(a_header_that_a_black_box_cannot_follow_is_refused)
{
    assert_int_equal(in_a_child("", run_settings), 50 + GMD_BAD_INPUT);
}

TEST(a_header_that_says_what_is_so_anyway_is_followed)
{
    assert_int_equal(in_a_child("", run_what_is_stated_and_what_is_not), GMD_PASS);
}

TEST(what_an_input_sets_ends_with_it_for_a_black_box_too)
{
    assert_int_equal(in_a_child("", run_limits), GMD_PASS);
}

TEST(a_defect_of_a_black_box_is_found)
{
    assert_int_equal(in_a_child("overlap", run_planted), 0);
}

TEST_F(in_process, each_input_gives_what_it_gives_alone)
{
    gmd_in_process *p = open_reference();
    for (int i = 0; i < 3; i++) {
        expect_same(run(p, pools_text), pools_alone);
        expect_same(run(p, limits_text), limits_alone);
    }
}

/* Determinism takes a second process, and the reference is not held against itself. */
TEST_F(in_process, every_other_oracle_judges)
{
    gmd_in_process *p = open_reference();
    run(p, pools_text);
    const gmd_outcome *o = run(p, pools_text);
    for (uint32_t i = 0; i < o->oracle_count; i++) {
        const char *name = o->oracles[i].name;
        bool is_blind = strcmp(name, "determinism") == 0 || strcmp(name, "reference") == 0;
        assert_int_equal(o->oracles[i].fate, is_blind ? GMD_ORACLE_SKIPPED : GMD_ORACLE_PASSED);
    }
}

TEST_F(in_process, a_thousand_inputs_leave_nothing)
{
    gmd_in_process *p = open_reference();
    for (int i = 0; i < 1000; i++) {
        expect_pass(run(p, i % 3 ? pools_text : limits_text));
    }
}

TEST_F(in_process, an_allocator_that_can_start_anew_is_opened_again)
{
    static gmd_run_options with_conf;
    with_conf = options_on("reference");
    with_conf.conditions.conf = "max_split_size_mb:40";
    expect_pass(run(open_reference(), pools_text));
    expect_pass(run(open_with(&with_conf), pools_text));
}

/* --- what an input sets ------------------------------------------------------------------ */

/* Served in 64 MiB, and in nothing less. */
static const char whole_device[] = "expect alloc a 60MiB s0\n";

static void expect_no_trace_of(const char *lines)
{
    static const char needs_all[] = "alloc a 30MiB s0\nalloc b 30MiB s0\nfree a\nfree b\n";
    gmd_in_process *p = open_reference();
    gmd_in_process_ask_after(p, 0);
    expect_pass(run(p, lines));
    const gmd_outcome *o = run(p, needs_all);
    expect_pass(o);
    assert_int_equal(o->faults_planted, 0);
    if (o->has_stats) {
        assert_int_equal(o->stats.num_ooms, 0);
        assert_int_equal(o->stats.reserved_bytes_peak, 60 * GMD_MIB);
    }
}

TEST_F(in_process, a_fraction_ends_with_its_input)
{
    expect_no_trace_of("fraction 0.5\nalloc a 30MiB s0\nalloc b 30MiB s0\n");
}

TEST_F(in_process, a_budget_ends_with_its_input)
{
    expect_no_trace_of("budget 32MiB\nalloc a 30MiB s0\nalloc b 30MiB s0\n");
}

TEST_F(in_process, a_fault_that_did_not_fire_ends_with_its_input)
{
    expect_no_trace_of("fault cudaMalloc 1 2\n");
}

TEST_F(in_process, a_current_device_ends_with_its_input)
{
    expect_no_trace_of("devices 2\ndevice 1\nalloc a 2MiB s0 device 1\n");
}

TEST_F(in_process, settings_end_with_their_input)
{
    expect_no_trace_of("conf roundup_power2_divisions:1\nalloc a 30MiB s0\nalloc b 30MiB s0\n");
}

TEST_F(in_process, the_limit_of_the_options_is_in_force_again)
{
    static gmd_run_options options;
    options = options_on("reference");
    options.conditions.limit_bytes = 40 * GMD_MIB;
    gmd_in_process *p = open_with(&options);
    expect_pass(run(p, "fraction 1\nalloc a 60MiB s0\n"));
    const gmd_outcome *o = run(p, "alloc a 60MiB s0\n");
    assert_int_equal(o->stats.num_ooms, 1);
}

/* --- what is found ----------------------------------------------------------------------- */

TEST_F(in_process, a_violation_names_its_oracle)
{
    gmd_in_process *p = open_reference();
    expect_pass(run(p, pools_text));
    const gmd_outcome *o = run(p, "expect alloc a 100MiB s0\n");
    assert_int_equal(o->verdict, GMD_FAIL);
    assert_string_equal(o->violations[0].oracle, "expect");
    assert_int_equal(o->violations[0].request, 0);
}

TEST_F(in_process, nothing_runs_after_a_violation)
{
    const gmd_outcome *o;
    gmd_error error = {""};
    gmd_in_process *p = open_reference();
    run(p, "expect alloc a 100MiB s0\n");
    assert_int_equal(try_run(p, whole_device, &o, &error), GMD_FAILED);
}

TEST_F(in_process, requests_that_cannot_be_made_do_not_end_the_others)
{
    gmd_in_process *p = open_reference();
    gmd_trace trace = parse_lines("devices 2\nalloc a 1MiB s0 device 1\n");
    const gmd_outcome *o = NULL;
    gmd_error error = {""};
    trace.conditions.device_count = 1;
    assert_int_equal(gmd_in_process_run(p, &trace, &o, &error), GMD_OK);
    assert_int_equal(o->verdict, GMD_ERROR);
    gmd_trace_free(&trace);
    expect_pass(run(p, pools_text));
}

TEST_F(in_process, a_refused_header_does_not_end_the_others)
{
    const gmd_outcome *o;
    gmd_error error = {""};
    gmd_in_process *p = open_reference();
    assert_int_equal(try_run(p, "conf no_such_setting:1\nalloc a 1 s0\n", &o, &error),
                     GMD_BAD_INPUT);
    assert_non_null(strstr(error.text, "no_such_setting"));
    assert_int_equal(try_run(p, "capacity 1MiB\nalloc a 1 s0\n", &o, &error), GMD_BAD_INPUT);
    expect_same(run(p, pools_text), pools_alone);
}

TEST_F(in_process, a_real_device_is_refused)
{
    gmd_error error;
    gmd_run_options options = options_on("reference");
    options.device.kind = GMD_DEVICE_CUDA;
    assert_int_equal(gmd_in_process_open(&opened, &options, &error), GMD_BAD_INPUT);
    assert_null(opened);
}

TEST_GROUP(run_each_alone, free_outcomes);
