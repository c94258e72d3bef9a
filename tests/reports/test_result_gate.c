/* The JSON of a gate that is read back: each writer makes of it what it made of the gate, and what
 * is no gate's is refused at its place. */
#include "gmd_test.h"
#include "sample_read.h"

#include <stdlib.h>
#include <string.h>

static gmd_result_file *result;
static gmd_error error;

/* --- a gate with everything in it -------------------------------------------------------- */

static gmd_gate_item case_items[4], memory_items[2];
static gmd_gate_part parts[3];
static gmd_gate_finding findings[2];
static gmd_gate_figure figures[7];
static gmd_gate_result gate;
static gmd_outcome outcome;

static void reset_parts(void)
{
    case_items[0] = (gmd_gate_item){.name = "two devices", .fate = GMD_GATE_SKIPPED};
    snprintf(case_items[0].detail, sizeof case_items[0].detail, "one device only");
    case_items[1] = (gmd_gate_item){.name = "general/rmm868",
                                    .fate = GMD_GATE_FAILED,
                                    .runs = 7,
                                    .requests = 60,
                                    .seconds = 0.1 + 0.2,
                                    .hits = 2};
    case_items[2] = (gmd_gate_item){
        .name = "refused", .fate = GMD_GATE_SKIPPED, .requests = 3, .seconds = 1.0 / 3e7};
    snprintf(case_items[2].detail, sizeof case_items[2].detail, "refused: no such setting");
    case_items[3] = (gmd_gate_item){.name = "general/cub156", .runs = 1, .requests = 4};
    snprintf(case_items[3].detail, sizeof case_items[3].detail,
             "threads spin outside the scheduler's control");
    memory_items[0] = (gmd_gate_item){
        .name = "scenarios/gpt/ample", .fate = GMD_GATE_FAILED, .runs = 1, .hits = 3};
    memory_items[1] =
        (gmd_gate_item){.name = "scenarios/gpt/scarce", .fate = GMD_GATE_FAILED, .hits = 1};
    snprintf(memory_items[1].detail, sizeof memory_items[1].detail, "not measured: it crashed");
    parts[0] = (gmd_gate_part){.name = "cases",
                               .category = "correctness",
                               .items = case_items,
                               .item_count = 4,
                               .was_run = true};
    parts[1] = (gmd_gate_part){.name = "memory",
                               .category = "memory",
                               .items = memory_items,
                               .item_count = 2,
                               .was_run = true};
    parts[2] = (gmd_gate_part){
        .name = "speed", .category = "speed", .reason = "the baseline is of another machine"};
}

static void set_figure(size_t at, const char *item, const char *name, const char *unit,
                       gmd_gate_change change)
{
    gmd_gate_figure *f = &figures[at];
    *f = (gmd_gate_figure){.category = "memory", .change = change};
    snprintf(f->item, sizeof f->item, "%s", item);
    snprintf(f->name, sizeof f->name, "%s", name);
    snprintf(f->unit, sizeof f->unit, "%s", unit);
}

static void set_spans(size_t at, gmd_gate_span now, gmd_gate_span before)
{
    figures[at].now = now;
    figures[at].before = before;
    figures[at].excess = gmd_gate_excess(now, before);
}

static void reset_figures(void)
{
    set_figure(0, "scenarios/gpt/scarce", "refused", "calls", GMD_GATE_LOST);
    figures[0].before = (gmd_gate_span){4, 4, 4};
    snprintf(figures[0].detail, sizeof figures[0].detail, "it crashed");
    set_figure(1, "scenarios/gpt/ample", "time", "ratio", GMD_GATE_WORSE);
    set_spans(1, (gmd_gate_span){2.0 / 3, 0.6, 0.7}, (gmd_gate_span){1.0 / 3, 0.3, 0.4});
    set_figure(2, "scenarios/gpt/ample", "peak_reserved", "B", GMD_GATE_WORSE);
    set_spans(2, (gmd_gate_span){1003, 1003, 1003}, (gmd_gate_span){1000, 1000, 1000});
    set_figure(3, "scenarios/gpt/ample", "retries", "calls", GMD_GATE_WORSE);
    set_spans(3, (gmd_gate_span){2, 2, 2}, (gmd_gate_span){0, 0, 0});
    set_figure(4, "scenarios/gpt/ample", "device_calls", "calls", GMD_GATE_BETTER);
    set_spans(4, (gmd_gate_span){0x1p60, 0x1p60, 0x1p60}, (gmd_gate_span){0x1p61, 0x1p61, 0x1p61});
    set_figure(5, "scenarios/gpt/ample", "fragmentation", "ppm", GMD_GATE_SAME);
    set_spans(5, (gmd_gate_span){7, 7, 7}, (gmd_gate_span){7, 7, 7});
    set_figure(6, "scenarios/lstm/ample", "refused", "calls", GMD_GATE_UNJUDGED);
    figures[6].now = (gmd_gate_span){1, 1, 1};
}

