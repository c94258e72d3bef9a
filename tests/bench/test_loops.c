/* test_loops.c - the measured loops ask an allocator for what their benchmarks say. */
#include "crew.h"
#include "loops.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "gmd_test.h"

/* An allocator that counts. */
static _Atomic uint64_t mallocs, frees, refused_from;
static uint64_t live_bytes, records, empties;
static double fraction;
static cudaStream_t last_stream;

static void *counting_malloc(size_t size, int device, cudaStream_t stream)
{
    (void)device;
    if (mallocs >= refused_from) {
        return NULL;
    }
    mallocs++;
    live_bytes += size;
    last_stream = stream;
    return malloc(1);
}

static void counting_free(void *ptr, size_t size, int device, cudaStream_t stream)
{
    (void)device;
    (void)stream;
    frees++;
    live_bytes -= size;
    free(ptr);
}

/* Several threads at a time. */
static void *shared_malloc(size_t size, int device, cudaStream_t stream)
{
    (void)size;
    (void)device;
    (void)stream;
    return mallocs++ < refused_from ? malloc(1) : NULL;
}

static void shared_free(void *ptr, size_t size, int device, cudaStream_t stream)
{
    (void)size;
    (void)device;
    (void)stream;
    frees++;
    free(ptr);
}

static void counting_record(void *ptr, cudaStream_t stream)
{
    (void)ptr;
    last_stream = stream;
    records++;
}

static void counting_empty(void)
{
    empties++;
}

static void keep_fraction(double value, int device)
{
    (void)device;
    fraction = value;
}

static bench_calls calls;
static bench_loop loop;

static const benchmark *named(const char *name)
{
    for (size_t i = 0; i < bench_catalogue_count; i++) {
        if (strcmp(bench_catalogue[i].name, name) == 0) {
            return &bench_catalogue[i];
        }
    }
    fail_msg("there is no benchmark %s", name);
    return NULL;
}

static int reset(void **state)
{
    (void)state;
    mallocs = frees = 0;
    refused_from = UINT64_MAX;
    live_bytes = records = empties = 0;
    fraction = 1;
    last_stream = NULL;
    calls = (bench_calls){.malloc = counting_malloc,
                          .free = counting_free,
                          .record_stream = counting_record,
                          .empty_cache = counting_empty,
                          .set_memory_fraction = keep_fraction,
                          .total_bytes = (uint64_t)1 << 30};
    for (uintptr_t i = 0; i < BENCH_THREAD_MAX; i++) {
        calls.streams[i] = (cudaStream_t)(i + 16);
    }
    return 0;
}

FIXTURE(loops, reset, NULL);

static gmd_status open_and_run(const char *name, uint64_t count)
{
    gmd_error error = {""};
    gmd_status status = bench_loop_open(&loop, &calls, named(name), 1, &error);
    return status == GMD_OK ? bench_loop_run(&loop, count, &error) : status;
}

TEST_F(loops, a_pair_frees_what_it_allocated)
{
    assert_int_equal(open_and_run("pair_20MiB", 1000), GMD_OK);
    assert_int_equal(mallocs, 1000);
    assert_int_equal(frees, 1000);
    assert_int_equal(live_bytes, 0);
    bench_loop_close(&loop);
}

TEST_F(loops, churn_keeps_its_number_of_blocks)
{
    assert_int_equal(open_and_run("churn_1000", 5000), GMD_OK);
    assert_int_equal(mallocs - frees, 1000);
    bench_loop_close(&loop);
}

TEST_F(loops, churn_ends_with_everything_freed)
{
    open_and_run("churn_1000", 5000);
    bench_loop_close(&loop);
    assert_int_equal(mallocs, frees);
    assert_int_equal(live_bytes, 0);
}

TEST_F(loops, churn_is_the_same_for_every_allocator)
{
    open_and_run("churn_100", 777);
    uint64_t first = live_bytes;
    bench_loop_close(&loop);
    reset(NULL);
    open_and_run("churn_100", 777);
    assert_int_equal(live_bytes, first);
    bench_loop_close(&loop);
}

TEST_F(loops, churn_that_is_refused_frees_the_rest)
{
    refused_from = 1500;
    assert_int_equal(open_and_run("churn_1000", 5000), GMD_FAILED);
    bench_loop_close(&loop);
    assert_int_equal(mallocs, frees);
}

TEST_F(loops, record_stream_names_another_stream)
{
    assert_int_equal(open_and_run("record_stream", 10), GMD_OK);
    assert_int_equal(records, 10);
    assert_ptr_equal(last_stream, calls.streams[1]);
    bench_loop_close(&loop);
}

TEST_F(loops, a_miss_empties_the_cache_each_time)
{
    assert_int_equal(open_and_run("miss_20MiB", 10), GMD_OK);
    assert_int_equal(empties, 10);
    bench_loop_close(&loop);
}

TEST_F(loops, a_retry_has_room_for_one_block)
{
    const benchmark *of = named("oom_retry");
    assert_int_equal(open_and_run(of->name, 10), GMD_OK);
    double limit = fraction * (double)calls.total_bytes;
    assert_true(limit >= (double)of->bytes && limit < 2 * (double)of->bytes);
    bench_loop_close(&loop);
}

TEST_F(loops, the_limit_of_a_retry_is_lifted_afterwards)
{
    open_and_run("oom_retry", 10);
    bench_loop_close(&loop);
    assert_float_equal(fraction, 1, 1e-12);
}

TEST_F(loops, an_allocator_without_record_stream_lacks_it)
{
    calls.record_stream = NULL;
    assert_non_null(bench_loop_lacks(&calls, named("record_stream")));
    assert_null(bench_loop_lacks(&calls, named("pair_512B")));
}

/* --- threads ----------------------------------------------------------------------------- */

static bench_crew crew;

static gmd_status run_crew(uint32_t *rounds)
{
    gmd_error error = {""};
    gmd_status status = bench_crew_open(&crew, &calls, named("threads_4"), NULL, 0, &error);
    while (status == GMD_OK && (*rounds)-- > 0) {
        double ns = 0;
        bool is_disturbed;
        status = bench_crew_measure(&crew, 1000000, &ns, &is_disturbed, &error);
        assert_true(status != GMD_OK || ns > 0);
    }
    bench_crew_close(&crew);
    return status;
}

TEST_F(loops, threads_free_what_they_allocated)
{
    uint32_t rounds = 5;
    calls.malloc = shared_malloc;
    calls.free = shared_free;
    assert_int_equal(run_crew(&rounds), GMD_OK);
    assert_true(mallocs > 0);
    assert_int_equal(mallocs, frees);
}

TEST_F(loops, a_thread_that_is_refused_fails_the_round)
{
    uint32_t rounds = 5;
    refused_from = 100;
    calls.malloc = shared_malloc;
    calls.free = shared_free;
    assert_int_equal(run_crew(&rounds), GMD_FAILED);
}
