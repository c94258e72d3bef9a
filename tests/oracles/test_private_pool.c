/* private_pool: whose memory a request may get. */
#include "oracle_test.h"

#include <stdlib.h>
#include <string.h>

#define BASE 0x7f0000000000u

typedef struct bench {
    void *oracle;
    gmd_judge judge;
    gmd_request request;
    gmd_view view;
} bench;

static void open_bench(bench *b)
{
    memset(b, 0, sizeof *b);
    b->oracle = oracle_private_pool.create();
    b->view =
        (gmd_view){.request = &b->request, .calls.are_all = true, .allocator.exports_pools = true};
}

static void close_bench(bench *b)
{
    oracle_private_pool.destroy(b->oracle);
}

/* Pool 0 is the default one. */
static void hand_out(bench *b, uint64_t offset, uint64_t bytes, uint32_t pool)
{
    gmd_live_block block = {.address = BASE + offset, .bytes = bytes, .pool = pool};
    b->request = (gmd_request){.op = GMD_OP_ALLOC};
    b->view.block = &block;
    oracle_private_pool.after_alloc(b->oracle, &b->view, &b->judge);
    oracle_private_pool.after_request(b->oracle, &b->view, &b->judge);
    b->view.block = NULL;
}

static void give_back(bench *b, uint64_t offset, uint64_t bytes)
{
    gmd_device_call call = {.is_free = true, .address = BASE + offset, .size = bytes};
    b->request = (gmd_request){.op = GMD_OP_EMPTY_CACHE};
    b->view.calls.list = &call;
    b->view.calls.count = 1;
    oracle_private_pool.after_request(b->oracle, &b->view, &b->judge);
    b->view.calls.list = NULL;
    b->view.calls.count = 0;
}

static void release(bench *b, uint32_t pool, bool is_let_go)
{
    b->request = (gmd_request){.op = GMD_OP_RELEASE_POOL, .pool = pool - 1};
    b->view.pools.serial = pool;
    b->view.pools.is_let_go = is_let_go;
    oracle_private_pool.after_request(b->oracle, &b->view, &b->judge);
    b->view.pools.is_let_go = false;
}

static void begin_with(bench *b, uint32_t pool, uint8_t options)
{
    b->request = (gmd_request){.op = GMD_OP_BEGIN_POOL, .pool = pool - 1};
    b->view.pools.serial = pool;
    b->view.pools.options = options;
    oracle_private_pool.after_request(b->oracle, &b->view, &b->judge);
    b->view.pools.options = 0;
}

static void expect_clean(bench *b)
{
    assert_string_equal(b->judge.first, "");
    close_bench(b);
}

static void expect_said(bench *b, const char *part)
{
    if (!strstr(b->judge.first, part)) {
        fail_msg("'%s' does not contain '%s'", b->judge.first, part);
    }
    close_bench(b);
}

TEST(a_pool_gets_its_own_memory_again)
{
    bench b;
    open_bench(&b);
    hand_out(&b, 0, 4096, 1);
    hand_out(&b, 1024, 8192, 1);
    hand_out(&b, 0, 512, 1);
    expect_clean(&b);
}

TEST(memory_of_a_held_pool_serves_no_request_of_the_default_one)
{
    bench b;
    open_bench(&b);
    hand_out(&b, 0, 4096, 1);
    hand_out(&b, 4095, 1, 0);
    expect_said(&b, "went to the default pool, lies in memory of private pool 0");
}

TEST(memory_of_a_held_pool_serves_no_other_private_pool)
{
    bench b;
    open_bench(&b);
    hand_out(&b, 0, 4096, 1);
    hand_out(&b, 0, 4096, 2);
    expect_said(&b, "another private pool");
}

TEST(memory_beside_it_is_anybodys)
{
    bench b;
    open_bench(&b);
    hand_out(&b, 4096, 4096, 1);
    hand_out(&b, 0, 4096, 0);
    hand_out(&b, 8192, 4096, 2);
    expect_clean(&b);
}

