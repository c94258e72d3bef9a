/* The requests behind a snapshot's events: what is inferred, and what is refused as contradictory.
 */
#include "gmd_history.h"
#include "gmd_size.h"
#include "gmd_test.h"

#include <string.h>

#define SEGMENT (20 * GMD_MIB)
#define AT(n)   (((uint64_t)1 << 40) + (uint64_t)(n)*SEGMENT)
/* Each on a stream of its own, so that no cached segment could have served another's request. */
#define EVENT(kind, n, bytes)                                                                      \
    {                                                                                              \
        .action = GMD_ACTION_##kind, .address = AT(n), .size = (bytes), .stream = (n)              \
    }
#define ALLOC(n)     EVENT(ALLOC, n, 5 * GMD_MIB)
#define REQUESTED(n) EVENT(FREE_REQUESTED, n, 5 * GMD_MIB)
#define COMPLETED(n) EVENT(FREE_COMPLETED, n, 5 * GMD_MIB)
#define MADE(n)      EVENT(SEGMENT_ALLOC, n, SEGMENT)
#define GIVEN(n)     EVENT(SEGMENT_FREE, n, SEGMENT)
#define OOM                                                                                        \
    {                                                                                              \
        .action = GMD_ACTION_OOM, .size = 5 * GMD_MIB, .stream = 99                                \
    }

static gmd_status build(gmd_history *history, gmd_snapshot_event *events, size_t count,
                        uint64_t limit, uint64_t retries, gmd_error *error)
{
    gmd_snapshot snapshot = {
        .events = events, .event_count = count, .device_count = 1, .has_events = true};
    for (size_t i = 0; i < count; i++) {
        snapshot.device_count = events[i].device ? 2 : snapshot.device_count;
    }
    const gmd_history_hints hints = {.limit_bytes = limit, .recorded_retries = retries};
    return gmd_history_build(history, &snapshot, &hints, "job", error);
}

#define BUILD(history, limit, ...) BUILD_KNOWING(history, limit, GMD_RETRIES_UNKNOWN, __VA_ARGS__)
#define BUILD_KNOWING(history, limit, retries, ...)                                                \
    do {                                                                                           \
        gmd_snapshot_event events_[] = {__VA_ARGS__};                                              \
        gmd_error error_ = {""};                                                                   \
        if (build(history, events_, sizeof events_ / sizeof *events_, limit, retries, &error_) !=  \
            GMD_OK) {                                                                              \
            fail_msg("%s", error_.text);                                                           \
        }                                                                                          \
    } while (0)

#define REFUSE(part, ...)                                                                          \
    do {                                                                                           \
        gmd_snapshot_event events_[] = {__VA_ARGS__};                                              \
        gmd_history history_;                                                                      \
        gmd_error error_ = {""};                                                                   \
        assert_int_equal(build(&history_, events_, sizeof events_ / sizeof *events_, 0,            \
                               GMD_RETRIES_UNKNOWN, &error_),                                      \
                         GMD_BAD_INPUT);                                                           \
        if (!strstr(error_.text, part)) {                                                          \
            fail_msg("'%s' does not contain '%s'", error_.text, part);                             \
        }                                                                                          \
    } while (0)

/* What the snapshot says beside its events. */
static void build_with(gmd_history *history, gmd_snapshot_event *events, size_t count,
                       const char *conf, uint64_t limit, bool waits_again)
{
    gmd_snapshot snapshot = {.events = events,
                             .event_count = count,
                             .device_count = 1,
                             .conf = (char *)(uintptr_t)conf, /* it is only read */
                             .has_events = true};
    const gmd_history_hints hints = {
        .limit_bytes = limit, .recorded_retries = GMD_RETRIES_UNKNOWN, .waits_again = waits_again};
    gmd_error error = {""};
    if (gmd_history_build(history, &snapshot, &hints, "job", &error) != GMD_OK) {
        fail_msg("%s", error.text);
    }
}

