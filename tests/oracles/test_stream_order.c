/* The oracle stream_order on a made-up device whose order of work is a table. */
#include "oracle_test.h"

#include <stdlib.h>
#include <string.h>

enum { STREAMS = 4, BYTES = 48 };

/* Work on a stream is numbered from 1. `seen[s][t]`: stream s runs after that much of stream t. */
typedef struct device {
    uint64_t queued[STREAMS], known[STREAMS], seen[STREAMS][STREAMS];
} device;

static bool is_ordered(const void *context, const gmd_use *use, int number, uint32_t stream)
{
    (void)number;
    const device *d = context;
    return use->place == stream || use->ticket <= d->known[use->place] ||
           use->ticket <= d->seen[stream][use->place];
}

static bool is_known(const void *context, const gmd_use *use)
{
    return use->ticket <= ((const device *)context)->known[use->place];
}

typedef struct bench {
    device device;
    void *oracle;
    gmd_judge judge;
    uint64_t request;
} bench;

static bench open_bench(void)
{
    return (bench){.oracle = oracle_stream_order.create()};
}

static gmd_view view_of(bench *b, const gmd_live_block *block)
{
    return (gmd_view){.request_index = b->request++,
                      .block = block,
                      .ask.context = &b->device,
                      .ask.is_ordered = is_ordered,
                      .ask.is_known = is_known};
}

static void hand_out(bench *b, uint64_t address, uint64_t bytes, uint32_t stream)
{
    gmd_live_block block = {.address = address, .bytes = bytes, .stream = stream};
    gmd_view view = view_of(b, &block);
    oracle_stream_order.after_alloc(b->oracle, &view, &b->judge);
}

/* Work on `users` (a bit for each stream) has used the block, which is then freed. */
static void use_and_free(bench *b, uint64_t address, uint64_t bytes, uint32_t stream,
                         unsigned users)
{
    gmd_use uses[STREAMS];
    size_t count = 0;
    for (uint32_t s = 0; s < STREAMS; s++) {
        if (users & 1u << s) {
            uses[count++] = (gmd_use){.ticket = ++b->device.queued[s], .place = s, .stream = s};
        }
    }
    gmd_live_block block = {.address = address, .bytes = bytes, .stream = stream};
    gmd_view view = view_of(b, &block);
    view.uses.list = uses;
    view.uses.count = count;
    oracle_stream_order.before_free(b->oracle, &view, &b->judge);
}

static void give_back(bench *b, uint64_t address, uint64_t bytes)
{
    gmd_device_call call = {.is_free = true, .address = address, .size = bytes};
    gmd_view view = view_of(b, NULL);
    view.calls.list = &call;
    view.calls.count = 1;
    oracle_stream_order.after_request(b->oracle, &view, &b->judge);
}

static int close_bench(bench *b)
{
    oracle_stream_order.destroy(b->oracle);
    return b->judge.count;
}

TEST(the_same_stream_may_have_it_at_once)
{
    bench b = open_bench();
    use_and_free(&b, 4096, 512, 1, 1 << 1);
    hand_out(&b, 4096, 512, 1);
    assert_int_equal(close_bench(&b), 0);
}

TEST(another_stream_may_not_while_work_is_pending)
{
    bench b = open_bench();
    use_and_free(&b, 4096, 512, 1, 1 << 1);
    hand_out(&b, 4352, 512, 2);
    assert_non_null(strstr(b.judge.first, "nothing makes stream 2 wait for the work that request"));
    assert_int_equal(close_bench(&b), 1);
}

TEST(another_stream_may_after_waiting)
{
    bench b = open_bench();
    use_and_free(&b, 4096, 512, 1, 1 << 1);
    b.device.seen[2][1] = 1;
    hand_out(&b, 4096, 512, 2);
    assert_int_equal(close_bench(&b), 0);
}

TEST(anybody_may_once_the_host_knows)
{
    bench b = open_bench();
    use_and_free(&b, 4096, 512, 1, 1 << 1);
    b.device.known[1] = 1;
    hand_out(&b, 4096, 512, 3);
    assert_int_equal(close_bench(&b), 0);
}

