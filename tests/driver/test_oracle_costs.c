/* What each oracle looked at and took, where a run is to tell. */
#include "driver_test.h"

enum { PAIRS = 1000 };

/* The caller frees it. */
static gmd_trace make_pairs(int count)
{
    char *text = NULL;
    size_t size = 0;
    gmd_trace trace;
    gmd_error error = {""};
    FILE *lines = open_memstream(&text, &size);
    assert_non_null(lines);
    fputs("gmd-trace 1\n", lines);
    for (int i = 0; i < count; i++) {
        fprintf(lines, "alloc b%d 512 s1\nfree b%d\n", i, i);
    }
    assert_int_equal(fclose(lines), 0);
    gmd_status status = gmd_trace_parse(&trace, text, size, "test", &error);
    free(text);
    if (status != GMD_OK) {
        fail_msg("%s", error.text);
    }
    return trace;
}

static gmd_outcome *run_many(gmd_costs costs, int pairs)
{
    gmd_error error = {""};
    gmd_trace trace = make_pairs(pairs);
    gmd_run_options options = options_on("reference");
    options.judging.costs = costs;
    gmd_workload workload = {
        .name = "test.gmd", .kind = "trace", .trace = &trace, .body = gmd_play_trace};
    gmd_outcome *o = calloc(1, sizeof *o);
    assert_non_null(o);
    assert_int_equal(gmd_run_isolated(&options, &workload, o, &error), GMD_OK);
    gmd_trace_free(&trace);
    return o;
}

static gmd_outcome *run_pairs(gmd_costs costs)
{
    return run_many(costs, PAIRS);
}

static const gmd_oracle_result *result_of(const gmd_outcome *o, const char *oracle)
{
    for (uint32_t i = 0; i < o->oracle_count; i++) {
        if (strcmp(o->oracles[i].name, oracle) == 0) {
            return &o->oracles[i];
        }
    }
    fail_msg("%s is not there", oracle);
    return NULL;
}

TEST(an_oracle_that_looks_at_allocations_is_asked_of_each)
{
    gmd_outcome *o = run_pairs(GMD_COSTS_MEASURED);
    assert_int_equal(result_of(o, "alignment")->asked, PAIRS);
    free(o);
}

TEST(what_the_oracles_took_is_of_the_run)
{
    gmd_outcome *o = run_pairs(GMD_COSTS_MEASURED);
    assert_true(result_of(o, "overlap")->seconds > 0);
    assert_true(result_of(o, "overlap")->seconds < o->seconds);
    free(o);
}

TEST(determinism_takes_a_run_of_its_own)
{
    gmd_outcome *o = run_pairs(GMD_COSTS_MEASURED);
    assert_int_equal(result_of(o, "determinism")->asked, 2 * PAIRS);
    assert_true(result_of(o, "determinism")->seconds > 0);
    free(o);
}

TEST(a_run_that_is_not_to_tell_does_not)
{
    gmd_outcome *o = run_pairs(GMD_COSTS_IGNORED);
    assert_int_equal(result_of(o, "alignment")->asked, 0);
    free(o);
}

TEST(what_is_only_sampled_is_still_counted)
{
    gmd_outcome *o = run_pairs(GMD_COSTS_SAMPLED);
    assert_int_equal(result_of(o, "alignment")->asked, PAIRS);
    free(o);
}

/* About 80 of its moments are timed: an estimate that is out by more than a factor of 30 is none.
 */
TEST(a_sample_stands_for_all_moments)
{
    gmd_outcome *all = run_many(GMD_COSTS_MEASURED, 20 * PAIRS);
    gmd_outcome *some = run_many(GMD_COSTS_SAMPLED, 20 * PAIRS);
    double measured = result_of(all, "overlap")->seconds;
    double sampled = result_of(some, "overlap")->seconds;
    assert_true(sampled > measured / 30 && sampled < measured * 30);
    free(all);
    free(some);
}
