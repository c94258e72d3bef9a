/* libgmd_allocator.so on a machine that has no CUDA device: every function refuses or does nothing.
 */
#include "gmd_abi.h"
#include "gmd_cuda.h"
#include "gmd_sim.h"
#include "gmd_test.h"

#include <dlfcn.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

static void *library;

static int open_library(void **state)
{
    (void)state;
    gmd_sim_config config;
    gmd_sim_default_config(&config);
    if (gmd_sim_reset(&config) || gmd_sim_fault("cudaGetDeviceCount", 1, true, cudaErrorNoDevice)) {
        return -1;
    }
    const char *path = getenv("GMD_TEST_ALLOCATOR");
    library = dlopen(path ? path : GMD_TEST_ALLOCATOR, RTLD_NOW | RTLD_LOCAL);
    return library ? 0 : -1;
}

#define FIND(variable, name)                                                                       \
    do {                                                                                           \
        void *found = dlsym(library, name);                                                        \
        assert_non_null(found);                                                                    \
        memcpy(&(variable), &found, sizeof found);                                                 \
    } while (0)

TEST(no_memory_is_given_and_none_taken)
{
    void *(*take)(size_t, int, cudaStream_t);
    void (*give)(void *, size_t, int, cudaStream_t), (*record)(void *, cudaStream_t);
    FIND(take, "gmd_malloc");
    FIND(give, "gmd_free");
    FIND(record, "gmd_record_stream");
    assert_null(take(512, 0, NULL));
    give(NULL, 0, 0, NULL);
    give(&library, 512, 0, NULL);
    record(&library, NULL);
    assert_int_equal(gmd_sim_call_count("cudaFree"), 0);
}

TEST(there_is_nothing_to_be_told)
{
    int (*stats)(int, gmd_stats *), (*each)(int, gmd_stat_fn *, void *),
        (*walk)(int, gmd_walk_fn *, void *);
    uint64_t (*request)(size_t), (*place)(int, uint64_t);
    int64_t (*quirk)(const char *);
    gmd_stats s = {.struct_size = sizeof s};
    FIND(stats, "gmd_get_stats");
    FIND(each, "gmd_memory_stats");
    FIND(walk, "gmd_walk");
    FIND(request, "gmd_device_request");
    FIND(place, "gmd_place_of");
    FIND(quirk, "gmd_quirk_count");
    assert_int_equal(stats(0, &s), -1);
    assert_int_equal(each(0, NULL, NULL), -1);
    assert_int_equal(walk(0, NULL, NULL), -1);
    assert_int_equal(request(512), 0);
    assert_int_equal(place(0, 512), 0);
    assert_int_equal(quirk("no such quirk"), -1);
}

TEST(nothing_can_be_set)
{
    void (*empty)(void), (*fraction)(double, int), (*peaks)(int);
    int (*order)(int, const uint64_t *, size_t), (*quirk)(const char *, int);
    const uint64_t given[] = {512};
    FIND(empty, "gmd_empty_cache");
    FIND(fraction, "gmd_set_memory_fraction");
    FIND(peaks, "gmd_reset_peak_stats");
    FIND(order, "gmd_order_segments");
    FIND(quirk, "gmd_set_quirk");
    empty();
    peaks(0);
    fraction(0.5, 0);
    assert_int_equal(order(0, given, 1), -1);
    assert_int_equal(quirk("no such quirk", 1), -1);
}

TEST(there_are_no_pools)
{
    int (*begin)(int, const uint64_t[2], bool (*)(void *, cudaStream_t), void *);
    int (*end)(int, const uint64_t[2], void **), (*release)(int, const uint64_t[2]);
    const uint64_t id[2] = {0, 1};
    void *context;
    FIND(begin, "gmd_begin_pool");
    FIND(end, "gmd_end_pool");
    FIND(release, "gmd_release_pool");
    assert_int_equal(begin(0, id, NULL, NULL), -1);
    assert_int_equal(end(0, id, &context), -1);
    assert_int_equal(release(0, id), -1);
}

TEST(history_and_loans_say_that_there_is_no_device)
{
    int (*record)(uint64_t, int, char *, size_t), (*dump)(const char *, char *, size_t);
    int (*lend)(int, char *, size_t);
    char message[200];
    FIND(record, "gmd_record_history");
    FIND(dump, "gmd_dump_snapshot");
    assert_int_equal(record(100, 0, message, sizeof message), -1);
    assert_string_equal(message, "there is no CUDA device");
    memset(message, 0, sizeof message);
    assert_int_equal(dump("/dev/null", message, sizeof message), -1);
    assert_string_equal(message, "there is no CUDA device");
    static const char *const loans[] = {"gmd_yield_memory", "gmd_restore_memory"};
    for (size_t i = 0; i < 2; i++) {
        FIND(lend, loans[i]);
        assert_int_equal(lend(0, message, sizeof message), -1);
        assert_string_equal(message, "there is no allocator: no CUDA device");
    }
}

TEST_GROUP(open_library, NULL);
