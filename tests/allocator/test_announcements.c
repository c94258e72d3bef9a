/* What a tool is told of segments and blocks (announcements.h), on the simulated device. The tool
 * is a fake. */
#include "announcements.h"
#include "fake_nvtx.h"

#include "gmd_allocator.h"
#include "gmd_sim.h"
#include "gmd_test.h"

#include <dlfcn.h>
#include <string.h>

#define TOOL "libfake_nvtx.so"

typedef struct world {
    void *library;
    fake_nvtx *tool;
    gmd_allocator *allocator;
} world;

static int open_world(void **state)
{
    static world w;
    gmd_error error = {""};
    char reason[256] = "";
    gmd_sim_config config;
    gmd_sim_default_config(&config);
    assert_int_equal(gmd_sim_reset(&config), 0);
    w.library = dlopen(TOOL, RTLD_NOW);
    assert_non_null(w.library);
    w.tool = dlsym(w.library, "fake_nvtx_state");
    assert_non_null(w.tool);
    *w.tool = (fake_nvtx){.refuses = 0};
    assert_true(announcements_start(TOOL, reason, sizeof reason));
    assert_int_equal(gmd_allocator_create(&w.allocator, 1, "", &error), GMD_OK);
    *state = &w;
    return 0;
}

static int close_world(void **state)
{
    world *w = *state;
    gmd_allocator_destroy(w->allocator);
    assert_int_equal(w->tool->bad_calls, 0);
    announcements_stop();
    dlclose(w->library);
    return 0;
}

FIXTURE(announced, open_world, close_world);

static uint64_t allocate(world *w, size_t size, cudaStream_t stream)
{
    uint64_t address = (uintptr_t)gmd_allocator_malloc(w->allocator, size, 0, stream);
    assert_int_not_equal(address, 0);
    announce_block(address, size, 0, stream);
    return address;
}

static void release(world *w, uint64_t address, cudaStream_t stream)
{
    announce_block_end(address, 0);
    assert_true(gmd_allocator_free(w->allocator, (void *)(uintptr_t)address, 0, stream));
}

/* The bytes of the region that begins there; 0: none. */
static uint64_t region_at(const world *w, uint64_t address)
{
    uint64_t bytes = 0;
    for (size_t i = 0; i < w->tool->region_count; i++) {
        bytes = w->tool->regions[i].address == address ? w->tool->regions[i].bytes : bytes;
    }
    return bytes;
}

TEST_F(announced, the_tool_knows_who_speaks)
{
    world *w = *state;
    assert_string_equal(w->tool->domain, "gmd");
}

TEST_F(announced, a_segment_is_a_heap)
{
    world *w = *state;
    allocate(w, 1000, NULL);
    assert_int_equal(w->tool->heap_count, 1);
    assert_int_equal(w->tool->heaps[0].bytes, 2 << 20);
}

TEST_F(announced, a_block_is_a_region_of_what_was_asked_for)
{
    world *w = *state;
    uint64_t block = allocate(w, 1000, NULL);
    assert_int_equal(region_at(w, block), 1000);
}

TEST_F(announced, a_freed_block_is_none)
{
    world *w = *state;
    uint64_t block = allocate(w, 1000, NULL), other = allocate(w, 500, NULL);
    release(w, block, NULL);
    assert_int_equal(region_at(w, block), 0);
    assert_int_equal(region_at(w, other), 500);
}

TEST_F(announced, work_with_a_block_is_waited_for_before_it_ends)
{
    world *w = *state;
    cudaStream_t side = NULL;
    assert_int_equal(cudaStreamCreateWithFlags(&side, cudaStreamNonBlocking), cudaSuccess);
    uint64_t block = allocate(w, 1000, NULL);
    assert_int_equal(cudaMemsetAsync((void *)(uintptr_t)block, 0, 1000, side), cudaSuccess);
    release(w, block, NULL);
    assert_int_equal(gmd_sim_pending(NULL), 0);
}

TEST_F(announced, a_segment_that_goes_is_no_heap)
{
    world *w = *state;
    release(w, allocate(w, 1000, NULL), NULL);
    gmd_allocator_empty_cache(w->allocator);
    assert_null(w->tool->heaps[0].heap);
}

TEST_F(announced, a_segment_that_a_graph_uses_is_memory_like_any_other)
{
    world *w = *state;
    cudaStream_t captured = NULL;
    cudaGraph_t graph = NULL;
    assert_int_equal(cudaStreamCreateWithFlags(&captured, cudaStreamNonBlocking), cudaSuccess);
    uint64_t before = allocate(w, 1000, captured);
    assert_int_equal(cudaStreamBeginCapture(captured, cudaStreamCaptureModeRelaxed), cudaSuccess);
    announce_captures(1);
    uint64_t block = allocate(w, 500, captured);
    release(w, block, captured);
    announce_captures(-1);
    assert_int_equal(cudaStreamEndCapture(captured, &graph), cudaSuccess);
    assert_int_equal(w->tool->region_count, 1);
    assert_int_equal(region_at(w, w->tool->heaps[0].address), w->tool->heaps[0].bytes);
    release(w, before, captured);
    assert_int_equal(w->tool->region_count, 1);
    cudaGraphDestroy(graph);
}

TEST_F(announced, while_captures_may_be_under_way_no_block_ends)
{
    world *w = *state;
    uint64_t block = allocate(w, 1000, NULL), other = allocate(w, 1000, NULL);
    announce_captures(1);
    announce_block_end(block, 0);
    assert_int_equal(region_at(w, block), 1000);
    announce_captures(-1);
    announce_block_end(other, 0);
    assert_int_equal(w->tool->region_count, 0);
}

TEST_F(announced, memory_that_comes_back_before_is_announced_anew)
{
    world *w = *state;
    uint64_t block = allocate(w, 1000, NULL);
    announce_captures(1);
    release(w, block, NULL);
    assert_int_equal(allocate(w, 700, NULL), block);
    assert_int_equal(region_at(w, block), 700);
    announce_captures(-1);
}

TEST(a_tool_that_does_not_care_for_memory_is_not_told)
{
    char reason[256] = "";
    void *library = dlopen(TOOL, RTLD_NOW);
    fake_nvtx *tool = dlsym(library, "fake_nvtx_state");
    *tool = (fake_nvtx){.refuses = 1};
    assert_false(announcements_start(TOOL, reason, sizeof reason));
    assert_non_null(strstr(reason, "does not want to know of memory"));
    assert_false(announcements_are_on);
    dlclose(library);
}

TEST(a_tool_that_is_not_there_is_named)
{
    char reason[256] = "";
    assert_false(announcements_start("/nowhere/tool.so", reason, sizeof reason));
    assert_non_null(strstr(reason, "/nowhere/tool.so"));
}
