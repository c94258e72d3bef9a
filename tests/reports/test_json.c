/* The JSON report: the keys that design.md section 7 promises to programs, read by an independent
 * parser. It also leaves *.report.json in the working folder for the test reports/outputs. */
#include "gmd_test.h"
#include "sample.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

static json_t *root;

static int release(void **state)
{
    (void)state;
    json_decref(root);
    root = NULL;
    return 0;
}

FIXTURE(json, sample_setup, release);

static void keep_copy(const char *text)
{
    static unsigned number;
    char path[40];
    snprintf(path, sizeof path, "sample_%u.report.json", number++);
    FILE *copy = fopen(path, "w");
    assert_non_null(copy);
    fputs(text, copy);
    fclose(copy);
}

static json_t *report_on(const char *command, const gmd_outcome *first, const gmd_outcome *second,
                         const gmd_outcome *third)
{
    char *text = sample_written(gmd_report_json, sample_report(command, first, second, third));
    json_error_t error;
    assert_non_null(text);
    keep_copy(text);
    root = json_loads(text, JSON_REJECT_DUPLICATES, &error);
    free(text);
    assert_non_null(root);
    return root;
}

static const char *string_at(json_t *object, const char *key)
{
    const char *value = json_string_value(json_object_get(object, key));
    return value ? value : "(no string)";
}

static json_int_t integer_at(json_t *object, const char *key)
{
    json_t *value = json_object_get(object, key);
    assert_true(json_is_integer(value));
    return json_integer_value(value);
}

static json_t *item(json_t *object, const char *key, size_t index)
{
    json_t *array = json_object_get(object, key);
    assert_true(json_is_array(array));
    assert_true(index < json_array_size(array));
    return json_array_get(array, index);
}

TEST_F(json, the_head_names_gmd_command_allocator_device_and_seed)
{
    json_t *report = report_on("run", &sample_passing, NULL, NULL);
    assert_string_equal(string_at(report, "gmd"), "0.1.0");
    assert_string_equal(string_at(report, "command"), "run");
    assert_string_equal(string_at(report, "allocator"), "reference");
    assert_string_equal(string_at(report, "device"), "sim");
    assert_int_equal(integer_at(report, "seed"), 7);
}

TEST_F(json, requests_and_seconds_are_sums)
{
    json_t *report = report_on("run", &sample_passing, &sample_failing, NULL);
    assert_int_equal(integer_at(report, "requests"), 2018);
    assert_true(json_real_value(json_object_get(report, "seconds")) == 0.251);
}

TEST_F(json, a_failure_outweighs_passes)
{
    json_t *report = report_on("run", &sample_passing, &sample_failing, &sample_exact);
    assert_string_equal(string_at(report, "verdict"), "fail");
}

TEST_F(json, an_error_outweighs_failures_and_brings_its_text)
{
    sample_passing.verdict = GMD_ERROR;
    snprintf(sample_passing.error, sizeof sample_passing.error, "plugin.so: no gmd_malloc");
    json_t *report = report_on("run", &sample_failing, &sample_passing, NULL);
    assert_string_equal(string_at(report, "verdict"), "error");
    assert_string_equal(string_at(report, "error"), "plugin.so: no gmd_malloc");
}

TEST_F(json, a_verdict_that_is_none_is_an_error)
{
    sample_passing.verdict = 99;
    json_t *report = report_on("run", &sample_passing, NULL, NULL);
    assert_string_equal(string_at(report, "verdict"), "error");
}

TEST_F(json, no_outcome_at_all_is_an_error)
{
    json_t *report = report_on("run", NULL, NULL, NULL);
    assert_string_equal(string_at(report, "verdict"), "error");
    assert_string_equal(string_at(report, "error"), "nothing was run");
}

TEST_F(json, a_violation_names_run_oracle_request_message_and_case)
{
    json_t *violation =
        item(report_on("run", &sample_passing, &sample_failing, NULL), "violations", 0);
    assert_string_equal(string_at(violation, "run"), "short.gmd");
    assert_string_equal(string_at(violation, "oracle"), "overlap");
    assert_int_equal(integer_at(violation, "request"), 17);
    assert_string_equal(string_at(violation, "message"), "b3 shares 512 B with b1");
    assert_string_equal(string_at(violation, "case"), "gmd-cases/overlap.gmd");
}

TEST_F(json, a_violation_without_a_case_has_null)
{
    sample_failing.violations[0].case_path[0] = '\0';
    json_t *violation = item(report_on("run", &sample_failing, NULL, NULL), "violations", 0);
    assert_true(json_is_null(json_object_get(violation, "case")));
}

TEST_F(json, oracles_that_ran_are_named_once_each)
{
    json_t *report = report_on("run", &sample_passing, &sample_failing, &sample_exact);
    assert_int_equal(json_array_size(json_object_get(report, "oracles")), 3);
    assert_string_equal(json_string_value(item(report, "oracles", 0)), "overlap");
    assert_string_equal(json_string_value(item(report, "oracles", 1)), "backing");
    assert_string_equal(json_string_value(item(report, "oracles", 2)), "size");
}

TEST_F(json, a_skipped_oracle_is_listed_with_its_reason)
{
    json_t *report = report_on("run", &sample_passing, &sample_passing, NULL);
    assert_int_equal(json_array_size(json_object_get(report, "skipped_oracles")), 1);
    assert_string_equal(json_string_value(item(report, "skipped_oracles", 0)), "leak");
    assert_string_equal(string_at(json_object_get(report, "skip_reasons"), "leak"),
                        "no device figures");
}

