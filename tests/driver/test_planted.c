/* Each defect that is planted in a small allocator ends in the verdict that names it; without one,
 * and in the reference allocator, nothing is found. */
#include "../raised.h"
#include "gmd_driver.h"
#include "gmd_file.h"
#include "gmd_size.h"
#include "gmd_test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char workload_text[] = "gmd-trace 1\n"
                                    "alloc a 1000 s1\n"
                                    "alloc b 4096 s1\n"
                                    "alloc c 4096 s1\n"
                                    "use c s1 5us\n"
                                    "free a\n"
                                    "alloc d 1000 s2\n"
                                    "free c\n"
                                    "alloc e 4000 s1\n"
                                    "sync\n"
                                    "free b\n"
                                    "empty_cache\n";

static bool oracles_off;
static unsigned promised;
static const char *planted = GMD_TEST_PLANTED;

static gmd_outcome *run_text_with_cases(const char *allocator, const char *text,
                                        const char *case_directory)
{
    gmd_trace trace = {0};
    gmd_error error = {""};
    assert_int_equal(gmd_trace_parse(&trace, text, strlen(text), "test", &error), GMD_OK);
    gmd_run_options options = {
        .subject.allocator = allocator,
        .subject.lib_directory = GMD_TEST_LIB_DIR,
        .cases.directory = case_directory,
        .device.kind = GMD_DEVICE_SIM,
        .conditions.device_count =
            trace.conditions.device_count ? trace.conditions.device_count : 1,
        .conditions.capacity_bytes =
            trace.conditions.capacity_bytes ? trace.conditions.capacity_bytes : GMD_GIB,
        .conditions.schedule = trace.conditions.schedule,
        .conditions.conf = trace.conditions.conf,
        .subject.promises = promised,
        .judging.oracles_off = oracles_off,
        .process.call_budget_s = 1};
    gmd_workload workload = {
        .name = "planted", .kind = "trace", .trace = &trace, .body = gmd_play_trace};
    gmd_outcome *outcome = calloc(1, sizeof *outcome);
    gmd_status status = gmd_run_isolated(&options, &workload, outcome, &error);
    gmd_trace_free(&trace);
    if (status != GMD_OK) {
        fail_msg("%s", error.text);
    }
    return outcome;
}

static gmd_outcome *run_text(const char *allocator, const char *text)
{
    return run_text_with_cases(allocator, text, NULL);
}

/* The device has two pages more than what is live at most; work is pending until it is waited for.
 */
static const char tight_text[] = "gmd-trace 1\n"
                                 "devices 2\n"
                                 "capacity 16MiB\n"
                                 "schedule lazy\n"
                                 "alloc a 4MiB s1\n"
                                 "use a s1 5us\n"
                                 "free a\n"
                                 "alloc b 4MiB s2\n"
                                 "alloc c 8MiB s1\n"
                                 "free b\n"
                                 "alloc d 8MiB s1\n"
                                 "alloc e 8MiB s1\n"
                                 "alloc f 4MiB s1 device 1\n"
                                 "free d\n"
                                 "fraction 0.5\n"
                                 "free c\n"
                                 "empty_cache\n"
                                 "alloc g 6MiB s1\n"
                                 "alloc h 6MiB s1\n";

/* `kind`: "leak.events". */
static void expect_verdict_of(const char *text, const char *plant, const char *kind,
                              const char *message_part)
{
    setenv("GMD_PLANT", plant, 1);
    gmd_outcome *o = run_text(planted, text);
    unsetenv("GMD_PLANT");
    assert_int_equal(o->verdict, GMD_FAIL);
    assert_true(o->violation_count > 0);
    note_raised(&o->violations[0].identity);
    assert_string_equal(o->violations[0].identity.kind, kind);
    if (!strstr(o->violations[0].message, message_part)) {
        fail_msg("'%s' does not contain '%s'", o->violations[0].message, message_part);
    }
    free(o);
}

static void expect_verdict(const char *plant, const char *kind, const char *message_part)
{
    expect_verdict_of(workload_text, plant, kind, message_part);
}

TEST(a_correct_allocator_passes)
{
    gmd_outcome *o = run_text(GMD_TEST_PLANTED, workload_text);
    assert_string_equal(o->violation_count ? o->violations[0].message : "", "");
    assert_string_equal(o->error, "");
    assert_int_equal(o->verdict, GMD_PASS);
    assert_int_equal(o->requests, 11);
    for (uint32_t i = 0; i < o->oracle_count; i++) {
        bool is_blind = strstr("reference private_pool", o->oracles[i].name) != NULL;
        assert_int_equal(o->oracles[i].fate, is_blind ? GMD_ORACLE_SKIPPED : GMD_ORACLE_PASSED);
    }
    free(o);
}

