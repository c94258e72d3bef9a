#include "guard_test.h"

#include "checks.h"
#include "guard_state.h"
#include "patterns.h"
#include "reads.h"

#include "gmd_test.h"

#include <pthread.h>
#include <string.h>

static guard_bench bench;

static int open_cheap(void **state)
{
    (void)state;
    bench_open(&bench, "cheap,frees:at_once,quarantine:1MiB,quarantine_blocks:4,interval:0s");
    return 0;
}

static int close_bench(void **state)
{
    (void)state;
    bench_close(&bench);
    return 0;
}

FIXTURE(cheap, open_cheap, close_bench);

static bool is_reported(const char *text)
{
    return strstr(bench_report(&bench), text) != NULL;
}

static uint64_t word_at(const void *address)
{
    uint64_t word = 0;
    assert_int_equal(gmd_sim_peek((uintptr_t)address, &word, sizeof word), 0);
    return word;
}

TEST_F(cheap, a_block_is_aligned_as_the_allocators_are)
{
    assert_int_equal((uintptr_t)bench_malloc(&bench, 100) % 512, 0);
}

TEST_F(cheap, a_block_that_is_used_within_its_bounds_is_not_reported)
{
    char *block = bench_malloc(&bench, 5);
    bench_poke(block, "12345", 5);
    guard_free(bench.guard, block);
    assert_int_equal(guard_check(bench.guard), 0);
}

TEST_F(cheap, a_byte_past_the_end_is_reported_at_the_free)
{
    bench.stack = 41;
    char *block = bench_malloc(&bench, 5);
    bench_poke(block + 5, "x", 1);
    bench.stack = 42;
    guard_free(bench.guard, block);
    assert_true(is_reported("\"kind\": \"write_past_end\""));
    assert_true(is_reported("\"first_offset\": 5, \"last_offset\": 5, \"bytes\": 1"));
    assert_true(is_reported("\"allocated\": [\"train.py:41:step\"]"));
    assert_true(is_reported("\"freed\": [\"train.py:42:step\"]"));
}

TEST_F(cheap, a_byte_before_the_start_is_reported_with_its_place)
{
    char *block = bench_malloc(&bench, 5);
    bench_poke(block - 3, "x", 1);
    guard_free(bench.guard, block);
    assert_true(is_reported("\"kind\": \"write_before_start\""));
    assert_true(is_reported("\"first_offset\": -3"));
}

TEST_F(cheap, a_live_block_is_reported_by_a_check_and_once)
{
    char *block = bench_malloc(&bench, 512);
    bench_poke(block + 515, "x", 1);
    assert_int_equal(guard_check(bench.guard), 1);
    assert_int_equal(guard_check(bench.guard), 1);
    guard_free(bench.guard, block);
    assert_int_equal(guard_check(bench.guard), 1);
}

TEST_F(cheap, freed_memory_holds_the_pattern)
{
    char *block = bench_malloc(&bench, 64);
    guard_free(bench.guard, block);
    assert_int_equal(word_at(block), PATTERN_FREED);
    assert_int_equal(word_at(block + 56), PATTERN_FREED);
}

TEST_F(cheap, freed_memory_is_held_back)
{
    char *block = bench_malloc(&bench, 64);
    guard_free(bench.guard, block);
    assert_ptr_not_equal(bench_malloc(&bench, 64), block);
}

TEST_F(cheap, more_blocks_than_are_held_back_go_to_the_allocator)
{
    char *first = bench_malloc(&bench, 64);
    guard_free(bench.guard, first);
    for (int i = 0; i < 4; i++) {
        guard_free(bench.guard, bench_malloc(&bench, 64));
    }
    assert_ptr_equal(bench_malloc(&bench, 64), first);
}

TEST_F(cheap, more_bytes_than_are_held_back_go_to_the_allocator)
{
    char *first = bench_malloc(&bench, 600 << 10);
    guard_free(bench.guard, first);
    guard_free(bench.guard, bench_malloc(&bench, 600 << 10));
    assert_ptr_equal(bench_malloc(&bench, 600 << 10), first);
}

