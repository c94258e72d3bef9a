/* Each rule of order.h fires on a planted sequence and is silent on the mended one. */
#include "gmd_test.h"
#include "order.h"

#include <pthread.h>
#include <string.h>

#define FOUND_MOST 16

static const order_stream main_stream = {.device = 0, .handle = 0};
static const order_stream side = {.device = 0, .handle = 0x7000};
static const order_stream third = {.device = 0, .handle = 0x7100};

typedef struct world {
    order *o;
    order_finding found[FOUND_MOST];
    size_t count;
} world;

static void note(void *context, const order_finding *finding)
{
    world *w = context;
    assert_true(w->count < FOUND_MOST);
    w->found[w->count++] = *finding;
}

static int open_world(void **state)
{
    static world w;
    w = (world){0};
    w.o = order_create(&(order_settings){.found = note, .context = &w});
    assert_non_null(w.o);
    order_stream_created(w.o, side, false);
    order_stream_created(w.o, third, false);
    *state = &w;
    return 0;
}

static int close_world(void **state)
{
    order_destroy(((world *)*state)->o);
    return 0;
}

FIXTURE(order, open_world, close_world);

#define ADDRESS UINT64_C(0x7f0000000000)
#define BYTES   UINT64_C(4096)

static order_block *allocate_at(world *w, uint64_t address, order_stream stream, uint64_t place)
{
    order_block *b = order_allocated(w->o, address, BYTES, stream, place, false);
    assert_non_null(b);
    return b;
}

static order_block *allocate(world *w, order_stream stream)
{
    return allocate_at(w, ADDRESS, stream, 1);
}

static void use_as(world *w, order_block *b, order_stream stream, uint64_t place, bool is_certain)
{
    order_queued(w->o, stream, "kernel", place, &(order_use){b, is_certain}, 1);
}

static void use(world *w, order_block *b, order_stream stream)
{
    use_as(w, b, stream, 0, true);
}

static void release(world *w, order_block *b)
{
    order_freed(w->o, b, 2);
    order_block_drop(w->o, b);
}

/* `stream` waits for all that is queued on `other`. */
static void wait_for(world *w, order_stream stream, order_stream other)
{
    static uint64_t events = 0x9000;
    uint64_t event = events += 16;
    order_event_recorded(w->o, event, other);
    order_event_waited_for(w->o, event, stream);
    order_event_destroyed(w->o, event);
}

/* A block elsewhere in memory, allocated on `stream` and used there. */
static void work_on_another(world *w, order_stream stream)
{
    order_block *other = allocate_at(w, ADDRESS + 16 * BYTES, stream, 3);
    use(w, other, stream);
    release(w, other);
}

/* The next owner of the memory, allocated on `stream` and used on `user`. */
static void take_memory(world *w, order_stream stream, order_stream user)
{
    order_block *next = allocate(w, stream);
    use(w, next, user);
    release(w, next);
}

/* --- freed early ------------------------------------------------------------------------- */

/* A block of the main stream, used on the side stream after it, and freed. */
static void use_on_side_and_free(world *w)
{
    order_block *b = allocate_at(w, ADDRESS, main_stream, 10);
    use(w, b, main_stream);
    wait_for(w, side, main_stream);
    use_as(w, b, side, 11, true);
    order_freed(w->o, b, 12);
    order_block_drop(w->o, b);
}

TEST_F(order, a_block_freed_while_another_stream_uses_it_is_found_when_its_stream_goes_on)
{
    world *w = *state;
    use_on_side_and_free(w);
    work_on_another(w, main_stream);
    assert_int_equal(w->count, 1);
    const order_finding *f = &w->found[0];
    assert_int_equal(f->kind, ORDER_FREED_EARLY);
    assert_true(f->is_certain);
    assert_int_equal(f->block.address, ADDRESS);
    assert_int_equal(f->block.allocated_at, 10);
    assert_int_equal(f->use.place, 11);
    assert_int_equal(f->use_stream.handle, side.handle);
    assert_int_equal(f->block.freed_at, 12);
    assert_int_equal(f->taker.allocated_at, 3);
}

