/* Private pools and stream capture: whose blocks go where, and what must not be called when. */
#include "allocator_test.h"

#include <malloc.h>
#include <string.h>

static const uint64_t id[2] = {0, 7};

static bool is_stream(void *context, cudaStream_t stream)
{
    return stream == context;
}

static void begin(bench *b, cudaStream_t stream)
{
    assert_true(gmd_allocator_begin_pool(b->a, 0, id, is_stream, stream));
}

static void end(bench *b)
{
    void *context;
    assert_true(gmd_allocator_end_pool(b->a, 0, id, &context));
}

TEST_F(bench, requests_of_a_stream_go_to_its_pool_and_to_no_other)
{
    bench b = open_bench(GMD_GIB, "");
    give(&b, take(&b, 512)); /* cached in the default pool */
    begin(&b, b.s1);
    uint64_t private = take(&b, 512);
    end(&b);
    uint64_t again = take(&b, 512);
    assert_true(private / (2 * GMD_MIB) != again / (2 * GMD_MIB));
    assert_int_equal(stats_of(&b).reserved_bytes, 4 * GMD_MIB);
}

TEST_F(bench, streams_that_the_filter_does_not_take_stay_in_the_default_pool)
{
    bench b = open_bench(GMD_GIB, "");
    uint64_t first = take_on(&b, 512, b.s2);
    gmd_allocator_free(b.a, (void *)(uintptr_t)first, 0, b.s2);
    begin(&b, b.s1);
    assert_int_equal(take_on(&b, 512, b.s2), first);
    end(&b);
}

TEST_F(bench, a_pool_is_there_again_for_a_second_begin)
{
    bench b = open_bench(GMD_GIB, "");
    begin(&b, b.s1);
    uint64_t first = take(&b, 512);
    give(&b, first);
    end(&b);
    begin(&b, b.s1);
    assert_int_equal(take(&b, 512), first);
    end(&b);
}

static void use_and_release_pool(bench *b, uint64_t number)
{
    const uint64_t name[2] = {1, number};
    void *context;
    assert_true(gmd_allocator_begin_pool(b->a, 0, name, is_stream, b->s1));
    give(b, take(b, 512));
    assert_true(gmd_allocator_end_pool(b->a, 0, name, &context));
    assert_true(gmd_allocator_release_pool(b->a, 0, name));
    gmd_allocator_empty_cache(b->a);
}

TEST_F(bench, an_allocator_goes_with_its_pools_while_requests_go_to_one)
{
    bench b = open_bench(GMD_GIB, "");
    use_and_release_pool(&b, 1);
    begin(&b, b.s2);
    assert_true(take_on(&b, GMD_MIB, b.s2) != 0);
    close_bench(&b);
    assert_int_equal(device_state().physical_bytes, 0);
}

TEST_F(bench, a_second_begin_of_the_same_pool_is_refused_while_it_stands)
{
    bench b = open_bench(GMD_GIB, "");
    begin(&b, b.s1);
    assert_false(gmd_allocator_begin_pool(b.a, 0, id, NULL, NULL));
    end(&b);
    void *context;
    assert_false(gmd_allocator_end_pool(b.a, 0, id, &context));
}

TEST_F(bench, the_default_pool_cannot_be_begun)
{
    bench b = open_bench(GMD_GIB, "");
    const uint64_t numbers[] = {1, 0, 0, 1};
    assert_false(gmd_allocator_begin_pool(b.a, 0, numbers + 1, NULL, NULL));
}

TEST_F(bench, a_released_pool_is_given_back_when_the_cache_is)
{
    bench b = open_bench(GMD_GIB, "");
    begin(&b, b.s1);
    give(&b, take(&b, 512));
    end(&b);
    assert_true(gmd_allocator_release_pool(b.a, 0, id));
    assert_false(gmd_allocator_release_pool(b.a, 0, id));
    gmd_allocator_empty_cache(b.a);
    assert_int_equal(device_state().physical_bytes, 0);
}

TEST_F(bench, a_released_pool_with_a_live_block_stays_until_it_is_freed)
{
    bench b = open_bench(GMD_GIB, "");
    begin(&b, b.s1);
    uint64_t first = take(&b, 512);
    end(&b);
    gmd_allocator_release_pool(b.a, 0, id);
    gmd_allocator_empty_cache(b.a);
    assert_int_equal(device_state().physical_bytes, 2 * GMD_MIB);
    give(&b, first);
    gmd_allocator_empty_cache(b.a);
    assert_int_equal(device_state().physical_bytes, 0);
}

