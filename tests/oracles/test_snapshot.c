/* snapshot: what a walk over the allocator's blocks must show. */
#include "oracle_test.h"

#include <stdlib.h>
#include <string.h>

#define SEGMENT 0x7f0000000000u

typedef struct situation {
    gmd_block_info blocks[8];
    size_t count;
    gmd_live_block live[4];
    size_t live_count;
    gmd_stats stats;
    gmd_view view;
    gmd_judge judge;
    int walks, walk_result;
} situation;

static int walk(const void *context, int device, gmd_walk_fn *visit, void *to)
{
    situation *s = (situation *)(uintptr_t)context;
    (void)device;
    s->walks++;
    for (size_t i = 0; i < s->count; i++) {
        visit(to, &s->blocks[i]);
    }
    return s->walk_result;
}

static void each_live(const void *context, int device, gmd_live_fn *visit, void *to)
{
    const situation *s = context;
    (void)device;
    for (size_t i = 0; i < s->live_count; i++) {
        visit(to, &s->live[i]);
    }
}

static gmd_block_info part(uint64_t offset, uint64_t size, int state)
{
    return (gmd_block_info){.segment_address = SEGMENT,
                            .segment_size = 4096,
                            .address = SEGMENT + offset,
                            .size = size,
                            .requested_size = state ? size : 0,
                            .state = state};
}

/* One segment: a live block, one that is pending, a free one; and the statistics of that. */
static void set_up_situation(situation *s)
{
    memset(s, 0, sizeof *s);
    s->blocks[0] = part(0, 1024, 1);
    s->blocks[1] = part(1024, 512, 2);
    s->blocks[2] = part(1536, 2560, 0);
    s->count = 3;
    s->live[0] = (gmd_live_block){.address = SEGMENT, .bytes = 1024};
    s->live_count = 1;
    s->stats = (gmd_stats){.allocated_bytes = 1024,
                           .active_bytes = 1536,
                           .reserved_bytes = 4096,
                           .requested_bytes = 1536,
                           .inactive_split_bytes = 2560,
                           .allocation_count = 1,
                           .segment_count = 1};
    s->view = (gmd_view){.ask.context = s,
                         .ask.walk = walk,
                         .ask.each_live = each_live,
                         .live.bytes = 1024,
                         .live.count = 1,
                         .allocator.promises = GMD_PROMISE_PYTORCH | GMD_PROMISE_COALESCING,
                         .stats.now = &s->stats};
}

static void look(situation *s)
{
    void *state = oracle_snapshot.create();
    oracle_snapshot.when_over(state, &s->view, &s->judge);
    oracle_snapshot.destroy(state);
}

static void expect_clean(situation *s)
{
    look(s);
    assert_string_equal(s->judge.first, "");
}

static void expect_said(situation *s, const char *part_of_message)
{
    look(s);
    assert_int_equal(s->judge.count, 1);
    if (!strstr(s->judge.first, part_of_message)) {
        fail_msg("'%s' does not contain '%s'", s->judge.first, part_of_message);
    }
}

#define SITUATION                                                                                  \
    situation s;                                                                                   \
    (void)state;                                                                                   \
    set_up_situation(&s)

TEST(blocks_that_tile_their_segment_are_right)
{
    SITUATION;
    expect_clean(&s);
}

TEST(an_allocator_without_blocks_is_right)
{
    SITUATION;
    s.count = s.live_count = 0;
    s.stats = (gmd_stats){0};
    s.view.live.bytes = 0;
    expect_clean(&s);
}

TEST(a_hole_between_two_blocks_is_found)
{
    SITUATION;
    s.blocks[1] = part(1030, 506, 2);
    expect_said(&s, "do not tile their segment");
}

TEST(a_block_in_no_known_state_is_found)
{
    SITUATION;
    s.blocks[1].state = 3;
    expect_said(&s, "is in the unknown state 3");
}

static bool is_nowhere(const void *context, uint64_t address, uint64_t size, int device,
                       uint64_t *bad)
{
    (void)context;
    (void)size;
    (void)device;
    *bad = address;
    return false;
}

TEST(a_segment_without_memory_is_found)
{
    SITUATION;
    s.view.ask.is_backed = is_nowhere;
    expect_said(&s, "the device has handed out no memory at");
}

TEST(two_blocks_over_the_same_bytes_are_found)
{
    SITUATION;
    s.blocks[1] = part(1000, 536, 2);
    expect_said(&s, "do not tile their segment");
}

TEST(a_block_beyond_its_segment_is_found)
{
    SITUATION;
    s.blocks[2].size = 2561;
    expect_said(&s, "do not tile their segment");
}

TEST(a_lost_tail_is_found)
{
    SITUATION;
    s.blocks[2].size = 2048;
    expect_said(&s, "ends at 0x7f0000000e00");
}

TEST(segments_that_overlap_are_found)
{
    SITUATION;
    s.blocks[3] = part(0, 4096, 0);
    s.blocks[3].segment_address = s.blocks[3].address = SEGMENT + 2048;
    s.count = 4;
    expect_said(&s, "overlap or are not in the order");
}

