/* The reference allocator on the simulated device: the algorithm, rule by rule. Sizes in the
 * comments are those of PyTorch's default settings. */
#include "gmd_allocator.h"
#include "gmd_sim.h"
#include "gmd_size.h"
#include "gmd_test.h"

#include <stdlib.h>
#include <string.h>

typedef struct fixture {
    gmd_allocator *a;
    cudaStream_t s1, s2;
} fixture;

static int open_fixture(void **state)
{
    static fixture f;
    gmd_sim_config config;
    gmd_sim_default_config(&config);
    config.device_count = 2;
    config.capacity_bytes = GMD_GIB;
    gmd_sim_reset(&config);
    cudaStreamCreateWithFlags(&f.s1, cudaStreamNonBlocking);
    cudaStreamCreateWithFlags(&f.s2, cudaStreamNonBlocking);
    *state = &f;
    return gmd_allocator_create(&f.a, 2, NULL, NULL) == GMD_OK ? 0 : -1;
}

static int close_fixture(void **state)
{
    fixture *f = *state;
    gmd_allocator_destroy(f->a);
    return 0;
}

FIXTURE(allocator, open_fixture, close_fixture);

static uint64_t take(fixture *f, uint64_t size)
{
    return (uint64_t)(uintptr_t)gmd_allocator_malloc(f->a, size, 0, f->s1);
}

static void give(fixture *f, uint64_t address)
{
    assert_true(gmd_allocator_free(f->a, (void *)(uintptr_t)address, 0, f->s1));
}

static gmd_stats stats_of(fixture *f)
{
    gmd_stats s = {.struct_size = sizeof s};
    assert_true(gmd_allocator_get_stats(f->a, 0, &s));
    return s;
}

static uint64_t device_bytes(int device)
{
    gmd_sim_device_state state;
    assert_int_equal(gmd_sim_device(device, &state), 0);
    return state.allocated_bytes;
}

TEST_F(allocator, rounds_to_512_bytes)
{
    fixture *f = *state;
    assert_true(take(f, 1) != 0);
    assert_int_equal(stats_of(f).allocated_bytes, 512);
    take(f, 513);
    assert_int_equal(stats_of(f).allocated_bytes, 512 + 1024);
    assert_int_equal(stats_of(f).requested_bytes, 1 + 513);
}

TEST_F(allocator, a_size_of_zero_gets_a_block)
{
    fixture *f = *state;
    assert_true(take(f, 0) != 0);
    assert_int_equal(stats_of(f).allocated_bytes, 512);
}

TEST_F(allocator, small_requests_come_from_2_mib_segments)
{
    fixture *f = *state;
    take(f, GMD_MIB);
    assert_int_equal(stats_of(f).reserved_bytes, 2 * GMD_MIB);
}

TEST_F(allocator, requests_above_1_mib_come_from_20_mib_segments)
{
    fixture *f = *state;
    take(f, GMD_MIB + 1);
    assert_int_equal(stats_of(f).reserved_bytes, 20 * GMD_MIB);
}

TEST_F(allocator, requests_from_10_mib_on_get_segments_rounded_to_2_mib)
{
    fixture *f = *state;
    take(f, 10 * GMD_MIB + 1);
    assert_int_equal(stats_of(f).reserved_bytes, 12 * GMD_MIB);
}

TEST_F(allocator, neighbours_are_cut_from_the_front_in_address_order)
{
    fixture *f = *state;
    uint64_t a = take(f, 512), b = take(f, 512);
    assert_int_equal(b, a + 512);
}

TEST_F(allocator, a_large_block_keeps_a_remainder_of_up_to_1_mib)
{
    fixture *f = *state;
    take(f, 19 * GMD_MIB);
    assert_int_equal(stats_of(f).allocated_bytes, 20 * GMD_MIB);
    assert_int_equal(stats_of(f).inactive_split_bytes, 0);
}

TEST_F(allocator, a_remainder_above_1_mib_is_split_off)
{
    fixture *f = *state;
    take(f, 9 * GMD_MIB);
    assert_int_equal(stats_of(f).allocated_bytes, 9 * GMD_MIB);
    assert_int_equal(stats_of(f).inactive_split_bytes, 11 * GMD_MIB);
}