/* pytorch#175015, first half */
TEST_F(bench, without_a_capture_a_pool_takes_back_what_other_streams_are_done_with)
{
    bench b = open_bench(GMD_GIB, "");
    begin(&b, b.s1);
    uint64_t first = take(&b, 512);
    record(&b, first, b.s2);
    give(&b, first);
    assert_int_equal(take(&b, 512), first);
    end(&b);
}

/* pytorch#175015, second half */
TEST_F(bench, without_a_capture_a_pool_recovers_from_a_full_device)
{
    bench b = open_bench(100 * GMD_MIB, "");
    begin(&b, b.s1);
    give(&b, take(&b, 60 * GMD_MIB));
    assert_true(take(&b, 70 * GMD_MIB) != 0);
    end(&b);
}

static cudaGraph_t end_capture(cudaStream_t stream)
{
    cudaGraph_t graph = NULL;
    assert_int_equal(cudaStreamEndCapture(stream, &graph), cudaSuccess);
    return graph;
}

TEST_F(bench, a_capture_survives_new_segments)
{
    bench b = open_bench(GMD_GIB, "");
    begin(&b, b.s1);
    assert_int_equal(cudaStreamBeginCapture(b.s1, cudaStreamCaptureModeGlobal), cudaSuccess);
    assert_true(take(&b, 512) != 0);
    assert_true(take(&b, 30 * GMD_MIB) != 0);
    cudaGraphDestroy(end_capture(b.s1));
    end(&b);
}

/* pytorch#159594 */
TEST_F(bench, a_capture_survives_a_full_device)
{
    bench b = open_bench(100 * GMD_MIB, "max_split_size_mb:20");
    give(&b, take(&b, 60 * GMD_MIB));
    begin(&b, b.s1);
    assert_int_equal(cudaStreamBeginCapture(b.s1, cudaStreamCaptureModeGlobal), cudaSuccess);
    assert_int_equal(take(&b, 70 * GMD_MIB), 0);
    assert_int_equal(gmd_sim_call_count("cudaFree"), 0);
    cudaGraphDestroy(end_capture(b.s1));
    end(&b);
}

TEST_F(bench, during_a_capture_no_event_is_recorded_on_its_stream)
{
    bench b = open_bench(GMD_GIB, "");
    uint64_t first = take(&b, 512);
    record(&b, first, b.s2);
    assert_int_equal(cudaStreamBeginCapture(b.s2, cudaStreamCaptureModeGlobal), cudaSuccess);
    give(&b, first);
    uint64_t second = take(&b, 512);
    cudaGraphDestroy(end_capture(b.s2));
    assert_int_not_equal(second, first);
    assert_int_equal(take(&b, 512), first); /* after the capture */
    expect_no_error_left();
}

/* `after` is ordered behind what is captured on `before`, and part of its capture. */
static void order(cudaStream_t before, cudaStream_t after)
{
    cudaEvent_t event;
    assert_int_equal(cudaEventCreateWithFlags(&event, cudaEventDisableTiming), cudaSuccess);
    assert_int_equal(cudaEventRecord(event, before), cudaSuccess);
    assert_int_equal(cudaStreamWaitEvent(after, event, 0), cudaSuccess);
    assert_int_equal(cudaEventDestroy(event), cudaSuccess);
}

/* A block of the first stream that work of the second one, too, is captured with, freed. */
static uint64_t free_in_capture(bench *b)
{
    begin(b, b->s1);
    assert_int_equal(cudaStreamBeginCapture(b->s1, cudaStreamCaptureModeGlobal), cudaSuccess);
    uint64_t freed = take(b, 512);
    gmd_sim_access use = {freed, 512, true};
    assert_int_equal(gmd_sim_launch(b->s1, 1000, &use, 1), cudaSuccess);
    order(b->s1, b->s2);
    assert_int_equal(gmd_sim_launch(b->s2, 1000, &use, 1), cudaSuccess);
    record(b, freed, b->s2);
    give(b, freed);
    return freed;
}

static void leave_capture(bench *b)
{
    order(b->s2, b->s1); /* who forks joins */
    cudaGraphDestroy(end_capture(b->s1));
    end(b);
    expect_no_error_left();
}

