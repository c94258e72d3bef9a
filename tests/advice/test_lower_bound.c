/* What no setting can go below. */
#include "gmd_test.h"

#include "gmd_size.h"
#include "lower_bound.h"

#define TAKE(number, size, on)                                                                     \
    {                                                                                              \
        .op = GMD_OP_ALLOC, .block = (number), .bytes = (size), .stream = (on)                     \
    }
#define GIVE(number)                                                                               \
    {                                                                                              \
        .op = GMD_OP_FREE, .block = (number)                                                       \
    }

static lower_bounds bounds_of(job_step *items, size_t count)
{
    const job_steps steps = {.items = items, .count = count, .block_count = 8, .stream_count = 2};
    lower_bounds bounds;
    gmd_error error = {""};
    assert_int_equal(lower_bound_find(&bounds, &steps, "job", &error), GMD_OK);
    return bounds;
}

#define BOUNDS(...)                                                                                \
    bounds_of((job_step[]){__VA_ARGS__}, sizeof((job_step[]){__VA_ARGS__}) / sizeof(job_step))

TEST(what_is_live_at_a_time_is_a_bound)
{
    const lower_bounds b =
        BOUNDS(TAKE(0, 4 * GMD_MIB, 0), TAKE(1, 6 * GMD_MIB, 0), GIVE(0), TAKE(2, 2 * GMD_MIB, 0));
    assert_int_equal(b.live, 10 * GMD_MIB);
    assert_int_equal(b.reserved, 10 * GMD_MIB);
}

TEST(a_block_is_a_multiple_of_512_bytes)
{
    assert_int_equal(BOUNDS(TAKE(0, 1, 0), TAKE(1, 513, 0)).live, 3 * 512);
}

TEST(small_and_large_blocks_share_no_segment)
{
    const lower_bounds b = BOUNDS(TAKE(0, 512, 0), TAKE(1, 2 * GMD_MIB, 0));
    assert_int_equal(b.reserved, 4 * GMD_MIB);
}

TEST(streams_share_no_segment)
{
    const lower_bounds b = BOUNDS(TAKE(0, 512, 0), TAKE(1, 512, 1));
    assert_int_equal(b.reserved, 4 * GMD_MIB);
}

TEST(a_segment_that_is_empty_can_be_given_back)
{
    const lower_bounds b = BOUNDS(TAKE(0, 512, 0), GIVE(0), TAKE(1, 512, 1));
    assert_int_equal(b.reserved, 2 * GMD_MIB);
}
