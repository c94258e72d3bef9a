/* Which freed blocks may still wait for other streams, as far as the requests tell. */
#include "oracle_test.h"

#include "waiting.h"

typedef struct run {
    waiting_blocks waiting;
    gmd_stats stats, before;
    uint64_t index;
    uint64_t excess;
} run;

static bool ask(run *r, gmd_request request, const gmd_use *use, uint64_t recorded)
{
    const gmd_live_block block = {.stream = 1};
    const gmd_view view = {.request = &request,
                           .request_index = r->index++,
                           .block = request.op <= GMD_OP_FREE ? &block : NULL,
                           .stats.now = &r->stats,
                           .stats.before = &r->before,
                           .uses.list = use,
                           .uses.count = use != NULL,
                           .uses.recorded = recorded};
    bool is_late = waiting_after(&r->waiting, &view, &r->excess);
    r->before = r->stats;
    return is_late;
}

/* The block of 512 B stays active. */
static void release_used_on(run *r, uint32_t stream)
{
    const gmd_use use = {.stream = stream};
    r->stats.allocated_bytes -= 512;
    ask(r, (gmd_request){.op = GMD_OP_FREE}, &use, 0);
}

static bool allocate(run *r)
{
    r->stats.allocated_bytes += 512;
    r->stats.active_bytes += 512;
    return ask(r, (gmd_request){.op = GMD_OP_ALLOC}, NULL, 0);
}

static void synchronise(run *r, uint32_t stream)
{
    ask(r, (gmd_request){.op = GMD_OP_SYNC, .stream = stream}, NULL, 0);
}

static run two_blocks(void)
{
    run r = {.excess = 0};
    allocate(&r);
    allocate(&r);
    return r;
}

TEST(a_block_may_wait_for_a_stream_that_nobody_waited_for)
{
    run r = two_blocks();
    release_used_on(&r, 2);
    synchronise(&r, 3);
    assert_false(allocate(&r));
}

TEST(a_block_whose_streams_the_host_waited_for_is_late)
{
    run r = two_blocks();
    release_used_on(&r, 2);
    release_used_on(&r, 3);
    synchronise(&r, 3);
    assert_true(allocate(&r));
    assert_int_equal(r.excess, 512);
}

TEST(a_wait_for_the_device_is_one_for_all_streams)
{
    run r = two_blocks();
    release_used_on(&r, 2);
    release_used_on(&r, 100); /* beyond those that are told apart */
    synchronise(&r, GMD_ALL_STREAMS);
    assert_true(allocate(&r));
    assert_int_equal(r.excess, 1024);
}

TEST(a_wait_before_the_free_does_not_count)
{
    run r = two_blocks();
    synchronise(&r, 2);
    release_used_on(&r, 2);
    assert_false(allocate(&r));
}

/* Its event comes after all of that stream's work, which need not be of this block. */
TEST(a_block_may_wait_for_a_stream_that_was_recorded_and_not_used)
{
    run r = two_blocks();
    const gmd_use use = {.stream = 2};
    r.stats.allocated_bytes -= 512;
    ask(&r, (gmd_request){.op = GMD_OP_FREE}, &use, 1 << 5);
    synchronise(&r, 2);
    assert_false(allocate(&r));
    synchronise(&r, 5);
    assert_true(allocate(&r));
}

TEST(what_waited_for_a_stream_that_is_destroyed_is_not_known)
{
    run r = two_blocks();
    ask(&r, (gmd_request){.op = GMD_OP_DESTROY, .stream = 2}, NULL, 0);
    r.stats.allocated_bytes -= 512;
    ask(&r, (gmd_request){.op = GMD_OP_FREE}, NULL, 0);
    assert_false(allocate(&r));
}

TEST(after_requests_that_were_not_shown_nothing_is_said)
{
    run r = two_blocks();
    release_used_on(&r, 2);
    synchronise(&r, 2);
    r.index++;
    assert_false(allocate(&r));
    assert_false(allocate(&r));
}

TEST(after_more_waiting_blocks_than_are_kept_nothing_is_said)
{
    run r = two_blocks();
    for (int i = 0; i <= WAITING_MAX; i++) {
        allocate(&r);
        release_used_on(&r, 2);
    }
    synchronise(&r, 2);
    assert_false(allocate(&r));
}

TEST(after_a_free_whose_bytes_are_not_told_nothing_is_said)
{
    run r = two_blocks();
    const gmd_use use = {.stream = 2};
    uint64_t reported = r.stats.allocated_bytes;
    r.stats.allocated_bytes = GMD_STAT_UNKNOWN;
    ask(&r, (gmd_request){.op = GMD_OP_FREE}, &use, 0);
    r.stats.allocated_bytes = reported - 512;
    synchronise(&r, 2);
    assert_false(allocate(&r));
}