TEST(free_neighbours_of_one_stream_are_found)
{
    SITUATION;
    s.blocks[2] = part(1536, 1024, 0);
    s.blocks[3] = part(2560, 1536, 0);
    s.count = 4;
    expect_said(&s, "were not merged");
}

TEST(free_neighbours_are_right_where_no_merging_is_promised)
{
    SITUATION;
    s.view.allocator.promises = 0;
    s.blocks[2] = part(1536, 1024, 0);
    s.blocks[3] = part(2560, 1536, 0);
    s.count = 4;
    expect_clean(&s);
}

TEST(free_neighbours_of_two_pools_are_right)
{
    SITUATION;
    s.blocks[2] = part(1536, 1024, 0);
    s.blocks[3] = part(2560, 1536, 0);
    s.blocks[3].pool_id[1] = 7;
    s.count = 4;
    expect_clean(&s);
}

TEST(a_live_block_that_is_shown_free_is_found)
{
    SITUATION;
    s.blocks[0].state = 0;
    expect_said(&s, "is live, and gmd_walk shows a free block there");
}

TEST(a_live_block_that_is_not_shown_is_found)
{
    SITUATION;
    s.live[0].address += 256;
    expect_said(&s, "no block there");
}

TEST(an_allocated_block_that_nobody_has_is_found)
{
    SITUATION;
    s.live_count = 0;
    expect_said(&s, "1 allocated blocks, and 0 of them are live");
}

TEST(a_block_that_is_shown_too_small_is_found)
{
    SITUATION;
    s.live[0].bytes = 1025;
    expect_said(&s, "live block of 1025 B at");
}

TEST(a_pointer_for_no_bytes_need_not_be_a_block)
{
    SITUATION;
    s.live[1] = (gmd_live_block){.address = 0x1000, .bytes = 0};
    s.live_count = 2;
    expect_clean(&s);
}

TEST(several_pointers_for_no_bytes_may_be_one_block)
{
    SITUATION;
    s.live[0].bytes = 0;
    s.live[1] = s.live[0];
    s.live_count = 2;
    s.view.live.bytes = 0;
    expect_clean(&s);
}

TEST(each_sum_is_that_of_the_statistics)
{
    static const size_t figures[] = {
        offsetof(gmd_stats, allocated_bytes),     offsetof(gmd_stats, active_bytes),
        offsetof(gmd_stats, reserved_bytes),      offsetof(gmd_stats, requested_bytes),
        offsetof(gmd_stats, allocation_count),    offsetof(gmd_stats, segment_count),
        offsetof(gmd_stats, inactive_split_bytes)};
    for (size_t i = 0; i < sizeof figures / sizeof *figures; i++) {
        SITUATION;
        uint64_t figure;
        memcpy(&figure, (char *)&s.stats + figures[i], sizeof figure);
        figure++;
        memcpy((char *)&s.stats + figures[i], &figure, sizeof figure);
        expect_said(&s, "the blocks of gmd_walk add up to");
    }
}

TEST(figures_that_are_not_kept_are_not_compared)
{
    SITUATION;
    memset(&s.stats, 0xff, sizeof s.stats);
    expect_clean(&s);
}

TEST(parts_of_an_expandable_segment_are_not_counted_as_segments)
{
    SITUATION;
    for (size_t i = 0; i < s.count; i++) {
        s.blocks[i].is_expandable = 1;
    }
    s.stats.segment_count = 5;
    s.stats.inactive_split_bytes = 5;
    expect_clean(&s);
}

TEST(a_walk_that_fails_is_told)
{
    SITUATION;
    s.walk_result = -1;
    expect_said(&s, "gmd_walk failed after it had worked before");
}

TEST(a_block_in_the_pool_of_its_request_is_right)
{
    SITUATION;
    s.blocks[0].pool_id[1] = s.live[0].pool = 3;
    expect_clean(&s);
}

TEST(a_block_in_another_pool_than_its_request_is_found)
{
    SITUATION;
    s.live[0].pool = 1;
    expect_said(&s, "went to private pool 0, and gmd_walk shows the block in the pool {0, 0}");
}

TEST(without_a_walk_it_says_so)
{
    SITUATION;
    assert_null(oracle_snapshot.blind_spot(&s.view));
    s.walk_result = -1;
    assert_non_null(oracle_snapshot.blind_spot(&s.view));
    s.view.ask.walk = NULL;
    assert_non_null(oracle_snapshot.blind_spot(&s.view));
}

/* 100,000 requests with 3 blocks: the interval grows by a quarter each time. */
TEST(looks_grow_rarer)
{
    SITUATION;
    void *inspection = oracle_snapshot.create();
    for (int i = 0; i < 100000; i++) {
        oracle_snapshot.after_request(inspection, &s.view, &s.judge);
    }
    oracle_snapshot.destroy(inspection);
    assert_in_range(s.walks, 15, 35);
}

TEST(the_first_refusals_are_looked_at)
{
    SITUATION;
    s.view.out_of_memory = true;
    void *inspection = oracle_snapshot.create();
    for (int i = 0; i < 10; i++) {
        oracle_snapshot.after_request(inspection, &s.view, &s.judge);
    }
    oracle_snapshot.destroy(inspection);
    assert_int_equal(s.walks, 10);
}
