/* Whose doing a run of freed segments was: the rules of docs/replay.md one by one, and what the
 * model of the recorded cache says that a request gives back. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "free_runs.h"
#include "gmd_size.h"
#include "recorded_cache.h"

#include <stdlib.h>

/* --- the rules ---------------------------------------------------------------------------- */

/* A run that is all that was cached. */
#define BEFORE(what, ...)                                                                          \
    (&(run_facts){.follower = FOLLOWED_BY_##what, .is_all = true, __VA_ARGS__})
#define RUN(...)     BEFORE(NEW_MEMORY, __VA_ARGS__)
#define REFUSED(...) BEFORE(REFUSAL, __VA_ARGS__)

static void what_is_given_back_between_pages_is_the_requests(void **state)
{
    (void)state;
    assert_int_equal(run_judge(RUN(.is_between_pages = true)), RUN_OF_REQUEST);
}

static void with_no_request_after_it_the_job_emptied_its_cache(void **state)
{
    (void)state;
    run_facts alone = {.follower = FOLLOWED_BY_NOTHING};
    assert_int_equal(run_judge(&alone), RUN_EMPTY_CACHE);
}

static void an_empty_cache_goes_on_with_the_next_device(void **state)
{
    (void)state;
    assert_int_equal(run_judge(RUN(.continues = true, .is_planned = true, .plan_has_retry = true)),
                     RUN_EMPTY_CACHE);
}

static void a_refused_request_gave_its_cache_back(void **state)
{
    (void)state;
    assert_int_equal(run_judge(REFUSED(.knows_limit = false)), RUN_OF_REQUEST);
}

static void unless_it_would_have_done_so_in_another_order(void **state)
{
    (void)state;
    assert_int_equal(run_judge(REFUSED(.knows_limit = true)), RUN_EMPTY_CACHE);
}

static void a_segment_that_would_have_served_was_gone_before(void **state)
{
    (void)state;
    assert_int_equal(
        run_judge(RUN(.would_have_served = true, .is_planned = true, .plan_has_retry = true)),
        RUN_EMPTY_CACHE);
}

static void a_part_of_the_cache_is_the_requests(void **state)
{
    (void)state;
    run_facts part = {.follower = FOLLOWED_BY_NEW_MEMORY};
    assert_int_equal(run_judge(&part), RUN_OF_REQUEST);
}

static void a_count_of_retries_that_rose_tells_a_retry(void **state)
{
    (void)state;
    assert_int_equal(run_judge(RUN(.knows_retries = true, .has_retried = true)), RUN_OF_REQUEST);
}

static void a_count_of_retries_that_did_not_rise_tells_an_empty_cache(void **state)
{
    (void)state;
    assert_int_equal(
        run_judge(RUN(.knows_retries = true, .is_planned = true, .plan_has_retry = true)),
        RUN_EMPTY_CACHE);
}

static void or_a_collection_which_is_no_retry(void **state)
{
    (void)state;
    assert_int_equal(run_judge(RUN(.knows_retries = true, .is_planned = true)), RUN_OF_REQUEST);
}

static void what_the_request_would_not_have_given_back_is_an_empty_cache(void **state)
{
    (void)state;
    assert_int_equal(run_judge(RUN(.knows_limit = true)), RUN_EMPTY_CACHE);
}

static void what_it_would_have_given_back_without_a_retry_is_its_own(void **state)
{
    (void)state;
    assert_int_equal(run_judge(RUN(.knows_limit = true, .is_planned = true)), RUN_OF_REQUEST);
}

static void a_retry_and_an_empty_cache_can_look_the_same(void **state)
{
    (void)state;
    assert_int_equal(
        run_judge(RUN(.knows_limit = true, .is_planned = true, .plan_has_retry = true)),
        RUN_EITHER);
}

/* --- the model of the cache ---------------------------------------------------------------- */

#define AT(n) (((uint64_t)1 << 40) + (uint64_t)(n)*GMD_GIB)

typedef struct fixture {
    recorded_settings settings;
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
    assert_true(
        recorded_cache_plan(&f->cache, &request, f->reserved, limit_mib * GMD_MIB, true, &f->plan));
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

static void within_the_limit_nothing_is_given_back(void **state)
{
    (void)state;
    fixture f;
    open_fixture(&f);
    cache(&f, 0, 40, 1);
    plan(&f, 60, 1, 100);
    assert_false(f.plan.is_retry);
    expect(&f, "");
}

static void at_the_limit_the_whole_cache_is_given_back_in_the_pools_order(void **state)
{
    (void)state;
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

static void a_segment_with_a_block_is_not_given_back(void **state)
{
    (void)state;
    fixture f;
    open_fixture(&f);
    cache(&f, 0, 40, 1);
    cache(&f, 1, 40, 1);
    note(&f, GMD_ACTION_ALLOC, 0, 10, 1);
    plan(&f, 60, 1, 100);
    expect(&f, "1");
}

static void of_the_garbage_what_has_been_cached_long_is_collected(void **state)
{
    (void)state;
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

static void small_segments_are_no_garbage(void **state)
{
    (void)state;
    fixture f;
    open_fixture(&f);
    f.settings.gc_threshold = 0.1;
    cache(&f, 0, 1, 1);
    plan(&f, 2, 1, 1000);
    expect(&f, "");
}

static void a_collection_that_is_not_enough_is_followed_by_the_rest(void **state)
{
    (void)state;
    fixture f;
    open_fixture(&f);
    f.settings.gc_threshold = 0.9;
    cache(&f, 0, 40, 2);
    cache(&f, 1, 40, 1);
    plan(&f, 80, 3, 85);
    assert_true(f.plan.is_retry);
    expect(&f, "01");
}

static void the_smallest_oversize_segment_that_is_enough_is_released(void **state)
{
    (void)state;
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

static void else_the_largest_ones_until_they_are(void **state)
{
    (void)state;
    fixture f;
    open_fixture(&f);
    f.settings.max_split_bytes = 50 * GMD_MIB;
    cache(&f, 0, 55, 1);
    cache(&f, 1, 60, 1);
    cache(&f, 2, 70, 1);
    plan(&f, 100, 1, 200);
    expect(&f, "21");
}

static void other_streams_oversize_segments_are_left(void **state)
{
    (void)state;
    fixture f;
    open_fixture(&f);
    f.settings.max_split_bytes = 50 * GMD_MIB;
    cache(&f, 0, 100, 2);
    cache(&f, 1, 100, 1);
    plan(&f, 90, 1, 250);
    expect(&f, "1");
}

/* --- sizes under settings ------------------------------------------------------------------ */

static void requests_are_rounded_as_the_settings_say(void **state)
{
    (void)state;
    gmd_snapshot snapshot = {.settings = {.roundup_divisions = {4, 0}}};
    recorded_settings s = recorded_settings_of(&snapshot);
    assert_int_equal(recorded_block_size(&s, 1200 * 1024), 1280 * 1024);
    assert_int_equal(recorded_block_size(&s, 5 * GMD_MIB + 1), 5 * GMD_MIB + 512);
}

static void the_string_of_settings_tells_what_the_values_do_not(void **state)
{
    (void)state;
    char conf[] = "large_segment_size_mb:64, max_split_size_mb:40,garbage_collection_threshold:0.6";
    gmd_snapshot snapshot = {.conf = conf};
    recorded_settings s = recorded_settings_of(&snapshot);
    assert_int_equal(recorded_segment_size(&s, 5 * GMD_MIB), 64 * GMD_MIB);
    assert_int_equal(s.max_split_bytes, 40 * GMD_MIB);
    assert_true(s.gc_threshold > 0.59 && s.gc_threshold < 0.61);
}

static void an_oversize_segment_serves_no_request_below_that_size(void **state)
{
    (void)state;
    char conf[] = "max_split_size_mb:40";
    gmd_snapshot snapshot = {.conf = conf};
    recorded_settings s = recorded_settings_of(&snapshot);
    assert_false(recorded_serves(&s, 50 * GMD_MIB, 30 * GMD_MIB));
    assert_true(recorded_serves(&s, 50 * GMD_MIB, 45 * GMD_MIB));
    assert_false(recorded_serves(&s, 65 * GMD_MIB, 45 * GMD_MIB)); /* wastes 20 MiB */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_given_back_between_pages_is_the_requests),
        cmocka_unit_test(with_no_request_after_it_the_job_emptied_its_cache),
        cmocka_unit_test(an_empty_cache_goes_on_with_the_next_device),
        cmocka_unit_test(a_refused_request_gave_its_cache_back),
        cmocka_unit_test(unless_it_would_have_done_so_in_another_order),
        cmocka_unit_test(a_segment_that_would_have_served_was_gone_before),
        cmocka_unit_test(a_part_of_the_cache_is_the_requests),
        cmocka_unit_test(a_count_of_retries_that_rose_tells_a_retry),
        cmocka_unit_test(a_count_of_retries_that_did_not_rise_tells_an_empty_cache),
        cmocka_unit_test(or_a_collection_which_is_no_retry),
        cmocka_unit_test(what_the_request_would_not_have_given_back_is_an_empty_cache),
        cmocka_unit_test(what_it_would_have_given_back_without_a_retry_is_its_own),
        cmocka_unit_test(a_retry_and_an_empty_cache_can_look_the_same),
        cmocka_unit_test(within_the_limit_nothing_is_given_back),
        cmocka_unit_test(at_the_limit_the_whole_cache_is_given_back_in_the_pools_order),
        cmocka_unit_test(a_segment_with_a_block_is_not_given_back),
        cmocka_unit_test(of_the_garbage_what_has_been_cached_long_is_collected),
        cmocka_unit_test(small_segments_are_no_garbage),
        cmocka_unit_test(a_collection_that_is_not_enough_is_followed_by_the_rest),
        cmocka_unit_test(the_smallest_oversize_segment_that_is_enough_is_released),
        cmocka_unit_test(else_the_largest_ones_until_they_are),
        cmocka_unit_test(other_streams_oversize_segments_are_left),
        cmocka_unit_test(requests_are_rounded_as_the_settings_say),
        cmocka_unit_test(the_string_of_settings_tells_what_the_values_do_not),
        cmocka_unit_test(an_oversize_segment_serves_no_request_below_that_size),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