TEST(the_reference_passes)
{
    gmd_outcome *o = run_text("reference", workload_text);
    assert_string_equal(o->violation_count ? o->violations[0].message : "", "");
    assert_string_equal(o->error, "");
    assert_int_equal(o->verdict, GMD_PASS);
    free(o);
}

#define PLANT_TEST(plant, oracle, kind, part)                                                      \
    TEST(planted_##plant##_is_found_by_##oracle)                                                   \
    {                                                                                              \
        expect_verdict(#plant, #oracle "." #kind, part);                                           \
    }

PLANT_TEST(overlap, overlap, shared, "overlaps the live block b of 4096 B at 0x")
PLANT_TEST(short, size, ends_early, "block c of 4096 B at 0x")
PLANT_TEST(misaligned, alignment, misaligned, "past a multiple of the promised 256 B")
PLANT_TEST(foreign, backing, no_memory, "handed out no memory there")
PLANT_TEST(leak, leak, allocations, "are left after everything was freed")
PLANT_TEST(leak_event, leak, events, "events are left")
PLANT_TEST(wrong_sum, accounting, out_of_order, "active_bytes")
PLANT_TEST(stale_peak, accounting, low_peak, "allocated_bytes_peak")

TEST(planted_split_free_is_found_by_snapshot)
{
    expect_verdict_of("gmd-trace 1\n"
                      "alloc a 1000 s1\n"
                      "free a\n",
                      "split_free", "snapshot.unmerged", "were not merged");
}

/* An allocator of another algorithm, which says that it is PyTorch's. */
TEST(a_claim_of_pytorchs_algorithm_is_held_against_the_reference)
{
    promised = GMD_PROMISE_PYTORCH;
    gmd_outcome *o = run_text(GMD_TEST_PLANTED, "gmd-trace 1\nalloc a 4096 s1\n");
    promised = 0;
    assert_int_equal(o->violation_count, 1);
    note_raised(&o->violations[0].identity);
    assert_string_equal(o->violations[0].identity.kind, "reference.differs");
    assert_non_null(strstr(o->violations[0].message,
                           "byte 0 of a device allocation of 4096 B, and byte 0 of a device "
                           "allocation of 2097152 B"));
    free(o);
}

static const char lose_text[] = "gmd-trace 1\n"
                                "capacity 1GiB\n"
                                "alloc a 10MiB s1\n"
                                "alloc b 3000 s2\n"
                                "free a\n";

TEST(planted_lose_is_found_by_leak)
{
    expect_verdict_of(lose_text, "lose", "leak.allocations", "are left after everything was freed");
}

TEST(without_an_empty_cache_it_is_found_by_progress)
{
    planted = GMD_TEST_PLANTED_KEEPING;
    expect_verdict_of(lose_text, "lose", "progress.not_reused", "freed blocks are not used again");
    planted = GMD_TEST_PLANTED;
}

/* The requests before and after the one that is refused at last are all made in each round. */
TEST(what_rounds_show_is_shown_at_the_end)
{
    setenv("GMD_PLANT", "lose", 1);
    gmd_outcome *o = run_text(GMD_TEST_PLANTED_KEEPING, lose_text);
    unsetenv("GMD_PLANT");
    assert_int_equal(o->violations[0].request, 3);
    free(o);
}

/* Device 1 loses memory in every round; device 0 refuses from some round on, and has lost none. */
TEST(rounds_judge_each_device_by_itself)
{
    planted = GMD_TEST_PLANTED_KEEPING;
    expect_verdict_of("gmd-trace 1\n"
                      "devices 2\n"
                      "capacity 1GiB\n"
                      "alloc a 10MiB s1\n"
                      "alloc b 3MiB s2 device 1\n"
                      "free a\n",
                      "lose_and_tire", "progress.not_reused",
                      "and then refused 'alloc b 3MiB s2 device 1'");
    planted = GMD_TEST_PLANTED;
}

/* A sanitizer's heap gives the same bytes in every process. */
TEST(planted_by_heap_is_found_by_determinism)
{
#if defined __SANITIZE_ADDRESS__ || defined __SANITIZE_THREAD__
    skip();
#endif
    expect_verdict("by_heap", "determinism.differs",
                   "two runs of the same requests on the same device gave");
}

PLANT_TEST(scribble, data, overwritten, "256 B of the block b of 4096 B at 0x")
PLANT_TEST(free_twice, misuse, figure_changed, "the second free of the block a of 1000 B at 0x")
PLANT_TEST(free_inside, misuse, figure_changed, ", inside of the live block b of 4096 B at 0x")
PLANT_TEST(free_foreign, misuse, passed_on, "was passed on: cudaFree(0x")
PLANT_TEST(free_another, misuse, memory_taken,
           "whose memory is another library's now, after request")

PLANT_TEST(no_stats, accounting, no_statistics, "failed after it had worked before")
PLANT_TEST(overwrite, progress, overwrote_gmd, "wrote over memory that is gmd's own")

static const char frees_text[] =
    "gmd-trace 1\n"
    "alloc a 1000 s1\nalloc b 1000 s1\nalloc c 1000 s1\nalloc d 1000 s1\n"
    "free a\nfree b\nfree c\nfree d\n";

TEST(planted_exit_at_null_is_found_by_misuse)
{
    expect_verdict_of(frees_text, "exit_at_null", "misuse.exit", "in the free of a null pointer");
}

TEST(planted_hang_at_null_is_found_by_misuse)
{
    expect_verdict_of(frees_text, "hang_at_null", "misuse.hang", "in the free of a null pointer");
}

TEST(planted_crash_by_heap_is_found_by_determinism)
{
#if defined __SANITIZE_ADDRESS__ || defined __SANITIZE_THREAD__
    skip();
#endif
    expect_verdict("crash_by_heap", "determinism.failed_again",
                   "passed, and the second ended with");
}

TEST(planted_crash_is_found_when_the_requests_are_made_again)
{
    expect_verdict_of("gmd-trace 1\nalloc a 1000 s1\nalloc b 1000 s1\n", "crash",
                      "progress.crash_in_repetition", "when the same requests were made again");
}

TEST(planted_free_null_is_found_by_misuse)
{
    expect_verdict_of("gmd-trace 1\n"
                      "alloc a 1000 s1\nalloc b 1000 s1\nalloc c 1000 s1\nalloc d 1000 s1\n"
                      "free a\nfree b\nfree c\nfree d\n",
                      "free_null", "misuse.crash",
                      "crashed with signal 6 (Aborted) in the free of a null pointer, at 0x0, made "
                      "on purpose after request 7");
}

PLANT_TEST(lost_tail, snapshot, short_segment, "do not tile their segment")
PLANT_TEST(lost_block, snapshot, live_block_missing,
           "is live, and gmd_walk shows a free block there")
PLANT_TEST(old_request, snapshot, wrong_size, "of which 1001 B were asked for")

TEST(a_correct_allocator_passes_on_a_tight_device)
{
    gmd_outcome *o = run_text(GMD_TEST_PLANTED, tight_text);
    assert_string_equal(o->violation_count ? o->violations[0].message : o->error, "");
    assert_int_equal(o->verdict, GMD_PASS);
    free(o);
    o = run_text("reference", tight_text);
    assert_string_equal(o->violation_count ? o->violations[0].message : o->error, "");
    free(o);
}

/* Refused twice, and asked again each time, in a child of fork. */
TEST(asking_again_leaves_the_run_as_it_would_be_without)
{
    gmd_outcome *asked = run_text("reference", tight_text);
    oracles_off = true;
    gmd_outcome *left_alone = run_text("reference", tight_text);
    oracles_off = false;
    assert_true(asked->stats.num_ooms >= 2);
    assert_memory_equal(&asked->stats, &left_alone->stats, sizeof asked->stats);
    assert_int_equal(asked->device_calls, left_alone->device_calls);
    free(asked);
    free(left_alone);
}

#define TIGHT_PLANT_TEST(plant, oracle, kind, part)                                                \
    TEST(planted_##plant##_is_found_by_##oracle)                                                   \
    {                                                                                              \
        expect_verdict_of(tight_text, #plant, #oracle "." #kind, part);                            \
    }

TIGHT_PLANT_TEST(spurious_oom, oom_retry, room_was_left, "the limit and the device leave 8MiB")

/* Nothing is left on the device: only asking again shows that the refusal is false. */
TEST(a_refusal_with_a_cached_block_that_fits_is_found_by_asking_again)
{
    expect_verdict_of("gmd-trace 1\n"
                      "capacity 16MiB\n"
                      "alloc a 8MiB s1\n"
                      "alloc b 8MiB s1\n"
                      "free a\n"
                      "alloc c 8MiB s1\n",
                      "spurious_oom", "oom_retry.served_at_once",
                      "made again at once, with nothing freed");
}

TIGHT_PLANT_TEST(keep_cache, oom_retry, served_when_emptied, "cache")
TIGHT_PLANT_TEST(any_stream, stream_order, reused_early,
                 "nothing makes stream 2 wait for the work that request 1")
TIGHT_PLANT_TEST(over_limit, peak_bound, reserved, "above the memory limit of 8MiB")
TIGHT_PLANT_TEST(double_free, api_misuse, forbidden_call, "cudaFree(0x")
TIGHT_PLANT_TEST(stale_error, device_state, last_error, "last CUDA error was 0 and is 2")
TIGHT_PLANT_TEST(wrong_device, device_state, current_device, "current device was 0 and is 1")
TIGHT_PLANT_TEST(other_error, progress, failed, "an odd failure")
PLANT_TEST(crash, progress, crash, "crashed with signal 11")
PLANT_TEST(exit, progress, exit, "ended the process with status 0")
PLANT_TEST(hang, progress, hang, "no answer within 1 s in request 2: alloc c 4096 s1")
PLANT_TEST(crash_init, progress, crash, "while the allocator was loaded and initialised")
PLANT_TEST(crash_exit, progress, crash, "while the process ended")

/* What only looks odd from outside must not be taken for a defect. */
static void expect_pass(const char *plant)
{
    setenv("GMD_PLANT", plant, 1);
    gmd_outcome *o = run_text(GMD_TEST_PLANTED, workload_text);
    unsetenv("GMD_PLANT");
    assert_string_equal(o->violation_count ? o->violations[0].message : "", "");
    assert_int_equal(o->verdict, GMD_PASS);
    free(o);
}

/* --- what gmd itself needs -------------------------------------------------------------------- */

TEST(a_device_that_is_lost_by_the_allocators_doing_is_found)
{
    expect_verdict_of("gmd-trace 1\nalloc a 4096 s1\nalloc b 4096 s1\n"
                      "free a\nuse b s1\nsync\n",
                      "give_back_live", "backing.device_lost",
                      "the allocator was last called in request 2");
}

TEST(a_stream_of_the_callers_that_is_destroyed_is_found)
{
    expect_verdict_of("gmd-trace 1\nalloc a 4096 s1\nalloc b 4096 s1\nfree a\nsync s1\n",
                      "destroy_stream", "progress.device_refuses",
                      "the device refuses a call of gmd's own, cudaStreamSynchronize");
}

TEST(memory_reserved_before_the_first_request_is_no_defect)
{
    expect_pass("reserve_early");
}

TEST(closed_descriptors_are_no_defect)
{
    expect_pass("close_descriptors");
}

TEST(a_helper_process_is_no_defect_and_does_not_survive)
{
    expect_pass("leave_helper");
}

TEST(every_operation_looks_at_its_own_device)
{
    gmd_outcome *o = run_text("reference", "gmd-trace 1\n"
                                           "devices 2\n"
                                           "alloc a 1000 s1\n"
                                           "alloc b 2000 s1 device 1\n"
                                           "alloc c 3000 s1 device 1\n"
                                           "use a s1\n"
                                           "use b s2\n"
                                           "record c s2\n"
                                           "record a s2\n"
                                           "sync\n"
                                           "free c\n"
                                           "use a s2\n"
                                           "empty_cache\n");
    assert_string_equal(o->violation_count ? o->violations[0].message : o->error, "");
    assert_int_equal(o->verdict, GMD_PASS);
    free(o);
}

/* The block's own stream is gone: what its namesake works on is the caller's to order. */
TEST(work_on_the_namesake_of_a_blocks_stream_is_waited_for_before_the_free)
{
    gmd_outcome *o = run_text("reference", "gmd-trace 1\n"
                                           "capacity 16MiB\n"
                                           "conf expandable_segments:True\n"
                                           "alloc a 1 s1\n"
                                           "destroy s1\n"
                                           "use a s1 10us\n"
                                           "free a\n"
                                           "empty_cache\n");
    assert_string_equal(o->violation_count ? o->violations[0].message : o->error, "");
    free(o);
}

TEST(a_destroyed_stream_is_made_anew_by_its_next_use)
{
    gmd_outcome *o = run_text("reference", "gmd-trace 1\n"
                                           "devices 2\n"
                                           "schedule lazy\n"
                                           "alloc a 1000 s1\n"
                                           "use a s2 100us\n"
                                           "destroy s2\n"
                                           "destroy s2\n"
                                           "use a s2\n"
                                           "destroy s1\n"
                                           "free a\n"
                                           "device 1\n"
                                           "destroy s3 device 1\n"
                                           "alloc b 1000 s3 device 1\n");
    assert_string_equal(o->violation_count ? o->violations[0].message : o->error, "");
    assert_int_equal(o->verdict, GMD_PASS);
    free(o);
}

TEST(a_budget_is_the_devices_end_until_it_is_lifted)
{
    gmd_outcome *o = run_text("reference", "gmd-trace 1\n"
                                           "capacity 64MiB\n"
                                           "budget 24MiB\n"
                                           "expect alloc a 5MiB s1\n"
                                           "expect oom b 16MiB s1\n"
                                           "budget none\n"
                                           "expect alloc b 16MiB s1\n");
    assert_string_equal(o->violation_count ? o->violations[0].message : o->error, "");
    free(o);
}

/* The retry is served on the right device; the allocation that failed was made on none. */
TEST(a_device_that_cannot_be_made_current_gets_no_allocation)
{
    gmd_outcome *o = run_text("reference", "gmd-trace 1\n"
                                           "devices 2\n"
                                           "alloc s 512 s1 device 1\n"
                                           "fault cudaSetDevice 1 2\n"
                                           "expect alloc a 30MiB s1 device 1\n"
                                           "expect alloc b 30MiB s1 device 1\n");
    assert_string_equal(o->violation_count ? o->violations[0].message : o->error, "");
    free(o);
}

TEST(a_failed_run_leaves_a_case_that_replays_it)
{
    char directory[] = "gmd-test-cases-XXXXXX";
    assert_non_null(mkdtemp(directory));
    setenv("GMD_PLANT", "overlap", 1);
    gmd_outcome *first = run_text_with_cases(GMD_TEST_PLANTED, workload_text, directory);
    uint8_t *text = NULL;
    size_t size = 0;
    gmd_error error = {""};
    assert_int_equal(gmd_file_read(first->violations[0].case_path, &text, &size, &error), GMD_OK);
    gmd_outcome *again = run_text(GMD_TEST_PLANTED, (const char *)text);
    unsetenv("GMD_PLANT");
    assert_string_equal(again->violations[0].oracle, "overlap");
    assert_int_equal(again->violations[0].request, first->violations[0].request);
    assert_int_equal(unlink(first->violations[0].case_path), 0);
    assert_int_equal(rmdir(directory), 0);
    free(text);
    free(first);
    free(again);
}

TEST(what_an_allocator_says_is_one_line_without_controls)
{
    expect_verdict("forged_lines", "progress.failed",
                   "want of memory: odd alloc forged 1 s1  [2J 1m  end");
}

TEST(what_an_allocator_says_adds_no_request_to_the_case)
{
    char directory[] = "/tmp/gmd-caseXXXXXX";
    assert_non_null(mkdtemp(directory));
    setenv("GMD_PLANT", "forged_lines", 1);
    gmd_outcome *o = run_text_with_cases(GMD_TEST_PLANTED, workload_text, directory);
    unsetenv("GMD_PLANT");
    gmd_trace written = {0};
    gmd_error error = {""};
    assert_int_equal(gmd_trace_read(&written, o->violations[0].case_path, &error), GMD_OK);
    assert_int_equal(written.count, o->violations[0].request + 1);
    assert_int_equal(unlink(o->violations[0].case_path), 0);
    assert_int_equal(rmdir(directory), 0);
    gmd_trace_free(&written);
    free(o);
}

TEST(an_allocator_without_optional_functions_has_its_oracles_skipped_by_name)
{
    gmd_outcome *o = run_text(GMD_TEST_BARE, workload_text);
    assert_string_equal(o->error, "");
    assert_int_equal(o->verdict, GMD_PASS);
    for (uint32_t i = 0; i < o->oracle_count; i++) {
        bool is_blind = strstr("accounting leak snapshot misuse determinism reference private_pool",
                               o->oracles[i].name) != NULL;
        assert_int_equal(o->oracles[i].fate, is_blind ? GMD_ORACLE_SKIPPED : GMD_ORACLE_PASSED);
        assert_int_equal(o->oracles[i].reason[0] != '\0', is_blind);
    }
    free(o);
}
