/* The gate passes what is correct, whatever its design and however little it exports; it finds what
 * is not, says so once, and ends soon where nothing more is to be learnt. */
#include "gate_test.h"

static void passes(const char *allocator, const char *only)
{
    gmd_run_options run = run_options_for(allocator);
    gmd_gate_options options = {.run = &run, .device_max = 2, .is_quick = true, .only = only};
    gmd_gate_result r = run_gate(&options, NULL, NULL);
    for (size_t i = 0; i < r.part_count; i++) {
        bool needs_baseline = strcmp(r.parts[i].category, "correctness") != 0;
        assert_true(options.only || r.parts[i].was_run != needs_baseline);
    }
    expect_clean(&r);
}

TEST(the_reference_passes)
{
    passes("reference", ALL_OR_A_SCENARIO);
}

TEST(cuda_malloc_passes)
{
    passes("cudamalloc", ALL_OR_AN_ITEM);
}

TEST(cuda_malloc_async_passes)
{
    passes("cudamallocasync", ALL_OR_AN_ITEM);
}

/* It exports nothing but the two functions. */
TEST(a_black_box_that_pairs_its_blocks_passes)
{
    passes(GMD_TEST_MERGING ":my_malloc,my_free", ALL_OR_AN_ITEM);
}

/* What it holds grows for many rounds, and then no more. */
TEST(memory_that_is_given_back_late_passes)
{
    passes(GMD_TEST_DEFERRING, ALL_OR_AN_ITEM);
}

/* What a test makes, freed after it. */
static gmd_gate_result result;

static int free_result(void **state)
{
    (void)state;
    gmd_gate_result_free(&result);
    return 0;
}

FIXTURE(result, NULL, free_result);

/* The device is lost to the process by what the allocator gave back, and no call of gmd's own works
 * there any more: that is a finding, and the other cases are run. */
TEST_F(result, an_allocator_that_costs_the_device_is_found_and_the_gate_goes_on)
{
    gmd_run_options run = run_options_for(GMD_TEST_MERGING ":my_malloc,my_free");
    gmd_gate_options options = {
        .run = &run, .device_max = 2, .is_quick = true, .only = "random/streams, any completion"};
    result = run_gate(&options, "GMD_DEFECT", "merges_live");
    bool is_found = false;
    for (size_t i = 0; i < result.finding_count; i++) {
        is_found = is_found || strcmp(result.findings[i].cause, "backing.device_lost") == 0;
    }
    assert_true(is_found);
    assert_string_equal(result.parts[4].items[0].detail, ""); /* no round was refused */
    assert_string_equal(result.ended_early, "");
}

TEST_F(result, what_a_black_box_loses_is_found_by_rounds)
{
    gmd_run_options run = run_options_for(GMD_TEST_DEFERRING);
    gmd_gate_options options = {.run = &run, .is_quick = true, .only = "rounds"};
    result = run_gate(&options, "GMD_DEFECT", "lost");
    assert_true(result.finding_count >= 1);
    assert_string_equal(result.findings[0].violation.oracle, "progress");
    assert_non_null(strstr(result.findings[0].violation.message, "the same round again and again"));
    assert_true(result.findings[0].case_requests <= 4);
}

/* tests/faulty/planted_rounds.txt */
static void host_growth_is_found(const char *allocator, const char *defect, const char *function)
{
    gmd_run_options run = run_options_for(allocator);
    char path[500], expected[100];
    snprintf(path, sizeof path, "%s/%s.gmd", GMD_TEST_CASES, defect);
    snprintf(expected, sizeof expected, "leak.host_memory in=%s", function);
    gmd_gate_options options = {.run = &run, .is_quick = true, .rounds_file = path};
    result = run_gate(&options, "GMD_DEFECT", defect);
    assert_int_equal(result.finding_count, 1);
    assert_string_equal(result.findings[0].cause, expected);
    assert_string_equal(result.findings[0].unfinished, "");
}

TEST_F(result, what_is_kept_of_recorded_streams_is_found_by_rounds)
{
    host_growth_is_found(GMD_TEST_TIMED_SLABS, "notes_kept", "gmd_record_stream");
}

TEST_F(result, what_is_kept_of_segments_on_the_host_is_found_by_rounds)
{
    host_growth_is_found(GMD_TEST_TIMED_SLABS, "books_kept", "gmd_malloc");
}

