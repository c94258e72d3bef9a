/* Ordered address ranges against a plain array that is searched from its beginning. */
#include "gmd_intervals.h"
#include "gmd_random.h"
#include "gmd_test.h"

#include <stdlib.h>

enum { UNITS = 4096 }; /* addresses, each the start of at most one range */

typedef struct model {
    gmd_intervals set;
    struct {
        uint64_t end, value; /* end 0: no range starts here */
    } at[UNITS];
    uint32_t count;
    uint64_t random;
} model;

static uint64_t below(model *m, uint64_t limit)
{
    return gmd_random_mix(m->random += GMD_HASH_MULTIPLIER) % limit;
}

static uint64_t first_after(const model *m, uint64_t address)
{
    for (uint64_t i = 0; i < UNITS; i++) {
        if (m->at[i].end > address) {
            return i;
        }
    }
    return UNITS;
}

static void expect_same(const model *m, uint64_t address)
{
    uint64_t expected = first_after(m, address);
    const gmd_interval *found = gmd_intervals_after(&m->set, address);
    if (expected == UNITS) {
        assert_null(found);
        return;
    }
    assert_non_null(found);
    assert_int_equal(found->address, expected);
    assert_int_equal(found->end, m->at[expected].end);
    assert_int_equal(found->value, m->at[expected].value);
}

/* As long a range as there is room for, up to `longest`. */
static void insert(model *m, uint64_t from, uint64_t longest)
{
    uint64_t next = first_after(m, from);
    uint64_t room = (next == UNITS ? UNITS : next) - from;
    if (next <= from) {
        return;
    }
    uint64_t end = from + 1 + below(m, longest < room ? longest : room);
    m->at[from].end = end;
    m->at[from].value = below(m, 1000);
    m->count++;
    assert_true(gmd_intervals_insert(&m->set, from, end, m->at[from].value));
}

static void remove_from(model *m, uint64_t from)
{
    m->count -= m->at[from].end != 0;
    m->at[from].end = 0;
    gmd_intervals_remove(&m->set, from);
}

static void compare_over(uint64_t seed, uint64_t longest, unsigned steps)
{
    model *m = calloc(1, sizeof *m);
    assert_non_null(m);
    m->random = seed;
    for (unsigned i = 0; i < steps; i++) {
        bool grows = i / (steps / 8) % 2 == 0; /* filled and emptied in turns */
        uint64_t place = below(m, UNITS);
        if (below(m, 10) < (grows ? 8 : 2)) {
            insert(m, place, longest);
        } else {
            remove_from(m, place);
        }
        expect_same(m, below(m, UNITS));
        assert_int_equal(m->set.count, m->count);
    }
    for (uint64_t i = 0; i < UNITS; i++) {
        remove_from(m, i);
        expect_same(m, below(m, UNITS));
    }
    assert_int_equal(m->set.count, 0);
    gmd_intervals_free(&m->set);
    free(m);
}

TEST(short_ranges_are_found_as_in_a_plain_array)
{
    compare_over(1, 2, 40000);
}

TEST(long_ranges_that_reach_over_the_gaps_of_others_are_found)
{
    compare_over(2, 64, 20000);
    compare_over(3, 1000, 10000);
}

TEST(ranges_in_ascending_and_descending_order_are_found)
{
    for (int is_descending = 0; is_descending < 2; is_descending++) {
        model *m = calloc(1, sizeof *m);
        assert_non_null(m);
        for (uint64_t i = 0; i < UNITS; i++) {
            insert(m, is_descending ? UNITS - 1 - i : i, 1);
        }
        for (uint64_t i = 0; i < UNITS; i++) {
            expect_same(m, i);
        }
        gmd_intervals_free(&m->set);
        free(m);
    }
}

TEST(nothing_is_after_the_last_end)
{
    gmd_intervals set = {0};
    assert_null(gmd_intervals_after(&set, 0));
    assert_true(gmd_intervals_insert(&set, 10, 20, 1));
    assert_non_null(gmd_intervals_after(&set, 19));
    assert_null(gmd_intervals_after(&set, 20));
    gmd_intervals_free(&set);
}

TEST(removing_what_does_not_start_there_changes_nothing)
{
    gmd_intervals set = {0};
    gmd_intervals_remove(&set, 5);
    assert_true(gmd_intervals_insert(&set, 10, 20, 1));
    gmd_intervals_remove(&set, 11);
    gmd_intervals_remove(&set, 30);
    assert_int_equal(set.count, 1);
    gmd_intervals_free(&set);
}
