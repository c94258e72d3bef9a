/* Each corruption of what the simulated device keeps is found by the walk that is there for it, and
 * misuse by its caller breaks nothing. White-box: the tests reach into the structures. */
#include "../assertion_test.h"
#include "gmd_test.h"

#include "address_map.h"
#include "due.h"
#include "gmd_sim_front.h"
#include "graphs.h"
#include "pages.h"
#include "physical_memory.h"
#include "pool_memory.h"
#include "pools.h"
#include "streams.h"
#include "validity.h"

#include <string.h>

#define MIB ((uint64_t)1 << 20)

static struct {
    cudaStream_t stream;
    uint64_t small, large, pooled, range;
    CUmemGenericAllocationHandle memory;
    cudaGraph_t graph;
} made;

static uint64_t allocate(uint64_t size)
{
    void *out = NULL;
    assert_int_equal(gmd_sim_cudaMalloc(&out, size), cudaSuccess);
    return (uintptr_t)out;
}

static void map_memory(void)
{
    CUdeviceptr range = 0;
    const CUmemAllocationProp properties = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                            .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE}};
    assert_int_equal(gmd_sim_cuMemAddressReserve(&range, 32 * MIB, 0, 0, 0), CUDA_SUCCESS);
    assert_int_equal(gmd_sim_cuMemCreate(&made.memory, 4 * MIB, &properties, 0), CUDA_SUCCESS);
    assert_int_equal(gmd_sim_cuMemMap(range + 2 * MIB, 4 * MIB, 0, made.memory, 0), CUDA_SUCCESS);
    made.range = range;
}

/* A chunk with two blocks in use and free ones around them. */
static void use_pool(void)
{
    void *blocks[3];
    for (int i = 0; i < 3; i++) {
        assert_int_equal(gmd_sim_cudaMallocAsync(&blocks[i], 4096, made.stream), cudaSuccess);
    }
    assert_int_equal(gmd_sim_cudaFreeAsync(blocks[0], made.stream), cudaSuccess);
    made.pooled = (uintptr_t)blocks[1];
}

static void capture_graph(void)
{
    assert_int_equal(gmd_sim_cudaStreamBeginCapture(made.stream, cudaStreamCaptureModeThreadLocal),
                     cudaSuccess);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(gmd_sim_launch(made.stream, 10, NULL, 0), cudaSuccess);
    }
    assert_int_equal(gmd_sim_cudaStreamEndCapture(made.stream, &made.graph), cudaSuccess);
}

/* One of everything, and work under way. */
static int make_one_of_each(void **state)
{
    (void)state;
    gmd_sim_config config;
    cudaEvent_t event;
    gmd_sim_default_config(&config);
    config.capacity_bytes = 1024 * MIB;
    assert_int_equal(gmd_sim_reset(&config), 0);
    assert_int_equal(gmd_sim_cudaStreamCreateWithFlags(&made.stream, cudaStreamNonBlocking),
                     cudaSuccess);
    made.small = allocate(512);
    made.large = allocate(5 * MIB);
    map_memory();
    use_pool();
    capture_graph();
    assert_int_equal(gmd_sim_launch(made.stream, 1000000000, NULL, 0), cudaSuccess);
    assert_int_equal(gmd_sim_cudaEventCreateWithFlags(&event, cudaEventDisableTiming), cudaSuccess);
    assert_int_equal(gmd_sim_cudaEventRecord(event, made.stream), cudaSuccess);
    return 0;
}

FIXTURE(validity, make_one_of_each, NULL);

/* Only a child is corrupted: what is left of it could not be reset. */
typedef struct corruption {
    void (*spoil)(void);
    const char *sentence;
} corruption;

static void spoil_and_ask(void *context)
{
    const corruption *c = context;
    c->spoil();
    const char *violation = sim_violation();
    if (!violation || strcmp(violation, c->sentence) != 0) {
        fprintf(stderr, "found: %s\n", violation ? violation : "nothing");
    }
}

static void expect_found(void (*spoil)(void), const char *sentence)
{
    corruption c = {spoil, sentence};
    assert_null(sim_violation());
    assertion_end end = assertion_test(spoil_and_ask, &c);
    assert_string_equal(end.said, "");
    assert_true(end.is_silent);
}

