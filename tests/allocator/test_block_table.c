/* What the adapters for CUDA's own allocators know of their blocks, where the host's memory or a
 * device is wanting. */
#include "adapters/block_table.h"
#include "gmd_test.h"
#include "host_memory.h"

#include <stdbool.h>

enum { BLOCKS = 1000 };

static void *place_of(int i)
{
    return (void *)(uintptr_t)(512u * (unsigned)(i + 1));
}

static gmd_stats figures_of(int device)
{
    gmd_stats stats = {.struct_size = sizeof stats};
    assert_true(block_table_read(device, &stats));
    return stats;
}

static void give_back(int i)
{
    table_entry *b = block_table_take(place_of(i));
    assert_non_null(b);
    block_table_given_back(b);
}

/* The first of the program: there is no table of blocks yet. */
TEST(without_host_memory_there_is_no_page_and_no_block)
{
    begin_refusals(1, true);
    assert_null(block_table_prepare(512, 0));
    assert_true(end_refusals());
    assert_null(block_table_find(place_of(0)));
    assert_null(block_table_take(place_of(0)));
}

TEST(a_table_that_cannot_grow_finds_its_blocks_all_the_same)
{
    for (int i = 0; i < BLOCKS; i++) {
        bool is_full = i == 256 || i == 512; /* and the first that is asked for is a larger table */
        begin_refusals(is_full ? 1 : UINT64_MAX, false);
        table_entry *b = block_table_prepare(512, 0);
        end_refusals();
        assert_non_null(b);
        block_table_enter(b, place_of(i));
    }
    for (int i = 0; i < BLOCKS; i++) {
        assert_ptr_equal(block_table_find(place_of(i))->memory, place_of(i));
    }
    assert_int_equal(figures_of(0).allocation_count, BLOCKS);
    for (int i = 0; i < BLOCKS; i++) {
        give_back(i);
    }
    assert_int_equal(figures_of(0).reserved_bytes, 0);
}

TEST(a_refusal_is_counted_and_a_failure_is_not)
{
    uint64_t before = figures_of(0).num_ooms;
    block_table_refuse(block_table_prepare(512, 0));
    block_table_drop(block_table_prepare(512, 0));
    assert_int_equal(figures_of(0).num_ooms, before + 1);
}

static bool is_at_an_odd_place(table_entry *b)
{
    return (uintptr_t)b->memory / 512 % 2;
}

static bool is_any(table_entry *b)
{
    (void)b;
    return true;
}

TEST(what_the_device_takes_back_late_counts_until_then)
{
    for (int i = 0; i < 4; i++) {
        block_table_enter(block_table_prepare(512, 1), place_of(i));
        block_table_keep(block_table_take(place_of(i)));
    }
    assert_int_equal(figures_of(1).allocated_bytes, 0);
    assert_int_equal(figures_of(1).reserved_bytes, 4 * 512);
    assert_false(block_table_retry(0, is_any)); /* of another device */
    assert_true(block_table_retry(1, is_at_an_odd_place));
    assert_int_equal(figures_of(1).reserved_bytes, 2 * 512);
    assert_true(block_table_retry(1, is_any));
    assert_int_equal(figures_of(1).reserved_bytes, 0);
}

TEST(a_device_that_no_machine_has_is_refused)
{
    gmd_stats stats = {.struct_size = sizeof stats};
    assert_null(block_table_prepare(512, -1));
    assert_null(block_table_prepare(512, ADAPTER_DEVICES));
    assert_false(block_table_read(-1, &stats));
    assert_false(block_table_read(ADAPTER_DEVICES, &stats));
    block_table_reset_peaks(-1);
    block_table_reset_peaks(ADAPTER_DEVICES);
}

TEST(statistics_of_another_size_are_refused)
{
    gmd_stats stats = {.struct_size = sizeof stats - 8};
    assert_false(block_table_read(0, &stats));
}
