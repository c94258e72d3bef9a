/* Any sequence is made into one that a campaign allows. */
#include "fuzz_test.h"

#include "space.h"

static char *fitted(const gmd_profile_space *space, const char *text)
{
    gmd_trace trace = parse_or_fail(text);
    gmd_space_fit(space, &trace);
    char *result = text_of(&trace);
    gmd_trace_free(&trace);
    return result;
}

static void expect_fitted(const gmd_profile_space *space, const char *text, const char *expected)
{
    char *result = fitted(space, text);
    assert_string_equal(result, expected);
    free(result);
}

TEST(what_the_allocator_has_not_is_left_out)
{
    const gmd_profile_space nothing = {0};
    expect_fitted(&nothing,
                  "gmd-trace 1\nfraction 0.5\nalloc a 1MiB s1\nrecord a s1\nbudget 1GiB\n"
                  "fault cudaMalloc 1 2\nfree a\n",
                  "gmd-trace 1\nalloc a 1MiB s1\nfree a\n");
}

TEST(a_fault_stays_where_it_is_a_target)
{
    const gmd_profile_space space = {
        .has_faults = true, .fault_targets = {{"cudaMalloc", 2}}, .fault_target_count = 1};
    expect_fitted(&space,
                  "gmd-trace 1\nfault cudaMalloc 1 2\nfault cudaMalloc 1 999\n"
                  "fault cudaEventQuery 1 999\nalloc a 1MiB s1\n",
                  "gmd-trace 1\nfault cudaMalloc 1 2\nalloc a 1MiB s1\n");
}

TEST(what_the_options_leave_out_is_left_out)
{
    const gmd_profile_space space = {.has_no_huge_sizes = true, .without_ops = 1u << GMD_OP_SYNC};
    expect_fitted(&space, "gmd-trace 1\nalloc a 18446744073709551615 s1\nalloc b 1MiB s1\nsync\n",
                  "gmd-trace 1\nalloc b 1MiB s1\n");
}

TEST(a_limit_of_nothing_is_left_out)
{
    const gmd_profile_space space = {.has_fraction = true};
    expect_fitted(&space, "gmd-trace 1\nfraction 0\nfraction 0.5\n", "gmd-trace 1\nfraction 0.5\n");
}

/* What a test makes, freed after it. */
static gmd_trace parsed;

static int free_parsed(void **state)
{
    (void)state;
    gmd_trace_free(&parsed);
    return 0;
}

FIXTURE(trace, NULL, free_parsed);

TEST_F(trace, threads_become_one_where_there_may_be_one)
{
    const gmd_profile_space space = {.has_one_thread = true, .has_interleaving = true};
    parsed = parse_or_fail("gmd-trace 1\ninterleave seed 3\nthread t\nalloc a 1MiB s1\n");
    gmd_space_fit(&space, &parsed);
    assert_int_equal(parsed.requests[0].thread, 0);
    assert_int_equal(parsed.interleave.kind, GMD_SCHEDULE_UNSTATED);
}

TEST_F(trace, choices_of_threads_become_a_seed)
{
    const gmd_profile_space space = {.has_interleaving = true};
    parsed = parse_or_fail(
        "gmd-trace 1\ninterleave explicit 1 0 1\nthread t\nalloc a 1MiB s1\nthread u\nfree a\n");
    gmd_space_fit(&space, &parsed);
    assert_int_equal(parsed.interleave.kind, GMD_SCHEDULE_SEEDED);
    assert_int_equal(parsed.interleave.choice_count, 0);
}

static gmd_trace fitted_header(const gmd_profile_space *space, const char *text)
{
    gmd_error error = {""};
    gmd_trace header = parse_or_fail(text);
    demand_ok(gmd_space_fit_header(space, &header, &error), &error);
    return header;
}

TEST(settings_that_the_allocator_does_not_take_are_left_out)
{
    const char *const taken[] = {"expandable_segments:True"};
    const gmd_profile_space space = {.confs = taken, .conf_count = 1};
    gmd_trace kept = fitted_header(&space, "gmd-trace 1\nconf expandable_segments:True\n");
    gmd_trace dropped = fitted_header(&space, "gmd-trace 1\nconf backend:unheard_of\n");
    assert_string_equal(kept.conf, "expandable_segments:True");
    assert_null(dropped.conf);
    gmd_trace_free(&kept);
    gmd_trace_free(&dropped);
}

TEST(what_a_campaign_fixes_is_put_in)
{
    const char *const fixed[] = {"max_split_size_mb:20"};
    const gmd_schedule lazy = {.kind = GMD_SCHEDULE_LAZY};
    const gmd_profile_space space = {.confs = fixed,
                                     .conf_count = 1,
                                     .conf_is_fixed = true,
                                     .capacity_bytes = GMD_GIB,
                                     .schedule = &lazy,
                                     .device_max = 2};
    gmd_trace header =
        fitted_header(&space, "gmd-trace 1\ndevices 9\ncapacity 3MiB\nschedule seed 4\n");
    assert_string_equal(header.conf, "max_split_size_mb:20");
    assert_int_equal(header.capacity_bytes, GMD_GIB);
    assert_int_equal(header.schedule.kind, GMD_SCHEDULE_LAZY);
    assert_int_equal(header.device_count, 2);
    gmd_trace_free(&header);
}

TEST_F(trace, requests_move_to_devices_that_are_there)
{
    gmd_error error = {""};
    const gmd_profile_space space = {.device_max = 1};
    gmd_trace header = parse_or_fail("gmd-trace 1\ncapacity 64MiB\n");
    parsed = parse_or_fail("gmd-trace 1\ndevices 2\nalloc a 1MiB s1 device 1\n");
    demand_ok(gmd_space_take_header(&space, &parsed, &header, &error), &error);
    assert_int_equal(parsed.requests[0].device, 0);
    assert_int_equal(parsed.capacity_bytes, 64 * GMD_MIB);
    gmd_trace_free(&header);
}

TEST_F(trace, the_limit_of_a_campaign_is_the_first_request)
{
    gmd_error error = {""};
    const gmd_profile_space space = {.has_fraction = true, .fraction = 0.25};
    gmd_trace header = parse_or_fail("gmd-trace 1\n");
    parsed = parse_or_fail("gmd-trace 1\nalloc a 1MiB s1\nfraction 0.9\n");
    gmd_space_fit(&space, &parsed);
    demand_ok(gmd_space_take_header(&space, &parsed, &header, &error), &error);
    char *text = text_of(&parsed);
    assert_string_equal(text, "gmd-trace 1\nfraction 0.25\nalloc a 1MiB s1\n");
    free(text);
    gmd_trace_free(&header);
}
