/* Blocks that lose their mapping when they are freed, and what an illegal access is reported as. */
#include "guard_test.h"

#include "checks.h"
#include "faults.h"
#include "unmapping.h"

#include "gmd_test.h"
#include "guard_order.h"

#include <string.h>

#define PAGE ((size_t)2 << 20) /* a block of a page has no zones, which take the host's time */

static guard_bench bench;

static int open_unmapping(void **state)
{
    (void)state;
    bench_open(&bench, "cheap,interval:0s,unmap:4KiB,quarantine_blocks:4");
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
    char *block = bench_malloc(&bench, PAGE);
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
    char *first = bench_malloc(&bench, PAGE);
    guard_free(bench.guard, first);
    for (int i = 0; i < 8; i++) {
        char *next = bench_malloc(&bench, PAGE);
        assert_ptr_not_equal(next, first);
        guard_free(bench.guard, next);
    }
    assert_false(is_mapped(first));
}

TEST_F(unmapping, addresses_do_not_look_like_two_numbers)
{
    enum { SMALL = 256 << 20 };
    for (int i = 0; i < 400; i++) { /* over some 12 GiB of addresses */
        char *block = bench_malloc(&bench, PAGE);
        uint32_t lower = (uint32_t)(uintptr_t)block;
        assert_in_range(lower, SMALL, UINT32_MAX - SMALL);
        guard_free(bench.guard, block);
    }
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

TEST_F(unmapping, bytes_in_mappings_are_counted)
{
    uint64_t peak = 0;
    char *block = bench_malloc(&bench, 3 << 20);
    assert_int_equal(guard_mapped_bytes(bench.guard, 0, &peak, false), 4 << 20);
    guard_free(bench.guard, block);
    assert_int_equal(guard_mapped_bytes(bench.guard, 0, &peak, false), 0);
    assert_int_equal(peak, 4 << 20);
    guard_mapped_bytes(bench.guard, 0, &peak, true);
    assert_int_equal(peak, 0);
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
    bench_close(&bench);
    bench_open(&bench, "cheap,interval:0s,unmap:4KiB,fresh:nan");
    char *block = bench_malloc(&bench, PAGE);
    float value = 0;
    assert_int_equal(gmd_sim_peek((uintptr_t)block, &value, sizeof value), 0);
    assert_true(value != value);
}

TEST_F(unmapping, blocks_of_private_pools_are_the_allocators)
{
    guard_pools_changed(bench.guard, 1);
    char *block = bench_malloc(&bench, PAGE);
    guard_free(bench.guard, block);
    guard_pools_changed(bench.guard, -1);
    assert_true(is_mapped(block));
}

TEST_F(unmapping, while_a_capture_may_be_under_way_nothing_is_unmapped)
{
    char *block = bench_malloc(&bench, PAGE);
    guard_pools_changed(bench.guard, 1);
    guard_free(bench.guard, block);
    assert_true(is_mapped(block));
    guard_pools_changed(bench.guard, -1);
    bench_malloc(&bench, 64);
    assert_false(is_mapped(block));
}

TEST_F(unmapping, a_block_that_is_freed_again_is_reported)
{
    char *block = bench_malloc(&bench, PAGE);
    guard_free(bench.guard, block);
    guard_free(bench.guard, block);
    assert_true(is_reported("\"kind\": \"bad_free\""));
}

TEST_F(unmapping, work_that_is_queued_before_the_free_is_waited_for)
{
    cudaStream_t other = NULL;
    assert_int_equal(cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking), cudaSuccess);
    char *block = bench_malloc(&bench, PAGE);
    assert_int_equal(cudaMemsetAsync(block, 1, PAGE, other), cudaSuccess);
    guard_free(bench.guard, block);
    assert_int_equal(gmd_sim_pending(NULL), 0);
    assert_int_equal(guard_check(bench.guard), 0);
}

