/* write_markdown.c - the summary that a CI job shows: GitHub-flavoured Markdown, which GitLab reads
 * as well. A table of all runs first, then only what needs a reader's attention. */
#include "gate.h"
#include "gate_figures.h"
#include "gmd_report_text.h"
#include "outcome.h"
#include "placements.h"
#include "repeats.h"

#include <inttypes.h>
#include <string.h>

/* A longer phase table is folded away. */
enum { unfolded_phases = 12 };

static void put_count(uint64_t count, FILE *out)
{
    char text[32];
    fputs(gmd_format_count(count, text), out);
}

static void put_title(const gmd_outcome *outcome, FILE *out)
{
    gmd_put_markdown(outcome->name, out);
    if (*outcome->variant) {
        putc(' ', out);
        gmd_put_markdown(outcome->variant, out);
    }
    if (*outcome->placement) {
        fputs(" placement ", out);
        gmd_put_markdown(outcome->placement, out);
    }
}

static const char *verdict_mark(gmd_verdict verdict)
{
    return verdict == GMD_PASS         ? "✅ pass"
           : verdict == GMD_FAIL       ? "❌ fail"
           : verdict == GMD_UNFINISHED ? "⚠️ interrupted"
                                       : "⚠️ error";
}

static void put_oracle_names(const gmd_outcome *outcome, gmd_oracle_fate fate, FILE *out)
{
    const char *separator = "";
    for (uint32_t i = 0; i < outcome->oracle_count; i++) {
        if (outcome->oracles[i].fate == fate) {
            fputs(separator, out);
            gmd_put_markdown(outcome->oracles[i].name, out);
            separator = ", ";
        }
    }
}

static void put_peak(uint64_t bytes, FILE *out)
{
    if (bytes == GMD_STAT_UNKNOWN) {
        putc('-', out);
    } else {
        const gmd_table_unit mib = {"MiB", 1 << 20, 1};
        char text[40];
        fprintf(out, "%s MiB", gmd_format_in_unit(bytes, mib, text));
    }
}

static void put_summary_row(const gmd_outcome *outcome, FILE *out)
{
    fputs("| ", out);
    put_title(outcome, out);
    fprintf(out, " | %s | ", verdict_mark(outcome->verdict));
    put_count(outcome->requests, out);
    fputs(" | ", out);
    put_count((uint64_t)requests_per_second(outcome), out);
    fputs(" | ", out);
    put_peak(outcome->has_stats ? outcome->stats.allocated_bytes_peak : GMD_STAT_UNKNOWN, out);
    fputs(" | ", out);
    put_peak(outcome->has_stats ? outcome->stats.reserved_bytes_peak : GMD_STAT_UNKNOWN, out);
    fputs(" | ", out);
    if (outcome->check.present) {
        put_count(outcome->check.matched, out);
        fputs(" of ", out);
        put_count(outcome->check.requests, out);
    }
    fputs(" | ", out);
    put_oracle_names(outcome, GMD_ORACLE_PASSED, out);
    fputs(" | ", out);
    put_oracle_names(outcome, GMD_ORACLE_FAILED, out);
    fputs(" | ", out);
    put_oracle_names(outcome, GMD_ORACLE_SKIPPED, out);
    fputs(" |\n", out);
}

/* A case as a block of code, which belongs to the item of the list above it. */
static void put_listing(const gmd_case_listing *listing, const char *indent, FILE *out)
{
    if (listing) {
        fprintf(out, "\n%s```\n", indent);
        gmd_case_listing_put(listing, indent, out);
        fprintf(out, "%s```\n", indent);
    }
}

static void put_violations(const gmd_report *report, size_t index, FILE *out)
{
    const gmd_outcome *outcome = report->outcomes[index];
    for (uint32_t i = 0; i < outcome->violation_count; i++) {
        const gmd_violation *violation = &outcome->violations[i];
        char moment[GMD_MOMENT_TEXT];
        fputs("- **", out);
        gmd_put_markdown(violation->oracle, out);
        fprintf(out, "**, %s: ", gmd_violation_moment(violation, moment));
        gmd_put_markdown(violation->message, out);
        if (*violation->case_path) {
            fputs(" (case: ", out);
            gmd_put_markdown(violation->case_path, out);
            putc(')', out);
        }
        putc('\n', out);
        put_listing(outcome_listing(report, index, i), "  ", out);
    }
}

