/* Queues, the clock and who waits for whom. */
#include "device_test.h"

static void use_schedule(gmd_sim_schedule schedule)
{
    gmd_sim_config config = device_config();
    config.schedule = schedule;
    device_reset(&config);
}

TEST_F(fresh_device, work_is_not_ready_until_the_clock_moves)
{
    cudaStream_t stream = new_stream(cudaStreamDefault);
    launch(stream, 100);
    assert_int_equal(cudaStreamQuery(stream), cudaErrorNotReady);
    gmd_sim_advance(99);
    assert_int_equal(cudaStreamQuery(stream), cudaErrorNotReady);
    gmd_sim_advance(1);
    assert_success(cudaStreamQuery(stream));
    assert_int_equal(gmd_sim_now(), 100);
}

TEST_F(fresh_device, a_stream_runs_one_entry_after_another)
{
    cudaStream_t stream = new_stream(cudaStreamDefault);
    launch(stream, 100);
    launch(stream, 100);
    gmd_sim_advance(150);
    assert_int_equal(gmd_sim_pending(stream), 1);
}

TEST_F(fresh_device, streams_run_side_by_side)
{
    cudaStream_t a = new_stream(cudaStreamDefault), b = new_stream(cudaStreamDefault);
    launch(a, 100);
    launch(b, 100);
    gmd_sim_advance(100);
    assert_int_equal(gmd_sim_pending(a) + gmd_sim_pending(b), 0);
}

TEST_F(fresh_device, synchronising_moves_the_clock_to_the_end_of_the_work)
{
    cudaStream_t a = new_stream(cudaStreamDefault), b = new_stream(cudaStreamDefault);
    launch(a, 100);
    launch(b, 30);
    launch(b, 100);
    assert_success(cudaStreamSynchronize(a));
    assert_int_equal(gmd_sim_now(), 100);
    assert_int_equal(gmd_sim_pending(b), 1);
    assert_int_equal(gmd_sim_forced_waits(), 1);
    assert_success(cudaStreamSynchronize(a));
    assert_int_equal(gmd_sim_forced_waits(), 1);
}

TEST_F(fresh_device, eager_work_is_complete_at_once)
{
    use_schedule(GMD_SIM_EAGER);
    launch(NULL, 1000000);
    assert_success(cudaStreamQuery(NULL));
    assert_int_equal(gmd_sim_now(), 0);
}

TEST_F(fresh_device, lazy_work_completes_only_when_forced)
{
    use_schedule(GMD_SIM_LAZY);
    cudaStream_t a = new_stream(cudaStreamNonBlocking), b = new_stream(cudaStreamNonBlocking);
    launch(a, 10);
    launch(b, 10);
    gmd_sim_advance(1000000);
    assert_int_equal(cudaStreamQuery(a), cudaErrorNotReady);
    assert_success(cudaStreamSynchronize(a));
    assert_success(cudaStreamQuery(a));
    assert_int_equal(cudaStreamQuery(b), cudaErrorNotReady);
}

TEST_F(fresh_device, lazy_forcing_follows_the_waits)
{
    use_schedule(GMD_SIM_LAZY);
    cudaStream_t s[3];
    cudaEvent_t event = new_event(cudaEventDisableTiming);
    for (int i = 0; i < 3; i++) {
        s[i] = new_stream(cudaStreamNonBlocking);
    }
    for (int i = 0; i < 3; i++) {
        if (i > 0) {
            assert_success(cudaStreamWaitEvent(s[i], event, 0));
        }
        launch(s[i], 10);
        assert_success(cudaEventRecord(event, s[i]));
        launch(s[i], 10);
    }
    assert_success(cudaEventSynchronize(event));
    assert_int_equal(gmd_sim_pending(s[0]), 1);
    assert_int_equal(gmd_sim_pending(s[1]), 1);
    assert_int_equal(gmd_sim_pending(s[2]), 1);
}

TEST_F(fresh_device, long_chains_of_waits_are_forced_without_recursion)
{
    use_schedule(GMD_SIM_LAZY);
    cudaStream_t s[2] = {new_stream(cudaStreamNonBlocking), new_stream(cudaStreamNonBlocking)};
    cudaEvent_t event = new_event(cudaEventDisableTiming);
    for (int i = 0; i < 20000; i++) {
        launch(s[i & 1], 1);
        assert_success(cudaEventRecord(event, s[i & 1]));
        assert_success(cudaStreamWaitEvent(s[!(i & 1)], event, 0));
    }
    assert_success(cudaDeviceSynchronize());
    assert_int_equal(gmd_sim_pending(s[0]) + gmd_sim_pending(s[1]), 0);
}