TEST_F(order, a_stream_that_waits_before_it_goes_on_is_right)
{
    world *w = *state;
    use_on_side_and_free(w);
    wait_for(w, main_stream, side);
    work_on_another(w, main_stream);
    assert_int_equal(w->count, 0);
}

TEST_F(order, memory_taken_before_the_wait_and_used_after_it_is_right)
{
    world *w = *state;
    use_on_side_and_free(w);
    order_block *next = allocate(w, main_stream);
    wait_for(w, main_stream, side);
    use(w, next, main_stream);
    release(w, next);
    assert_int_equal(w->count, 0);
}

TEST_F(order, record_stream_before_the_free_is_right)
{
    world *w = *state;
    order_block *b = allocate(w, main_stream);
    use(w, b, side);
    order_record_stream(w->o, b, side);
    release(w, b);
    work_on_another(w, main_stream);
    assert_int_equal(w->count, 0);
}

TEST_F(order, record_stream_covers_its_own_stream_only)
{
    world *w = *state;
    order_block *b = allocate(w, main_stream);
    use(w, b, side);
    use(w, b, third);
    order_record_stream(w->o, b, side);
    release(w, b);
    work_on_another(w, main_stream);
    assert_int_equal(w->count, 1);
    assert_int_equal(w->found[0].use_stream.handle, third.handle);
}

TEST_F(order, a_wait_before_the_last_use_is_too_early)
{
    world *w = *state;
    order_block *b = allocate(w, main_stream);
    use(w, b, side);
    wait_for(w, main_stream, side);
    use(w, b, side);
    release(w, b);
    work_on_another(w, main_stream);
    assert_int_equal(w->count, 1);
}

TEST_F(order, order_through_a_third_stream_is_order)
{
    world *w = *state;
    use_on_side_and_free(w);
    wait_for(w, third, side);
    wait_for(w, main_stream, third);
    work_on_another(w, main_stream);
    assert_int_equal(w->count, 0);
}

TEST_F(order, what_the_host_has_waited_for_is_over)
{
    world *w = *state;
    use_on_side_and_free(w);
    order_stream_over(w->o, side);
    work_on_another(w, main_stream);
    use_on_side_and_free(w);
    order_device_over(w->o, 0);
    work_on_another(w, main_stream);
    use_on_side_and_free(w);
    order_event_recorded(w->o, 77, side);
    order_event_over(w->o, 77);
    work_on_another(w, main_stream);
    assert_int_equal(w->count, 0);
}

TEST_F(order, waiting_for_a_stream_is_waiting_for_what_it_waited_for)
{
    world *w = *state;
    use_on_side_and_free(w);
    wait_for(w, third, side);
    order_stream_over(w->o, third);
    work_on_another(w, main_stream);
    assert_int_equal(w->count, 0);
}

TEST_F(order, an_event_from_before_the_use_says_nothing)
{
    world *w = *state;
    order_event_recorded(w->o, 77, side);
    use_on_side_and_free(w);
    order_event_over(w->o, 77);
    order_event_waited_for(w->o, 77, main_stream);
    order_event_waited_for(w->o, 78, main_stream); /* never recorded */
    work_on_another(w, main_stream);
    assert_int_equal(w->count, 1);
}

TEST_F(order, the_other_direction_is_found_likewise)
{
    world *w = *state;
    order_block *b = allocate(w, side);
    use(w, b, side);
    wait_for(w, main_stream, side);
    use(w, b, main_stream);
    release(w, b);
    work_on_another(w, side);
    assert_int_equal(w->count, 1);
    assert_int_equal(w->found[0].taker_stream.handle, side.handle);
}

TEST_F(order, a_prefetcher_that_waits_for_the_consumer_is_right)
{
    world *w = *state;
    for (int i = 0; i < 3; i++) {
        order_block *b = allocate(w, side);
        wait_for(w, side, main_stream);
        use(w, b, side);
        wait_for(w, main_stream, side);
        use(w, b, main_stream);
        release(w, b);
    }
    assert_int_equal(w->count, 0);
}

