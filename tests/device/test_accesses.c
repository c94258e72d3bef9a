/* Queued work that runs on memory which is gone: the device is lost, as a real one is. */
#include "device_test.h"

static void use_lenient_device(void)
{
    gmd_sim_config config = device_config();
    config.device_count = 2;
    config.free_is_lenient = true;
    device_reset(&config);
}

static void launch_on(void *const *pointers, size_t count)
{
    gmd_sim_access accesses[8] = {{0}};
    for (size_t i = 0; i < count; i++) {
        accesses[i] = (gmd_sim_access){.address = (uintptr_t)pointers[i], .size = 4096};
    }
    assert_success(gmd_sim_launch(NULL, 1000, accesses, count));
}

/* A kernel is queued on memory that is then freed under it. */
static void break_device(void)
{
    void *pointer = device_malloc(4096);
    launch_on(&pointer, 1);
    assert_success(cudaFree(pointer));
}

TEST_F(fresh_device, work_on_live_memory_breaks_nothing)
{
    void *pointers[8];
    for (size_t i = 0; i < 8; i++) {
        pointers[i] = device_malloc(4096);
    }
    for (size_t count = 0; count <= 8; count++) {
        launch_on(pointers, count);
    }
    assert_success(cudaDeviceSynchronize());
    for (size_t i = 0; i < 8; i++) {
        assert_success(cudaFree(pointers[i]));
    }
    assert_int_equal(gmd_sim_misuse_count(), 0);
}

TEST_F(fresh_device, a_kernel_on_freed_memory_loses_the_device)
{
    use_lenient_device();
    break_device();
    void *pointer;
    assert_int_equal(cudaDeviceSynchronize(), cudaErrorIllegalAddress);
    assert_int_equal(cudaMalloc(&pointer, 1), cudaErrorIllegalAddress);
    assert_int_equal(cudaStreamQuery(NULL), cudaErrorIllegalAddress);
}

TEST_F(fresh_device, each_of_many_ranges_counts)
{
    for (size_t bad = 0; bad < 8; bad++) {
        use_lenient_device();
        void *pointers[8];
        for (size_t i = 0; i < 8; i++) {
            pointers[i] = device_malloc(4096);
        }
        launch_on(pointers, 8);
        assert_success(cudaFree(pointers[bad]));
        assert_int_equal(cudaDeviceSynchronize(), cudaErrorIllegalAddress);
    }
}

TEST_F(fresh_device, the_call_that_notices_is_told_as_misuse_once)
{
    use_lenient_device();
    break_device();
    assert_int_equal(gmd_sim_misuse_count(), 0);
    assert_int_equal(cudaDeviceSynchronize(), cudaErrorIllegalAddress);
    assert_int_equal(gmd_sim_misuse_count(), 1);
    assert_int_equal(cudaDeviceSynchronize(), cudaErrorIllegalAddress);
    assert_int_equal(gmd_sim_misuse_count(), 1);
}

TEST_F(fresh_device, each_failing_call_on_a_lost_device_leaves_its_error_once)
{
    use_lenient_device();
    break_device();
    assert_int_equal(cudaDeviceSynchronize(), cudaErrorIllegalAddress);
    assert_int_equal(cudaGetLastError(), cudaErrorIllegalAddress);
    assert_int_equal(cudaGetLastError(), cudaSuccess); /* as on an H200 */
    assert_int_equal(cudaDeviceSynchronize(), cudaErrorIllegalAddress);
    assert_int_equal(cudaPeekAtLastError(), cudaErrorIllegalAddress);
}

TEST_F(fresh_device, other_devices_go_on)
{
    use_lenient_device();
    break_device();
    assert_int_equal(cudaDeviceSynchronize(), cudaErrorIllegalAddress);
    assert_success(cudaSetDevice(1));
    assert_success(cudaFree(device_malloc(4096)));
}

TEST_F(fresh_device, a_reset_of_the_device_makes_it_usable)
{
    use_lenient_device();
    break_device();
    assert_int_equal(cudaDeviceSynchronize(), cudaErrorIllegalAddress);
    assert_success(cudaDeviceReset());
    cudaGetLastError();
    assert_success(cudaFree(device_malloc(4096)));
}

TEST_F(fresh_device, a_memset_of_freed_memory_loses_the_device)
{
    use_lenient_device();
    void *pointer = device_malloc(4096);
    assert_success(cudaMemsetAsync(pointer, 0, 4096, NULL));
    assert_success(cudaFree(pointer));
    assert_int_equal(cudaDeviceSynchronize(), cudaErrorIllegalAddress);
}

TEST_F(fresh_device, work_that_time_completes_is_noticed_by_the_next_call)
{
    use_lenient_device();
    break_device();
    gmd_sim_advance(10000);
    void *pointer;
    assert_int_equal(cudaMalloc(&pointer, 1), cudaErrorIllegalAddress);
    assert_int_equal(gmd_sim_misuse_count(), 1);
}

TEST_F(fresh_device, work_that_is_dropped_touches_nothing)
{
    use_lenient_device();
    break_device();
    assert_success(cudaDeviceReset());
    assert_success(cudaDeviceSynchronize());
}
