/* Blocks that lose their mapping when they are freed, and what an illegal access is reported as. */
#include "guard_test.h"

#include "checks.h"
#include "faults.h"

#include "gmd_test.h"

#include <string.h>

static guard_bench bench;

static int open_unmapping(void **state)
{
    (void)state;
    bench_open(&bench, "full,zone:512,interval:0s,order:unseen,unmap:4KiB,quarantine_blocks:4");
    return 0;
}

static int close_bench(void **state)
{
    (void)state;
    bench_close(&bench);
    return 0;
}

FIXTURE(unmapping, open_unmapping, close_bench);

static bool is_reported(const char *text)
{
    return strstr(bench_report(&bench), text) != NULL;
}

static bool is_mapped(const void *address)
{
    char byte;
    return gmd_sim_peek((uintptr_t)address, &byte, 1) == 0;
}

TEST_F(unmapping, a_freed_block_has_no_memory)
{
    char *block = bench_malloc(&bench, 4096);
    assert_true(is_mapped(block));
    guard_free(bench.guard, block);
    assert_false(is_mapped(block));
}

TEST_F(unmapping, smaller_blocks_are_the_allocators)
{
    char *block = bench_malloc(&bench, 4095);
    guard_free(bench.guard, block);
    assert_true(is_mapped(block));
}

TEST_F(unmapping, addresses_do_not_come_back)
{
    char *first = bench_malloc(&bench, 4096);
    guard_free(bench.guard, first);
    for (int i = 0; i < 8; i++) {
        char *next = bench_malloc(&bench, 4096);
        assert_ptr_not_equal(next, first);
        guard_free(bench.guard, next);
    }
    assert_false(is_mapped(first));
}

TEST_F(unmapping, memory_serves_the_next_block)
{
    enum { SIZE = 40 << 20 }; /* of 64 MiB */
    for (int i = 0; i < 5; i++) {
        guard_free(bench.guard, bench_malloc(&bench, SIZE));
    }
}

TEST_F(unmapping, memory_of_freed_blocks_serves_others_when_it_is_short)
{
    guard_free(bench.guard, bench_malloc(&bench, 40 << 20));
    guard_free(bench.guard, bench_malloc(&bench, 50 << 20));
    assert_non_null(bench_malloc(&bench, 4000)); /* of the allocator */
}

TEST_F(unmapping, behind_a_block_there_is_nothing)
{
    char *block = bench_malloc(&bench, 5000); /* the zone ends with 5120 */
    assert_true(is_mapped(block + 5119));
    assert_false(is_mapped(block + 5120));
    assert_false(is_mapped(block + (32 << 20)));
}

TEST_F(unmapping, a_byte_past_the_end_is_reported_at_the_free)
{
    char *block = bench_malloc(&bench, 5000);
    bench_poke(block + 5000, "x", 1);
    guard_free(bench.guard, block);
    assert_true(is_reported("\"kind\": \"write_past_end\""));
}

TEST_F(unmapping, a_byte_before_the_start_is_reported_at_the_free)
{
    char *block = bench_malloc(&bench, 5000);
    bench_poke(block - 1, "x", 1);
    guard_free(bench.guard, block);
    assert_true(is_reported("\"kind\": \"write_before_start\""));
}

TEST_F(unmapping, new_memory_is_not_a_number)
{
    char *block = bench_malloc(&bench, 4096);
    float value = 0;
    assert_int_equal(gmd_sim_peek((uintptr_t)block, &value, sizeof value), 0);
    assert_true(value != value);
}

TEST_F(unmapping, blocks_of_private_pools_are_the_allocators)
{
    guard_pools_changed(bench.guard, 1);
    char *block = bench_malloc(&bench, 4096);
    guard_free(bench.guard, block);
    guard_pools_changed(bench.guard, -1);
    assert_true(is_mapped(block));
}

TEST_F(unmapping, while_a_capture_may_be_under_way_nothing_is_unmapped)
{
    char *block = bench_malloc(&bench, 4096);
    guard_pools_changed(bench.guard, 1);
    guard_free(bench.guard, block);
    assert_true(is_mapped(block));
    guard_pools_changed(bench.guard, -1);
    bench_malloc(&bench, 64);
    assert_false(is_mapped(block));
}

TEST_F(unmapping, a_block_that_is_freed_again_is_reported)
{
    char *block = bench_malloc(&bench, 4096);
    guard_free(bench.guard, block);
    guard_free(bench.guard, block);
    assert_true(is_reported("\"kind\": \"bad_free\""));
}

TEST_F(unmapping, work_that_is_queued_before_the_free_is_waited_for)
{
    cudaStream_t other = NULL;
    assert_int_equal(cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking), cudaSuccess);
    char *block = bench_malloc(&bench, 4096);
    assert_int_equal(cudaMemsetAsync(block, 1, 4096, other), cudaSuccess);
    guard_free(bench.guard, block);
    assert_int_equal(gmd_sim_pending(NULL), 0);
    assert_int_equal(guard_check(bench.guard), 0);
}

TEST_F(unmapping, an_illegal_access_is_reported_once_with_the_block_that_was_freed_last)
{
    bench.stack = 41;
    char *block = bench_malloc(&bench, 4096);
    bench.stack = 42;
    guard_free(bench.guard, block);
    guard_see_result(bench.guard, 0, cudaErrorIllegalAddress, 43);
    guard_see_result(bench.guard, 0, cudaErrorIllegalAddress, 43);
    assert_int_equal(guard_check(bench.guard), 1);
    assert_true(is_reported("\"kind\": \"illegal_access\""));
    assert_true(is_reported("\"suspected_by\": \"latest_free\""));
    assert_true(is_reported("\"allocated\": [\"train.py:41:step\"]"));
    assert_true(is_reported("\"freed\": [\"train.py:42:step\"]"));
    assert_true(is_reported("\"noticed_in\": [\"train.py:43:step\"]"));
}

TEST_F(unmapping, another_error_of_cuda_is_no_finding)
{
    guard_free(bench.guard, bench_malloc(&bench, 4096));
    guard_see_result(bench.guard, 0, cudaErrorMemoryAllocation, 1);
    guard_see_result(bench.guard, 0, cudaSuccess, 1);
    assert_int_equal(guard_check(bench.guard), 0);
}
