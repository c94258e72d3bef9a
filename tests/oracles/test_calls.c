/* The oracles that judge the allocator's calls and what they leave: api_misuse, device_state,
 * progress, leak. */
#include "oracle_test.h"

#include <string.h>

TEST(a_forbidden_call_is_named_with_its_rule)
{
    gmd_judge judge = {0};
    gmd_misuse misuse = {.function = "cudaFree",
                         .sentence = "the address is not allocated",
                         .address = 0x1000,
                         .result = 1};
    oracle_api_misuse.after_request(
        NULL, &(gmd_view){.calls.misuses = &misuse, .calls.misuse_count = 1}, &judge);
    assert_int_equal(judge.count, 1);
    assert_string_equal(judge.first, "cudaFree(0x1000) returned 1: the address is not allocated");
}

TEST(a_call_without_an_address_is_named_alone)
{
    gmd_judge judge = {0};
    gmd_misuse misuse = {
        .function = "cudaStreamSynchronize", .sentence = "the stream is destroyed", .result = 400};
    oracle_api_misuse.after_request(
        NULL, &(gmd_view){.calls.misuses = &misuse, .calls.misuse_count = 1}, &judge);
    assert_string_equal(judge.first, "cudaStreamSynchronize returned 400: the stream is destroyed");
}

static int state_violations(gmd_thread_state before, gmd_thread_state after, const char *faulted)
{
    gmd_judge judge = {0};
    gmd_view view = {
        .thread.before = &before, .thread.after = &after, .faults.functions = {faulted}};
    oracle_device_state.after_request(NULL, &view, &judge);
    return judge.count;
}

TEST(each_part_of_the_threads_state_must_stay)
{
    gmd_thread_state was = {.device = 1};
    assert_int_equal(state_violations(was, was, NULL), 0);
    assert_int_equal(state_violations(was, (gmd_thread_state){.device = 0}, NULL), 1);
    assert_int_equal(state_violations(was, (gmd_thread_state){.device = 1, .last_error = 2}, NULL),
                     1);
    assert_int_equal(
        state_violations(was, (gmd_thread_state){.device = 1, .capture_mode = 1}, NULL), 1);
}

TEST(a_fault_excuses_only_what_it_made_impossible)
{
    gmd_thread_state was = {.device = 1}, moved = {.device = 0},
                     stale = {.device = 1, .last_error = 2};
    assert_int_equal(state_violations(was, moved, "cudaSetDevice"), 0);
    assert_int_equal(state_violations(was, stale, "cudaGetLastError"), 0);
    assert_int_equal(state_violations(was, stale, "cudaMalloc"), 1);
}

static int progress_violations(const char *text, uint64_t faults_hit)
{
    gmd_judge judge = {0};
    oracle_progress.after_request(
        NULL, &(gmd_view){.thread.error_text = text, .faults.hit = faults_hit}, &judge);
    return judge.count;
}

TEST(a_failure_needs_a_fault_and_an_assertion_has_no_excuse)
{
    assert_int_equal(progress_violations(NULL, 0), 0);
    assert_int_equal(progress_violations("CUDA error: unknown error", 0), 1);
    assert_int_equal(progress_violations("CUDA error: unknown error", 1), 0);
    assert_int_equal(progress_violations("!handles_.at(i) INTERNAL ASSERT FAILED", 1), 1);
}

static int leaks(gmd_device_figures now)
{
    gmd_judge judge = {0};
    gmd_device_figures was = {.capacity_bytes = 1};
    void *leak = oracle_leak.create();
    oracle_leak.at_end(leak, &(gmd_view){.figures.now = &now, .figures.baseline = &was}, &judge);
    oracle_leak.destroy(leak);
    return judge.count;
}

TEST(leak_counts_virtual_memory_and_streams)
{
    assert_int_equal(leaks((gmd_device_figures){.capacity_bytes = 1}), 0);
    assert_int_equal(leaks((gmd_device_figures){.mapped_bytes = 1}), 1);
    assert_int_equal(leaks((gmd_device_figures){.handle_count = 1}), 1);
    assert_int_equal(leaks((gmd_device_figures){.reservation_count = 1}), 1);
    assert_int_equal(leaks((gmd_device_figures){.stream_count = 1}), 1);
}

static void request_of(void *leak, uint8_t op, uint32_t recorded_count)
{
    gmd_request request = {.op = op, .stream = op == GMD_OP_SYNC ? GMD_ALL_STREAMS : 0};
    oracle_leak.after_request(
        leak, &(gmd_view){.request = &request, .uses.recorded_count = recorded_count}, NULL);
}

/* A block that waited for two streams, twice; everything was over in between. */
static int events_left(uint64_t count)
{
    gmd_judge judge = {0};
    gmd_device_figures now = {.event_count = count}, was = {0};
    void *leak = oracle_leak.create();
    request_of(leak, GMD_OP_FREE, 2);
    request_of(leak, GMD_OP_SYNC, 0);
    request_of(leak, GMD_OP_EMPTY_CACHE, 0);
    request_of(leak, GMD_OP_FREE, 2);
    oracle_leak.at_end(leak, &(gmd_view){.figures.now = &now, .figures.baseline = &was}, &judge);
    oracle_leak.destroy(leak);
    return judge.count;
}

TEST(leak_lets_an_allocator_keep_the_events_that_it_needed_at_once)
{
    assert_int_equal(events_left(2), 0);
    assert_int_equal(events_left(3), 1);
}
