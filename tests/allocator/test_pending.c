/* Blocks that other streams use: a free waits for them, and for nothing else. */
#include "allocator_test.h"
#include "last_slot.h"

/* A block that is freed while s2's work of 1 us may still use it. */
static uint64_t free_in_use(const bench *b, uint64_t size)
{
    uint64_t address = take(b, size);
    record(b, address, b->s2);
    work(b->s2, 1000);
    give(b, address);
    return address;
}

/* 2 MiB, 18 MiB and 42 MiB fill the device; the one in the middle is freed while it is in use. */
static uint64_t fill_and_free_in_use(const bench *b)
{
    take(b, 2 * GMD_MIB);
    uint64_t middle = free_in_use(b, 18 * GMD_MIB);
    take(b, 42 * GMD_MIB);
    return middle;
}

TEST_F(bench, a_block_waits_for_the_streams_it_was_recorded_on)
{
    bench b = open_bench(GMD_GIB, "");
    uint64_t first = free_in_use(&b, 512);
    assert_int_not_equal(take(&b, 512), first);
}

TEST_F(bench, it_is_free_once_their_work_is_done)
{
    bench b = open_bench(GMD_GIB, "");
    uint64_t first = free_in_use(&b, 512);
    gmd_sim_advance(1000);
    assert_int_equal(take(&b, 512), first);
}

TEST_F(bench, work_that_is_queued_after_the_record_counts_too)
{
    bench b = open_bench(GMD_GIB, "");
    uint64_t first = take(&b, 512);
    record(&b, first, b.s2);
    gmd_sim_advance(1000);
    work(b.s2, 1000);
    give(&b, first);
    assert_int_not_equal(take(&b, 512), first);
}

TEST_F(bench, a_record_on_its_own_stream_changes_nothing)
{
    bench b = open_bench(GMD_GIB, "");
    uint64_t first = take(&b, 512);
    record(&b, first, b.s1);
    work(b.s1, 1000);
    give(&b, first);
    assert_int_equal(take(&b, 512), first);
}

/* pytorch#71616 */
TEST_F(bench, a_long_stream_holds_up_no_block_of_another)
{
    bench b = open_bench(GMD_GIB, "");
    uint64_t of_slow = take(&b, 512), of_quick = take(&b, 512);
    record(&b, of_slow, b.s2);
    record(&b, of_quick, b.s3);
    work(b.s2, 1000000);
    work(b.s3, 10);
    give(&b, of_slow);
    give(&b, of_quick);
    gmd_sim_advance(10);
    assert_int_equal(take(&b, 512), of_quick);
}

TEST_F(bench, a_pending_block_is_active_but_not_allocated)
{
    bench b = open_bench(GMD_GIB, "");
    free_in_use(&b, 4096);
    assert_int_equal(stats_of(&b).allocated_bytes, 0);
    assert_int_equal(stats_of(&b).active_bytes, 4096);
}

/* pytorch#189504: the block that the wait brings back is what serves the request. */
TEST_F(bench, a_full_device_waits_for_pending_frees_and_looks_again)
{
    bench b = open_bench(64 * GMD_MIB, "");
    uint64_t first = fill_and_free_in_use(&b);
    assert_int_equal(take(&b, 18 * GMD_MIB), first);
    assert_int_equal(stats_of(&b).num_ooms, 0);
    expect_no_error_left();
}

TEST_F(bench, as_a_quirk_it_reports_out_of_memory_and_counts_it)
{
    bench b = open_bench(64 * GMD_MIB, "");
    gmd_allocator_set_quirk(b.a, GMD_QUIRK_SPURIOUS_OOM, true);
    fill_and_free_in_use(&b);
    assert_int_equal(take(&b, 18 * GMD_MIB), 0);
    assert_in_range(gmd_allocator_quirk_count(b.a, GMD_QUIRK_SPURIOUS_OOM), 1, 2);
}

TEST_F(bench, a_failed_event_keeps_the_block_until_one_can_be_had)
{
    bench b = open_bench(GMD_GIB, "");
    uint64_t first = take(&b, 512);
    record(&b, first, b.s2);
    work(b.s2, 1000);
    gmd_sim_fault("cudaEventRecord", 1, false, cudaErrorInvalidValue);
    give(&b, first);
    assert_int_not_equal(take(&b, 512), first); /* tells the stream again */
    gmd_sim_advance(1000);
    assert_int_equal(take(&b, 512), first);
    expect_no_error_left();
}

/* pytorch#66936: every call with the handle of a destroyed stream crashes on a real device. */
TEST_F(bench, a_stream_that_is_forgotten_is_not_called_any_more)
{
    bench b = open_bench(GMD_GIB, "");
    uint64_t first = take(&b, 512);
    record(&b, first, b.s2);
    work(b.s2, 1000);
    gmd_allocator_forget_stream(b.a, 0, b.s2);
    cudaStreamDestroy(b.s2);
    give(&b, first);
    assert_int_equal(take(&b, 512), first);
    expect_no_error_left();
}