/* --- blocks that left the quarantine wait for a request of their size ----------------------- */

/* The block, which is free and has left the quarantine. */
static char *ready_block(size_t size)
{
    char *block = bench_malloc(&bench, size);
    guard_free(bench.guard, block);
    for (int i = 0; i < 4; i++) {
        guard_free(bench.guard, bench_malloc(&bench, 640));
    }
    return block;
}

static uint64_t requests_so_far(void)
{
    gmd_stats stats = {.struct_size = sizeof stats};
    assert_true(gmd_allocator_get_stats(bench.allocator, 0, &stats));
    return stats.allocation_count;
}

TEST_F(cheap, a_ready_block_serves_a_request_of_its_size)
{
    char *block = ready_block(100);
    uint64_t before = requests_so_far();
    assert_ptr_equal(bench_malloc(&bench, 100), block);
    assert_int_equal(requests_so_far(), before);
}

TEST_F(cheap, a_ready_block_serves_no_request_of_another_size_or_stream)
{
    gmd_error error = {""};
    cudaStream_t other = NULL;
    assert_int_equal(cudaStreamCreate(&other), cudaSuccess);
    char *block = ready_block(100);
    assert_ptr_not_equal(bench_malloc(&bench, 101), block);
    assert_ptr_not_equal(guard_malloc(bench.guard, 100, 0, other, &error), block);
}

TEST_F(cheap, a_ready_block_serves_no_request_for_a_private_pool)
{
    char *block = ready_block(100);
    guard_pools_changed(bench.guard, 1);
    assert_ptr_not_equal(bench_malloc(&bench, 100), block);
    guard_pools_changed(bench.guard, -1);
}

TEST_F(cheap, a_block_of_a_private_pool_does_not_become_ready)
{
    guard_pools_changed(bench.guard, 1);
    char *block = bench_malloc(&bench, 100);
    guard_pools_changed(bench.guard, -1);
    guard_free(bench.guard, block);
    for (int i = 0; i < 4; i++) {
        guard_free(bench.guard, bench_malloc(&bench, 640));
    }
    uint64_t before = requests_so_far();
    bench_malloc(&bench, 100);
    assert_int_not_equal(requests_so_far(), before);
}

TEST_F(cheap, the_zones_of_a_ready_block_are_whole)
{
    ready_block(100);
    bench.stack = 51;
    char *block = bench_malloc(&bench, 100);
    assert_int_equal(guard_check(bench.guard), 0);
    bench_poke(block + 100, "x", 1);
    guard_free(bench.guard, block);
    assert_true(is_reported("\"kind\": \"write_past_end\""));
    assert_true(is_reported("\"allocated\": [\"train.py:51:step\"]"));
}

TEST_F(cheap, the_next_owner_of_a_ready_block_does_not_answer_for_the_last_ones_zones)
{
    char *block = bench_malloc(&bench, 100);
    guard_free(bench.guard, block);
    bench_poke(block + 100, "late", 4);
    for (int i = 0; i < 4; i++) {
        guard_free(bench.guard, bench_malloc(&bench, 640));
    }
    assert_ptr_equal(bench_malloc(&bench, 100), block);
    guard_free(bench.guard, block);
    assert_int_equal(guard_check(bench.guard), 1);
    assert_true(is_reported("write_after_free"));
}

TEST_F(cheap, ready_blocks_go_back_where_all_that_is_held_back_does)
{
    char *block = ready_block(100);
    guard_release_all(bench.guard);
    uint64_t before = requests_so_far();
    bench_malloc(&bench, 100);
    assert_int_not_equal(requests_so_far(), before);
    (void)block;
}

TEST_F(cheap, a_late_write_is_reported_before_the_memory_is_used_again)
{
    bench.stack = 7;
    char *block = bench_malloc(&bench, 64);
    bench.stack = 8;
    guard_free(bench.guard, block);
    bench_poke(block + 8, "late", 4);
    guard_release_all(bench.guard);
    bench.stack = 9;
    bench_malloc(&bench, 64);
    assert_true(is_reported("\"kind\": \"write_after_free\""));
    assert_true(is_reported("\"noticed_at\": \"reuse\""));
    assert_true(is_reported("\"first_offset\": 8, \"last_offset\": 11, \"bytes\": 4"));
    assert_true(is_reported("\"freed\": [\"train.py:8:step\"]"));
    assert_true(is_reported("\"noticed_in\": [\"train.py:9:step\"]"));
}