TEST_F(bench, a_block_is_used_again_within_a_capture_once_its_streams_have_joined)
{
    bench b = open_bench(GMD_GIB, "graph_capture_record_stream_reuse:True");
    uint64_t freed = free_in_capture(&b);
    assert_int_not_equal(take(&b, 512), freed);
    order(b.s2, b.s1);
    gmd_sim_access other = {freed, 0, false};
    assert_int_equal(gmd_sim_launch(b.s1, 1000, &other, 0), cudaSuccess);
    assert_int_equal(take(&b, 512), freed);
    leave_capture(&b);
}

TEST_F(bench, without_the_setting_it_waits_for_the_end_of_the_capture)
{
    bench b = open_bench(GMD_GIB, "");
    uint64_t freed = free_in_capture(&b);
    order(b.s2, b.s1);
    assert_int_not_equal(take(&b, 512), freed);
    leave_capture(&b);
}

TEST_F(bench, work_that_was_captured_after_the_join_must_join_as_well)
{
    bench b = open_bench(GMD_GIB, "graph_capture_record_stream_reuse:True");
    begin(&b, b.s1);
    assert_int_equal(cudaStreamBeginCapture(b.s1, cudaStreamCaptureModeGlobal), cudaSuccess);
    uint64_t freed = take(&b, 512);
    gmd_sim_access use = {freed, 512, true};
    order(b.s1, b.s2);
    assert_int_equal(gmd_sim_launch(b.s2, 1000, &use, 1), cudaSuccess);
    order(b.s2, b.s1);
    assert_int_equal(gmd_sim_launch(b.s2, 1000, &use, 1), cudaSuccess);
    record(&b, freed, b.s2);
    give(&b, freed);
    assert_int_not_equal(take(&b, 512), freed);
    order(b.s2, b.s1);
    assert_int_equal(take(&b, 512), freed);
    leave_capture(&b);
}

TEST_F(bench, work_from_before_the_capture_keeps_a_block_until_its_end)
{
    bench b = open_bench(GMD_GIB, "graph_capture_record_stream_reuse:True");
    begin(&b, b.s1);
    uint64_t freed = take(&b, 512);
    gmd_sim_access use = {freed, 512, true};
    assert_int_equal(gmd_sim_launch(b.s2, 1000, &use, 1), cudaSuccess);
    record(&b, freed, b.s2);
    assert_int_equal(cudaStreamBeginCapture(b.s1, cudaStreamCaptureModeGlobal), cudaSuccess);
    order(b.s1, b.s2);
    give(&b, freed);
    assert_int_not_equal(take(&b, 512), freed);
    leave_capture(&b);
}

TEST_F(bench, what_was_freed_in_one_capture_is_not_taken_for_free_in_the_next)
{
    bench b = open_bench(GMD_GIB, "graph_capture_record_stream_reuse:True");
    uint64_t freed = free_in_capture(&b);
    leave_capture(&b);
    begin(&b, b.s1);
    assert_int_equal(cudaStreamBeginCapture(b.s1, cudaStreamCaptureModeGlobal), cudaSuccess);
    order(b.s1, b.s2);
    assert_int_not_equal(take(&b, 512), freed);
    leave_capture(&b);
    begin(&b, b.s1);
    assert_int_equal(take(&b, 512), freed); /* by events, outside captures */
    end(&b);
}

TEST_F(bench, a_captured_pool_keeps_its_addresses_while_it_is_held)
{
    bench b = open_bench(GMD_GIB, "");
    begin(&b, b.s1);
    assert_int_equal(cudaStreamBeginCapture(b.s1, cudaStreamCaptureModeGlobal), cudaSuccess);
    give(&b, take(&b, 512));
    cudaGraphDestroy(end_capture(b.s1));
    end(&b);
    gmd_allocator_empty_cache(b.a);
    assert_int_equal(device_state().physical_bytes, 2 * GMD_MIB);
    gmd_allocator_release_pool(b.a, 0, id);
    gmd_allocator_empty_cache(b.a);
    assert_int_equal(device_state().physical_bytes, 0);
}