TEST_F(fresh_device, a_waiting_stream_starts_when_the_event_is_complete)
{
    cudaStream_t a = new_stream(cudaStreamNonBlocking), b = new_stream(cudaStreamNonBlocking);
    cudaEvent_t event = new_event(cudaEventDisableTiming);
    launch(a, 100);
    assert_success(cudaEventRecord(event, a));
    assert_success(cudaStreamWaitEvent(b, event, 0));
    launch(b, 50);
    gmd_sim_advance(149);
    assert_int_equal(cudaStreamQuery(b), cudaErrorNotReady);
    gmd_sim_advance(1);
    assert_success(cudaStreamQuery(b));
}

TEST_F(fresh_device, a_wait_keeps_the_record_that_it_saw)
{
    cudaStream_t a = new_stream(cudaStreamNonBlocking), b = new_stream(cudaStreamNonBlocking);
    cudaEvent_t event = new_event(cudaEventDisableTiming);
    launch(a, 100);
    assert_success(cudaEventRecord(event, a));
    assert_success(cudaStreamWaitEvent(b, event, 0));
    launch(a, 100);
    assert_success(cudaEventRecord(event, a));
    assert_success(cudaEventDestroy(event));
    gmd_sim_advance(100);
    assert_success(cudaStreamQuery(b));
}

TEST_F(fresh_device, the_default_stream_waits_for_blocking_streams)
{
    cudaStream_t a = new_stream(cudaStreamDefault);
    launch(a, 100);
    launch(NULL, 10);
    gmd_sim_advance(50);
    assert_true(gmd_sim_pending(NULL) > 0);
    gmd_sim_advance(60);
    assert_int_equal(gmd_sim_pending(NULL), 0);
}

TEST_F(fresh_device, blocking_streams_wait_for_the_default_stream)
{
    cudaStream_t a = new_stream(cudaStreamDefault);
    launch(cudaStreamLegacy, 100);
    launch(a, 10);
    gmd_sim_advance(50);
    assert_true(gmd_sim_pending(a) > 0);
    gmd_sim_advance(60);
    assert_int_equal(gmd_sim_pending(a), 0);
}

TEST_F(fresh_device, non_blocking_streams_ignore_the_default_stream)
{
    cudaStream_t a = new_stream(cudaStreamNonBlocking);
    launch(NULL, 100);
    launch(a, 10);
    gmd_sim_advance(10);
    assert_int_equal(gmd_sim_pending(a), 0);
    launch(a, 1000);
    assert_success(cudaStreamSynchronize(NULL));
    assert_int_equal(gmd_sim_pending(a), 1);
}

TEST_F(fresh_device, the_per_thread_stream_is_not_the_default_stream)
{
    launch(cudaStreamPerThread, 100);
    assert_int_equal(gmd_sim_pending(cudaStreamPerThread), 1);
    assert_int_equal(gmd_sim_pending(NULL), 0);
    assert_int_equal(device_state(0).stream_count, 0);
}

TEST_F(fresh_device, destroying_a_stream_lets_its_work_finish)
{
    cudaStream_t a = new_stream(cudaStreamNonBlocking);
    cudaEvent_t event = new_event(cudaEventDisableTiming);
    launch(a, 100);
    assert_success(cudaEventRecord(event, a));
    assert_success(cudaStreamDestroy(a));
    assert_int_equal(gmd_sim_now(), 0);
    assert_int_equal(cudaEventQuery(event), cudaErrorNotReady);
    gmd_sim_advance(100);
    assert_success(cudaEventQuery(event));
}

TEST_F(fresh_device, an_event_outlives_its_stream_and_the_streams_that_follow)
{
    cudaStream_t a = new_stream(cudaStreamNonBlocking);
    cudaEvent_t event = new_event(cudaEventDisableTiming);
    launch(a, 1);
    assert_success(cudaEventRecord(event, a));
    assert_success(cudaStreamSynchronize(a));
    assert_success(cudaStreamDestroy(a));
    launch(new_stream(cudaStreamNonBlocking), 100);
    assert_success(cudaEventQuery(event));
}

