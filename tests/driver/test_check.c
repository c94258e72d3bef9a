/* replay --check notices each kind of difference, at the request where it shows. The history is a
 * recorded one; the differences are put into what was recorded, so that the allocator is right and
 * the recording is not. */
#include "gmd_check.h"
#include "gmd_driver.h"
#include "gmd_quirks.h"
#include "gmd_size.h"
#include "gmd_test.h"

#include <stdlib.h>
#include <string.h>

typedef struct recording {
    gmd_snapshot snapshot;
    gmd_history history;
    gmd_truth truth;
} recording;

static recording *open_recording(void)
{
    recording *r = calloc(1, sizeof *r);
    gmd_error error = {""};
    gmd_status status = gmd_snapshot_read(&r->snapshot, GMD_TEST_HISTORY ".pickle.gz", &error);
    if (status == GMD_OK) {
        status = gmd_truth_read_json(GMD_TEST_HISTORY ".json", &r->truth, &error);
    }
    if (status == GMD_OK) {
        const gmd_history_hints hints = {.recorded_retries = GMD_RETRIES_UNKNOWN};
        status = gmd_history_build(&r->history, &r->snapshot, &hints, "recording", &error);
    }
    if (status != GMD_OK) {
        fail_msg("%s", error.text);
    }
    return r;
}

static gmd_sim_recorded *placements_of(const gmd_history *h, size_t *count)
{
    gmd_sim_recorded *list = calloc(h->call_count + 1, sizeof *list);
    *count = 0;
    for (size_t i = 0; i < h->call_count; i++) {
        if (!h->calls[i].is_free) {
            list[(*count)++] = (gmd_sim_recorded){h->calls[i].address, h->calls[i].size, 0};
        }
    }
    return list;
}

/* Runs the check with segments placed at `placed`, and closes the recording. */
static gmd_outcome *check_of(const char *allocator, recording *r, gmd_sim_recorded *placed,
                             size_t count)
{
    gmd_check_input input = {.history = &r->history, .snapshot = &r->snapshot, .truth = &r->truth};
    gmd_run_options options = {.subject.allocator = allocator,
                               .subject.lib_directory = GMD_TEST_LIB_DIR,
                               .conditions.device_count = 1,
                               .conditions.capacity_bytes = 80 * GMD_GIB,
                               .process.call_budget_s = 20,
                               .device.placement = GMD_SIM_RECORDED,
                               .device.recorded = placed,
                               .device.recorded_count = count};
    gmd_workload workload = {.name = "recording",
                             .kind = "history",
                             .trace = &r->history.trace,
                             .body = gmd_check_history,
                             .context = &input};
    gmd_outcome *outcome = calloc(1, sizeof *outcome);
    gmd_error error = {""};
    if (gmd_run_isolated(&options, &workload, outcome, &error) != GMD_OK) {
        fail_msg("%s", error.text);
    }
    free(placed);
    gmd_truth_free(&r->truth);
    gmd_history_free(&r->history);
    gmd_snapshot_free(&r->snapshot);
    free(r);
    assert_string_equal(outcome->error, "");
    return outcome;
}

static gmd_outcome *check(recording *r, gmd_sim_recorded *placed, size_t count)
{
    return check_of("reference", r, placed, count);
}

static gmd_outcome *check_as_recorded(recording *r)
{
    size_t count;
    gmd_sim_recorded *placed = placements_of(&r->history, &count);
    return check(r, placed, count);
}

static void expect_difference(gmd_outcome *o, const char *what, uint64_t request)
{
    assert_int_equal(o->verdict, GMD_FAIL);
    assert_false(o->check.exact);
    assert_true(o->check.first_difference.present);
    assert_string_equal(o->check.first_difference.what, what);
    assert_int_equal(o->check.first_difference.request, request);
    free(o);
}

/* The index of the n-th allocation that was served with a new segment. */
static size_t request_with_segment(const gmd_history *h, int n)
{
    for (size_t i = 0;; i++) {
        if (h->recorded[i].call_count && n-- == 0) {
            return i;
        }
    }
}

TEST(the_recording_itself_is_exact)
{
    gmd_outcome *o = check_as_recorded(open_recording());
    assert_int_equal(o->verdict, GMD_PASS);
    assert_true(o->check.exact && o->check.end_state_checked && o->check.statistics_checked);
    assert_int_equal(o->check.matched, o->check.requests);
    assert_true(o->check.device_events > 0 && o->check.blocks_compared > 0 &&
                o->check.figures_compared > 0);
    free(o);
}

TEST(another_address_is_noticed)
{
    recording *r = open_recording();
    size_t i = request_with_segment(&r->history, 2);
    r->history.recorded[i].address += 512;
    expect_difference(check_as_recorded(r), "address", i);
}

TEST(an_out_of_memory_that_does_not_happen_is_noticed)
{
    recording *r = open_recording();
    size_t i = request_with_segment(&r->history, 1);
    r->history.recorded[i].is_oom = true;
    expect_difference(check_as_recorded(r), "oom", i);
}

