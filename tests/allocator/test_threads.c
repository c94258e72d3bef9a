/* Eight threads at once, on streams of their own and on one that they share, while another looks at
 * the figures; ThreadSanitizer (preset tsan) watches the same tests. */
#include "allocator_test.h"

#include <pthread.h>
#include <stdatomic.h>

#define THREADS  8
#define LIVE     64
#define REQUESTS 5000

typedef struct crowd crowd;

typedef struct worker {
    crowd *of;
    cudaStream_t streams[LIVE], other; /* other: blocks are recorded on it now and then */
    uint64_t random;
    uint64_t wrong; /* frees and records of live blocks that were refused: must stay 0 */
    pthread_t thread;
} worker;

struct crowd {
    gmd_allocator *a;
    worker workers[THREADS];
    atomic_bool is_over;
    uint64_t unlawful; /* figures that contradict each other */
};

static void one_request(worker *w, void **slot, cudaStream_t stream)
{
    gmd_allocator *a = w->of->a;
    if (!*slot) {
        *slot = gmd_allocator_malloc(a, (w->random >> 30) % (4 * GMD_MIB), 0, stream);
        return;
    }
    if (w->random >> 60 == 0) {
        w->wrong += !gmd_allocator_record_stream(a, *slot, w->other);
    }
    w->wrong += !gmd_allocator_free(a, *slot, 0, stream);
    *slot = NULL;
}

static void *churn(void *argument)
{
    worker *w = argument;
    void *live[LIVE] = {0};
    for (int i = 0; i < REQUESTS; i++) {
        w->random = w->random * 6364136223846793005u + 1442695040888963407u;
        uint64_t which = (w->random >> 40) % LIVE;
        one_request(w, &live[which], w->streams[which]);
        if (i % 1000 == 999) {
            gmd_allocator_empty_cache(w->of->a);
        }
    }
    for (int i = 0; i < LIVE; i++) {
        w->wrong += !gmd_allocator_free(w->of->a, live[i], 0, w->streams[i]);
    }
    return NULL;
}

static void add_size(void *context, const gmd_block_info *b)
{
    *(uint64_t *)context += b->size;
}

static void *watch(void *argument)
{
    crowd *c = argument;
    while (!c->is_over) {
        gmd_stats s = {.struct_size = sizeof s};
        uint64_t walked = 0;
        c->unlawful += !gmd_allocator_get_stats(c->a, 0, &s) ||
                       s.allocated_bytes > s.active_bytes || s.active_bytes > s.reserved_bytes ||
                       s.active_bytes > s.active_bytes_peak ||
                       s.reserved_bytes > s.reserved_bytes_peak;
        c->unlawful += !gmd_allocator_walk(c->a, 0, add_size, &walked);
    }
    return NULL;
}

typedef enum streams_of { ONE_EACH, ONE_FOR_FOUR, ONE_FOR_EACH_BLOCK } streams_of;

static cudaStream_t new_stream(void)
{
    cudaStream_t stream = NULL;
    assert_int_equal(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), cudaSuccess);
    return stream;
}

static void give_streams(crowd *c, streams_of how)
{
    cudaStream_t streams[THREADS];
    for (int i = 0; i < THREADS; i++) {
        streams[i] = new_stream();
    }
    for (int i = 0; i < THREADS; i++) {
        worker *w = &c->workers[i];
        w->other = streams[(i + 1) % THREADS];
        for (int slot = 0; slot < LIVE; slot++) {
            w->streams[slot] =
                how == ONE_FOR_EACH_BLOCK ? new_stream() : streams[how == ONE_EACH ? i : i / 4];
        }
    }
}

static void open_crowd(crowd *c, const char *conf, streams_of how)
{
    gmd_sim_config config;
    gmd_sim_default_config(&config);
    gmd_sim_reset(&config);
    *c = (crowd){.a = NULL};
    assert_int_equal(gmd_allocator_create(&c->a, 1, conf, NULL), GMD_OK);
    for (int i = 0; i < THREADS; i++) {
        c->workers[i] = (worker){.of = c, .random = (uint64_t)i + 1};
    }
    give_streams(c, how);
}

static void run_crowd(const char *conf, streams_of how)
{
    static crowd c;
    pthread_t watcher;
    open_crowd(&c, conf, how);
    assert_int_equal(pthread_create(&watcher, NULL, watch, &c), 0);
    for (int i = 0; i < THREADS; i++) {
        assert_int_equal(pthread_create(&c.workers[i].thread, NULL, churn, &c.workers[i]), 0);
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(c.workers[i].thread, NULL);
        assert_int_equal(c.workers[i].wrong, 0);
    }
    c.is_over = true;
    pthread_join(watcher, NULL);
    assert_int_equal(c.unlawful, 0);
    gmd_allocator_empty_cache(c.a);
    gmd_stats s = {.struct_size = sizeof s};
    assert_true(gmd_allocator_get_stats(c.a, 0, &s));
    assert_int_equal(s.allocated_bytes, 0);
    assert_int_equal(s.active_bytes, 0);
    assert_int_equal(s.allocation_count, 0);
    assert_int_equal(s.requested_bytes, 0);
    assert_int_equal(s.reserved_bytes, 0);
    assert_int_equal(device_state().physical_bytes, 0);
    gmd_allocator_destroy(c.a);
}

TEST(threads_on_their_own_streams_leave_the_statistics_at_zero)
{
    run_crowd("", ONE_EACH);
}

TEST(threads_that_share_streams_do_too)
{
    run_crowd("", ONE_FOR_FOUR);
}

/* More than are looked at one by one: heaps settle while other threads use theirs. */
TEST(threads_with_hundreds_of_streams_do_too)
{
    run_crowd("", ONE_FOR_EACH_BLOCK);
}

TEST(with_expandable_segments_too)
{
    run_crowd("expandable_segments:True", ONE_EACH);
}

TEST(under_pressure_too)
{
    run_crowd("max_split_size_mb:20,per_process_memory_fraction:0.001,"
              "garbage_collection_threshold:0.5",
              ONE_FOR_FOUR);
}
