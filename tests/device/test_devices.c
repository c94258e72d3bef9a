/* Several devices, contexts and the driver's view. */
#include "device_test.h"

static int eight_devices(void **state)
{
    (void)state;
    gmd_sim_config config = device_config();
    config.device_count = 8;
    return gmd_sim_reset(&config);
}

FIXTURE(eight_devices, eight_devices, NULL);

TEST_F(eight_devices, each_device_has_its_own_memory)
{
    for (int d = 0; d < 8; d++) {
        assert_success(cudaSetDevice(d));
        gmd_sim_range range;
        assert_int_equal(gmd_sim_find(device_malloc_address((size_t)(d + 1) << 21), &range), 0);
        assert_int_equal(range.device, d);
    }
    for (int d = 0; d < 8; d++) {
        assert_int_equal(device_state(d).physical_bytes, (uint64_t)(d + 1) << 21);
    }
    gmd_sim_device_state none;
    assert_int_equal(gmd_sim_device(8, &none), -1);
    assert_int_equal(gmd_sim_device(-1, &none), -1);
}

TEST_F(eight_devices, a_free_reaches_the_memorys_device_from_any_other)
{
    assert_success(cudaSetDevice(3));
    void *pointer = device_malloc(2 * MIB);
    launch(NULL, 100);
    assert_success(cudaSetDevice(5));
    launch(NULL, 100000);
    assert_success(cudaFree(pointer));
    assert_int_equal(device_state(3).allocation_count, 0);
    assert_int_equal(gmd_sim_now(), 100);
    int current;
    assert_success(cudaGetDevice(&current));
    assert_int_equal(current, 5);
}

TEST_F(eight_devices, devices_out_of_range_are_refused)
{
    assert_int_equal(cudaSetDevice(8), cudaErrorInvalidDevice);
    assert_int_equal(cudaSetDevice(-1), cudaErrorInvalidDevice);
    int value;
    assert_int_equal(cudaDeviceGetAttribute(&value, cudaDevAttrWarpSize, 8),
                     cudaErrorInvalidDevice);
    assert_int_equal(cudaDeviceGetAttribute(&value, (enum cudaDeviceAttr)9999, 0),
                     cudaErrorInvalidValue);
    assert_success(cudaDeviceGetAttribute(&value, cudaDevAttrWarpSize, 7));
    assert_int_equal(value, 32);
}

TEST_F(eight_devices, an_event_belongs_to_the_device_of_its_stream)
{
    cudaEvent_t event = new_event(0);
    assert_success(cudaSetDevice(1));
    cudaStream_t stream = new_stream(0);
    assert_int_equal(cudaEventRecord(event, stream), cudaErrorInvalidResourceHandle);
    assert_int_equal(cudaEventRecord(event, NULL), cudaErrorInvalidResourceHandle);
}

TEST_F(eight_devices, streams_wait_across_devices)
{
    cudaEvent_t event = new_event(cudaEventDisableTiming);
    launch(NULL, 100);
    assert_success(cudaEventRecord(event, NULL));
    assert_success(cudaSetDevice(1));
    assert_success(cudaStreamWaitEvent(NULL, event, 0));
    launch(NULL, 10);
    assert_success(cudaDeviceSynchronize());
    assert_int_equal(gmd_sim_now(), 110);
}

TEST_F(eight_devices, synchronising_a_device_leaves_the_others)
{
    launch(NULL, 1000);
    assert_success(cudaSetDevice(1));
    launch(NULL, 10);
    assert_success(cudaDeviceSynchronize());
    assert_success(cudaSetDevice(0));
    assert_int_equal(gmd_sim_pending(NULL), 1);
}

TEST_F(eight_devices, a_device_reset_takes_only_its_own)
{
    cudaStream_t stream = new_stream(0);
    cudaEvent_t event = new_event(0);
    device_malloc(MIB);
    launch(stream, 100);
    assert_success(cudaSetDevice(1));
    void *kept = device_malloc(MIB);
    assert_success(cudaSetDevice(0));
    assert_success(cudaDeviceReset());
    gmd_sim_device_state zero = device_state(0);
    assert_int_equal(zero.allocation_count + zero.stream_count + zero.event_count, 0);
    assert_int_equal(cudaStreamQuery(stream), cudaErrorInvalidResourceHandle);
    assert_int_equal(cudaEventQuery(event), cudaErrorInvalidResourceHandle);
    assert_success(cudaFree(kept));
}

TEST_F(eight_devices, the_driver_shares_the_runtimes_memory_and_context)
{
    CUdeviceptr pointer;
    assert_int_equal(cuInit(0), CUDA_SUCCESS);
    assert_int_equal(cuMemAlloc_v2(&pointer, MIB), CUDA_ERROR_INVALID_CONTEXT);
    assert_success(cudaSetDevice(2));
    assert_int_equal(cuMemAlloc_v2(&pointer, MIB), CUDA_SUCCESS);
    assert_int_equal(device_state(2).allocation_count, 1);
    assert_success(cudaFree((void *)(uintptr_t)pointer));
    CUcontext current, retained;
    assert_int_equal(cuCtxGetCurrent(&current), CUDA_SUCCESS);
    assert_int_equal(cuDevicePrimaryCtxRetain(&retained, 2), CUDA_SUCCESS);
    assert_ptr_equal(current, retained);
}