TEST_F(allocator, takes_the_smallest_block_that_fits)
{
    fixture *f = *state;
    uint64_t large = take(f, 8192), wall1 = take(f, 512), fitting = take(f, 2048);
    uint64_t wall2 = take(f, 512);
    give(f, large);
    give(f, fitting);
    assert_int_equal(take(f, 2048), fitting);
    (void)wall1;
    (void)wall2;
}

TEST_F(allocator, takes_the_lowest_address_among_equals)
{
    fixture *f = *state;
    uint64_t low = take(f, 1024), wall = take(f, 512), high = take(f, 1024);
    take(f, 512);
    give(f, high);
    give(f, low);
    assert_int_equal(take(f, 1024), low);
    (void)wall;
}

TEST_F(allocator, merges_a_freed_block_with_both_neighbours)
{
    fixture *f = *state;
    uint64_t a = take(f, 512), b = take(f, 512), c = take(f, 512);
    uint64_t wall = take(f, 512);
    give(f, a);
    give(f, c);
    give(f, b);
    assert_int_equal(take(f, 1536), a);
    (void)wall;
}

TEST_F(allocator, another_stream_does_not_get_a_cached_block)
{
    fixture *f = *state;
    uint64_t a = take(f, 512);
    give(f, a);
    void *other = gmd_allocator_malloc(f->a, 512, 0, f->s2);
    assert_int_not_equal((uint64_t)(uintptr_t)other, a);
    assert_int_equal(stats_of(f).segment_count, 2);
}

TEST_F(allocator, devices_are_apart_and_the_current_device_is_kept)
{
    fixture *f = *state;
    void *p = gmd_allocator_malloc(f->a, 4 * GMD_MIB, 1, NULL);
    int current = -1;
    assert_non_null(p);
    assert_int_equal(cudaGetDevice(&current), cudaSuccess);
    assert_int_equal(current, 0);
    assert_int_equal(device_bytes(0), 0);
    assert_int_equal(device_bytes(1), 20 * GMD_MIB);
}

TEST_F(allocator, empty_cache_gives_back_whole_free_segments_only)
{
    fixture *f = *state;
    uint64_t kept = take(f, 512), gone = take(f, 30 * GMD_MIB);
    give(f, gone);
    gmd_allocator_empty_cache(f->a);
    assert_int_equal(device_bytes(0), 2 * GMD_MIB);
    give(f, kept);
    gmd_allocator_empty_cache(f->a);
    assert_int_equal(device_bytes(0), 0);
}

TEST_F(allocator, gives_the_cache_back_and_retries_when_the_device_is_full)
{
    fixture *f = *state;
    give(f, take(f, 600 * GMD_MIB));
    assert_true(take(f, 700 * GMD_MIB) != 0);
    assert_int_equal(stats_of(f).num_alloc_retries, 1);
    assert_int_equal(stats_of(f).num_ooms, 0);
    assert_int_equal(stats_of(f).reserved_bytes, 700 * GMD_MIB);
}

TEST_F(allocator, out_of_memory_leaves_the_allocator_usable_and_no_error_behind)
{
    fixture *f = *state;
    take(f, 600 * GMD_MIB);
    assert_int_equal(take(f, 600 * GMD_MIB), 0);
    assert_int_equal(stats_of(f).num_ooms, 1);
    assert_int_equal(cudaPeekAtLastError(), cudaSuccess);
    assert_true(take(f, 100 * GMD_MIB) != 0);
}

TEST_F(allocator, reserved_memory_stays_within_the_fraction)
{
    fixture *f = *state;
    assert_true(gmd_allocator_set_memory_fraction(f->a, 0.5, 0));
    assert_true(take(f, 512 * GMD_MIB) != 0);
    assert_int_equal(take(f, 1), 0);
    assert_int_equal(stats_of(f).num_ooms, 1);
}

TEST_F(allocator, a_fraction_out_of_range_is_refused)
{
    fixture *f = *state;
    assert_false(gmd_allocator_set_memory_fraction(f->a, 1.5, 0));
    assert_false(gmd_allocator_set_memory_fraction(f->a, -0.1, 0));
    assert_false(gmd_allocator_set_memory_fraction(f->a, 0.5, 2));
}

