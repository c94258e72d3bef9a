/* Memory lent to other processes and back: yield and restore, on memory that holds data. */
#include "allocator_test.h"
#include "host_memory.h"
#include "last_slot.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define EXPANDABLE "expandable_segments:True"

enum { BLOCKS = 24, MANY_BLOCKS = 700 };

typedef struct loan_case { /* blocks of all sizes on two streams, each full of its own bytes */
    bench b;
    uint64_t address[MANY_BLOCKS], size[MANY_BLOCKS];
    unsigned char seed[MANY_BLOCKS];
    size_t count;
} loan_case;

static bench backed_bench(const char *conf)
{
    gmd_sim_config config;
    gmd_sim_default_config(&config);
    config.capacity_bytes = GMD_GIB;
    config.backed = true;
    return open_bench_on(&config, conf);
}

#define ROW ((uint64_t)512)

/* Each row of a block has a byte of its own; rows that follow each other differ. */
static int byte_of(const loan_case *c, size_t i, uint64_t at)
{
    return (int)((at / ROW * 31 + at / ROW / 251 + c->seed[i]) & 0xFF);
}

static uint64_t row_at(const loan_case *c, size_t i, uint64_t at)
{
    return c->size[i] - at < ROW ? c->size[i] - at : ROW;
}

static void fill(const loan_case *c, size_t i)
{
    unsigned char *bytes = malloc(c->size[i]);
    assert_non_null(bytes);
    for (uint64_t at = 0; at < c->size[i]; at += ROW) {
        memset(bytes + at, byte_of(c, i, at), row_at(c, i, at));
    }
    assert_int_equal(gmd_sim_poke(c->address[i], bytes, c->size[i]), 0);
    free(bytes);
}

static bool is_whole(const loan_case *c, size_t i)
{
    unsigned char *bytes = malloc(c->size[i]), row[ROW];
    assert_non_null(bytes);
    bool is_equal = gmd_sim_peek(c->address[i], bytes, c->size[i]) == 0 &&
                    gmd_sim_is_backed(c->address[i], c->size[i], 0, NULL);
    for (uint64_t at = 0; is_equal && at < c->size[i]; at += ROW) {
        memset(row, byte_of(c, i, at), sizeof row);
        is_equal = memcmp(bytes + at, row, row_at(c, i, at)) == 0;
    }
    free(bytes);
    return is_equal;
}

static void add(loan_case *c, uint64_t size)
{
    size_t i = c->count++;
    c->size[i] = size;
    c->seed[i] = (unsigned char)(7 * i + 1);
    c->address[i] = take_on(&c->b, size, i % 2 ? c->b.s1 : c->b.s2);
    assert_int_not_equal(c->address[i], 0);
    fill(c, i);
}

/* A third of the blocks is freed again, so that pages hold live and free bytes. */
static loan_case open_case(uint64_t largest)
{
    loan_case c = {.b = backed_bench(EXPANDABLE)};
    uint64_t random = 5;
    for (size_t i = 0; i < BLOCKS; i++) {
        random = random * 6364136223846793005u + 1442695040888963407u;
        add(&c, (random >> 33) % (i % 3 ? 64 * GMD_KIB : largest) + 1);
    }
    size_t kept = 0;
    for (size_t i = 0; i < BLOCKS; i++) {
        if (i % 3 == 1) {
            give(&c.b, c.address[i]);
            continue;
        }
        c.address[kept] = c.address[i];
        c.size[kept] = c.size[i];
        c.seed[kept++] = c.seed[i];
    }
    c.count = kept;
    return c;
}

static void expect_all_whole(const loan_case *c)
{
    for (size_t i = 0; i < c->count; i++) {
        assert_true(is_whole(c, i));
    }
}

static gmd_status yield_memory(const bench *b)
{
    return gmd_allocator_yield_memory(b->a, 0, NULL);
}

static gmd_status restore_memory(const bench *b)
{
    return gmd_allocator_restore_memory(b->a, 0, NULL);
}

static void expect_yield_refused(const bench *b, const char *why)
{
    gmd_error error = {""};
    assert_int_not_equal(gmd_allocator_yield_memory(b->a, 0, &error), GMD_OK);
    assert_non_null(strstr(error.text, why));
    assert_false(gmd_allocator_is_yielded(b->a, 0));
    expect_no_error_left();
}

