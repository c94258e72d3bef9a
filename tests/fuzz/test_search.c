/* A campaign finds each defect that is planted, by itself; finds nothing in a correct allocator;
 * and is the same from the same seed. */
#include "fuzz_test.h"

#include "gmd_interpose.h"
#include "gmd_search.h"

#include <unistd.h>

#define RUNS 50

static gmd_search_result search(const char *allocator, const char *plant, uint64_t seed,
                                gmd_findings *findings)
{
    gmd_run_options run = options_for(allocator);
    run.judging.costs = GMD_COSTS_SAMPLED;
    run.process.call_budget_s = strcmp(plant, "hang") == 0 ? 0.3 : 20;
    bool is_slow = strcmp(plant, "hang") == 0; /* each run that finds it takes the budget */
    gmd_search_options options = {.run = &run, .seed = seed, .runs = is_slow ? 2 : RUNS};
    gmd_search_result result;
    gmd_error error = {""};
    findings->minimize_seconds = findings->out_directory ? 60 : 0.01; /* test_minimize.c's */
    setenv("GMD_PLANT", plant, 1);
    demand_ok(gmd_search_find_space(&options.space, &run, &error), &error);
    demand_ok(gmd_search(&options, findings, &result, &error), &error);
    unsetenv("GMD_PLANT");
    return result;
}

static bool has_oracle(const gmd_findings *findings, const char *oracle)
{
    for (size_t i = 0; i < findings->count; i++) {
        if (strcmp(findings->items[i].violation.oracle, oracle) == 0) {
            return true;
        }
    }
    return false;
}

static void expect_found(const char *plant, const char *oracle)
{
    gmd_findings findings = {0};
    search(GMD_TEST_PLANTED, plant, 1, &findings);
    assert_true(has_oracle(&findings, oracle));
    gmd_findings_free(&findings);
}