TEST_F(allocator, sizes_near_the_largest_number_are_refused)
{
    fixture *f = *state;
    give(f, take(f, 512));
    for (uint64_t back = 0; back < 1200; back += 100) {
        assert_int_equal(take(f, SIZE_MAX - back), 0);
    }
    assert_true(take(f, 512) != 0);
}

TEST_F(allocator, double_and_foreign_frees_are_refused)
{
    fixture *f = *state;
    uint64_t a = take(f, 512), b = take(f, 512);
    give(f, a);
    assert_false(gmd_allocator_free(f->a, (void *)(uintptr_t)a, 0, f->s1));
    assert_false(gmd_allocator_free(f->a, (void *)(uintptr_t)(b + 1), 0, f->s1));
    assert_true(gmd_allocator_free(f->a, NULL, 0, f->s1));
    assert_int_equal(stats_of(f).allocation_count, 1);
}

TEST_F(allocator, peaks_are_kept_until_reset)
{
    fixture *f = *state;
    give(f, take(f, 4096));
    assert_int_equal(stats_of(f).allocated_bytes_peak, 4096);
    gmd_allocator_reset_peak_stats(f->a, 0);
    assert_int_equal(stats_of(f).allocated_bytes_peak, 0);
    assert_int_equal(stats_of(f).reserved_bytes_peak, 2 * GMD_MIB);
}

TEST_F(allocator, a_setting_that_is_not_known_is_named)
{
    gmd_allocator *a = NULL;
    gmd_error error = {""};
    assert_int_equal(gmd_allocator_create(&a, 1, "max_split_size_mb:64,x:1", &error),
                     GMD_BAD_INPUT);
    assert_non_null(strstr(error.text, "'x' at character 22"));
    assert_null(a);
}

/* --- whole-structure check under a random workload --------------------------------------- */

typedef struct tiling { /* blocks tile their segments, and no two free neighbours stay unmerged */
    uint64_t segment, expected, segments, blocks, allocated, free_bytes;
    bool was_free;
} tiling;

static void check_tile(void *context, const gmd_block_info *b)
{
    tiling *t = context;
    if (b->segment_address != t->segment) {
        t->segment = b->segment_address;
        t->expected = b->segment_address;
        t->was_free = false;
        t->segments++;
    }
    assert_int_equal(b->address, t->expected);
    assert_true(b->address + b->size <= b->segment_address + b->segment_size);
    assert_false(t->was_free && b->state == 0);
    t->was_free = b->state == 0;
    t->expected = b->address + b->size;
    t->blocks++;
    *(b->state ? &t->allocated : &t->free_bytes) += b->size;
}

TEST_F(allocator, blocks_tile_their_segments_under_a_random_workload)
{
    fixture *f = *state;
    enum { LIVE = 200 };
    uint64_t live[LIVE] = {0}, random = 7;
    for (int step = 0; step < 30000; step++) {
        random = random * 6364136223846793005u + 1442695040888963407u;
        uint64_t *slot = &live[(random >> 40) % LIVE];
        if (*slot) {
            give(f, *slot);
            *slot = 0;
        } else {
            unsigned shift = (unsigned)((random >> 20) % 25);
            *slot = take(f, (random >> 32) % ((uint64_t)2 << shift) + 1);
        }
        if (step % 500 == 0) {
            tiling t = {0};
            assert_true(gmd_allocator_walk(f->a, 0, check_tile, &t));
            gmd_stats s = stats_of(f);
            assert_int_equal(t.allocated, s.allocated_bytes);
            assert_int_equal(t.allocated + t.free_bytes, s.reserved_bytes);
            assert_int_equal(t.segments, s.segment_count);
            assert_int_equal(s.reserved_bytes, device_bytes(0));
        }
    }
}

TEST(a_number_of_devices_that_no_machine_has_is_refused)
{
    gmd_allocator *a = NULL;
    gmd_error error = {""};
    assert_int_equal(gmd_allocator_create(&a, 0, "", &error), GMD_BAD_INPUT);
    assert_non_null(strstr(error.text, "0 devices"));
    assert_int_equal(gmd_allocator_create(&a, 1025, "", &error), GMD_BAD_INPUT);
    assert_null(a);
}