TEST(a_use_on_another_stream_holds_back_the_blocks_own)
{
    bench b = open_bench();
    use_and_free(&b, 4096, 512, 1, 1 << 2);
    hand_out(&b, 4096, 512, 1);
    assert_int_equal(close_bench(&b), 1);
}

TEST(only_the_used_bytes_count)
{
    bench b = open_bench();
    use_and_free(&b, 4096, 512, 1, 1 << 1);
    hand_out(&b, 4096 + 512, 512, 2);
    hand_out(&b, 4096 - 512, 512, 2);
    assert_int_equal(close_bench(&b), 0);
}

/* rmm#2489: X was used on A and passed through B's list, where nobody used it, to C. */
TEST(a_block_of_no_bytes_takes_nobodys_memory)
{
    bench b = open_bench();
    use_and_free(&b, 4096, 512, 1, 1 << 1);
    hand_out(&b, 4096, 0, 2);
    hand_out(&b, 4100, 0, 2);
    assert_int_equal(close_bench(&b), 0);
}

TEST(an_owner_in_between_that_did_no_work_hides_nothing)
{
    bench b = open_bench();
    use_and_free(&b, 4096, 512, 1, 1 << 1);
    b.device.seen[2][1] = 1;
    hand_out(&b, 4096, 512, 2);
    use_and_free(&b, 4096, 512, 2, 0);
    hand_out(&b, 4096, 512, 3);
    assert_non_null(strstr(b.judge.first, "queued on stream 1"));
    assert_int_equal(close_bench(&b), 1);
}

TEST(an_owners_own_work_stands_for_all_before_it)
{
    bench b = open_bench();
    use_and_free(&b, 4096, 512, 1, 1 << 1);
    b.device.seen[2][1] = 1;
    use_and_free(&b, 4096, 512, 2, 1 << 2);
    b.device.seen[3][2] = 1; /* and so after stream 1, too; the table need not say so */
    hand_out(&b, 4096, 512, 3);
    assert_int_equal(close_bench(&b), 0);
}

TEST(memory_given_back_under_pending_work_is_found)
{
    bench b = open_bench();
    use_and_free(&b, 4096, 512, 1, 1 << 1);
    give_back(&b, 0, 1 << 20);
    assert_non_null(strstr(b.judge.first, "were given back to the device"));
    assert_int_equal(close_bench(&b), 1);
}

TEST(memory_given_back_after_waiting_is_forgotten)
{
    bench b = open_bench();
    use_and_free(&b, 4096, 512, 1, 1 << 1);
    b.device.known[1] = 1;
    give_back(&b, 0, 1 << 20);
    b.device.known[1] = 0; /* would be noticed if it were still there */
    hand_out(&b, 4096, 512, 2);
    assert_int_equal(close_bench(&b), 0);
}

/* --- against a model that knows every byte ------------------------------------------------ */

typedef struct model {
    uint64_t used[BYTES][STREAMS]; /* latest work of a freed block on that stream; 0: none */
} model;

static bool model_allows(const model *m, const device *d, uint64_t from, uint64_t bytes,
                         uint32_t stream)
{
    for (uint64_t i = from; i < from + bytes; i++) {
        for (uint32_t s = 0; s < STREAMS; s++) {
            gmd_use use = {.ticket = m->used[i][s], .place = s};
            if (use.ticket && !is_ordered(d, &use, 0, stream)) {
                return false;
            }
        }
    }
    return true;
}

static void model_free(model *m, const device *d, uint64_t from, uint64_t bytes, uint32_t stream,
                       unsigned users)
{
    for (uint64_t i = from; i < from + bytes; i++) {
        for (uint32_t s = 0; s < STREAMS; s++) {
            bool is_settled = users & 1u << stream;
            m->used[i][s] = users & 1u << s ? d->queued[s] : is_settled ? 0 : m->used[i][s];
        }
    }
}

static unsigned pick(unsigned *seed, unsigned below)
{
    *seed = *seed * 1664525u + 1013904223u;
    return (*seed >> 8) % below;
}