TEST_F(cheap, a_late_write_to_what_is_held_back_is_reported_by_a_check)
{
    char *block = bench_malloc(&bench, 64);
    guard_free(bench.guard, block);
    bench_poke(block, "late", 4);
    assert_int_equal(guard_check(bench.guard), 1);
    assert_true(is_reported("\"noticed_at\": \"check\""));
}

static uint64_t findings_of_a_late_write(const char *allocated, size_t size)
{
    bench.text = allocated;
    bench.stack++; /* or it would be the same cause */
    char *block = bench_malloc(&bench, size);
    guard_free(bench.guard, block);
    bench_poke(block, "late", 4);
    return guard_check(bench.guard);
}

TEST_F(cheap, what_a_graph_of_pytorchs_keeps_for_itself_is_none_of_the_programs)
{
    static const char kept[] = "/x/torch/cuda/graphs.py:115:capture_begin\n/x/train.py:1:main\n";
    static const char around[] = "/x/train.py:9:layer\n/x/torch/cuda/graphs.py:115:capture_begin\n";
    assert_int_equal(findings_of_a_late_write(kept, 8), 0);
    assert_int_equal(findings_of_a_late_write(kept, 16), 1);
    assert_int_equal(findings_of_a_late_write(around, 8), 2);
}

TEST_F(cheap, who_has_the_memory_now_is_reported)
{
    char *block = bench_malloc(&bench, 64);
    guard_free(bench.guard, block);
    bench_poke(block, "late", 4);
    bench.stack = 77;
    for (int i = 0; i < 4; i++) { /* the fourth pushes it out, but nobody looks before the malloc */
        guard_free(bench.guard, bench_malloc(&bench, 64));
    }
    assert_true(is_reported("write_after_free"));
}

TEST_F(cheap, a_block_that_is_freed_again_is_reported)
{
    char *block = bench_malloc(&bench, 64);
    guard_free(bench.guard, block);
    guard_free(bench.guard, block);
    assert_true(is_reported("\"kind\": \"bad_free\""));
}

TEST_F(cheap, what_is_held_back_serves_when_memory_is_short)
{
    enum { MOST = 40 << 20 };
    bench_close(&bench);
    bench_open(&bench, "cheap,quarantine:1GiB,interval:0s");
    guard_free(bench.guard, bench_malloc(&bench, MOST));
    assert_non_null(bench_malloc(&bench, MOST));
}

TEST_F(cheap, a_request_that_cannot_be_served_is_refused_without_a_reason)
{
    gmd_error error = {""};
    assert_null(guard_malloc(bench.guard, (size_t)1 << 40, 0, NULL, &error));
    assert_string_equal(error.text, "");
}

TEST_F(cheap, a_recorded_stream_is_waited_for)
{
    cudaStream_t other = NULL;
    assert_int_equal(cudaStreamCreate(&other), cudaSuccess);
    char *block = bench_malloc(&bench, 64);
    guard_record_stream(bench.guard, block, other);
    guard_free(bench.guard, block);
    assert_int_equal(guard_check(bench.guard), 0);
    for (int i = 0; i < 4; i++) {
        guard_free(bench.guard, bench_malloc(&bench, 64));
    }
    assert_int_equal(gmd_sim_pending(NULL), 0);
    assert_ptr_equal(bench_malloc(&bench, 64), block);
}

