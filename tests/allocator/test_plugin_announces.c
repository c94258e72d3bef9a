/* libgmd_allocator.so with a tool of NVTX's in the environment, which is a fake. */
#include "fake_nvtx.h"

#include "gmd_cuda.h"
#include "gmd_sim.h"
#include "gmd_test.h"

#include <dlfcn.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define TOOL "libfake_nvtx.so"

static void *library;
static fake_nvtx *tool;

static int open_library(void **state)
{
    (void)state;
    gmd_sim_config config;
    gmd_sim_default_config(&config);
    void *of_tool = dlopen(TOOL, RTLD_NOW);
    tool = of_tool ? dlsym(of_tool, "fake_nvtx_state") : NULL;
    setenv("NVTX_INJECTION64_PATH", TOOL, 1);
    setenv("GMD_ANNOUNCE", "1", 1);
    library = dlopen(GMD_TEST_ALLOCATOR, RTLD_NOW | RTLD_LOCAL);
    return gmd_sim_reset(&config) == 0 && tool && library ? 0 : -1;
}

#define FIND(variable, name)                                                                       \
    do {                                                                                           \
        void *found = dlsym(library, name);                                                        \
        assert_non_null(found);                                                                    \
        memcpy(&(variable), &found, sizeof found);                                                 \
    } while (0)

TEST(blocks_are_regions_of_their_segments_from_request_to_free)
{
    void *(*take)(size_t, int, cudaStream_t);
    void (*give)(void *, size_t, int, cudaStream_t), (*empty)(void);
    FIND(take, "gmd_malloc");
    FIND(give, "gmd_free");
    FIND(empty, "gmd_empty_cache");
    void *block = take(1000, 0, NULL);
    assert_int_equal(tool->heap_count, 1);
    assert_int_equal(tool->region_count, 1);
    assert_int_equal(tool->regions[0].address, (uintptr_t)block);
    assert_int_equal(tool->regions[0].bytes, 1000);
    give(block, 1000, 0, NULL);
    assert_int_equal(tool->region_count, 0);
    empty();
    assert_null(tool->heaps[0].heap);
    assert_int_equal(tool->bad_calls, 0);
}

TEST(while_requests_go_to_a_private_pool_no_block_ends)
{
    void *(*take)(size_t, int, cudaStream_t);
    void (*give)(void *, size_t, int, cudaStream_t);
    int (*begin)(int, const uint64_t[2], bool (*)(void *, cudaStream_t), void *);
    int (*end)(int, const uint64_t[2], void **);
    const uint64_t id[2] = {0, 1};
    void *context;
    FIND(take, "gmd_malloc");
    FIND(give, "gmd_free");
    FIND(begin, "gmd_begin_pool");
    FIND(end, "gmd_end_pool");
    void *block = take(1000, 0, NULL), *other = take(1000, 0, NULL);
    assert_int_equal(begin(0, id, NULL, NULL), 0);
    give(block, 1000, 0, NULL);
    assert_int_equal(tool->region_count, 2);
    assert_int_equal(end(0, id, &context), 0);
    give(other, 1000, 0, NULL);
    assert_int_equal(tool->region_count, 0);
}

TEST_GROUP(open_library, NULL);