#define BUILD_WITH(history, conf, waits_again, ...)                                                \
    do {                                                                                           \
        gmd_snapshot_event events_[] = {__VA_ARGS__};                                              \
        build_with(history, events_, sizeof events_ / sizeof *events_, conf, 0, waits_again);      \
    } while (0)
#define BUILD_UNDER(history, conf, limit, ...)                                                     \
    do {                                                                                           \
        gmd_snapshot_event events_[] = {__VA_ARGS__};                                              \
        build_with(history, events_, sizeof events_ / sizeof *events_, conf, limit, false);        \
    } while (0)

static void expect_ops(const gmd_history *h, const char *ops)
{
    static const char letters[] = {
        [GMD_OP_ALLOC] = 'a',   [GMD_OP_FREE] = 'f', [GMD_OP_EMPTY_CACHE] = 'e',
        [GMD_OP_ADVANCE] = '>', [GMD_OP_USE] = 'u',  [GMD_OP_RECORD] = 'r'};
    char got[64] = "";
    for (size_t i = 0; i < h->trace.count && i < sizeof got - 1; i++) {
        got[i] = letters[h->trace.requests[i].op];
    }
    assert_string_equal(got, ops);
}

/* What a test makes, freed after it. */
static gmd_history built;

static int free_built(void **state)
{
    (void)state;
    gmd_history_free(&built);
    return 0;
}

FIXTURE(history, NULL, free_built);

TEST_F(history, a_segment_belongs_to_the_allocation_after_it)
{
    BUILD(&built, 0, MADE(0), ALLOC(0), REQUESTED(0), COMPLETED(0), ALLOC(0));
    expect_ops(&built, "afa");
    assert_int_equal(built.recorded[0].call_count, 1);
    assert_int_equal(built.recorded[2].call_count, 0);
    assert_int_equal(built.recorded[0].address, AT(0));
}

TEST_F(history, freed_segments_without_an_allocation_are_an_empty_cache)
{
    BUILD(&built, 0, MADE(0), ALLOC(0), MADE(1), ALLOC(1), REQUESTED(0), COMPLETED(0), GIVEN(0),
          REQUESTED(1), COMPLETED(1));
    expect_ops(&built, "aafef");
    assert_int_equal(built.empty_cache_count, 1);
    assert_int_equal(built.recorded[3].call_count, 1);
    assert_int_equal(built.limit_bytes, 0);
}

TEST_F(history, freed_segments_at_the_limit_belong_to_the_retry)
{
    BUILD(&built, 2 * SEGMENT, MADE(0), ALLOC(0), MADE(1), ALLOC(1), REQUESTED(0), COMPLETED(0),
          GIVEN(0), MADE(2), ALLOC(2));
    expect_ops(&built, "aafa");
    assert_int_equal(built.recorded[3].call_count, 2);
    assert_false(built.limit_inferred);
}

TEST_F(history, a_segment_that_would_have_served_the_request_was_gone_before_it)
{
    BUILD(&built, 2 * SEGMENT, MADE(0), ALLOC(0), MADE(1), ALLOC(1), REQUESTED(0), COMPLETED(0),
          GIVEN(0), MADE(0), ALLOC(0));
    expect_ops(&built, "aafea");
}

TEST_F(history, with_room_below_the_limit_the_job_emptied_its_cache)
{
    BUILD(&built, 9 * SEGMENT, MADE(0), ALLOC(0), MADE(1), ALLOC(1), REQUESTED(0), COMPLETED(0),
          GIVEN(0), MADE(2), ALLOC(2));
    expect_ops(&built, "aafea");
}

TEST_F(history, a_limit_is_inferred_that_explains_the_retry)
{
    BUILD(&built, 0, MADE(0), ALLOC(0), MADE(1), ALLOC(1), REQUESTED(0), COMPLETED(0), GIVEN(0),
          MADE(2), ALLOC(2));
    expect_ops(&built, "aafa");
    assert_true(built.limit_inferred);
    assert_true(built.limit_bytes >= 2 * SEGMENT && built.limit_bytes < 3 * SEGMENT);
}