/* --- what it does ------------------------------------------------------------------------ */

TEST_F(bench, all_bytes_come_back_at_their_addresses)
{
    loan_case c = open_case(9 * GMD_MIB);
    assert_int_equal(yield_memory(&c.b), GMD_OK);
    assert_int_equal(restore_memory(&c.b), GMD_OK);
    expect_all_whole(&c);
    expect_no_error_left();
    close_bench(&c.b);
}

TEST_F(bench, the_device_is_empty_in_between)
{
    loan_case c = open_case(9 * GMD_MIB);
    uint64_t streams = device_state().stream_count;
    assert_int_equal(yield_memory(&c.b), GMD_OK);
    assert_int_equal(device_state().physical_bytes, 0);
    assert_int_equal(device_state().handle_count, 0);
    assert_int_equal(device_state().event_count, 0);
    assert_int_equal(device_state().stream_count, streams);
    close_bench(&c.b);
}

TEST_F(bench, a_block_in_the_last_slot_comes_back_too)
{
    loan_case c = {.b = backed_bench(EXPANDABLE), .size = {512}, .seed = {1}, .count = 1};
    c.address[0] = take_in_last_slot(c.b.a, c.b.s1);
    fill(&c, 0);
    assert_int_equal(yield_memory(&c.b), GMD_OK);
    assert_int_equal(restore_memory(&c.b), GMD_OK);
    expect_all_whole(&c);
    close_bench(&c.b);
}

TEST_F(bench, page_locked_memory_for_the_copies_is_given_back)
{
    loan_case c = open_case(9 * GMD_MIB);
    assert_int_equal(yield_memory(&c.b), GMD_OK);
    assert_int_equal(restore_memory(&c.b), GMD_OK);
    uint64_t taken = gmd_sim_call_count("cudaMallocHost");
    assert_int_not_equal(taken, 0);
    assert_int_equal(gmd_sim_call_count("cudaFreeHost"), taken);
    close_bench(&c.b);
}

TEST_F(bench, several_threads_copy_what_is_large)
{
    loan_case c = open_case(40 * GMD_MIB);
    assert_int_equal(yield_memory(&c.b), GMD_OK);
    assert_int_equal(restore_memory(&c.b), GMD_OK);
    expect_all_whole(&c);
    expect_no_error_left();
    close_bench(&c.b);
}

/* Threads of what is linked into this program: the linker puts these functions in place of the C
 * library's. */
static _Atomic uint64_t threads_begun, threads_joined;

typedef void *thread_body(void *argument);
#define REPLACEMENT __attribute__((visibility("default")))
int __real_pthread_create(pthread_t *thread, const pthread_attr_t *how, thread_body *body,
                          void *argument);
int __real_pthread_join(pthread_t thread, void **result);
REPLACEMENT int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *how,
                                      thread_body *body, void *argument);
REPLACEMENT int __wrap_pthread_join(pthread_t thread, void **result);

int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *how, thread_body *body,
                          void *argument)
{
    threads_begun++;
    return __real_pthread_create(thread, how, body, argument);
}

int __wrap_pthread_join(pthread_t thread, void **result)
{
    threads_joined++;
    return __real_pthread_join(thread, result);
}

/* They work on what is on their caller's stack. */
TEST_F(bench, no_thread_that_copies_is_left_behind)
{
    loan_case c = open_case(40 * GMD_MIB);
    uint64_t begun = threads_begun, joined = threads_joined;
    assert_int_equal(yield_memory(&c.b), GMD_OK);
    assert_int_equal(restore_memory(&c.b), GMD_OK);
    if (sysconf(_SC_NPROCESSORS_ONLN) > 1) {
        assert_int_not_equal(threads_begun - begun, 0);
    }
    assert_int_equal(threads_joined - joined, threads_begun - begun);
    close_bench(&c.b);
}

