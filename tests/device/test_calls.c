/* What every call passes: last error, counting, faults, the observer. */
#include "device_test.h"

#include <string.h>

TEST_F(fresh_device, a_failing_call_leaves_its_error_until_it_is_fetched)
{
    assert_int_equal(cudaSetDevice(99), cudaErrorInvalidDevice);
    device_malloc(512);
    assert_int_equal(cudaPeekAtLastError(), cudaErrorInvalidDevice);
    assert_int_equal(cudaGetLastError(), cudaErrorInvalidDevice);
    assert_success(cudaGetLastError());
}

TEST_F(fresh_device, not_ready_is_an_answer_and_leaves_no_error)
{
    launch(NULL, 100);
    assert_int_equal(cudaStreamQuery(NULL), cudaErrorNotReady);
    assert_success(cudaGetLastError());
}

TEST_F(fresh_device, driver_calls_leave_the_last_error_alone)
{
    assert_success(cudaFree(NULL));
    assert_int_equal(cuMemFree_v2(12345), CUDA_ERROR_INVALID_VALUE);
    assert_success(cudaGetLastError());
}

TEST_F(fresh_device, errors_have_names_and_texts)
{
    assert_string_equal(cudaGetErrorName(cudaErrorMemoryAllocation), "cudaErrorMemoryAllocation");
    assert_string_equal(cudaGetErrorString(cudaErrorMemoryAllocation), "out of memory");
    assert_string_equal(cudaGetErrorName((cudaError_t)12345), "unrecognized error code");
    const char *text;
    assert_int_equal(cuGetErrorName(CUDA_ERROR_OUT_OF_MEMORY, &text), CUDA_SUCCESS);
    assert_string_equal(text, "CUDA_ERROR_OUT_OF_MEMORY");
    assert_int_equal(cuGetErrorString((CUresult)12345, &text), CUDA_ERROR_INVALID_VALUE);
}

TEST_F(fresh_device, calls_are_counted_by_name)
{
    device_malloc(512);
    device_malloc(512);
    assert_int_equal(gmd_sim_call_count("cudaMalloc"), 2);
    assert_int_equal(gmd_sim_call_count("cudaFree"), 0);
    assert_int_equal(gmd_sim_call_count("no such function"), 0);
}

TEST_F(fresh_device, a_fault_answers_the_nth_call_once)
{
    device_malloc(512);
    assert_int_equal(gmd_sim_fault("cudaMalloc", 2, false, cudaErrorMemoryAllocation), 0);
    void *pointer = NULL;
    assert_success(cudaMalloc(&pointer, 512));
    assert_int_equal(cudaMalloc(&pointer, 512), cudaErrorMemoryAllocation);
    assert_int_equal(cudaGetLastError(), cudaErrorMemoryAllocation);
    assert_success(cudaMalloc(&pointer, 512));
    assert_int_equal(device_state(0).allocation_count, 3);
}

TEST_F(fresh_device, a_fault_that_has_answered_makes_room_for_another)
{
    for (int i = 0; i < 100; i++) {
        void *pointer;
        assert_int_equal(gmd_sim_fault("cudaMalloc", 1, false, cudaErrorUnknown), 0);
        assert_int_equal(cudaMalloc(&pointer, 1), cudaErrorUnknown);
    }
}

TEST_F(fresh_device, a_fault_can_answer_every_later_call)
{
    assert_int_equal(gmd_sim_fault("cudaEventCreateWithFlags", 2, true, cudaErrorUnknown), 0);
    cudaEvent_t event = new_event(0);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(cudaEventCreateWithFlags(&event, 0), cudaErrorUnknown);
    }
    gmd_sim_clear_faults();
    new_event(0);
}

TEST_F(fresh_device, a_faulted_call_does_nothing)
{
    void *pointer = device_malloc(512);
    assert_int_equal(gmd_sim_fault("cudaFree", 1, false, cudaErrorInvalidValue), 0);
    assert_int_equal(cudaFree(pointer), cudaErrorInvalidValue);
    assert_int_equal(device_state(0).allocation_count, 1);
    assert_success(cudaFree(pointer));
}

TEST_F(fresh_device, two_faults_wait_for_their_own_calls)
{
    assert_int_equal(gmd_sim_fault("cudaMalloc", 1, false, cudaErrorMemoryAllocation), 0);
    assert_int_equal(gmd_sim_fault("cudaMalloc", 3, false, cudaErrorUnknown), 0);
    void *pointer;
    assert_int_equal(cudaMalloc(&pointer, 1), cudaErrorMemoryAllocation);
    assert_success(cudaMalloc(&pointer, 1));
    assert_int_equal(cudaMalloc(&pointer, 1), cudaErrorUnknown);
}

TEST_F(fresh_device, kernels_can_be_made_to_fail)
{
    assert_int_equal(gmd_sim_fault("kernel", 1, false, cudaErrorLaunchFailure), 0);
    assert_int_equal(gmd_sim_launch(NULL, 1, NULL, 0), cudaErrorLaunchFailure);
    assert_int_equal(gmd_sim_pending(NULL), 0);
    assert_int_equal(cudaGetLastError(), cudaErrorLaunchFailure);
}