static void put_difference(const gmd_check *check, FILE *out)
{
    if (!check->present || check->exact) {
        return;
    }
    if (check->is_cut_off) {
        fprintf(out, "- **stopped by a violation** at request %" PRIu64 ": no difference in the ",
                check->cut_off_at);
    } else {
        fputs("- **not exact**: ", out);
    }
    put_count(check->matched, out);
    fputs(" of ", out);
    put_count(check->requests, out);
    fputs(check->is_cut_off ? " requests before it\n" : " requests matched\n", out);
    if (check->first_difference.present) {
        fprintf(out, "  - first difference at request %" PRIu64 ", ",
                check->first_difference.request);
        gmd_put_markdown(check->first_difference.what, out);
        fputs(": ", out);
        gmd_put_markdown(check->first_difference.text, out);
        fputs("\n  - expected: ", out);
        gmd_put_markdown(check->first_difference.expected, out);
        fputs("\n  - got: ", out);
        gmd_put_markdown(check->first_difference.got, out);
        putc('\n', out);
    }
}

static void put_trouble(const gmd_report *report, size_t index, FILE *out)
{
    const gmd_outcome *outcome = report->outcomes[index];
    if (outcome->verdict == GMD_PASS) {
        return;
    }
    fputs("\n#### ", out);
    put_title(outcome, out);
    fputs("\n\n", out);
    if (is_error(outcome)) {
        fprintf(out, "- **%s**: ", gmd_verdict_name(outcome->verdict));
        gmd_put_markdown(outcome->error, out);
        putc('\n', out);
    }
    put_violations(report, index, out);
    put_difference(&outcome->check, out);
    if (is_unexplained_failure(outcome) && outcome->violation_count == 0) {
        fputs("- the run failed without a message\n", out);
    }
}

static void put_phase_headings(gmd_table_unit unit, FILE *out)
{
    fprintf(out,
            "| phase | allocated (%s) | max allocated (%s) | reserved (%s) | max reserved (%s) |\n"
            "| :-- | --: | --: | --: | --: |\n",
            unit.name, unit.name, unit.name, unit.name);
}

/* `which`: of the figures of one phase; may be empty. */
static void put_phase_row(const gmd_phase *phase, const char *which, gmd_table_unit unit, FILE *out)
{
    char text[40];
    fputs("| ", out);
    gmd_put_markdown(phase->label, out);
    fputs(which, out);
    fprintf(out, " | %s", gmd_format_in_unit(phase->allocated, unit, text));
    fprintf(out, " | %s", gmd_format_in_unit(phase->max_allocated, unit, text));
    fprintf(out, " | %s", gmd_format_in_unit(phase->reserved, unit, text));
    fprintf(out, " | %s |\n", gmd_format_in_unit(phase->max_reserved, unit, text));
}

static void put_phase_rows(const gmd_outcome *outcome, FILE *out)
{
    gmd_table_unit unit = gmd_table_unit_for(outcome->phases, outcome->phase_count);
    put_phase_headings(unit, out);
    for (uint32_t i = 0; i < outcome->phase_count; i++) {
        put_phase_row(&outcome->phases[i], "", unit, out);
    }
}

/* The phases of the run with rising addresses; where the others' figures are apart, their least and
 * most as well. */
static void put_placements(const gmd_report *report, const gmd_repeat *repeat, FILE *out)
{
    const gmd_outcome *rising = report->outcomes[repeat->first];
    const gmd_table_unit unit = gmd_table_unit_for(rising->phases, rising->phase_count);
    char text[PLACEMENTS_TEXT], bound[BOUND_RANGE_TEXT];
    bool is_folded = rising->phase_count > unfolded_phases;
    fputs(is_folded ? "\n<details><summary>" : "\n**", out);
    put_title(rising, out);
    fprintf(out, ": %s", placements_text(report, repeat, text));
    fputs(is_folded ? "</summary>\n\n" : "**\n\n", out);
    if (rising->phase_count) {
        put_phase_headings(unit, out);
    }
    for (uint32_t i = 0; i < rising->phase_count; i++) {
        const phase_range range = placements_phase(report, repeat, i);
        put_phase_row(&range.rising, "", unit, out);
        if (!phase_range_is_point(&range)) {
            put_phase_row(&range.least, ", least", unit, out);
            put_phase_row(&range.most, ", most", unit, out);
        }
    }
    if (is_folded) {
        fputs("\n</details>\n", out);
    }
    for (uint32_t i = 0; i < rising->bound_count; i++) {
        const bound_range range = placements_bound(report, repeat, i);
        fprintf(out, "\nBound: %s\n", bound_range_text(&range, bound));
    }
}