TEST_F(bench, memory_can_be_lent_again_and_again)
{
    loan_case c = open_case(3 * GMD_MIB);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(yield_memory(&c.b), GMD_OK);
        assert_int_equal(restore_memory(&c.b), GMD_OK);
    }
    expect_all_whole(&c);
    close_bench(&c.b);
}

TEST_F(bench, an_allocator_without_blocks_lends_nothing)
{
    bench b = backed_bench(EXPANDABLE);
    assert_int_equal(yield_memory(&b), GMD_OK);
    assert_int_equal(restore_memory(&b), GMD_OK);
    assert_int_not_equal(take(&b, GMD_MIB), 0);
}

TEST_F(bench, free_memory_is_given_back_for_good)
{
    bench b = backed_bench(EXPANDABLE);
    uint64_t kept = take(&b, GMD_MIB);
    give(&b, take(&b, 100 * GMD_MIB));
    assert_int_equal(yield_memory(&b), GMD_OK);
    assert_int_equal(restore_memory(&b), GMD_OK);
    assert_int_equal(device_state().physical_bytes, 2 * GMD_MIB);
    give(&b, kept);
}

TEST_F(bench, the_allocator_goes_on_after_restore)
{
    loan_case c = open_case(3 * GMD_MIB);
    assert_int_equal(yield_memory(&c.b), GMD_OK);
    assert_int_equal(restore_memory(&c.b), GMD_OK);
    give(&c.b, take(&c.b, 30 * GMD_MIB));
    for (size_t i = 0; i < c.count; i++) {
        give(&c.b, c.address[i]);
    }
    gmd_allocator_empty_cache(c.b.a);
    assert_int_equal(device_state().physical_bytes, 0);
    assert_int_equal(stats_of(&c.b).reserved_bytes, 0);
    expect_no_error_left();
    close_bench(&c.b);
}

/* --- while it is lent -------------------------------------------------------------------- */

TEST_F(bench, nothing_is_allocated_while_memory_is_lent)
{
    loan_case c = open_case(3 * GMD_MIB);
    assert_int_equal(yield_memory(&c.b), GMD_OK);
    assert_int_equal(take(&c.b, 512), 0);
    assert_int_equal(take(&c.b, 50 * GMD_MIB), 0);
    assert_int_equal(stats_of(&c.b).num_ooms, 0);
    assert_int_equal(device_state().physical_bytes, 0);
    close_bench(&c.b);
}

TEST_F(bench, blocks_freed_while_memory_is_lent_are_not_brought_back)
{
    loan_case c = {.b = backed_bench(EXPANDABLE)};
    add(&c, 40 * GMD_MIB);
    add(&c, 8 * GMD_MIB);
    add(&c, GMD_MIB);
    assert_int_equal(yield_memory(&c.b), GMD_OK);
    give(&c.b, c.address[0]);
    assert_int_equal(restore_memory(&c.b), GMD_OK);
    assert_int_equal(device_state().physical_bytes, stats_of(&c.b).reserved_bytes);
    assert_true(device_state().physical_bytes <= 22 * GMD_MIB);
    assert_true(is_whole(&c, 1) && is_whole(&c, 2));
    expect_no_error_left();
    close_bench(&c.b);
}

TEST_F(bench, the_neighbour_of_a_freed_block_comes_back)
{
    loan_case c = {.b = backed_bench(EXPANDABLE)};
    for (int i = 0; i < 12; i++) {
        add(&c, 3000);
    }
    assert_int_equal(yield_memory(&c.b), GMD_OK);
    give(&c.b, c.address[4]);
    assert_int_equal(restore_memory(&c.b), GMD_OK);
    for (size_t i = 0; i < c.count; i++) {
        assert_true(i == 4 || is_whole(&c, i));
    }
    close_bench(&c.b);
}

TEST_F(bench, emptying_the_cache_while_memory_is_lent_makes_the_loan_smaller)
{
    loan_case c = {.b = backed_bench(EXPANDABLE)};
    add(&c, 40 * GMD_MIB);
    assert_int_equal(yield_memory(&c.b), GMD_OK);
    give(&c.b, c.address[0]);
    gmd_allocator_empty_cache(c.b.a);
    assert_int_equal(stats_of(&c.b).reserved_bytes, 0);
    assert_int_equal(restore_memory(&c.b), GMD_OK);
    assert_int_equal(device_state().physical_bytes, 0);
    expect_no_error_left();
    close_bench(&c.b);
}

