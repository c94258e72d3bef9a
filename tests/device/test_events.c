/* Events: complete or not, and when. */
#include "device_test.h"

TEST_F(fresh_device, an_event_never_recorded_is_complete)
{
    cudaEvent_t event = new_event(cudaEventDefault);
    cudaStream_t stream = new_stream(cudaStreamDefault);
    assert_success(cudaEventQuery(event));
    assert_success(cudaEventSynchronize(event));
    assert_success(cudaStreamWaitEvent(stream, event, 0));
    assert_int_equal(gmd_sim_pending(stream), 0);
}

TEST_F(fresh_device, an_event_on_an_idle_stream_costs_no_entry)
{
    cudaEvent_t event = new_event(cudaEventDefault);
    assert_success(cudaEventRecord(event, NULL));
    assert_int_equal(gmd_sim_pending(NULL), 0);
    assert_success(cudaEventQuery(event));
}

TEST_F(fresh_device, an_event_is_complete_when_the_work_before_it_is)
{
    cudaEvent_t event = new_event(cudaEventDisableTiming);
    launch(NULL, 100);
    assert_success(cudaEventRecord(event, NULL));
    launch(NULL, 100);
    assert_int_equal(cudaEventQuery(event), cudaErrorNotReady);
    gmd_sim_advance(100);
    assert_success(cudaEventQuery(event));
    assert_int_equal(cudaStreamQuery(NULL), cudaErrorNotReady);
}

TEST_F(fresh_device, synchronising_with_an_event_leaves_later_work_queued)
{
    cudaEvent_t event = new_event(cudaEventDisableTiming);
    launch(NULL, 100);
    assert_success(cudaEventRecord(event, NULL));
    launch(NULL, 100);
    assert_success(cudaEventSynchronize(event));
    assert_int_equal(gmd_sim_now(), 100);
    assert_int_equal(gmd_sim_pending(NULL), 1);
}

TEST_F(fresh_device, asking_through_the_control_api_leaves_no_error)
{
    cudaEvent_t event = new_event(cudaEventDisableTiming);
    launch(NULL, 100);
    assert_success(cudaEventRecord(event, NULL));
    assert_false(gmd_sim_event_complete(event));
    assert_success(cudaPeekAtLastError());
    assert_int_equal(gmd_sim_call_count("cudaEventQuery"), 0);
}

static CUcontext current_context(void)
{
    CUcontext context = NULL;
    assert_int_equal(cuCtxGetCurrent(&context), CUDA_SUCCESS);
    return context;
}

TEST_F(fresh_device, a_contexts_event_is_complete_when_the_work_of_all_streams_is)
{
    cudaEvent_t event = new_event(cudaEventDisableTiming);
    launch(new_stream(cudaStreamNonBlocking), 300);
    launch(new_stream(cudaStreamNonBlocking), 100);
    assert_int_equal(cuCtxRecordEvent(current_context(), event), CUDA_SUCCESS);
    gmd_sim_advance(200);
    assert_int_equal(cudaEventQuery(event), cudaErrorNotReady);
    gmd_sim_advance(100);
    assert_success(cudaEventQuery(event));
}

TEST_F(fresh_device, a_contexts_event_on_an_idle_device_is_complete)
{
    cudaEvent_t event = new_event(cudaEventDefault);
    assert_int_equal(cuCtxRecordEvent(current_context(), event), CUDA_SUCCESS);
    assert_success(cudaEventQuery(event));
    launch(NULL, 100);
    assert_success(cudaEventQuery(event));
}

TEST_F(fresh_device, a_contexts_event_stops_captures_and_is_refused)
{
    cudaGraph_t graph = NULL;
    cudaEvent_t event = new_event(cudaEventDisableTiming);
    cudaStream_t stream = new_stream(cudaStreamNonBlocking);
    assert_success(cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed));
    assert_int_equal(cuCtxRecordEvent(current_context(), event),
                     CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    assert_int_equal(cudaStreamEndCapture(stream, &graph), cudaErrorStreamCaptureInvalidated);
    assert_int_equal(cuCtxRecordEvent(current_context(), NULL), CUDA_ERROR_INVALID_HANDLE);
}

TEST_F(fresh_device, timing_events_measure_the_work_between_them)
{
    cudaEvent_t start = new_event(cudaEventDefault), end = new_event(cudaEventDefault);
    launch(NULL, 1000000);
    assert_success(cudaEventRecord(start, NULL));
    launch(NULL, 2500000);
    assert_success(cudaEventRecord(end, NULL));
    float ms = 0;
    assert_int_equal(cudaEventElapsedTime(&ms, start, end), cudaErrorNotReady);
    assert_success(cudaDeviceSynchronize());
    assert_success(cudaEventElapsedTime(&ms, start, end));
    assert_float_equal(ms, 2.5, 0.0001);
}