/* It doubles now and then, and does not grow in each round. */
TEST_F(result, a_list_on_the_host_that_is_never_cut_is_found_by_rounds)
{
    host_growth_is_found(GMD_TEST_TIMED_SLABS, "log_grows", "gmd_free");
}

TEST_F(result, a_text_for_each_fence_that_is_never_freed_is_found_by_rounds)
{
    host_growth_is_found(GMD_TEST_RING_FENCES, "labels_kept", "gmd_free");
}

TEST_F(result, a_queue_on_the_host_that_is_never_moved_up_is_found_by_rounds)
{
    host_growth_is_found(GMD_TEST_TWO_LEVEL, "queues_grow", "gmd_free");
}

TEST_F(result, batches_on_the_host_that_are_never_freed_are_found_by_rounds)
{
    host_growth_is_found(GMD_TEST_MAGAZINES, "batches_kept", "gmd_free");
}

TEST_F(result, books_on_the_host_of_blocks_that_were_merged_are_found_by_rounds)
{
    host_growth_is_found(GMD_TEST_FRONTIERS, "books_lost", "gmd_malloc");
}

static void run_rounds_of_pools(const char *allocator, const char *defect, const char *file)
{
    gmd_run_options run = run_options_for(allocator);
    gmd_gate_options options = {.run = &run, .is_quick = true, .rounds_file = file};
    result = run_gate(&options, "GMD_DEFECT", defect);
    uint64_t requests = 0;
    for (size_t i = 0; i < result.part_count; i++) {
        requests += gmd_gate_part_requests(&result.parts[i]);
    }
    assert_true(requests > 1000);
}

TEST_F(result, pools_that_are_over_leave_nothing_on_the_host)
{
    run_rounds_of_pools("reference", "", GMD_TEST_TRACES "/pools_without_memory.gmd");
    assert_int_equal(result.finding_count, 0);
}

TEST_F(result, what_released_pools_leave_in_the_cache_is_no_growth)
{
    run_rounds_of_pools("reference", "", GMD_TEST_TRACES "/pools_released_full.gmd");
    assert_int_equal(result.finding_count, 0);
}

TEST_F(result, what_of_it_stays_when_the_cache_is_emptied_is_growth)
{
    run_rounds_of_pools(GMD_TEST_CACHING_POOL, "pytorch145168",
                        GMD_TEST_TRACES "/pools_released_full.gmd");
    assert_int_equal(result.finding_count, 1);
    assert_string_equal(result.findings[0].cause, "progress.growth held=memory");
}

static const char *note_of_first(const char *allocator, unsigned promises)
{
    gmd_run_options run = run_options_for(allocator);
    gmd_gate_options options = {.run = &run, .is_quick = true, .only = "first"};
    run.subject.promises = promises;
    result = run_gate(&options, NULL, NULL);
    return result.parts[0].items[0].detail;
}

TEST_F(result, who_defers_frees_is_told_which_promise_judges_how_long)
{
    assert_non_null(strstr(note_of_first(GMD_TEST_CACHING_POOL_UNPROMISED, 0), "--promise prompt"));
}

TEST_F(result, who_promises_prompt_frees_is_told_nothing)
{
    assert_string_equal(note_of_first(GMD_TEST_CACHING_POOL_UNPROMISED, GMD_PROMISE_PROMPT), "");
}

TEST_F(result, who_defers_no_free_is_told_nothing)
{
    assert_string_equal(note_of_first(GMD_TEST_TIMED_SLABS, 0), "");
}

TEST(the_same_seed_gives_the_same_findings_and_counts)
{
    gmd_run_options run = run_options_for(GMD_TEST_STREAM_POOL);
    gmd_gate_options options = {
        .run = &run, .device_max = 2, .is_quick = true, .only = RANDOM_OR_AN_ITEM};
    run.seed = 7;
    gmd_gate_result a = run_gate(&options, "GMD_DEFECT", "ort12913");
    gmd_gate_result b = run_gate(&options, "GMD_DEFECT", "ort12913");
    assert_true(a.finding_count > 0);
    assert_int_equal(a.finding_count, b.finding_count);
    for (size_t i = 0; i < a.finding_count; i++) {
        assert_string_equal(a.findings[i].cause, b.findings[i].cause);
        assert_int_equal(a.findings[i].hits, b.findings[i].hits);
    }
    gmd_gate_result_free(&a);
    gmd_gate_result_free(&b);
}

