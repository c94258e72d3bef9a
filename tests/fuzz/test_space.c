/* Any sequence is made into one that a campaign allows. */
#include "fuzz_test.h"

#include "gmd_interleaving.h"
#include "gmd_space.h"

static void expect_fitted(const gmd_profile_space *space, const char *text, const char *expected)
{
    gmd_trace *trace = make_trace(text);
    gmd_space_fit(space, trace);
    assert_string_equal(make_text(trace), expected);
}

TEST_F(made, what_the_allocator_has_not_is_left_out)
{
    const gmd_profile_space nothing = {0};
    expect_fitted(&nothing,
                  "gmd-trace 1\nfraction 0.5\nalloc a 1MiB s1\nrecord a s1\nbudget 1GiB\n"
                  "fault cudaMalloc 1 2\nfree a\n",
                  "gmd-trace 1\nalloc a 1MiB s1\nfree a\n");
}

TEST_F(made, a_fault_stays_where_it_is_a_target)
{
    const gmd_profile_space space = {
        .has_faults = true, .fault_targets = {{"cudaMalloc", 2}}, .fault_target_count = 1};
    expect_fitted(&space,
                  "gmd-trace 1\nfault cudaMalloc 1 2\nfault cudaMalloc 1 999\n"
                  "fault cudaEventQuery 1 999\nalloc a 1MiB s1\n",
                  "gmd-trace 1\nfault cudaMalloc 1 2\nalloc a 1MiB s1\n");
}

TEST_F(made, what_the_options_leave_out_is_left_out)
{
    const gmd_profile_space space = {.has_no_huge_sizes = true, .without_ops = 1u << GMD_OP_SYNC};
    expect_fitted(&space, "gmd-trace 1\nalloc a 18446744073709551615 s1\nalloc b 1MiB s1\nsync\n",
                  "gmd-trace 1\nalloc b 1MiB s1\n");
}

TEST_F(made, an_allocation_that_is_left_out_takes_its_uses_and_its_free_along)
{
    const gmd_profile_space space = {.has_no_huge_sizes = true};
    expect_fitted(&space,
                  "gmd-trace 1\nalloc a 18446744073709551615 s1\nuse a s1\nfree a\n"
                  "alloc a 1MiB s1\nfree a\n",
                  "gmd-trace 1\nalloc a 1MiB s1\nfree a\n");
}

TEST_F(made, a_refusal_that_is_not_expected_any_more_has_a_block_of_its_own)
{
    const gmd_profile_space space = {0};
    expect_fitted(&space, "gmd-trace 1\nexpect oom a 100GiB s1\nalloc a 1MiB s1\nfree a\n",
                  "gmd-trace 1\nalloc b1 100GiB s1\nalloc a 1MiB s1\nfree a\n");
}

TEST_F(made, a_limit_of_nothing_is_left_out)
{
    const gmd_profile_space space = {.has_fraction = true};
    expect_fitted(&space, "gmd-trace 1\nfraction 0\nfraction 0.5\n", "gmd-trace 1\nfraction 0.5\n");
}

TEST_F(made, threads_become_one_where_there_may_be_one)
{
    const gmd_profile_space space = {.has_one_thread = true, .has_interleaving = true};
    gmd_trace *trace = make_trace("gmd-trace 1\ninterleave seed 3\nthread t\nalloc a 1MiB s1\n");
    gmd_space_fit(&space, trace);
    assert_int_equal(trace->requests[0].thread, 0);
    assert_int_equal(trace->conditions.interleave.kind, GMD_SCHEDULE_UNSTATED);
}

TEST(a_seed_draws_one_of_three_kinds_of_interleaving)
{
    unsigned kinds[GMD_SCHEDULE_PCT + 1] = {0};
    for (uint64_t seed = 0; seed < 400; seed++) {
        const gmd_schedule drawn = gmd_interleaving_of(seed);
        const gmd_schedule again = gmd_interleaving_of(seed);
        assert_int_equal(drawn.seed, seed);
        assert_int_equal(drawn.depth, again.depth);
        assert_in_range(drawn.depth, 0, GMD_SCHEDULE_DEPTH_MAX);
        kinds[drawn.kind]++;
    }
    assert_in_range(kinds[GMD_SCHEDULE_SEEDED], 160, 240);
    assert_in_range(kinds[GMD_SCHEDULE_BOUNDED], 60, 140);
    assert_in_range(kinds[GMD_SCHEDULE_PCT], 60, 140);
}

