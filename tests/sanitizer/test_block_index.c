#include "block_index.h"
#include "block_set.h"

#include "gmd_test.h"

#define MIB ((uint64_t)1 << 20)

TEST(a_byte_of_a_block_leads_to_it_and_the_next_one_does_not)
{
    block_index index = {0};
    guarded_block small = {.memory = 4096, .total = 1536},
                  large = {.memory = 64 * MIB, .total = 300 * MIB};
    assert_true(block_index_add(&index, &small));
    assert_true(block_index_add(&index, &large));
    assert_ptr_equal(block_index_find(&index, 4096 + 1535), &small);
    assert_null(block_index_find(&index, 4096 + 1536));
    assert_ptr_equal(block_index_find(&index, 364 * MIB - 1), &large);
    assert_null(block_index_find(&index, 64 * MIB - 1));
    block_index_release(&index);
}

TEST(a_block_that_is_removed_is_found_no_more)
{
    block_index index = {0};
    guarded_block one = {.memory = 4096, .total = 512}, other = {.memory = 4608, .total = 512};
    assert_true(block_index_add(&index, &one));
    assert_true(block_index_add(&index, &other));
    block_index_remove(&index, &one);
    assert_null(block_index_find(&index, 4096));
    assert_ptr_equal(block_index_find(&index, 4608), &other);
    block_index_release(&index);
}

TEST(many_blocks_come_and_go_in_the_set)
{
    enum { COUNT = 5000 };
    static guarded_block blocks[COUNT];
    block_set set = {0};
    for (uint64_t i = 0; i < COUNT; i++) {
        blocks[i] = (guarded_block){.address = (i * 7919 % COUNT + 1) * 512};
        assert_true(block_set_add(&set, &blocks[i]));
    }
    for (size_t i = 0; i < COUNT; i += 2) {
        assert_ptr_equal(block_set_take(&set, blocks[i].address), &blocks[i]);
    }
    for (size_t i = 0; i < COUNT; i++) {
        assert_ptr_equal(block_set_find(&set, blocks[i].address), i % 2 ? &blocks[i] : NULL);
    }
    assert_int_equal(set.count, COUNT / 2);
    block_set_release(&set);
}
