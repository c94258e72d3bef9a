/* Every call of the reference allocator fails in turn, alone and for good, with every plausible
 * error, in runs of their own: each time the outcome is clean, and no oracle takes the fault for a
 * defect. */
#include "gmd_driver.h"
#include "gmd_size.h"
#include "gmd_test.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Both pools, two devices, streams with work pending, the limit and the device's own end, giving
 * back by hand and in a retry. */
static const char requests[] = "alloc a 1000 s1\n"
                               "alloc b 3MiB s1\n"
                               "alloc c 12MiB s2\n"
                               "use a s1 5us\n"
                               "use b s2 5us\n"
                               "record b s2\n"
                               "free a\n"
                               "free b\n"
                               "alloc d 30MiB s1\n"
                               "alloc e 30MiB s1\n"
                               "alloc f 700 s1 device 1\n"
                               "fraction 0.5\n"
                               "free c\n"
                               "alloc g 12MiB s2\n"
                               "alloc h 3MiB s2\n"
                               "empty_cache\n"
                               "free d\n"
                               "alloc i 25MiB s1\n"
                               "sync\n"
                               "free f\n"
                               "empty_cache\n"
                               "alloc j 40MiB s3 device 1\n"
                               "alloc k 40MiB s3 device 1\n"
                               "alloc l 5MiB s3 device 1\n";

static gmd_outcome *run_with(const char *fault)
{
    char text[2048];
    int length = snprintf(text, sizeof text, "gmd-trace 1\ndevices 2\ncapacity 64MiB\n%s\n%s",
                          fault, requests);
    gmd_trace trace = {0};
    gmd_error error = {""};
    assert_int_equal(gmd_trace_parse(&trace, text, (size_t)length, "test", &error), GMD_OK);
    gmd_run_options options = {.subject.allocator = "reference",
                               .subject.lib_directory = GMD_TEST_LIB_DIR,
                               .device.kind = GMD_DEVICE_SIM,
                               .conditions.device_count = 2,
                               .conditions.capacity_bytes = trace.conditions.capacity_bytes,
                               .process.call_budget_s = 20};
    gmd_workload workload = {
        .name = "faults.gmd", .kind = "trace", .trace = &trace, .body = gmd_play_trace};
    gmd_outcome *o = calloc(1, sizeof *o);
    assert_int_equal(gmd_run_isolated(&options, &workload, o, &error), GMD_OK);
    gmd_trace_free(&trace);
    return o;
}

static void expect_clean(const char *fault)
{
    gmd_outcome *o = run_with(fault);
    if (o->verdict != GMD_PASS) {
        fail_msg("%s: %s %s", fault, o->violation_count ? o->violations[0].oracle : "",
                 o->violation_count ? o->violations[0].message : o->error);
    }
    free(o);
}

static void sweep(const char *function, int error, const char *every)
{
    static const int calls[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 12, 15};
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
        char fault[100];
        snprintf(fault, sizeof fault, "fault %s %d %d%s", function, calls[i], error, every);
        expect_clean(fault);
    }
}

#define SWEEP_TEST(function, error)                                                                \
    TEST(any_##function##_may_fail)                                                                \
    {                                                                                              \
        sweep(#function, error, "");                                                               \
        sweep(#function, error, " every");                                                         \
    }

TEST(a_run_without_a_fault_is_clean)
{
    expect_clean("");
}

SWEEP_TEST(cudaMalloc, cudaErrorMemoryAllocation)

TEST(a_malloc_may_fail_otherwise_than_for_want_of_memory)
{
    sweep("cudaMalloc", cudaErrorUnknown, "");
}

SWEEP_TEST(cudaFree, cudaErrorUnknown)
SWEEP_TEST(cudaGetDevice, cudaErrorUnknown)
SWEEP_TEST(cudaSetDevice, cudaErrorInvalidDevice)
SWEEP_TEST(cudaMemGetInfo, cudaErrorUnknown)
SWEEP_TEST(cudaGetLastError, cudaErrorUnknown)

static bool has_note(const gmd_outcome *o, const char *text)
{
    for (uint32_t i = 0; i < o->note_count; i++) {
        if (strstr(o->notes[i], text)) {
            return true;
        }
    }
    return false;
}

TEST(a_fault_that_never_fired_is_said)
{
    gmd_outcome *o = run_with("fault cudaMalloc 1000 2");
    assert_int_equal(o->faults_planted, 1);
    assert_int_equal(o->faults_unfired, 1);
    assert_true(has_note(o, "the fault of request 0 never fired: the allocator called cudaMalloc"));
    free(o);
}

TEST(of_a_fault_that_fired_nothing_is_said)
{
    gmd_outcome *o = run_with("fault cudaMalloc 2 2");
    assert_int_equal(o->faults_planted, 1);
    assert_int_equal(o->faults_unfired, 0);
    assert_false(has_note(o, "never fired"));
    free(o);
}

static void expect_refused(const char *fault, const char *why)
{
    gmd_outcome *o = run_with(fault);
    assert_int_equal(o->verdict, GMD_ERROR);
    assert_int_equal(o->error_status, GMD_BAD_INPUT);
    assert_int_equal(o->requests, 0);
    if (!strstr(o->error, why) || !strstr(o->error, "faults.gmd:4: ")) {
        fail_msg("%s", o->error);
    }
    free(o);
}

TEST(an_error_that_there_is_not_is_refused_with_its_line)
{
    expect_refused("fault cudaMalloc 1 77", "77 is no cudaError_t");
    expect_refused("fault cuMemMap 1 9", "9 is no CUresult"); /* of the runtime only */
}

TEST(not_ready_is_an_answer_of_queries_only)
{
    expect_refused("fault cudaMalloc 1 600", "'not ready' is an answer of queries only");
    expect_clean("fault cudaEventQuery 1 600");
}