TEST_F(fresh_device, unusable_stream_handles_are_refused)
{
    cudaStream_t a = new_stream(cudaStreamDefault);
    assert_success(cudaStreamDestroy(a));
    new_stream(cudaStreamDefault);
    assert_int_equal(cudaStreamDestroy(a), cudaErrorInvalidResourceHandle);
    assert_int_equal(cudaStreamQuery(a), cudaErrorInvalidResourceHandle);
    assert_int_equal(cudaStreamQuery((cudaStream_t)(void *)&a), cudaErrorInvalidResourceHandle);
    assert_int_equal(cudaStreamDestroy(NULL), cudaErrorInvalidResourceHandle);
    assert_int_equal(gmd_sim_misuse_count(), 4);
}

TEST_F(fresh_device, later_streams_have_higher_handles)
{
    cudaStream_t last = NULL;
    for (int i = 0; i < 100; i++) {
        cudaStream_t stream = new_stream(cudaStreamDefault);
        assert_true((uintptr_t)stream > (uintptr_t)last);
        last = stream;
        if (i % 3) {
            assert_success(cudaStreamDestroy(stream));
        }
    }
}

TEST_F(fresh_device, a_stream_knows_its_flags_and_clamped_priority)
{
    cudaStream_t stream;
    int priority;
    unsigned flags;
    assert_success(cudaStreamCreateWithPriority(&stream, cudaStreamNonBlocking, -100));
    assert_success(cudaStreamGetPriority(stream, &priority));
    assert_success(cudaStreamGetFlags(stream, &flags));
    assert_int_equal(priority, -5);
    assert_int_equal(flags, cudaStreamNonBlocking);
    assert_int_equal(cudaStreamCreateWithFlags(&stream, 2), cudaErrorInvalidValue);
    assert_int_equal(cudaStreamCreate(NULL), cudaErrorInvalidValue);
}

TEST_F(fresh_device, a_kernel_on_unallocated_memory_is_misuse)
{
    uint64_t address = device_malloc_address(4096);
    const gmd_sim_access inside = {.address = address, .size = 4096};
    const gmd_sim_access beyond = {.address = address, .size = 4097, .is_write = true};
    assert_success(gmd_sim_launch(NULL, 1, &inside, 1));
    assert_int_equal(gmd_sim_misuse_count(), 0);
    assert_success(gmd_sim_launch(NULL, 1, &beyond, 1));
    assert_int_equal(gmd_sim_misuse_count(), 1);
    assert_int_equal(gmd_sim_call_count("kernel"), 2);
}

TEST_F(fresh_device, endless_work_saturates_the_clock)
{
    launch(NULL, UINT64_MAX);
    launch(NULL, UINT64_MAX);
    assert_success(cudaDeviceSynchronize());
    assert_int_equal(gmd_sim_now(), UINT64_MAX);
    gmd_sim_advance(5);
    assert_int_equal(gmd_sim_now(), UINT64_MAX);
}

static void use_reused_handles(void)
{
    gmd_sim_config config = device_config();
    config.device_count = 2;
    config.reuses_handles = true;
    assert_int_equal(gmd_sim_reset(&config), 0);
}

TEST_F(fresh_device, a_handle_comes_again_where_that_is_asked_for)
{
    use_reused_handles();
    cudaStream_t first = new_stream(0), second = new_stream(0);
    assert_success(cudaStreamDestroy(first));
    assert_success(cudaStreamDestroy(second));
    assert_ptr_equal(new_stream(0), second);
    assert_ptr_equal(new_stream(0), first);
}

TEST_F(fresh_device, a_handle_comes_again_on_its_device_only)
{
    use_reused_handles();
    cudaStream_t first = new_stream(0);
    assert_success(cudaStreamDestroy(first));
    assert_success(cudaSetDevice(1));
    assert_ptr_not_equal(new_stream(0), first);
}

TEST_F(fresh_device, no_handle_comes_again_otherwise)
{
    cudaStream_t first = new_stream(0);
    assert_success(cudaStreamDestroy(first));
    assert_ptr_not_equal(new_stream(0), first);
}

TEST_F(fresh_device, work_of_the_handle_s_earlier_stream_goes_on)
{
    use_reused_handles();
    cudaStream_t first = new_stream(cudaStreamNonBlocking);
    gmd_sim_point point;
    launch(first, 1000);
    assert_int_equal(gmd_sim_point_of(0, first, &point), 0);
    assert_success(cudaStreamDestroy(first));
    assert_success(cudaStreamSynchronize(new_stream(cudaStreamNonBlocking)));
    assert_false(gmd_sim_is_complete(point));
}
