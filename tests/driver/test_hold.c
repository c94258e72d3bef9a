/* Work that is held: until when, and who lets it go. The device is memory that the test reads as a
 * stream would; in one test, a thread that runs through all waits. */
#include "gmd_hold.h"
#include "gmd_test.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define RING    4096
#define FOREVER 3100000 /* ms */

#define WAIT_MAX 100000

typedef struct queued_wait {
    const _Atomic uint32_t *word;
    uint32_t number;
} queued_wait;

static struct {
    _Atomic unsigned count;
    queued_wait waits[WAIT_MAX];
    int result;                    /* of the next waits */
    int calls;                     /* of the wait function, the first of all included */
    _Atomic unsigned synchronised; /* bit d: device d */
    cudaError_t sync_result;
    atomic_bool is_stuck; /* it does not synchronise */
    void *memory;         /* pinned */
    atomic_bool is_freed;
    held_work *open;  /* what the test has not closed */
    pthread_t device; /* runs through the waits */
    bool has_device;
    atomic_bool is_over; /* nothing more is held: the device's thread ends */
} fake;

static void sleep_ms(long ms)
{
    nanosleep(&(struct timespec){ms / 1000, ms % 1000 * 1000000}, NULL);
}

/* --- the device --------------------------------------------------------------------------- */

static bool waits(unsigned index)
{
    const queued_wait *w = &fake.waits[index];
    uint32_t is = atomic_load_explicit(w->word, memory_order_acquire);
    return (int32_t)(is - w->number) < 0; /* as the documentation has it */
}

static bool waits_for_ms(unsigned index, long ms)
{
    while (ms-- > 0 && waits(index)) {
        sleep_ms(1);
    }
    return waits(index);
}

static int queue_wait(cudaStream_t stream, unsigned long long address, uint32_t number,
                      unsigned int flags)
{
    (void)stream;
    assert_int_equal(flags, CU_STREAM_WAIT_VALUE_GEQ);
    fake.calls++;
    if (fake.result) {
        return fake.result;
    }
    if (fake.calls > 1) { /* the first one asks whether there are such waits */
        fake.waits[fake.count] = (queued_wait){(void *)(uintptr_t)address, number};
        atomic_fetch_add(&fake.count, 1);
    }
    return 0;
}

static cudaError_t host_alloc(void **pointer, size_t size, unsigned int flags)
{
    assert_int_equal(flags, cudaHostAllocPortable | cudaHostAllocMapped);
    *pointer = fake.memory = malloc(size);
    return fake.memory ? cudaSuccess : cudaErrorMemoryAllocation;
}

static cudaError_t free_host(void *pointer)
{
    assert_ptr_equal(pointer, fake.memory);
    assert_false(fake.is_freed);
    fake.is_freed = true; /* the test still looks at it */
    return cudaSuccess;
}

static _Thread_local int current;

static cudaError_t get_device(int *device)
{
    *device = current;
    return cudaSuccess;
}

static cudaError_t set_device(int device)
{
    current = device;
    return cudaSuccess;
}

static cudaError_t synchronise(void)
{
    while (fake.is_stuck) {
        sleep_ms(1);
    }
    atomic_fetch_or(&fake.synchronised, 1u << current);
    return fake.sync_result;
}

static const gmd_runtime runtime = {.path = "/nowhere",
                                    .cudaHostAlloc = host_alloc,
                                    .cudaFreeHost = free_host,
                                    .cudaGetDevice = get_device,
                                    .cudaSetDevice = set_device,
                                    .cudaDeviceSynchronize = synchronise};

static held_work *open_from(uint32_t start, unsigned call_ms, unsigned sync_ms)
{
    const hold_parts parts = {.runtime = &runtime,
                              .wait = queue_wait,
                              .patience = {call_ms, sync_ms, FOREVER},
                              .start = start};
    held_work *holds;
    gmd_error error = {""};
    assert_int_equal(holds_make(&holds, &parts, &error), GMD_OK);
    fake.open = holds;
    return holds;
}

/* For what is to be seen after that; else the fixture does it. */
static void close_open(void)
{
    held_work *holds = fake.open;
    fake.open = NULL;
    holds_close(holds);
}

static held_work *open_patient(void)
{
    return open_from(0, FOREVER, FOREVER);
}

static void join_device(void)
{
    if (fake.has_device) {
        fake.has_device = false;
        pthread_join(fake.device, NULL);
    }
}

static int reset(void **state)
{
    (void)state;
    fake.is_stuck = false;
    fake.is_over = true;
    close_open();
    join_device();
    free(fake.memory);
    memset(&fake, 0, sizeof fake);
    current = 0;
    return 0;
}

FIXTURE(hold, reset, reset);

static cudaStream_t stream(uintptr_t index)
{
    return (cudaStream_t)index;
}

