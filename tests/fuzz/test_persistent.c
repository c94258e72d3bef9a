/* Many inputs in one process: what shows nothing passes, what shows something is named by its
 * place, and an input finds nothing of what the one before it set. */
#include "fuzz_test.h"

#include "gmd_generate.h"
#include "gmd_runner.h"

#define INPUT_MAX 40

typedef struct persistent_runs {
    gmd_runner runner;
    gmd_run_options options;
    gmd_persistent_input inputs[INPUT_MAX];
    size_t count;
    gmd_persistent_result result;
    char oracle[24], message[600]; /* what the suspect showed */
} persistent_runs;

static persistent_runs *persistent_runs_of(const char *allocator)
{
    persistent_runs *s = calloc(1, sizeof *s);
    assert_non_null(s);
    s->options = options_for(allocator);
    gmd_runner_init(&s->runner, &s->options);
    return s;
}

static void add(persistent_runs *s, const char *requests, uint64_t probed_refusal)
{
    char text[1024];
    snprintf(text, sizeof text, "gmd-trace 1\ndevices 2\ncapacity 64MiB\n%s", requests);
    s->inputs[s->count++] =
        (gmd_persistent_input){.trace = parse_or_fail(text), .probed_refusal = probed_refusal};
}

static void run_all(persistent_runs *s, const char *plant)
{
    gmd_error error = {""};
    setenv("GMD_PLANT", plant, 1);
    demand_ok(gmd_runner_run_persistent(&s->runner, s->inputs, s->count, &s->result, &error),
              &error);
    unsetenv("GMD_PLANT");
    const gmd_outcome *o = s->result.outcome;
    if (o->violation_count) {
        snprintf(s->oracle, sizeof s->oracle, "%s", o->violations[0].oracle);
        snprintf(s->message, sizeof s->message, "%s", o->violations[0].message);
    }
}

static void end(persistent_runs *s)
{
    gmd_runner_close(&s->runner);
    for (size_t i = 0; i < s->count; i++) {
        gmd_trace_free(&s->inputs[i].trace);
    }
    free(s);
}

static void expect_all_pass(persistent_runs *s)
{
    run_all(s, "");
    assert_string_equal(s->message, "");
    assert_string_equal(s->result.outcome->error, "");
    assert_false(s->result.is_suspect);
    assert_int_equal(s->result.passed, s->count);
    end(s);
}

TEST(inputs_that_show_nothing_all_pass)
{
    static const gmd_profile_space space = {.capacity_bytes = GMD_GIB,
                                            .device_max = 2,
                                            .has_fraction = true,
                                            .has_record_stream = true,
                                            .has_seeded_schedules = true,
                                            .has_budgets = true,
                                            .has_faults = true,
                                            .fault_targets = {{"cudaMalloc", 2}},
                                            .fault_target_count = 1};
    persistent_runs *s = persistent_runs_of("reference");
    gmd_profile profile;
    gmd_error error = {""};
    gmd_profile_draw(&profile, &space, 11);
    while (s->count < INPUT_MAX) {
        gmd_persistent_input *t = &s->inputs[s->count];
        t->probed_refusal = s->count % 5;
        gmd_trace_init(&t->trace);
        demand_ok(gmd_generate(&profile, &space, s->count++, &t->trace, &error), &error);
    }
    expect_all_pass(s);
}

TEST(what_an_input_sets_does_not_concern_the_next)
{
    static const char *const settings[] = {"fraction 0.1\n",
                                           "budget 0\n",
                                           "fault cudaMalloc 2 2 every\n",
                                           "device 1\n",
                                           "alloc x 60MiB s1\nuse x s2 1s\n",
                                           "thread t1\ndevice 1\nalloc y 1 s1\n"};
    persistent_runs *s = persistent_runs_of("reference");
    for (size_t i = 0; i < sizeof settings / sizeof *settings; i++) {
        add(s, settings[i], 0);
        add(s, "expect alloc a 60MiB s1\nthread t1\nexpect alloc b 60MiB s1 device 1\n", 0);
    }
    expect_all_pass(s);
}

TEST(the_questions_after_a_refusal_leave_nothing_either)
{
    persistent_runs *s = persistent_runs_of("reference");
    for (int i = 0; i < 5; i++) {
        add(s, "alloc a 30MiB s1\nalloc b 50MiB s1\nalloc c 60MiB s1\nalloc d 20MiB s2\n", 1);
        add(s, "expect alloc a 60MiB s1\n", 1);
    }
    expect_all_pass(s);
}

/* The planted allocator crashes in the third allocation of a process. */
TEST(an_input_that_ends_the_process_is_suspected)
{
    persistent_runs *s = persistent_runs_of(GMD_TEST_PLANTED);
    add(s, "alloc a 1 s1\n", 0);
    add(s, "alloc a 1 s1\nalloc b 1 s1\n", 0);
    add(s, "alloc a 1 s1\n", 0);
    run_all(s, "crash");
    assert_true(s->result.is_suspect);
    assert_int_equal(s->result.passed, 1);
    assert_non_null(strstr(s->message, "crashed with signal 11"));
    end(s);
}

TEST(what_an_input_shows_only_after_others_it_does_not_show_alone)
{
    persistent_runs *s = persistent_runs_of(GMD_TEST_PLANTED);
    const gmd_outcome *outcome;
    gmd_error error = {""};
    add(s, "alloc a 1 s1\nalloc b 1 s1\n", 0);
    add(s, "alloc a 1 s1\nalloc b 1 s1\n", 0);
    run_all(s, "misaligned");
    assert_true(s->result.is_suspect);
    assert_string_equal(s->oracle, "alignment");
    setenv("GMD_PLANT", "misaligned", 1);
    demand_ok(gmd_runner_run(&s->runner, &s->inputs[1].trace, &outcome, &error), &error);
    unsetenv("GMD_PLANT");
    assert_int_equal(outcome->violation_count, 0);
    end(s);
}

/* It keeps its cache when the device is full. */
static void expect_suspect_with(const char *requests, uint64_t probed_refusal, bool is_suspect)
{
    persistent_runs *s = persistent_runs_of(GMD_TEST_PLANTED);
    add(s, requests, probed_refusal);
    run_all(s, "keep_cache");
    assert_int_equal(s->result.is_suspect, is_suspect);
    assert_string_equal(s->oracle, is_suspect ? "oom_retry" : "");
    end(s);
}

TEST(a_refusal_is_looked_into_where_that_is_wanted)
{
    static const char requests[] = "alloc a 40MiB s1\nfree a\nalloc b 50MiB s1\n";
    expect_suspect_with(requests, 1, true);
    expect_suspect_with(requests, 2, false);
    expect_suspect_with(requests, 0, false);
}

TEST(a_refusal_beside_what_is_live_is_not_counted_among_the_doubtful)
{
    static const char requests[] = "alloc a 40MiB s1\nalloc x 50MiB s1\nfree a\nalloc b 50MiB s1\n";
    expect_suspect_with(requests, GMD_DOUBTFUL_REFUSAL(1), true);
    expect_suspect_with(requests, GMD_DOUBTFUL_REFUSAL(2), false);
}
