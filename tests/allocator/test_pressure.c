/* What is done before memory is refused: callbacks, garbage collection, oversize blocks. */
#include "allocator_test.h"

TEST_F(bench, an_oversize_block_is_not_for_smaller_requests)
{
    bench b = open_bench(GMD_GIB, "max_split_size_mb:20");
    uint64_t large = take(&b, 100 * GMD_MIB);
    give(&b, large);
    assert_int_not_equal(take(&b, 12 * GMD_MIB), large);
}

TEST_F(bench, an_oversize_block_is_for_requests_that_waste_little_of_it)
{
    bench b = open_bench(GMD_GIB, "max_split_size_mb:20,max_non_split_rounding_mb:30");
    uint64_t large = take(&b, 100 * GMD_MIB);
    give(&b, large);
    assert_int_not_equal(take(&b, 70 * GMD_MIB), large);
    assert_int_equal(take(&b, 71 * GMD_MIB), large);
}

TEST_F(bench, an_oversize_block_is_never_split)
{
    bench b = open_bench(GMD_GIB, "max_split_size_mb:20");
    give(&b, take(&b, 100 * GMD_MIB));
    take(&b, 90 * GMD_MIB);
    assert_int_equal(stats_of(&b).allocated_bytes, 100 * GMD_MIB);
}

/* pytorch#159567: so many that they make up the size, the largest first. */
TEST_F(bench, oversize_blocks_are_given_back_for_an_oversize_request)
{
    bench b = open_bench(200 * GMD_MIB, "max_split_size_mb:20");
    uint64_t blocks[] = {take(&b, 60 * GMD_MIB), take(&b, 50 * GMD_MIB), take(&b, 40 * GMD_MIB),
                         take(&b, 30 * GMD_MIB)};
    for (int i = 0; i < 4; i++) {
        give(&b, blocks[i]);
    }
    assert_true(take(&b, 110 * GMD_MIB) != 0);
    assert_int_equal(gmd_sim_call_count("cudaFree"), 2);
    assert_int_equal(stats_of(&b).num_alloc_retries, 0);
}

/* A request that is not for the block itself, being below that size. */
TEST_F(bench, an_oversize_block_of_just_the_least_size_is_given_back)
{
    bench b = open_bench(100 * GMD_MIB, "max_split_size_mb:40");
    uint64_t small = take(&b, 512), oversize = take(&b, 40 * GMD_MIB),
             large = take(&b, 30 * GMD_MIB);
    give(&b, small);
    give(&b, oversize);
    take(&b, 38 * GMD_MIB);
    assert_int_equal(gmd_sim_call_count("cudaFree"), 1);
    assert_int_equal(stats_of(&b).num_alloc_retries, 0);
    (void)large;
}

TEST_F(bench, garbage_is_what_was_passed_over_longest)
{
    bench b = open_bench(100 * GMD_MIB, "garbage_collection_threshold:0.65");
    gmd_allocator_set_memory_fraction(b.a, 0.99, 0);
    uint64_t old = take(&b, 12 * GMD_MIB), young = take(&b, 20 * GMD_MIB);
    give(&b, old);
    for (int i = 0; i < 3; i++) {
        take(&b, 14 * GMD_MIB); /* does not fit into it */
    }
    give(&b, young);
    take(&b, 22 * GMD_MIB);
    assert_int_equal(gmd_sim_call_count("cudaFree"), 1);
    assert_int_equal(take(&b, 20 * GMD_MIB), young);
}

/* Both blocks are of one age then, which is the mean. */
TEST_F(bench, what_was_passed_over_before_there_was_a_limit_is_no_older)
{
    bench b = open_bench(GMD_GIB, "garbage_collection_threshold:0.085"); /* 86 MiB */
    uint64_t old = take(&b, 12 * GMD_MIB), young = take(&b, 14 * GMD_MIB);
    give(&b, old);
    for (uint64_t mib = 20; mib <= 24; mib += 2) {
        take(&b, mib * GMD_MIB);
    }
    give(&b, young);
    gmd_allocator_set_memory_fraction(b.a, 0.99, 0);
    take(&b, 26 * GMD_MIB);
    assert_int_equal(gmd_sim_call_count("cudaFree"), 2);
}

/* As in torch, where a limit is a limit: what then serves the request is a block that was pending.
 */
TEST_F(bench, with_a_limit_of_nothing_all_that_is_cached_is_garbage)
{
    bench b = open_bench(GMD_GIB, "garbage_collection_threshold:0.5");
    uint64_t pending = take(&b, 30 * GMD_MIB);
    give(&b, take(&b, 20 * GMD_MIB));
    record(&b, pending, b.s2);
    work(b.s2, 1000000);
    give(&b, pending);
    assert_true(gmd_allocator_set_memory_fraction(b.a, 0, 0));
    assert_int_equal(take(&b, 30 * GMD_MIB), pending);
    assert_int_equal(gmd_sim_call_count("cudaFree"), 1);
}