TEST_F(order, one_block_is_told_of_once)
{
    world *w = *state;
    use_on_side_and_free(w);
    work_on_another(w, main_stream);
    work_on_another(w, main_stream);
    take_memory(w, main_stream, main_stream);
    assert_int_equal(w->count, 1);
}

TEST_F(order, a_use_that_rests_on_a_stale_pointer_perhaps_is_not_certain)
{
    world *w = *state;
    order_block *b = allocate(w, main_stream);
    use_as(w, b, side, 0, false);
    release(w, b);
    work_on_another(w, main_stream);
    assert_int_equal(w->count, 1);
    assert_false(w->found[0].is_certain);
}

TEST_F(order, a_certain_use_counts_beside_a_later_one_that_is_not)
{
    world *w = *state;
    order_block *b = allocate(w, main_stream);
    use_as(w, b, side, 0, true);
    use_as(w, b, side, 0, false);
    release(w, b);
    work_on_another(w, main_stream);
    bool is_certain = false;
    for (size_t i = 0; i < w->count; i++) {
        is_certain = is_certain || w->found[i].is_certain;
    }
    assert_true(is_certain);
}

TEST_F(order, a_third_stream_need_not_wait_for_memory_it_did_not_get)
{
    world *w = *state;
    order_block *b = allocate(w, main_stream);
    use(w, b, main_stream);
    use(w, b, side);
    release(w, b);
    order_block *next = allocate_at(w, ADDRESS + 16 * BYTES, main_stream, 3);
    wait_for(w, third, side);
    use(w, next, third);
    release(w, next);
    assert_int_equal(w->count, 0);
}

/* --- handed on early --------------------------------------------------------------------- */

TEST_F(order, a_new_owner_whose_stream_does_not_wait_for_the_earlier_one_is_found)
{
    world *w = *state;
    order_block *b = allocate(w, main_stream);
    use(w, b, main_stream);
    release(w, b);
    take_memory(w, main_stream, side);
    assert_int_equal(w->count, 1);
    assert_int_equal(w->found[0].kind, ORDER_REUSED_EARLY);
    assert_int_equal(w->found[0].taker_stream.handle, side.handle);
}

TEST_F(order, a_new_owner_whose_stream_waits_is_right)
{
    world *w = *state;
    order_block *b = allocate(w, main_stream);
    use(w, b, main_stream);
    release(w, b);
    wait_for(w, side, main_stream);
    take_memory(w, main_stream, side);
    assert_int_equal(w->count, 0);
}

TEST_F(order, memory_of_another_stream_is_found_wherever_the_blocks_overlap)
{
    world *w = *state;
    order_block *b = allocate(w, main_stream);
    use(w, b, main_stream);
    release(w, b);
    order_block *next = order_allocated(w->o, ADDRESS + BYTES / 2, BYTES, side, 1, false);
    use(w, next, side);
    release(w, next);
    assert_int_equal(w->count, 1);
    order_block *first = order_allocated(w->o, ADDRESS - BYTES, BYTES, side, 1, false);
    use(w, first, side);
    release(w, first);
    assert_int_equal(w->count, 1);
}

/* A range is freed with work on the main stream; one half goes to that stream, the other to `side`.
 */
static void share_memory(world *w, uint64_t half_of_side)
{
    order_block *b = allocate(w, main_stream);
    use(w, b, main_stream);
    release(w, b);
    uint64_t half = BYTES / 2, of_side = ADDRESS + half_of_side * half;
    order_stream streams[] = {main_stream, side};
    uint64_t addresses[] = {ADDRESS + half - half_of_side * half, of_side};
    for (size_t i = 0; i < 2; i++) {
        order_block *part = order_allocated(w->o, addresses[i], half, streams[i], 1, false);
        use(w, part, streams[i]);
        order_block_drop(w->o, part);
        assert_int_equal(w->count, i);
    }
}