/* The block came from the cache: nothing new was asked of the device during the capture. */
TEST_F(bench, a_pool_that_served_a_capture_from_its_cache_keeps_its_addresses_too)
{
    bench b = open_bench(GMD_GIB, "");
    begin(&b, b.s1);
    give(&b, take(&b, 512));
    assert_int_equal(cudaStreamBeginCapture(b.s1, cudaStreamCaptureModeGlobal), cudaSuccess);
    give(&b, take(&b, 512));
    cudaGraphDestroy(end_capture(b.s1));
    end(&b);
    gmd_allocator_empty_cache(b.a);
    assert_int_equal(device_state().physical_bytes, 2 * GMD_MIB);
}

TEST_F(bench, another_streams_request_leaves_a_capture_alone)
{
    bench b = open_bench(100 * GMD_MIB, "expandable_segments:True");
    uint64_t cached = take_on(&b, 60 * GMD_MIB, b.s2);
    gmd_allocator_free(b.a, (void *)(uintptr_t)cached, 0, b.s2);
    assert_int_equal(cudaStreamBeginCapture(b.s1, cudaStreamCaptureModeGlobal), cudaSuccess);
    assert_true(take_on(&b, 60 * GMD_MIB, b.s3) != 0);
    gmd_allocator_empty_cache(b.a);
    gmd_allocator_forget_stream(b.a, 0, b.s1);
    cudaGraphDestroy(end_capture(b.s1));
}

TEST_F(bench, pools_of_expandable_segments_are_apart_too)
{
    bench b = open_bench(GMD_GIB, "expandable_segments:True");
    take(&b, 512);
    begin(&b, b.s1);
    give(&b, take(&b, 512));
    end(&b);
    gmd_allocator_release_pool(b.a, 0, id);
    assert_int_equal(device_state().reservation_count, 2);
    gmd_allocator_empty_cache(b.a);
    assert_int_equal(device_state().reservation_count, 1);
}

TEST_F(bench, the_end_of_one_pool_leaves_the_streams_of_another_to_it)
{
    static const uint64_t other[2] = {0, 8};
    bench b = open_bench(GMD_GIB, "");
    void *context;
    give(&b, take(&b, 512)); /* cached in the default pool */
    begin(&b, b.s1);
    assert_true(gmd_allocator_begin_pool(b.a, 0, other, is_stream, b.s2));
    assert_true(gmd_allocator_end_pool(b.a, 0, other, &context));
    take(&b, 512);
    assert_int_equal(stats_of(&b).reserved_bytes, 4 * GMD_MIB);
    end(&b);
}

TEST_F(bench, of_nested_pools_the_innermost_gets_the_request)
{
    static const uint64_t inner[2] = {0, 8};
    bench b = open_bench(GMD_GIB, "");
    void *context;
    begin(&b, b.s1);
    uint64_t outside = take(&b, 512);
    assert_true(gmd_allocator_begin_pool(b.a, 0, inner, is_stream, b.s1));
    uint64_t inside = take(&b, 512);
    assert_true(gmd_allocator_end_pool(b.a, 0, inner, &context));
    uint64_t outside_again = take(&b, 512);
    end(&b);
    assert_true(inside / (2 * GMD_MIB) != outside / (2 * GMD_MIB));
    assert_int_equal(outside_again, outside + 512);
}

TEST_F(bench, the_cache_of_one_pool_is_given_back_alone)
{
    bench b = open_bench(GMD_GIB, "");
    give(&b, take(&b, 512)); /* cached in the default pool */
    begin(&b, b.s1);
    give(&b, take(&b, 512));
    end(&b);
    assert_true(gmd_allocator_empty_pool(b.a, 0, id));
    assert_int_equal(stats_of(&b).reserved_bytes, 2 * GMD_MIB);
}

/* --- what a user's pool can be ------------------------------------------------------------- */

static void hold(const bench *b)
{
    void *context;
    assert_true(gmd_allocator_begin_pool(b->a, 0, id, is_stream, b->s1));
    assert_true(gmd_allocator_end_pool(b->a, 0, id, &context));
}

static void *lend(void *context, size_t size, int device)
{
    void *memory = NULL;
    (void)device;
    ++*(int *)context;
    return cudaMalloc(&memory, size) == cudaSuccess ? memory : NULL;
}

static void take_back(void *context, void *ptr, size_t size, int device)
{
    (void)size;
    (void)device;
    *(int *)context += 100;
    assert_int_equal(cudaFree(ptr), cudaSuccess);
}

static void end_loans(void *context)
{
    *(int *)context += 10000;
}

