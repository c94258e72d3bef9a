/* What waits for what: cached requests for no lock, and the search for the driver's functions,
 * which all devices share, for the search that is under way. The linker puts the functions below in
 * place of those of their names. */
#include "allocator_test.h"

#include "gmd_cuda_scope.h"
#include "heap.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <unistd.h>

#define REPLACEMENT __attribute__((visibility("default")))

/* --- the search for the driver's functions ----------------------------------------------- */

static struct {
    _Atomic bool is_watched; /* nothing is found then */
    _Atomic int under_way, begun;
    _Atomic bool were_two;
} searches;

void *__real_cuda_driver_function(const char *name, unsigned version);
REPLACEMENT void *__wrap_cuda_driver_function(const char *name, unsigned version);

/* The first one takes so long that another thread's would begin meanwhile. */
void *__wrap_cuda_driver_function(const char *name, unsigned version)
{
    if (!searches.is_watched) {
        return __real_cuda_driver_function(name, version);
    }
    bool is_first = searches.begun++ == 0;
    if (searches.under_way++) {
        searches.were_two = true;
    }
    for (int i = 0; is_first && i < 200 && !searches.were_two; i++) {
        usleep(1000);
    }
    searches.under_way--;
    return NULL;
}

static bench open_two_devices(void)
{
    gmd_sim_config config;
    gmd_sim_default_config(&config);
    config.device_count = 2;
    return open_bench_on(&config, "expandable_segments:True");
}

static void *request_of_device_1(void *of)
{
    const bench *b = of;
    return gmd_allocator_malloc(b->a, 512, 1, NULL);
}

/* No longer than the test: the next one finds the functions. */
static int stop_watching(void **state)
{
    searches.is_watched = false;
    return close_benches(state);
}

FIXTURE(watched_search, NULL, stop_watching);

TEST_F(watched_search, two_devices_first_requests_search_one_after_the_other)
{
    bench b = open_two_devices();
    pthread_t other;
    searches.is_watched = true;
    assert_int_equal(pthread_create(&other, NULL, request_of_device_1, &b), 0);
    const void *memory = gmd_allocator_malloc(b.a, 512, 0, NULL);
    pthread_join(other, NULL);
    assert_null(memory);
    assert_true(searches.begun > 1);
    assert_false(searches.were_two);
}

TEST_F(watched_search, what_was_not_found_is_searched_for_again)
{
    bench b = open_two_devices();
    searches.is_watched = true;
    assert_null(gmd_allocator_malloc(b.a, 512, 0, NULL));
    searches.is_watched = false;
    assert_non_null(gmd_allocator_malloc(b.a, 512, 0, NULL));
}

/* --- locks ------------------------------------------------------------------------------- */

static _Atomic uint64_t locked; /* so many locks were taken */

int __real_pthread_mutex_lock(pthread_mutex_t *lock);
REPLACEMENT int __wrap_pthread_mutex_lock(pthread_mutex_t *lock);

int __wrap_pthread_mutex_lock(pthread_mutex_t *lock)
{
    locked++;
    return __real_pthread_mutex_lock(lock);
}

/* Blocks of both pools on two streams at the same time. */
static void use_both_streams(const bench *b)
{
    const cudaStream_t streams[] = {b->s1, b->s2};
    uint64_t blocks[4];
    for (int i = 0; i < 4; i++) {
        blocks[i] = take_on(b, i < 2 ? 3000 : 3 * GMD_MIB, streams[i % 2]);
        assert_int_not_equal(blocks[i], 0);
    }
    for (int i = 0; i < 4; i++) {
        assert_true(gmd_allocator_free(b->a, (void *)(uintptr_t)blocks[i], 0, streams[i % 2]));
    }
}

/* What they need is cached by then, and each stream has its share of the figures' peaks. */
static void expect_no_locks(const bench *b)
{
    use_both_streams(b);
    uint64_t before = locked;
    use_both_streams(b);
    assert_int_equal(locked - before, 0);
}

static void cached_requests_take_no_lock(const char *conf, double fraction)
{
    bench b = open_bench(GMD_GIB, conf);
    assert_true(gmd_allocator_set_memory_fraction(b.a, fraction, 0));
    expect_no_locks(&b);
}

TEST_F(bench, a_cached_request_takes_no_lock)
{
    cached_requests_take_no_lock("", 1);
}

TEST_F(bench, nor_of_expandable_segments)
{
    cached_requests_take_no_lock("expandable_segments:True", 1);
}