static void reset_findings(void)
{
    for (size_t i = 0; i < 2; i++) {
        gmd_gate_finding *f = &findings[i];
        *f = (gmd_gate_finding){.violation = sample_failing.violations[0],
                                .case_requests = 3,
                                .unfinished = "minimised until its time was over",
                                .hits = 4,
                                .seconds = 0.7};
        snprintf(f->cause, sizeof f->cause, "b shares B with b");
        snprintf(f->part, sizeof f->part, "cases");
        snprintf(f->item, sizeof f->item, "general/rmm868");
        snprintf(f->replay, sizeof f->replay, "gmd run gmd-cases/overlap.gmd --allocator 'a b.so'");
    }
    findings[1].violation.oracle[0] = 'x';
    findings[1].violation.identity.kind[0] = 'x';
    findings[1].violation.case_path[0] = '\0';
    findings[1].violation.request = 0;
}

static int setup(void **state)
{
    (void)state;
    sample_reset();
    reset_parts();
    reset_figures();
    reset_findings();
    gate = (gmd_gate_result){.parts = parts,
                             .part_count = 3,
                             .findings = findings,
                             .finding_count = 2,
                             .figures = figures,
                             .figure_count = 7,
                             .baseline = {.path = "base.txt",
                                          .commands = "gmd gate --baseline base.txt",
                                          .notes = {"made on another machine", "2 are left"},
                                          .note_count = 2},
                             .oracle_count = sample_passing.oracle_count,
                             .seconds = 1.0 / 3,
                             .seed = 7,
                             .known_count = 5,
                             .is_quick = true};
    memcpy(gate.oracles, sample_passing.oracles, sizeof gate.oracles);
    return 0;
}

static int release(void **state)
{
    (void)state;
    gmd_result_file_free(result);
    result = NULL;
    return 0;
}

FIXTURE(result_gate, setup, release);

/* The gate as one that found nothing wrong. */
static void make_clean(void)
{
    gate.finding_count = 0;
    gate.figure_count = 0;
    gate.baseline = (gmd_gate_against){.path = ""};
    case_items[1].fate = GMD_GATE_PASSED;
    case_items[1].hits = 0;
    parts[1].item_count = 0;
    parts[1].was_run = false;
}

static gmd_report report_of_gate(void)
{
    outcome = (gmd_outcome){.verdict = GMD_PASS};
    gmd_gate_outcome(&gate, &outcome);
    gmd_report report = *sample_report("gate", &outcome, NULL, NULL);
    report.gate = &gate;
    return report;
}

/* --- what is read back ------------------------------------------------------------------- */

static void assert_survives(void)
{
    gmd_report report = report_of_gate();
    result = sample_read_back(&report);
}

TEST_F(result_gate, a_gate_with_findings_and_regressions_survives)
{
    assert_survives();
    assert_int_equal(gmd_result_file_report(result).outcomes[0]->verdict, GMD_FAIL);
}

TEST_F(result_gate, a_case_that_is_not_the_smallest_says_why)
{
    findings[1].unfinished[0] = '\0';
    const gmd_report report = report_of_gate();
    char *screen = sample_terminal(&report, (gmd_terminal){0});
    assert_int_equal(sample_count(screen, "; 3 requests, minimised until its time was over\n"), 1);
    assert_int_equal(sample_count(screen, "; 3 requests\n"), 1);
    free(screen);
}

TEST_F(result_gate, what_is_known_is_counted)
{
    assert_survives();
    const gmd_outcome *o = gmd_result_file_report(result).outcomes[0];
    assert_int_equal(o->known_count, 5);
    assert_string_equal(o->notes[0], "5 known violations not counted");
}

TEST_F(result_gate, a_clean_gate_without_a_baseline_survives)
{
    make_clean();
    assert_survives();
    assert_int_equal(gmd_result_file_report(result).outcomes[0]->verdict, GMD_PASS);
}

TEST_F(result_gate, a_gate_that_wrote_its_baseline_survives)
{
    make_clean();
    gate.figure_count = 1;
    figures[0] = figures[6];
    snprintf(gate.baseline.path, sizeof gate.baseline.path, "base.txt");
    gate.baseline.was_written = true;
    assert_survives();
}

TEST_F(result_gate, an_interrupted_gate_survives_with_its_findings)
{
    snprintf(gate.ended_early, sizeof gate.ended_early, "interrupted");
    gate.ended_by = GMD_GATE_INTERRUPTED;
    assert_survives();
    const gmd_outcome *o = gmd_result_file_report(result).outcomes[0];
    assert_int_equal(o->verdict, GMD_UNFINISHED);
    assert_int_equal(o->error_status, GMD_INTERRUPTED);
    assert_true(o->violation_count > 0);
}