TEST_F(eight_devices, a_context_makes_its_device_current)
{
    CUcontext context;
    unsigned flags;
    int active, device;
    assert_int_equal(cuInit(0), CUDA_SUCCESS);
    assert_int_equal(cuDevicePrimaryCtxGetState(4, &flags, &active), CUDA_SUCCESS);
    assert_false(active);
    assert_int_equal(cuDevicePrimaryCtxRetain(&context, 4), CUDA_SUCCESS);
    assert_int_equal(cuCtxSetCurrent(context), CUDA_SUCCESS);
    assert_success(cudaGetDevice(&device));
    assert_int_equal(device, 4);
    assert_int_equal(cuDevicePrimaryCtxRelease_v2(4), CUDA_SUCCESS);
    assert_int_equal(cuDevicePrimaryCtxRelease_v2(4), CUDA_ERROR_INVALID_CONTEXT);
    assert_int_equal(cuCtxSetCurrent((CUcontext)(void *)&context), CUDA_ERROR_INVALID_CONTEXT);
}

TEST_F(eight_devices, the_driver_describes_the_devices)
{
    int count;
    char name[8];
    size_t bytes;
    assert_int_equal(cuInit(0), CUDA_SUCCESS);
    assert_int_equal(cuDeviceGetCount(&count), CUDA_SUCCESS);
    assert_int_equal(count, 8);
    assert_int_equal(cuDeviceTotalMem_v2(&bytes, 7), CUDA_SUCCESS);
    assert_int_equal(bytes, GIB);
    assert_int_equal(cuDeviceGetName(name, sizeof name, 0), CUDA_SUCCESS);
    assert_string_equal(name, "gmd sim");
    assert_int_equal(cuDeviceGet(&count, 8), CUDA_ERROR_INVALID_DEVICE);
}

TEST_F(eight_devices, devices_are_not_linked)
{
    int value = 7;
    assert_success(cudaDeviceGetP2PAttribute(&value, cudaDevP2PAttrPerformanceRank, 0, 1));
    assert_int_equal(value, 0);
    assert_int_equal(cudaDeviceGetP2PAttribute(&value, cudaDevP2PAttrPerformanceRank, 1, 1),
                     cudaErrorInvalidDevice);
    assert_int_equal(cudaDeviceGetP2PAttribute(&value, (enum cudaDeviceP2PAttr)99, 0, 1),
                     cudaErrorInvalidValue);
    assert_int_equal(cudaDeviceGetP2PAttribute(NULL, cudaDevP2PAttrPerformanceRank, 0, 1),
                     cudaErrorInvalidValue);
}

TEST_F(eight_devices, contexts_are_pushed_and_popped_to_an_end)
{
    CUcontext first, second, popped;
    assert_int_equal(cuDevicePrimaryCtxRetain(&first, 0), CUDA_SUCCESS);
    assert_int_equal(cuDevicePrimaryCtxRetain(&second, 1), CUDA_SUCCESS);
    assert_int_equal(cuCtxSetCurrent(first), CUDA_SUCCESS);
    int pushed = 0;
    while (pushed < 1000 && cuCtxPushCurrent_v2(second) == CUDA_SUCCESS) {
        pushed++;
    }
    assert_true(pushed > 0 && pushed < 1000);
    assert_int_equal(cuCtxPushCurrent_v2(second), CUDA_ERROR_OUT_OF_MEMORY);
    for (int i = 0; i < pushed; i++) {
        assert_int_equal(cuCtxPopCurrent_v2(&popped), CUDA_SUCCESS);
        assert_ptr_equal(popped, second);
    }
    assert_int_equal(cuCtxGetCurrent(&popped), CUDA_SUCCESS);
    assert_ptr_equal(popped, first);
}

TEST_F(eight_devices, a_context_that_is_none_is_refused)
{
    CUcontext none = (CUcontext)(uintptr_t)1;
    assert_int_equal(cuCtxSetCurrent(none), CUDA_ERROR_INVALID_CONTEXT);
    assert_int_equal(cuCtxPushCurrent_v2(none), CUDA_ERROR_INVALID_CONTEXT);
    assert_int_equal(gmd_sim_misuse_count(), 2);
}

TEST_F(eight_devices, no_stream_of_a_device_that_is_not_there_has_a_point)
{
    gmd_sim_point where;
    assert_int_equal(gmd_sim_point_of(8, NULL, &where), -1);
    assert_int_equal(gmd_sim_point_of(-1, NULL, &where), -1);
}
