/* Checkpoints of private pools: what is brought back, what is told, and what is refused. */
#include "allocator_test.h"

#include <string.h>

static const uint64_t id[2] = {0, 7};

static void begin(const bench *b)
{
    assert_true(gmd_allocator_begin_pool(b->a, 0, id, NULL, NULL));
}

static void end(const bench *b)
{
    void *context;
    assert_true(gmd_allocator_end_pool(b->a, 0, id, &context));
}

static bench open_pool(const char *conf)
{
    bench b = open_bench(GMD_GIB, conf);
    begin(&b);
    return b;
}

static gmd_checkpoint *keep(const bench *b)
{
    gmd_error error = {""};
    gmd_checkpoint *made = NULL;
    assert_int_equal(gmd_allocator_checkpoint_pool(b->a, 0, id, &made, &error), GMD_OK);
    return made;
}

typedef struct told {
    uint64_t freed[8], live[8];
    size_t freed_count, live_count;
} told;

static void note(void *context, void *ptr, uint64_t size, cudaStream_t stream, int is_live)
{
    told *t = context;
    (void)size;
    (void)stream;
    if (is_live) {
        t->live[t->live_count++] = (uint64_t)(uintptr_t)ptr;
    } else {
        t->freed[t->freed_count++] = (uint64_t)(uintptr_t)ptr;
    }
}

static told bring_back(const bench *b, gmd_checkpoint *c)
{
    told t = {0};
    gmd_error error = {""};
    assert_int_equal(gmd_allocator_restore_pool(b->a, 0, c, note, &t, &error), GMD_OK);
    gmd_allocator_drop_checkpoint(c);
    return t;
}

static void expect_refused(const bench *b, gmd_checkpoint *c, const char *why)
{
    gmd_error error = {""};
    gmd_stats before = stats_of(b);
    told t = {0};
    assert_int_equal(gmd_allocator_restore_pool(b->a, 0, c, note, &t, &error), GMD_FAILED);
    gmd_stats after = stats_of(b);
    gmd_allocator_drop_checkpoint(c);
    assert_non_null(strstr(error.text, why));
    assert_int_equal(t.freed_count + t.live_count, 0);
    assert_memory_equal(&before, &after, sizeof before);
}

TEST_F(bench, what_was_live_then_is_live_again_and_what_is_live_now_is_freed)
{
    bench b = open_pool("");
    uint64_t first = take(&b, 2 * GMD_MIB), second = take(&b, 3 * GMD_MIB);
    gmd_checkpoint *c = keep(&b);
    give(&b, first);
    uint64_t later = take(&b, 5 * GMD_MIB);
    told t = bring_back(&b, c);
    assert_int_equal(t.freed_count, 2);
    assert_int_equal(t.freed[0], second);
    assert_int_equal(t.freed[1], later);
    assert_int_equal(t.live_count, 2);
    assert_int_equal(t.live[0], first);
    assert_int_equal(t.live[1], second);
    assert_int_equal(stats_of(&b).allocated_bytes, 5 * GMD_MIB);
}

TEST_F(bench, blocks_that_were_brought_back_are_freed_like_others)
{
    bench b = open_pool("");
    uint64_t first = take(&b, 2 * GMD_MIB);
    gmd_checkpoint *c = keep(&b);
    give(&b, first);
    bring_back(&b, c);
    assert_int_equal(gmd_allocator_block_size(b.a, 0, (void *)(uintptr_t)first), 2 * GMD_MIB);
    give(&b, first);
    assert_int_equal(stats_of(&b).allocated_bytes, 0);
}

TEST_F(bench, the_next_request_gets_what_it_would_have_got_at_the_checkpoint)
{
    bench b = open_pool("");
    uint64_t first = take(&b, 2 * GMD_MIB), second = take(&b, 3 * GMD_MIB);
    give(&b, first);
    gmd_checkpoint *c = keep(&b);
    uint64_t next = take(&b, 2 * GMD_MIB);
    give(&b, next);
    give(&b, second);
    told t = bring_back(&b, c);
    assert_int_equal(t.live[0], second);
    assert_int_equal(take(&b, 2 * GMD_MIB), next);
}

TEST_F(bench, small_and_large_segments_of_several_streams_are_brought_back)
{
    bench b = open_pool("");
    uint64_t small = take(&b, 512), large = take_on(&b, 30 * GMD_MIB, b.s2);
    gmd_checkpoint *c = keep(&b);
    give(&b, small);
    assert_true(gmd_allocator_free(b.a, (void *)(uintptr_t)large, 0, b.s2));
    assert_int_equal(bring_back(&b, c).live_count, 2);
    assert_int_equal(stats_of(&b).allocated_bytes, 30 * GMD_MIB + 512);
}