TEST_F(bench, nor_with_a_limit)
{
    cached_requests_take_no_lock("max_split_size_mb:64", 0.5);
}

TEST_F(bench, nor_where_garbage_is_collected_from_no_limit_on)
{
    cached_requests_take_no_lock("garbage_collection_threshold:0.5", 1);
}

TEST_F(bench, nor_on_the_only_stream)
{
    bench b = open_bench(GMD_GIB, "");
    give(&b, take(&b, 3000));
    uint64_t before = locked;
    give(&b, take(&b, 3000));
    assert_int_equal(locked - before, 0);
}

TEST_F(bench, nor_once_no_free_waits_any_more)
{
    bench b = open_bench(GMD_GIB, "");
    uint64_t used = take(&b, 512);
    record(&b, used, b.s3);
    work(b.s3, 1000);
    give(&b, used);
    gmd_sim_advance(1000);
    expect_no_locks(&b);
}

TEST_F(bench, nor_once_no_request_goes_to_a_private_pool)
{
    bench b = open_bench(GMD_GIB, "");
    const uint64_t id[2] = {0, 1};
    void *context;
    assert_true(gmd_allocator_begin_pool(b.a, 0, id, NULL, NULL));
    assert_true(gmd_allocator_end_pool(b.a, 0, id, &context));
    expect_no_locks(&b);
}

TEST_F(bench, nor_once_lent_memory_is_back)
{
    bench b = open_bench(GMD_GIB, "expandable_segments:True");
    assert_int_equal(gmd_allocator_yield_memory(b.a, 0, NULL), GMD_OK);
    assert_int_equal(gmd_allocator_restore_memory(b.a, 0, NULL), GMD_OK);
    expect_no_locks(&b);
}

/* Ages are counted by each request that looks: nobody else may have the device then. */
TEST_F(bench, requests_that_count_ages_take_the_device_s_lock)
{
    bench b = open_bench(GMD_GIB, "garbage_collection_threshold:0.5");
    assert_true(gmd_allocator_set_memory_fraction(b.a, 0.5, 0));
    use_both_streams(&b);
    uint64_t before = locked;
    uint64_t address = take(&b, 3000);
    assert_int_equal(locked - before, 1);
    give(&b, address);
}

/* --- exclusive access --------------------------------------------------------------------- */

typedef struct situation { /* for functions that need exclusive access to the device */
    bench b;
    uint64_t address; /* of a live block */
} situation;

static const uint64_t pool_id[2] = {0, 1};

static void visit_block(void *context, const gmd_block_info *info)
{
    (void)context;
    (void)info;
}

static void see_figure(void *context, const char *name, uint64_t value)
{
    (void)context;
    (void)name;
    (void)value;
}

static bool spare_nothing(void *context)
{
    (void)context;
    return false;
}

static void record_it(situation *s)
{
    record(&s->b, s->address, s->b.s2);
}

static void free_it_in_use(situation *s)
{
    give(&s->b, s->address);
}

static void ask_for_more(situation *s)
{
    take(&s->b, 100 * GMD_MIB);
}

static void forget_a_stream(situation *s)
{
    gmd_allocator_forget_stream(s->b.a, 0, s->b.s2);
}

static void empty_the_cache(situation *s)
{
    gmd_allocator_empty_cache(s->b.a);
}

static void set_a_fraction(situation *s)
{
    gmd_allocator_set_memory_fraction(s->b.a, 0.9, 0);
}

static void add_a_callback(situation *s)
{
    gmd_allocator_on_low_memory(s->b.a, spare_nothing, NULL);
}

static void lend(situation *s)
{
    gmd_allocator_yield_memory(s->b.a, 0, NULL);
}

static void restore(situation *s)
{
    gmd_allocator_restore_memory(s->b.a, 0, NULL);
}

static void begin_a_pool(situation *s)
{
    gmd_allocator_begin_pool(s->b.a, 0, pool_id, NULL, NULL);
}

static void end_a_pool(situation *s)
{
    void *context;
    gmd_allocator_end_pool(s->b.a, 0, pool_id, &context);
}

static void release_a_pool(situation *s)
{
    gmd_allocator_release_pool(s->b.a, 0, pool_id);
}

static void reset_peaks(situation *s)
{
    gmd_allocator_reset_peak_stats(s->b.a, 0);
}

static void order(situation *s)
{
    gmd_allocator_order_segments(s->b.a, 0, NULL, 0);
}

static void find_a_place(situation *s)
{
    gmd_allocator_place_of(s->b.a, 0, s->address);
}