/* --- allocations and pages --------------------------------------------------------------- */

static void widen_a_gap(void)
{
    map_find(made.large)->gap += 512;
}

static void overlap(void)
{
    map_at_or_above(made.large + 1)->address = made.large + 1;
}

static void forget_a_largest_gap(void)
{
    map_find(made.small)->largest_gap = UINT64_MAX;
}

static void outrank_the_root(void)
{
    map_find(made.small)->priority = UINT32_MAX;
    map_find(made.large)->priority = UINT32_MAX;
    map_find(made.range)->priority = UINT32_MAX;
    map_at_or_above(ADDRESS_SPACE_END)->priority = 0;
}

static void ask_for_more_than_there_is(void)
{
    map_find(made.small)->size = 4096;
}

static void have_no_device(void)
{
    map_find(made.small)->device = 7;
}

static void take_a_page_twice(void)
{
    pages_take(made.large, 1, 0);
}

static void take_an_inner_page_twice(void)
{
    pages_take(made.large + 2 * MIB, 1, 0);
}

static void give_a_page_back(void)
{
    pages_release(made.small, 1);
}

static void lose_physical_bytes(void)
{
    sim.devices[0].physical_bytes--;
}

static void miscount_allocations(void)
{
    sim.devices[0].allocation_count++;
}

static void miscount_allocated_bytes(void)
{
    map_find(made.large)->size--;
}

TEST_F(validity, each_corruption_of_allocations_and_pages_is_found)
{
    const char *const users = "a page counts the allocations that touch it";
    expect_found(widen_a_gap, "an allocation knows the gap below it");
    expect_found(overlap, "allocations are in order, have a range, and do not overlap");
    expect_found(forget_a_largest_gap, "a node knows the largest gap of its subtree");
    expect_found(outrank_the_root, "a node outranks its children in the map");
    expect_found(ask_for_more_than_there_is, "an allocation takes what was asked for, or more");
    expect_found(have_no_device, "an allocation is of a device");
    expect_found(take_a_page_twice, users);
    expect_found(take_an_inner_page_twice, users);
    expect_found(give_a_page_back, users);
    expect_found(lose_physical_bytes, "physical memory in use is the sum over pages and handles");
    expect_found(miscount_allocations, "a device counts its allocations and their bytes");
    expect_found(miscount_allocated_bytes, "a device counts its allocations and their bytes");
}

/* --- reservations, mappings and handles -------------------------------------------------- */

static void lose_a_mapped_page(void)
{
    physical_find(made.memory)->mapped--;
}

static void leave_a_memory_to_nobody(void)
{
    gmd_sim_cuMemUnmap(made.range + 2 * MIB, 4 * MIB);
    physical_find(made.memory)->references = 0;
}

static void map_what_is_gone(void)
{
    physical_find(made.memory)->handle = 0;
}

static void grow_a_memory(void)
{
    physical_find(made.memory)->size += 2 * MIB;
}

static void miscount_handles(void)
{
    sim.devices[0].handle_count++;
}

static void miscount_mapped_bytes(void)
{
    sim.devices[0].mapped_bytes--;
}

static void miscount_reservations(void)
{
    sim.devices[0].reservation_count++;
}

static void lose_the_range_of_a_reservation(void)
{
    map_find(made.range)->reservation = 2;
}

TEST_F(validity, each_corruption_of_reservations_and_mappings_is_found)
{
    const char *const handles =
        "a device counts its handles, and the bytes of them that are mapped";
    expect_found(lose_a_mapped_page, "a physical memory counts the pages of it that are mapped");
    expect_found(leave_a_memory_to_nobody,
                 "a physical memory that nothing refers to is given back");
    expect_found(map_what_is_gone,
                 "what is mapped is a physical memory, and lies in the reservation");
    expect_found(grow_a_memory, "a physical memory is mapped whole");
    expect_found(miscount_handles, handles);
    expect_found(miscount_mapped_bytes, handles);
    expect_found(miscount_reservations, "a device counts its reservations and their bytes");
    expect_found(lose_the_range_of_a_reservation, "a reservation has its range in the map");
}

/* --- pools ------------------------------------------------------------------------------- */

static block *in_use(void)
{
    return block_at(map_find(made.pooled)->pool_block);
}

