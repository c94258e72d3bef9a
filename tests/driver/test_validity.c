/* Each corruption of what a session keeps is found by the walk that is there for
 * it. White-box: the tests reach into the structures. */
#include "../assertion_test.h"

#include "frames.h"
#include "gmd_end.h"
#include "gmd_test.h"
#include "validity.h"

#include <stdlib.h>
#include <string.h>

/* --- a session --------------------------------------------------------------------------- */

/* Blocks 0 and 2 are live on device 0, of streams 1 and 0; block 0 was used on stream 2. Pool 3 of
 * device 1 is open: it has a graph, and another one is captured on stream 1. Nothing is called. */
typedef struct fixture {
    gmd_session s;
    device_streams streams[2];
    cudaStream_t handles[2][3];
    session_block blocks[4];
    use_node nodes[4];
    captured_graph graphs[2];
    gmd_graph_access access;
    overlap overlap;
} fixture;

static void add_block(fixture *f, uint32_t id, uint32_t stream, uint64_t bytes)
{
    const session_block block = {
        .live = {.address = 0x1000 * (id + 1), .bytes = bytes, .id = id, .stream = stream}};
    live_blocks_add(&f->s.blocks, live_blocks_at(&f->s.blocks, id), &block);
}

static void add_pool(fixture *f)
{
    pool_table *p = &f->s.pools;
    p->is_used = true;
    p->made = 1;
    p->serials[1][3] = 1 + 3;
    p->state.holders[1][3] = 2;
    p->state.graphs[1][3] = 1;
    p->state.open[1] = 1 + 3;
    p->state.capturing = 1 + 1;
    f->graphs[0] = (captured_graph){.device = 1,
                                    .pool = 3,
                                    .exec = (cudaGraphExec_t)(uintptr_t)0x77,
                                    .accesses = &f->access,
                                    .count = 1,
                                    .capacity = 1};
    f->graphs[1] = (captured_graph){.device = 1, .pool = 3};
    f->s.captures.graphs = f->graphs;
    f->s.captures.count = f->s.captures.capacity = 2;
    captures_begin(&f->s.captures, 1, 1, f->handles[1][1], 5);
}

static fixture *open_fixture(void)
{
    fixture *f = calloc(1, sizeof *f);
    gmd_session *s = &f->s;
    s->device_count = 2;
    s->moment = 10;
    for (int device = 0; device < 2; device++) {
        for (uint32_t i = 1; i < 3; i++) {
            f->handles[device][i] = (cudaStream_t)(uintptr_t)(16 * ((uint32_t)device + 1) + i);
        }
        f->streams[device] =
            (device_streams){.handles = f->handles[device], .count = 3, .created = 2};
        s->streams.devices[device] = &f->streams[device];
    }
    s->blocks = (live_blocks){.list = f->blocks, .capacity = 4};
    add_block(f, 0, 1, 512);
    add_block(f, 2, 0, 1024);
    f->blocks[0].uses = (stream_uses){.streams = 4, .last_use = 10};
    s->uses = (block_uses){.nodes = f->nodes, .used = 3, .capacity = 4, .spare = 3};
    f->nodes[1].next = 2; /* 1 and 2 are block 0's */
    f->blocks[0].last_uses = 1;
    add_pool(f);
    s->view.stats.now = &s->figures.stats[0];
    return f;
}

static void expect_found(void (*spoil)(fixture *f), const char *sentence)
{
    fixture *f = open_fixture();
    assert_null(session_state_violation(&f->s));
    spoil(f);
    const char *violation = session_state_violation(&f->s);
    free(f);
    assert_non_null(violation);
    assert_string_equal(violation, sentence);
}

/* --- blocks ------------------------------------------------------------------------------ */

static void lose_places(fixture *f)
{
    f->s.blocks.capacity = 1;
}

static void move_a_block(fixture *f)
{
    f->blocks[1] = f->blocks[2];
    f->blocks[2].live.address = 0;
}

static void lose_a_block(fixture *f)
{
    f->blocks[2].live.address = 0;
}

static void resize_a_block(fixture *f)
{
    f->blocks[2].live.bytes++;
}

static void move_a_block_to_no_device(fixture *f)
{
    f->blocks[2].live.device = GMD_MAX_DEVICES;
}

static void move_a_block_to_a_device_that_is_not_there(fixture *f)
{
    f->blocks[2].live.device = 2;
    f->s.blocks.count[0]--;
    f->s.blocks.bytes[0] -= 1024;
    f->s.blocks.count[2]++;
    f->s.blocks.bytes[2] += 1024;
}

static void destroy_the_stream_of_a_block(fixture *f)
{
    f->handles[0][1] = NULL;
    f->streams[0].created--;
}

static void destroy_a_stream_where_a_block_is_used(fixture *f)
{
    f->handles[0][2] = NULL;
    f->streams[0].created--;
}

static void put_a_block_into_a_pool(fixture *f)
{
    f->blocks[2].live.pool = GMD_MAX_POOLS + 1;
}

