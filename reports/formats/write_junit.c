/* write_junit.c - JUnit XML as CI servers read it: a suite for each run, a test case for each
 * scenario, oracle and device.
 *
 * What matters most is that a run that is not a pass never looks green: whatever no other test case
 * shows ends in the case "run". */
#include "gate.h"
#include "gmd_report_text.h"
#include "gmd_xml.h"
#include "outcome.h"

#include <inttypes.h>
#include <string.h>

typedef struct suite {
    const gmd_report *report;
    const gmd_outcome *outcome;
    char title[GMD_TITLE_TEXT];
} suite;

typedef struct tally {
    unsigned cases, failures, errors, skipped;
} tally;

static tally tally_of(const gmd_outcome *outcome)
{
    tally sum = {.cases = outcome->oracle_count + 1 + outcome->check.present};
    for (uint32_t i = 0; i < outcome->oracle_count; i++) {
        sum.failures += outcome->oracles[i].fate == GMD_ORACLE_FAILED;
        sum.skipped += outcome->oracles[i].fate == GMD_ORACLE_SKIPPED;
    }
    sum.failures += outcome->check.present && !outcome->check.exact;
    sum.failures += is_unexplained_failure(outcome);
    sum.errors = is_error(outcome);
    return sum;
}

static tally tally_of_all(const gmd_report *report)
{
    tally sum = {0};
    for (size_t i = 0; i < report->outcome_count; i++) {
        tally one = tally_of(report->outcomes[i]);
        sum.cases += one.cases;
        sum.failures += one.failures;
        sum.errors += one.errors;
    }
    return sum;
}

/* The root has no `skipped` in the schemas that CI servers go by. */
static void put_tally(tally sum, double seconds, FILE *out)
{
    fprintf(out, " tests=\"%u\" failures=\"%u\" errors=\"%u\" time=\"%.6f\"", sum.cases,
            sum.failures, sum.errors, seconds);
}

/* CI servers follow a test case over time, and beside those of other files, by both its names. */
static void begin_case(const suite *s, const char *name, double seconds, FILE *out)
{
    fputs("    <testcase classname=\"gmd.", out);
    gmd_put_xml(s->report->device, out);
    putc('.', out);
    gmd_put_xml(s->outcome->kind, out);
    putc('.', out);
    gmd_put_xml(s->title, out);
    putc('"', out);
    gmd_put_attribute("name", name, out);
    fprintf(out, " time=\"%.6f\">\n", seconds);
}

static void end_case(FILE *out)
{
    fputs("    </testcase>\n", out);
}

/* Violations of `oracle`, of every oracle when NULL. */
static void put_violations(const gmd_outcome *outcome, const char *oracle, FILE *out)
{
    for (uint32_t i = 0; i < outcome->violation_count; i++) {
        const gmd_violation *violation = &outcome->violations[i];
        if (oracle && strcmp(violation->oracle, oracle) != 0) {
            continue;
        }
        char moment[GMD_MOMENT_TEXT];
        gmd_put_xml(violation_rule(violation), out);
        fprintf(out, ", %s: ", gmd_violation_moment(violation, moment));
        gmd_put_xml(violation->message, out);
        if (*violation->case_path) {
            fputs("\ncase: ", out);
            gmd_put_xml(violation->case_path, out);
        }
        putc('\n', out);
    }
}

static bool is_first_of_rule(const gmd_outcome *outcome, uint32_t index)
{
    const char *rule = violation_rule(&outcome->violations[index]);
    for (uint32_t i = 0; i < index; i++) {
        if (strcmp(violation_rule(&outcome->violations[i]), rule) == 0) {
            return false;
        }
    }
    return true;
}

/* The kinds of all violations of `oracle`, each once: a test case has one failure only. */
static void put_type(const gmd_outcome *outcome, const char *oracle, FILE *out)
{
    const char *between = "";
    fputs(" type=\"", out);
    for (uint32_t i = 0; i < outcome->violation_count; i++) {
        const gmd_violation *violation = &outcome->violations[i];
        bool is_meant = !oracle || strcmp(violation->oracle, oracle) == 0;
        if (is_meant && is_first_of_rule(outcome, i)) {
            fputs(between, out);
            gmd_put_xml(violation_rule(violation), out);
            between = ", ";
        }
    }
    if (!*between) {
        gmd_put_xml(oracle ? oracle : "run", out);
    }
    putc('"', out);
}

static const gmd_violation *first_violation(const gmd_outcome *outcome, const char *oracle)
{
    for (uint32_t i = 0; i < outcome->violation_count; i++) {
        if (!oracle || strcmp(outcome->violations[i].oracle, oracle) == 0) {
            return &outcome->violations[i];
        }
    }
    return NULL;
}

/* `oracle` NULL: the run as a whole. */
static void put_failure(const gmd_outcome *outcome, const char *oracle, FILE *out)
{
    const gmd_violation *first = first_violation(outcome, oracle);
    fputs("      <failure", out);
    gmd_put_attribute("message", first ? first->message : "failed without a message", out);
    put_type(outcome, oracle, out);
    putc('>', out);
    put_violations(outcome, oracle, out);
    fputs("</failure>\n", out);
}

