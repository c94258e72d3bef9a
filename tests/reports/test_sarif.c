/* The SARIF report: what a code host shows beside a change. It also leaves *.sarif in the working
 * folder for the test reports/sarif_schema. */
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

FIXTURE(sarif, sample_setup, release);

/* The one run of the log; a copy goes to FILE.sarif. */
static json_t *report_on(const char *file, const gmd_report *report)
{
    char path[64];
    json_error_t error;
    char *text = sample_written(gmd_report_sarif, report);
    assert_non_null(text);
    snprintf(path, sizeof path, "%s.sarif", file);
    FILE *copy = fopen(path, "w");
    assert_non_null(copy);
    fputs(text, copy);
    fclose(copy);
    root = json_loads(text, JSON_REJECT_DUPLICATES, &error);
    free(text);
    assert_non_null(root);
    return json_array_get(json_object_get(root, "runs"), 0);
}

static json_t *run_of(const char *file, const gmd_outcome *first, const gmd_outcome *second)
{
    return report_on(file, sample_report("run", first, second, NULL));
}

/* Follows keys and array indices, "results.0.message.text". */
static json_t *at(json_t *value, const char *path)
{
    char copy[128], *rest = NULL;
    snprintf(copy, sizeof copy, "%s", path);
    for (char *key = strtok_r(copy, ".", &rest); key; key = strtok_r(NULL, ".", &rest)) {
        value = json_is_array(value) ? json_array_get(value, strtoul(key, NULL, 10))
                                     : json_object_get(value, key);
    }
    return value;
}

static const char *text_at(json_t *value, const char *path)
{
    const char *text = json_string_value(at(value, path));
    return text ? text : "(no string)";
}

TEST_F(sarif, the_log_names_its_version)
{
    run_of("passing", &sample_passing, NULL);
    assert_string_equal(text_at(root, "version"), "2.1.0");
}

TEST_F(sarif, what_passes_has_no_results)
{
    json_t *run = run_of("passing", &sample_passing, NULL);
    assert_int_equal(json_array_size(at(run, "results")), 0);
}

TEST_F(sarif, a_violation_is_a_result_of_its_kinds_rule)
{
    json_t *run = run_of("failing", &sample_passing, &sample_failing);
    char rule[40];
    snprintf(rule, sizeof rule, "tool.driver.rules.%" JSON_INTEGER_FORMAT ".id",
             json_integer_value(at(run, "results.0.ruleIndex")));
    assert_string_equal(text_at(run, "results.0.ruleId"), "overlap.shared");
    assert_string_equal(text_at(run, rule), "overlap.shared");
    assert_string_equal(text_at(run, "results.0.message.text"), "b3 shares 512 B with b1");
    assert_int_equal(json_integer_value(at(run, "results.0.properties.request")), 17);
}

TEST_F(sarif, a_rule_says_what_the_kind_means)
{
    json_t *run = run_of("failing", &sample_failing, NULL);
    char rule[60];
    snprintf(rule, sizeof rule, "tool.driver.rules.%" JSON_INTEGER_FORMAT ".shortDescription.text",
             json_integer_value(at(run, "results.0.ruleIndex")));
    assert_string_equal(text_at(run, rule), "two live blocks share bytes");
}

TEST_F(sarif, the_place_is_the_trace_with_its_case_beside_it)
{
    json_t *run = run_of("failing", &sample_failing, NULL);
    const char *uri = "physicalLocation.artifactLocation.uri";
    char place[80], beside[80];
    snprintf(place, sizeof place, "results.0.locations.0.%s", uri);
    snprintf(beside, sizeof beside, "results.0.relatedLocations.0.%s", uri);
    assert_string_equal(text_at(run, place), "short.gmd");
    assert_string_equal(text_at(run, beside), "gmd-cases/overlap.gmd");
}

TEST_F(sarif, the_place_of_a_scenarios_finding_is_its_case)
{
    snprintf(sample_failing.kind, sizeof sample_failing.kind, "scenario");
    json_t *run = run_of("scenario", &sample_failing, NULL);
    assert_string_equal(text_at(run, "results.0.locations.0.physicalLocation.artifactLocation.uri"),
                        "gmd-cases/overlap.gmd");
    assert_string_equal(text_at(run, "results.0.locations.0.logicalLocations.0.fullyQualifiedName"),
                        "scenario/short.gmd");
}

TEST_F(sarif, a_file_name_becomes_a_valid_uri)
{
    snprintf(sample_failing.name, sizeof sample_failing.name, "/tmp/a b%%.gmd");
    json_t *run = run_of("uri", &sample_failing, NULL);
    assert_string_equal(text_at(run, "results.0.locations.0.physicalLocation.artifactLocation.uri"),
                        "file:///tmp/a%20b%25.gmd");
}

