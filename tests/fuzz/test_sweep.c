/* The fault sweep fails every call in turn, and tells a clean outcome from an unclean one. */
#include "fuzz_test.h"
#include "gmd_fault_error.h"

#include "gmd_fault_sweep.h"

typedef struct swept {
    size_t found;
    char oracle[24], text[4096]; /* of the first */
    bool stops;
} swept;

static bool note(void *context, const gmd_trace *trace, const gmd_violation *violation)
{
    swept *s = context;
    if (!s->found++) {
        char *text = text_of(trace);
        snprintf(s->oracle, sizeof s->oracle, "%s", violation->oracle);
        snprintf(s->text, sizeof s->text, "%s", text);
        free(text);
    }
    return !s->stops;
}

static gmd_sweep_result sweep_text(const char *allocator, const char *plant, const char *text,
                                   gmd_sweep_options given, swept *s)
{
    gmd_run_options options = options_for(allocator);
    gmd_runner runner;
    gmd_sweep_result result;
    gmd_error error = {""};
    gmd_trace trace = parse_or_fail(text);
    given.found = note;
    given.context = s;
    setenv("GMD_PLANT", plant, 1);
    gmd_runner_init(&runner, &options);
    demand_ok(gmd_sweep(&trace, &runner, &given, &result, &error), &error);
    gmd_runner_close(&runner);
    unsetenv("GMD_PLANT");
    gmd_trace_free(&trace);
    return result;
}

static const char three_allocations[] = "gmd-trace 1\n"
                                        "capacity 64MiB\n"
                                        "expect alloc a 2MiB s1\n"
                                        "expect alloc b 4MiB s1\n"
                                        "free a\n"
                                        "alloc c 8MiB s1\n";

TEST(an_unclean_outcome_is_found_with_the_call_that_fails)
{
    swept s = {0};
    gmd_sweep_options options = {.memory_only = true};
    sweep_text(GMD_TEST_PLANTED, "unclean_failure", three_allocations, options, &s);
    assert_int_equal(s.found, 3); /* it asks twice: both must fail */
    assert_string_equal(s.oracle, "accounting");
    assert_string_equal(s.text, "gmd-trace 1\n"
                                "capacity 64MiB\n"
                                "fault cudaMalloc 1 2 every\n"
                                "alloc a 2MiB s1\n"
                                "alloc b 4MiB s1\n"
                                "free a\n"
                                "alloc c 8MiB s1\n");
}

TEST(an_allocator_that_fails_cleanly_passes)
{
    swept s = {0};
    gmd_sweep_options options = {.memory_only = true};
    gmd_sweep_result result = sweep_text(GMD_TEST_PLANTED, "", three_allocations, options, &s);
    assert_int_equal(s.found, 0);
    assert_true(result.is_complete);
    assert_int_equal(result.runs, 6);
}

TEST(the_reference_passes)
{
    swept s = {0};
    gmd_sweep_options options = {0};
    gmd_sweep_result result = sweep_text("reference", "", three_allocations, options, &s);
    assert_int_equal(s.found, 0);
    assert_true(result.runs >= 2);
}

TEST(the_sweep_ends_where_it_is_told_to)
{
    swept s = {.stops = true};
    gmd_sweep_options options = {.memory_only = true};
    sweep_text(GMD_TEST_PLANTED, "unclean_failure", three_allocations, options, &s);
    assert_int_equal(s.found, 1);
}

TEST(with_a_limit_the_calls_are_taken_evenly)
{
    swept s = {0};
    gmd_sweep_options options = {.memory_only = true, .runs = 2};
    gmd_sweep_result result = sweep_text(GMD_TEST_PLANTED, "", three_allocations, options, &s);
    assert_false(result.is_complete);
    assert_int_equal(result.runs, 2);
}

TEST(a_case_that_fails_by_itself_is_not_swept)
{
    swept s = {0};
    gmd_sweep_options options = {0};
    gmd_sweep_result result =
        sweep_text("reference", "", "gmd-trace 1\nexpect oom a 1 s1\n", options, &s);
    assert_true(result.case_fails);
    assert_string_equal(result.violation.oracle, "expect");
    assert_int_equal(result.runs, 0);
}

/* A campaign goes on with the next case: what an allocator did to the device may be why. */
TEST(a_case_that_cannot_be_run_is_refused_and_no_failure_of_the_sweep)
{
    gmd_run_options options = options_for("reference");
    gmd_runner runner;
    gmd_sweep_result result;
    gmd_error error = {""};
    gmd_trace trace = parse_or_fail("gmd-trace 1\nfault noSuchCall 1 2\nalloc a 1 s1\n");
    gmd_runner_init(&runner, &options);
    gmd_status status = gmd_sweep(&trace, &runner, &(gmd_sweep_options){0}, &result, &error);
    gmd_runner_close(&runner);
    gmd_trace_free(&trace);
    assert_int_not_equal(status, GMD_OK);
    assert_true(result.case_is_refused);
}

TEST(calls_for_memory_fail_for_want_of_it_and_others_as_unknown)
{
    assert_int_equal(gmd_fault_error_of("cudaMalloc", true), 2);
    assert_int_equal(gmd_fault_error_of("cuMemMap", true), 2);
    assert_int_equal(gmd_fault_error_of("cudaEventCreateWithFlags", true), 2);
    assert_int_equal(gmd_fault_error_of("cudaSetDevice", true), 0);
    assert_int_equal(gmd_fault_error_of("cudaSetDevice", false), 999);
    assert_int_equal(gmd_fault_error_of("cudaGetLastError", false), 0);
}