static void put_bounds(const gmd_outcome *outcome, FILE *out)
{
    char text[BOUND_TEXT];
    for (uint32_t i = 0; i < outcome->bound_count; i++) {
        fputs("\nBound: ", out);
        gmd_put_markdown(bound_text(outcome, i, text), out);
        putc('\n', out);
    }
}

static void put_phases(const gmd_outcome *outcome, FILE *out)
{
    if (outcome->phase_count == 0) {
        return;
    }
    bool is_folded = outcome->phase_count > unfolded_phases;
    fputs(is_folded ? "\n<details><summary>" : "\n**", out);
    put_title(outcome, out);
    fprintf(out, ": %u phases", outcome->phase_count + outcome->phases_dropped);
    fputs(is_folded ? "</summary>\n\n" : "**\n\n", out);
    put_phase_rows(outcome, out);
    if (outcome->phases_dropped) {
        fprintf(out, "\n%u more were not kept.\n", outcome->phases_dropped);
    }
    if (is_folded) {
        fputs("\n</details>\n", out);
    }
}

static void put_skips_and_notes(const gmd_outcome *outcome, FILE *out)
{
    for (uint32_t i = 0; i < outcome->oracle_count; i++) {
        if (outcome->oracles[i].fate == GMD_ORACLE_SKIPPED) {
            fputs("- ", out);
            put_title(outcome, out);
            fputs(": skipped ", out);
            gmd_put_markdown(outcome->oracles[i].name, out);
            fputs(", ", out);
            gmd_put_markdown(outcome->oracles[i].reason, out);
            putc('\n', out);
        }
    }
    for (uint32_t i = 0; i < outcome->note_count; i++) {
        fputs("- ", out);
        put_title(outcome, out);
        fputs(": ", out);
        gmd_put_markdown(outcome->notes[i], out);
        putc('\n', out);
    }
}

static void put_heading(const gmd_report *report, FILE *out)
{
    fputs("### gmd ", out);
    gmd_put_markdown(report->command, out);
    fprintf(out, ": %s\n\n", verdict_mark(gmd_report_verdict(report)));
    gmd_put_markdown(report->allocator, out);
    fputs(" on ", out);
    gmd_put_markdown(report->device, out);
    fprintf(out, ", seed %" PRIu64 ", gmd ", report->seed);
    gmd_put_markdown(report->version, out);
    if (report->command_line) {
        fputs("\n\nAgain: ", out);
        gmd_put_markdown(report->command_line, out);
    }
    fputs("\n\n", out);
}

/* "- skipped first/settings and 2 more: REASON" */
static void put_gate_details(const gmd_gate_part *part, FILE *out)
{
    for (size_t i = 0; i < part->item_count; i++) {
        const gmd_gate_item *item = &part->items[i];
        size_t same = gate_detail_alike(part, i);
        if (same) {
            fputs(item->fate == GMD_GATE_SKIPPED ? "- skipped " : "- note on ", out);
            gmd_put_markdown(part->name, out);
            putc('/', out);
            gmd_put_markdown(item->name, out);
            if (same > 1) {
                fprintf(out, " and %zu more", same - 1);
            }
            fputs(": ", out);
            gmd_put_markdown(item->detail, out);
            putc('\n', out);
        }
    }
}

