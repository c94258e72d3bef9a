/* Addresses by rank, and sets of ranks. */
#include "address_ranks.h"
#include "gmd_test.h"

#include <stdlib.h>

TEST(an_address_has_one_rank_however_often_it_is_named)
{
    const uint64_t addresses[] = {0x700, 0x100, 0x700, 0x300};
    uint32_t ranks[4];
    address_ranks r;
    assert_true(address_ranks_make(&r, addresses, ranks, 4));
    assert_int_equal(r.count, 3);
    assert_int_equal(ranks[0], 2);
    assert_int_equal(ranks[1], 0);
    assert_int_equal(ranks[2], 2);
    assert_int_equal(ranks[3], 1);
    address_ranks_free(&r);
}

TEST(no_addresses_have_no_ranks)
{
    address_ranks r;
    assert_true(address_ranks_make(&r, NULL, NULL, 0));
    assert_int_equal(r.count, 0);
    address_ranks_free(&r);
}

TEST(a_set_knows_what_lies_next_to_a_rank)
{
    rank_set set;
    assert_true(rank_set_make(&set, 100000));
    rank_set_add(&set, 5);
    rank_set_add(&set, 70000);
    assert_int_equal(rank_set_next(&set, 0), 5);
    assert_int_equal(rank_set_next(&set, 6), 70000);
    assert_int_equal(rank_set_next(&set, 70001), NO_RANK);
    assert_int_equal(rank_set_previous(&set, 69999), 5);
    assert_int_equal(rank_set_previous(&set, 4), NO_RANK);
    rank_set_free(&set);
}

/* Against an array of flags, from a fixed seed. */
TEST(a_set_agrees_with_an_array)
{
    enum { COUNT = 5000, STEPS = 20000 };
    static unsigned char flags[COUNT];
    rank_set set;
    uint32_t random = 18;
    assert_true(rank_set_make(&set, COUNT));
    for (int i = 0; i < STEPS; i++) {
        random = random * 1664525u + 1013904223u;
        uint32_t rank = (random >> 8) % COUNT, next = rank;
        flags[rank] = (random & 1) != 0;
        if (flags[rank]) {
            rank_set_add(&set, rank);
        } else {
            rank_set_remove(&set, rank);
        }
        while (next < COUNT && !flags[next]) {
            next++;
        }
        assert_int_equal(rank_set_next(&set, rank), next < COUNT ? next : NO_RANK);
    }
    rank_set_free(&set);
}