TEST_F(result_gate, a_gate_that_gmd_failed_in_survives_as_an_error)
{
    snprintf(gate.ended_early, sizeof gate.ended_early, "fork: no more processes");
    gate.ended_by = GMD_GATE_BROKEN;
    assert_survives();
    const gmd_outcome *o = gmd_result_file_report(result).outcomes[0];
    assert_int_equal(o->verdict, GMD_ERROR);
    assert_int_equal(o->error_status, GMD_FAILED);
}

TEST_F(result_gate, a_gate_that_ended_with_its_first_finding_survives_as_a_failure)
{
    snprintf(gate.ended_early, sizeof gate.ended_early, "--fail-fast: the first finding ends it");
    assert_survives();
    assert_int_equal(gmd_result_file_report(result).outcomes[0]->verdict, GMD_FAIL);
}

TEST_F(result_gate, a_gate_of_nothing_survives)
{
    gate = (gmd_gate_result){.seed = 7};
    assert_survives();
}

TEST_F(result_gate, a_gate_that_could_not_begin_survives_as_a_run)
{
    sample_passing.verdict = GMD_ERROR;
    sample_passing.error_status = GMD_BAD_INPUT;
    snprintf(sample_passing.error, sizeof sample_passing.error, "none.so: there is no such file");
    const gmd_report *report = sample_report("gate", &sample_passing, NULL, NULL);
    char *json = sample_written(gmd_report_json, report);
    assert_int_equal(gmd_result_file_parse(&result, json, strlen(json), "r.json", &error), GMD_OK);
    free(json);
    assert_null(gmd_result_file_report(result).gate);
    assert_int_equal(gmd_result_file_report(result).outcomes[0]->error_status, GMD_BAD_INPUT);
}

TEST_F(result_gate, what_was_skipped_stays_where_it_was)
{
    assert_survives();
    const gmd_gate_part *part = &gmd_result_file_report(result).gate->parts[0];
    assert_string_equal(part->items[0].name, "two devices");
    assert_string_equal(part->items[2].name, "refused");
    assert_int_equal(part->items[2].fate, GMD_GATE_SKIPPED);
}

TEST_F(result_gate, hostile_text_survives)
{
    parts[0].name = sample_hostile;
    snprintf(parts[2].reason, sizeof parts[2].reason, "%s", sample_hostile);
    snprintf(case_items[0].name, sizeof case_items[0].name, "%s", sample_hostile);
    snprintf(case_items[3].detail, sizeof case_items[3].detail, "%s", sample_hostile);
    snprintf(figures[1].item, sizeof figures[1].item, "%s", sample_hostile);
    snprintf(gate.baseline.commands, sizeof gate.baseline.commands, "%s", sample_hostile);
    snprintf(gate.baseline.notes[0], sizeof gate.baseline.notes[0], "%s", sample_hostile);
    snprintf(findings[0].violation.message, sizeof findings[0].violation.message, "%s",
             sample_hostile);
    snprintf(findings[0].part, sizeof findings[0].part, "\"<&");
    snprintf(findings[0].replay, sizeof findings[0].replay, "%s", sample_hostile);
    snprintf(gate.ended_early, sizeof gate.ended_early, "%s", sample_hostile);
    assert_survives();
}

/* --- what is not ------------------------------------------------------------------------- */

/* The gate's JSON, in which `what` is replaced once; refused with the message. */
static void assert_refused(const char *what, const char *with, const char *message)
{
    gmd_report report = report_of_gate();
    sample_refuse(&report, what, with, message);
}

TEST_F(result_gate, a_gate_without_its_key_is_refused)
{
    assert_refused("\"gate\": {", "\"gates\": {", "r.json: the key \"gate\" is missing");
    assert_refused("\"gate\": {", "\"gate\": 1, \"x\": {",
                   "r.json: \"gate\": expected an object, found a number");
}

TEST_F(result_gate, a_gate_of_an_earlier_gmd_is_refused_with_the_reason)
{
    assert_refused("\"oracles\": [\n      {", "\"other\": [\n      {",
                   "r.json: gate: the key \"oracles\" is missing: an earlier gmd wrote this");
}

TEST_F(result_gate, wrong_types_are_refused)
{
    assert_refused("\"quick\": true", "\"quick\": 1",
                   "r.json: gate: \"quick\": expected true or false, found a number");
    assert_refused("\"ended_early\": null", "\"ended_early\": []",
                   "r.json: gate: \"ended_early\": expected a string, found an array");
    assert_refused("\"parts\": [", "\"parts\": [null, ",
                   "r.json: gate.parts: [0]: expected an object, found null");
    assert_refused("\"notes\": [\n        \"made", "\"notes\": [\n        5, \"made",
                   "r.json: gate.baseline.notes: [0]: expected a string, found a number");
    assert_refused("\"hits\": 2", "\"hits\": \"2\"",
                   "r.json: gate.parts[0].items[0]: \"hits\": expected a number, found a string");
    assert_refused("\"case_requests\": 3", "\"case_requests\": -3",
                   "r.json: gate.findings[0]: \"case_requests\": expected a whole number");
}

