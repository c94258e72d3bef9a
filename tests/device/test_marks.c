/* Marks: which of the harness's work wrote to memory last, on memory of any size and unbacked. */
#include "device_test.h"

#define BLOCK 4096

static gmd_sim_marked marked(uint64_t address, uint64_t size, uint64_t mark)
{
    gmd_sim_marked found;
    assert_int_equal(gmd_sim_find_mark(address, size, mark, &found), 0);
    return found;
}

TEST_F(fresh_device, a_mark_is_there_at_once_and_everywhere)
{
    uint64_t at = device_malloc_address(GIB / 2);
    gmd_sim_mark(at, GIB / 2, 7);
    assert_int_equal(marked(at, GIB / 2, 7).marked_bytes, GIB / 2);
    assert_int_equal(marked(at, GIB / 2, 8).other_mark, 7);
}

TEST_F(fresh_device, nothing_is_known_before_the_first_mark)
{
    gmd_sim_marked found;
    uint64_t at = device_malloc_address(BLOCK);
    assert_int_equal(gmd_sim_find_mark(at, BLOCK, 7, &found), -1);
}

TEST_F(fresh_device, work_marks_when_it_completes)
{
    uint64_t at = device_malloc_address(BLOCK);
    cudaStream_t stream = new_stream(cudaStreamNonBlocking);
    gmd_sim_point point;
    assert_success(gmd_sim_launch_marking(stream, 1000, at, BLOCK, 7));
    assert_int_equal(gmd_sim_point_of(0, stream, &point), 0);
    assert_int_equal(marked(at, BLOCK, 7).marked_bytes, 0);
    assert_false(gmd_sim_is_complete(point));
    gmd_sim_advance(1000);
    assert_int_equal(marked(at, BLOCK, 7).marked_bytes, BLOCK);
    assert_true(gmd_sim_is_complete(point));
}

TEST_F(fresh_device, the_last_writer_counts)
{
    uint64_t at = device_malloc_address(BLOCK);
    gmd_sim_mark(at, BLOCK, 7);
    gmd_sim_mark(at + 1024, 512, 8);
    gmd_sim_marked found = marked(at, BLOCK, 7);
    assert_int_equal(found.marked_bytes, BLOCK - 512);
    assert_int_equal(found.other_bytes, 512);
    assert_int_equal(found.other_address, at + 1024);
    assert_int_equal(found.other_mark, 8);
}

TEST_F(fresh_device, a_memset_leaves_no_mark)
{
    uint64_t at = device_malloc_address(BLOCK);
    gmd_sim_mark(at, BLOCK, 7);
    assert_success(cudaMemset((void *)(uintptr_t)(at + 100), 0, 50));
    assert_success(cudaDeviceSynchronize());
    gmd_sim_marked found = marked(at, BLOCK, 7);
    assert_int_equal(found.other_address, at + 100);
    assert_int_equal(found.other_bytes, 50);
    assert_int_equal(found.other_mark, 0);
}

TEST_F(fresh_device, a_copy_carries_marks_along)
{
    uint64_t from = device_malloc_address(BLOCK), to = device_malloc_address(BLOCK);
    gmd_sim_mark(from, 1024, 7);
    gmd_sim_mark(to, BLOCK, 8);
    assert_success(
        cudaMemcpy((void *)(uintptr_t)to, (void *)(uintptr_t)from, 2048, cudaMemcpyDeviceToDevice));
    assert_success(cudaDeviceSynchronize());
    assert_int_equal(marked(to, 1024, 7).marked_bytes, 1024);
    assert_int_equal(marked(to + 1024, 1024, 8).marked_bytes, 0);
    assert_int_equal(marked(to + 2048, 2048, 8).marked_bytes, 2048);
}

TEST_F(fresh_device, freed_memory_has_no_marks)
{
    gmd_sim_config config = device_config();
    config.placement = GMD_SIM_REUSE_FIRST;
    device_reset(&config);
    uint64_t at = device_malloc_address(BLOCK);
    gmd_sim_mark(at, BLOCK, 7);
    assert_success(cudaFree((void *)(uintptr_t)at));
    assert_int_equal(device_malloc_address(BLOCK), at);
    assert_int_equal(marked(at, BLOCK, 7).marked_bytes, 0);
}

TEST_F(fresh_device, two_addresses_of_one_physical_memory_share_marks)
{
    CUmemAllocationProp p = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                             .location = {CU_MEM_LOCATION_TYPE_DEVICE, 0}};
    CUmemAccessDesc access = {{CU_MEM_LOCATION_TYPE_DEVICE, 0}, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    CUmemGenericAllocationHandle two, one;
    CUdeviceptr at;
    assert_int_equal(cuInit(0), CUDA_SUCCESS);
    assert_int_equal(cuMemCreate(&two, 2 * PAGE, &p, 0), CUDA_SUCCESS);
    assert_int_equal(cuMemCreate(&one, PAGE, &p, 0), CUDA_SUCCESS);
    assert_int_equal(cuMemAddressReserve(&at, 16 * PAGE, 0, 0, 0), CUDA_SUCCESS);
    assert_int_equal(cuMemMap(at, PAGE, 0, one, 0), CUDA_SUCCESS);
    assert_int_equal(cuMemMap(at + PAGE, 2 * PAGE, 0, two, 0), CUDA_SUCCESS);
    assert_int_equal(cuMemMap(at + 8 * PAGE, 2 * PAGE, 0, two, 0), CUDA_SUCCESS);
    assert_int_equal(cuMemSetAccess(at, 3 * PAGE, &access, 1), CUDA_SUCCESS);
    assert_int_equal(cuMemSetAccess(at + 8 * PAGE, 2 * PAGE, &access, 1), CUDA_SUCCESS);
    gmd_sim_mark(at, 3 * PAGE, 7);
    assert_int_equal(marked(at + 8 * PAGE, 2 * PAGE, 7).marked_bytes, 2 * PAGE);
    gmd_sim_mark(at + 9 * PAGE, 512, 8);
    gmd_sim_marked found = marked(at, 3 * PAGE, 7);
    assert_int_equal(found.other_bytes, 512);
    assert_int_equal(found.other_address, at + 2 * PAGE);
}

TEST_F(fresh_device, what_is_not_mapped_has_no_contents)
{
    gmd_sim_marked found;
    CUdeviceptr at;
    assert_int_equal(cuInit(0), CUDA_SUCCESS);
    assert_int_equal(cuMemAddressReserve(&at, PAGE, 0, 0, 0), CUDA_SUCCESS);
    gmd_sim_mark(at, PAGE, 7);
    assert_int_equal(gmd_sim_find_mark(at, PAGE, 7, &found), -1);
}

TEST_F(fresh_device, a_reset_forgets_them)
{
    gmd_sim_config config = device_config();
    gmd_sim_mark(device_malloc_address(BLOCK), BLOCK, 7);
    device_reset(&config);
    gmd_sim_marked found;
    assert_int_equal(gmd_sim_find_mark(device_malloc_address(BLOCK), BLOCK, 7, &found), -1);
}
