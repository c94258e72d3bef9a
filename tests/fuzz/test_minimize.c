/* The minimiser keeps the lines that matter, and nothing else. */
#include "fuzz_test.h"

#include "gmd_minimize.h"

#include "gmd_generate.h"

static const gmd_minimize_limits no_limits = {0};

static gmd_run_options options;
static gmd_runner runner;

static int close_runner(void **state)
{
    gmd_runner_close(&runner);
    unsetenv("GMD_PLANT");
    return free_made(state);
}

FIXTURE(runner, NULL, close_runner);

/* In place of the one that is open, if any. */
static void open_runner(const char *allocator)
{
    gmd_runner_close(&runner);
    options = options_for(allocator);
    gmd_runner_init(&runner, &options);
}

/* Minimises `trace` for the first violation that it shows; the result as text. */
static const char *minimized_on(const char *allocator, gmd_trace *trace, const char *plant,
                                gmd_minimized *result)
{
    gmd_identity cause;
    const gmd_outcome *outcome;
    gmd_error error = {""};
    setenv("GMD_PLANT", plant, 1);
    open_runner(allocator);
    demand_ok(gmd_runner_run(&runner, trace, &outcome, &error), &error);
    assert_int_equal(outcome->verdict, GMD_FAIL);
    cause = outcome->violations[0].identity;
    demand_ok(gmd_minimize(trace, &runner, &cause, &no_limits, result, &error), &error);
    return make_text(trace);
}

static const char *minimized_text(gmd_trace *trace, const char *plant, gmd_minimized *result)
{
    return minimized_on(GMD_TEST_PLANTED, trace, plant, result);
}

static gmd_trace *five_hundred_requests(uint64_t seed)
{
    static const gmd_profile_space space = {.capacity_bytes = GMD_GIB, .device_max = 2};
    gmd_profile profile;
    gmd_error error = {""};
    gmd_trace *trace = make_trace("gmd-trace 1\n");
    gmd_profile_draw(&profile, &space, seed);
    profile.request_count = 500;
    demand_ok(gmd_generate(&profile, &space, seed, trace, &error), &error);
    return trace;
}

/* The planted allocator hands out a live block again from its third allocation on. */
TEST_F(runner, five_hundred_requests_shrink_to_the_three_that_matter)
{
    gmd_trace *trace = five_hundred_requests(7);
    gmd_minimized result;
    const char *text = minimized_text(trace, "overlap", &result);
    assert_string_equal(text, "gmd-trace 1\n"
                              "devices 1\n"
                              "capacity 1GiB\n"
                              "alloc a 1 s1\n"
                              "alloc b 1 s1\n"
                              "alloc c 1 s1\n");
    assert_true(result.is_complete);
    assert_string_equal(result.violation.oracle, "overlap");
}

TEST_F(runner, the_sentence_of_the_smallest_case_names_its_blocks)
{
    gmd_minimized result;
    gmd_trace *trace = make_trace("gmd-trace 1\nalloc x 1 s1\nalloc first 1 s1\nfree x\n"
                                  "alloc second 1 s1\nalloc third 1 s1\n");
    assert_string_equal(minimized_text(trace, "overlap", &result), "gmd-trace 1\n"
                                                                   "alloc a 1 s1\n"
                                                                   "alloc b 1 s1\n"
                                                                   "alloc c 1 s1\n");
    assert_non_null(strstr(result.violation.message, "block c of 1 B at 0x"));
}

TEST_F(runner, pools_that_do_not_matter_go)
{
    gmd_minimized result;
    gmd_trace *trace = make_trace("gmd-trace 1\nbegin_pool p s1\nalloc a 1 s1\nalloc b 1 s1\n"
                                  "end_pool p\nalloc c 1 s1\nrelease_pool p\n");
    const char *text = minimized_text(trace, "overlap", &result);
    assert_null(strstr(text, "pool"));
}

TEST_F(runner, pools_that_matter_stay_and_are_numbered_anew)
{
    gmd_minimized result;
    gmd_trace *trace = make_trace("gmd-trace 1\nconf defect:pytorch114320\n"
                                  "begin_pool other s2\nalloc x 1 s3\nend_pool other\n"
                                  "begin_pool graph s1\nalloc a 20MiB s1\nfree a\n"
                                  "end_pool graph\nrelease_pool other\nalloc b 20MiB s1\n");
    const char *text = minimized_on(GMD_TEST_CACHING_POOL, trace, "", &result);
    gmd_trace *again = make_trace(text);
    assert_string_equal(result.violation.oracle, "private_pool");
    assert_int_equal(again->pools.count, 1);
    assert_non_null(strstr(text, "begin_pool p0\n"));
    assert_int_equal(again->count, 5);
}