TEST_F(bench, where_the_wait_for_it_fails_all_work_of_the_device_is_waited_for)
{
    bench b = open_bench(GMD_GIB, "");
    give(&b, take_on(&b, 512, b.s2));
    work(b.s2, 1000);
    gmd_sim_fault("cudaStreamSynchronize", 1, false, cudaErrorUnknown);
    gmd_allocator_forget_stream(b.a, 0, b.s2);
    assert_int_equal(cudaStreamQuery(b.s2), cudaSuccess);
    expect_no_error_left();
}

TEST_F(bench, nor_is_it_for_a_block_in_the_last_slot)
{
    bench b = open_bench(GMD_GIB, "");
    uint64_t last = take_in_last_slot(b.a, b.s1);
    record(&b, last, b.s2);
    gmd_allocator_forget_stream(b.a, 0, b.s2);
    cudaStreamDestroy(b.s2);
    give(&b, last);
    expect_no_error_left();
}

TEST_F(bench, destroying_the_allocator_gives_back_a_block_in_the_last_slot)
{
    bench b = open_bench(GMD_GIB, "");
    take_in_last_slot(b.a, b.s1);
    close_bench(&b);
    assert_int_equal(device_state().physical_bytes, 0);
}

TEST_F(bench, empty_cache_gives_the_events_back)
{
    bench b = open_bench(GMD_GIB, "");
    uint64_t first = take(&b, 512);
    record(&b, first, b.s2);
    record(&b, first, b.s3);
    give(&b, first);
    assert_int_equal(device_state().event_count, 2);
    gmd_allocator_empty_cache(b.a);
    assert_int_equal(device_state().event_count, 0);
    assert_int_equal(device_state().physical_bytes, 0);
}

TEST_F(bench, a_record_of_what_is_not_live_is_refused)
{
    bench b = open_bench(GMD_GIB, "");
    uint64_t first = take(&b, 512);
    give(&b, first);
    assert_false(gmd_allocator_record_stream(b.a, (void *)(uintptr_t)first, b.s2));
}

TEST_F(bench, a_pending_block_is_freed_only_once)
{
    bench b = open_bench(GMD_GIB, "");
    uint64_t first = free_in_use(&b, 512);
    assert_false(gmd_allocator_free(b.a, (void *)(uintptr_t)first, 0, b.s1));
}

TEST_F(bench, destroying_the_allocator_waits_for_pending_frees)
{
    bench b = open_bench(GMD_GIB, "");
    free_in_use(&b, 512);
    close_bench(&b);
    assert_int_equal(device_state().physical_bytes, 0);
    assert_int_equal(device_state().event_count, 0);
}

TEST_F(bench, destroying_the_allocator_leaves_nothing_for_a_stream_under_capture)
{
    bench b = open_bench(GMD_GIB, "");
    uint64_t first = take(&b, 20 * GMD_MIB);
    record(&b, first, b.s2);
    assert_int_equal(cudaStreamBeginCapture(b.s2, cudaStreamCaptureModeRelaxed), cudaSuccess);
    give(&b, first);
    close_bench(&b);
    cudaGraph_t graph = NULL;
    cudaStreamEndCapture(b.s2, &graph);
    assert_int_equal(device_state().physical_bytes, 0);
}

/* The kth call of a function is refused, once. True: it was reached. */
static bool destroying_gives_all_back(const char *conf, const char *call, uint64_t k)
{
    bench b = open_bench(GMD_GIB, conf);
    const uint64_t id[2] = {0, 1};
    void *context;
    free_in_use(&b, 512);
    take(&b, 30 * GMD_MIB);
    give(&b, take(&b, 50 * GMD_MIB));
    gmd_allocator_begin_pool(b.a, 0, id, NULL, NULL);
    take(&b, 512);
    gmd_allocator_end_pool(b.a, 0, id, &context);
    uint64_t before = gmd_sim_call_count(call);
    assert_int_equal(gmd_sim_fault(call, k, false, cudaErrorInvalidValue), 0);
    close_bench(&b);
    bool is_reached = gmd_sim_call_count(call) - before >= k;
    gmd_sim_clear_faults();
    if (device_state().physical_bytes || device_state().reservation_count ||
        device_state().handle_count || device_state().event_count) {
        fail_msg("'%s': %s %d", conf, call, (int)k);
    }
    expect_no_error_left();
    return is_reached;
}

TEST(destroying_the_allocator_gives_all_back_though_a_call_is_refused_once)
{
    static const char *const calls[] = {"cudaGetDevice",
                                        "cudaFree",
                                        "cudaEventDestroy",
                                        "cudaEventSynchronize",
                                        "cudaDeviceSynchronize",
                                        "cudaStreamSynchronize",
                                        "cuMemUnmap",
                                        "cuMemRelease",
                                        "cuMemAddressFree"};
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
        for (uint64_t k = 1; destroying_gives_all_back("", calls[i], k); k++) {
        }
        for (uint64_t k = 1; destroying_gives_all_back("expandable_segments:True", calls[i], k);
             k++) {
        }
    }
}

TEST_F(bench, a_second_record_on_the_same_stream_changes_nothing)
{
    bench b = open_bench(GMD_GIB, "");
    uint64_t first = take(&b, 512);
    record(&b, first, b.s2);
    record(&b, first, b.s2);
    work(b.s2, 1000);
    give(&b, first);
    assert_int_equal(device_state().event_count, 1);
}