TEST_F(allocator, a_block_is_freed_whichever_device_is_named)
{
    fixture *f = *state;
    gmd_stats stats = {.struct_size = sizeof stats};
    void *block = gmd_allocator_malloc(f->a, GMD_MIB, 1, NULL);
    assert_non_null(block);
    assert_true(gmd_allocator_free(f->a, block, 0, NULL));
    assert_true(gmd_allocator_get_stats(f->a, 1, &stats));
    assert_int_equal(stats.allocated_bytes, 0);
}

/* --- an order of segments ---------------------------------------------------------------- */

typedef struct decisions { /* what an observer sees of 4,000 random requests, addresses aside */
    gmd_stats stats;
    uint64_t walked; /* hash of the final blocks */
} decisions;

static void hash_block(void *context, const gmd_block_info *b)
{
    uint64_t *hash = context;
    const uint64_t fields[] = {b->segment_address, b->address, b->size, (uint64_t)b->state};
    for (size_t i = 0; i < 4; i++) {
        *hash = (*hash ^ fields[i]) * 0x100000001b3u;
    }
}

static decisions decide_with(gmd_sim_placement placement)
{
    enum { LIVE = 150 };
    uint64_t live[LIVE] = {0}, random = 11;
    fixture f = {0};
    gmd_sim_config config;
    gmd_sim_default_config(&config);
    config.placement = placement;
    gmd_sim_reset(&config);
    assert_int_equal(gmd_allocator_create(&f.a, 1, NULL, NULL), GMD_OK);
    const uint64_t given[] = {(uint64_t)9 << 30, (uint64_t)3 << 30, (uint64_t)6 << 30};
    assert_true(gmd_allocator_order_segments(f.a, 0, given, 3));
    for (int step = 0; step < 4000; step++) {
        random = random * 6364136223846793005u + 1442695040888963407u;
        uint64_t *slot = &live[(random >> 40) % LIVE];
        if (*slot) {
            give(&f, *slot);
            *slot = 0;
        } else {
            *slot = take(&f, (random >> 30) % (3 * GMD_MIB) + 1);
        }
        if (step % 1000 == 999) {
            gmd_allocator_empty_cache(f.a);
        }
    }
    decisions d = {.stats = stats_of(&f)};
    gmd_allocator_walk(f.a, 0, hash_block, &d.walked);
    gmd_allocator_destroy(f.a);
    return d;
}

typedef struct sought {
    uint64_t place;
    bool is_found;
} sought;

static void look_for(void *context, const gmd_block_info *b)
{
    sought *s = context;
    s->is_found = s->is_found || (b->address == s->place && b->state == 1);
}

TEST(with_an_order_a_block_is_walked_at_the_place_of_its_address)
{
    fixture f = {0};
    gmd_sim_config config;
    gmd_sim_default_config(&config);
    gmd_sim_reset(&config);
    assert_int_equal(gmd_allocator_create(&f.a, 1, NULL, NULL), GMD_OK);
    const uint64_t given[] = {(uint64_t)9 << 30};
    assert_true(gmd_allocator_order_segments(f.a, 0, given, 1));
    take(&f, 1000);
    uint64_t address = take(&f, 1000);
    sought s = {.place = gmd_allocator_place_of(f.a, 0, address)};
    gmd_allocator_walk(f.a, 0, look_for, &s);
    assert_int_equal(s.place, given[0] + 1024);
    assert_true(s.is_found);
    assert_int_equal(gmd_allocator_place_of(f.a, 0, given[0]), 0);
    gmd_allocator_destroy(f.a);
}

TEST(with_an_order_decisions_do_not_depend_on_where_segments_lie)
{
    decisions low = decide_with(GMD_SIM_ASCENDING), random = decide_with(GMD_SIM_RANDOM);
    assert_memory_equal(&low.stats, &random.stats, sizeof low.stats);
    assert_true(low.walked == random.walked);
}

TEST_F(allocator, destroy_gives_everything_back)
{
    fixture *f = *state;
    take(f, 512);
    take(f, 50 * GMD_MIB);
    gmd_allocator_destroy(f->a);
    f->a = NULL;
    assert_int_equal(device_bytes(0), 0);
}