TEST_F(bench, a_pool_has_its_segments_from_where_its_user_says)
{
    bench b = open_bench(GMD_GIB, "");
    int calls = 0;
    const gmd_pool_memory memory = {lend, take_back, end_loans, &calls};
    hold(&b);
    assert_true(gmd_allocator_set_pool_memory(b.a, 0, id, &memory));
    begin(&b, b.s1);
    uint64_t inside = take(&b, 512);
    end(&b);
    uint64_t outside = take(&b, 512);
    assert_int_equal(calls, 1);
    give(&b, inside);
    give(&b, outside);
    gmd_allocator_release_pool(b.a, 0, id);
    gmd_allocator_release_pool(b.a, 0, id);
    gmd_allocator_empty_cache(b.a);
    assert_int_equal(calls, 10101);
}

TEST_F(bench, a_pool_that_is_used_already_gets_no_other_memory)
{
    bench b = open_bench(GMD_GIB, "");
    int calls = 0;
    const gmd_pool_memory memory = {lend, take_back, end_loans, &calls};
    assert_false(gmd_allocator_set_pool_memory(b.a, 0, id, &memory));
    begin(&b, b.s1);
    give(&b, take(&b, 512));
    assert_false(gmd_allocator_set_pool_memory(b.a, 0, id, &memory));
    end(&b);
}

TEST_F(bench, memory_of_a_users_own_and_expandable_segments_do_not_go_together)
{
    bench b = open_bench(GMD_GIB, "");
    int calls = 0;
    const gmd_pool_memory memory = {lend, take_back, NULL, &calls};
    hold(&b);
    assert_true(gmd_allocator_set_pool_memory(b.a, 0, id, &memory));
    assert_int_equal(gmd_allocator_change_settings(b.a, "expandable_segments:True", NULL), GMD_OK);
    assert_false(gmd_allocator_begin_pool(b.a, 0, id, is_stream, b.s1));
}

TEST_F(bench, a_pool_without_splits_hands_out_whole_blocks)
{
    bench b = open_bench(GMD_GIB, "");
    hold(&b);
    assert_true(gmd_allocator_set_pool_option(b.a, 0, id, "no_split", true));
    begin(&b, b.s1);
    uint64_t first = take(&b, 512), second = take(&b, 512);
    assert_int_equal(gmd_allocator_block_size(b.a, 0, (void *)(uintptr_t)first), 2 * GMD_MIB);
    assert_int_equal(stats_of(&b).reserved_bytes, 4 * GMD_MIB);
    give(&b, first);
    assert_int_equal(take(&b, 1024), first);
    give(&b, second);
    end(&b);
}

TEST_F(bench, a_pool_in_reserve_serves_what_would_be_refused)
{
    bench b = open_bench(100 * GMD_MIB, "");
    gmd_allocator_set_quirk(b.a, GMD_QUIRK_HELD_POOL, true); /* else its cache is given back */
    begin(&b, b.s1);
    uint64_t cached = take(&b, 80 * GMD_MIB);
    give(&b, cached);
    end(&b);
    assert_int_equal(take(&b, 60 * GMD_MIB), 0);
    assert_true(gmd_allocator_set_pool_option(b.a, 0, id, "use_on_oom", true));
    assert_int_equal(take(&b, 60 * GMD_MIB), cached);
    assert_int_equal(stats_of(&b).num_ooms, 1);
    give(&b, cached);
}

TEST_F(bench, options_are_of_pools_that_somebody_holds_and_have_names)
{
    bench b = open_bench(GMD_GIB, "");
    assert_false(gmd_allocator_set_pool_option(b.a, 0, id, "no_split", true));
    hold(&b);
    assert_false(gmd_allocator_set_pool_option(b.a, 0, id, "no_such_option", true));
}

TEST_F(bench, as_a_quirk_a_pool_keeps_its_cache_while_it_is_held)
{
    bench b = open_bench(GMD_GIB, "");
    gmd_allocator_set_quirk(b.a, GMD_QUIRK_HELD_POOL, true);
    begin(&b, b.s1);
    give(&b, take(&b, 512));
    end(&b);
    gmd_allocator_empty_cache(b.a);
    gmd_allocator_empty_pool(b.a, 0, id);
    assert_int_equal(stats_of(&b).reserved_bytes, 2 * GMD_MIB);
    assert_int_equal(gmd_allocator_quirk_count(b.a, GMD_QUIRK_HELD_POOL), 2);
    assert_true(gmd_allocator_release_pool(b.a, 0, id));
    gmd_allocator_empty_cache(b.a);
    assert_int_equal(stats_of(&b).reserved_bytes, 0);
}