TEST_F(cheap, blocks_of_a_capture_are_left_alone)
{
    cudaStream_t captured = NULL;
    cudaGraph_t graph = NULL;
    gmd_error error = {""};
    assert_int_equal(cudaStreamCreate(&captured), cudaSuccess);
    bench_malloc(&bench, 64);
    assert_int_equal(cudaStreamBeginCapture(captured, cudaStreamCaptureModeRelaxed), cudaSuccess);
    char *block = guard_malloc(bench.guard, 512, 0, captured, &error);
    bench_poke(block, "replayed", 8);
    guard_free(bench.guard, block);
    assert_int_equal(cudaStreamEndCapture(captured, &graph), cudaSuccess);
    uint64_t word = 0;
    memcpy(&word, "replayed", sizeof word);
    assert_int_equal(word_at(block), word);
    assert_int_equal(guard_check(bench.guard), 0);
    cudaGraphDestroy(graph);
}

TEST_F(cheap, new_memory_is_left_as_it_is)
{
    char *block = bench_malloc(&bench, 64);
    assert_int_not_equal(word_at(block), PATTERN_FRESH);
}

static int open_full(void **state)
{
    (void)state;
    bench_open(&bench, "full,zone:512,interval:0s");
    return 0;
}

FIXTURE(full, open_full, close_bench);

TEST_F(full, new_memory_is_not_a_number)
{
    char *block = bench_malloc(&bench, 64);
    float value = 0;
    assert_int_equal(gmd_sim_peek((uintptr_t)block, &value, sizeof value), 0);
    assert_true(value != value);
}

TEST_F(full, a_read_of_what_nobody_wrote_is_reported)
{
    char *block = bench_malloc(&bench, 64);
    bench.stack = 5;
    guard_watch_read(bench.guard, block, 64, NULL, true);
    assert_true(is_reported("\"kind\": \"uninitialised_read\""));
    assert_true(is_reported("\"noticed_in\": [\"train.py:5:step\"]"));
}

TEST_F(full, a_read_of_what_was_written_is_not_reported)
{
    char *block = bench_malloc(&bench, 8);
    bench_poke(block, "12345678", 8);
    guard_watch_read(bench.guard, block, 8, NULL, true);
    assert_int_equal(guard_check(bench.guard), 0);
}

TEST_F(full, a_copy_of_what_nobody_wrote_is_not_reported)
{
    char *block = bench_malloc(&bench, 64);
    guard_watch_read(bench.guard, block, 64, NULL, false);
    assert_int_equal(guard_check(bench.guard), 0);
}

TEST_F(full, a_read_of_what_was_freed_is_reported)
{
    char *block = bench_malloc(&bench, 64);
    guard_free(bench.guard, block);
    guard_watch_read(bench.guard, block, 64, NULL, false);
    assert_true(is_reported("\"kind\": \"read_after_free\""));
}

enum { THREADS = 4, TURNS = 300 };

static void *work(void *unused)
{
    gmd_error error = {""};
    (void)unused;
    for (size_t i = 0; i < TURNS; i++) {
        char *block = guard_malloc(bench.guard, 64 + i % 7 * 300, 0, NULL, &error);
        if (i % 3 == 0) {
            guard_record_stream(bench.guard, block, (cudaStream_t)0x1);
        }
        guard_free(bench.guard, block);
        if (i % 100 == 0) {
            guard_check(bench.guard);
        }
    }
    return NULL;
}

static void run_threads(void)
{
    pthread_t threads[THREADS];
    for (size_t i = 0; i < THREADS; i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, work, NULL), 0);
    }
    for (size_t i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
    }
}

static void expect_found(uint64_t address, uint64_t number, bool is_freed)
{
    const guarded_block *b = guard_find(bench.guard, address);
    assert_non_null(b);
    assert_int_equal(b->number, number);
    assert_int_equal(b->freed_ns != 0, is_freed);
}

/* A live block, then one that was freed; `number` is the first of both. */
static void find_two(uint64_t number)
{
    uint64_t live = (uintptr_t)bench_malloc(&bench, 1000);
    uint64_t freed = (uintptr_t)bench_malloc(&bench, 1000);
    guard_free(bench.guard, (void *)(uintptr_t)freed);
    expect_found(live, number, false);
    expect_found(live + 999, number, false);
    expect_found(live - 1, number, false); /* its zones are the block's */
    expect_found(freed, number + 1, true);
    assert_null(guard_find(bench.guard, 4096));
}

