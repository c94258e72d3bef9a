/* Expandable segments: pages come and go under addresses that stay. */
#include "allocator_test.h"

#define EXPANDABLE "expandable_segments:True"

TEST_F(bench, a_segment_grows_where_it_ends)
{
    bench b = open_bench(GMD_GIB, EXPANDABLE);
    uint64_t first = take(&b, 20 * GMD_MIB), second = take(&b, 30 * GMD_MIB);
    assert_int_equal(second, first + 20 * GMD_MIB);
    assert_int_equal(device_state().reservation_count, 1);
    assert_int_equal(device_state().mapped_bytes, 60 * GMD_MIB);
}

TEST_F(bench, small_and_large_blocks_have_segments_of_their_own)
{
    bench b = open_bench(GMD_GIB, EXPANDABLE);
    take(&b, 512);
    take(&b, 2 * GMD_MIB);
    assert_int_equal(device_state().reservation_count, 2);
    assert_int_equal(device_state().mapped_bytes, 22 * GMD_MIB);
}

TEST_F(bench, free_pages_are_given_back_and_the_hole_is_used_again)
{
    bench b = open_bench(GMD_GIB, EXPANDABLE);
    uint64_t first = take(&b, 40 * GMD_MIB), second = take(&b, 40 * GMD_MIB);
    give(&b, first);
    gmd_allocator_empty_cache(b.a);
    assert_int_equal(device_state().mapped_bytes, 40 * GMD_MIB);
    assert_int_equal(take(&b, 40 * GMD_MIB), first);
    (void)second;
}

TEST_F(bench, pages_with_a_live_block_stay)
{
    bench b = open_bench(GMD_GIB, EXPANDABLE);
    uint64_t first = take(&b, 30 * GMD_MIB), second = take(&b, 5 * GMD_MIB);
    give(&b, first);
    gmd_allocator_empty_cache(b.a);
    assert_int_equal(device_state().mapped_bytes, 20 * GMD_MIB); /* where 30 to 35 MiB lie */
    (void)second;
}

/* A new stream may have the handle of one that is gone (seen on an H200): a free that names it
 * tells that it is in use. */
TEST_F(bench, the_work_of_a_stream_with_a_forgotten_handle_is_waited_for)
{
    bench b = open_bench(GMD_GIB, EXPANDABLE);
    uint64_t first = take_on(&b, 2 * GMD_MIB, b.s2);
    gmd_allocator_forget_stream(b.a, 0, b.s2);
    gmd_sim_access access = {first, 2 * GMD_MIB, true};
    assert_int_equal(gmd_sim_launch(b.s2, 1000, &access, 1), cudaSuccess);
    assert_true(gmd_allocator_free(b.a, (void *)(uintptr_t)first, 0, b.s2));
    gmd_allocator_empty_cache(b.a);
    assert_int_equal(cudaDeviceSynchronize(), cudaSuccess); /* else lost: work without memory */
    assert_int_equal(device_state().mapped_bytes, 0);
}

TEST_F(bench, with_everything_freed_the_addresses_go_too)
{
    bench b = open_bench(GMD_GIB, EXPANDABLE);
    give(&b, take(&b, 40 * GMD_MIB));
    give(&b, take(&b, 512));
    gmd_allocator_empty_cache(b.a);
    assert_int_equal(device_state().reservation_count, 0);
    assert_int_equal(device_state().handle_count, 0);
}

/* Defect (2) of design.md, section 9: pages of 20 MiB pass a limit that the request keeps to. */
TEST_F(bench, reserved_memory_never_passes_the_limit)
{
    bench b = open_bench(100 * GMD_MIB, EXPANDABLE);
    assert_true(gmd_allocator_set_memory_fraction(b.a, 0.5, 0));
    take(&b, 40 * GMD_MIB);
    assert_int_equal(take(&b, 9 * GMD_MIB), 0);
    assert_int_equal(stats_of(&b).reserved_bytes, 40 * GMD_MIB);
}

TEST_F(bench, as_a_quirk_it_passes_the_limit_by_a_part_of_a_page)
{
    bench b = open_bench(100 * GMD_MIB, EXPANDABLE);
    gmd_allocator_set_quirk(b.a, GMD_QUIRK_EXPANDABLE_LIMIT, true);
    assert_true(gmd_allocator_set_memory_fraction(b.a, 0.6, 0));
    take(&b, 40 * GMD_MIB);
    take(&b, 15 * GMD_MIB);
    gmd_allocator_set_memory_fraction(b.a, 0.7, 0);
    assert_true(take_on(&b, 10 * GMD_MIB, b.s2) != 0);
    assert_int_equal(stats_of(&b).reserved_bytes, 80 * GMD_MIB);
    assert_int_equal(gmd_allocator_quirk_count(b.a, GMD_QUIRK_EXPANDABLE_LIMIT), 1);
}