TEST_F(order, what_is_left_of_a_range_in_front_is_held_against_the_next)
{
    share_memory(*state, 0);
}

TEST_F(order, what_is_left_of_a_range_behind_is_held_against_the_next)
{
    share_memory(*state, 1);
}

TEST_F(order, reuse_on_its_own_stream_is_right)
{
    world *w = *state;
    for (int i = 0; i < 10; i++) {
        take_memory(w, main_stream, main_stream);
    }
    assert_int_equal(w->count, 0);
}

/* --- used after free --------------------------------------------------------------------- */

TEST_F(order, work_queued_after_the_free_is_found)
{
    world *w = *state;
    order_block *b = allocate(w, main_stream);
    use(w, b, main_stream);
    order_freed(w->o, b, 2);
    use_as(w, b, main_stream, 5, true);
    use_as(w, b, main_stream, 6, true);
    order_block_drop(w->o, b);
    assert_int_equal(w->count, 1);
    assert_int_equal(w->found[0].kind, ORDER_USED_AFTER_FREE);
    assert_int_equal(w->found[0].use.place, 5);
    assert_string_equal(w->found[0].use.what, "kernel");
}

TEST_F(order, the_next_owner_of_the_memory_may_use_it)
{
    world *w = *state;
    order_block *b = allocate(w, main_stream);
    order_freed(w->o, b, 2);
    take_memory(w, main_stream, main_stream);
    order_block_drop(w->o, b);
    assert_int_equal(w->count, 0);
}

/* --- default streams --------------------------------------------------------------------- */

TEST_F(order, the_legacy_default_stream_waits_for_blocking_streams)
{
    world *w = *state;
    order_stream_created(w->o, side, true);
    order_block *b = allocate(w, main_stream);
    use(w, b, side);
    release(w, b);
    work_on_another(w, main_stream);
    order_block *c = allocate(w, side);
    use(w, c, main_stream);
    release(w, c);
    work_on_another(w, side);
    assert_int_equal(w->count, 0);
}

TEST_F(order, blocking_streams_do_not_wait_for_each_other)
{
    world *w = *state;
    order_stream_created(w->o, side, true);
    order_stream_created(w->o, third, true);
    order_block *b = allocate(w, third);
    use(w, b, side);
    release(w, b);
    work_on_another(w, third);
    assert_int_equal(w->count, 1);
}

TEST_F(order, work_on_the_legacy_default_stream_orders_blocking_streams)
{
    world *w = *state;
    order_stream_created(w->o, side, true);
    order_stream_created(w->o, third, true);
    order_block *b = allocate(w, third);
    use(w, b, side);
    order_queued(w->o, main_stream, "kernel", 0, NULL, 0);
    release(w, b);
    work_on_another(w, third);
    assert_int_equal(w->count, 0);
}

TEST_F(order, each_thread_has_a_default_stream_of_its_own_that_is_blocking)
{
    world *w = *state;
    order_stream one = {.handle = 2, .thread = 100}, two = {.handle = 2, .thread = 200};
    order_block *b = allocate(w, one);
    use(w, b, two);
    release(w, b);
    work_on_another(w, one);
    assert_int_equal(w->count, 1);
    order_block *c = allocate_at(w, ADDRESS + 4 * BYTES, one, 1);
    use(w, c, main_stream);
    release(w, c);
    work_on_another(w, one);
    assert_int_equal(w->count, 1);
}

TEST_F(order, the_default_streams_of_two_devices_are_two)
{
    world *w = *state;
    order_stream second = {.device = 1};
    order_block *b = allocate(w, main_stream);
    use(w, b, second);
    order_device_over(w->o, 0);
    release(w, b);
    work_on_another(w, main_stream);
    assert_int_equal(w->count, 1);
    assert_int_equal(w->found[0].use_stream.device, 1);
}