static block *freed(void)
{
    return block_at(in_use()->below);
}

static void forget_a_neighbour(void)
{
    block_at(in_use()->above)->below = in_use()->above;
}

static void shrink_a_range(void)
{
    map_find(made.pooled)->size = 512;
}

static void shrink_a_block_in_use(void)
{
    in_use()->size = 0;
    map_find(made.pooled)->size = 0;
}

static void free_a_block_beside_a_free_one(void)
{
    in_use()->is_live = false;
    in_use()->shelf = freed()->shelf;
    map_find(made.pooled)->size = map_find(made.pooled)->span;
}

static void free_a_block_on_a_shelf(void)
{
    freed()->is_live = true;
    freed()->size = freed()->span;
    freed()->shelf = SHELF_NONE;
}

static void forget_where_a_block_lies(void)
{
    freed()->shelf = SHELF_NONE;
}

static void age_a_block(void)
{
    freed()->older = 1;
}

static void free_on_another_stream(void)
{
    freed()->freed_at.on = sim.devices[0].legacy;
}

TEST_F(validity, each_corruption_of_pools_is_found)
{
    expect_found(forget_a_neighbour, "the blocks of a chunk tile it, and know each other");
    expect_found(shrink_a_range, "a block of a pool has its range in the map");
    expect_found(shrink_a_block_in_use,
                 "a block in use is on no shelf, and as large as was asked for");
    expect_found(free_a_block_beside_a_free_one, "free neighbours on one shelf are joined");
    expect_found(free_a_block_on_a_shelf,
                 "a pool's figures are sums over its blocks, at most their peaks");
    expect_found(forget_where_a_block_lies, "a shelf has free blocks that name it");
    expect_found(age_a_block, "a shelf has its blocks by time, too");
    expect_found(free_on_another_stream, "a shelf has what its stream freed");
}

/* --- streams, events and graphs ---------------------------------------------------------- */

static stream *busy(void)
{
    return stream_find(sim_this_thread(), made.stream);
}

static void pass_the_tail(void)
{
    busy()->head = busy()->tail + 1;
}

static void know_the_future(void)
{
    busy()->progress.known = busy()->tail + 1;
}

static void shrink_a_ring(void)
{
    busy()->ring_size = 3;
}

static void forget_that_work_is_queued(void)
{
    streams.active_count = 0;
}

static void forget_what_ends_next(void)
{
    due_drop(busy());
}

static void end_before_the_first(void)
{
    cudaStream_t other;
    assert_int_equal(gmd_sim_cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking), cudaSuccess);
    assert_int_equal(gmd_sim_launch(other, 10, NULL, 0), cudaSuccess);
    assert_int_equal(streams.due_count, 2);
    streams.due[1]->due_ns = 0;
    streams.due[0]->due_ns = 1;
}

static void wait_for_no_value(void)
{
    streams.due[0]->due_place = DUE_BY_VALUE;
}

static void wait_for_nobody(void)
{
    streams.due[0]->due_place = DUE_AFTER_ANOTHER;
}

static void miscount_what_is_needed(void)
{
    streams.needed_count++;
}

static void forget_what_is_open(void)
{
    busy()->is_open = false;
}

static void have_a_past_in_the_future(void)
{
    gmd_past *joined = NULL;
    gmd_past_item item = {&sim.devices[0].legacy->progress, 1000};
    assert_true(gmd_past_join(NULL, NULL, item, NULL, &joined));
    busy()->before = joined;
}

static void confuse_numbers(void)
{
    busy()->progress.id++;
}

static void destroy_a_stream_that_has_a_handle(void)
{
    busy()->is_destroyed = true;
}

static void miscount_streams(void)
{
    sim.devices[0].stream_count++;
}

static void miscount_events(void)
{
    sim.devices[0].event_count++;
}

static void rewind_a_stream(void)
{
    stream *s = busy(); /* with the events that were recorded on it */
    due_drop(s);
    s->head = s->tail = s->progress.known = 0;
    streams.active_count = streams.open_count = 0;
    s->is_open = false;
}

static void depend_on_a_later_node(void)
{
    graph_find(made.graph)->nodes[1].after[0] = 2;
}