static void use_a_block_on_its_own_stream(fixture *f)
{
    f->blocks[0].uses.streams |= 2;
}

static void record_what_must_be_ordered(fixture *f)
{
    f->blocks[0].uses.recorded = 4;
}

static void use_a_block_in_the_future(fixture *f)
{
    f->blocks[0].uses.last_use = 11;
}

TEST(each_corruption_of_live_blocks_is_found)
{
    const char *const ordered =
        "what must be ordered before a free is on other streams, and not recorded";
    expect_found(lose_places, "the places of blocks are in their list");
    expect_found(move_a_block, "a block is at the place of its number");
    expect_found(lose_a_block, "a device's live blocks are counted");
    expect_found(resize_a_block, "a device's live bytes are the sum over its blocks");
    expect_found(move_a_block_to_no_device, "a block is of a device");
    expect_found(move_a_block_to_a_device_that_is_not_there,
                 "a live block is of a device that is there");
    expect_found(destroy_the_stream_of_a_block, "the stream of a live block is there");
    expect_found(destroy_a_stream_where_a_block_is_used,
                 "a live block is used on streams that are there");
    expect_found(put_a_block_into_a_pool, "a live block is of a pool that was made");
    expect_found(use_a_block_on_its_own_stream, ordered);
    expect_found(record_what_must_be_ordered, ordered);
    expect_found(use_a_block_in_the_future, "a use is not later than the latest request");
}

TEST(a_block_whose_stream_was_destroyed_is_no_corruption)
{
    fixture *f = open_fixture();
    destroy_the_stream_of_a_block(f);
    f->blocks[0].is_orphan = true;
    assert_null(session_state_violation(&f->s));
    free(f);
}

/* --- uses and streams -------------------------------------------------------------------- */

static void leave_the_array(fixture *f)
{
    f->nodes[2].next = 4;
}

static void close_a_circle(fixture *f)
{
    f->nodes[2].next = 1;
}

static void share_a_list(fixture *f)
{
    f->blocks[2].last_uses = 2;
}

static void lose_a_use(fixture *f)
{
    f->nodes[1].next = 0;
}

static void have_one_use_for_another(fixture *f)
{
    f->s.uses.spare = 2;
}

static void use_more_than_there_is(fixture *f)
{
    f->s.uses.capacity = 3;
}

TEST(each_corruption_of_the_lists_of_uses_is_found)
{
    const char *const each = "each use is in the list of a live block, or spare";
    const char *const ends = "lists of uses end, and share no node";
    expect_found(leave_the_array, "a list of uses is in the array");
    expect_found(close_a_circle, ends);
    expect_found(share_a_list, ends);
    expect_found(lose_a_use, each);
    expect_found(have_one_use_for_another, each);
    expect_found(use_more_than_there_is, "the array has room for all uses");
}

static void miscount_streams(fixture *f)
{
    f->streams[1].created++;
}

static void replace_the_default_stream(fixture *f)
{
    f->handles[0][0] = f->handles[0][1];
}

TEST(each_corruption_of_streams_is_found)
{
    expect_found(miscount_streams, "a device counts the streams that the driver has made");
    expect_found(replace_the_default_stream, "stream 0 is the default one");
}

/* --- pools and graphs -------------------------------------------------------------------- */

static void forget_a_serial_number(fixture *f)
{
    f->s.pools.serials[1][3] = 0;
}

static void give_another_pool_the_number(fixture *f)
{
    f->s.pools.serials[1][2] = 1 + 3;
}

static void name_a_pool_that_was_not_made(fixture *f)
{
    f->s.pools.serials[1][3] += GMD_MAX_POOLS;
}

static void let_go_of_an_open_pool(fixture *f)
{
    f->s.pools.state.holders[1][3] = 0;
}

static void lose_a_graph(fixture *f)
{
    captures_end(&f->s.captures);
    f->s.captures.count = 1;
}

static void move_a_graph(fixture *f)
{
    f->graphs[0].pool = 4;
}

static void move_a_graph_to_no_pool(fixture *f)
{
    f->graphs[0].pool = GMD_MAX_POOLS;
}

static void lose_room_for_graphs(fixture *f)
{
    f->s.captures.capacity = 1;
}

static void lose_room_for_work(fixture *f)
{
    f->graphs[0].capacity = 0;
}

static void capture_work_elsewhere(fixture *f)
{
    f->access.stream = GMD_TRACKED_STREAMS;
}

static void launch_what_was_not_made(fixture *f)
{
    f->graphs[1].is_launched = true;
}