TEST_F(history, an_out_of_memory_bounds_the_limit_from_above)
{
    BUILD(&built, 0, MADE(0), ALLOC(0), MADE(1), ALLOC(1), OOM);
    expect_ops(&built, "aaa");
    assert_true(built.recorded[2].is_oom);
    assert_int_equal(built.oom_count, 1);
    assert_true(built.limit_bytes >= 2 * SEGMENT && built.limit_bytes < 3 * SEGMENT);
}

TEST_F(history, a_refused_block_may_be_given_back_where_a_replay_has_it)
{
    gmd_snapshot_event events[] = {OOM, MADE(0), ALLOC(0)};
    gmd_snapshot snapshot = {.events = events, .event_count = 3, .device_count = 1};
    const gmd_history_hints hints = {.recorded_retries = GMD_RETRIES_UNKNOWN,
                                     .frees_refused = true};
    gmd_error error = {""};
    assert_int_equal(gmd_history_build(&built, &snapshot, &hints, "job", &error), GMD_OK);
    expect_ops(&built, "afa");
    assert_int_equal(built.trace.requests[1].block, built.trace.requests[0].block);
    assert_int_equal(built.recorded[2].call_count, 1);
}

TEST(a_limit_that_changed_is_told)
{
    gmd_history changed, steady;
    BUILD(&changed, 0, MADE(0), ALLOC(0), MADE(1), ALLOC(1), REQUESTED(0), COMPLETED(0), GIVEN(0),
          OOM);
    BUILD(&steady, 0, MADE(0), ALLOC(0), MADE(1), ALLOC(1), OOM);
    assert_true(changed.limit_is_contradicted);
    assert_false(steady.limit_is_contradicted);
    gmd_history_free(&changed);
    gmd_history_free(&steady);
}

TEST_F(history, freed_segments_before_an_out_of_memory_belong_to_it)
{
    BUILD(&built, 0, MADE(0), ALLOC(0), REQUESTED(0), COMPLETED(0), GIVEN(0), OOM);
    expect_ops(&built, "afa");
    assert_int_equal(built.recorded[2].call_count, 1);
}

/* One run that a limit could explain, among five that none explains. */
#define MANY_OWN_RUNS                                                                              \
    MADE(0), ALLOC(0), REQUESTED(0), COMPLETED(0), GIVEN(0), MADE(0), ALLOC(0), REQUESTED(0),      \
        COMPLETED(0), GIVEN(0), MADE(0), ALLOC(0), REQUESTED(0), COMPLETED(0), GIVEN(0), MADE(0),  \
        ALLOC(0), REQUESTED(0), COMPLETED(0), GIVEN(0), MADE(0), ALLOC(0), REQUESTED(0),           \
        COMPLETED(0), GIVEN(0), MADE(0), ALLOC(0), MADE(1), ALLOC(1), REQUESTED(0), COMPLETED(0),  \
        GIVEN(0), MADE(2), ALLOC(2)

TEST(the_recorders_count_of_retries_decides)
{
    gmd_history one, none;
    BUILD_KNOWING(&one, 0, 1, MANY_OWN_RUNS);
    BUILD_KNOWING(&none, 0, 0, MANY_OWN_RUNS);
    assert_int_equal(one.empty_cache_count + 1, none.empty_cache_count);
    assert_true(one.limit_bytes >= 2 * SEGMENT && one.limit_bytes < 3 * SEGMENT);
    assert_int_equal(none.limit_bytes, 0);
    gmd_history_free(&one);
    gmd_history_free(&none);
}

TEST_F(history, without_that_count_the_proportions_decide)
{
    BUILD(&built, 0, MANY_OWN_RUNS);
    assert_int_equal(built.limit_bytes, 0);
}

