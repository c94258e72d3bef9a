/* A JSON result that is read back: each writer makes of it what it made of the run, and what is no
 * result is refused at its place. */
#include "gmd_test.h"
#include "sample_read.h"

#include <stdlib.h>
#include <string.h>

static gmd_result_file *result;
static gmd_error error;

static int release(void **state)
{
    (void)state;
    gmd_result_file_free(result);
    result = NULL;
    return 0;
}

FIXTURE(result_file, sample_setup, release);

static void assert_survives(const gmd_report *report)
{
    result = sample_read_back(report);
}

TEST_F(result_file, passes_failures_and_exact_replays_survive)
{
    assert_survives(sample_report("run", &sample_passing, &sample_failing, &sample_exact));
}

TEST_F(result_file, an_inexact_replay_survives)
{
    gmd_check *check = &sample_exact.check;
    sample_differ();
    check->quirks[0] = (gmd_check_quirk){.name = "x", .count = 20, .requests = {1, 2, 3}};
    check->quirk_count = 1;
    assert_survives(sample_report("replay", &sample_exact, NULL, NULL));
}

TEST_F(result_file, a_replay_that_a_violation_cut_off_survives)
{
    sample_exact.verdict = GMD_FAIL;
    sample_exact.check.exact = false;
    sample_exact.check.is_cut_off = true;
    sample_exact.check.cut_off_at = 77;
    assert_survives(sample_report("replay", &sample_exact, NULL, NULL));
}

TEST_F(result_file, errors_survive)
{
    sample_passing.verdict = GMD_ERROR;
    sample_passing.error_status = GMD_BAD_INPUT;
    snprintf(sample_passing.error, sizeof sample_passing.error, "no such \"thing\"");
    assert_survives(sample_report("run", &sample_passing, NULL, NULL));
    assert_int_equal(gmd_result_file_report(result).outcomes[0]->error_status, GMD_BAD_INPUT);
}

TEST_F(result_file, an_interruption_survives)
{
    sample_failing.verdict = GMD_UNFINISHED;
    sample_failing.error_status = GMD_INTERRUPTED;
    snprintf(sample_failing.error, sizeof sample_failing.error, "interrupted after 3 requests");
    assert_survives(sample_report("run", &sample_passing, &sample_failing, NULL));
    assert_int_equal(gmd_result_file_report(result).outcomes[1]->error_status, GMD_INTERRUPTED);
}

TEST_F(result_file, bounds_and_paths_survive)
{
    sample_passing.bounds[0] = (gmd_stated_bound){.bytes = 5, .peak = 7, .passed_phase = 1};
    sample_passing.bounds[1] =
        (gmd_stated_bound){.is_reserved = true, .is_told_only = true, .peak = GMD_STAT_UNKNOWN};
    sample_passing.bound_count = 2;
    sample_passing.phases_dropped = 3;
    sample_passing.smallest_limit_bytes = 9;
    snprintf(sample_failing.path, sizeof sample_failing.path, "a/short.gmd");
    assert_survives(sample_report("run", &sample_passing, &sample_failing, NULL));
}

TEST_F(result_file, profiles_and_limits_survive)
{
    gmd_report report = *sample_report("run", &sample_failing, NULL, NULL);
    report.profile = "cub";
    report.beyond = "all";
    snprintf(sample_failing.violations[0].limit, sizeof sample_failing.violations[0].limit,
             "largest,failing_calls");
    assert_survives(&report);
    const gmd_report again = gmd_result_file_report(result);
    assert_string_equal(again.beyond, "all");
    assert_string_equal(again.outcomes[0]->violations[0].limit, "largest,failing_calls");
}

TEST_F(result_file, times_survive_to_the_last_digit)
{
    sample_passing.seconds = 0.1 + 0.2;
    sample_failing.seconds = 1.0 / 3e7;
    assert_survives(sample_report("run", &sample_passing, &sample_failing, NULL));
    assert_true(gmd_result_file_report(result).outcomes[1]->seconds == 1.0 / 3e7);
}

