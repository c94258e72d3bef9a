/* write_gate_junit.c - the gate as JUnit XML: a suite for each part, a test case for each of its
 * items.
 *
 * A finding stands in the test case that came upon it first. A part that was not run has one case,
 * which is skipped: nothing that was not checked looks green. */
#include "gate.h"
#include "gate_figures.h"
#include "gmd_report_text.h"
#include "gmd_xml.h"
#include "outcome.h"

#include <inttypes.h>
#include <string.h>

static bool is_of_item(const gmd_gate_finding *f, const gmd_gate_part *part,
                       const gmd_gate_item *item)
{
    return strcmp(f->part, part->name) == 0 && strcmp(f->item, item->name) == 0;
}

static size_t findings_of(const gmd_gate_result *gate, const gmd_gate_part *part,
                          const gmd_gate_item *item)
{
    size_t count = 0;
    for (size_t i = 0; i < gate->finding_count; i++) {
        count += is_of_item(&gate->findings[i], part, item);
    }
    return count;
}

typedef struct tally {
    size_t cases, failures, errors, skipped;
} tally;

static tally tally_of(const gmd_gate_part *part)
{
    tally t = {.cases = part->item_count};
    for (size_t i = 0; i < part->item_count; i++) {
        t.failures += part->items[i].fate == GMD_GATE_FAILED;
        t.skipped += part->items[i].fate == GMD_GATE_SKIPPED;
    }
    return part->item_count ? t : (tally){.cases = 1, .skipped = 1};
}

/* The root has no `skipped` in the schemas that CI servers go by. */
static void put_tally(tally t, double seconds, FILE *out)
{
    fprintf(out, " tests=\"%zu\" failures=\"%zu\" errors=\"%zu\" time=\"%.6f\"", t.cases,
            t.failures, t.errors, seconds);
}

static bool is_first_of_rule(const gmd_gate_result *gate, const gmd_gate_part *part,
                             const gmd_gate_item *item, size_t index)
{
    const char *rule = violation_rule(&gate->findings[index].violation);
    bool is_first = is_of_item(&gate->findings[index], part, item);
    for (size_t i = 0; i < index && is_first; i++) {
        const gmd_gate_finding *f = &gate->findings[i];
        is_first = !is_of_item(f, part, item) || strcmp(violation_rule(&f->violation), rule) != 0;
    }
    return is_first;
}

/* The kinds of all findings of the item, each once: a test case has one failure only. */
static void put_type(const gmd_gate_result *gate, const gmd_gate_part *part,
                     const gmd_gate_item *item, FILE *out)
{
    const char *between = "";
    fputs(" type=\"", out);
    for (size_t i = 0; i < gate->finding_count; i++) {
        if (is_first_of_rule(gate, part, item, i)) {
            fputs(between, out);
            gmd_put_xml(violation_rule(&gate->findings[i].violation), out);
            between = ", ";
        }
    }
    putc('"', out);
}

static void put_failure(const gmd_gate_result *gate, const gmd_gate_part *part,
                        const gmd_gate_item *item, FILE *out)
{
    if (gmd_gate_regressions(gate, part->category, item->name)) {
        gate_figures_junit(gate, part, item, out);
        return;
    }
    if (strcmp(part->category, "correctness") != 0) { /* it says why */
        fputs("      <failure", out);
        gmd_put_attribute("message", item->detail, out);
        fputs(" type=\"not measured\"/>\n", out);
        return;
    }
    if (!findings_of(gate, part, item)) {
        fprintf(out,
                "      <failure message=\"%" PRIu64 " runs came upon findings that others came "
                "upon first\" type=\"known\"/>\n",
                item->hits);
        return;
    }
    for (size_t i = 0; i < gate->finding_count; i++) {
        const gmd_gate_finding *f = &gate->findings[i];
        if (is_of_item(f, part, item)) {
            fputs("      <failure", out);
            gmd_put_attribute("message", f->violation.message, out);
            put_type(gate, part, item, out);
            fputs(">replay: ", out);
            gmd_put_xml(f->replay, out);
            fputs("\n</failure>\n", out);
            break; /* the schema has room for one; the others are in the output */
        }
    }
    fputs("      <system-out>", out);
    for (size_t i = 0; i < gate->finding_count; i++) {
        const gmd_gate_finding *f = &gate->findings[i];
        if (is_of_item(f, part, item)) {
            gmd_put_xml(violation_rule(&f->violation), out);
            fputs(": ", out);
            gmd_put_xml(f->violation.message, out);
            fputs("\nreplay: ", out);
            gmd_put_xml(f->replay, out);
            putc('\n', out);
        }
    }
    fputs("</system-out>\n", out);
}