/* Without an index all blocks are gone through; `order:watched` and `reads:watched` have one. */
TEST_F(cheap, a_byte_is_found_in_its_block_live_or_held_back)
{
    static const char *const options[] = {"cheap,frees:at_once,interval:0s", "cheap,interval:0s",
                                          "cheap,reads:watched,interval:0s"};
    for (size_t i = 0; i < sizeof options / sizeof *options; i++) {
        bench_close(&bench);
        bench_open(&bench, options[i]);
        find_two(1);
    }
}

/* unseen/bounds_next_segment, in small: what a write beyond the zone changes is a neighbour's. */
TEST_F(cheap, a_write_that_skips_the_zone_is_seen_where_the_zone_is_as_wide)
{
    static const char *const options[] = {"cheap,frees:at_once,interval:0s",
                                          "cheap,frees:at_once,zone:8KiB,interval:0s"};
    for (size_t i = 0; i < sizeof options / sizeof *options; i++) {
        bench_close(&bench);
        bench_open(&bench, options[i]);
        char *blocks[8];
        for (size_t at = 0; at < 8; at++) {
            blocks[at] = bench_malloc(&bench, 4096);
        }
        bench_poke(blocks[0] + 8192, "x", 1); /* 4096 past the end */
        assert_int_equal(guard_check(bench.guard), i);
    }
}

static int open_gathering(void **state)
{
    (void)state;
    bench_open(&bench, "cheap,interval:0s");
    return 0;
}

FIXTURE(gathering, open_gathering, close_bench);

TEST_F(gathering, freed_memory_is_filled_with_the_next_request)
{
    char *block = bench_malloc(&bench, 64);
    guard_free(bench.guard, block);
    bench_malloc(&bench, 64);
    assert_int_equal(word_at(block), PATTERN_FREED);
}

TEST_F(gathering, freed_memory_is_filled_when_there_is_enough_of_it)
{
    char *blocks[8];
    for (size_t i = 0; i < 8; i++) {
        blocks[i] = bench_malloc(&bench, 64);
    }
    for (size_t i = 0; i < 8; i++) {
        guard_free(bench.guard, blocks[i]);
    }
    assert_int_equal(word_at(blocks[0]), PATTERN_FREED);
}

TEST_F(gathering, blocks_of_two_streams_are_each_filled)
{
    cudaStream_t other = NULL;
    gmd_error error = {""};
    assert_int_equal(cudaStreamCreate(&other), cudaSuccess);
    char *one = bench_malloc(&bench, 64), *two = guard_malloc(bench.guard, 64, 0, other, &error);
    guard_free(bench.guard, one);
    guard_free(bench.guard, two);
    assert_int_equal(word_at(one), PATTERN_FREED);
    guard_check(bench.guard);
    assert_int_equal(word_at(two), PATTERN_FREED);
}

TEST_F(gathering, a_byte_past_the_end_is_reported_by_a_check)
{
    char *block = bench_malloc(&bench, 5);
    bench_poke(block + 5, "x", 1);
    guard_free(bench.guard, block);
    assert_int_equal(guard_check(bench.guard), 1);
}

TEST_F(gathering, threads_may_request_at_once)
{
    run_threads();
    assert_int_equal(guard_check(bench.guard), 0);
}

static int open_raising(void **state)
{
    (void)state;
    bench_open(&bench, "cheap,frees:at_once,on_finding:raise");
    return 0;
}

FIXTURE(raising, open_raising, close_bench);

TEST_F(raising, a_finding_refuses_the_next_request_once_and_says_why)
{
    gmd_error error = {""};
    char *block = bench_malloc(&bench, 512);
    bench_poke(block + 512, "x", 1);
    guard_free(bench.guard, block);
    assert_null(guard_malloc(bench.guard, 512, 0, NULL, &error));
    assert_non_null(strstr(error.text, "write past the end of a block: 1 byte changed"));
    assert_non_null(guard_malloc(bench.guard, 512, 0, NULL, &error));
}

TEST_F(cheap, threads_may_free_at_once)
{
    run_threads();
    assert_int_equal(guard_check(bench.guard), 0);
}