TEST(what_the_device_has_back_is_nobodys)
{
    bench b;
    open_bench(&b);
    hand_out(&b, 0, 8192, 1);
    give_back(&b, 0, 8192);
    hand_out(&b, 0, 8192, 0);
    expect_clean(&b);
}

TEST(what_lies_beside_a_part_that_went_back_stays_the_pools)
{
    bench b;
    open_bench(&b);
    hand_out(&b, 0, 12288, 1);
    give_back(&b, 4096, 4096);
    hand_out(&b, 4096, 4096, 0);
    assert_string_equal(b.judge.first, "");
    hand_out(&b, 8192, 512, 0);
    expect_said(&b, "which is held");
}

TEST(a_pool_that_nobody_holds_owns_nothing)
{
    bench b;
    open_bench(&b);
    hand_out(&b, 0, 4096, 1);
    hand_out(&b, 8192, 4096, 1);
    release(&b, 1, true);
    hand_out(&b, 0, 12288, 0);
    expect_clean(&b);
}

TEST(what_a_pool_was_made_with_goes_with_it_and_comes_again)
{
    bench b;
    open_bench(&b);
    b.view.limits.room = GMD_STAT_UNKNOWN; /* so a pool that serves others may always do so */
    begin_with(&b, 1, GMD_POOL_USE_ON_OOM);
    hand_out(&b, 0, 4096, 1);
    hand_out(&b, 0, 4096, 0);
    release(&b, 1, true);
    begin_with(&b, 2, GMD_POOL_USE_ON_OOM);
    begin_with(&b, 1, GMD_POOL_USE_ON_OOM);
    hand_out(&b, 8192, 4096, 1);
    hand_out(&b, 8192, 4096, 0);
    assert_string_equal(b.judge.first, "");
    release(&b, 1, true);
    begin_with(&b, 1, 0);
    hand_out(&b, 16384, 4096, 1);
    hand_out(&b, 16384, 4096, 0);
    expect_said(&b, "lies in memory of private pool 0");
}

TEST(a_pool_that_somebody_else_holds_keeps_its_memory)
{
    bench b;
    open_bench(&b);
    hand_out(&b, 0, 4096, 1);
    release(&b, 1, false);
    hand_out(&b, 0, 4096, 0);
    expect_said(&b, "which is held");
}

static void launch(bench *b, uint64_t offset, uint64_t bytes, uint32_t pool)
{
    const gmd_graph_access access = {.address = BASE + offset, .bytes = bytes, .request = 7};
    b->request = (gmd_request){.op = GMD_OP_LAUNCH, .pool = pool - 1};
    b->view.pools.serial = pool;
    b->view.pools.accesses = &access;
    b->view.pools.access_count = 1;
    oracle_private_pool.after_request(b->oracle, &b->view, &b->judge);
    b->view.pools.accesses = NULL;
    b->view.pools.access_count = 0;
}

TEST(a_graph_works_in_memory_that_its_pool_has_got)
{
    bench b;
    open_bench(&b);
    hand_out(&b, 0, 4096, 1);
    hand_out(&b, 4096, 4096, 1);
    launch(&b, 0, 8192, 1);
    expect_clean(&b);
}

/* Whoever has it now. */
TEST(a_graph_s_memory_that_went_back_to_the_device_is_found)
{
    bench b;
    open_bench(&b);
    hand_out(&b, 0, 8192, 1);
    give_back(&b, 4096, 4096);
    launch(&b, 0, 8192, 1);
    expect_said(&b, "(captured in request 7), and from 0x7f0000001000 on that memory went back");
}

TEST(a_graph_s_memory_that_went_to_another_pool_is_found)
{
    bench b;
    open_bench(&b);
    hand_out(&b, 0, 4096, 1);
    give_back(&b, 0, 4096);
    hand_out(&b, 0, 4096, 2);
    launch(&b, 0, 4096, 1);
    expect_said(&b, "the graph of private pool 0 works on 4096 B at 0x7f0000000000");
}

