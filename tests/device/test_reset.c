/* After a reset nothing of the earlier device is left. */
#include "device_test.h"

#include <stdlib.h>

static void reset_again(void)
{
    gmd_sim_config config = device_config();
    device_reset(&config);
}

TEST_F(fresh_device, memory_is_all_free)
{
    device_malloc(500 * MIB);
    device_malloc(512);
    reset_again();
    gmd_sim_device_state now = device_state(0);
    assert_int_equal(now.physical_bytes + now.allocated_bytes + now.allocation_count, 0);
    device_malloc(GIB);
}

TEST_F(fresh_device, the_same_requests_get_the_same_addresses)
{
    uint64_t large = device_malloc_address(2 * MIB), small = device_malloc_address(512);
    reset_again();
    assert_int_equal(device_malloc_address(2 * MIB), large);
    assert_int_equal(device_malloc_address(512), small);
}

TEST_F(fresh_device, handles_from_before_are_refused)
{
    cudaStream_t stream = new_stream(0);
    cudaEvent_t event = new_event(0);
    reset_again();
    cudaStream_t new_one = new_stream(0);
    cudaEvent_t new_event_handle = new_event(0);
    assert_int_equal(cudaStreamQuery(stream), cudaErrorInvalidResourceHandle);
    assert_int_equal(cudaEventQuery(event), cudaErrorInvalidResourceHandle);
    assert_success(cudaStreamQuery(new_one));
    assert_success(cudaEventQuery(new_event_handle));
}

TEST_F(fresh_device, queued_work_is_gone_without_effect)
{
    launch(NULL, 100);
    launch(new_stream(0), 100);
    reset_again();
    assert_success(cudaStreamQuery(NULL));
    assert_success(cudaDeviceSynchronize());
    assert_int_equal(gmd_sim_now(), 0);
}

TEST_F(fresh_device, destroyed_streams_with_work_are_gone_too)
{
    cudaStream_t stream = new_stream(0);
    launch(stream, 100);
    launch(cudaStreamPerThread, 100);
    assert_success(cudaStreamDestroy(stream));
    reset_again();
    for (int i = 0; i < 8; i++) {
        assert_success(cudaStreamQuery(new_stream(0)));
    }
    assert_success(cudaStreamQuery(cudaStreamPerThread));
}

TEST_F(fresh_device, errors_counters_and_faults_are_gone)
{
    assert_int_equal(cudaSetDevice(9), cudaErrorInvalidDevice);
    assert_int_equal(gmd_sim_fault("cudaMalloc", 1, true, 2), 0);
    reset_again();
    assert_success(cudaPeekAtLastError());
    assert_int_equal(gmd_sim_misuse_count(), 0);
    assert_int_equal(gmd_sim_call_count("cudaSetDevice"), 0);
    device_malloc(512);
}

TEST_F(fresh_device, the_current_device_is_the_first_again)
{
    gmd_sim_config config = device_config();
    config.device_count = 2;
    device_reset(&config);
    assert_success(cudaSetDevice(1));
    reset_again();
    int device;
    assert_success(cudaGetDevice(&device));
    assert_int_equal(device, 0);
}

TEST_F(fresh_device, impossible_configurations_change_nothing)
{
    device_malloc(512);
    const gmd_sim_config good = device_config();
    gmd_sim_config bad[8];
    for (int i = 0; i < 8; i++) {
        bad[i] = good;
    }
    bad[0].device_count = 0;
    bad[1].device_count = GMD_SIM_DEVICE_MAX + 1;
    bad[2].capacity_bytes = PAGE - 1;
    bad[3].capacity_bytes = ((uint64_t)16 << 40) + 1;
    bad[4].struct_size = 8;
    bad[5].placement = (gmd_sim_placement)77;
    bad[6].recorded_count = 1;
    bad[7].device_count = 16;
    bad[7].capacity_bytes = (uint64_t)2 << 40; /* together beyond the address space */
    for (int i = 0; i < 8; i++) {
        assert_int_equal(gmd_sim_reset(&bad[i]), -1);
    }
    assert_int_equal(gmd_sim_reset(NULL), -1);
    assert_int_equal(device_state(0).allocation_count, 1);
}

TEST_F(fresh_device, many_resets_leave_nothing_behind)
{
    gmd_sim_config config = device_config();
    config.backed = true;
    for (int i = 0; i < 500; i++) {
        device_reset(&config);
        cudaStream_t stream = new_stream(0);
        void *small = device_malloc(512), *host;
        device_malloc(3 * MIB);
        assert_success(cudaMallocHost(&host, 100));
        assert_success(
            cudaMemcpyAsync(small, &config, sizeof config, cudaMemcpyHostToDevice, stream));
        launch(stream, 100);
    }
}

/* What the environment says of the first device, for programs that set nothing themselves. */
TEST_F(fresh_device, a_number_in_the_environment_that_is_none_is_not_used)
{
    static const char *const numbers[] = {"many", "", "-1", "12x", "99999999999999999999999", "1"};
    gmd_sim_config usual, config;
    unsetenv("GMD_SIM_CAPACITY");
    gmd_sim_default_config(&usual);
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        setenv("GMD_SIM_CAPACITY", numbers[i], 1); /* the last is less than a page */
        gmd_sim_default_config(&config);
        assert_int_equal(config.capacity_bytes, usual.capacity_bytes);
    }
    unsetenv("GMD_SIM_CAPACITY");
}

TEST_F(fresh_device, the_environment_chooses_the_schedule_by_its_name)
{
    gmd_sim_config config;
    setenv("GMD_SIM_SCHEDULE", "lazy", 1);
    gmd_sim_default_config(&config);
    assert_int_equal(config.schedule, GMD_SIM_LAZY);
    setenv("GMD_SIM_SCHEDULE", "sometimes", 1);
    gmd_sim_default_config(&config);
    assert_int_equal(config.schedule, GMD_SIM_TIMED);
    unsetenv("GMD_SIM_SCHEDULE");
}
