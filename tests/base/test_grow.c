/* Arrays that items are added to: room for what is asked for, at least the double each time, and
 * nothing changed where there is no memory for it. */
#include "gmd_grow.h"
#include "gmd_test.h"
#include "host_memory.h"

#include <stdlib.h>

typedef struct pair {
    uint64_t left, right;
} pair;

static pair *items;
static size_t capacity;

static int setup(void **state)
{
    (void)state;
    items = NULL;
    capacity = 0;
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    free(items);
    return 0;
}

FIXTURE(grow, setup, teardown);

TEST_F(grow, an_empty_array_gets_room)
{
    assert_true(GMD_GROW(&items, &capacity, 1));
    assert_non_null(items);
    assert_true(capacity >= 1);
}

TEST_F(grow, an_empty_array_of_large_items_gets_room_for_few)
{
    struct large {
        char bytes[1000];
    } *large_items = NULL;
    assert_true(GMD_GROW(&large_items, &capacity, 1));
    free(large_items);
    assert_in_range(capacity, 1, 4);
}

TEST_F(grow, what_has_room_stays_where_it_is)
{
    assert_true(GMD_GROW(&items, &capacity, 1));
    const pair *before = items;
    const size_t room = capacity;
    assert_true(GMD_GROW(&items, &capacity, room));
    assert_ptr_equal(items, before);
    assert_int_equal(capacity, room);
}

TEST_F(grow, items_survive_growth)
{
    for (size_t i = 0; i < 10000; i++) {
        assert_true(GMD_GROW(&items, &capacity, i + 1));
        items[i] = (pair){i, ~(uint64_t)i};
    }
    for (size_t i = 0; i < 10000; i++) {
        assert_true(items[i].left == i && items[i].right == ~(uint64_t)i);
    }
}

TEST_F(grow, one_more_is_room_for_twice_as_many)
{
    assert_true(GMD_GROW(&items, &capacity, 1000));
    const size_t room = capacity;
    assert_true(GMD_GROW(&items, &capacity, room + 1));
    assert_int_equal(capacity, 2 * room);
}

TEST_F(grow, many_at_once_get_room)
{
    assert_true(GMD_GROW(&items, &capacity, 1));
    assert_true(GMD_GROW(&items, &capacity, 123456));
    assert_true(capacity >= 123456);
    items[123455] = (pair){1, 2};
}

/* The bytes are counted before they are asked for: 2^60 + 1 pairs would be 16 B, modulo 2^64. */
TEST_F(grow, more_than_can_be_counted_is_refused)
{
    assert_true(GMD_GROW(&items, &capacity, 1));
    const size_t room = capacity;
    assert_false(GMD_GROW(&items, &capacity, ((size_t)1 << 60) + 1));
    assert_false(GMD_GROW(&items, &capacity, SIZE_MAX));
    assert_int_equal(capacity, room);
}

TEST_F(grow, without_memory_nothing_changes)
{
    assert_true(GMD_GROW(&items, &capacity, 1));
    items[0] = (pair){7, 8};
    const pair *before = items;
    const size_t room = capacity;
    begin_refusals(1, false);
    const bool has_grown = GMD_GROW(&items, &capacity, room + 1);
    assert_true(end_refusals());
    assert_false(has_grown);
    assert_ptr_equal(items, before);
    assert_int_equal(capacity, room);
    assert_int_equal(items[0].right, 8);
}

TEST_F(grow, a_capacity_of_32_bits_grows_likewise)
{
    uint32_t room = 0;
    for (uint32_t i = 0; i < 1000; i++) {
        assert_true(GMD_GROW(&items, &room, i + 1));
        assert_true(room > i);
        items[i].left = i;
    }
    assert_true(items[999].left == 999 && items[0].left == 0);
}

TEST_F(grow, a_capacity_beyond_32_bits_is_refused)
{
    uint32_t room = 0;
    size_t needed = (size_t)UINT32_MAX + 1;
    assert_false(GMD_GROW(&items, &room, needed));
    assert_null(items);
    assert_int_equal(room, 0);
}