TEST_F(bench, pages_of_expandable_segments_are_brought_back_though_more_were_mapped_since)
{
    bench b = open_pool("expandable_segments:True");
    uint64_t first = take(&b, 30 * GMD_MIB);
    gmd_checkpoint *c = keep(&b);
    uint64_t later = take(&b, 50 * GMD_MIB);
    give(&b, first);
    told t = bring_back(&b, c);
    assert_int_equal(t.freed[0], later);
    assert_int_equal(t.live[0], first);
    assert_int_equal(stats_of(&b).allocated_bytes, 30 * GMD_MIB);
}

TEST_F(bench, settings_that_cut_otherwise_since_refuse_it_and_are_named)
{
    bench b = open_pool("");
    give(&b, take(&b, 60 * GMD_MIB));
    take(&b, 30 * GMD_MIB); /* half of that segment */
    gmd_checkpoint *c = keep(&b);
    gmd_error error = {""};
    assert_int_equal(gmd_allocator_change_settings(b.a, "max_split_size_mb:25", &error), GMD_OK);
    expect_refused(&b, c, "the settings of now do not cut the segment");
}

TEST_F(bench, other_pools_stay_as_they_are)
{
    bench b = open_pool("");
    gmd_checkpoint *c = keep(&b);
    uint64_t inside = take(&b, GMD_MIB);
    end(&b);
    uint64_t outside = take(&b, GMD_MIB);
    told t = bring_back(&b, c);
    assert_int_equal(t.freed_count, 1);
    assert_int_equal(t.freed[0], inside);
    give(&b, outside);
}

TEST_F(bench, a_checkpoint_can_be_brought_back_again)
{
    bench b = open_pool("");
    uint64_t first = take(&b, 2 * GMD_MIB);
    gmd_checkpoint *c = keep(&b);
    gmd_error error = {""};
    give(&b, first);
    assert_int_equal(gmd_allocator_restore_pool(b.a, 0, c, NULL, NULL, &error), GMD_OK);
    told t = bring_back(&b, c);
    assert_int_equal(t.freed[0], first);
    assert_int_equal(t.live[0], first);
}

/* Torch 2.11 hands out every block of the checkpoint before it frees those that were free. */
TEST_F(bench, figures_count_every_block_as_pytorchs_do)
{
    bench b = open_pool("");
    uint64_t first = take(&b, 2 * GMD_MIB);
    gmd_checkpoint *c = keep(&b);
    give(&b, first);
    gmd_allocator_reset_peak_stats(b.a, 0);
    bring_back(&b, c);
    assert_int_equal(stats_of(&b).allocated_bytes_peak, 20 * GMD_MIB);
}

TEST_F(bench, a_pool_that_is_not_there_has_no_checkpoint)
{
    bench b = open_bench(GMD_GIB, "");
    gmd_error error = {""};
    gmd_checkpoint *made = NULL;
    assert_int_equal(gmd_allocator_checkpoint_pool(b.a, 0, id, &made, &error), GMD_FAILED);
    assert_string_equal(error.text, "there is no private pool (0, 7)");
    assert_int_equal(gmd_allocator_checkpoint_pool(b.a, 1, id, &made, &error), GMD_FAILED);
    assert_null(made);
}

TEST_F(bench, a_block_that_waits_for_another_stream_is_in_no_checkpoint)
{
    bench b = open_pool("");
    gmd_error error = {""};
    gmd_checkpoint *made = NULL;
    uint64_t block = take(&b, GMD_MIB);
    record(&b, block, b.s2);
    work(b.s2, 1000000000);
    give(&b, block);
    assert_int_equal(gmd_allocator_checkpoint_pool(b.a, 0, id, &made, &error), GMD_FAILED);
    assert_non_null(strstr(error.text, "still waits for work on other streams"));
}

TEST_F(bench, a_block_that_was_recorded_on_another_stream_is_not_taken_away)
{
    bench b = open_pool("");
    gmd_checkpoint *c = keep(&b);
    record(&b, take(&b, GMD_MIB), b.s2);
    expect_refused(&b, c, "was recorded on other streams");
}

TEST_F(bench, a_segment_that_was_given_back_cannot_be_brought_back)
{
    bench b = open_pool("");
    uint64_t kept = take(&b, 30 * GMD_MIB), gone = take(&b, 40 * GMD_MIB);
    gmd_checkpoint *c = keep(&b);
    give(&b, gone);
    end(&b);
    assert_true(gmd_allocator_release_pool(b.a, 0, id));
    gmd_allocator_empty_cache(b.a);
    expect_refused(&b, c, "is not in the pool any more");
    give(&b, kept);
}
