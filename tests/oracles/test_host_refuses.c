/* The host's memory runs out under an oracle: it says so, and never that all is well or that the
 * allocator is to blame. */
#include "oracle_test.h"

#include "host_memory.h"

#include <string.h>

enum { BLOCKS = 1200, BYTES = 512 };

typedef struct judged {
    const gmd_oracle *oracle;
    void (*show)(const gmd_oracle *oracle, void *state, gmd_judge *judge); /* what is correct */
} judged;

static bool says_that_memory_is_out(void *context, uint64_t nth, bool every_later)
{
    const judged *j = context;
    gmd_judge judge = {0};
    begin_refusals(nth, every_later);
    void *state = j->oracle->create();
    if (state) {
        j->show(j->oracle, state, &judge);
        j->oracle->destroy(state);
    }
    bool was_refused = end_refusals();
    assert_int_equal(judge.count > 0, was_refused && state);
    if (judge.count) {
        assert_non_null(strstr(judge.first, "gmd ran out of host memory"));
    }
    return was_refused;
}

static void assert_says_so(const gmd_oracle *oracle,
                           void (*show)(const gmd_oracle *, void *, gmd_judge *))
{
    judged j = {oracle, show};
    sweep_refusals(says_that_memory_is_out, &j);
}

static gmd_live_block block_of(uint64_t i)
{
    return (gmd_live_block){.address = 4096 + i * BYTES, .bytes = BYTES, .born = i, .stream = 1};
}

static void show_live_blocks(const gmd_oracle *oracle, void *state, gmd_judge *judge)
{
    for (uint64_t i = 0; i < BLOCKS; i++) {
        gmd_live_block block = block_of(i);
        gmd_view view = {.block = &block, .live.count = i};
        oracle->after_alloc(state, &view, judge);
    }
}

TEST(overlap_says_so)
{
    assert_says_so(&oracle_overlap, show_live_blocks);
}

static bool is_known(const void *context, const gmd_use *use)
{
    (void)context;
    (void)use;
    return false;
}

/* Blocks that other streams have used are freed, and then a block over two of them each. */
static void show_freed_blocks(const gmd_oracle *oracle, void *state, gmd_judge *judge)
{
    for (uint64_t i = 0; i < BLOCKS; i++) {
        gmd_use uses[] = {{.ticket = i + 1, .place = 2, .stream = 2},
                          {.ticket = i + 1, .place = 3, .stream = 3}};
        gmd_live_block block = block_of(i / 3 * 2);
        block.bytes += i % 3 ? BYTES : 0;
        gmd_view view = {.block = &block,
                         .uses.list = uses,
                         .uses.count = 2,
                         .request_index = i,
                         .ask.is_known = is_known};
        oracle->before_free(state, &view, judge);
    }
}

TEST(stream_order_says_so)
{
    assert_says_so(&oracle_stream_order, show_freed_blocks);
}

/* One segment of many blocks, all allocated. */
static int walk(const void *context, int device, gmd_walk_fn *visit, void *visit_context)
{
    (void)context;
    (void)device;
    for (uint64_t i = 0; i < BLOCKS; i++) {
        gmd_block_info block = {.segment_address = 4096,
                                .segment_size = (uint64_t)BLOCKS * BYTES,
                                .address = 4096 + i * BYTES,
                                .size = BYTES,
                                .state = 1};
        visit(visit_context, &block);
    }
    return 0;
}

static void each_live(const void *context, int device, gmd_live_fn *visit, void *visit_context)
{
    (void)context;
    (void)device;
    for (uint64_t i = 0; i < BLOCKS; i++) {
        gmd_live_block block = block_of(i);
        visit(visit_context, &block);
    }
}

static void show_walk(const gmd_oracle *oracle, void *state, gmd_judge *judge)
{
    gmd_view view = {.ask.walk = walk,
                     .ask.each_live = each_live,
                     .live.count = BLOCKS,
                     .live.bytes = (uint64_t)BLOCKS * BYTES};
    oracle->at_end(state, &view, judge);
}

TEST(snapshot_says_so)
{
    assert_says_so(&oracle_snapshot, show_walk);
}
