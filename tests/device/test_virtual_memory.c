/* Virtual memory management: what the conformance transcript cannot tell: data, figures, and work
 * on memory that is gone. */
#include "device_test.h"

static int backed_device(void **state)
{
    (void)state;
    gmd_sim_config config = device_config();
    config.backed = true;
    return gmd_sim_reset(&config) == 0 && cuInit(0) == CUDA_SUCCESS ? 0 : -1;
}

FIXTURE(backed_device, backed_device, NULL);

static CUmemGenericAllocationHandle new_memory(size_t size)
{
    CUmemAllocationProp p = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                             .location = {CU_MEM_LOCATION_TYPE_DEVICE, 0}};
    CUmemGenericAllocationHandle handle = 0;
    assert_int_equal(cuMemCreate(&handle, size, &p, 0), CUDA_SUCCESS);
    return handle;
}

static CUdeviceptr new_range(size_t size)
{
    CUdeviceptr address = 0;
    assert_int_equal(cuMemAddressReserve(&address, size, 0, 0, 0), CUDA_SUCCESS);
    return address;
}

static void map_at(CUdeviceptr address, size_t size, CUmemGenericAllocationHandle handle)
{
    CUmemAccessDesc access = {{CU_MEM_LOCATION_TYPE_DEVICE, 0}, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    assert_int_equal(cuMemMap(address, size, 0, handle, 0), CUDA_SUCCESS);
    assert_int_equal(cuMemSetAccess(address, size, &access, 1), CUDA_SUCCESS);
}

static void *as_pointer(CUdeviceptr address)
{
    return (void *)(uintptr_t)address;
}

TEST_F(backed_device, figures_follow_handles_ranges_and_mappings)
{
    CUdeviceptr at = new_range(16 * MIB);
    CUmemGenericAllocationHandle handle = new_memory(4 * PAGE);
    assert_int_equal(device_state(0).physical_bytes, 4 * PAGE);
    assert_int_equal(device_state(0).handle_count, 1);
    assert_int_equal(device_state(0).reservation_bytes, 16 * MIB);
    assert_int_equal(device_state(0).mapped_bytes, 0);
    map_at(at, 4 * PAGE, handle);
    assert_int_equal(device_state(0).mapped_bytes, 4 * PAGE);
    assert_int_equal(device_state(0).physical_bytes, 4 * PAGE);
    assert_int_equal(cuMemRelease(handle), CUDA_SUCCESS);
    assert_int_equal(device_state(0).physical_bytes, 4 * PAGE);
    assert_int_equal(cuMemUnmap(at, 4 * PAGE), CUDA_SUCCESS);
    assert_int_equal(device_state(0).physical_bytes, 0);
    assert_int_equal(device_state(0).handle_count, 0);
    assert_int_equal(cuMemAddressFree(at, 16 * MIB), CUDA_SUCCESS);
    assert_int_equal(device_state(0).reservation_count, 0);
}

TEST_F(backed_device, memory_beyond_the_device_is_refused_and_nothing_changes)
{
    CUmemAllocationProp p = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                             .location = {CU_MEM_LOCATION_TYPE_DEVICE, 0}};
    CUmemGenericAllocationHandle handle = 0;
    device_malloc(GIB / 2);
    assert_int_equal(cuMemCreate(&handle, GIB / 2 + PAGE, &p, 0), CUDA_ERROR_OUT_OF_MEMORY);
    assert_int_equal(device_state(0).physical_bytes, GIB / 2);
    assert_int_equal(device_state(0).handle_count, 0);
}

TEST_F(backed_device, a_copy_runs_across_mappings)
{
    CUdeviceptr at = new_range(16 * MIB);
    map_at(at, PAGE, new_memory(PAGE));
    map_at(at + PAGE, 2 * PAGE, new_memory(2 * PAGE));
    unsigned char out[2];
    assert_success(cudaMemset(as_pointer(at), 7, 3 * PAGE));
    assert_success(cudaDeviceSynchronize());
    assert_success(cudaMemcpy(out, as_pointer(at + PAGE - 1), 2, cudaMemcpyDeviceToHost));
    assert_int_equal(out[0], 7);
    assert_int_equal(out[1], 7);
}