/* The fingerprint of the failing sample with this message and party; the caller frees it. */
static char *fingerprint_with(const char *message, const char *party)
{
    gmd_violation *violation = sample_failing.violations;
    snprintf(violation->message, sizeof violation->message, "%s", message);
    gmd_identity_make(&violation->identity, GMD_KIND(overlap, shared), GMD_PARTIES({"by", party}));
    json_t *run = run_of("fingerprint", &sample_failing, NULL);
    char *text = strdup(text_at(run, "results.0.partialFingerprints.gmdCause/v2"));
    release(NULL);
    return text;
}

TEST_F(sarif, a_defect_keeps_its_fingerprint_whatever_the_words)
{
    char *first = fingerprint_with("b3 shares 512 B with b1", "two");
    char *same = fingerprint_with("the blocks b17 and b2 share 1024 B", "two");
    char *other = fingerprint_with("b3 shares 512 B with b1", "three");
    int is_same = strcmp(first, same) == 0, is_other = strcmp(first, other) != 0;
    free(first);
    free(same);
    free(other);
    assert_true(is_same && is_other);
}

TEST_F(sarif, a_skipped_oracle_is_a_note_with_its_reason)
{
    json_t *run = run_of("passing", &sample_passing, NULL);
    assert_string_equal(text_at(run, "invocations.0.toolExecutionNotifications.0.level"), "note");
    assert_string_equal(text_at(run, "invocations.0.toolExecutionNotifications.0.message.text"),
                        "growth leak=true: leak was not judged: no device figures");
}

TEST_F(sarif, a_run_has_its_peaks_retries_and_refusals_as_far_as_they_are_known)
{
    sample_passing.has_stats = true;
    sample_passing.stats = (gmd_stats){.allocated_bytes_peak = 7,
                                       .reserved_bytes_peak = 9,
                                       .num_alloc_retries = GMD_STAT_UNKNOWN,
                                       .num_ooms = 757};
    json_t *run = at(run_of("figures", &sample_passing, NULL), "invocations.0.properties.runs.0");
    assert_int_equal(json_integer_value(at(run, "num_ooms")), 757);
    assert_int_equal(json_integer_value(at(run, "allocated_bytes_peak")), 7);
    assert_int_equal(json_integer_value(at(run, "reserved_bytes_peak")), 9);
    assert_null(at(run, "num_alloc_retries"));
}

TEST_F(sarif, a_run_that_failed_to_run_is_no_successful_execution)
{
    sample_passing.verdict = GMD_ERROR;
    snprintf(sample_passing.error, sizeof sample_passing.error, "no such library");
    json_t *run = run_of("error", &sample_passing, NULL);
    assert_true(json_is_false(at(run, "invocations.0.executionSuccessful")));
    assert_string_equal(text_at(run, "invocations.0.toolExecutionNotifications.0.message.text"),
                        "growth leak=true: no such library");
}

TEST_F(sarif, a_history_that_is_not_reproduced_is_a_result)
{
    sample_exact.check.exact = false;
    sample_exact.check.matched = 7;
    sample_exact.verdict = GMD_FAIL;
    json_t *run = run_of("not_exact", &sample_exact, NULL);
    assert_string_equal(text_at(run, "results.0.ruleId"), "exact");
    assert_string_equal(text_at(run, "results.0.message.text"), "7 of 10236 requests matched");
}

TEST_F(sarif, a_failure_that_no_oracle_owns_is_a_result_all_the_same)
{
    sample_passing.verdict = GMD_FAIL;
    json_t *run = run_of("unexplained", &sample_passing, NULL);
    assert_string_equal(text_at(run, "results.0.ruleId"), "run");
}

TEST_F(sarif, a_finding_of_the_gate_says_how_to_replay_it)
{
    gmd_gate_finding finding = {.violation = sample_failing.violations[0],
                                .part = "cases",
                                .item = "rmm868",
                                .replay = "gmd run rmm868.gmd"};
    gmd_gate_result gate = {.findings = &finding, .finding_count = 1};
    gmd_report report = *sample_report("gate", &sample_failing, NULL, NULL);
    report.gate = &gate;
    json_t *run = report_on("gate", &report);
    assert_string_equal(text_at(run, "results.0.properties.replay"), "gmd run rmm868.gmd");
    assert_string_equal(text_at(run, "results.0.locations.0.logicalLocations.0.name"),
                        "cases/rmm868");
}

TEST_F(sarif, hostile_text_stays_text)
{
    sample_make_hostile(&sample_passing);
    sample_make_hostile(&sample_failing);
    json_t *run = run_of("hostile", &sample_passing, &sample_failing);
    assert_string_equal(text_at(run, "results.0.message.text"),
                        "a <b> & \"c\" | \x01 \xEF\xBF\xBD \n]]> \xC3\xA9");
}