static gmd_snapshot_event on_device(gmd_snapshot_event e, uint8_t device)
{
    e.device = device;
    return e;
}

TEST_F(history, events_of_two_devices_may_interleave)
{
    const gmd_snapshot_event plain[] = {MADE(0), ALLOC(0), REQUESTED(0), COMPLETED(0), GIVEN(0),
                                        MADE(1), ALLOC(1), REQUESTED(1), COMPLETED(1), GIVEN(1)};
    const int order[] = {0, 5, 6, 1, 2, 7, 3, 8, 4, 9}; /* 0 to 4 on device 0, the others on 1 */
    gmd_snapshot_event events[10];
    for (int i = 0; i < 10; i++) {
        events[i] = on_device(plain[order[i]], order[i] >= 5);
    }
    gmd_error error = {""};
    assert_int_equal(build(&built, events, 10, 0, GMD_RETRIES_UNKNOWN, &error), GMD_OK);
    expect_ops(&built, "aaffe");
    assert_int_equal(built.recorded[0].call_count, 1);
    assert_int_equal(built.recorded[1].call_count, 1);
    assert_int_equal(built.recorded[4].call_count, 2); /* one empty_cache() for both devices */
    assert_int_equal(built.deferred_frees, 0);
}

/* Device 1 keeps what it has cached: an empty_cache() would not have left it. */
TEST_F(history, what_other_devices_keep_tells_a_retry)
{
    gmd_snapshot_event events[] = {MADE(5),  ALLOC(5), REQUESTED(5), COMPLETED(5), MADE(0),
                                   ALLOC(0), MADE(1),  ALLOC(1),     REQUESTED(0), COMPLETED(0),
                                   GIVEN(0), MADE(2),  ALLOC(2)};
    for (int i = 0; i < 4; i++) {
        events[i].device = 1;
    }
    gmd_snapshot snapshot = {.events = events,
                             .event_count = sizeof events / sizeof *events,
                             .device_count = 2,
                             .has_events = true};
    const gmd_history_hints hints = {.limit_bytes = 2 * SEGMENT, .recorded_retries = 0};
    gmd_error error = {""};
    assert_int_equal(gmd_history_build(&built, &snapshot, &hints, "job", &error), GMD_OK);
    assert_int_equal(built.empty_cache_count, 0);
}

TEST_F(history, streams_are_numbered_by_their_handles)
{
    gmd_snapshot_event events[] = {MADE(0), ALLOC(0), MADE(1), ALLOC(1), MADE(2), ALLOC(2)};
    const uint64_t handles[] = {900, 900, 300, 300, 0, 0};
    for (int i = 0; i < 6; i++) {
        events[i].stream = handles[i];
    }
    gmd_error error = {""};
    assert_int_equal(build(&built, events, 6, 0, GMD_RETRIES_UNKNOWN, &error), GMD_OK);
    assert_int_equal(built.trace.requests[0].stream, 2);
    assert_int_equal(built.trace.requests[1].stream, 1);
    assert_int_equal(built.trace.requests[2].stream, 0);
    assert_int_equal(built.trace.streams.count, 3);
}

TEST_F(history, a_free_that_completes_later_is_counted_with_its_place)
{
    BUILD(&built, 0, MADE(0), ALLOC(0), MADE(1), ALLOC(1), REQUESTED(0), REQUESTED(1), COMPLETED(1),
          COMPLETED(0));
    assert_int_equal(built.deferred_frees, 1);
    assert_int_equal(built.first_deferred, 2);
}

TEST_F(history, a_free_from_before_the_recording_is_left_out_and_counted)
{
    BUILD(&built, 0, REQUESTED(7), COMPLETED(7), MADE(0), ALLOC(0));
    expect_ops(&built, "a");
    assert_int_equal(built.orphan_frees, 1);
    assert_int_equal(built.first_orphan, 0);
}