#define PLANT_TEST(plant, oracle)                                                                  \
    TEST(plant##_is_found_as_##oracle)                                                             \
    {                                                                                              \
        expect_found(#plant, #oracle);                                                             \
    }

PLANT_TEST(overlap, overlap)
PLANT_TEST(short, size)
PLANT_TEST(misaligned, alignment)
PLANT_TEST(foreign, backing)
PLANT_TEST(leak, leak)
PLANT_TEST(leak_event, leak)
PLANT_TEST(wrong_sum, accounting)
PLANT_TEST(stale_peak, accounting)
PLANT_TEST(unclean_failure, accounting)
PLANT_TEST(crash, progress)
PLANT_TEST(exit, progress)
PLANT_TEST(hang, progress)
PLANT_TEST(crash_init, progress)
PLANT_TEST(crash_exit, progress)

/* Threads that are interleaved come in few rounds of a campaign: here in each. */
static gmd_search_result search_with_threads(const char *plant, uint64_t runs,
                                             gmd_findings *findings)
{
    static const gmd_profile_space threaded = {.has_interleaving = true, .has_threads_only = true};
    gmd_run_options run = options_for(GMD_TEST_PLANTED);
    run.process.call_budget_s =
        strcmp(plant, "livelock") == 0 ? 0.5 : 120; /* who spins is only slow */
    gmd_search_options options = {.run = &run, .seed = 1, .runs = runs, .space = threaded};
    gmd_search_result result;
    gmd_error error = {""};
    findings->minimize_seconds = 0.01;
    setenv("GMD_PLANT", plant, 1);
    demand_ok(gmd_search(&options, findings, &result, &error), &error);
    unsetenv("GMD_PLANT");
    return result;
}

TEST(threads_that_spin_are_interleaved_less)
{
    gmd_findings findings = {0};
    gmd_search_result result = search_with_threads("spin", 300, &findings);
    assert_string_equal(findings.count ? findings.items[0].violation.message : "", "");
    assert_int_equal(result.status.runs, 300);
    assert_true(result.spins_since > 0);
    assert_true(result.interleaved < 60);
    gmd_findings_free(&findings);
}

TEST(a_livelock_is_found_as_progress)
{
    gmd_findings findings = {0};
    search_with_threads("livelock", 2, &findings);
    assert_true(has_oracle(&findings, "progress"));
    gmd_findings_free(&findings);
}

/* NAME.gmd, and NAME.c that shows it without gmd, unless it takes threads that are interleaved. */
/* Each needs a part of the search that most defects do not: a campaign comes by all of them. */
static void expect_defect_found(const char *allocator, const char *defect, const char *oracle)
{
    gmd_run_options run = options_for(allocator);
    gmd_findings findings = {.minimize_seconds = 0.01};
    gmd_search_options options = {.run = &run, .seed = 3, .runs = 12000, .ends_when_found = true};
    gmd_search_result result;
    gmd_error error = {""};
    setenv("GMD_DEFECT", defect, 1);
    demand_ok(gmd_search_find_space(&options.space, &run, &error), &error);
    demand_ok(gmd_search(&options, &findings, &result, &error), &error);
    unsetenv("GMD_DEFECT");
    assert_true(has_oracle(&findings, oracle));
    gmd_findings_free(&findings);
}

TEST(a_lock_that_an_event_which_cannot_be_recorded_leaves_locked_is_found)
{
    if (!interpose_is_on()) {
        skip(); /* found by the time limit only */
    }
    expect_defect_found(GMD_TEST_EVENT_CACHE, "cub328", "progress");
}

TEST(blocks_that_are_lost_one_by_one_are_found)
{
    expect_defect_found(GMD_TEST_EXACT_CACHE_BARE, "hipep1068", "progress");
}

/* Past the 256th free on one stream, whose work is pending. */
TEST(what_goes_wrong_after_many_turns_is_found)
{
    expect_defect_found(GMD_TEST_GENERATIONS, "generation_byte", "stream_order");
}

/* Bookkeeping that grows with each stream that is destroyed. */
TEST(what_streams_that_come_and_go_leave_is_found)
{
    expect_defect_found(GMD_TEST_GENERATIONS, "lanes_grow", "leak");
}

static bool has_target(const char *allocator, const char *conf, const char *function)
{
    gmd_run_options run = options_for(allocator);
    gmd_profile_space space = {.confs = &conf, .conf_count = conf != NULL};
    gmd_error error = {""};
    demand_ok(gmd_search_find_space(&space, &run, &error), &error);
    bool has = false;
    for (uint32_t i = 0; i < space.fault_target_count; i++) {
        has = has || strcmp(space.fault_targets[i].function, function) == 0;
    }
    return has;
}

TEST(what_can_fail_is_what_the_allocator_calls)
{
    assert_true(has_target("reference", NULL, "cudaMalloc"));
    assert_true(has_target("reference", NULL, "cudaEventCreateWithFlags"));
    assert_true(has_target("cudamallocasync", NULL, "cudaMallocAsync"));
    assert_false(has_target("cudamalloc", NULL, "cudaMallocAsync"));
}

TEST(settings_lead_to_calls_of_their_own)
{
    assert_false(has_target("reference", NULL, "cuMemCreate"));
    assert_true(has_target("reference", "expandable_segments:True", "cuMemCreate"));
}

TEST(nothing_is_found_in_the_reference)
{
    gmd_findings findings = {0};
    gmd_search_result result = search("reference", "", 3, &findings);
    assert_string_equal(findings.count ? findings.items[0].violation.message : "", "");
    assert_string_equal(result.refusal, "");
    assert_true(result.status.requests > 1000);
}

TEST(the_same_seed_makes_the_same_campaign)
{
    gmd_findings first = {0}, second = {0};
    gmd_search_result a = search(GMD_TEST_PLANTED, "leak", 5, &first);
    gmd_search_result b = search(GMD_TEST_PLANTED, "leak", 5, &second);
    assert_int_equal(a.status.runs, b.status.runs);
    assert_int_equal(a.status.rounds, b.status.rounds);
    assert_int_equal(first.count, second.count);
    for (size_t i = 0; i < first.count; i++) {
        assert_true(gmd_identity_equal(&first.items[i].cause, &second.items[i].cause));
        assert_int_equal(first.items[i].run, second.items[i].run);
    }
    gmd_findings_free(&first);
    gmd_findings_free(&second);
}

static size_t remove_case(const char *path)
{
    char program[300];
    snprintf(program, sizeof program, "%.*s.c", (int)strlen(path) - 4, path);
    assert_int_equal(unlink(path), 0);
    return unlink(program) == 0;
}

TEST(each_defect_is_one_finding_with_one_case_that_replays_it)
{
    char directory[] = "gmd-test-cases-XXXXXX";
    assert_non_null(mkdtemp(directory));
    gmd_findings findings = {
        .out_directory = directory, .origin = "test", .allocator = GMD_TEST_PLANTED};
    search(GMD_TEST_PLANTED, "overlap", 1, &findings);
    size_t overlaps = 0, programs = 0;
    for (size_t i = 0; i < findings.count; i++) {
        const gmd_finding *f = &findings.items[i];
        overlaps += strcmp(f->violation.oracle, "overlap") == 0;
        if (f->requests > 20) { /* of some hundred */
            fail_msg("%zu requests: %s", f->requests, f->violation.message);
        }
        programs += remove_case(f->violation.case_path);
    }
    assert_int_equal(overlaps, 1);
    assert_true(programs > 0);
    assert_true(findings.items[0].hits > 1);
    assert_int_equal(rmdir(directory), 0);
    gmd_findings_free(&findings);
}

/* --- nothing of it is lost ----------------------------------------------------------------- */

/* Whom findings are told to. */
typedef struct audience {
    size_t told, unwritten;
    bool was_told_first; /* before it was tried to write its case */
} audience;

static void note_told(void *context, const gmd_finding *finding)
{
    audience *l = context;
    bool is_unwritten = finding->unwritten[0];
    l->was_told_first = l->told + l->unwritten ? l->was_told_first : !is_unwritten;
    l->told += !is_unwritten;
    l->unwritten += is_unwritten;
}

/* A folder that cannot be made stands for a disk that is full. */
TEST(a_case_that_cannot_be_written_loses_no_finding)
{
    audience l = {0};
    gmd_findings findings = {.out_directory = "/proc/none",
                             .origin = "test",
                             .allocator = GMD_TEST_PLANTED,
                             .tell = note_told,
                             .listener = &l};
    gmd_search_result result = search(GMD_TEST_PLANTED, "overlap", 1, &findings);
    assert_true(findings.count > 0);
    assert_int_equal(l.told, findings.count);
    assert_int_equal(l.unwritten, findings.count);
    assert_true(l.was_told_first);
    assert_string_equal(findings.items[0].violation.case_path, "");
    assert_true(result.status.runs >= RUNS);
    gmd_findings_free(&findings);
}

static volatile sig_atomic_t is_interrupted;

static void interrupt_when_found(void *listener, const gmd_finding *finding)
{
    (void)listener;
    (void)finding;
    is_interrupted = 1;
}

TEST(an_interrupted_campaign_says_so_and_keeps_what_it_found)
{
    gmd_run_options run = options_for(GMD_TEST_PLANTED);
    gmd_findings findings = {.minimize_seconds = 60, .tell = interrupt_when_found};
    gmd_search_options options = {.run = &run, .seed = 1, .runs = 100000};
    gmd_search_result result;
    gmd_error error = {""};
    is_interrupted = 0;
    run.process.is_interrupted = &is_interrupted;
    setenv("GMD_PLANT", "overlap", 1);
    demand_ok(gmd_search_find_space(&options.space, &run, &error), &error);
    demand_ok(gmd_search(&options, &findings, &result, &error), &error);
    unsetenv("GMD_PLANT");
    assert_true(result.is_interrupted);
    assert_int_equal(findings.count, 1);
    gmd_findings_free(&findings);
}

static const gmd_oracle_result *judged_by(const gmd_judged *judged, const char *oracle)
{
    for (uint32_t i = 0; i < judged->count; i++) {
        if (strcmp(judged->oracles[i].name, oracle) == 0) {
            return &judged->oracles[i];
        }
    }
    fail_msg("nothing is said of %s", oracle);
    return NULL;
}

TEST(a_campaign_says_which_oracles_judged_it)
{
    gmd_findings findings = {0};
    gmd_search_result result = search("reference", "", 3, &findings);
    assert_false(result.is_interrupted);
    assert_int_equal(judged_by(&result.judged, "overlap")->fate, GMD_ORACLE_PASSED);
    assert_int_equal(judged_by(&result.judged, "determinism")->fate, GMD_ORACLE_SKIPPED);
    assert_string_not_equal(judged_by(&result.judged, "determinism")->reason, "");
    gmd_findings_free(&findings);
}

TEST(a_campaign_says_what_its_oracles_looked_at_and_took)
{
    gmd_findings findings = {0};
    gmd_search_result result = search("reference", "", 3, &findings);
    const gmd_oracle_result *accounting = judged_by(&result.judged, "accounting");
    assert_true(accounting->asked >= result.status.requests);
    assert_true(accounting->seconds > 0 && accounting->seconds < result.status.seconds);
    gmd_findings_free(&findings);
}