TEST_F(result_gate, missing_keys_are_refused)
{
    assert_refused("\"request\": 17,\n        \"part\"", "\"part\"",
                   "r.json: gate.findings[0]: the key \"request\" is missing");
    assert_refused("\"command\": \"gmd gate", "\"commands\": \"gmd gate",
                   "r.json: gate.baseline: the key \"command\" is missing");
    assert_refused("\"reason\": \"it crashed\"", "\"note\": \"it crashed\"",
                   "r.json: gate.figures[0]: the key \"reason\" is missing");
    assert_refused("\"value\": 7", "\"now\": 7",
                   "r.json: gate.figures[5]: the key \"value\" is missing");
}

TEST_F(result_gate, words_that_are_none_are_refused)
{
    assert_refused("\"change\": \"better\"", "\"change\": \"nicer\"",
                   "r.json: gate.figures[4]: \"change\": expected one of \"unjudged\"");
    assert_refused("\"name\": \"speed\",\n        \"category\": \"speed\"",
                   "\"name\": \"speed\",\n        \"category\": \"haste\"",
                   "r.json: gate.parts[2]: \"category\": expected one of \"correctness\"");
    assert_refused("\"general/cub156\", \"verdict\": \"pass\"",
                   "\"general/cub156\", \"verdict\": \"not run\"",
                   "r.json: gate.parts[0].items[1]: \"verdict\": expected one of \"pass\"");
}

TEST_F(result_gate, figures_beyond_their_range_are_refused)
{
    assert_refused("\"value\": 1003", "\"value\": -1",
                   "r.json: gate.figures[2]: \"value\": expected a number from 0 to 2^63");
    assert_refused("\"value\": 1003", "\"value\": 1e30", "expected a number from 0 to 2^63");
    assert_refused("\"value\": 1003", "\"value\": \"1003\"",
                   "\"value\": expected a number, found a string");
}

TEST_F(result_gate, intervals_that_are_none_are_refused)
{
    const char *place = "r.json: gate.figures[1].interval: expected two numbers from 0, with "
                        "\"value\" between them";
    assert_refused("\"interval\": [0.600000, 0.700000]", "\"interval\": [0.600000]", place);
    assert_refused("\"interval\": [0.600000, 0.700000]", "\"interval\": [0.7, 0.6]", place);
    assert_refused("\"interval\": [0.600000, 0.700000]", "\"interval\": [-1, 0.7]", place);
    assert_refused("\"interval\": [0.600000, 0.700000]", "\"interval\": [0.6, 1e30]", place);
    assert_refused("\"interval\": [0.600000, 0.700000]", "\"interval\": [1, 2, 3]",
                   "r.json: gate.figures[1].interval: 3 values, expected up to 2");
}

TEST_F(result_gate, a_place_among_the_items_that_is_none_is_refused)
{
    const char *message = "r.json: gate.parts[0].skipped[1]: \"index\": there is no such place "
                          "among the part's items";
    assert_refused("\"index\": 2", "\"index\": 4", message);
    assert_refused("\"index\": 2", "\"index\": 0", message);
}

TEST_F(result_gate, a_part_whose_verdict_its_items_do_not_have_is_refused)
{
    const char *cases = "\"category\": \"correctness\",\n        \"verdict\": \"fail\"";
    assert_refused(cases, "\"category\": \"correctness\",\n        \"verdict\": \"pass\"",
                   "r.json: gate.parts[0]: \"verdict\" is \"pass\", and that of the items "
                   "together \"fail\"");
    assert_refused(cases, "\"category\": \"correctness\",\n        \"verdict\": \"not run\"",
                   "r.json: gate.parts[0]: \"verdict\" is \"not run\"");
}

TEST_F(result_gate, a_verdict_that_the_gate_does_not_have_is_refused)
{
    assert_refused("\"verdict\": \"fail\"", "\"verdict\": \"pass\"",
                   "r.json: \"verdict\" is \"pass\", and that of the runs together \"fail\"");
}

TEST_F(result_gate, more_notes_than_a_baseline_can_have_are_refused)
{
    assert_refused("\"notes\": [\n        \"made",
                   "\"notes\": [\"\",\"\",\"\",\"\",\"\",\"\",\"\",\n        \"made",
                   "r.json: gate.baseline.notes: 9 values, expected up to 8");
}