TEST_F(history, a_recording_may_begin_between_the_two_events_of_a_free)
{
    BUILD(&built, 0, COMPLETED(7), MADE(0), ALLOC(0));
    expect_ops(&built, "a");
    assert_int_equal(built.orphan_frees, 1);
    assert_int_equal(built.first_orphan, 0);
}

TEST_F(history, a_free_from_before_the_recording_may_be_completed_among_later_ones)
{
    BUILD(&built, 0, MADE(0), ALLOC(0), REQUESTED(0), COMPLETED(7), COMPLETED(0));
    expect_ops(&built, "af");
    assert_int_equal(built.orphan_frees, 1);
    assert_int_equal(built.deferred_frees, 1);
}

TEST_F(history, frees_that_wait_again_leave_out_those_from_before_the_recording)
{
    BUILD_WITH(&built, "", true, COMPLETED(7), MADE(0), ALLOC(0), REQUESTED(0), COMPLETED(0));
    expect_ops(&built, "af");
    assert_int_equal(built.orphan_frees, 1);
}

TEST_F(history, a_segment_from_before_the_recording_is_counted)
{
    BUILD(&built, 0, MADE(0), ALLOC(0), GIVEN(7));
    assert_int_equal(built.orphan_segments, 1);
    assert_int_equal(built.first_orphan, 1);
}

TEST(contradictions_are_refused_with_event_and_request)
{
    gmd_snapshot_event other_size = REQUESTED(0), other_stream = ALLOC(0);
    other_size.size += 512;
    other_stream.stream = 5;
    gmd_snapshot_event other_segment = GIVEN(0);
    other_segment.size += 512;
    REFUSE("event 2 (request 1)", MADE(0), ALLOC(0), other_size);
    REFUSE("which was allocated with 20971520 B", MADE(0), ALLOC(0), other_segment);
    REFUSE("where a segment is already", MADE(0), ALLOC(0), MADE(0), ALLOC(1));
    REFUSE("event 2 (request 1): alloc at 0x10000000000, where a block is live", MADE(0), ALLOC(0),
           ALLOC(0));
    REFUSE("event 1 (request 0): the segment for it", MADE(0), other_stream);
    REFUSE("no alloc event follows", MADE(0), REQUESTED(0));
    REFUSE("no alloc event follows", MADE(0));
    REFUSE("without its free_requested", MADE(0), ALLOC(0), COMPLETED(0));
}

/* --- settings ---------------------------------------------------------------------------- */

#define GARBAGE_0                                                                                  \
    MADE(0), ALLOC(0), MADE(1), ALLOC(1), REQUESTED(0), COMPLETED(0), GIVEN(0), MADE(2), ALLOC(2)

TEST(garbage_is_collected_above_the_threshold_of_the_limit)
{
    gmd_history above, below;
    BUILD_UNDER(&above, "garbage_collection_threshold:0.3", 6 * SEGMENT, GARBAGE_0);
    BUILD_UNDER(&below, "garbage_collection_threshold:0.6", 6 * SEGMENT, GARBAGE_0);
    expect_ops(&above, "aafa");
    expect_ops(&below, "aafea");
    gmd_history_free(&above);
    gmd_history_free(&below);
}

TEST(a_collection_tells_how_high_the_limit_is_at_most)
{
    gmd_history h; /* 0 was given back and 1, as old, was not: no empty_cache() */
    BUILD_UNDER(&h, "garbage_collection_threshold:0.4", 0, MADE(0), ALLOC(0), MADE(1), ALLOC(1),
                MADE(2), ALLOC(2), REQUESTED(0), COMPLETED(0), REQUESTED(1), COMPLETED(1), GIVEN(0),
                MADE(3), ALLOC(3));
    assert_int_equal(h.empty_cache_count, 0);
    assert_true(h.limit_bytes >= 3 * SEGMENT && h.limit_bytes < 3 * SEGMENT / 4 * 10);
    gmd_history_free(&h);
}