TEST(another_segment_size_is_noticed)
{
    recording *r = open_recording();
    size_t count, i = request_with_segment(&r->history, 3);
    gmd_sim_recorded *placed = placements_of(&r->history, &count);
    r->history.calls[r->history.recorded[i].first_call].size += 2 * GMD_MIB;
    expect_difference(check(r, placed, count), "segment_alloc", i);
}

TEST(a_segment_that_was_not_recorded_is_noticed)
{
    recording *r = open_recording();
    size_t count, i = request_with_segment(&r->history, 3);
    gmd_sim_recorded *placed = placements_of(&r->history, &count);
    r->history.recorded[i].call_count = 0;
    expect_difference(check(r, placed, count), "segment_alloc", i);
}

TEST(a_segment_that_is_not_given_back_is_noticed)
{
    recording *r = open_recording();
    size_t count, i = request_with_segment(&r->history, 3);
    gmd_sim_recorded *placed = placements_of(&r->history, &count);
    r->history.calls[r->history.recorded[i].first_call].is_free = true;
    expect_difference(check(r, placed, count), "segment_free", i);
}

TEST(another_final_block_is_noticed_at_the_end)
{
    recording *r = open_recording();
    uint64_t end = r->history.trace.count;
    r->snapshot.blocks[0].requested_size ^= 1;
    expect_difference(check_as_recorded(r), "end_state", end);
}

TEST(sums_of_a_segment_that_are_not_its_blocks_are_noticed)
{
    recording *r = open_recording();
    uint64_t end = r->history.trace.count;
    r->snapshot.segments[1].active_size += 512;
    expect_difference(check_as_recorded(r), "end_state", end);
}

TEST(another_statistic_is_noticed_at_the_end)
{
    recording *r = open_recording();
    uint64_t end = r->history.trace.count;
    for (size_t i = 0; i < r->truth.stat_count; i++) {
        if (strcmp(r->truth.stats[i].name, "reserved_bytes.all.peak") == 0) {
            r->truth.stats[i].value += 512;
        }
    }
    expect_difference(check_as_recorded(r), "statistics", end);
}

TEST(a_phase_that_never_was_is_noticed_at_the_end)
{
    recording *r = open_recording();
    uint64_t end = r->history.trace.count;
    r->truth.phases[3].allocated += 1;
    expect_difference(check_as_recorded(r), "statistics", end);
}

TEST(what_cannot_be_judged_is_said_beforehand)
{
    recording *r = open_recording();
    gmd_error error = {""};
    r->history.deferred_frees = 3;
    r->history.first_deferred = 17;
    assert_int_equal(gmd_check_possible(&r->history, &r->snapshot, "job", &error), GMD_BAD_INPUT);
    assert_non_null(strstr(error.text, "3 frees waited for other streams"));
    assert_non_null(strstr(error.text, "request 17"));
    r->history.deferred_frees = 0;
    assert_int_equal(gmd_check_possible(&r->history, &r->snapshot, "job", &error), GMD_OK);
    free(check_as_recorded(r));
}

TEST(a_violation_that_ends_it_is_no_difference)
{
    recording *r = open_recording();
    r->history.limit_bytes = 0;
    size_t count;
    gmd_sim_recorded *placed = placements_of(&r->history, &count);
    setenv("GMD_PLANT", "misaligned", 1); /* in the third allocation */
    gmd_outcome *o = check_of(GMD_TEST_PLANTED, r, placed, count);
    unsetenv("GMD_PLANT");
    if (o->check.first_difference.present) { /* the planted one is no caching allocator */
        fail_msg("request %d: %s", (int)o->check.first_difference.request,
                 o->check.first_difference.got);
    }
    assert_true(o->check.is_cut_off);
    assert_int_equal(o->check.cut_off_at, o->violations[0].request);
    assert_int_equal(o->check.matched, o->check.cut_off_at);
    free(o);
}

/* --- verdicts on what the recorded version does --------------------------------------------- */

static int64_t times_mattered;

static int64_t count_quirk(const char *quirk)
{
    return strcmp(quirk, "spurious_oom") == 0 ? times_mattered : 0;
}

TEST(a_verdict_on_a_quirk_is_known_once_the_quirk_mattered)
{
    gmd_error error = {""};
    gmd_known_count_fn *count = NULL;
    gmd_known known = {.quirk_count = &count};
    assert_int_equal(gmd_quirks_mask(&known, GMD_QUIRKS_ALL, &error), GMD_OK);
    const gmd_identity refused = {.kind = "oom_retry.served_at_once"};
    const gmd_identity above = {
        .kind = "peak_bound.reserved", .parties = {{"bound", "limit"}}, .party_count = 1};
    assert_null(known_find(&known, NULL, &refused, "refused"));
    count = count_quirk;
    times_mattered = 0;
    assert_null(known_find(&known, NULL, &refused, "refused"));
    times_mattered = 1;
    assert_non_null(known_find(&known, NULL, &refused, "refused"));
    assert_null(known_find(&known, NULL, &above, "rose above the memory limit"));
    gmd_known_free(&known);
}
