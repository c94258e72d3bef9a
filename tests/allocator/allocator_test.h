/* allocator_test.h - an allocator on a fresh simulated device, for the tests of this folder. */
#ifndef GMD_ALLOCATOR_TEST_H
#define GMD_ALLOCATOR_TEST_H

#include "gmd_allocator.h"
#include "gmd_sim.h"
#include "gmd_size.h"
#include "gmd_test.h"

typedef struct bench {
    gmd_allocator *a;
    cudaStream_t s1, s2, s3;
} bench;

/* Those of the test that runs. */
static gmd_allocator *open_allocators[8];

static inline void replace_open(const gmd_allocator *old, gmd_allocator *a)
{
    size_t i = 0;
    while (open_allocators[i] != old) {
        i++;
        assert_true(i < sizeof open_allocators / sizeof open_allocators[0]);
    }
    open_allocators[i] = a;
}

/* What TEST_F(bench, ...) opens is closed after it. */
static inline bench open_bench_on(const gmd_sim_config *config, const char *conf)
{
    bench b = {0};
    gmd_error error = {""};
    assert_int_equal(gmd_sim_reset(config), 0);
    cudaStreamCreateWithFlags(&b.s1, cudaStreamNonBlocking);
    cudaStreamCreateWithFlags(&b.s2, cudaStreamNonBlocking);
    cudaStreamCreateWithFlags(&b.s3, cudaStreamNonBlocking);
    assert_int_equal(gmd_allocator_create(&b.a, (int)config->device_count, conf, &error), GMD_OK);
    replace_open(NULL, b.a);
    return b;
}

/* One device of `capacity` bytes. */
static inline bench open_bench(uint64_t capacity, const char *conf)
{
    gmd_sim_config config;
    gmd_sim_default_config(&config);
    config.capacity_bytes = capacity;
    return open_bench_on(&config, conf);
}

/* For what is to be seen after that. */
static inline void close_bench(const bench *b)
{
    replace_open(b->a, NULL);
    gmd_allocator_destroy(b->a);
}

static inline int close_benches(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof open_allocators / sizeof open_allocators[0]; i++) {
        gmd_allocator_destroy(open_allocators[i]);
        open_allocators[i] = NULL;
    }
    return 0;
}

FIXTURE(bench, NULL, close_benches);

static inline uint64_t take_on(const bench *b, uint64_t size, cudaStream_t stream)
{
    return (uint64_t)(uintptr_t)gmd_allocator_malloc(b->a, size, 0, stream);
}

static inline uint64_t take(const bench *b, uint64_t size)
{
    return take_on(b, size, b->s1);
}

static inline void give(const bench *b, uint64_t address)
{
    assert_true(gmd_allocator_free(b->a, (void *)(uintptr_t)address, 0, b->s1));
}

static inline void record(const bench *b, uint64_t address, cudaStream_t stream)
{
    assert_true(gmd_allocator_record_stream(b->a, (void *)(uintptr_t)address, stream));
}

static inline gmd_stats stats_of(const bench *b)
{
    gmd_stats s = {.struct_size = sizeof s};
    assert_true(gmd_allocator_get_stats(b->a, 0, &s));
    return s;
}

static inline gmd_sim_device_state device_state(void)
{
    gmd_sim_device_state state;
    assert_int_equal(gmd_sim_device(0, &state), 0);
    return state;
}

/* Work that takes so long, on a stream. */
static inline void work(cudaStream_t stream, uint64_t duration_ns)
{
    assert_int_equal(gmd_sim_launch(stream, duration_ns, NULL, 0), cudaSuccess);
}

static inline void expect_no_error_left(void)
{
    assert_int_equal(cudaPeekAtLastError(), cudaSuccess);
    assert_int_equal(gmd_sim_misuse_count(), 0);
}

#endif
