/* Memsets and copies on backed memory: when the bytes really move. */
#include "device_test.h"

#include <string.h>

static int backed_device(void **state)
{
    (void)state;
    gmd_sim_config config = device_config();
    config.backed = true;
    return gmd_sim_reset(&config);
}

FIXTURE(backed_device, backed_device, NULL);

static unsigned char byte_at(const void *pointer)
{
    unsigned char byte = 0;
    assert_int_equal(gmd_sim_peek((uintptr_t)pointer, &byte, 1), 0);
    return byte;
}

TEST_F(backed_device, a_memset_takes_effect_when_it_completes)
{
    char *pointer = device_malloc(4096);
    assert_success(cudaMemset(pointer, 7, 4096));
    assert_int_equal(byte_at(pointer), 0);
    assert_success(cudaDeviceSynchronize());
    assert_int_equal(byte_at(pointer + 4095), 7);
}

TEST_F(backed_device, effects_follow_the_order_of_the_streams)
{
    cudaStream_t a = new_stream(cudaStreamNonBlocking), b = new_stream(cudaStreamNonBlocking);
    cudaEvent_t event = new_event(cudaEventDisableTiming);
    char *pointer = device_malloc(4096);
    launch(a, 1000000);
    assert_success(cudaMemsetAsync(pointer, 1, 4096, a));
    assert_success(cudaEventRecord(event, a));
    assert_success(cudaStreamWaitEvent(b, event, 0));
    assert_success(cudaMemsetAsync(pointer, 2, 4096, b));
    assert_success(cudaDeviceSynchronize());
    assert_int_equal(byte_at(pointer), 2);
}

TEST_F(backed_device, without_order_the_later_end_wins)
{
    cudaStream_t a = new_stream(cudaStreamNonBlocking), b = new_stream(cudaStreamNonBlocking);
    char *pointer = device_malloc(4096);
    launch(a, 1000000);
    assert_success(cudaMemsetAsync(pointer, 1, 4096, a));
    assert_success(cudaMemsetAsync(pointer, 2, 4096, b));
    assert_success(cudaDeviceSynchronize());
    assert_int_equal(byte_at(pointer), 1);
}

TEST_F(backed_device, work_that_ends_together_completes_as_it_was_queued)
{
    cudaStream_t a = new_stream(cudaStreamNonBlocking), b = new_stream(cudaStreamNonBlocking);
    char *pointer = device_malloc(4096);
    launch(a, 100);
    launch(b, 100);
    assert_success(cudaMemsetAsync(pointer, 1, 4096, b));
    assert_success(cudaMemsetAsync(pointer, 2, 4096, a));
    assert_success(cudaDeviceSynchronize());
    assert_int_equal(byte_at(pointer), 2);
}

TEST_F(backed_device, data_makes_the_round_trip)
{
    char *first = device_malloc(3 * MIB), *second = device_malloc(3 * MIB);
    static char from[3 * MIB], to[3 * MIB];
    for (size_t i = 0; i < sizeof from; i++) {
        from[i] = (char)(i * 31 >> 3);
    }
    assert_success(cudaMemcpy(first, from, sizeof from, cudaMemcpyHostToDevice));
    assert_success(cudaMemcpy(second, first, sizeof from, cudaMemcpyDeviceToDevice));
    assert_success(cudaMemcpy(to, second, sizeof from, cudaMemcpyDefault));
    assert_memory_equal(from, to, sizeof from);
}

TEST_F(backed_device, pageable_memory_is_the_callers_again_at_once)
{
    char *pointer = device_malloc(64);
    char source[64];
    memset(source, 5, sizeof source);
    launch(NULL, 1000);
    assert_success(cudaMemcpyAsync(pointer, source, 64, cudaMemcpyHostToDevice, NULL));
    memset(source, 6, sizeof source);
    assert_success(cudaDeviceSynchronize());
    assert_int_equal(byte_at(pointer), 5);
}

TEST_F(backed_device, a_copy_into_pageable_memory_has_happened_when_it_returns)
{
    char *pointer = device_malloc(64);
    char target[64] = {0};
    assert_success(cudaMemsetAsync(pointer, 9, 64, NULL));
    assert_success(cudaMemcpyAsync(target, pointer, 64, cudaMemcpyDeviceToHost, NULL));
    assert_int_equal(target[63], 9);
}