static void hold(held_work *holds, uintptr_t on, uint64_t duration_ns)
{
    assert_int_equal(hold_stream(holds, 0, stream(on), duration_ns), cudaSuccess);
}

/* --- until when --------------------------------------------------------------------------- */

TEST_F(hold, work_is_held_until_the_clock_has_moved)
{
    held_work *holds = open_patient();
    hold(holds, 1, 1000);
    holds_advance(holds, 600);
    hold(holds, 1, 1000);
    holds_advance(holds, 399);
    assert_true(waits(0));
    holds_advance(holds, 1);
    assert_false(waits(0));
    assert_true(waits(1));
    holds_advance(holds, 600);
    assert_false(waits(1));
}

TEST_F(hold, the_longest_duration_does_not_wrap_around)
{
    held_work *holds = open_patient();
    holds_advance(holds, 1000);
    hold(holds, 1, UINT64_MAX);
    holds_advance(holds, 1000);
    assert_true(waits(0));
}

TEST_F(hold, work_without_a_duration_is_not_held)
{
    held_work *holds = open_patient();
    hold(holds, 1, 0);
    assert_int_equal(fake.count, 0);
}

TEST_F(hold, a_wait_lets_go_its_own_stream_and_no_other)
{
    held_work *holds = open_patient();
    hold(holds, 2, 1000);
    hold(holds, 3, 1000);
    assert_int_equal(hold_stream(holds, 1, stream(2), 1000), cudaSuccess); /* of another device */
    hold(holds, 2, 5000);
    holds_release_stream(holds, 0, stream(2));
    assert_false(waits(0));
    assert_true(waits(1));
    assert_true(waits(2));
    assert_false(waits(3));
    holds_beat(holds);
    hold(holds, 2, 1000); /* what comes later is held again */
    assert_true(waits(4));
}

TEST_F(hold, a_wait_for_a_device_lets_go_its_streams)
{
    held_work *holds = open_patient();
    hold(holds, 2, 1000);
    assert_int_equal(hold_stream(holds, 1, stream(2), 1000), cudaSuccess);
    hold(holds, 0, 1000);
    holds_release_device(holds, 0);
    assert_false(waits(0));
    assert_true(waits(1));
    assert_false(waits(2));
    holds_release(holds);
    assert_false(waits(1));
}

/* --- the ring ----------------------------------------------------------------------------- */

static void the_ring_wraps_from(uint32_t start)
{
    held_work *holds = open_from(start, FOREVER, FOREVER);
    for (unsigned i = 0; i < 3 * RING + 7; i++) {
        hold(holds, i, 1000);
        assert_true(waits(i));
        assert_true(i < RING - 1 || waits(i - (RING - 1)));
        assert_true(i < RING || !waits(i - RING));
    }
    holds_release_stream(holds, 0, stream(3 * RING + 6)); /* the latest */
    assert_false(waits(3 * RING + 6));
    assert_true(waits(3 * RING + 5));
    holds_advance(holds, 1000);
    for (unsigned i = 0; i < 3 * RING + 7; i++) {
        assert_false(waits(i));
    }
}

TEST_F(hold, the_oldest_is_let_go_where_the_ring_wraps)
{
    the_ring_wraps_from(0);
}

TEST_F(hold, numbers_wrap_around)
{
    the_ring_wraps_from(UINT32_MAX - RING - 3);
}

TEST_F(hold, a_hold_that_fails_holds_nothing)
{
    held_work *holds = open_from(0, FOREVER, 1);
    fake.result = cudaErrorIllegalAddress;
    assert_int_equal(hold_stream(holds, 0, stream(1), 1000), cudaErrorIllegalAddress);
    fake.result = 0;
    hold(holds, 2, 1000);
    assert_true(waits(0));
    close_open();
    assert_false(waits(0));
}

/* --- the watchdog ------------------------------------------------------------------------- */

TEST_F(hold, the_watchdog_lets_go_when_the_host_gets_on_no_more)
{
    held_work *holds = open_from(0, 20, FOREVER);
    for (unsigned i = 0; i < 6; i += 2) { /* also after it has slept for want of work */
        holds_beat(holds);
        hold(holds, i, UINT64_MAX);
        hold(holds, i + 1, UINT64_MAX);
        assert_false(waits_for_ms(i, 10000));
        assert_false(waits_for_ms(i + 1, 10000));
        sleep_ms(10);
    }
}

TEST_F(hold, a_hurried_watchdog_lets_go_soon)
{
    held_work *holds = open_from(0, FOREVER, FOREVER);
    holds_hurry(holds);
    hold(holds, 1, UINT64_MAX);
    assert_false(waits_for_ms(0, 10000));
}