TEST_F(unmapping, an_illegal_access_is_reported_once_with_the_block_that_was_freed_last)
{
    bench.stack = 41;
    char *block = bench_malloc(&bench, PAGE);
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

/* --- who it was: with an order, and work as it would be told --------------------------------- */

static int open_ordered(void **state)
{
    const order_settings settings = {.found = NULL};
    bench_open(&bench, "cheap,interval:0s,unmap:4KiB,launches:waited_for");
    bench.guard->order = order_create(&settings);
    bench.stack = 7;
    *state = NULL;
    return 0;
}

FIXTURE(ordered, open_ordered, close_bench);

static order_block *order_of(const void *block)
{
    guarded_block *b = block_index_find(&bench.guard->index, (uintptr_t)block);
    return b ? b->order : NULL;
}

static void queue(const char *what, uint64_t place, const void *block)
{
    const order_use use = {.block = order_of(block), .is_certain = true};
    guard_note_work(bench.guard, &(launches_work){.what = what,
                                                  .place = place,
                                                  .stream = {.handle = 0x7000},
                                                  .uses = &use,
                                                  .count = use.block ? 1 : 0});
}

TEST_F(ordered, a_freed_block_whose_address_the_work_had_is_named)
{
    bench.stack = 41;
    char *block = bench_malloc(&bench, PAGE), *later = bench_malloc(&bench, 2 * PAGE);
    bench.stack = 42;
    guard_free(bench.guard, block);
    bench.stack = 43;
    guard_free(bench.guard, later);
    queue("read_late", 44, block);
    guard_see_result(bench.guard, 0, cudaErrorIllegalAddress, 45);
    assert_true(is_reported("\"suspected_by\": \"address\""));
    assert_true(is_reported("\"bytes\": 2097152"));
    assert_true(is_reported("\"allocated\": [\"train.py:41:step\"]"));
    assert_true(is_reported("\"freed\": [\"train.py:42:step\"]"));
    assert_true(is_reported("\"what\": \"read_late\""));
    assert_true(is_reported("\"queued\": [\"train.py:44:step\"]"));
}

TEST_F(ordered, a_live_block_is_named_where_the_work_had_no_freed_one)
{
    guard_free(bench.guard, bench_malloc(&bench, 2 * PAGE));
    bench.stack = 41;
    queue("write_far", 44, bench_malloc(&bench, PAGE));
    guard_see_result(bench.guard, 0, cudaErrorIllegalAddress, 45);
    assert_true(is_reported("\"suspected_by\": \"bounds\""));
    assert_true(is_reported("\"allocated\": [\"train.py:41:step\"]"));
    assert_true(is_reported("probably beyond the bounds of a block of 2.0 MiB"));
}

TEST_F(ordered, work_that_is_over_is_no_suspect)
{
    char *freed = bench_malloc(&bench, PAGE);
    guard_free(bench.guard, freed);
    queue("over", 44, freed);
    guard_free(bench.guard, bench_malloc(&bench, 2 * PAGE)); /* which waits */
    guard_see_result(bench.guard, 0, cudaErrorIllegalAddress, 45);
    assert_true(is_reported("\"suspected_by\": \"latest_free\""));
    assert_true(is_reported("\"bytes\": 4194304"));
}

TEST_F(ordered, where_launches_are_waited_for_the_last_one_it_was)
{
    char *freed = bench_malloc(&bench, PAGE);
    guard_free(bench.guard, freed);
    queue("earlier", 44, freed);
    queue("last", 45, bench_malloc(&bench, 2 * PAGE));
    guard_see_result(bench.guard, 0, cudaErrorIllegalAddress, 46);
    assert_true(is_reported("\"what\": \"last\""));
    assert_true(is_reported("\"suspected_by\": \"bounds\""));
}

TEST_F(ordered, without_a_block_the_work_is_named)
{
    queue("lost", 44, NULL);
    guard_see_result(bench.guard, 0, cudaErrorIllegalAddress, 45);
    assert_true(is_reported("\"suspected_by\": \"nothing\""));
    assert_true(is_reported("\"what\": \"lost\""));
}

TEST_F(ordered, what_was_found_before_is_found_by_the_access_as_well)
{
    bench.stack = 41;
    char *block = bench_malloc(&bench, PAGE);
    bench.stack = 42;
    guard_free(bench.guard, block);
    guarded_block *b = block_index_find(&bench.guard->index, (uintptr_t)block);
    const finding before = {.kind = FINDING_USED_AFTER_FREE,
                            .moment = MOMENT_QUEUED,
                            .block = *b,
                            .evidence = EVIDENCE_HAPPENS_BEFORE,
                            .use = "a graph"};
    report_finding(bench.guard->report, &before);
    queue("a graph", 44, block);
    guard_see_result(bench.guard, 0, cudaErrorIllegalAddress, 45);
    assert_int_equal(guard_check(bench.guard), 1);
    assert_true(is_reported("\"found_by\": [\"happens_before\", \"fault\"]"));
}

TEST_F(unmapping, another_error_of_cuda_is_no_finding)
{
    guard_free(bench.guard, bench_malloc(&bench, PAGE));
    guard_see_result(bench.guard, 0, cudaErrorMemoryAllocation, 1);
    guard_see_result(bench.guard, 0, cudaSuccess, 1);
    assert_int_equal(guard_check(bench.guard), 0);
}