TEST_F(bench, destroying_while_memory_is_lent_leaks_nothing)
{
    loan_case c = open_case(3 * GMD_MIB);
    assert_int_equal(yield_memory(&c.b), GMD_OK);
    close_bench(&c.b);
    assert_int_equal(device_state().physical_bytes, 0);
    assert_int_equal(device_state().reservation_count, 0);
    assert_int_equal(device_state().handle_count, 0);
    expect_no_error_left();
}

TEST_F(bench, restore_waits_for_others_to_give_the_memory_back)
{
    loan_case c = open_case(9 * GMD_MIB);
    gmd_error error = {""};
    void *others = NULL;
    assert_int_equal(yield_memory(&c.b), GMD_OK);
    assert_int_equal(cudaMalloc(&others, 1000 * GMD_MIB), cudaSuccess);
    assert_int_equal(gmd_allocator_restore_memory(c.b.a, 0, &error), GMD_FAILED);
    assert_non_null(strstr(error.text, "24 MiB are free"));
    assert_true(gmd_allocator_is_yielded(c.b.a, 0));
    assert_int_equal(device_state().physical_bytes, 1000 * GMD_MIB);
    assert_int_equal(cudaFree(others), cudaSuccess);
    assert_int_equal(restore_memory(&c.b), GMD_OK);
    expect_all_whole(&c);
    close_bench(&c.b);
}

/* --- what is refused --------------------------------------------------------------------- */

TEST_F(bench, memory_of_cudaMalloc_is_refused)
{
    bench b = backed_bench("");
    take(&b, GMD_MIB);
    expect_yield_refused(&b, "expandable_segments:True");
}

TEST_F(bench, pending_work_is_refused)
{
    loan_case c = open_case(3 * GMD_MIB);
    work(c.b.s3, 1000); /* a stream that the allocator has never seen */
    expect_yield_refused(&c.b, "work is pending");
    assert_int_equal(gmd_sim_pending(c.b.s3), 1); /* not waited for */
    cudaStreamSynchronize(c.b.s3);
    assert_int_equal(yield_memory(&c.b), GMD_OK);
    close_bench(&c.b);
}

/* As PyTorch captures: the device is not even asked, which would end the capture. */
TEST_F(bench, a_capture_into_a_pool_is_refused_and_goes_on)
{
    loan_case c = open_case(3 * GMD_MIB);
    const uint64_t id[2] = {1, 0};
    void *context;
    cudaGraph_t graph = NULL;
    assert_true(gmd_allocator_begin_pool(c.b.a, 0, id, NULL, NULL));
    cudaStreamBeginCapture(c.b.s3, cudaStreamCaptureModeGlobal);
    expect_yield_refused(&c.b, "private pool");
    assert_int_equal(cudaStreamEndCapture(c.b.s3, &graph), cudaSuccess);
    assert_true(gmd_allocator_end_pool(c.b.a, 0, id, &context));
    close_bench(&c.b);
}

TEST_F(bench, a_capture_that_the_allocator_was_not_told_of_is_refused)
{
    loan_case c = open_case(3 * GMD_MIB);
    cudaGraph_t graph = NULL;
    cudaStreamBeginCapture(c.b.s3, cudaStreamCaptureModeGlobal);
    expect_yield_refused(&c.b, "captured");
    cudaStreamEndCapture(c.b.s3, &graph);
    (void)cudaGetLastError();
    assert_int_equal(yield_memory(&c.b), GMD_OK);
    close_bench(&c.b);
}

TEST_F(bench, routed_requests_are_refused)
{
    loan_case c = open_case(3 * GMD_MIB);
    const uint64_t id[2] = {1, 0};
    void *context;
    assert_true(gmd_allocator_begin_pool(c.b.a, 0, id, NULL, NULL));
    expect_yield_refused(&c.b, "private pool");
    assert_true(gmd_allocator_end_pool(c.b.a, 0, id, &context));
    assert_int_equal(yield_memory(&c.b), GMD_OK);
    close_bench(&c.b);
}