TEST_F(hold, the_watchdog_lets_nothing_go_while_requests_go_on)
{
    held_work *holds = open_from(0, 300, 1);
    hold(holds, 1, 1000);
    for (unsigned i = 0; i < 1000; i++) {
        holds_beat(holds);
        sleep_ms(1);
    }
    assert_true(waits(0));
    assert_false(waits_for_ms(0, 10000));
}

TEST_F(hold, a_stream_that_waits_for_another_gets_on)
{
    held_work *holds = open_from(0, FOREVER, 5);
    hold(holds, 2, 1000);
    hold(holds, 3, 1000);
    sleep_ms(20); /* in a request's patience, which it must not sit out */
    holds_release_stream(holds, 0, stream(2));
    assert_false(waits(0));
    assert_false(waits_for_ms(1, 10000));
}

TEST_F(hold, a_wait_that_is_over_leaves_the_others_held)
{
    held_work *holds = open_from(0, FOREVER, 300);
    hold(holds, 2, 1000);
    hold(holds, 3, 1000);
    holds_release_stream(holds, 0, stream(2));
    holds_beat(holds);
    sleep_ms(1000);
    assert_true(waits(1));
}

/* Streams run through their waits while the host holds and lets go, and the watchdog, too. */
static void *run_through(void *unused)
{
    (void)unused;
    for (unsigned i = 0; i < WAIT_MAX; i++) {
        while (atomic_load(&fake.count) <= i || waits(i)) {
            if (fake.is_over) {
                return NULL;
            }
            sched_yield();
        }
    }
    return NULL;
}

TEST_F(hold, no_hold_is_lost_between_driver_and_watchdog)
{
    held_work *holds = open_from(UINT32_MAX - 50000, 5, 5);
    fake.has_device = pthread_create(&fake.device, NULL, run_through, NULL) == 0;
    assert_true(fake.has_device);
    for (unsigned i = 0; i < WAIT_MAX; i++) {
        hold(holds, i % 7, 1 + i % 1000);
        if (i % 911 == 0) {
            holds_release_stream(holds, 0, stream(i % 7));
        }
        holds_advance(holds, i % 3);
    }
    close_open();
    join_device(); /* which has got through all of them */
}

/* --- the end ------------------------------------------------------------------------------ */

TEST_F(hold, closing_lets_all_go_and_then_frees)
{
    held_work *holds = open_patient();
    hold(holds, 1, UINT64_MAX);
    assert_int_equal(hold_stream(holds, 5, stream(2), UINT64_MAX), cudaSuccess);
    close_open();
    assert_false(waits(0));
    assert_false(waits(1));
    assert_int_equal(fake.synchronised, 1u << 0 | 1u << 5);
    assert_true(fake.is_freed);
}

TEST_F(hold, memory_stays_with_a_device_that_has_died)
{
    held_work *holds = open_patient();
    hold(holds, 1, UINT64_MAX);
    fake.sync_result = cudaErrorIllegalAddress;
    close_open();
    assert_false(waits(0));
    assert_false(fake.is_freed);
}

TEST_F(hold, closing_does_not_hang_with_the_device)
{
    gmd_runtime gone = runtime;
    hold_parts parts = {.runtime = &gone, .wait = queue_wait, .patience = {50, 50, 50}};
    held_work *holds;
    fake.is_stuck = true;
    assert_int_equal(holds_make(&holds, &parts, NULL), GMD_OK);
    fake.open = holds;
    memset(&gone, 0, sizeof gone); /* the owner's has ended */
    hold(holds, 1, UINT64_MAX);
    close_open();
    assert_false(waits(0));
    assert_false(fake.is_freed);
    fake.is_stuck = false; /* it comes to an end after all */
    for (int i = 0; i < 10000 && !fake.is_freed; i++) {
        sleep_ms(1);
    }
    assert_true(fake.is_freed);
}

/* --- where there is nothing --------------------------------------------------------------- */

TEST_F(hold, a_device_without_such_waits_holds_nothing)
{
    fake.result = 801; /* CUDA_ERROR_NOT_SUPPORTED */
    held_work *holds = open_patient();
    assert_null(holds);
    assert_true(fake.is_freed);
}

TEST_F(hold, a_runtime_without_such_waits_holds_nothing)
{
    held_work *holds = (held_work *)&fake;
    gmd_error error = {""};
    assert_int_equal(holds_open(&holds, &runtime, &error), GMD_OK);
    assert_null(holds);
}

TEST_F(hold, nothing_is_held_by_nobody)
{
    assert_int_equal(hold_stream(NULL, 0, stream(1), 1000), cudaSuccess);
    holds_beat(NULL);
    holds_advance(NULL, 1000);
    holds_release_stream(NULL, 0, stream(1));
    holds_release_device(NULL, 0);
    holds_release(NULL);
    holds_close(NULL);
}
