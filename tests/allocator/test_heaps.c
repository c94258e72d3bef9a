/* A stream's heap is found without the device's lock, whatever the handles of the streams are. */
#include "device_access.h"
#include "device_allocator.h"
#include "device_heaps.h"
#include "heap.h"

#include <stdlib.h>

#include "gmd_test.h"

#define STREAM_MAX 64

typedef struct fixture {
    device_allocator *d;
    cudaStream_t streams[STREAM_MAX];
} fixture;

static int open_device(void **state)
{
    fixture *f = calloc(1, sizeof *f);
    f->d = calloc(1, sizeof *f->d);
    *state = f;
    return 0;
}

static int close_device(void **state)
{
    fixture *f = *state;
    while (f->d->heaps) {
        heap *h = f->d->heaps;
        f->d->heaps = h->next_of_device;
        heap_destroy(h);
    }
    free(f->d->default_pool.heaps);
    free(f->d);
    free(f);
    return 0;
}

FIXTURE(heaps, open_device, close_device);

static void add_heaps(fixture *f, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        assert_non_null(device_heap(f->d, &f->d->default_pool, f->streams[i]));
    }
}

static uint32_t count_found(const fixture *f, uint32_t count)
{
    uint32_t found = 0;
    for (uint32_t i = 0; i < count; i++) {
        heap *h = device_cached_heap(f->d, f->streams[i]);
        found += h && h->stream == f->streams[i];
    }
    return found;
}

/* Handles like a driver's: addresses, some of which have the same slot as the first one. */
static void make_colliding_handles(fixture *f, uint32_t count)
{
    uintptr_t handle = 0x55d0c0de1000;
    uint32_t slot = device_heap_slot((cudaStream_t)handle, 0);
    for (uint32_t i = 0; i < count; handle += 0x7c0) {
        if (device_heap_slot((cudaStream_t)handle, 0) == slot) {
            f->streams[i++] = (cudaStream_t)handle;
        }
    }
}

TEST_F(heaps, streams_of_one_slot_are_all_found)
{
    fixture *f = *state;
    make_colliding_handles(f, HEAP_CACHE_WAYS);
    add_heaps(f, HEAP_CACHE_WAYS);
    assert_int_equal(count_found(f, HEAP_CACHE_WAYS), HEAP_CACHE_WAYS);
}

TEST_F(heaps, a_stream_without_a_place_takes_one)
{
    fixture *f = *state;
    make_colliding_handles(f, HEAP_CACHE_WAYS + 1);
    add_heaps(f, HEAP_CACHE_WAYS + 1);
    assert_int_equal(count_found(f, HEAP_CACHE_WAYS + 1), HEAP_CACHE_WAYS);
    assert_non_null(device_cached_heap(f->d, f->streams[HEAP_CACHE_WAYS]));
}

TEST_F(heaps, a_heap_that_is_asked_for_again_takes_no_second_place)
{
    fixture *f = *state;
    make_colliding_handles(f, HEAP_CACHE_WAYS);
    for (int i = 0; i < HEAP_CACHE_WAYS; i++) {
        add_heaps(f, 1);
    }
    add_heaps(f, HEAP_CACHE_WAYS);
    assert_int_equal(count_found(f, HEAP_CACHE_WAYS), HEAP_CACHE_WAYS);
}

TEST_F(heaps, the_streams_of_pytorch_s_pools_are_all_found)
{
    fixture *f = *state;
    for (uint32_t i = 0; i < STREAM_MAX; i++) { /* 32 of each of two priorities */
        f->streams[i] = (cudaStream_t)(uintptr_t)(0x7f4010002000 + (uint64_t)i * 0x2b0);
    }
    add_heaps(f, STREAM_MAX);
    assert_int_equal(count_found(f, STREAM_MAX), STREAM_MAX);
}

TEST_F(heaps, a_stream_that_was_not_seen_has_no_heap)
{
    fixture *f = *state;
    make_colliding_handles(f, 2);
    add_heaps(f, 1);
    assert_null(device_cached_heap(f->d, f->streams[1]));
}

/* Another thread may find it at once. */
TEST_F(heaps, a_new_heap_is_closed_until_the_device_is_left)
{
    fixture *f = *state;
    device_enter(f->d);
    heap *h = device_heap(f->d, &f->d->default_pool, NULL);
    assert_false(heap_try_enter(h));
    device_leave(f->d);
    assert_true(heap_try_enter(h));
    heap_leave(h);
}

/* The last test: spares are kept for the rest of the process. */
TEST(a_heap_that_goes_with_blocks_is_not_used_again)
{
    heap_keep_spares();
    heap *h = heap_create(NULL, NULL, NULL);
    assert_non_null(h);
    h->sets[POOL_SMALL].block_count = 1;
    heap_destroy(h);
    heap *next = heap_create(NULL, NULL, NULL);
    assert_non_null(next);
    assert_int_equal(next->sets[POOL_SMALL].block_count, 0);
    heap_destroy(next);
}
