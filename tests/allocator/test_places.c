/* Places: where segments lie for the order of blocks. */
#include "gmd_size.h"
#include "gmd_test.h"
#include "places.h"

#define ABOVE_ALL ((uint64_t)1 << 52)

static places with_order(const uint64_t *given, size_t count)
{
    places p = {0};
    assert_true(places_set(&p, given, count));
    return p;
}

static uint64_t add(places *p, uint64_t address, uint64_t size)
{
    assert_true(places_reserve(p));
    return places_add(p, address, size);
}

TEST(without_an_order_a_place_is_the_address)
{
    places p = {0};
    assert_int_equal(add(&p, 3 * GMD_MIB, GMD_MIB), 3 * GMD_MIB);
    assert_int_equal(places_address(&p, 3 * GMD_MIB), 3 * GMD_MIB);
    assert_int_equal(places_place(&p, 3 * GMD_MIB), 3 * GMD_MIB);
    places_remove(&p, 3 * GMD_MIB);
    places_release(&p);
}

TEST(segments_get_the_places_that_were_given_in_turn)
{
    const uint64_t given[] = {8 * GMD_MIB, 4 * GMD_MIB};
    places p = with_order(given, 2);
    assert_int_equal(add(&p, GMD_GIB, GMD_MIB), given[0]);
    assert_int_equal(add(&p, 2 * GMD_GIB, GMD_MIB), given[1]);
    places_release(&p);
}

TEST(further_segments_lie_above_all_others_one_behind_the_other)
{
    const uint64_t given[] = {8 * GMD_MIB};
    places p = with_order(given, 1);
    add(&p, GMD_GIB, GMD_MIB);
    assert_int_equal(add(&p, 3 * GMD_GIB, 5 * GMD_MIB), ABOVE_ALL);
    assert_int_equal(add(&p, 2 * GMD_GIB, GMD_MIB), ABOVE_ALL + 5 * GMD_MIB);
    places_release(&p);
}

/* A segment at 8 to 12 MiB is there when one of 4 MiB is to have the second place. */
static uint64_t second_at(uint64_t place)
{
    const uint64_t given[] = {8 * GMD_MIB, place};
    places p = with_order(given, 2);
    add(&p, GMD_GIB, 4 * GMD_MIB);
    uint64_t second = add(&p, 2 * GMD_GIB, 4 * GMD_MIB);
    places_release(&p);
    return second;
}

TEST(a_place_where_another_segment_lies_is_not_taken)
{
    assert_int_equal(second_at(8 * GMD_MIB), ABOVE_ALL);
    assert_int_equal(second_at(12 * GMD_MIB - 512), ABOVE_ALL);
    assert_int_equal(second_at(4 * GMD_MIB + 512), ABOVE_ALL);
}

TEST(a_place_next_to_another_segment_is_taken)
{
    assert_int_equal(second_at(12 * GMD_MIB), 12 * GMD_MIB);
    assert_int_equal(second_at(4 * GMD_MIB), 4 * GMD_MIB);
}

TEST(a_place_that_would_end_above_all_given_ones_is_not_taken)
{
    assert_int_equal(second_at(ABOVE_ALL - 4 * GMD_MIB), ABOVE_ALL - 4 * GMD_MIB);
    assert_int_equal(second_at(ABOVE_ALL - 4 * GMD_MIB + 512), ABOVE_ALL);
    assert_int_equal(second_at(0), ABOVE_ALL);
}

TEST(a_place_is_free_again_when_its_segment_is_gone)
{
    const uint64_t given[] = {8 * GMD_MIB, 2 * GMD_MIB, 8 * GMD_MIB};
    places p = with_order(given, 3);
    add(&p, GMD_GIB, GMD_MIB);
    add(&p, 2 * GMD_GIB, GMD_MIB);
    places_remove(&p, given[0]);
    assert_int_equal(places_place(&p, GMD_GIB), 0);
    assert_int_equal(places_place(&p, 2 * GMD_GIB), given[1]);
    assert_int_equal(add(&p, 3 * GMD_GIB, GMD_MIB), given[2]);
    places_release(&p);
}

enum { MANY = 200 }; /* more than there is room for at first */

/* Segments of 1 MiB, every other MiB of addresses, in another order by place. */
TEST(every_byte_of_a_segment_has_a_place_and_comes_back_from_it)
{
    uint64_t given[MANY];
    for (uint64_t i = 0; i < MANY; i++) {
        given[i] = (i * 77 % MANY + 1) * 3 * GMD_MIB;
    }
    places p = with_order(given, MANY);
    for (uint64_t i = 0; i < MANY; i++) {
        assert_int_equal(add(&p, (2 * i + 1) * GMD_MIB, GMD_MIB), given[i]);
    }
    for (uint64_t i = 0; i < MANY; i++) {
        uint64_t first = (2 * i + 1) * GMD_MIB, last = first + GMD_MIB - 1;
        assert_int_equal(places_place(&p, first), given[i]);
        assert_int_equal(places_place(&p, last), given[i] + GMD_MIB - 1);
        assert_int_equal(places_address(&p, given[i]), first);
        assert_int_equal(places_address(&p, given[i] + GMD_MIB - 1), last);
    }
    places_release(&p);
}

TEST(what_is_in_no_segment_has_no_place)
{
    const uint64_t given[] = {8 * GMD_MIB};
    places p = with_order(given, 1);
    assert_int_equal(places_place(&p, GMD_GIB), 0);
    add(&p, GMD_GIB, GMD_MIB);
    assert_int_equal(places_place(&p, GMD_GIB - 1), 0);
    assert_int_equal(places_place(&p, GMD_GIB + GMD_MIB), 0);
    places_release(&p);
}
