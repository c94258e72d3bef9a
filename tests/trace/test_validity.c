/* Each way in which a trace cannot be is found by the walk that is there for it. White-box: the
 * tests spoil traces that a reader has made. */
#include "gmd_pool_state.h"
#include "gmd_trace_validity.h"
#include "trace_test.h"

#include <string.h>

static const char text[] = "gmd-trace 1\n"
                           "devices 2\n"
                           "alloc a 1MiB s1 device 1\n"   /* 0 */
                           "use a s2\n"                   /* 1 */
                           "wait s1 s2\n"                 /* 2 */
                           "fraction 0.5\n"               /* 3 */
                           "fault cudaMalloc 1 2 every\n" /* 4 */
                           "begin_pool p\n"               /* 5 */
                           "end_pool p\n"                 /* 6 */
                           "destroy s2\n"                 /* 7 */
                           "free a\n"                     /* 8 */
                           "expect oom b 1MiB s1\n"       /* 9 */
                           "alloc b 1MiB s1\n"            /* 10 */
                           "device 1\n";                  /* 11 */

static gmd_trace read_text(void)
{
    gmd_trace trace;
    gmd_error error = {""};
    if (gmd_trace_parse(&trace, text, sizeof text - 1, "test", &error) != GMD_OK) {
        fail_msg("%s", error.text);
    }
    return trace;
}

/* The trace is refused while `*field`, of a list or a request, is `value`. */
#define EXPECT_FOUND(field, value, sentence)                                                       \
    do {                                                                                           \
        gmd_trace t = read_text();                                                                 \
        assert_null(gmd_trace_violation(&t));                                                      \
        __typeof__(t.field) before_ = t.field;                                                     \
        t.field = value;                                                                           \
        const char *violation_ = gmd_trace_violation(&t);                                          \
        t.field = before_;                                                                         \
        gmd_trace_free(&t);                                                                        \
        assert_non_null(violation_);                                                               \
        assert_string_equal(violation_, sentence);                                                 \
    } while (0)

TEST(a_list_that_cannot_be_is_found)
{
    EXPECT_FOUND(count, t.capacity + 1, "no list is longer than its room");
    EXPECT_FOUND(blocks.count, t.blocks.capacity + 1, "no list is longer than its room");
    EXPECT_FOUND(streams.count, 0, "the default stream and the main thread have entries");
    EXPECT_FOUND(conditions.device_count, GMD_MAX_DEVICES + 1,
                 "a trace has no more streams, threads, pools and devices than are possible");
}

TEST(each_name_without_an_entry_is_found)
{
    EXPECT_FOUND(requests[0].op, GMD_OP_COUNT, "each request is of a known kind");
    EXPECT_FOUND(requests[0].block, t.blocks.count, "each block has an entry");
    EXPECT_FOUND(requests[0].stream, t.streams.count, "each stream has an entry");
    EXPECT_FOUND(requests[2].other_stream, t.streams.count, "each stream has an entry");
    EXPECT_FOUND(requests[0].thread, 1, "each thread has an entry");
    EXPECT_FOUND(requests[0].device, 2, "each device is one of the trace's");
    EXPECT_FOUND(requests[11].device, 2, "each device is one of the trace's");
    EXPECT_FOUND(requests[5].pool, 1, "each pool has an entry");
    EXPECT_FOUND(requests[4].function, 1, "each function has a name");
    EXPECT_FOUND(functions.items[0], NULL, "each function has a name");
    EXPECT_FOUND(requests[7].stream, 0, "the default stream is never destroyed");
}

TEST(each_value_out_of_its_range_is_found)
{
    EXPECT_FOUND(requests[3].fraction, 1.5, "a fraction is from 0 to 1");
    EXPECT_FOUND(requests[3].fraction, -1, "a fraction is from 0 to 1");
    EXPECT_FOUND(requests[4].count, 0, "calls that fail count from 1");
    EXPECT_FOUND(requests[4].error, 0, "errors count from 1");
    EXPECT_FOUND(requests[4].every_later, 2, "later calls fail, or do not");
    EXPECT_FOUND(requests[0].expect, 7, "what is expected is known");
}

TEST(each_request_out_of_its_order_is_found)
{
    EXPECT_FOUND(requests[1].op, GMD_OP_FREE, "only live blocks are used and freed");
    EXPECT_FOUND(requests[9].expect, GMD_EXPECT_ANY, "a live block is not allocated again");
    EXPECT_FOUND(requests[1].device, 0, "a request on a block has the block's device");
    EXPECT_FOUND(requests[6].device, 1, "requests on pools come in order");
}

/* --- pools ------------------------------------------------------------------------------- */

TEST(each_state_of_pools_that_cannot_be_is_found)
{
    gmd_pool_state b = {0};
    assert_null(gmd_pool_state_violation(&b));
    b.open[1] = 3;
    assert_string_equal(gmd_pool_state_violation(&b), "an open pool is held");
    b.holders[1][2] = 1;
    assert_null(gmd_pool_state_violation(&b));
    b.graphs[1][2] = 2;
    assert_string_equal(gmd_pool_state_violation(&b), "each graph holds its pool");
    b.graphs[1][2] = 1;
    b.capturing = 1;
    assert_string_equal(gmd_pool_state_violation(&b), "a capture has a pool open");
    b.capturing = GMD_MAX_DEVICES + 1;
    assert_string_equal(gmd_pool_state_violation(&b), "a capture is on a device");
    b.capturing = 2;
    assert_null(gmd_pool_state_violation(&b));
    b.open[1] = GMD_MAX_POOLS + 1;
    assert_string_equal(gmd_pool_state_violation(&b), "the open pool is one of the device's");
}