TEST_F(order, handles_0_and_1_are_the_same_stream)
{
    world *w = *state;
    order_stream legacy = {.handle = 1};
    order_block *b = allocate(w, main_stream);
    assert_false(order_is_remarkable(b, legacy));
    assert_true(order_is_remarkable(b, side));
    use(w, b, legacy);
    release(w, b);
    work_on_another(w, main_stream);
    assert_int_equal(w->count, 0);
}

/* --- handles come and go ----------------------------------------------------------------- */

TEST_F(order, a_stream_with_the_handle_of_a_destroyed_one_is_new)
{
    world *w = *state;
    order_block *b = allocate(w, main_stream);
    use(w, b, side);
    order_stream_destroyed(w->o, side);
    order_stream_created(w->o, side, false);
    wait_for(w, main_stream, side);
    release(w, b);
    work_on_another(w, main_stream);
    assert_int_equal(w->count, 1);
}

TEST_F(order, a_stream_that_took_over_a_clock_is_not_the_one_before)
{
    world *w = *state;
    order_stream before = {.handle = 0x7200}, after = {.handle = 0x7300};
    order_stream_created(w->o, before, false);
    order_block *b = allocate(w, main_stream);
    use(w, b, before);
    order_device_over(w->o, 0);
    order_stream_destroyed(w->o, before);
    order_stream_created(w->o, after, false);
    use(w, b, after);
    order_record_stream(w->o, b, after);
    release(w, b);
    work_on_another(w, main_stream);
    assert_int_equal(w->count, 0);
}

TEST_F(order, an_event_with_the_handle_of_a_destroyed_one_is_new)
{
    world *w = *state;
    use_on_side_and_free(w);
    order_event_recorded(w->o, 77, side);
    order_event_destroyed(w->o, 77);
    order_event_waited_for(w->o, 77, main_stream);
    work_on_another(w, main_stream);
    assert_int_equal(w->count, 1);
}

TEST_F(order, clocks_of_destroyed_streams_are_used_again)
{
    world *w = *state;
    for (uint64_t i = 0; i < 100000; i++) {
        order_stream s = {.handle = 0x10000 + 16 * i};
        order_stream_created(w->o, s, i % 2);
        order_queued(w->o, s, "kernel", 0, NULL, 0);
        if (i % 100 == 0) {
            order_device_over(w->o, 0);
        }
        order_stream_destroyed(w->o, s);
    }
    order_statistics counts;
    order_statistics_of(w->o, &counts);
    assert_true(counts.streams < 200);
}

TEST_F(order, streams_nobody_waits_for_are_kept_up_to_a_bound_and_then_taken_to_be_over)
{
    world *w = *state;
    for (uint64_t i = 0; i < 20000; i++) {
        order_stream s = {.handle = 0x10000 + 16 * i};
        order_stream_created(w->o, s, false);
        order_queued(w->o, s, "kernel", 0, NULL, 0);
        order_stream_destroyed(w->o, s);
    }
    order_statistics counts;
    order_statistics_of(w->o, &counts);
    assert_true(counts.streams <= 4096);
    use_on_side_and_free(w);
    work_on_another(w, main_stream);
    assert_int_equal(w->count, 1);
}

TEST_F(order, blocks_that_nobody_refers_to_are_gone)
{
    world *w = *state;
    for (int i = 0; i < 1000; i++) {
        take_memory(w, i % 2 ? main_stream : side, i % 3 ? main_stream : third);
        order_device_over(w->o, 0);
    }
    order_statistics counts;
    order_statistics_of(w->o, &counts);
    assert_int_equal(counts.live_blocks, 0);
    assert_int_equal(counts.blocks, 1000);
}

/* --- graphs ------------------------------------------------------------------------------ */

#define GRAPH UINT64_C(0x5000)
#define EXEC  UINT64_C(0x6000)

/* A graph, captured on `third`, that uses `b`. */
static void capture_use_of(world *w, order_block *b)
{
    order_capture_begun(w->o, third);
    use(w, b, third);
    order_capture_ended(w->o, third, GRAPH);
    order_graph_instantiated(w->o, GRAPH, EXEC);
    order_graph_destroyed(w->o, GRAPH);
}

