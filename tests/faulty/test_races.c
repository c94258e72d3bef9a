/* A race between two calls of an allocator is found by trying seeds, and the seed that found it
 * finds it again, every time. */
#include "faulty_test.h"

#include <unistd.h>

enum { SEEDS = 100, REPEATS = 20 };

static void expect_race(const char *allocator, const char *defect, const char *oracle)
{
    if (!interpose_is_on()) {
        skip(); /* no yield points at locks */
    }
    gmd_schedule which = {.kind = GMD_SCHEDULE_SEEDED};
    gmd_outcome *found = run_case(allocator, defect, defect, &which, SEEDS);
    expect_found(found, oracle);
    static const char note[] = "threads interleaved by seed ";
    assert_int_equal(strncmp(found->notes[0], note, strlen(note)), 0);
    which.seed = strtoull(found->notes[0] + strlen(note), NULL, 10);
    for (int i = 0; i < REPEATS; i++) {
        gmd_outcome *again = run_case(allocator, defect, defect, &which, 0);
        expect_found(again, oracle);
        assert_int_equal(again->violations[0].request, found->violations[0].request);
        assert_string_equal(again->violations[0].message, found->violations[0].message);
        free(again);
    }
    free(found);
}

TEST(a_block_in_the_cache_before_its_event_is_recorded_is_found)
{
    expect_race(GMD_TEST_EVENT_CACHE, "cub156", "stream_order");
}

TEST(a_chunk_merged_while_another_thread_takes_it_is_found)
{
    expect_race(GMD_TEST_CHUNK_POOL, "cupy317", "overlap");
}

TEST(a_limit_checked_before_it_is_counted_is_found)
{
    expect_race(GMD_TEST_LIMITED, "rmm868", "peak_bound");
}

TEST(locks_taken_in_two_orders_are_found_as_a_deadlock)
{
    expect_race(GMD_TEST_EVENT_CACHE, "lock_order", "progress");
}

/* The allocator is asked for its statistics next, by the driver and not by a request. */
TEST(a_lock_left_locked_by_the_last_of_interleaved_requests_is_told_at_once)
{
    if (!interpose_is_on()) {
        skip();
    }
    const gmd_schedule first = {.kind = GMD_SCHEDULE_SEEDED};
    gmd_outcome *o = run_case(GMD_TEST_BUDDY, "cub328", "cub328_last", &first, 0);
    expect_found(o, "progress");
    assert_non_null(strstr(o->violations[0].message, "deadlock: free a waits for the lock at"));
    free(o);
}

/* The one switch that matters: t1 has looked at the slot when t2 takes what is in it. */
TEST(a_race_without_locks_names_where_both_threads_stood)
{
    if (!interpose_is_on()) {
        skip();
    }
    const gmd_schedule one = {.kind = GMD_SCHEDULE_BOUNDED, .depth = 1, .steps = 300};
    gmd_outcome *o = run_case(GMD_TEST_LOCK_FREE, "slot_read", "slot_read", &one, 1000);
    expect_found(o, "overlap");
    assert_non_null(strstr(o->notes[1], "switch 1 of 1: t"));
    assert_non_null(
        strstr(o->notes[1], "alloc b 1MiB s1) stood at an access at liblock_free_pool.so+0x"));
    assert_non_null(strstr(o->notes[1], ", and t2, at its start, went on"));
    free(o);
}

TEST(the_case_that_is_left_finds_the_race_again)
{
    if (!interpose_is_on()) {
        skip();
    }
    char folder[] = "gmd-test-cases-XXXXXX", path[500];
    assert_non_null(mkdtemp(folder));
    gmd_trace trace = {0}, left = {0};
    gmd_schedule first = {.kind = GMD_SCHEDULE_SEEDED};
    snprintf(path, sizeof path, "%s/lock_order.gmd", GMD_TEST_CASES);
    read_trace(&trace, path);
    gmd_outcome *found =
        run_trace(GMD_TEST_EVENT_CACHE, "lock_order", &trace, &first, SEEDS, folder);
    expect_found(found, "progress");
    read_trace(&left, found->violations[0].case_path);
    assert_int_equal(left.conditions.interleave.kind, GMD_SCHEDULE_SEEDED);
    gmd_outcome *again = run_trace(GMD_TEST_EVENT_CACHE, "lock_order", &left, NULL, 0, NULL);
    expect_found(again, "progress");
    assert_string_equal(again->violations[0].message, found->violations[0].message);
    assert_int_equal(unlink(found->violations[0].case_path), 0);
    assert_int_equal(rmdir(folder), 0);
    gmd_trace_free(&trace);
    gmd_trace_free(&left);
    free(found);
    free(again);
}

TEST(without_the_defects_two_hundred_seeds_find_nothing)
{
    static const struct {
        const char *allocator, *name;
    } pairs[] = {{GMD_TEST_EVENT_CACHE, "cub156"},
                 {GMD_TEST_CHUNK_POOL, "cupy317"},
                 {GMD_TEST_LIMITED, "rmm868"},
                 {GMD_TEST_EVENT_CACHE, "lock_order"}};
    const gmd_schedule first = {.kind = GMD_SCHEDULE_SEEDED};
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
        expect_nothing(run_case(pairs[i].allocator, NULL, pairs[i].name, &first, seed_count(200)));
    }
}

TEST(requests_that_are_left_out_are_no_finding)
{
    const gmd_schedule first = {.kind = GMD_SCHEDULE_SEEDED};
    expect_nothing(run_case("reference", NULL, "refused", &first, seed_count(200)));
}

TEST(the_reference_passes_all_of_them)
{
    static const char *const names[] = {"cub156", "cupy317", "rmm868", "lock_order"};
    const gmd_schedule first = {.kind = GMD_SCHEDULE_SEEDED};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        expect_nothing(run_case("reference", NULL, names[i], &first, seed_count(200)));
    }
}