TEST_F(runner, a_capture_that_matters_stays_with_its_end_and_its_launches)
{
    gmd_minimized result;
    gmd_trace *trace = make_trace("gmd-trace 1\nconf defect:llamacpp26771\n"
                                  "begin_capture other s2\nalloc x 1 s2\nend_capture other\n"
                                  "launch other s1\n"
                                  "begin_capture graph s1\nalloc a 20MiB s1\nuse a s1\nfree a\n"
                                  "end_capture graph\nlaunch graph s2\nempty_cache\n"
                                  "launch graph s1\nrelease_pool other\n");
    const char *text = minimized_on(GMD_TEST_CACHING_POOL, trace, "", &result);
    assert_string_equal(result.violation.oracle, "backing");
    assert_non_null(strstr(text, "begin_capture p0 s1\n"
                                 "alloc a 1 s1\n"
                                 "use a s1 10us\n"
                                 "free a\n"
                                 "end_capture p0\n"
                                 "empty_cache\n"
                                 "launch p0 s1\n"));
}

TEST_F(runner, a_capture_that_only_opens_a_pool_becomes_a_pool)
{
    gmd_minimized result;
    gmd_trace *trace = make_trace("gmd-trace 1\nconf defect:pytorch114320\n"
                                  "begin_capture p s1\nalloc a 20MiB s1\nuse a s1\nfree a\n"
                                  "end_capture p\nlaunch p s1\nalloc b 20MiB s1\n");
    const char *text = minimized_on(GMD_TEST_CACHING_POOL, trace, "", &result);
    assert_string_equal(result.violation.oracle, "private_pool");
    assert_null(strstr(text, "capture"));
    assert_null(strstr(text, "launch"));
}

TEST_F(runner, the_same_input_gives_the_same_result_after_as_many_tries)
{
    gmd_minimized first_result, second_result;
    gmd_trace *first_trace = five_hundred_requests(9), *second_trace = five_hundred_requests(9);
    const char *first = minimized_text(first_trace, "leak", &first_result);
    const char *second = minimized_text(second_trace, "leak", &second_result);
    assert_string_equal(first, second);
    assert_int_equal(first_result.tries, second_result.tries);
}

TEST_F(runner, what_matters_stays)
{
    gmd_trace *trace = make_trace("gmd-trace 1\n"
                                  "capacity 64MiB\n"
                                  "alloc a 1000 s1\n"
                                  "free a\n"
                                  "alloc b 12345678 s2\n"
                                  "fault cudaMalloc 2 2 every\n"
                                  "alloc a 5000000 s3\n"
                                  "alloc c 7000000 s3\n"
                                  "free b\n");
    gmd_minimized result;
    const char *text = minimized_text(trace, "unclean_failure", &result);
    assert_string_equal(text, "gmd-trace 1\n"
                              "capacity 1GiB\n"
                              "fault cudaMalloc 1 2 every\n"
                              "alloc a 1 s1\n");
}

TEST_F(runner, a_crash_is_minimised_like_any_other_verdict)
{
    gmd_trace *trace = five_hundred_requests(3);
    gmd_minimized result;
    minimized_text(trace, "crash", &result);
    assert_true(trace->count <= 3); /* an oracle may make one of the three calls itself */
    assert_non_null(strstr(result.violation.message, "crashed"));
}

TEST_F(runner, threads_that_do_not_matter_go_at_once)
{
    gmd_trace *trace = make_trace("gmd-trace 1\n"
                                  "interleave seed 3\n"
                                  "alloc a 1 s1\n"
                                  "thread t1\n"
                                  "alloc b 1 s1\n"
                                  "thread t2\n"
                                  "alloc c 1 s1\n"
                                  "alloc d 1 s1\n");
    gmd_minimized result;
    const char *text = minimized_text(trace, "misaligned", &result);
    assert_null(strstr(text, "interleave"));
    assert_null(strstr(text, "thread"));
    assert_int_equal(trace->count, 3);
}

/* Two threads find room for one, under a seed that nobody knows for the shorter case. */
TEST_F(runner, a_race_shrinks_to_the_requests_that_race)
{
    static const char noise[] = "alloc %c%d 1MiB s1\nuse %c%d s2 10us\nfree %c%d\nsync s1\n";
    char text[4096];
    int length = snprintf(text, sizeof text,
                          "gmd-trace 1\ncapacity 64MiB\nconf defect:rmm868\ninterleave seed 0\n"
                          "fraction 0.5\n");
    for (int i = 0; i < 16; i++) {
        char name = (char)('a' + i % 2);
        length += snprintf(text + length, sizeof text - (size_t)length, "thread t%d\n", 1 + i % 2);
        length +=
            snprintf(text + length, sizeof text - (size_t)length, noise, name, i, name, i, name, i);
        if (i == 7 || i == 8) {
            length += snprintf(text + length, sizeof text - (size_t)length,
                               "alloc big%d 20MiB s1\nfree big%d\n", i, i);
        }
    }
    gmd_trace *trace = make_trace(text);
    open_runner(GMD_TEST_LIMITED);
    const gmd_outcome *outcome;
    gmd_error error = {""};
    for (trace->conditions.interleave.seed = 0; trace->conditions.interleave.seed < 1000;
         trace->conditions.interleave.seed++) {
        demand_ok(gmd_runner_run(&runner, trace, &outcome, &error), &error);
        if (outcome->violation_count) {
            break;
        }
    }
    gmd_minimized result;
    minimized_on(GMD_TEST_LIMITED, trace, "", &result);
    assert_string_equal(result.violation.oracle, "peak_bound");
    assert_true(trace->count <= 4); /* of 69 */
}

