/* cudaMalloc, cudaFree and what they account for. */
#include "device_test.h"

TEST_F(fresh_device, a_large_allocation_takes_whole_pages)
{
    device_malloc(MIB);
    assert_int_equal(device_state(0).physical_bytes, PAGE);
    device_malloc(2 * MIB + 1);
    assert_int_equal(device_state(0).physical_bytes, 3 * PAGE);
    assert_int_equal(device_state(0).allocated_bytes, 3 * MIB + 1);
    assert_int_equal(device_state(0).allocation_count, 2);
}

TEST_F(fresh_device, small_allocations_share_a_page_at_512_bytes)
{
    uint64_t first = device_malloc_address(1);
    uint64_t second = device_malloc_address(513);
    uint64_t third = device_malloc_address(1);
    assert_int_equal(second - first, 512);
    assert_int_equal(third - second, 1024);
    assert_int_equal(device_state(0).physical_bytes, PAGE);
}

TEST_F(fresh_device, a_small_allocation_never_spans_two_pages)
{
    for (int i = 0; i < 9; i++) {
        uint64_t address = device_malloc_address(700 << 10);
        assert_int_equal(address / PAGE, (address + (700 << 10) - 1) / PAGE);
    }
    assert_int_equal(device_state(0).physical_bytes, 5 * PAGE);
}

TEST_F(fresh_device, a_page_is_returned_with_its_last_small_allocation)
{
    void *first = device_malloc(512), *second = device_malloc(512);
    assert_success(cudaFree(first));
    assert_int_equal(device_state(0).physical_bytes, PAGE);
    assert_success(cudaFree(second));
    assert_int_equal(device_state(0).physical_bytes, 0);
}

TEST_F(fresh_device, large_addresses_are_page_aligned)
{
    for (size_t size = MIB; size < 9 * MIB; size += 777777) {
        assert_int_equal(device_malloc_address(size) % PAGE, 0);
    }
}

TEST_F(fresh_device, a_malloc_of_nothing_gives_null)
{
    void *pointer = &pointer;
    assert_success(cudaMalloc(&pointer, 0));
    assert_null(pointer);
    assert_int_equal(device_state(0).allocation_count, 0);
}

TEST_F(fresh_device, a_malloc_beyond_memory_fails_and_changes_nothing)
{
    device_malloc(1000 * MIB);
    void *pointer = &pointer;
    assert_int_equal(cudaMalloc(&pointer, 26 * MIB), cudaErrorMemoryAllocation);
    assert_int_equal(cudaMalloc(&pointer, SIZE_MAX), cudaErrorMemoryAllocation);
    assert_ptr_equal(pointer, &pointer);
    assert_int_equal(device_state(0).physical_bytes, 1000 * MIB);
    assert_success(cudaMalloc(&pointer, 24 * MIB));
    assert_int_equal(gmd_sim_misuse_count(), 0);
}

TEST_F(fresh_device, a_full_device_serves_small_requests_from_pages_it_has_given)
{
    void *hole = device_malloc(512);
    device_malloc(MIB - 512);
    device_malloc(MIB - 512);
    device_malloc(512);
    device_malloc(GIB - PAGE);
    assert_success(cudaFree(hole));
    assert_ptr_equal(device_malloc(512), hole);
    assert_int_equal(device_state(0).physical_bytes, GIB);
    assert_int_equal(cudaMalloc(&hole, 512), cudaErrorMemoryAllocation);
}

TEST_F(fresh_device, mem_get_info_counts_pages)
{
    device_malloc(3 * MIB);
    size_t free_bytes, total;
    assert_success(cudaMemGetInfo(&free_bytes, &total));
    assert_int_equal(total, GIB);
    assert_int_equal(free_bytes, GIB - 2 * PAGE);
}

TEST_F(fresh_device, free_refuses_what_it_did_not_give)
{
    char *pointer = device_malloc(4096);
    int host;
    assert_int_equal(cudaFree(pointer + 512), cudaErrorInvalidValue);
    assert_int_equal(cudaFree(&host), cudaErrorInvalidValue);
    assert_success(cudaFree(pointer));
    assert_int_equal(cudaFree(pointer), cudaErrorInvalidValue);
    assert_success(cudaFree(NULL));
    assert_int_equal(gmd_sim_misuse_count(), 3);
}