static void look_at_figures(situation *s)
{
    stats_of(&s->b);
}

static void look_at_all_figures(situation *s)
{
    gmd_allocator_memory_stats(s->b.a, 0, see_figure, NULL);
}

static void look_at_blocks(situation *s)
{
    gmd_allocator_walk(s->b.a, 0, visit_block, NULL);
}

static void switch_a_quirk(situation *s)
{
    gmd_allocator_set_quirk(s->b.a, GMD_QUIRK_SPURIOUS_OOM, true);
}

static void switch_history(situation *s)
{
    gmd_allocator_record_history(s->b.a, 10, GMD_STACKS_OFF, NULL);
}

static void ask_for_a_size(situation *s)
{
    gmd_allocator_block_size(s->b.a, 0, (void *)(uintptr_t)s->address);
}

static void empty_a_pool(situation *s)
{
    gmd_allocator_empty_pool(s->b.a, 0, pool_id);
}

static void change_settings(situation *s)
{
    gmd_allocator_change_settings(s->b.a, "roundup_power2_divisions:2", NULL);
}

static void skip_events(situation *s)
{
    gmd_allocator_skip_events(s->b.a, "snapshot", NULL);
}

static const struct {
    const char *name;
    void (*run)(situation *s);
} functions[] = {
    {"record_stream", record_it},
    {"malloc", ask_for_more},
    {"free", free_it_in_use},
    {"forget_stream", forget_a_stream},
    {"empty_cache", empty_the_cache},
    {"set_memory_fraction", set_a_fraction},
    {"on_low_memory", add_a_callback},
    {"yield_memory", lend},
    {"restore_memory", restore},
    {"begin_pool", begin_a_pool},
    {"end_pool", end_a_pool},
    {"release_pool", release_a_pool},
    {"reset_peak_stats", reset_peaks},
    {"order_segments", order},
    {"place_of", find_a_place},
    {"get_stats", look_at_figures},
    {"memory_stats", look_at_all_figures},
    {"walk", look_at_blocks},
    {"set_quirk", switch_a_quirk},
    {"record_history", switch_history},
    {"block_size", ask_for_a_size},
    {"empty_pool", empty_a_pool},
    {"change_settings", change_settings},
    {"skip_events", skip_events},
};

/* Each takes the device's lock, once: in between nobody sees what is half done. */
TEST_F(bench, what_is_not_cached_has_exclusive_access_to_the_device)
{
    situation s = {.b = open_bench(GMD_GIB, "")};
    s.address = take(&s.b, 512);
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++) {
        uint64_t before = locked;
        functions[i].run(&s);
        if (locked - before != 1) {
            fail_msg("%s took %d locks", functions[i].name, (int)(locked - before));
        }
    }
}

/* The locks of stacks and of the device; a request's stack is taken before it enters anything. */
TEST_F(bench, all_that_knows_stacks_takes_their_lock)
{
    bench b = open_bench(GMD_GIB, "");
    char path[64];
    give(&b, take(&b, 512));
    uint64_t before = locked;
    gmd_allocator_set_stack_source(b.a, NULL, NULL);
    assert_int_equal(locked - before, 1);
    assert_int_equal(gmd_allocator_record_history(b.a, 10, GMD_STACKS_ALLOCATIONS, NULL), GMD_OK);
    before = locked;
    give(&b, take(&b, 512)); /* who tells stacks, and what the thread's is */
    assert_int_equal(locked - before, 2);
    before = locked;
    gmd_allocator_set_metadata(b.a, "step 7"); /* the text, and that events carry it */
    assert_int_equal(locked - before, 2);
    gmd_allocator_set_metadata(b.a, "");
    before = locked;
    snprintf(path, sizeof path, "locks-%ld.pickle", (long)getpid());
    gmd_status status = gmd_allocator_dump_snapshot(b.a, path, NULL);
    unlink(path);
    assert_int_equal(status, GMD_OK);
    assert_int_equal(locked - before, 3); /* the device, how many stacks there are, the stack */
}

/* The last test, for spares are kept for the rest of the process, whatever allocator had them. */
TEST(a_heap_is_kept_and_taken_again_under_a_lock)
{
    heap_keep_spares();
    heap *h = heap_create(NULL, NULL, NULL);
    uint64_t before = locked;
    heap_destroy(h);
    assert_int_equal(locked - before, 1);
    before = locked;
    h = heap_create(NULL, NULL, NULL);
    assert_int_equal(locked - before, 1);
    heap_destroy(h);
}