TEST(the_operations_tell_a_retry_from_an_empty_cache)
{
    gmd_snapshot_event events[] = {GARBAGE_0};
    gmd_snapshot snapshot = {.events = events,
                             .event_count = sizeof events / sizeof *events,
                             .device_count = 1,
                             .has_events = true};
    gmd_truth_op ops[] = {{.kind = GMD_TRUTH_ALLOC, .address = AT(0)},
                          {.kind = GMD_TRUTH_ALLOC, .address = AT(1)},
                          {.kind = GMD_TRUTH_FREE},
                          {.kind = GMD_TRUTH_ALLOC, .address = AT(2)}};
    for (uint64_t retries = 0; retries < 2; retries++) {
        ops[3].retries = retries;
        const gmd_history_hints hints = {.limit_bytes = 2 * SEGMENT,
                                         .recorded_retries = GMD_RETRIES_UNKNOWN,
                                         .ops = ops,
                                         .op_count = 4};
        gmd_history h;
        gmd_error error = {""};
        assert_int_equal(gmd_history_build(&h, &snapshot, &hints, "job", &error), GMD_OK);
        expect_ops(&h, retries ? "aafa" : "aafea");
        gmd_history_free(&h);
    }
}

#define PAGES(kind, first, n)                                                                      \
    {                                                                                              \
        .action = GMD_ACTION_SEGMENT_##kind, .address = AT(first), .size = (n)*SEGMENT             \
    }
#define OF_PAGE(kind, n)                                                                           \
    {                                                                                              \
        .action = GMD_ACTION_##kind, .address = AT(n), .size = 5 * GMD_MIB                         \
    }
#define EXPANDABLE "expandable_segments:True"

/* Served from the cache after an empty_cache() it would be no request that gave pages back. */
TEST_F(history, a_retry_may_be_served_by_what_it_waited_for_with_no_new_page)
{
    BUILD_UNDER(&built, EXPANDABLE, 2 * SEGMENT, PAGES(MAP, 0, 1), OF_PAGE(ALLOC, 0),
                PAGES(MAP, 1, 1), OF_PAGE(ALLOC, 1), OF_PAGE(FREE_REQUESTED, 0),
                OF_PAGE(FREE_REQUESTED, 1), OF_PAGE(FREE_COMPLETED, 0), PAGES(UNMAP, 1, 1),
                OF_PAGE(ALLOC, 0));
    expect_ops(&built, "aaffa");
    assert_int_equal(built.recorded[4].call_count, 1);
}

/* A segment that is gone left its addresses to others. */
TEST_F(history, reservations_are_as_near_as_two_of_the_same_time)
{
    BUILD_WITH(&built, EXPANDABLE, false, PAGES(MAP, 0, 1), OF_PAGE(ALLOC, 0), PAGES(MAP, 50, 1),
               OF_PAGE(ALLOC, 50), OF_PAGE(FREE_REQUESTED, 50), OF_PAGE(FREE_COMPLETED, 50),
               PAGES(UNMAP, 50, 1), PAGES(MAP, 52, 1), OF_PAGE(ALLOC, 52));
    assert_int_equal(built.nearest_reservations, 50 * SEGMENT);
}

/* --- a limit that was set as a fraction ------------------------------------------------------ */

/* Torch rounds the product of the fraction and the device's memory down: with a byte less than 5
 * segments as the limit, one segment is over the threshold of a fifth, and is collected. */
TEST_F(history, a_limit_that_was_rounded_down_by_a_byte_explains_a_collection)
{
    BUILD_UNDER(&built, "garbage_collection_threshold:0.2", 5 * SEGMENT, MADE(1), ALLOC(1),
                REQUESTED(1), COMPLETED(1), GIVEN(1), MADE(2), ALLOC(2));
    expect_ops(&built, "afa");
    assert_int_equal(built.limit_bytes, 5 * SEGMENT - 1);
}