static void misplace_a_graph(void)
{
    graph_find(made.graph)->slot++;
}

TEST_F(validity, each_corruption_of_streams_is_found)
{
    expect_found(pass_the_tail, "no stream is further than what was queued on it");
    expect_found(know_the_future, "no stream is further than what was queued on it");
    expect_found(shrink_a_ring, "the work of a stream fits its ring");
    expect_found(forget_that_work_is_queued, "the streams with work are active");
    expect_found(forget_what_ends_next,
                 "a stream whose first entry does not run is filed by when that ends");
    expect_found(end_before_the_first, "streams are in the order in which their first entries end");
    expect_found(wait_for_no_value, "a stream whose first entry waits for a value is listed");
    expect_found(wait_for_nobody, "a stream knows who waits for it, in the order of the tickets");
    expect_found(miscount_what_is_needed, "the streams that are waited for are counted");
    expect_found(forget_what_is_open,
                 "the streams of which the host does not know that all is over are open");
    expect_found(have_a_past_in_the_future,
                 "a past has tickets that were given, of other streams, in their order");
    expect_found(confuse_numbers, "a stream knows its number");
    expect_found(destroy_a_stream_that_has_a_handle, "a handle is that of its stream");
    expect_found(miscount_streams, "a device counts its streams");
}

TEST_F(validity, each_corruption_of_events_and_graphs_is_found)
{
    expect_found(miscount_events, "a device counts its events");
    expect_found(rewind_a_stream, "an event was recorded on a ticket that was given");
    expect_found(depend_on_a_later_node, "a node depends on earlier ones");
    expect_found(misplace_a_graph, "a graph knows its place");
}

/* --- when -------------------------------------------------------------------------------- */

static void spoil_and_call(void *context)
{
    if (context) {
        lose_physical_bytes();
    }
    size_t free_bytes, total_bytes;
    for (int i = 0; i < 16; i++) {
        gmd_sim_cudaMemGetInfo(&free_bytes, &total_bytes);
    }
}

static void spoil_and_reset(void *context)
{
    gmd_sim_config config;
    gmd_sim_default_config(&config);
    if (context) {
        miscount_events();
    }
    gmd_sim_reset(&config);
}

TEST_F(validity, a_call_and_a_reset_end_the_process_on_a_corrupt_state)
{
    bool is_checked = GMD_ASSERT_LEVEL >= 3;
    assert_true(assertion_test(spoil_and_call, NULL).is_silent);
    assert_true(assertion_test(spoil_and_reset, NULL).is_silent);
    assert_int_equal(assertion_test(spoil_and_call, &made).is_assertion, is_checked);
    assert_int_equal(assertion_test(spoil_and_reset, &made).is_assertion, is_checked);
}

/* Misuse is the caller's fault, never an assertion. */
TEST_F(validity, misuse_is_reported_and_leaves_a_valid_state)
{
    void *inside = (void *)(uintptr_t)(made.large + 512);
    assert_int_not_equal(gmd_sim_cudaFree(inside), cudaSuccess);
    assert_int_not_equal(gmd_sim_cudaFree((void *)(uintptr_t)made.range), cudaSuccess);
    assert_int_equal(gmd_sim_cudaFree((void *)(uintptr_t)made.small), cudaSuccess);
    assert_int_not_equal(gmd_sim_cudaFree((void *)(uintptr_t)made.small), cudaSuccess);
    assert_int_not_equal(gmd_sim_cuMemUnmap(made.range, 4 * MIB), CUDA_SUCCESS);
    assert_int_not_equal(gmd_sim_cuMemAddressFree(made.range, 32 * MIB), CUDA_SUCCESS);
    assert_int_equal(gmd_sim_cuMemRelease(made.memory), CUDA_SUCCESS);
    assert_int_not_equal(gmd_sim_cuMemRelease(made.memory), CUDA_SUCCESS);
    assert_int_equal(gmd_sim_cudaFreeAsync((void *)(uintptr_t)made.pooled, made.stream),
                     cudaSuccess);
    assert_int_not_equal(gmd_sim_cudaFreeAsync((void *)(uintptr_t)made.pooled, made.stream),
                         cudaSuccess);
    assert_int_equal(gmd_sim_misuse_count(), 7);
    assert_null(sim_violation());
}
