/* The host as a library under test sees it: what it takes of the heap is counted by the function
 * that it does so in, and its clocks follow; those of this program do neither. */
#define _GNU_SOURCE
#include "gmd_host_clock.h"
#include "gmd_host_heap.h"
#include "gmd_test.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define HOUR_NS UINT64_C(3600000000000)
#define HOUR_S  3600

static void *(*caller_malloc)(size_t size);
static void *(*caller_calloc)(size_t count, size_t size);
static void *(*caller_realloc)(void *old, size_t size);
static void *(*caller_aligned)(size_t alignment, size_t size);
static void (*caller_free)(void *memory);
static int64_t (*caller_clock_s)(clockid_t clock);
static int64_t (*caller_time_s)(void);
static int64_t (*caller_gettimeofday_s)(void);
static int (*caller_wait_ms)(long milliseconds);

static void bind(void *library, const char *name, void *function)
{
    void *symbol = dlsym(library, name);
    assert_non_null(symbol);
    memcpy(function, &symbol, sizeof symbol);
}

static int load(void **state)
{
    (void)state;
    void *library = dlopen(GMD_TEST_HOST_CALLER, RTLD_NOW | RTLD_LOCAL);
    assert_non_null(library);
    bind(library, "caller_malloc", &caller_malloc);
    bind(library, "caller_calloc", &caller_calloc);
    bind(library, "caller_realloc", &caller_realloc);
    bind(library, "caller_aligned", &caller_aligned);
    bind(library, "caller_free", &caller_free);
    bind(library, "caller_clock_s", &caller_clock_s);
    bind(library, "caller_time_s", &caller_time_s);
    bind(library, "caller_gettimeofday_s", &caller_gettimeofday_s);
    bind(library, "caller_wait_ms", &caller_wait_ms);
    assert_true(gmd_host_heap_watch());
    host_clock_follow();
    return 0;
}

static uint64_t held_in(const char *function)
{
    gmd_host_held held[GMD_HOST_FUNCTION_MAX];
    size_t count = gmd_host_heap_held(held);
    for (size_t i = 0; i < count; i++) {
        if (held[i].function && strcmp(held[i].function, function) == 0) {
            return held[i].bytes;
        }
    }
    return 0;
}

TEST(what_a_function_asks_for_is_counted_to_the_byte)
{
    host_heap_enter("exact");
    void *memory = caller_malloc(100);
    void *zeroed = caller_calloc(3, 7);
    void *aligned = caller_aligned(64, 1000);
    host_heap_leave();
    assert_int_equal(held_in("exact"), 100 + 21 + 1000);
    caller_free(memory);
    caller_free(zeroed);
    caller_free(aligned);
    assert_int_equal(held_in("exact"), 0);
}

TEST(memory_counts_for_who_asked_for_it_whoever_frees_it)
{
    host_heap_enter("asks");
    void *memory = caller_malloc(100);
    host_heap_enter("frees");
    assert_int_equal(held_in("asks"), 100);
    caller_free(memory);
    host_heap_leave();
    assert_int_equal(held_in("asks"), 0);
}

TEST(memory_that_is_moved_counts_for_who_moved_it)
{
    host_heap_enter("before");
    void *memory = caller_malloc(100);
    host_heap_enter("after");
    memory = caller_realloc(memory, 5000);
    host_heap_leave();
    assert_int_equal(held_in("before"), 0);
    assert_int_equal(held_in("after"), 5000);
    caller_free(memory);
}

TEST(what_the_program_itself_asks_for_is_not_counted)
{
    host_heap_enter("program");
    void *memory = malloc(100);
    host_heap_leave();
    assert_int_equal(held_in("program"), 0);
    free(memory);
}

TEST(thousands_of_blocks_are_told_apart)
{
    enum { COUNT = 20000 };
    static void *blocks[COUNT];
    host_heap_enter("many");
    for (size_t i = 0; i < COUNT; i++) {
        blocks[i] = caller_malloc(16 + i % 3);
    }
    for (size_t i = 0; i < COUNT; i += 2) {
        caller_free(blocks[i]);
    }
    host_heap_leave();
    uint64_t left = 0;
    for (size_t i = 1; i < COUNT; i += 2) {
        left += 16 + i % 3;
    }
    assert_int_equal(held_in("many"), left);
    for (size_t i = 1; i < COUNT; i += 2) {
        caller_free(blocks[i]);
    }
    assert_int_equal(held_in("many"), 0);
}

static void has_moved_by_an_hour(int64_t before, int64_t now)
{
    assert_in_range(now - before, HOUR_S, HOUR_S + 60); /* a machine that is slow */
}

TEST(each_clock_of_the_library_follows)
{
    static const clockid_t clocks[] = {CLOCK_REALTIME,        CLOCK_MONOTONIC,
                                       CLOCK_MONOTONIC_RAW,   CLOCK_BOOTTIME,
                                       CLOCK_REALTIME_COARSE, CLOCK_MONOTONIC_COARSE};
    enum { COUNT = sizeof clocks / sizeof *clocks };
    int64_t before[COUNT], time_before = caller_time_s(), day_before = caller_gettimeofday_s();
    for (size_t i = 0; i < COUNT; i++) {
        before[i] = caller_clock_s(clocks[i]);
    }
    host_clock_advance(HOUR_NS);
    for (size_t i = 0; i < COUNT; i++) {
        has_moved_by_an_hour(before[i], caller_clock_s(clocks[i]));
    }
    has_moved_by_an_hour(time_before, caller_time_s());
    has_moved_by_an_hour(day_before, caller_gettimeofday_s());
}

TEST(processor_time_does_not_follow)
{
    int64_t before = caller_clock_s(CLOCK_PROCESS_CPUTIME_ID);
    host_clock_advance(HOUR_NS);
    assert_in_range(caller_clock_s(CLOCK_PROCESS_CPUTIME_ID) - before, 0, 60);
}

TEST(the_clock_of_the_program_does_not_follow)
{
    time_t before = time(NULL);
    host_clock_advance(HOUR_NS);
    assert_in_range(time(NULL) - before, 0, 60);
}

TEST(a_wait_with_a_time_limit_lasts_as_long_as_it_was_meant_to)
{
    host_clock_advance(HOUR_NS);
    time_t before = time(NULL);
    assert_int_equal(caller_wait_ms(50), ETIMEDOUT);
    assert_in_range(time(NULL) - before, 0, 60);
}

TEST(time_that_is_moved_without_end_stays_within_the_clocks_range)
{
    for (int i = 0; i < 4; i++) {
        host_clock_advance(UINT64_MAX);
    }
    assert_true(caller_clock_s(CLOCK_REALTIME) > time(NULL));
}

TEST_GROUP(load, NULL);