TEST_F(runner, a_limit_ends_it_with_the_smallest_so_far)
{
    open_runner(GMD_TEST_PLANTED);
    gmd_minimize_limits limits = {.tries = 3};
    gmd_identity cause;
    gmd_minimized result;
    gmd_error error = {""};
    const gmd_outcome *outcome;
    gmd_trace *trace = five_hundred_requests(7);
    setenv("GMD_PLANT", "overlap", 1);
    demand_ok(gmd_runner_run(&runner, trace, &outcome, &error), &error);
    cause = outcome->violations[0].identity;
    demand_ok(gmd_minimize(trace, &runner, &cause, &limits, &result, &error), &error);
    assert_false(result.is_complete);
    assert_int_equal(result.tries, 3);
}

TEST_F(runner, where_time_is_over_the_case_has_the_names_of_its_sentence)
{
    open_runner(GMD_TEST_PLANTED);
    gmd_minimize_limits limits = {.tries = 1};
    gmd_minimized result;
    gmd_error error = {""};
    const gmd_outcome *outcome;
    char block[64];
    gmd_trace *trace = make_trace("gmd-trace 1\nalloc x 1 s1\nalloc first 1 s1\nfree x\n"
                                  "alloc second 1 s1\nalloc third 1 s1\n");
    setenv("GMD_PLANT", "overlap", 1);
    demand_ok(gmd_runner_run(&runner, trace, &outcome, &error), &error);
    gmd_identity cause = outcome->violations[0].identity;
    demand_ok(gmd_minimize(trace, &runner, &cause, &limits, &result, &error), &error);
    const gmd_request *last = &trace->requests[trace->count - 1];
    snprintf(block, sizeof block, "block %s of 1 B", trace->blocks.items[last->block]);
    assert_non_null(strstr(result.violation.message, block));
}

TEST_F(runner, a_case_without_the_verdict_is_refused)
{
    open_runner("reference");
    const gmd_identity cause = {.kind = "overlap.shared"};
    gmd_minimized result;
    gmd_error error = {""};
    gmd_trace *trace = make_trace("gmd-trace 1\nalloc a 1 s1\n");
    assert_int_equal(gmd_minimize(trace, &runner, &cause, &no_limits, &result, &error),
                     GMD_BAD_INPUT);
    assert_string_equal(error.text, "the requests do not end with this verdict: overlap.shared");
    assert_int_equal(trace->count, 1);
}

/* --- counts ------------------------------------------------------------------------------ */

/* The 257th block is the one that is freed as another: 255 of 300 turns are left. */
TEST_F(runner, the_fewest_turns_that_show_it_are_found)
{
    gmd_minimized result;
    gmd_trace *trace = make_trace("gmd-trace 1\n"
                                  "conf defect:segment_byte\n"
                                  "alloc x 7MiB s2\n"
                                  "repeat 1000 {\n"
                                  "  alloc b% 4KiB s1\n"
                                  "}\n"
                                  "sync\n");
    const char *text = minimized_on(GMD_TEST_TABLES, trace, "", &result);
    assert_true(result.is_complete);
    assert_non_null(strstr(text, "repeat 25"));
    assert_null(strstr(text, "sync"));
    assert_in_range(trace->count, 257, 260);
    assert_in_range(result.tries, 1, 200); /* not one for each turn */
}

/* Only what matters of a turn is left. */
TEST_F(runner, turns_become_shorter)
{
    gmd_minimized result;
    gmd_trace *trace = make_trace("gmd-trace 1\n"
                                  "conf defect:pool_33\n"
                                  "repeat 40 {\n"
                                  "  begin_pool p%\n"
                                  "  alloc b% 1MiB s1\n"
                                  "  use b% s1\n"
                                  "  advance 1us\n"
                                  "  free b%\n"
                                  "  end_pool p%\n"
                                  "}\n");
    const char *text = minimized_on(GMD_TEST_TABLES, trace, "", &result);
    assert_null(strstr(text, "use"));
    assert_null(strstr(text, "advance"));
    assert_non_null(strstr(text, "repeat 32 {"));
}
