/* memory_limits.h: what an allocator may still have of a device. */
#include "gmd_size.h"
#include "gmd_test.h"
#include "memory_limits.h"

static uint64_t room_of(uint64_t budget, uint64_t held)
{
    memory_limits limits = {.budget[0] = 0};
    gmd_device_figures figures = {.capacity_bytes = GMD_GIB, .physical_bytes = held};
    limits_open(&limits, 0, GMD_GIB);
    limits_start(&limits, 0);
    limits_set_budget(&limits, 0, budget);
    return limits_room(&limits, 0, &figures, held);
}

TEST(the_room_of_a_budget_is_whole_pages)
{
    assert_int_equal(room_of(7 * GMD_MIB, 2 * GMD_MIB), 4 * GMD_MIB);
    assert_int_equal(room_of(3 * GMD_MIB, 2 * GMD_MIB), 0);
    assert_int_equal(room_of(6 * GMD_MIB, 2 * GMD_MIB), 4 * GMD_MIB);
}