/* The order says where a segment counts as lying; memory is where the device has the addresses. */
TEST_F(bench, with_an_order_blocks_have_memory_at_their_addresses)
{
    bench b = open_bench(GMD_GIB, EXPANDABLE);
    const uint64_t given[] = {64 * GMD_GIB, 32 * GMD_GIB};
    assert_true(gmd_allocator_order_segments(b.a, 0, given, 2));
    uint64_t large = take(&b, 50 * GMD_MIB), small = take(&b, 512);
    assert_true(gmd_sim_is_backed(large, 50 * GMD_MIB, 0, NULL));
    assert_true(gmd_sim_is_backed(small, 512, 0, NULL));
    assert_int_equal(gmd_allocator_place_of(b.a, 0, large), given[0]);
    assert_int_equal(gmd_allocator_place_of(b.a, 0, small), given[1]);
    give(&b, large);
    gmd_allocator_empty_cache(b.a);
    assert_int_equal(device_state().mapped_bytes, 2 * GMD_MIB);
    close_bench(&b);
    assert_int_equal(device_state().reservation_count, 0);
}

typedef struct requested { /* of the block that begins at an address */
    uint64_t address, size;
} requested;

static void note_requested(void *context, const gmd_block_info *info)
{
    requested *r = context;
    r->size = info->address == r->address ? info->requested_size : r->size;
}

/* As in torch, where what is unmapped is the block that was there before. */
TEST_F(bench, what_is_left_in_front_of_unmapped_pages_was_requested_by_nobody)
{
    bench b = open_bench(GMD_GIB, EXPANDABLE);
    uint64_t first = take(&b, 5 * GMD_MIB), second = take(&b, 50 * GMD_MIB);
    give(&b, second);
    gmd_allocator_empty_cache(b.a);
    requested left = {.address = first + 5 * GMD_MIB, .size = UINT64_MAX};
    assert_true(gmd_allocator_walk(b.a, 0, note_requested, &left));
    assert_int_equal(left.size, 0);
}

static void no_page_is_lost_when_a_call_fails(const char *function, int error)
{
    for (uint64_t nth = 1; nth <= 3; nth++) {
        bench b = open_bench(GMD_GIB, EXPANDABLE);
        gmd_sim_fault(function, nth, true, error);
        uint64_t first = take(&b, 50 * GMD_MIB);
        assert_true(first == 0 || nth > 1);
        gmd_sim_clear_faults();
        assert_true(take(&b, 50 * GMD_MIB) != 0);
        expect_no_error_left();
        close_bench(&b);
        assert_int_equal(device_state().mapped_bytes, 0);
        assert_int_equal(device_state().handle_count, 0);
        assert_int_equal(device_state().reservation_count, 0);
    }
}

/* pytorch#188008 */
TEST(a_map_that_fails_midway_is_undone)
{
    no_page_is_lost_when_a_call_fails("cuMemMap", CUDA_ERROR_OUT_OF_MEMORY);
}

TEST(a_create_that_fails_midway_is_undone)
{
    no_page_is_lost_when_a_call_fails("cuMemCreate", CUDA_ERROR_OUT_OF_MEMORY);
}

TEST(an_access_that_is_not_given_is_undone)
{
    no_page_is_lost_when_a_call_fails("cuMemSetAccess", CUDA_ERROR_INVALID_VALUE);
}

TEST_F(bench, an_unmap_that_is_refused_keeps_the_pages)
{
    bench b = open_bench(GMD_GIB, EXPANDABLE);
    uint64_t first = take(&b, 40 * GMD_MIB);
    give(&b, first);
    gmd_sim_fault("cuMemUnmap", 2, true, CUDA_ERROR_INVALID_VALUE);
    gmd_allocator_empty_cache(b.a);
    gmd_sim_clear_faults();
    assert_int_equal(stats_of(&b).reserved_bytes, 20 * GMD_MIB);
    assert_int_equal(take(&b, 40 * GMD_MIB), first);
    close_bench(&b);
    assert_int_equal(device_state().mapped_bytes, 0);
}

TEST_F(bench, a_request_that_no_device_serves_reserves_nothing)
{
    bench b = open_bench(GMD_GIB, EXPANDABLE);
    assert_int_equal(take(&b, 2 * GMD_GIB), 0);
    assert_int_equal(take(&b, UINT64_MAX - 5), 0);
    assert_int_equal(device_state().reservation_count, 0);
}

TEST_F(bench, unmapping_waits_for_the_work_that_uses_the_pages)
{
    bench b = open_bench(GMD_GIB, EXPANDABLE);
    uint64_t first = take(&b, 20 * GMD_MIB);
    gmd_sim_access access = {.address = first, .size = 512, .is_write = true};
    assert_int_equal(gmd_sim_launch(b.s1, 1000, &access, 1), cudaSuccess);
    give(&b, first);
    cudaSetDevice(0);
    gmd_allocator_empty_cache(b.a);
    assert_int_equal(cudaDeviceSynchronize(), cudaSuccess); /* the kernel met its memory */
    expect_no_error_left();
}