TEST_F(order, what_is_captured_does_not_run)
{
    world *w = *state;
    order_block *b = allocate(w, main_stream);
    capture_use_of(w, b);
    release(w, b);
    work_on_another(w, main_stream);
    assert_int_equal(w->count, 0);
}

TEST_F(order, a_launch_of_a_graph_uses_its_blocks_on_the_stream_of_the_launch)
{
    world *w = *state;
    order_block *b = allocate(w, main_stream);
    capture_use_of(w, b);
    order_graph_launched(w->o, EXEC, side, 9);
    release(w, b);
    work_on_another(w, main_stream);
    assert_int_equal(w->count, 1);
    assert_int_equal(w->found[0].kind, ORDER_FREED_EARLY);
    assert_int_equal(w->found[0].use.place, 9);
    assert_int_equal(w->found[0].use_stream.handle, side.handle);
}

TEST_F(order, a_launch_of_a_graph_after_its_input_was_freed_is_found)
{
    world *w = *state;
    order_block *b = allocate(w, main_stream);
    capture_use_of(w, b);
    order_graph_launched(w->o, EXEC, main_stream, 0);
    assert_int_equal(w->count, 0);
    release(w, b);
    order_graph_launched(w->o, EXEC, main_stream, 0);
    order_graph_launched(w->o, EXEC, main_stream, 0);
    assert_int_equal(w->count, 1);
    assert_int_equal(w->found[0].kind, ORDER_USED_AFTER_FREE);
}

TEST_F(order, a_graph_owns_what_was_allocated_during_its_capture)
{
    world *w = *state;
    order_capture_begun(w->o, third);
    order_block *b = allocate(w, third);
    use(w, b, third);
    order_capture_ended(w->o, third, GRAPH);
    order_graph_instantiated(w->o, GRAPH, EXEC);
    release(w, b);
    order_graph_launched(w->o, EXEC, main_stream, 0);
    take_memory(w, main_stream, main_stream);
    assert_int_equal(w->count, 0);
}

TEST_F(order, a_second_graph_may_use_what_a_first_one_owns)
{
    world *w = *state;
    order_capture_begun(w->o, side);
    order_block *b = allocate(w, side);
    order_capture_ended(w->o, side, GRAPH + 1);
    capture_use_of(w, b);
    release(w, b);
    order_graph_launched(w->o, EXEC, main_stream, 0);
    assert_int_equal(w->count, 0);
}

TEST_F(order, what_is_captured_is_not_held_against_what_runs)
{
    world *w = *state;
    order_block *b = allocate(w, main_stream);
    use(w, b, main_stream);
    release(w, b);
    order_capture_begun(w->o, third);
    take_memory(w, third, third);
    order_capture_ended(w->o, third, GRAPH);
    assert_int_equal(w->count, 0);
}

TEST_F(order, blocks_of_a_graph_pool_may_be_used_by_graphs_after_their_free)
{
    world *w = *state;
    order_block *b = order_allocated(w->o, ADDRESS, BYTES, main_stream, 1, true);
    capture_use_of(w, b);
    release(w, b);
    order_graph_launched(w->o, EXEC, main_stream, 0);
    assert_int_equal(w->count, 0);
}

/* A block of a captured stream, used on one that was forked off, and freed within the capture. */
static void free_in_capture(world *w, bool is_joined)
{
    order_capture_begun(w->o, third);
    order_block *b = allocate(w, third);
    use(w, b, third);
    wait_for(w, side, third);
    use(w, b, side);
    if (is_joined) {
        wait_for(w, third, side);
    }
    release(w, b);
    work_on_another(w, third);
    wait_for(w, third, side);
    order_capture_ended(w->o, third, GRAPH);
}

TEST_F(order, a_block_freed_early_within_a_capture_is_found)
{
    world *w = *state;
    free_in_capture(w, false);
    assert_int_equal(w->count, 1);
    assert_int_equal(w->found[0].kind, ORDER_FREED_EARLY);
    assert_true(w->found[0].is_captured);
}