TEST(a_profile_of_races_has_threads_where_they_can_be_interleaved)
{
    gmd_profile_space space = {.has_interleaving = true};
    gmd_profile profile;
    gmd_profile_draw(&profile, &space, 1);
    assert_true(gmd_profile_race(&profile, &space, 1));
    assert_true(profile.interleaves);
    assert_in_range(profile.thread_count, 2, 3);
    space.has_one_thread = true;
    assert_false(gmd_profile_race(&profile, &space, 1));
}

TEST_F(made, choices_of_threads_become_a_seed)
{
    const gmd_profile_space space = {.has_interleaving = true};
    gmd_trace *trace = make_trace(
        "gmd-trace 1\ninterleave explicit 1 0 1\nthread t\nalloc a 1MiB s1\nthread u\nfree a\n");
    gmd_space_fit(&space, trace);
    assert_true(gmd_schedule_is_seeded(&trace->conditions.interleave));
    assert_int_equal(trace->conditions.interleave.choice_count, 0);
}

static const gmd_trace *fitted_header(const gmd_profile_space *space, const char *text)
{
    gmd_error error = {""};
    gmd_trace *header = make_trace(text);
    demand_ok(gmd_space_fit_header(space, &header->conditions, &error), &error);
    return header;
}

TEST_F(made, settings_that_the_allocator_does_not_take_are_left_out)
{
    const char *const taken[] = {"expandable_segments:True"};
    const gmd_profile_space space = {.confs = taken, .conf_count = 1};
    const gmd_trace *kept = fitted_header(&space, "gmd-trace 1\nconf expandable_segments:True\n");
    const gmd_trace *dropped = fitted_header(&space, "gmd-trace 1\nconf backend:unheard_of\n");
    assert_string_equal(kept->conditions.conf, "expandable_segments:True");
    assert_null(dropped->conditions.conf);
}

TEST_F(made, what_a_campaign_fixes_is_put_in)
{
    const char *const fixed[] = {"max_split_size_mb:20"};
    const gmd_schedule lazy = {.kind = GMD_SCHEDULE_LAZY};
    const gmd_profile_space space = {.confs = fixed,
                                     .conf_count = 1,
                                     .conf_is_fixed = true,
                                     .capacity_bytes = GMD_GIB,
                                     .schedule = &lazy,
                                     .device_max = 2};
    const gmd_trace *header =
        fitted_header(&space, "gmd-trace 1\ndevices 9\ncapacity 3MiB\nschedule seed 4\n");
    assert_string_equal(header->conditions.conf, "max_split_size_mb:20");
    assert_int_equal(header->conditions.capacity_bytes, GMD_GIB);
    assert_int_equal(header->conditions.schedule.kind, GMD_SCHEDULE_LAZY);
    assert_int_equal(header->conditions.device_count, 2);
}

TEST_F(made, requests_move_to_devices_that_are_there)
{
    gmd_error error = {""};
    const gmd_profile_space space = {.device_max = 1};
    gmd_trace *header = make_trace("gmd-trace 1\ncapacity 64MiB\n");
    gmd_trace *trace = make_trace("gmd-trace 1\ndevices 2\nalloc a 1MiB s1 device 1\n");
    demand_ok(gmd_space_take_header(&space, trace, &header->conditions, &error), &error);
    assert_int_equal(trace->requests[0].device, 0);
    assert_int_equal(trace->conditions.capacity_bytes, 64 * GMD_MIB);
}

TEST_F(made, the_limit_of_a_campaign_is_the_first_request)
{
    gmd_error error = {""};
    const gmd_profile_space space = {.has_fraction = true, .fraction = 0.25};
    gmd_trace *header = make_trace("gmd-trace 1\n");
    gmd_trace *trace = make_trace("gmd-trace 1\nalloc a 1MiB s1\nfraction 0.9\n");
    gmd_space_fit(&space, trace);
    demand_ok(gmd_space_take_header(&space, trace, &header->conditions, &error), &error);
    assert_string_equal(make_text(trace), "gmd-trace 1\nfraction 0.25\nalloc a 1MiB s1\n");
}