TEST_F(history, a_limit_that_a_refused_request_would_have_met_was_a_byte_less)
{
    BUILD(&built, 2 * SEGMENT, MADE(1), ALLOC(1), OOM);
    assert_int_equal(built.limit_bytes, 2 * SEGMENT - 1);
}

TEST_F(history, a_limit_that_a_request_met_is_the_limit)
{
    BUILD_UNDER(&built, "garbage_collection_threshold:0.5", 2 * SEGMENT, MADE(1), ALLOC(1), MADE(2),
                ALLOC(2), REQUESTED(1), COMPLETED(1), GIVEN(1));
    expect_ops(&built, "aafe");
    assert_int_equal(built.limit_bytes, 2 * SEGMENT);
}

TEST_F(history, the_recorders_empty_cache_decides_whose_a_run_was)
{
    gmd_snapshot_event events[] = {MADE(1),  ALLOC(1), REQUESTED(1), COMPLETED(1),
                                   GIVEN(1), MADE(2),  ALLOC(2)};
    const gmd_snapshot snapshot = {.events = events,
                                   .event_count = sizeof events / sizeof *events,
                                   .device_count = 1,
                                   .has_events = true};
    const gmd_truth_op ops[] = {{.kind = GMD_TRUTH_ALLOC, .address = AT(1)},
                                {.kind = GMD_TRUTH_FREE},
                                {.kind = GMD_TRUTH_EMPTY_CACHE},
                                {.kind = GMD_TRUTH_ALLOC, .address = AT(2)}};
    const gmd_history_hints hints = {.limit_bytes = SEGMENT,
                                     .recorded_retries = GMD_RETRIES_UNKNOWN,
                                     .ops = ops,
                                     .op_count = sizeof ops / sizeof *ops};
    assert_int_equal(gmd_history_build(&built, &snapshot, &hints, "job", NULL), GMD_OK);
    expect_ops(&built, "afea");
}

/* --- expandable segments ------------------------------------------------------------------ */

TEST_F(history, pages_belong_to_the_allocation_after_them)
{
    BUILD_WITH(&built, EXPANDABLE, false, PAGES(MAP, 0, 1), PAGES(MAP, 1, 2), OF_PAGE(ALLOC, 0));
    expect_ops(&built, "a");
    assert_int_equal(built.recorded[0].call_count, 2);
    assert_true(built.calls[1].is_mapping && !built.calls[1].is_free);
}

TEST_F(history, pages_unmapped_for_a_retry_belong_to_it)
{
    BUILD_WITH(&built, EXPANDABLE, false, PAGES(MAP, 0, 1), OF_PAGE(ALLOC, 0),
               OF_PAGE(FREE_REQUESTED, 0), OF_PAGE(FREE_COMPLETED, 0), PAGES(UNMAP, 0, 1),
               PAGES(MAP, 0, 1), OF_PAGE(ALLOC, 0));
    expect_ops(&built, "afa");
    assert_true(built.calls[built.recorded[2].first_call].is_free);
}

TEST_F(history, pages_unmapped_on_their_own_are_an_empty_cache)
{
    BUILD_WITH(&built, EXPANDABLE, false, PAGES(MAP, 0, 1), OF_PAGE(ALLOC, 0),
               OF_PAGE(FREE_REQUESTED, 0), OF_PAGE(FREE_COMPLETED, 0), PAGES(UNMAP, 0, 1));
    expect_ops(&built, "afe");
}

TEST_F(history, the_first_page_of_a_segment_tells_where_it_begins)
{
    BUILD_WITH(&built, EXPANDABLE, false, PAGES(MAP, 0, 1), OF_PAGE(ALLOC, 0), PAGES(MAP, 1, 1),
               OF_PAGE(ALLOC, 1), PAGES(MAP, 50, 1), OF_PAGE(ALLOC, 50));
    assert_true(built.calls[0].opens_segment);
    assert_false(built.calls[1].opens_segment);
    assert_true(built.calls[2].opens_segment);
}

