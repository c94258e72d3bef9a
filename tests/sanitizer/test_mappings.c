/* Addresses and memory of mappings (mappings.h), on the simulated device. */
#include "mappings.h"

#include "gmd_cuda.h"
#include "gmd_sim.h"
#include "gmd_size.h"
#include "gmd_test.h"

static mappings *m;

static int open_mappings(void **state)
{
    gmd_sim_config config;
    gmd_error error = {""};
    (void)state;
    gmd_sim_default_config(&config);
    config.capacity_bytes = 128 * GMD_GIB;
    assert_int_equal(gmd_sim_reset(&config), 0);
    assert_int_equal(mappings_create(&m, 1, &error), GMD_OK);
    return 0;
}

static int close_mappings(void **state)
{
    (void)state;
    mappings_destroy(m);
    return 0;
}

FIXTURE(mapped, open_mappings, close_mappings);

static mapping add(uint64_t bytes)
{
    mapping made = {.address = 0};
    assert_true(mappings_add(m, 0, bytes, &made));
    assert_int_equal(made.bytes, bytes);
    return made;
}

static void take_away(mapping *which)
{
    assert_true(mappings_take_away(m, 0, which));
    assert_int_equal(which->memory, 0);
}

TEST_F(mapped, two_mappings_have_a_hole_between)
{
    mapping a = add(MAPPING_PAGE), b = add(MAPPING_PAGE);
    assert_true(b.address - (a.address + a.bytes) >= 32 * GMD_MIB);
    take_away(&a);
    take_away(&b);
}

TEST_F(mapped, memory_that_is_taken_away_serves_the_next_of_its_size)
{
    mapping a = add(4 * GMD_MIB);
    unsigned long long memory = a.memory;
    take_away(&a);
    mapping other = add(MAPPING_PAGE), b = add(4 * GMD_MIB);
    assert_int_not_equal(other.memory, memory);
    assert_int_equal(b.memory, memory);
    assert_int_not_equal(b.address, a.address);
    take_away(&b);
    take_away(&other);
}

TEST_F(mapped, memory_that_is_mapped_nowhere_can_go_back)
{
    mapping a = add(100 * GMD_GIB), b = {.address = 0};
    take_away(&a);
    assert_false(mappings_add(m, 0, 50 * GMD_GIB, &b));
    mappings_release_spares(m, 0);
    b = add(50 * GMD_GIB);
    take_away(&b);
}

TEST_F(mapped, addresses_are_used_again_after_terabytes_only)
{
    enum { TURNS = 700 }; /* of 36 GiB: 25 TiB */
    mapping first = add(36 * GMD_GIB);
    take_away(&first);
    for (int i = 0; i < TURNS; i++) {
        mapping next = add(36 * GMD_GIB);
        assert_int_not_equal(next.address, first.address);
        take_away(&next);
    }
    assert_true(gmd_sim_call_count("cuMemAddressFree") > 0);
    assert_in_range(
        gmd_sim_call_count("cuMemAddressReserve") - gmd_sim_call_count("cuMemAddressFree"), 1, 17);
}

TEST_F(mapped, a_range_in_which_something_is_mapped_stays)
{
    mapping kept = add(MAPPING_PAGE);
    for (int i = 0; i < 700; i++) {
        mapping next = add(36 * GMD_GIB);
        take_away(&next);
    }
    assert_int_equal(cudaMemset((void *)(uintptr_t)kept.address, 0, 1), cudaSuccess);
    take_away(&kept);
}

TEST_F(mapped, a_driver_that_refuses_a_range_of_that_size_is_asked_for_a_smaller_one)
{
    assert_int_equal(gmd_sim_fault("cuMemAddressReserve", 1, false, 2), 0);
    assert_int_equal(gmd_sim_fault("cuMemAddressReserve", 2, false, 2), 0);
    mapping a = add(MAPPING_PAGE);
    take_away(&a);
}

TEST_F(mapped, what_cannot_be_mapped_leaves_nothing_behind)
{
    mapping none = {.address = 0};
    assert_int_equal(gmd_sim_fault("cuMemSetAccess", 1, false, 2), 0);
    assert_false(mappings_add(m, 0, 100 * GMD_GIB, &none));
    mapping a = add(100 * GMD_GIB);
    take_away(&a);
}