TEST_F(result, a_defect_is_found_once_and_known_ever_after)
{
    gmd_run_options run = run_options_for(GMD_TEST_PLANTED);
    gmd_gate_options options = {.run = &run, .is_quick = true, .only = "cases"};
    result = run_gate(&options, "GMD_PLANT", "misaligned");
    size_t count = 0;
    for (size_t i = 0; i < result.finding_count; i++) {
        count += strcmp(result.findings[i].violation.oracle, "alignment") == 0;
    }
    assert_int_equal(count, 1);
}

TEST(what_is_known_does_not_count)
{
    gmd_known known = {0};
    gmd_error error;
    assert_int_equal(known_add(&known, "leak.events", "list", &error), GMD_OK);
    gmd_run_options run = run_options_for(GMD_TEST_PLANTED);
    run.judging.known = &known;
    gmd_gate_options options = {
        .run = &run, .is_quick = true, .only = "scenarios/attention_scores leak=true"};
    gmd_gate_result r = run_gate(&options, "GMD_PLANT", "leak_event");
    expect_clean(&r);
    gmd_known_free(&known);
}

TEST_F(result, fail_fast_ends_with_the_first_finding)
{
    gmd_run_options run = run_options_for(GMD_TEST_PLANTED);
    gmd_gate_options options = {.run = &run, .is_quick = true, .fails_fast = true};
    result = run_gate(&options, "GMD_PLANT", "overlap");
    assert_int_equal(result.finding_count, 1);
    assert_string_equal(result.findings[0].violation.oracle, "overlap");
    assert_non_null(strstr(result.ended_early, "fail-fast"));
    assert_false(result.parts[result.part_count - 1].was_run);
}

TEST_F(result, a_crash_while_it_is_loaded_ends_the_gate_at_once)
{
    gmd_run_options run = run_options_for(GMD_TEST_PLANTED);
    gmd_gate_options options = {.run = &run};
    result = run_gate(&options, "GMD_PLANT", "crash_init");
    assert_int_equal(result.finding_count, 1);
    assert_string_equal(result.findings[0].violation.oracle, "progress");
    assert_non_null(strstr(result.ended_early, "first requests"));
}

TEST_F(result, an_allocator_that_hangs_ends_the_gate_soon)
{
    gmd_run_options run = run_options_for(GMD_TEST_PLANTED);
    run.process.call_budget_s = 0.5;
    gmd_gate_options options = {.run = &run};
    result = run_gate(&options, "GMD_PLANT", "hang");
    assert_true(result.finding_count > 0);
    assert_non_null(strstr(result.findings[0].violation.message, "no answer within"));
    assert_non_null(strstr(result.ended_early, "hangs again and again"));
}

static void expect_refused(const char *allocator, const char *only, const char *part)
{
    gmd_run_options run = run_options_for(allocator);
    gmd_gate_options options = {.run = &run, .only = only};
    gmd_gate_result r;
    gmd_error error = {""};
    assert_int_equal(gmd_gate_run(&options, &r, &error), GMD_BAD_INPUT);
    if (!strstr(error.text, part)) {
        fail_msg("'%s' does not say '%s'", error.text, part);
    }
    gmd_gate_result_free(&r);
}

TEST(what_cannot_be_loaded_is_bad_input)
{
    expect_refused("/nowhere/lib.so", NULL, "/nowhere/lib.so");
}

TEST(a_part_that_is_none_is_bad_input)
{
    expect_refused("cudamalloc", "sped",
                   "cases, scenarios, faults, random, exhaustive, rounds, memory, speed");
}

TEST(an_item_that_is_none_is_bad_input)
{
    expect_refused("cudamalloc", "cases/none", "--only cases/none: nothing was run");
}

TEST_F(result, an_interrupted_gate_is_no_pass)
{
    volatile sig_atomic_t is_interrupted = 1;
    gmd_run_options run = run_options_for("cudamalloc");
    gmd_gate_options options = {.run = &run, .is_quick = true, .is_interrupted = &is_interrupted};
    result = run_gate(&options, NULL, NULL);
    assert_string_equal(result.ended_early, "interrupted");
    assert_int_equal(gmd_gate_verdict(&result), GMD_UNFINISHED);
}

