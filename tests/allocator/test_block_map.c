/* Address -> block, against a plain array. */
#include "block_map.h"
#include "gmd_test.h"

#include <string.h>

#define COUNT 3000

static block *block_map_take(block_map *map, uint64_t address)
{
    block_map_slot *slot = block_map_find(map, address);
    block *b = slot ? block_map_block(*slot) : NULL;
    if (slot) {
        block_map_remove(map, slot);
    }
    return b;
}

TEST(finds_exactly_what_was_inserted_and_not_taken)
{
    static block blocks[COUNT];
    static bool is_in[COUNT];
    block_map map = {0};
    uint64_t random = 42;
    for (int i = 0; i < COUNT; i++) {
        blocks[i].address = (uint64_t)(i + 1) * 512; /* the pattern of device addresses */
    }
    for (int step = 0; step < 200000; step++) {
        random = random * 6364136223846793005u + 1442695040888963407u;
        int i = (int)((random >> 33) % COUNT);
        if (is_in[i]) {
            assert_ptr_equal(block_map_take(&map, blocks[i].address), &blocks[i]);
        } else {
            assert_null(block_map_take(&map, blocks[i].address));
            assert_true(block_map_reserve(&map));
            block_map_insert(&map, &blocks[i]);
        }
        is_in[i] = !is_in[i];
    }
    block_map_release(&map);
}

TEST(an_empty_map_and_address_zero_find_nothing)
{
    block_map map = {0};
    assert_null(block_map_take(&map, 512));
    assert_true(block_map_reserve(&map));
    assert_null(block_map_take(&map, 0));
    block_map_release(&map);
}

TEST(turnover_makes_it_no_larger)
{
    block b = {.address = 512};
    block_map map = {0};
    assert_true(block_map_reserve(&map));
    uint64_t mask = map.mask;
    for (int i = 0; i < COUNT; i++) {
        assert_true(block_map_reserve(&map));
        block_map_insert(&map, &b);
        assert_ptr_equal(block_map_take(&map, 512), &b);
    }
    assert_int_equal(map.mask, mask);
    block_map_release(&map);
}