TEST_F(backed_device, memory_that_is_mapped_twice_is_seen_twice)
{
    CUdeviceptr at = new_range(16 * MIB);
    CUmemGenericAllocationHandle handle = new_memory(PAGE);
    map_at(at, PAGE, handle);
    map_at(at + 4 * PAGE, PAGE, handle);
    unsigned char out = 0;
    assert_success(cudaMemset(as_pointer(at + 5), 9, 1));
    assert_success(cudaDeviceSynchronize());
    assert_int_equal(gmd_sim_peek(at + 4 * PAGE + 5, &out, 1), 0);
    assert_int_equal(out, 9);
}

TEST_F(backed_device, data_stays_with_the_memory_not_with_the_address)
{
    CUdeviceptr at = new_range(16 * MIB);
    CUmemGenericAllocationHandle first = new_memory(PAGE), second = new_memory(PAGE);
    unsigned char out = 1;
    map_at(at, PAGE, first);
    assert_success(cudaMemset(as_pointer(at), 9, PAGE));
    assert_success(cudaDeviceSynchronize());
    assert_int_equal(cuMemUnmap(at, PAGE), CUDA_SUCCESS);
    assert_int_equal(gmd_sim_peek(at, &out, 1), -1);
    map_at(at, PAGE, second);
    assert_int_equal(gmd_sim_peek(at, &out, 1), 0);
    assert_int_equal(out, 0);
    assert_int_equal(cuMemUnmap(at, PAGE), CUDA_SUCCESS);
    map_at(at, PAGE, first);
    assert_int_equal(gmd_sim_peek(at, &out, 1), 0);
    assert_int_equal(out, 9);
}

TEST_F(backed_device, a_range_is_backed_where_all_of_it_is_mapped_with_access)
{
    CUdeviceptr at = new_range(16 * MIB);
    uint64_t bad = 0;
    map_at(at, PAGE, new_memory(PAGE));
    assert_true(gmd_sim_is_backed(at, PAGE, 0, &bad));
    assert_false(gmd_sim_is_backed(at, PAGE + 1, 0, &bad));
    assert_int_equal(bad, at + PAGE);
    assert_int_equal(cuMemMap(at + PAGE, PAGE, 0, new_memory(PAGE), 0), CUDA_SUCCESS);
    assert_false(gmd_sim_is_backed(at, 2 * PAGE, 0, &bad));
}