TEST_F(result_file, a_campaign_of_repeats_survives)
{
    const gmd_repeat repeat = {.first = 1, .count = 2};
    gmd_report report = *sample_report("run", &sample_failing, &sample_passing, &sample_passing);
    report.repeats = &repeat;
    report.repeat_count = 1;
    assert_survives(&report);
}

TEST_F(result_file, placements_survive)
{
    const gmd_repeat repeat = {.count = 2, .is_of_placements = true};
    snprintf(sample_failing.placement, sizeof sample_failing.placement, "seed 3");
    gmd_report report = *sample_report("run", &sample_passing, &sample_failing, NULL);
    report.repeats = &repeat;
    report.repeat_count = 1;
    assert_survives(&report);
    assert_true(gmd_result_file_report(result).repeats[0].is_of_placements);
}

TEST_F(result_file, hostile_text_survives)
{
    sample_make_hostile(&sample_passing);
    sample_make_hostile(&sample_failing);
    snprintf(sample_passing.kind, sizeof sample_passing.kind, "k"); /* too small for U+FFFD, too */
    snprintf(sample_failing.kind, sizeof sample_failing.kind, "k");
    for (uint32_t i = 0; i < sample_passing.oracle_count; i++) {
        snprintf(sample_passing.oracles[i].name, sizeof sample_passing.oracles[i].name, "<&%u", i);
    }
    for (uint32_t i = 0; i < sample_failing.oracle_count; i++) {
        snprintf(sample_failing.oracles[i].name, sizeof sample_failing.oracles[i].name, "<&%u", i);
    }
    snprintf(sample_failing.violations[0].oracle, sizeof sample_failing.violations[0].oracle,
             "<&0");
    snprintf(sample_failing.violations[0].identity.kind,
             sizeof sample_failing.violations[0].identity.kind, "<&0.%s", sample_hostile);
    /* A URI has the bytes of a file's name, of which JSON keeps only UTF-8. */
    snprintf(sample_failing.violations[0].case_path, sizeof sample_failing.violations[0].case_path,
             "a \"<b>\" %%\xC3\xA9.gmd");
    assert_survives(sample_report("run", &sample_passing, &sample_failing, NULL));
}

TEST_F(result_file, a_text_that_became_too_long_is_cut_after_a_character)
{
    memset(sample_passing.variant, '\xFF',
           sizeof sample_passing.variant - 1); /* 127 times U+FFFD */
    char *json = sample_written(gmd_report_json, sample_report("run", &sample_passing, NULL, NULL));
    assert_int_equal(gmd_result_file_parse(&result, json, strlen(json), "r.json", &error), GMD_OK);
    free(json);
    const char *variant = gmd_result_file_report(result).outcomes[0]->variant;
    assert_int_equal(strlen(variant), 126);
    assert_memory_equal(variant + 123, "\xEF\xBF\xBD", 4);
}

/* --- what is no result ------------------------------------------------------------------- */

/* The JSON of a passing run, in which `what` is replaced once; refused with the message. */
static void assert_refused(const char *what, const char *with, const char *message)
{
    sample_refuse(sample_report("run", &sample_passing, NULL, NULL), what, with, message);
}

TEST_F(result_file, a_kind_of_another_oracle_is_refused)
{
    gmd_violation *v = &sample_failing.violations[0];
    snprintf(v->identity.kind, sizeof v->identity.kind, "leak.streams");
    sample_refuse(sample_report("run", &sample_failing, NULL, NULL), "{", "{",
                  "r.json: scenarios[0].violations[0]: \"kind\": expected one of the oracle "
                  "\"overlap\", found \"leak.streams\"");
}

TEST_F(result_file, wrong_types_are_refused)
{
    assert_refused("\"phases\": [", "\"phases\": 5, \"x\": [",
                   "r.json: scenarios[0]: \"phases\": expected an array, found a number");
    assert_refused("\"label\": \"model\"", "\"label\": null",
                   "r.json: scenarios[0].phases[0]: \"label\": expected a string, found null");
    assert_refused("\"device_calls\": 12", "\"device_calls\": \"12\"",
                   "\"device_calls\": expected a number, found a string");
    assert_refused("\"scenarios\": [", "\"scenarios\": [7, ",
                   "r.json: scenarios: [0]: expected an object, found a number");
}