TEST_F(json, an_oracle_skipped_in_one_run_and_asked_in_another_is_on_both_lists)
{
    sample_failing.oracles[1] = sample_passing.oracles[2];
    sample_failing.oracles[1].fate = GMD_ORACLE_PASSED;
    json_t *report = report_on("run", &sample_passing, &sample_failing, NULL);
    assert_string_equal(json_string_value(item(report, "oracles", 2)), "leak");
    assert_string_equal(json_string_value(item(report, "skipped_oracles", 0)), "leak");
}

TEST_F(json, statistics_are_those_of_the_last_run_that_has_them)
{
    static gmd_outcome later;
    later = sample_passing;
    later.stats.allocated_bytes = 6;
    json_t *stats =
        json_object_get(report_on("run", &sample_passing, &later, &sample_failing), "stats");
    assert_int_equal(integer_at(stats, "allocated_bytes"), 6);
}

TEST_F(json, a_figure_that_nobody_kept_is_null)
{
    json_t *stats = json_object_get(report_on("run", &sample_passing, NULL, NULL), "stats");
    assert_true(json_is_null(json_object_get(stats, "num_ooms")));
    assert_int_equal(integer_at(stats, "num_alloc_retries"), 0);
}

TEST_F(json, without_statistics_stats_is_null)
{
    json_t *report = report_on("run", &sample_failing, NULL, NULL);
    assert_true(json_is_null(json_object_get(report, "stats")));
}

TEST_F(json, a_limit_names_its_clauses_and_a_defect_has_none)
{
    gmd_violation *v = sample_failing.violations;
    v[1] = v[0];
    sample_failing.violation_count = 2;
    snprintf(v[1].limit, sizeof v[1].limit, "largest,pool");
    json_t *report = report_on("run", &sample_failing, NULL, NULL);
    assert_null(json_object_get(item(report, "violations", 0), "limit"));
    json_t *limit = json_object_get(item(report, "violations", 1), "limit");
    assert_int_equal(json_array_size(limit), 2);
    assert_string_equal(json_string_value(json_array_get(limit, 1)), "pool");
}

TEST_F(json, each_scenario_has_its_name_variant_verdict_and_phases)
{
    json_t *scenario =
        item(report_on("run", &sample_failing, &sample_passing, NULL), "scenarios", 1);
    assert_string_equal(string_at(scenario, "name"), "growth");
    assert_string_equal(string_at(scenario, "kind"), "scenario");
    assert_string_equal(string_at(scenario, "variant"), "leak=true");
    assert_string_equal(string_at(scenario, "verdict"), "pass");
    json_t *phase = item(scenario, "phases", 1);
    assert_string_equal(string_at(phase, "label"), "step 1");
    assert_int_equal(integer_at(phase, "allocated"), 150 << 20);
    assert_int_equal(integer_at(phase, "max_allocated"), 1200 << 20);
    assert_int_equal(integer_at(phase, "reserved"), 1210 << 20);
    assert_int_equal(integer_at(phase, "max_reserved"), 1210 << 20);
}

TEST_F(json, a_check_has_what_was_compared)
{
    json_t *check = json_object_get(report_on("replay", &sample_exact, NULL, NULL), "check");
    assert_int_equal(integer_at(check, "requests"), 10236);
    assert_int_equal(integer_at(check, "matched"), 10236);
    assert_true(json_is_true(json_object_get(check, "exact")));
    assert_true(json_is_null(json_object_get(check, "first_difference")));
    assert_int_equal(json_array_size(json_object_get(check, "quirks")), 0);
    assert_int_equal(integer_at(check, "device_events"), 674);
    assert_true(json_is_true(json_object_get(check, "end_state_checked")));
    assert_true(json_is_true(json_object_get(check, "statistics_checked")));
    assert_int_equal(integer_at(check, "blocks_compared"), 93);
    assert_int_equal(integer_at(check, "figures_compared"), 24);
    assert_true(integer_at(check, "limit") == (json_int_t)2560 << 20);
    assert_true(json_is_true(json_object_get(check, "limit_inferred")));
}

TEST_F(json, the_check_shown_first_is_the_one_that_differs)
{
    static gmd_outcome exact;
    exact = sample_exact;
    sample_differ();
    json_t *check = json_object_get(report_on("replay", &exact, &sample_exact, NULL), "check");
    assert_int_equal(integer_at(check, "matched"), 512);
    json_t *difference = json_object_get(check, "first_difference");
    assert_int_equal(integer_at(difference, "request"), 512);
    assert_string_equal(string_at(difference, "what"), "address");
}

TEST_F(json, without_a_check_there_is_no_such_key)
{
    assert_null(json_object_get(report_on("run", &sample_passing, NULL, NULL), "check"));
}

TEST_F(json, notes_of_several_runs_say_whose_they_are)
{
    json_t *report = report_on("replay", &sample_passing, &sample_exact, NULL);
    assert_string_equal(json_string_value(item(report, "notes", 0)),
                        "real.pickle.gz: limit inferred: 2560 MiB");
}

TEST_F(json, hostile_text_everywhere_stays_valid_json)
{
    sample_exact.check.exact = false;
    sample_exact.check.first_difference.present = true;
    sample_make_hostile(&sample_passing);
    sample_make_hostile(&sample_failing);
    sample_make_hostile(&sample_exact);
    json_t *report = report_on("replay", &sample_passing, &sample_failing, &sample_exact);
    assert_string_equal(string_at(item(report, "violations", 0), "message"),
                        "a <b> & \"c\" | \x01 \xEF\xBF\xBD \n]]> \xC3\xA9");
}

TEST_F(json, the_same_outcomes_give_the_same_bytes)
{
    char *first =
        sample_written(gmd_report_json, sample_report("run", &sample_passing, NULL, NULL));
    char *second =
        sample_written(gmd_report_json, sample_report("run", &sample_passing, NULL, NULL));
    assert_string_equal(first, second);
    free(first);
    free(second);
}