TEST(each_corruption_of_pools_and_graphs_is_found)
{
    const char *const serials = "a serial number is that of a pool that was made";
    const char *const counted = "each graph is counted in its pool";
    expect_found(forget_a_serial_number, "a pool that is held has a serial number");
    expect_found(give_another_pool_the_number, serials);
    expect_found(name_a_pool_that_was_not_made, serials);
    expect_found(let_go_of_an_open_pool, "an open pool is held");
    expect_found(lose_a_graph, counted);
    expect_found(move_a_graph, counted);
    expect_found(move_a_graph_to_no_pool, "a graph is of a device and a pool");
    expect_found(lose_room_for_graphs, "graphs are in their list");
    expect_found(lose_room_for_work, "the work of a graph is in its list");
    expect_found(capture_work_elsewhere, "captured work is on a stream whose order is followed");
    expect_found(launch_what_was_not_made, "a graph is made before it is launched");
}

static void capture_into_a_graph_that_is_made(fixture *f)
{
    f->graphs[1].exec = f->graphs[0].exec;
}

static void capture_no_stream(fixture *f)
{
    f->s.captures.joined = 0;
}

static void capture_without_a_capture(fixture *f)
{
    f->s.captures.is_under_way = false;
}

static void close_the_pool_of_a_capture(fixture *f)
{
    f->s.pools.state.capturing = f->s.pools.state.open[1] = 0;
}

static void capture_a_stream_that_is_not_there(fixture *f)
{
    f->s.captures.joined |= 1 << 7;
}

static void confuse_the_captured_stream(fixture *f)
{
    f->s.captures.handles[1] = f->handles[1][2];
}

TEST(each_corruption_of_a_capture_is_found)
{
    expect_found(capture_into_a_graph_that_is_made, "what is captured becomes the latest graph");
    expect_found(capture_no_stream, "the stream that a capture began with is captured");
    expect_found(capture_without_a_capture, "streams are captured while a capture is under way");
    expect_found(close_the_pool_of_a_capture, "a capture has its pool open");
    expect_found(capture_a_stream_that_is_not_there, "a captured stream is there");
    expect_found(confuse_the_captured_stream, "a captured stream is there");
}

/* --- calls of the allocator -------------------------------------------------------------- */

static void leave_a_call_open(fixture *f)
{
    f->s.report.is_under_way = true;
}

static void miscount_threads_inside(fixture *f)
{
    f->s.interleaving.overlap = &f->overlap;
    f->overlap.inside_count = 1;
}

static void leave_an_interleaved_call_open(fixture *f)
{
    f->s.interleaving.overlap = &f->overlap;
    f->overlap.is_inside[0] = true;
    f->overlap.inside_count = 1;
}

static void show_another_device(fixture *f)
{
    f->s.view.device = 1;
}

static void show_no_device(fixture *f)
{
    f->s.view.device = 2;
}

static void note_more_misuses_than_there_is_room_for(fixture *f)
{
    f->s.calls.misuse_count = MISUSE_MAX + 1;
}

TEST(each_corruption_around_calls_is_found)
{
    const char *const ended = "each call of the allocator has ended when its request has";
    expect_found(leave_a_call_open, ended);
    expect_found(leave_an_interleaved_call_open, ended);
    expect_found(miscount_threads_inside, "threads in the allocator are counted");
    expect_found(show_another_device, "the view shows the figures of its device");
    expect_found(show_no_device, "the view is of a device that is there");
    expect_found(note_more_misuses_than_there_is_room_for,
                 "the allocator's calls are in their lists");
}

static void end_a_call_twice(void *session)
{
    leave_allocator(session, &(call_frame){0});
}

TEST(a_call_that_ends_without_having_begun_ends_the_process)
{
    fixture *f = open_fixture();
    assert_int_equal(assertion_test(end_a_call_twice, &f->s).is_assertion, GMD_ASSERT_LEVEL >= 2);
    free(f);
}

/* --- when -------------------------------------------------------------------------------- */

TEST(with_little_in_it_a_session_is_checked_every_few_requests)
{
    fixture *f = open_fixture();
    f->s.pools.is_used = false;
    f->s.pools.state = (gmd_pool_state){0};
    captures_end(&f->s.captures);
    f->s.captures.count = 0;
    lose_a_block(f);
    int checks = 0;
    for (int i = 0; i < 16; i++) {
        checks += session_state_due_violation(&f->s) != NULL;
    }
    free(f);
    assert_in_range(checks, 4, 16);
}

TEST(while_a_thread_is_in_the_allocator_nothing_is_checked)
{
    fixture *f = open_fixture();
    lose_a_block(f);
    f->s.interleaving.overlap = &f->overlap;
    f->overlap.is_inside[1] = true;
    f->overlap.inside_count = 1;
    for (int i = 0; i < 1000; i++) {
        assert_null(session_state_due_violation(&f->s));
    }
    free(f);
}

static void finish(void *session)
{
    session_finish(session);
}

TEST(a_corrupt_state_at_the_end_of_a_run_ends_the_process)
{
    fixture *f = open_fixture();
    f->s.shared = calloc(1, sizeof(shared_run));
    lose_a_block(f);
    assertion_end end = assertion_test(finish, &f->s);
    assert_true(GMD_ASSERT_LEVEL < 3 || end.is_assertion);
    free(f->s.shared);
    free(f);
}