TEST_F(result_file, missing_keys_are_refused)
{
    assert_refused("\"device_calls\": 12,", "", "the key \"device_calls\" is missing");
    assert_refused("\"scenarios\"", "\"replays\"", "the key \"scenarios\" is missing");
}

TEST_F(result_file, keys_that_are_there_twice_are_refused)
{
    assert_refused("\"device_calls\": 12,", "\"device_calls\": 12, \"device_calls\": 13,",
                   "duplicate object key");
}

TEST_F(result_file, numbers_beyond_their_range_are_refused)
{
    assert_refused("\"device_calls\": 12", "\"device_calls\": 9223372036854775808",
                   "too big integer");
    assert_refused("\"device_calls\": 12", "\"device_calls\": 1.5", "expected a whole number");
    assert_refused("\"device_calls\": 12", "\"device_calls\": -1", "expected a whole number");
    assert_refused("\"seconds\": 0.250000,\n      \"phases\"", "\"seconds\": -1,\n      \"phases\"",
                   "\"seconds\": expected a number of seconds");
    assert_refused("\"seconds\": 0.250000,\n      \"phases\"",
                   "\"seconds\": 1e999,\n      \"phases\"", "real number overflow");
}

TEST_F(result_file, a_word_that_is_none_is_refused)
{
    assert_refused("\"name\": \"backing\", \"verdict\": \"pass\"",
                   "\"name\": \"backing\", \"verdict\": \"perhaps\"",
                   "expected one of \"pass\", \"fail\", \"skipped\", found \"perhaps\"");
}

TEST_F(result_file, a_verdict_that_its_runs_do_not_have_is_refused)
{
    assert_refused("\"verdict\": \"pass\"", "\"verdict\": \"fail\"",
                   "\"verdict\" is \"fail\", and that of the runs together \"pass\"");
}

TEST_F(result_file, a_result_of_an_earlier_gmd_is_refused_with_the_reason)
{
    assert_refused("\"oracles\": [\n        {", "\"other\": [\n        {",
                   "an earlier gmd wrote this, without what each oracle said");
}

TEST_F(result_file, more_than_a_run_can_have_is_refused)
{
    char many[4 * GMD_VIOLATION_MAX + 64] = "\"violations\": [{}";
    size_t used = strlen(many);
    for (int i = 0; i < GMD_VIOLATION_MAX; i++) {
        used += (size_t)snprintf(many + used, sizeof many - used, ",{}");
    }
    snprintf(many + used, sizeof many - used, "],\n      \"oracles\"");
    assert_refused("\"violations\": [],\n      \"oracles\"", many,
                   "scenarios[0].violations: 33 values, expected up to 32");
}

TEST_F(result_file, another_json_is_refused)
{
    assert_int_equal(gmd_result_file_parse(&result, "[1, 2]", 6, "r.json", &error), GMD_BAD_INPUT);
    assert_string_equal(
        error.text, "r.json: expected what gmd writes with --json: an object with the key \"gmd\"");
}

TEST_F(result_file, no_json_is_refused_with_line_and_column)
{
    assert_refused("\"seed\": ", "\"seed\" ", "r.json:6:10: ");
    assert_refused("\"seed\": ", "\"seed\" ", "expected JSON: ':' expected");
}

TEST_F(result_file, an_empty_file_is_refused)
{
    assert_int_equal(gmd_result_file_parse(&result, NULL, 0, "r.json", &error), GMD_BAD_INPUT);
    assert_memory_equal(error.text, "r.json:1:", 9);
}

TEST_F(result_file, brackets_without_end_are_refused)
{
    static char text[1 << 20];
    memset(text, '[', sizeof text);
    assert_int_equal(gmd_result_file_parse(&result, text, sizeof text, "r.json", &error),
                     GMD_BAD_INPUT);
    assert_non_null(strstr(error.text, "maximum parsing depth reached"));
}
