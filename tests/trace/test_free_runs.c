/* Whose doing a run of freed segments was: the rules of docs/replay.md one by one, and what the
 * model of the recorded cache says that a request gives back. */
#include "free_runs.h"
#include "gmd_size.h"
#include "gmd_test.h"
#include "recorded_cache.h"

#include <stdlib.h>

/* --- the rules ---------------------------------------------------------------------------- */

/* A run that is all that was cached. */
#define BEFORE(what, ...)                                                                          \
    (&(run_facts){.follower = FOLLOWED_BY_##what, .is_all = true, __VA_ARGS__})
#define RUN(...)     BEFORE(NEW_MEMORY, __VA_ARGS__)
#define REFUSED(...) BEFORE(REFUSAL, __VA_ARGS__)

TEST(an_empty_cache_that_the_recorder_noted_is_one)
{
    assert_int_equal(run_judge(RUN(.knows_calls = true, .is_call = true, .is_planned = true)),
                     RUN_EMPTY_CACHE);
}

TEST(where_the_recorder_noted_every_empty_cache_another_run_is_the_requests)
{
    assert_int_equal(run_judge(RUN(.knows_calls = true)), RUN_OF_REQUEST);
}

TEST(what_is_given_back_between_pages_is_the_requests)
{
    assert_int_equal(run_judge(RUN(.is_between_pages = true)), RUN_OF_REQUEST);
}

TEST(with_no_request_after_it_the_job_emptied_its_cache)
{
    run_facts single = {.follower = FOLLOWED_BY_NOTHING};
    assert_int_equal(run_judge(&single), RUN_EMPTY_CACHE);
}

TEST(an_empty_cache_goes_on_with_the_next_device)
{
    assert_int_equal(run_judge(RUN(.continues = true, .is_planned = true, .plan_has_retry = true)),
                     RUN_EMPTY_CACHE);
}

TEST(a_refused_request_gave_its_cache_back)
{
    assert_int_equal(run_judge(REFUSED(.knows_limit = false)), RUN_OF_REQUEST);
}

TEST(unless_it_would_have_done_so_in_another_order)
{
    assert_int_equal(run_judge(REFUSED(.knows_limit = true)), RUN_EMPTY_CACHE);
}

TEST(a_segment_that_would_have_served_was_gone_before)
{
    assert_int_equal(
        run_judge(RUN(.would_have_served = true, .is_planned = true, .plan_has_retry = true)),
        RUN_EMPTY_CACHE);
}

TEST(a_part_of_the_cache_is_the_requests)
{
    run_facts part = {.follower = FOLLOWED_BY_NEW_MEMORY};
    assert_int_equal(run_judge(&part), RUN_OF_REQUEST);
}

TEST(a_count_of_retries_that_rose_tells_a_retry)
{
    assert_int_equal(run_judge(RUN(.knows_retries = true, .has_retried = true)), RUN_OF_REQUEST);
}

TEST(a_count_of_retries_that_did_not_rise_tells_an_empty_cache)
{
    assert_int_equal(
        run_judge(RUN(.knows_retries = true, .is_planned = true, .plan_has_retry = true)),
        RUN_EMPTY_CACHE);
}

TEST(or_a_collection_which_is_no_retry)
{
    assert_int_equal(run_judge(RUN(.knows_retries = true, .is_planned = true)), RUN_OF_REQUEST);
}

TEST(what_the_request_would_not_have_given_back_is_an_empty_cache)
{
    assert_int_equal(run_judge(RUN(.knows_limit = true)), RUN_EMPTY_CACHE);
}

TEST(what_it_would_have_given_back_without_a_retry_is_its_own)
{
    assert_int_equal(run_judge(RUN(.knows_limit = true, .is_planned = true)), RUN_OF_REQUEST);
}

TEST(a_retry_and_an_empty_cache_can_look_the_same)
{
    assert_int_equal(
        run_judge(RUN(.knows_limit = true, .is_planned = true, .plan_has_retry = true)),
        RUN_EITHER);
}

/* --- the model of the cache ---------------------------------------------------------------- */

#define AT(n) (((uint64_t)1 << 40) + (uint64_t)(n)*GMD_GIB)

typedef struct fixture {
    gmd_recorded_settings settings;
    recorded_cache cache;
    uint64_t reserved;
    cache_plan plan;
} fixture;

static void open_fixture(fixture *f)
{
    *f = (fixture){.settings = {.max_split_bytes = UINT64_MAX,
                                .max_non_split_rounding_bytes = 20 * GMD_MIB,
                                .large_segment_bytes = 20 * GMD_MIB}};
    f->cache.settings = &f->settings;
}

static void close_fixture(fixture *f)
{
    free(f->plan.addresses);
    recorded_cache_free(&f->cache);
}

static void note(fixture *f, gmd_action action, int n, uint64_t mib, uint64_t stream)
{
    const gmd_snapshot_event e = {
        .action = (uint8_t)action, .address = AT(n), .size = mib * GMD_MIB, .stream = stream};
    assert_true(recorded_cache_note(&f->cache, &e, false));
}

/* Segment n of one block, which is freed: it is cached. */
static void cache(fixture *f, int n, uint64_t mib, uint64_t stream)
{
    note(f, GMD_ACTION_SEGMENT_ALLOC, n, mib, stream);
    note(f, GMD_ACTION_ALLOC, n, mib, stream);
    note(f, GMD_ACTION_FREE_COMPLETED, n, mib, stream);
    f->reserved += mib * GMD_MIB;
}

static void plan(fixture *f, uint64_t mib, uint64_t stream, uint64_t limit_mib)
{
    const gmd_snapshot_event request = {
        .action = GMD_ACTION_ALLOC, .size = mib * GMD_MIB, .stream = stream};
    assert_true(recorded_cache_plan(&f->cache, &request, f->reserved, limit_mib * GMD_MIB, true,
                                    SIZE_MAX, &f->plan));
}

static void expect(fixture *f, const char *segments)
{
    char got[16] = "";
    for (size_t i = 0; i < f->plan.count && i < sizeof got - 1; i++) {
        got[i] = (char)('0' + (f->plan.addresses[i] - AT(0)) / GMD_GIB);
    }
    assert_string_equal(got, segments);
    close_fixture(f);
}

TEST(within_the_limit_nothing_is_given_back)
{
    fixture f;
    open_fixture(&f);
    cache(&f, 0, 40, 1);
    plan(&f, 60, 1, 100);
    assert_false(f.plan.is_retry);
    expect(&f, "");
}

TEST(at_the_limit_the_whole_cache_is_given_back_in_the_pools_order)
{
    fixture f;
    open_fixture(&f);
    cache(&f, 0, 1, 1);  /* small: after the large ones */
    cache(&f, 1, 40, 2); /* of a later stream */
    cache(&f, 2, 40, 1);
    cache(&f, 3, 30, 1);
    plan(&f, 60, 1, 150);
    assert_true(f.plan.is_retry);
    expect(&f, "3210");
}

TEST(a_segment_with_a_block_is_not_given_back)
{
    fixture f;
    open_fixture(&f);
    cache(&f, 0, 40, 1);
    cache(&f, 1, 40, 1);
    note(&f, GMD_ACTION_ALLOC, 0, 10, 1);
    plan(&f, 60, 1, 100);
    expect(&f, "1");
}

TEST(of_the_garbage_what_has_been_cached_long_is_collected)
{
    fixture f;
    open_fixture(&f);
    f.settings.gc_threshold = 0.5;
    cache(&f, 0, 40, 1);
    cache(&f, 1, 40, 1);
    cache(&f, 2, 40, 1);
    plan(&f, 60, 1, 220);
    assert_false(f.plan.is_retry);
    expect(&f, "01");
}

TEST(small_segments_are_no_garbage)
{
    fixture f;
    open_fixture(&f);
    f.settings.gc_threshold = 0.1;
    cache(&f, 0, 1, 1);
    plan(&f, 2, 1, 1000);
    expect(&f, "");
}

TEST(a_collection_that_is_not_enough_is_followed_by_the_rest)
{
    fixture f;
    open_fixture(&f);
    f.settings.gc_threshold = 0.9;
    cache(&f, 0, 40, 2);
    cache(&f, 1, 40, 1);
    plan(&f, 80, 3, 85);
    assert_true(f.plan.is_retry);
    expect(&f, "01");
}

TEST(the_smallest_oversize_segment_that_is_enough_is_released)
{
    fixture f;
    open_fixture(&f);
    f.settings.max_split_bytes = 50 * GMD_MIB;
    cache(&f, 0, 60, 1);
    cache(&f, 1, 80, 1);
    cache(&f, 2, 90, 1);
    cache(&f, 3, 40, 1);
    plan(&f, 70, 1, 270);
    assert_false(f.plan.is_retry);
    expect(&f, "1");
}

TEST(else_the_largest_ones_until_they_are)
{
    fixture f;
    open_fixture(&f);
    f.settings.max_split_bytes = 50 * GMD_MIB;
    cache(&f, 0, 55, 1);
    cache(&f, 1, 60, 1);
    cache(&f, 2, 70, 1);
    plan(&f, 100, 1, 200);
    expect(&f, "21");
}

TEST(other_streams_oversize_segments_are_left)
{
    fixture f;
    open_fixture(&f);
    f.settings.max_split_bytes = 50 * GMD_MIB;
    cache(&f, 0, 100, 2);
    cache(&f, 1, 100, 1);
    plan(&f, 90, 1, 250);
    expect(&f, "1");
}

/* A late free leaves the segment cached when the request has looked, collected and released
 * already.
 */
TEST(what_the_retry_waited_for_is_no_oversize_segment_before)
{
    fixture f;
    open_fixture(&f);
    f.settings.max_split_bytes = 50 * GMD_MIB;
    cache(&f, 0, 60, 1);
    note(&f, GMD_ACTION_SEGMENT_ALLOC, 1, 90, 1);
    note(&f, GMD_ACTION_ALLOC, 1, 90, 1);
    const gmd_snapshot_event late = {.action = GMD_ACTION_FREE_COMPLETED, .address = AT(1)};
    assert_true(recorded_cache_note(&f.cache, &late, true));
    f.reserved += 90 * GMD_MIB;
    plan(&f, 80, 1, 151);
    assert_true(f.plan.is_retry); /* not just the one of 90 MiB, which would have been enough */
    expect(&f, "01");
}

/* --- sizes under settings ------------------------------------------------------------------ */

TEST(requests_are_rounded_as_the_settings_say)
{
    gmd_snapshot snapshot = {.settings = {.roundup_divisions = {4, 0}}};
    gmd_recorded_settings s = gmd_recorded_settings_of(&snapshot);
    assert_int_equal(gmd_recorded_block_size(&s, GMD_MIB + 1), GMD_MIB / 4 * 5);
    assert_int_equal(gmd_recorded_block_size(&s, 5 * GMD_MIB + 1), 5 * GMD_MIB + 512);
}

TEST(the_string_of_settings_tells_what_the_values_do_not)
{
    char conf[] = "large_segment_size_mb:64, max_split_size_mb:40,garbage_collection_threshold:0.6";
    gmd_snapshot snapshot = {.conf = conf};
    gmd_recorded_settings s = gmd_recorded_settings_of(&snapshot);
    assert_int_equal(gmd_recorded_segment_size(&s, 5 * GMD_MIB), 64 * GMD_MIB);
    assert_int_equal(s.max_split_bytes, 40 * GMD_MIB);
    assert_true(s.gc_threshold > 0.59 && s.gc_threshold < 0.61);
}

TEST(an_oversize_segment_serves_no_request_below_that_size)
{
    char conf[] = "max_split_size_mb:40";
    gmd_snapshot snapshot = {.conf = conf};
    gmd_recorded_settings s = gmd_recorded_settings_of(&snapshot);
    assert_false(gmd_recorded_serves(&s, 50 * GMD_MIB, 30 * GMD_MIB));
    assert_true(gmd_recorded_serves(&s, 50 * GMD_MIB, 45 * GMD_MIB));
    assert_false(gmd_recorded_serves(&s, 65 * GMD_MIB, 45 * GMD_MIB)); /* wastes 20 MiB */
}