static void put_oracle_case(const suite *s, const gmd_oracle_result *oracle, FILE *out)
{
    begin_case(s, oracle->name, 0, out);
    if (oracle->fate == GMD_ORACLE_FAILED) {
        put_failure(s->outcome, oracle->name, out);
    } else if (oracle->fate == GMD_ORACLE_SKIPPED) {
        fputs("      <skipped", out);
        gmd_put_attribute("message", oracle->reason, out);
        fputs("/>\n", out);
    }
    end_case(out);
}

static void put_check_case(const suite *s, FILE *out)
{
    const gmd_check *check = &s->outcome->check;
    begin_case(s, "exact", 0, out);
    if (!check->exact) {
        fprintf(out,
                "      <failure message=\"%" PRIu64 " of %" PRIu64
                " requests matched%s\" type=\"exact\">",
                check->matched, check->requests,
                check->is_cut_off ? ", then a violation ended it" : "");
        if (check->first_difference.present) {
            fprintf(out, "request %" PRIu64 ": ", check->first_difference.request);
            gmd_put_xml(check->first_difference.text, out);
            fputs("\nwhat: ", out);
            gmd_put_xml(check->first_difference.what, out);
            fputs("\nexpected: ", out);
            gmd_put_xml(check->first_difference.expected, out);
            fputs("\ngot: ", out);
            gmd_put_xml(check->first_difference.got, out);
            putc('\n', out);
        }
        fputs("</failure>\n", out);
    }
    end_case(out);
}

static void put_run_case(const suite *s, FILE *out)
{
    const gmd_outcome *outcome = s->outcome;
    begin_case(s, "run", outcome->seconds, out);
    if (is_unexplained_failure(outcome)) {
        put_failure(outcome, NULL, out);
    } else if (is_error(outcome)) {
        fputs("      <error", out);
        gmd_put_attribute("message", outcome->error, out);
        gmd_put_attribute("type", gmd_verdict_name(outcome->verdict), out);
        fputs("/>\n", out);
    }
    end_case(out);
}

static void put_property(const char *name, const char *value, FILE *out)
{
    fputs("      <property", out);
    gmd_put_attribute("name", name, out);
    gmd_put_attribute("value", value, out);
    fputs("/>\n", out);
}

static void put_properties(const gmd_report *report, const gmd_outcome *outcome, FILE *out)
{
    char number[24];
    fputs("    <properties>\n", out);
    put_property("allocator", report->allocator, out);
    put_property("device", report->device, out);
    snprintf(number, sizeof number, "%" PRIu64, outcome->seed);
    put_property("seed", number, out);
    if (*outcome->placement) {
        put_property("placement", outcome->placement, out);
    }
    snprintf(number, sizeof number, "%" PRIu64, outcome->requests);
    put_property("requests", number, out);
    if (report->command_line) {
        put_property("command_line", report->command_line, out);
    }
    fputs("    </properties>\n", out);
}

static void put_notes(const gmd_outcome *outcome, FILE *out)
{
    if (outcome->note_count == 0) {
        return;
    }
    fputs("    <system-out>", out);
    for (uint32_t i = 0; i < outcome->note_count; i++) {
        gmd_put_xml(outcome->notes[i], out);
        putc('\n', out);
    }
    fputs("</system-out>\n", out);
}

static void put_suite(const suite *s, FILE *out)
{
    const gmd_outcome *outcome = s->outcome;
    tally sum = tally_of(outcome);
    fputs("  <testsuite name=\"", out);
    gmd_put_xml(s->title, out);
    putc('"', out);
    put_tally(sum, outcome->seconds, out);
    fprintf(out, " skipped=\"%u\">\n", sum.skipped);
    put_properties(s->report, outcome, out);
    put_run_case(s, out);
    for (uint32_t i = 0; i < outcome->oracle_count; i++) {
        put_oracle_case(s, &outcome->oracles[i], out);
    }
    if (outcome->check.present) {
        put_check_case(s, out);
    }
    put_notes(outcome, out);
    fputs("  </testsuite>\n", out);
}

gmd_status gmd_report_junit(const gmd_report *report, FILE *out, gmd_error *error)
{
    double seconds = report_seconds(report);
    if (report->gate) {
        gate_junit(report, out);
        return gmd_finish_writing(out, "the JUnit report", error);
    }
    fputs("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites name=\"gmd\"", out);
    put_tally(tally_of_all(report), seconds, out);
    fputs(">\n", out);
    for (size_t i = 0; i < report->outcome_count; i++) {
        suite s = {.report = report, .outcome = report->outcomes[i]};
        gmd_outcome_title(report, i, s.title);
        put_suite(&s, out);
    }
    fputs("</testsuites>\n", out);
    return gmd_finish_writing(out, "the JUnit report", error);
}