TEST_F(bench, a_destroyed_stream_is_not_asked)
{
    loan_case c = open_case(3 * GMD_MIB);
    cudaStreamDestroy(c.b.s1);
    assert_int_equal(yield_memory(&c.b), GMD_OK);
    assert_int_equal(restore_memory(&c.b), GMD_OK);
    expect_all_whole(&c);
    expect_no_error_left();
    close_bench(&c.b);
}

TEST_F(bench, lending_twice_and_restoring_what_is_not_lent_are_refused)
{
    loan_case c = open_case(3 * GMD_MIB);
    assert_int_equal(restore_memory(&c.b), GMD_BAD_INPUT);
    assert_int_equal(yield_memory(&c.b), GMD_OK);
    assert_int_equal(yield_memory(&c.b), GMD_BAD_INPUT);
    assert_int_equal(restore_memory(&c.b), GMD_OK);
    expect_all_whole(&c);
    assert_int_equal(gmd_allocator_yield_memory(c.b.a, 7, NULL), GMD_BAD_INPUT);
    close_bench(&c.b);
}

TEST_F(bench, free_blocks_of_a_captured_pool_come_back_for_its_graphs)
{
    loan_case c = {.b = backed_bench(EXPANDABLE)};
    const uint64_t id[2] = {0, 9};
    void *context;
    cudaGraph_t graph = NULL;
    assert_true(gmd_allocator_begin_pool(c.b.a, 0, id, NULL, NULL));
    cudaStreamBeginCapture(c.b.s1, cudaStreamCaptureModeRelaxed);
    c.address[0] = take(&c.b, 5 * GMD_MIB);
    c.size[0] = 5 * GMD_MIB;
    c.count = 1;
    assert_int_not_equal(c.address[0], 0);
    cudaStreamEndCapture(c.b.s1, &graph);
    assert_true(gmd_allocator_end_pool(c.b.a, 0, id, &context));
    fill(&c, 0);
    give(&c.b, c.address[0]);
    assert_int_equal(yield_memory(&c.b), GMD_OK);
    assert_int_equal(device_state().physical_bytes, 0);
    assert_int_equal(restore_memory(&c.b), GMD_OK);
    expect_all_whole(&c);
    close_bench(&c.b);
}

/* --- refusals of the driver -------------------------------------------------------------- */

static const char *const calls[] = {
    "cuMemUnmap",
    "cuMemRelease",
    "cuMemCreate",
    "cuMemMap",
    "cuMemSetAccess",
    "cudaMemcpyAsync",
    "cudaStreamSynchronize",
    "cudaStreamCreateWithFlags",
    "cudaMallocHost",
    "cuCtxRecordEvent",
    "cudaEventQuery",
    "cudaEventCreateWithFlags",
    "cuCtxGetCurrent",
    "cudaGetDevice",
    "cudaDeviceSynchronize",
    "cudaThreadExchangeStreamCaptureMode",
};

enum { CALLS = sizeof calls / sizeof *calls };

/* With the k-th call of a function refused, or all from it on: whatever yield and restore answer,
 * no byte is lost, and once the driver serves again, all comes back. True: k was reached. */
static bool survives(const char *call, uint64_t k, bool every_later)
{
    loan_case c = open_case(GMD_MIB + GMD_MIB / 2);
    uint64_t before = gmd_sim_call_count(call);
    assert_int_equal(gmd_sim_fault(call, k, every_later, CUDA_ERROR_OUT_OF_MEMORY), 0);
    bool is_lent = yield_memory(&c.b) == GMD_OK;
    assert_true(is_lent <= gmd_allocator_is_yielded(c.b.a, 0));
    if (gmd_allocator_is_yielded(c.b.a, 0)) {
        bool is_back = restore_memory(&c.b) == GMD_OK;
        assert_true(is_back == !gmd_allocator_is_yielded(c.b.a, 0));
    } else {
        gmd_sim_clear_faults();
        expect_all_whole(&c);
    }
    bool is_reached = gmd_sim_call_count(call) - before >= k;
    gmd_sim_clear_faults();
    if (gmd_allocator_is_yielded(c.b.a, 0)) {
        assert_int_equal(restore_memory(&c.b), GMD_OK);
    }
    expect_all_whole(&c);
    expect_no_error_left();
    close_bench(&c.b);
    assert_int_equal(device_state().physical_bytes, 0);
    assert_int_equal(device_state().reservation_count, 0);
    return is_reached;
}