/* What was not judged, and why. */
static void put_gate_skips(const gmd_gate_result *gate, FILE *out)
{
    putc('\n', out);
    for (uint32_t i = 0; i < gate->oracle_count; i++) {
        if (gate->oracles[i].fate == GMD_ORACLE_SKIPPED) {
            fputs("- skipped oracle ", out);
            gmd_put_markdown(gate->oracles[i].name, out);
            fputs(": ", out);
            gmd_put_markdown(gate->oracles[i].reason, out);
            putc('\n', out);
        }
    }
    for (size_t i = 0; i < gate->part_count; i++) {
        const gmd_gate_part *part = &gate->parts[i];
        if (!part->was_run && part->reason[0]) {
            fputs("- not run ", out);
            gmd_put_markdown(part->name, out);
            fputs(": ", out);
            gmd_put_markdown(part->reason, out);
            putc('\n', out);
        }
        put_gate_details(part, out);
    }
}

static void put_gate(const gmd_report *report, FILE *out)
{
    const gmd_gate_result *gate = report->gate;
    gate_categories_markdown(gate, out);
    fputs("| part | verdict | runs | requests | findings | skipped | seconds |\n"
          "| :-- | :-- | --: | --: | --: | --: | --: |\n",
          out);
    for (size_t i = 0; i < gate->part_count; i++) {
        const gmd_gate_part *p = &gate->parts[i];
        fputs("| ", out);
        gmd_put_markdown(p->name, out);
        fprintf(out, " | %s | %" PRIu64 " | %" PRIu64 " | %zu | %zu | %.1f |\n",
                p->was_run ? verdict_mark(gmd_gate_part_verdict(p)) : "not run",
                gmd_gate_part_runs(p), gmd_gate_part_requests(p), gmd_gate_part_findings(gate, p),
                gmd_gate_part_skipped(p), gmd_gate_part_seconds(p));
    }
    for (size_t i = 0; i < gate->finding_count; i++) {
        const gmd_gate_finding *f = &gate->findings[i];
        fprintf(out, "%s%zu. **", i ? "" : "\n", i + 1);
        gmd_put_markdown(f->violation.oracle, out);
        fputs("**: ", out);
        gmd_put_markdown(f->violation.message, out);
        if (*f->violation.limit) {
            fputs("<br>A limit, no defect: only beyond ", out);
            gmd_put_markdown(f->violation.limit, out);
            fputs(" of the contract.", out);
        }
        fputs("<br>Found by ", out);
        gmd_put_markdown(f->part, out);
        putc('/', out);
        gmd_put_markdown(f->item, out);
        fputs(f->unfinished[0] ? "; the case is " : "", out);
        gmd_put_markdown(f->unfinished, out);
        fputs(". Again: ", out);
        gmd_put_markdown(f->replay, out);
        putc('\n', out);
        put_listing(outcome_listing(report, 0, i), "   ", out);
    }
    put_gate_skips(gate, out);
    if (gate->ended_early[0]) {
        fputs("\nEnded early: ", out);
        gmd_put_markdown(gate->ended_early, out);
        putc('\n', out);
    }
}

gmd_status gmd_report_markdown(const gmd_report *report, FILE *out, gmd_error *error)
{
    put_heading(report, out);
    if (report->gate) {
        put_gate(report, out);
        return gmd_finish_writing(out, "the Markdown summary", error);
    }
    fputs("| run | verdict | requests | requests/s | peak allocated | peak reserved | as recorded "
          "| passed | failed | skipped |\n"
          "| :-- | :-- | --: | --: | --: | --: | --: | :-- | :-- | :-- |\n",
          out);
    for (size_t i = 0; i < report->outcome_count; i++) {
        put_summary_row(report->outcomes[i], out);
    }
    for (size_t i = 0; i < report->outcome_count; i++) {
        put_trouble(report, i, out);
    }
    for (size_t i = 0; i < report->outcome_count; i++) {
        const gmd_repeat *repeat = repeat_of(report, i);
        bool is_of_placements = repeat && repeat->is_of_placements;
        if (is_of_placements && i == repeat->first) {
            put_placements(report, repeat, out);
        }
        if (!is_of_placements || !is_repeated(report, i)) {
            put_phases(report->outcomes[i], out);
            put_bounds(report->outcomes[i], out);
        }
    }
    putc('\n', out);
    for (size_t i = 0; i < report->outcome_count; i++) {
        put_skips_and_notes(report->outcomes[i], out);
    }
    return gmd_finish_writing(out, "the Markdown summary", error);
}