TEST_F(fresh_device, free_waits_for_the_devices_work)
{
    cudaStream_t stream = new_stream(cudaStreamNonBlocking);
    void *pointer = device_malloc(MIB);
    launch(stream, 5000);
    assert_success(cudaFree(pointer));
    assert_int_equal(gmd_sim_pending(stream), 0);
    assert_int_equal(gmd_sim_now(), 5000);
    assert_int_equal(gmd_sim_forced_waits(), 1);
}

TEST_F(fresh_device, a_lenient_free_does_not_wait)
{
    gmd_sim_config config = device_config();
    config.free_is_lenient = true;
    device_reset(&config);
    void *pointer = device_malloc(MIB);
    launch(NULL, 5000);
    assert_success(cudaFree(pointer));
    assert_int_equal(gmd_sim_pending(NULL), 1);
}

TEST_F(fresh_device, find_knows_the_allocation_around_an_address)
{
    uint64_t address = device_malloc_address(3 * MIB);
    gmd_sim_range range;
    assert_int_equal(gmd_sim_find(address + 3 * MIB - 1, &range), 0);
    assert_int_equal(range.address, address);
    assert_int_equal(range.size, 3 * MIB);
    assert_int_equal(range.device, 0);
    assert_int_equal(gmd_sim_find(address + 3 * MIB, &range), -1);
    assert_int_equal(gmd_sim_find(address - 1, &range), -1);
    assert_int_equal(gmd_sim_find(UINT64_MAX, &range), -1);
}

typedef struct walk {
    uint64_t last, count;
} walk;

static void check_ascends(void *context, const gmd_sim_range *range)
{
    walk *w = context;
    assert_true(range->address > w->last);
    w->last = range->address;
    w->count++;
}

TEST_F(fresh_device, each_allocation_ascends)
{
    gmd_sim_config config = device_config();
    config.placement = GMD_SIM_RANDOM;
    device_reset(&config);
    for (int i = 0; i < 50; i++) {
        device_malloc((size_t)(i % 5 + 1) << 19);
    }
    walk w = {0};
    gmd_sim_each_allocation(0, check_ascends, &w);
    assert_int_equal(w.count, 50);
}

TEST_F(fresh_device, pointers_tell_what_they_are)
{
    char *device = device_malloc(4096);
    void *host;
    assert_success(cudaMallocHost(&host, 64));
    struct cudaPointerAttributes a;
    assert_success(cudaPointerGetAttributes(&a, device + 5));
    assert_int_equal(a.type, cudaMemoryTypeDevice);
    assert_ptr_equal(a.devicePointer, device + 5);
    assert_success(cudaPointerGetAttributes(&a, host));
    assert_int_equal(a.type, cudaMemoryTypeHost);
    assert_success(cudaPointerGetAttributes(&a, &a));
    assert_int_equal(a.type, cudaMemoryTypeUnregistered);
    assert_success(cudaFreeHost(host));
    assert_int_equal(cudaFreeHost(host), cudaErrorInvalidValue);
}

/* --- another library's memory -------------------------------------------------------------- */

TEST_F(fresh_device, another_library_gets_the_address_that_was_given_back)
{
    uint64_t address = device_malloc_address(MIB);
    assert_int_equal(gmd_sim_occupy(0, address, MIB), -1); /* it is still there */
    assert_success(cudaFree((void *)(uintptr_t)address));
    assert_int_equal(gmd_sim_occupy(0, address, MIB), 0);
    assert_true(gmd_sim_is_backed(address, MIB, 0, NULL));
    assert_int_equal(device_state(0).physical_bytes, PAGE);
    assert_int_equal(gmd_sim_vacate(address), 0);
    assert_int_equal(device_state(0).physical_bytes, 0);
}

TEST_F(fresh_device, another_librarys_memory_can_be_freed_by_anybody_once)
{
    uint64_t address = device_malloc_address(MIB);
    assert_success(cudaFree((void *)(uintptr_t)address));
    assert_int_equal(gmd_sim_occupy(0, address, MIB), 0);
    assert_success(cudaFree((void *)(uintptr_t)address));
    assert_int_equal(gmd_sim_vacate(address), -1);
}

TEST_F(fresh_device, another_library_gets_no_memory_that_the_device_lacks)
{
    uint64_t address = device_malloc_address(MIB);
    assert_success(cudaFree((void *)(uintptr_t)address));
    assert_int_equal(gmd_sim_budget(0, 0), 0);
    assert_int_equal(gmd_sim_occupy(0, address, MIB), -1);
    assert_int_equal(gmd_sim_occupy(0, address + 1, MIB), -1);
    assert_int_equal(gmd_sim_occupy(9, address, MIB), -1);
}