TEST_F(fresh_device, impossible_faults_are_refused)
{
    assert_int_equal(gmd_sim_fault("cudaMallok", 1, false, 2), -1);
    assert_int_equal(gmd_sim_fault("cudaMalloc", 0, false, 2), -1);
    assert_int_equal(gmd_sim_fault("cudaMalloc", 1, false, 0), -1);
    for (int i = 0; i < 64; i++) {
        assert_int_equal(gmd_sim_fault("cudaMalloc", 1, false, 2), 0);
    }
    assert_int_equal(gmd_sim_fault("cudaMalloc", 1, false, 2), -1);
}

typedef struct seen {
    gmd_sim_call calls[8];
    int count;
} seen;

static void keep(void *context, const gmd_sim_call *call)
{
    seen *s = context;
    s->calls[s->count++ % 8] = *call;
    gmd_sim_device_state state;
    gmd_sim_device(0, &state); /* allowed, and must not deadlock */
}

TEST_F(fresh_device, the_observer_sees_each_call)
{
    seen s = {.count = 0};
    gmd_sim_observe(keep, &s);
    void *pointer = device_malloc(4096);
    assert_success(cudaFree(pointer));
    gmd_sim_observe(NULL, NULL);
    device_malloc(1);
    assert_int_equal(s.count, 2);
    assert_string_equal(s.calls[0].function, "cudaMalloc");
    assert_int_equal(s.calls[0].kind, GMD_SIM_CALL_MALLOC);
    assert_int_equal(s.calls[0].address, (uintptr_t)pointer);
    assert_int_equal(s.calls[0].size, 4096);
    assert_int_equal(s.calls[1].kind, GMD_SIM_CALL_FREE);
    assert_int_equal(s.calls[1].size, 4096);
    assert_int_equal(s.calls[1].index, s.calls[0].index + 1);
}

TEST_F(fresh_device, the_observer_is_told_of_misuse_and_faults)
{
    seen s = {.count = 0};
    gmd_sim_observe(keep, &s);
    assert_int_equal(gmd_sim_fault("cudaFree", 1, false, cudaErrorUnknown), 0);
    assert_int_equal(cudaFree(&s), cudaErrorUnknown);
    assert_int_equal(cudaFree(&s), cudaErrorInvalidValue);
    assert_true(s.calls[0].failed_by_fault);
    assert_null(s.calls[0].misuse);
    assert_false(s.calls[1].failed_by_fault);
    assert_non_null(strstr(s.calls[1].misuse, "not allocated"));
    assert_int_equal(s.calls[1].result, cudaErrorInvalidValue);
}

TEST_F(fresh_device, the_harness_calls_take_no_fault_and_are_not_counted)
{
    seen s = {.count = 0};
    void *pointer = NULL;
    gmd_sim_observe(keep, &s);
    assert_int_equal(gmd_sim_fault("cudaMalloc", 1, false, cudaErrorUnknown), 0);
    gmd_sim_harness(true);
    cudaError_t own = cudaMalloc(&pointer, 512);
    gmd_sim_harness(false);
    assert_success(own);
    assert_int_equal(gmd_sim_call_count("cudaMalloc"), 0);
    assert_int_equal(s.count, 0);
    assert_int_equal(cudaMalloc(&pointer, 512), cudaErrorUnknown);
}

TEST_F(fresh_device, the_threads_state_is_seen_without_a_trace)
{
    assert_int_equal(cudaSetDevice(99), cudaErrorInvalidDevice);
    gmd_sim_thread_state seen_state;
    gmd_sim_thread(&seen_state);
    assert_int_equal(seen_state.device, 0);
    assert_int_equal(seen_state.last_error, cudaErrorInvalidDevice);
    assert_int_equal(cudaGetLastError(), cudaErrorInvalidDevice);
}

TEST_F(fresh_device, a_driver_function_is_found_by_its_name_and_version)
{
    enum cudaDriverEntryPointQueryResult found;
    void *function = NULL;
    assert_success(cudaGetDriverEntryPoint("cuMemAlloc", &function, cudaEnableDefault, &found));
    assert_int_equal(found, cudaDriverEntryPointSuccess);
    assert_non_null(function);
    assert_success(cudaGetDriverEntryPoint("cuNoSuch", &function, cudaEnableDefault, &found));
    assert_int_equal(found, cudaDriverEntryPointSymbolNotFound);
    assert_null(function);
    assert_success(
        cudaGetDriverEntryPointByVersion("cuMemMap", &function, 9000, cudaEnableDefault, &found));
    assert_int_equal(found, cudaDriverEntryPointVersionNotSufficent);
    assert_int_equal(cudaGetDriverEntryPoint("cuMemAlloc", &function, 1u << 20, &found),
                     cudaErrorInvalidValue);
}