TEST(no_single_refusal_of_the_driver_loses_a_byte)
{
    for (size_t i = 0; i < CALLS; i++) {
        for (uint64_t k = 1; survives(calls[i], k, false); k++) {
        }
    }
}

TEST(no_lasting_refusal_of_the_driver_loses_a_byte)
{
    for (size_t i = 0; i < CALLS; i++) {
        for (uint64_t k = 1; survives(calls[i], k, true); k++) {
        }
    }
}

/* --- host memory ------------------------------------------------------------------------- */

/* More blocks than lists begin with. */
static loan_case open_case_of_many(void)
{
    loan_case c = {.b = backed_bench(EXPANDABLE)};
    for (size_t i = 0; i < MANY_BLOCKS; i++) {
        add(&c, 512);
    }
    return c;
}

static bool lend_without_host_memory(void *context, uint64_t nth, bool every_later)
{
    (void)context;
    loan_case c = open_case_of_many();
    begin_refusals(nth, every_later);
    bool is_lent = yield_memory(&c.b) == GMD_OK;
    bool was_refused = end_refusals();
    assert_true(is_lent || was_refused);
    assert_true(!is_lent || device_state().physical_bytes == 0);
    if (gmd_allocator_is_yielded(c.b.a, 0)) {
        assert_int_equal(restore_memory(&c.b), GMD_OK);
    }
    expect_all_whole(&c);
    expect_no_error_left();
    close_bench(&c.b);
    return was_refused;
}

TEST(without_host_memory_lending_loses_no_byte)
{
    sweep_refusals(lend_without_host_memory, NULL);
}

static bool restore_without_host_memory(void *context, uint64_t nth, bool every_later)
{
    (void)context;
    loan_case c = open_case_of_many();
    assert_int_equal(yield_memory(&c.b), GMD_OK);
    begin_refusals(nth, every_later);
    bool is_back = restore_memory(&c.b) == GMD_OK;
    bool was_refused = end_refusals();
    assert_int_equal(is_back, !was_refused);
    assert_int_equal(gmd_allocator_is_yielded(c.b.a, 0), !is_back);
    if (!is_back) {
        assert_int_equal(device_state().physical_bytes, 0);
        assert_int_equal(restore_memory(&c.b), GMD_OK);
    }
    expect_all_whole(&c);
    expect_no_error_left();
    close_bench(&c.b);
    return was_refused;
}

TEST(without_host_memory_restoring_can_be_tried_again)
{
    sweep_refusals(restore_without_host_memory, NULL);
}

/* --- threads ----------------------------------------------------------------------------- */

typedef struct worker {
    const bench *b;
    cudaStream_t stream;
    pthread_t thread;
    uint64_t refused;
} worker;

static void *churn(void *argument)
{
    worker *w = argument;
    for (int i = 0; i < 2000; i++) {
        void *p = gmd_allocator_malloc(w->b->a, 3000, 0, w->stream);
        w->refused += p && !gmd_allocator_free(w->b->a, p, 0, w->stream);
    }
    return NULL;
}

TEST_F(bench, other_threads_requests_are_refused_or_served)
{
    loan_case c = open_case(3 * GMD_MIB);
    worker w[2] = {{.b = &c.b, .stream = c.b.s1}, {.b = &c.b, .stream = c.b.s3}};
    for (int i = 0; i < 2; i++) {
        assert_int_equal(pthread_create(&w[i].thread, NULL, churn, &w[i]), 0);
    }
    for (int i = 0; i < 10; i++) {
        assert_int_equal(yield_memory(&c.b), GMD_OK);
        assert_int_equal(restore_memory(&c.b), GMD_OK);
    }
    for (int i = 0; i < 2; i++) {
        pthread_join(w[i].thread, NULL);
        assert_int_equal(w[i].refused, 0);
    }
    expect_all_whole(&c);
    close_bench(&c.b);
}