TEST_F(backed_device, a_range_is_not_backed_by_another_devices_memory)
{
    gmd_sim_config config = device_config();
    config.device_count = 2;
    assert_int_equal(gmd_sim_reset(&config), 0);
    assert_int_equal(cuInit(0), CUDA_SUCCESS);
    assert_success(cudaSetDevice(0));
    CUdeviceptr at = new_range(16 * MIB);
    CUmemAccessDesc access = {{CU_MEM_LOCATION_TYPE_DEVICE, 1}, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    uint64_t bad = 0;
    map_at(at, PAGE, new_memory(PAGE)); /* of device 0 */
    assert_int_equal(cuMemSetAccess(at, PAGE, &access, 1), CUDA_SUCCESS);
    assert_true(gmd_sim_is_backed(at, PAGE, 0, NULL));
    assert_false(gmd_sim_is_backed(at, PAGE, 1, &bad));
    assert_int_equal(bad, at);
}

TEST_F(backed_device, work_on_unmapped_memory_loses_the_device)
{
    CUdeviceptr at = new_range(16 * MIB);
    map_at(at, PAGE, new_memory(PAGE));
    gmd_sim_access access = {at, PAGE, true};
    assert_success(gmd_sim_launch(NULL, 1000, &access, 1));
    assert_int_equal(cuMemUnmap(at, PAGE), CUDA_SUCCESS);
    assert_int_equal(cudaDeviceSynchronize(), cudaErrorIllegalAddress);
}

TEST_F(backed_device, a_reset_takes_everything_back)
{
    map_at(new_range(16 * MIB), PAGE, new_memory(PAGE));
    gmd_sim_config config = device_config();
    device_reset(&config);
    assert_int_equal(device_state(0).physical_bytes, 0);
    assert_int_equal(device_state(0).reservation_count, 0);
    assert_int_equal(device_state(0).handle_count, 0);
    assert_int_equal(device_state(0).mapped_bytes, 0);
}

TEST_F(backed_device, reservations_go_where_they_were_recorded)
{
    static const uint64_t recorded[] = {0x7f0000000000, 0x7e0000000000};
    gmd_sim_config config = device_config();
    config.placement = GMD_SIM_RECORDED;
    config.recorded_reservations = recorded;
    config.recorded_reservation_count = 2;
    device_reset(&config);
    assert_int_equal(cuInit(0), CUDA_SUCCESS);
    assert_int_equal(new_range(16 * MIB), recorded[0]);
    assert_int_equal(new_range(16 * MIB), recorded[1]);
    assert_int_not_equal(new_range(16 * MIB), 0);
}

TEST_F(backed_device, a_reset_device_maps_nothing_any_more)
{
    CUdeviceptr at = new_range(16 * MIB);
    CUmemGenericAllocationHandle handle = new_memory(2 * PAGE);
    map_at(at + PAGE, 2 * PAGE, handle);
    assert_int_equal(cuMemRelease(handle), CUDA_SUCCESS); /* the mapping keeps it */
    assert_success(cudaDeviceReset());
    assert_int_equal(device_state(0).mapped_bytes, 0);
    assert_int_equal(device_state(0).physical_bytes, 0);
    device_malloc(GIB); /* all of it */
}

TEST_F(backed_device, a_range_lies_where_it_was_asked_for_if_that_is_free)
{
    CUdeviceptr first = new_range(16 * MIB), wanted = first + 256 * MIB, at = 0;
    assert_int_equal(cuMemAddressReserve(&at, 16 * MIB, 0, wanted, 0), CUDA_SUCCESS);
    assert_int_equal(at, wanted);
    assert_int_equal(cuMemAddressReserve(&at, 16 * MIB, 0, wanted, 0), CUDA_SUCCESS);
    assert_int_not_equal(at, wanted);
}

TEST_F(backed_device, a_range_is_aligned_as_asked_for)
{
    for (size_t alignment = 4 * MIB; alignment <= 64 * GIB; alignment *= 16) {
        CUdeviceptr at = 0;
        new_range(PAGE);
        assert_int_equal(cuMemAddressReserve(&at, PAGE, alignment, 0, 0), CUDA_SUCCESS);
        assert_int_equal(at % alignment, 0);
        new_range(PAGE); /* in the gap before it */
    }
}

TEST_F(backed_device, more_address_space_than_there_is_is_refused)
{
    CUdeviceptr at = 0;
    assert_int_equal(cuMemAddressReserve(&at, (size_t)1 << 60, 0, 0, 0), CUDA_ERROR_OUT_OF_MEMORY);
    assert_int_equal(device_state(0).reservation_count, 0);
}

TEST_F(backed_device, a_budget_is_the_devices_end_for_handles_too)
{
    CUmemAllocationProp p = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                             .location = {CU_MEM_LOCATION_TYPE_DEVICE, 0}};
    CUmemGenericAllocationHandle handle = 0;
    assert_int_equal(gmd_sim_budget(0, 2 * PAGE), 0);
    assert_int_equal(cuMemCreate(&handle, 3 * PAGE, &p, 0), CUDA_ERROR_OUT_OF_MEMORY);
    assert_int_equal(gmd_sim_budget(0, UINT64_MAX), 0);
    assert_int_equal(cuMemCreate(&handle, 3 * PAGE, &p, 0), CUDA_SUCCESS);
}