TEST_F(bench, below_the_threshold_nothing_is_collected)
{
    bench b = open_bench(100 * GMD_MIB, "garbage_collection_threshold:0.9");
    gmd_allocator_set_memory_fraction(b.a, 0.99, 0);
    give(&b, take(&b, 20 * GMD_MIB));
    take(&b, 40 * GMD_MIB);
    assert_int_equal(gmd_sim_call_count("cudaFree"), 0);
}

typedef struct owner { /* of a block that can be spared */
    const bench *b;
    uint64_t address;
    uint64_t takes; /* its callback, the first time */
    int calls;
} owner;

static bool spare_it(void *context)
{
    owner *o = context;
    o->calls++;
    if (!o->address) {
        return false;
    }
    give(o->b, o->address); /* of the same allocator, from within its request */
    o->address = 0;
    return true;
}

TEST_F(bench, a_callback_may_free_what_then_serves_the_request)
{
    bench b = open_bench(64 * GMD_MIB, "");
    owner o = {.b = &b, .address = take(&b, 40 * GMD_MIB)};
    uint64_t spared = o.address;
    assert_true(gmd_allocator_on_low_memory(b.a, spare_it, &o));
    assert_int_equal(take(&b, 40 * GMD_MIB), spared);
    assert_int_equal(o.calls, 1);
}

static bool allocate_too(void *context)
{
    owner *o = context;
    o->calls++;
    return take(o->b, 10 * GMD_MIB) != 0;
}

static bool allocate_once(void *context)
{
    owner *o = context;
    bool is_served = o->takes && take(o->b, o->takes) != 0;
    o->takes = 0;
    return is_served;
}

TEST_F(bench, a_callback_that_allocates_is_not_called_by_itself)
{
    bench b = open_bench(64 * GMD_MIB, "");
    owner o = {.b = &b};
    assert_true(gmd_allocator_on_low_memory(b.a, allocate_too, &o));
    assert_true(take(&b, 20 * GMD_MIB) != 0);
    assert_int_equal(o.calls, 1);
}

/* Blocks age by what looks for one of their pool: a request three times at most, with a callback's
 * own. Ages of 7, 4 and 1 have a mean of 4, so two are garbage. */
TEST_F(bench, a_callback_s_request_ages_blocks_once)
{
    bench b = open_bench(GMD_GIB, "garbage_collection_threshold:0.153"); /* 155 MiB */
    gmd_allocator_set_memory_fraction(b.a, 0.99, 0);
    owner o = {.b = &b, .takes = 22 * GMD_MIB};
    uint64_t old = take(&b, 12 * GMD_MIB), middle = take(&b, 14 * GMD_MIB);
    uint64_t young = take(&b, 16 * GMD_MIB);
    give(&b, old);
    assert_true(gmd_allocator_on_low_memory(b.a, allocate_once, &o));
    take(&b, 20 * GMD_MIB);
    give(&b, middle);
    for (uint64_t mib = 24; mib <= 28; mib += 2) {
        take(&b, mib * GMD_MIB);
    }
    give(&b, young);
    assert_int_equal(gmd_sim_call_count("cudaFree"), 0);
    take(&b, 32 * GMD_MIB);
    assert_int_equal(gmd_sim_call_count("cudaFree"), 2);
}

TEST_F(bench, a_callback_is_not_called_while_the_cache_serves)
{
    bench b = open_bench(64 * GMD_MIB, "");
    owner o = {.b = &b};
    give(&b, take(&b, 512));
    assert_true(gmd_allocator_on_low_memory(b.a, spare_it, &o));
    take(&b, 512);
    assert_int_equal(o.calls, 0);
}

TEST_F(bench, a_limit_of_the_settings_holds_from_the_first_request_on)
{
    bench b = open_bench(100 * GMD_MIB, "per_process_memory_fraction:0.25");
    assert_int_equal(take(&b, 30 * GMD_MIB), 0);
    assert_true(take(&b, 22 * GMD_MIB) != 0);
}

/* Found by AFL++: the fraction was ignored for the request during which it could not be looked up.
 */
TEST_F(bench, a_limit_of_the_settings_holds_while_the_device_s_size_is_not_known)
{
    bench b = open_bench(GMD_GIB, "per_process_memory_fraction:0.5");
    gmd_sim_fault("cudaMemGetInfo", 1, false, cudaErrorMemoryAllocation);
    uint64_t too_much = take(&b, 600 * GMD_MIB);
    uint64_t within = take(&b, 400 * GMD_MIB);
    assert_int_equal(too_much, 0);
    assert_int_not_equal(within, 0);
}

TEST_F(bench, a_limit_that_is_set_later_holds_in_its_place)
{
    bench b = open_bench(100 * GMD_MIB, "per_process_memory_fraction:0.25");
    assert_true(take(&b, 22 * GMD_MIB) != 0);
    assert_true(gmd_allocator_set_memory_fraction(b.a, 1, 0));
    assert_true(take(&b, 60 * GMD_MIB) != 0);
}