TEST_F(history, a_segment_whose_last_page_is_unmapped_begins_anew)
{
    BUILD_WITH(&built, EXPANDABLE, false, PAGES(MAP, 0, 1), OF_PAGE(ALLOC, 0),
               OF_PAGE(FREE_REQUESTED, 0), OF_PAGE(FREE_COMPLETED, 0), PAGES(UNMAP, 0, 1),
               PAGES(MAP, 0, 1), OF_PAGE(ALLOC, 0));
    assert_true(built.calls[2].opens_segment);
}

/* --- frees that waited -------------------------------------------------------------------- */

TEST_F(history, a_free_that_waited_waits_again_until_the_allocation_that_completed_it)
{
    BUILD_WITH(&built, NULL, true, MADE(0), ALLOC(0), MADE(1), ALLOC(1), REQUESTED(0), MADE(2),
               ALLOC(2), COMPLETED(0), ALLOC(0));
    expect_ops(&built, "aaurfa>a");
    assert_int_equal(built.trace.requests[2].stream, built.trace.streams.count - 1);
    assert_int_equal(built.trace.requests[2].duration_ns, built.trace.requests[6].duration_ns);
    assert_int_equal(built.recorded[5].call_count, 1);
    assert_int_equal(built.recorded[6].call_count, 0);
}

TEST_F(history, frees_that_overtake_each_other_wait_for_different_streams)
{
    BUILD_WITH(&built, NULL, true, MADE(0), ALLOC(0), MADE(1), ALLOC(1), REQUESTED(0), REQUESTED(1),
               MADE(2), ALLOC(2), COMPLETED(1), ALLOC(1), COMPLETED(0), ALLOC(0));
    expect_ops(&built, "aaurfurfa>a>a");
    assert_int_not_equal(built.trace.requests[2].stream, built.trace.requests[5].stream);
}

TEST(a_wait_that_a_retry_ended_lasts_until_the_retry)
{
    gmd_history h; /* its completion comes with the segment that the refused request gave back */
    BUILD_WITH(&h, NULL, true, MADE(0), ALLOC(0), MADE(1), ALLOC(1), REQUESTED(1), REQUESTED(0),
               COMPLETED(1), COMPLETED(0), GIVEN(0), GIVEN(1), OOM);
    expect_ops(&h, "aaurfurfa"); /* the clock moves when the retry waits, not before */
    assert_true(h.trace.requests[2].duration_ns > 0);
    gmd_history_free(&h);
}

TEST_F(history, a_wait_that_nothing_else_ended_was_ended_by_an_empty_cache)
{
    BUILD_WITH(&built, NULL, true, MADE(0), ALLOC(0), MADE(1), ALLOC(1), REQUESTED(0), ALLOC(2),
               COMPLETED(0), REQUESTED(1), COMPLETED(1));
    expect_ops(&built, "aaurfaef");
}

/* Both events of a free come from one call, but for a wait: the time between them tells. */
TEST(a_free_that_the_next_request_waited_for_is_told_by_the_clock)
{
    gmd_snapshot_event waited = COMPLETED(0), prompt = COMPLETED(0);
    waited.time_us = 900;
    gmd_history slow, quick;
    BUILD_WITH(&slow, NULL, true, MADE(0), ALLOC(0), MADE(1), ALLOC(1), REQUESTED(1), ALLOC(3),
               COMPLETED(1), ALLOC(1), REQUESTED(0), waited, GIVEN(0), OOM);
    BUILD_WITH(&quick, NULL, true, MADE(0), ALLOC(0), MADE(1), ALLOC(1), REQUESTED(1), ALLOC(3),
               COMPLETED(1), ALLOC(1), REQUESTED(0), prompt, GIVEN(0), OOM);
    expect_ops(&slow, "aaurfa>aurfa");
    expect_ops(&quick, "aaurfa>afa");
    gmd_history_free(&slow);
    gmd_history_free(&quick);
}