static void interrupt(void *context, const gmd_gate_progress *progress)
{
    volatile sig_atomic_t *is_interrupted = context;
    *is_interrupted = progress->runs > 0;
}

TEST_F(result, an_item_that_is_interrupted_was_not_judged)
{
    volatile sig_atomic_t is_interrupted = 0;
    gmd_run_options run = run_options_for("cudamalloc");
    gmd_gate_options options = {.run = &run,
                                .is_quick = true,
                                .only = "random",
                                .is_interrupted = &is_interrupted,
                                .progress = interrupt,
                                .context = (void *)&is_interrupted};
    result = run_gate(&options, NULL, NULL);
    const gmd_gate_part *random = &result.parts[4];
    const gmd_gate_item *last = &random->items[random->item_count - 1];
    assert_int_equal(last->fate, GMD_GATE_SKIPPED);
    assert_string_equal(last->detail, "interrupted before its end");
}

TEST_F(result, findings_of_an_interrupted_gate_are_there)
{
    volatile sig_atomic_t is_interrupted = 0;
    gmd_run_options run = run_options_for(GMD_TEST_REFUSING);
    gmd_gate_options options = {.run = &run,
                                .is_quick = true,
                                .is_interrupted = &is_interrupted,
                                .progress = interrupt,
                                .context = (void *)&is_interrupted};
    result = run_gate(&options, NULL, NULL);
    assert_int_equal(result.finding_count, 1);
    assert_int_equal(gmd_gate_verdict(&result), GMD_UNFINISHED);
}

/* A folder that cannot be made stands for a disk that is full. */
TEST_F(result, a_case_that_cannot_be_written_is_a_note_of_its_item)
{
    gmd_run_options run = run_options_for(GMD_TEST_REFUSING);
    run.cases.directory = "/proc/none";
    gmd_gate_options options = {.run = &run, .is_quick = true, .only = "first"};
    result = run_gate(&options, NULL, NULL);
    assert_int_equal(result.finding_count, 1);
    assert_non_null(strstr(result.parts[0].items[0].detail, "a case could not be written: /proc"));
}

TEST_F(result, a_case_that_fails_by_itself_is_not_said_to_make_no_calls)
{
    setenv("GMD_PLANT", "leak", 1);
    gmd_run_options run = run_options_for(GMD_TEST_PLANTED);
    gmd_gate_options options = {.run = &run, .is_quick = true, .only = "faults"};
    result = run_gate(&options, NULL, NULL);
    unsetenv("GMD_PLANT");
    const gmd_gate_part *faults = &result.parts[3];
    for (size_t i = 0; i < faults->item_count; i++) {
        assert_null(strstr(faults->items[i].detail, "makes no call"));
    }
    assert_true(faults->item_count > 0);
}

TEST_F(result, an_allocator_that_serves_nothing_is_found)
{
    gmd_run_options run = run_options_for(GMD_TEST_REFUSING);
    gmd_gate_options options = {.run = &run, .is_quick = true, .only = "first"};
    result = run_gate(&options, NULL, NULL);
    assert_int_equal(result.finding_count, 1);
    assert_string_equal(result.findings[0].violation.oracle, "oom_retry");
}

TEST_F(result, a_part_of_which_nothing_ran_was_not_run)
{
    gmd_run_options run = run_options_for(GMD_TEST_REFUSING);
    gmd_gate_options options = {.run = &run, .is_quick = true, .only = "faults"};
    result = run_gate(&options, NULL, NULL);
    assert_true(result.parts[3].item_count > 0);
    assert_false(result.parts[3].was_run);
    assert_int_equal(result.parts[3].items[0].fate, GMD_GATE_SKIPPED);
}

TEST_F(result, what_the_allocator_does_not_export_is_skipped_with_the_reason)
{
    gmd_run_options run = run_options_for(GMD_TEST_DEFERRING);
    gmd_gate_options options = {.run = &run, .is_quick = true, .only = "cases/general/rmm868"};
    result = run_gate(&options, NULL, NULL);
    const gmd_gate_part *cases = &result.parts[1];
    assert_int_equal(cases->item_count, 1);
    assert_int_equal(cases->items[0].fate, GMD_GATE_SKIPPED);
    assert_non_null(strstr(cases->items[0].detail, "gmd_set_memory_fraction"));
}