TEST_F(order, a_block_freed_after_the_join_within_a_capture_is_right)
{
    world *w = *state;
    free_in_capture(w, true);
    assert_int_equal(w->count, 0);
}

TEST_F(order, streams_go_on_after_a_capture_as_before)
{
    world *w = *state;
    free_in_capture(w, true);
    use_on_side_and_free(w);
    work_on_another(w, main_stream);
    assert_int_equal(w->count, 1);
    assert_false(w->found[0].is_captured);
}

TEST_F(order, a_capture_that_failed_leaves_no_graph)
{
    world *w = *state;
    order_block *b = allocate(w, main_stream);
    order_capture_begun(w->o, third);
    use(w, b, third);
    order_capture_ended(w->o, third, 0);
    order_graph_instantiated(w->o, GRAPH, EXEC);
    release(w, b);
    order_graph_launched(w->o, EXEC, main_stream, 0);
    assert_int_equal(w->count, 0);
}

/* --- threads ----------------------------------------------------------------------------- */

#define THREADS 4
#define ROUNDS  2000

typedef struct worker {
    order *o;
    pthread_t thread;
    uint64_t number;
    order_block *shared;
} worker;

static void *work(void *argument)
{
    worker *me = argument;
    order *o = me->o;
    order_stream own = {.handle = 0x20000 + 16 * me->number}, captured = {.handle = own.handle + 8};
    for (uint64_t i = 0; i < ROUNDS; i++) {
        uint64_t event = 0x30000 + i % 7;
        order_stream_created(o, own, i % 2);
        order_block *b =
            order_allocated(o, ADDRESS + (i % 5 + 8 * me->number) * BYTES, BYTES, own, 1, false);
        order_use uses[] = {{b, true}, {me->shared, i % 2}};
        order_queued(o, own, "kernel", 0, uses, 2);
        order_event_recorded(o, event, own);
        order_event_waited_for(o, event, main_stream);
        order_queued(o, main_stream, "kernel", 0, uses, 2);
        order_capture_begun(o, captured);
        order_queued(o, captured, "kernel", 0, uses, 2);
        order_capture_ended(o, captured, 0x40000 + me->number);
        order_graph_instantiated(o, 0x40000 + me->number, 0x50000 + i % 3);
        order_graph_launched(o, 0x50000 + i % 3, own, 0);
        order_record_stream(o, b, main_stream);
        order_is_remarkable(me->shared, own);
        order_freed(o, b, 2);
        order_block_drop(o, b);
        order_event_destroyed(o, event);
        if (i % 100 == 0) {
            order_device_over(o, 0);
        }
        order_stream_destroyed(o, own);
    }
    return NULL;
}

TEST(any_thread_may_call_at_any_time)
{
    order *o = order_create(&(order_settings){.found = NULL});
    worker workers[THREADS];
    order_block *shared = order_allocated(o, ADDRESS - BYTES, BYTES, main_stream, 1, false);
    for (uint64_t i = 0; i < THREADS; i++) {
        workers[i] = (worker){.o = o, .number = i, .shared = shared};
        assert_int_equal(pthread_create(&workers[i].thread, NULL, work, &workers[i]), 0);
    }
    for (size_t i = 0; i < THREADS; i++) {
        pthread_join(workers[i].thread, NULL);
    }
    order_freed(o, shared, 2);
    order_block_drop(o, shared);
    order_statistics counts;
    order_statistics_of(o, &counts);
    assert_int_equal(counts.blocks, THREADS * ROUNDS + 1);
    order_destroy(o);
}

TEST_F(order, an_order_that_ends_in_the_middle_of_all_leaks_nothing)
{
    world *w = *state;
    use_on_side_and_free(w);
    order_block *b = allocate(w, main_stream);
    capture_use_of(w, b);
    order_event_recorded(w->o, 77, side);
    order_capture_begun(w->o, third);
    use(w, b, third);
    release(w, b);
}