TEST_F(bench, a_pool_that_is_not_there_has_no_cache)
{
    bench b = open_bench(GMD_GIB, "");
    assert_false(gmd_allocator_empty_pool(b.a, 0, id));
}

TEST_F(bench, a_released_pool_stays_for_a_live_block_that_leaves_nothing_of_its_segment)
{
    bench b = open_bench(GMD_GIB, "");
    begin(&b, b.s1);
    uint64_t whole = take(&b, 12 * GMD_MIB);
    end(&b);
    gmd_allocator_release_pool(b.a, 0, id);
    gmd_allocator_empty_cache(b.a);
    give(&b, whole);
    assert_int_equal(stats_of(&b).allocated_bytes, 0);
}

TEST_F(bench, nor_does_it_go_for_small_blocks_that_leave_nothing)
{
    bench b = open_bench(GMD_GIB, "");
    begin(&b, b.s1);
    uint64_t halves[] = {take(&b, GMD_MIB), take(&b, GMD_MIB)};
    end(&b);
    gmd_allocator_release_pool(b.a, 0, id);
    gmd_allocator_empty_cache(b.a);
    give(&b, halves[0]);
    give(&b, halves[1]);
    assert_int_equal(stats_of(&b).allocated_bytes, 0);
}

/* Whole segments; a capture on the stream that used them keeps them pending. */
static void expect_pool_to_stay_for_pending(uint64_t first_size, uint64_t second_size)
{
    bench b = open_bench(GMD_GIB, "");
    cudaGraph_t graph = NULL;
    begin(&b, b.s1);
    uint64_t first = take(&b, first_size), second = second_size ? take(&b, second_size) : 0;
    end(&b);
    gmd_allocator_release_pool(b.a, 0, id);
    cudaStreamBeginCapture(b.s2, cudaStreamCaptureModeRelaxed);
    record(&b, first, b.s2);
    give(&b, first);
    if (second) {
        record(&b, second, b.s2);
        give(&b, second);
    }
    gmd_allocator_empty_cache(b.a);
    assert_int_equal(stats_of(&b).active_bytes, first_size + second_size);
    cudaStreamEndCapture(b.s2, &graph);
    cudaGraphDestroy(graph);
    gmd_allocator_empty_cache(b.a);
    assert_int_equal(stats_of(&b).active_bytes, 0);
    assert_int_equal(device_state().physical_bytes, 0);
    close_bench(&b);
}

TEST(a_released_pool_stays_for_pending_blocks_that_leave_nothing)
{
    expect_pool_to_stay_for_pending(12 * GMD_MIB, 0);
    expect_pool_to_stay_for_pending(GMD_MIB, GMD_MIB);
}

static void note_pool(void *context, const gmd_block_info *info)
{
    memcpy(context, info->pool_id, sizeof info->pool_id);
}

TEST_F(bench, a_released_pool_stays_while_requests_go_to_it)
{
    bench b = open_bench(GMD_GIB, "");
    uint64_t seen[2] = {0};
    begin(&b, b.s1);
    gmd_allocator_release_pool(b.a, 0, id);
    gmd_allocator_empty_cache(b.a);
    take(&b, 12 * GMD_MIB);
    assert_true(gmd_allocator_walk(b.a, 0, note_pool, seen));
    assert_memory_equal(seen, id, sizeof seen);
    end(&b);
}

/* A job that captures graphs anew all day must not grow. Under AddressSanitizer mallinfo2 tells
 * nothing. */
static void expect_no_growth(bench *b)
{
    use_and_release_pool(b, 0);
    size_t before = mallinfo2().uordblks;
    for (uint64_t i = 1; i <= 100; i++) {
        use_and_release_pool(b, i);
    }
    assert_in_range(mallinfo2().uordblks, 0, before + 16 * GMD_KIB);
}

TEST_F(bench, pools_that_are_gone_keep_no_host_memory)
{
    bench b = open_bench(GMD_GIB, "");
    expect_no_growth(&b);
}

TEST_F(bench, nor_while_requests_of_another_stream_go_to_a_pool)
{
    bench b = open_bench(GMD_GIB, "");
    begin(&b, b.s2);
    expect_no_growth(&b);
    end(&b);
}