TEST_F(backed_device, a_copy_from_page_locked_memory_reads_it_when_it_completes)
{
    char *pointer = device_malloc(64);
    void *host;
    assert_success(cudaMallocHost(&host, 64));
    memset(host, 5, 64);
    assert_success(cudaMemcpyAsync(pointer, host, 64, cudaMemcpyHostToDevice, NULL));
    memset(host, 6, 64);
    assert_success(cudaFreeHost(host));
    assert_int_equal(byte_at(pointer), 6);
}

TEST_F(backed_device, a_new_allocation_holds_nothing_of_an_earlier_one)
{
    gmd_sim_config config = device_config();
    config.backed = true;
    config.placement = GMD_SIM_REUSE_FIRST;
    device_reset(&config);
    char *pointer = device_malloc(4096);
    assert_success(cudaMemset(pointer, 7, 4096));
    assert_success(cudaFree(pointer));
    assert_ptr_equal(device_malloc(4096), pointer);
    assert_int_equal(byte_at(pointer), 0);
}

TEST_F(backed_device, ranges_beyond_the_allocation_are_refused)
{
    char *pointer = device_malloc(1000), host[2000] = {0};
    assert_int_equal(cudaMemset(pointer, 0, 1001), cudaErrorInvalidValue);
    assert_int_equal(cudaMemset(pointer + 1, 0, SIZE_MAX), cudaErrorInvalidValue);
    assert_int_equal(cudaMemset(host, 0, 1), cudaErrorInvalidValue);
    assert_int_equal(cudaMemset(NULL, 0, 1), cudaErrorInvalidValue);
    assert_int_equal(cudaMemcpy(pointer, host, 1001, cudaMemcpyHostToDevice),
                     cudaErrorInvalidValue);
    assert_success(cudaFree(pointer));
    assert_int_equal(cudaMemcpy(pointer, host, 1, cudaMemcpyDefault), cudaErrorInvalidValue);
    assert_int_equal(gmd_sim_misuse_count(), 6);
}

TEST_F(backed_device, page_locked_ranges_end_where_they_end)
{
    char *pointer = device_malloc(4096);
    void *host;
    assert_success(cudaMallocHost(&host, 64));
    assert_int_equal(cudaMemcpy(pointer, host, 65, cudaMemcpyHostToDevice), cudaErrorInvalidValue);
}

TEST_F(backed_device, the_kind_of_a_copy_must_be_true)
{
    char *pointer = device_malloc(64), host[64];
    assert_int_equal(cudaMemcpy(pointer, host, 64, cudaMemcpyDeviceToHost), cudaErrorInvalidValue);
    assert_int_equal(cudaMemcpy(host, pointer, 64, (enum cudaMemcpyKind)5),
                     cudaErrorInvalidMemcpyDirection);
}

TEST_F(backed_device, a_copy_of_nothing_is_fine)
{
    assert_success(cudaMemcpy(NULL, NULL, 0, cudaMemcpyDefault));
    assert_success(cudaMemset(NULL, 0, 0));
}

TEST_F(backed_device, peek_and_poke_reach_live_backed_memory_only)
{
    uint64_t address = device_malloc_address(1000);
    char out[4] = {0};
    assert_int_equal(gmd_sim_poke(address + 996, "abcd", 4), 0);
    assert_int_equal(gmd_sim_peek(address + 996, out, 4), 0);
    assert_memory_equal(out, "abcd", 4);
    assert_int_equal(gmd_sim_peek(address + 997, out, 4), -1);
    assert_int_equal(gmd_sim_poke(address - 1, out, 1), -1);
    gmd_sim_config config = device_config();
    device_reset(&config);
    address = device_malloc_address(1000);
    assert_int_equal(gmd_sim_peek(address, out, 1), -1);
}

TEST_F(backed_device, a_lenient_free_lets_old_work_hit_the_new_owner)
{
    gmd_sim_config config = device_config();
    config.backed = config.free_is_lenient = true;
    config.placement = GMD_SIM_REUSE_FIRST;
    device_reset(&config);
    char *pointer = device_malloc(4096);
    assert_success(cudaMemset(pointer, 7, 4096));
    assert_success(cudaFree(pointer));
    assert_ptr_equal(device_malloc(4096), pointer);
    assert_success(cudaDeviceSynchronize());
    assert_int_equal(byte_at(pointer), 7);
}