TEST_F(fresh_device, a_later_record_is_the_one_that_is_timed)
{
    cudaStream_t idle = new_stream(cudaStreamNonBlocking);
    cudaEvent_t start = new_event(cudaEventDefault), end = new_event(cudaEventDefault);
    assert_success(cudaEventRecord(start, idle));
    launch(NULL, 1000000);
    assert_success(cudaEventRecord(end, NULL));
    assert_success(cudaEventRecord(end, idle));
    gmd_sim_advance(2000000);
    float ms = -1;
    assert_success(cudaEventElapsedTime(&ms, start, end));
    assert_float_equal(ms, 0, 0.0001);
}

TEST_F(fresh_device, events_without_a_time_cannot_be_measured)
{
    cudaEvent_t timed = new_event(cudaEventDefault);
    cudaEvent_t untimed = new_event(cudaEventDisableTiming);
    float ms;
    assert_int_equal(cudaEventElapsedTime(&ms, timed, timed), cudaErrorInvalidResourceHandle);
    assert_success(cudaEventRecord(timed, NULL));
    assert_success(cudaEventRecord(untimed, NULL));
    assert_int_equal(cudaEventElapsedTime(&ms, timed, untimed), cudaErrorInvalidResourceHandle);
    assert_success(cudaEventElapsedTime(&ms, timed, timed));
}

TEST_F(fresh_device, an_event_may_be_destroyed_while_it_is_pending)
{
    cudaEvent_t event = new_event(cudaEventDefault);
    launch(NULL, 100);
    assert_success(cudaEventRecord(event, NULL));
    assert_success(cudaEventDestroy(event));
    cudaEvent_t next = new_event(cudaEventDefault); /* takes the same slot */
    gmd_sim_advance(100);
    assert_success(cudaEventQuery(next));
    assert_int_equal(device_state(0).event_count, 1);
}

TEST_F(fresh_device, unusable_event_handles_are_refused)
{
    cudaEvent_t event = new_event(cudaEventDefault);
    assert_success(cudaEventDestroy(event));
    new_event(cudaEventDefault);
    assert_int_equal(cudaEventQuery(event), cudaErrorInvalidResourceHandle);
    assert_int_equal(cudaEventRecord(event, NULL), cudaErrorInvalidResourceHandle);
    assert_int_equal(cudaEventDestroy(event), cudaErrorInvalidResourceHandle);
    assert_int_equal(cudaEventSynchronize(NULL), cudaErrorInvalidResourceHandle);
    assert_int_equal(cudaStreamWaitEvent(NULL, (cudaEvent_t)(void *)&event, 0),
                     cudaErrorInvalidResourceHandle);
    assert_int_equal(gmd_sim_misuse_count(), 5);
}

TEST_F(fresh_device, contradictory_flags_are_refused)
{
    cudaEvent_t event;
    assert_int_equal(cudaEventCreateWithFlags(&event, 8), cudaErrorInvalidValue);
    assert_int_equal(cudaEventCreateWithFlags(&event, cudaEventInterprocess),
                     cudaErrorInvalidValue);
    assert_success(
        cudaEventCreateWithFlags(&event, cudaEventInterprocess | cudaEventDisableTiming));
}

TEST_F(fresh_device, many_events_live_at_once)
{
    enum { COUNT = 5000 };
    static cudaEvent_t events[COUNT];
    for (int i = 0; i < COUNT; i++) {
        events[i] = new_event(cudaEventDisableTiming);
    }
    assert_int_equal(device_state(0).event_count, COUNT);
    for (int i = 0; i < COUNT; i++) {
        assert_success(cudaEventDestroy(events[i]));
    }
    assert_int_equal(device_state(0).event_count, 0);
}

TEST_F(fresh_device, an_event_s_handle_comes_again_where_that_is_asked_for)
{
    gmd_sim_config config = device_config();
    config.reuses_handles = true;
    assert_int_equal(gmd_sim_reset(&config), 0);
    cudaEvent_t first = new_event(0), second = new_event(0);
    assert_success(cudaEventDestroy(first));
    assert_success(cudaEventDestroy(second));
    assert_ptr_equal(new_event(0), second);
    assert_ptr_equal(new_event(0), first);
}

TEST_F(fresh_device, an_event_with_the_handle_of_another_is_as_new)
{
    gmd_sim_config config = device_config();
    config.reuses_handles = true;
    assert_int_equal(gmd_sim_reset(&config), 0);
    cudaStream_t stream = new_stream(cudaStreamNonBlocking);
    cudaEvent_t first = new_event(0);
    launch(stream, 1000);
    assert_success(cudaEventRecord(first, stream));
    assert_success(cudaEventDestroy(first));
    assert_int_equal(cudaEventQuery(new_event(0)), cudaSuccess);
}