static void put_item(const gmd_gate_result *gate, const gmd_gate_part *part,
                     const gmd_gate_item *item, FILE *out)
{
    fputs("    <testcase classname=\"gmd.gate.", out);
    gmd_put_xml(part->name, out);
    putc('"', out);
    gmd_put_attribute("name", item->name, out);
    fprintf(out, " time=\"%.6f\">\n", item->seconds);
    if (item->fate == GMD_GATE_SKIPPED) {
        fputs("      <skipped", out);
        gmd_put_attribute("message", item->detail, out);
        fputs("/>\n", out);
    } else if (item->fate == GMD_GATE_FAILED) {
        put_failure(gate, part, item, out);
    } else if (item->detail[0]) {
        fputs("      <system-out>", out);
        gmd_put_xml(item->detail, out);
        fputs("</system-out>\n", out);
    }
    fputs("    </testcase>\n", out);
}

static void put_part(const gmd_gate_result *gate, const gmd_gate_part *part, FILE *out)
{
    fputs("  <testsuite name=\"gate ", out);
    gmd_put_xml(part->name, out);
    putc('"', out);
    tally t = tally_of(part);
    put_tally(t, gmd_gate_part_seconds(part), out);
    fprintf(out, " skipped=\"%zu\">\n", t.skipped);
    for (size_t i = 0; i < part->item_count; i++) {
        put_item(gate, part, &part->items[i], out);
    }
    if (!part->item_count) {
        gmd_gate_item none = {.name = "all", .fate = GMD_GATE_SKIPPED};
        snprintf(none.detail, sizeof none.detail, "not run: %s",
                 gate->ended_early[0] ? gate->ended_early
                 : part->reason[0]    ? part->reason
                                      : "not asked for");
        put_item(gate, part, &none, out);
    }
    fputs("  </testsuite>\n", out);
}

/* What was not judged is skipped; that it was to be judged makes the whole no pass. */
static void put_end(const gmd_gate_result *gate, FILE *out)
{
    fputs("  <testsuite name=\"gate\"", out);
    put_tally((tally){.cases = 1, .errors = 1}, gate->seconds, out);
    fprintf(out,
            " skipped=\"0\">\n    <testcase classname=\"gmd.gate\" name=\"whole\" "
            "time=\"%.6f\">\n      <error",
            gate->seconds);
    gmd_put_attribute("message", gate->ended_early, out);
    gmd_put_attribute("type", gmd_verdict_name(gmd_gate_verdict(gate)), out);
    fputs("/>\n    </testcase>\n  </testsuite>\n", out);
}

void gate_junit(const gmd_report *report, FILE *out)
{
    const gmd_gate_result *gate = report->gate;
    bool has_error = gmd_gate_verdict(gate) > GMD_FAIL;
    tally all = {.cases = has_error, .errors = has_error};
    for (size_t i = 0; i < gate->part_count; i++) {
        tally t = tally_of(&gate->parts[i]);
        all.cases += t.cases;
        all.failures += t.failures;
    }
    fputs("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites name=\"gmd\"", out);
    put_tally(all, gate->seconds, out);
    fputs(">\n", out);
    for (size_t i = 0; i < gate->part_count; i++) {
        put_part(gate, &gate->parts[i], out);
    }
    if (has_error) {
        put_end(gate, out);
    }
    fputs("</testsuites>\n", out);
}