TEST(of_graphs_nothing_is_said_where_calls_are_not_seen)
{
    bench b;
    open_bench(&b);
    hand_out(&b, 0, 4096, 1);
    b.view.calls.are_all = false;
    give_back(&b, 0, 4096);
    launch(&b, 0, 4096, 1);
    expect_clean(&b);
}

static const gmd_pool_failure refused_end = {"end_refused",
                                             "gmd_end_pool was refused, and the pool is open"};

TEST(a_refused_end_is_told)
{
    bench b;
    open_bench(&b);
    b.request = (gmd_request){.op = GMD_OP_END_POOL};
    b.view.pools.failure = &refused_end;
    oracle_private_pool.after_request(b.oracle, &b.view, &b.judge);
    expect_said(&b, "private pool 0 of device 0: gmd_end_pool was refused");
}

TEST(a_refusal_that_a_fault_hit_is_the_faults)
{
    bench b;
    open_bench(&b);
    b.request = (gmd_request){.op = GMD_OP_END_POOL};
    b.view.pools.failure = &refused_end;
    b.view.faults.hit = 1;
    oracle_private_pool.after_request(b.oracle, &b.view, &b.judge);
    expect_clean(&b);
}

TEST(nothing_is_said_where_calls_are_not_seen)
{
    bench b;
    open_bench(&b);
    b.view.calls.are_all = false;
    hand_out(&b, 0, 4096, 1);
    hand_out(&b, 0, 4096, 0);
    expect_clean(&b);
}

/* --- a real device ------------------------------------------------------------------------ */

/* What work of the default pool's block found, unless the test says otherwise. */
static gmd_canary_finding of_a_graph(void)
{
    return (gmd_canary_finding){.block = {.address = BASE, .bytes = 512, .born = 4},
                                .use = {.request = 5, .stream = 1},
                                .has_other = true,
                                .other = {.address = BASE, .bytes = 256, .born = 1, .pool = 1},
                                .other_is_captured = true};
}

static void see(bench *b, const gmd_canary_finding *finding)
{
    b->request = (gmd_request){.op = GMD_OP_SYNC};
    b->view.canaries.are_there = true;
    b->view.canaries.finding = finding;
    assert_null(oracle_private_pool.blind_spot(&b->view));
    oracle_private_pool.on_canary_finding(b->oracle, &b->view, &b->judge);
}

TEST(on_a_real_device_a_block_finds_what_a_graph_wrote)
{
    bench b;
    open_bench(&b);
    gmd_canary_finding finding = of_a_graph();
    see(&b, &finding);
    expect_said(&b, "what the launched graph in its block of 256 B");
}

TEST(on_a_real_device_a_graph_finds_what_a_block_wrote)
{
    bench b;
    open_bench(&b);
    gmd_canary_finding finding = of_a_graph();
    gmd_live_block block = finding.block;
    finding.block = finding.other;
    finding.other = block;
    finding.is_captured = true;
    finding.other_is_captured = false;
    see(&b, &finding);
    expect_said(&b, "the graph's work that request 5 captured on stream 1 found");
}

/* Within one pool memory goes from block to block, in the order of work. */
TEST(what_blocks_of_one_pool_find_is_a_matter_of_order)
{
    bench b;
    open_bench(&b);
    gmd_canary_finding finding = of_a_graph();
    finding.block.pool = finding.other.pool;
    see(&b, &finding);
    expect_clean(&b);
}

TEST(what_no_graph_has_to_do_with_is_a_matter_of_order)
{
    bench b;
    open_bench(&b);
    gmd_canary_finding finding = of_a_graph();
    finding.other_is_captured = false;
    see(&b, &finding);
    expect_clean(&b);
}

TEST(without_kernels_a_real_device_is_a_blind_spot)
{
    gmd_view view = {.allocator.exports_pools = true,
                     .canaries.reason = "gmd was built without nvcc"};
    assert_string_equal(oracle_private_pool.blind_spot(&view), "gmd was built without nvcc");
    view.canaries.reason = "";
    assert_non_null(oracle_private_pool.blind_spot(&view));
}