static void order_something(device *d, unsigned *seed)
{
    uint32_t s = pick(seed, STREAMS), t = pick(seed, STREAMS);
    if (pick(seed, 4) == 0) {
        d->known[t] = d->queued[t];
    } else {
        d->seen[s][t] = d->queued[t];
        for (uint32_t u = 0; u < STREAMS; u++) {
            d->seen[s][u] = d->seen[t][u] > d->seen[s][u] ? d->seen[t][u] : d->seen[s][u];
        }
    }
}

TEST(the_verdicts_are_those_of_a_table_of_bytes)
{
    unsigned seed = 1;
    for (int round = 0; round < 200; round++) {
        bench b = open_bench();
        model m = {0};
        for (int step = 0; step < 60; step++) {
            uint64_t from = pick(&seed, BYTES), bytes = 1 + pick(&seed, BYTES - (unsigned)from);
            uint32_t stream = pick(&seed, STREAMS);
            unsigned users = pick(&seed, 3) ? 1u << stream | pick(&seed, 16) : pick(&seed, 16);
            b.judge.count = 0;
            hand_out(&b, from, bytes, stream);
            bool is_allowed = model_allows(&m, &b.device, from, bytes, stream);
            assert_int_equal(b.judge.count, !is_allowed);
            if (is_allowed) { /* as a run would go on; a block of another moment */
                use_and_free(&b, from, bytes, stream, users);
                model_free(&m, &b.device, from, bytes, stream, users);
            }
            order_something(&b.device, &seed);
        }
        close_bench(&b);
    }
}

/* Work in a graph runs when the graph is launched: the order is that of the graph. */
TEST(memory_of_a_graph_s_earlier_work_needs_an_order_in_the_graph)
{
    bench b = open_bench();
    const gmd_graph_access clash = {.address = 0x1000, .bytes = 512, .request = 3, .stream = 2};
    gmd_live_block block = {.address = 0x1000, .bytes = 256, .stream = 1};
    gmd_view view = view_of(&b, &block);
    view.pools.clash = &clash;
    oracle_stream_order.after_alloc(b.oracle, &view, &b.judge);
    assert_int_equal(b.judge.count, 1);
    assert_non_null(strstr(b.judge.first, "takes memory that the work of request 3 uses"));
    assert_non_null(strstr(b.judge.first, "nothing in the graph makes stream 1 wait"));
    oracle_stream_order.destroy(b.oracle);
}

TEST(on_a_real_device_the_other_block_s_mark_gives_it_away)
{
    bench b = open_bench();
    gmd_canary_finding finding = {
        .block = {.address = 0x1000, .bytes = 512, .born = 1, .stream = 1},
        .use = {.request = 2, .stream = 1},
        .has_other = true,
        .other = {.address = 0x1000, .bytes = 256, .born = 4, .stream = 3}};
    gmd_view view = {.canaries.are_there = true, .canaries.finding = &finding};
    assert_null(oracle_stream_order.blind_spot(&view));
    oracle_stream_order.on_canary_finding(b.oracle, &view, &b.judge);
    assert_int_equal(b.judge.count, 1);
    assert_non_null(strstr(b.judge.first, "the work that request 2 queued on stream 1 found"));
    oracle_stream_order.destroy(b.oracle);
}

/* private_pool tells that. */
TEST(what_a_graph_and_another_pool_find_of_each_other_is_no_matter_of_order)
{
    bench b = open_bench();
    gmd_canary_finding finding = {.block = {.address = 0x1000, .bytes = 512},
                                  .is_captured = false,
                                  .has_other = true,
                                  .other = {.address = 0x1000, .bytes = 256, .pool = 1},
                                  .other_is_captured = true};
    oracle_stream_order.on_canary_finding(
        b.oracle, &(gmd_view){.canaries.are_there = true, .canaries.finding = &finding}, &b.judge);
    assert_int_equal(b.judge.count, 0);
    oracle_stream_order.destroy(b.oracle);
}

TEST(a_real_device_is_a_blind_spot)
{
    assert_non_null(oracle_stream_order.blind_spot(&(gmd_view){0}));
}
