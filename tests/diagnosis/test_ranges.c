/* What is reserved when: ranges are taken, and given back in whole or in part. */
#include "gmd_test.h"
#include "reserved_ranges.h"

typedef struct map { /* of addresses 0, 1, ... 9: the rank is the address */
    address_ranks ranks;
    reserved_ranges ranges;
} map;

static int open_map(void **state)
{
    static map m;
    static const uint64_t addresses[] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9};
    uint32_t ranks[10];
    assert_true(address_ranks_make(&m.ranks, addresses, ranks, 10));
    assert_true(reserved_ranges_make(&m.ranges, &m.ranks));
    *state = &m;
    return 0;
}

static int close_map(void **state)
{
    map *m = *state;
    reserved_ranges_free(&m->ranges);
    address_ranks_free(&m->ranks);
    return 0;
}

FIXTURE(map, open_map, close_map);

static bool take(map *m, uint32_t from, uint32_t to)
{
    bool is_new;
    assert_true(reserved_ranges_take(&m->ranges, from, to,
                                     &(gmd_reserved){.taken = 1, .given = GMD_NEVER}, &is_new));
    return is_new;
}

static size_t give(map *m, uint32_t from, uint32_t to)
{
    size_t unknown = 0;
    assert_true(reserved_ranges_give(&m->ranges, from, to,
                                     &(gmd_reserved){.taken = GMD_BEFORE, .given = 2}, &unknown));
    return unknown;
}

TEST_F(map, a_range_holds_its_addresses_and_not_its_end)
{
    map *m = *state;
    assert_true(take(m, 2, 5));
    assert_non_null(reserved_ranges_find(&m->ranges, 4));
    assert_null(reserved_ranges_find(&m->ranges, 5));
}

TEST_F(map, what_is_reserved_cannot_be_taken_again)
{
    take(*state, 2, 5);
    assert_false(take(*state, 4, 8));
}

TEST_F(map, a_part_that_is_given_back_leaves_both_its_neighbours)
{
    map *m = *state;
    take(m, 1, 8);
    assert_int_equal(give(m, 3, 5), 0);
    assert_non_null(reserved_ranges_find(&m->ranges, 2));
    assert_null(reserved_ranges_find(&m->ranges, 4));
    assert_int_equal(reserved_ranges_find(&m->ranges, 6)->address, 5);
}

TEST_F(map, what_is_given_back_and_was_never_taken_was_there_before)
{
    map *m = *state;
    take(m, 3, 5);
    assert_int_equal(give(m, 1, 8), 2); /* 1 to 3, and 5 to 8 */
    assert_int_equal(m->ranges.items[1].taken, GMD_BEFORE);
    assert_int_equal(m->ranges.items[1].size, 2);
}

TEST_F(map, what_a_segment_has_more_than_the_events_was_there_before)
{
    map *m = *state;
    size_t unknown = 0;
    take(m, 3, 5);
    assert_true(
        reserved_ranges_fill(&m->ranges, 2, 7, &(gmd_reserved){.taken = GMD_BEFORE}, &unknown));
    assert_int_equal(unknown, 2);
}
