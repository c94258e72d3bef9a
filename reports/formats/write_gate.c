/* write_gate.c - the gate on the terminal and as the JSON key "gate". */
#include "gate.h"
#include "gate_figures.h"
#include "gmd_report_text.h"
#include "outcome.h"

#include <inttypes.h>
#include <string.h>

static const char *const bold = "\033[1m", *const red = "\033[31m", *const green = "\033[32m",
                         *const plain = "\033[0m";

static const char *part_verdict(const gmd_gate_part *part)
{
    if (!part->was_run) {
        return "not run";
    }
    return gmd_verdict_name(gmd_gate_part_verdict(part));
}

/* --- terminal ---------------------------------------------------------------------------- */

static void put_colored(FILE *out, gmd_terminal terminal, const char *color, const char *text)
{
    fputs(terminal.color ? color : "", out);
    gmd_utf8_put_line(text, out);
    fputs(terminal.color ? plain : "", out);
}

static void put_finding(FILE *out, gmd_terminal terminal, size_t number, const gmd_gate_finding *f,
                        const gmd_case_listing *listing)
{
    int at = fprintf(out, "%zu. ", number) + gmd_text_width(f->violation.oracle);
    put_colored(out, terminal, red, f->violation.oracle);
    gmd_put_flowing(out, terminal, 3, &at, ": ");
    gmd_put_flowing(out, terminal, 3, &at, f->violation.message);
    putc('\n', out);
    put_known_line(&f->violation.identity, "   ", out);
    put_limit(&f->violation, "   ", out);
    char found[sizeof f->part + sizeof f->item + sizeof f->unfinished + 160];
    snprintf(found, sizeof found,
             "found by %s/%s after %.1f s, %" PRIu64 " time%s in all; %zu request%s%s%s", f->part,
             f->item, f->seconds, f->hits, f->hits == 1 ? "" : "s", f->case_requests,
             f->case_requests == 1 ? "" : "s", f->unfinished[0] ? ", " : "", f->unfinished);
    at = fprintf(out, "   ");
    gmd_put_flowing(out, terminal, 5, &at, found);
    fputs("\n   replay: ", out);
    gmd_utf8_put_line(f->replay, out);
    putc('\n', out);
    gmd_case_listing_put(listing, "   ", out);
}

/* A narrow terminal does without the runs and what was skipped. */
static void put_table(FILE *out, gmd_terminal terminal, const gmd_gate_result *gate)
{
    enum { WHOLE_WIDTH = 78 };
    char runs[32], requests[32], skipped[32];
    bool is_narrow = terminal.columns && terminal.columns < WHOLE_WIDTH;
    int of_runs = is_narrow ? 0 : 9, of_skipped = is_narrow ? 0 : 9;
    fprintf(out, "%s%-12s %-8s %6s%*s %12s %9s%*s %8s%s\n", terminal.color ? bold : "", "part",
            "verdict", "items", of_runs, is_narrow ? "" : "runs", "requests", "findings",
            of_skipped, is_narrow ? "" : "skipped", "seconds", terminal.color ? plain : "");
    for (size_t i = 0; i < gate->part_count; i++) {
        const gmd_gate_part *p = &gate->parts[i];
        snprintf(skipped, sizeof skipped, "%zu", gmd_gate_part_skipped(p));
        fprintf(out, "%-12s %-8s %6zu%*s %12s %9zu%*s %8.1f\n", p->name, part_verdict(p),
                p->item_count - gmd_gate_part_skipped(p), of_runs,
                is_narrow ? "" : gmd_format_count(gmd_gate_part_runs(p), runs),
                gmd_format_count(gmd_gate_part_requests(p), requests),
                gmd_gate_part_findings(gate, p), of_skipped, is_narrow ? "" : skipped,
                gmd_gate_part_seconds(p));
    }
}

static void put_whole(const gmd_report *report, FILE *out, gmd_terminal terminal)
{
    const gmd_gate_result *gate = report->gate;
    const char *verdict = gmd_verdict_name(gmd_report_verdict(report));
    char requests[32], figures[160];
    size_t worse = gmd_gate_regressions(gate, NULL, NULL);
    int at = gmd_text_width(verdict), used = 0;
    put_colored(out, terminal, gmd_report_verdict(report) == GMD_PASS ? green : red, verdict);
    gmd_put_flowing(out, terminal, 2, &at, ": ");
    gmd_put_flowing(out, terminal, 2, &at, report->allocator);
    if (worse) {
        used =
            snprintf(figures, sizeof figures, ", %zu figure%s worse", worse, worse == 1 ? "" : "s");
    }
    snprintf(figures + used, sizeof figures - (size_t)used,
             ", %zu finding%s, %s requests in %.1f s, seed %" PRIu64 "%s", gate->finding_count,
             gate->finding_count == 1 ? "" : "s",
             gmd_format_count(report_requests(report), requests), gate->seconds, gate->seed,
             gate->is_quick ? ", quick" : "");
    gmd_put_flowing(out, terminal, 2, &at, figures);
    putc('\n', out);
}

size_t gate_detail_alike(const gmd_gate_part *part, size_t index)
{
    const char *detail = part->items[index].detail;
    size_t same = 0;
    for (size_t i = 0; *detail && i < part->item_count; i++) {
        bool is_same = strcmp(part->items[i].detail, detail) == 0;
        if (is_same && i < index) {
            return 0;
        }
        same += is_same;
    }
    return same;
}

/* Items with the same reason or note in one line. */
static void put_details(FILE *out, gmd_terminal terminal, const gmd_gate_part *part,
                        int fate_is_skipped)
{
    for (size_t i = 0; i < part->item_count; i++) {
        const gmd_gate_item *item = &part->items[i];
        bool is_meant = (item->fate == GMD_GATE_SKIPPED) == fate_is_skipped;
        size_t same = is_meant ? gate_detail_alike(part, i) : 0;
        if (same) {
            int at = fprintf(out, "%s: %s/", fate_is_skipped ? "skipped" : "note", part->name);
            gmd_put_flowing(out, terminal, 2, &at, item->name);
            char more[40] = ": ";
            if (same > 1) {
                snprintf(more, sizeof more, " and %zu more: ", same - 1);
            }
            gmd_put_flowing(out, terminal, 2, &at, more);
            gmd_put_flowing(out, terminal, 2, &at, item->detail);
            putc('\n', out);
        }
    }
}

static void put_blind_oracles(FILE *out, gmd_terminal terminal, const gmd_gate_result *gate)
{
    for (uint32_t i = 0; i < gate->oracle_count; i++) {
        if (gate->oracles[i].fate == GMD_ORACLE_SKIPPED) {
            int at = fprintf(out, "skipped: oracle ");
            gmd_put_flowing(out, terminal, 2, &at, gate->oracles[i].name);
            gmd_put_flowing(out, terminal, 2, &at, ": ");
            gmd_put_flowing(out, terminal, 2, &at, gate->oracles[i].reason);
            putc('\n', out);
        }
    }
}

/* Oracles by their names, and items by their parts, in one sentence. */
static void put_skips_in_short(FILE *out, gmd_terminal terminal, const gmd_gate_result *gate)
{
    size_t oracles = 0, parts = 0;
    char text[80];
    int at = 0;
    for (uint32_t i = 0; i < gate->oracle_count; i++) {
        if (gate->oracles[i].fate == GMD_ORACLE_SKIPPED) {
            snprintf(text, sizeof text, "%s%s", oracles++ ? ", " : "skipped: oracles ",
                     gate->oracles[i].name);
            gmd_put_flowing(out, terminal, 2, &at, text);
        }
    }
    for (size_t i = 0; i < gate->part_count; i++) {
        size_t skipped = gmd_gate_part_skipped(&gate->parts[i]);
        if (skipped) {
            snprintf(text, sizeof text, "%s%zu of %s",
                     parts++   ? ", "
                     : oracles ? "; "
                               : "skipped: ",
                     skipped, gate->parts[i].name);
            gmd_put_flowing(out, terminal, 2, &at, text);
        }
    }
    if (oracles || parts) {
        gmd_put_flowing(out, terminal, 2, &at, " (--verbose: why)");
        putc('\n', out);
    }
}

static void put_notes(FILE *out, gmd_terminal terminal, const gmd_outcome *outcome)
{
    for (uint32_t i = 0; i < outcome->note_count; i++) {
        int at = 0;
        gmd_put_flowing(out, terminal, 2, &at, "note: ");
        gmd_put_flowing(out, terminal, 2, &at, outcome->notes[i]);
        putc('\n', out);
    }
}

void gate_terminal(const gmd_report *report, FILE *out, gmd_terminal terminal)
{
    const gmd_gate_result *gate = report->gate;
    for (size_t i = 0; i < gate->finding_count; i++) {
        put_finding(out, terminal, i + 1, &gate->findings[i], outcome_listing(report, 0, i));
    }
    fputs(gate->finding_count ? "\n" : "", out);
    gate_regressions_terminal(gate, out, terminal);
    if (!terminal.quiet) {
        put_table(out, terminal, gate);
        if (terminal.verbose) {
            put_blind_oracles(out, terminal, gate);
        } else {
            put_skips_in_short(out, terminal, gate);
        }
        for (size_t i = 0; i < gate->part_count; i++) {
            if (terminal.verbose) {
                put_details(out, terminal, &gate->parts[i], 1);
            }
            put_details(out, terminal, &gate->parts[i], 0);
        }
    }
    if (!terminal.quiet) {
        put_notes(out, terminal, report->outcomes[0]);
        putc('\n', out);
        gate_categories_terminal(gate, out, terminal);
    }
    if (gate->ended_early[0]) {
        fputs("ended early: ", out);
        gmd_utf8_put_line(gate->ended_early, out);
        putc('\n', out);
    }
    put_whole(report, out, terminal);
    fflush(out);
}

/* --- JSON -------------------------------------------------------------------------------- */

const char *const gate_ends[] = {"enough", "interruption", "failure", NULL};

/* `index`: among all items of the part, in the order in which they were come to. */
static void write_skipped(gmd_json *json, const gmd_gate_part *part)
{
    gmd_json_array(json, "skipped");
    for (size_t i = 0; i < part->item_count; i++) {
        if (part->items[i].fate == GMD_GATE_SKIPPED) {
            gmd_json_row(json, NULL);
            gmd_json_string(json, "name", part->items[i].name);
            gmd_json_string(json, "reason", part->items[i].detail);
            gmd_json_u64(json, "index", i);
            gmd_json_u64(json, "runs", part->items[i].runs);
            gmd_json_u64(json, "requests", part->items[i].requests);
            gmd_json_exact(json, "seconds", part->items[i].seconds);
            gmd_json_end(json);
        }
    }
    gmd_json_end(json);
}

static void write_items(gmd_json *json, const gmd_gate_part *part)
{
    gmd_json_array(json, "items");
    for (size_t i = 0; i < part->item_count; i++) {
        const gmd_gate_item *item = &part->items[i];
        if (item->fate == GMD_GATE_SKIPPED) {
            continue;
        }
        gmd_json_row(json, NULL);
        gmd_json_string(json, "name", item->name);
        gmd_json_string(json, "verdict", item->fate == GMD_GATE_FAILED ? "fail" : "pass");
        gmd_json_u64(json, "runs", item->runs);
        gmd_json_u64(json, "requests", item->requests);
        gmd_json_u64(json, "hits", item->hits);
        gmd_json_exact(json, "seconds", item->seconds);
        gmd_json_string(json, "note", item->detail[0] ? item->detail : NULL);
        gmd_json_end(json);
    }
    gmd_json_end(json);
}

static void write_part(gmd_json *json, const gmd_gate_result *gate, const gmd_gate_part *part)
{
    gmd_json_object(json, NULL);
    gmd_json_string(json, "name", part->name);
    gmd_json_string(json, "category", part->category);
    gmd_json_string(json, "verdict", part_verdict(part));
    gmd_json_string(json, "reason", part->reason[0] ? part->reason : NULL);
    gmd_json_u64(json, "runs", gmd_gate_part_runs(part));
    gmd_json_u64(json, "requests", gmd_gate_part_requests(part));
    gmd_json_u64(json, "findings", gmd_gate_part_findings(gate, part));
    gmd_json_double(json, "seconds", gmd_gate_part_seconds(part));
    write_skipped(json, part);
    write_items(json, part);
    gmd_json_end(json);
}

static void write_finding(gmd_json *json, const gmd_gate_finding *f,
                          const gmd_case_listing *listing)
{
    gmd_json_object(json, NULL);
    gmd_json_string(json, "oracle", f->violation.oracle);
    identity_json(json, &f->violation.identity);
    gmd_json_string(json, "cause", f->cause);
    gmd_json_string(json, "message", f->violation.message);
    moment_json(json, &f->violation);
    limit_json(json, &f->violation);
    gmd_json_string(json, "part", f->part);
    gmd_json_string(json, "item", f->item);
    gmd_json_string(json, "case", f->violation.case_path[0] ? f->violation.case_path : NULL);
    listing_json(json, listing);
    gmd_json_u64(json, "case_requests", f->case_requests);
    if (f->unfinished[0]) {
        gmd_json_string(json, "case_unfinished", f->unfinished);
    }
    gmd_json_string(json, "replay", f->replay);
    gmd_json_u64(json, "times", f->hits);
    gmd_json_exact(json, "seconds", f->seconds);
    gmd_json_end(json);
}

void gate_json(gmd_json *json, const gmd_report *report)
{
    const gmd_gate_result *gate = report->gate;
    gmd_json_object(json, "gate");
    gmd_json_bool(json, "quick", gate->is_quick);
    gmd_json_string(json, "ended_early", gate->ended_early[0] ? gate->ended_early : NULL);
    gmd_json_string(json, "ended_by", gate->ended_early[0] ? gate_ends[gate->ended_by] : NULL);
    gmd_json_exact(json, "seconds", gate->seconds);
    gmd_json_u64(json, "known_violations", gate->known_count);
    oracles_json(json, gate->oracles, gate->oracle_count);
    gate_figures_json(json, gate);
    gmd_json_array(json, "parts");
    for (size_t i = 0; i < gate->part_count; i++) {
        write_part(json, gate, &gate->parts[i]);
    }
    gmd_json_end(json);
    gmd_json_array(json, "findings");
    for (size_t i = 0; i < gate->finding_count; i++) {
        write_finding(json, &gate->findings[i], outcome_listing(report, 0, i));
    }
    gmd_json_end(json);
    gmd_json_end(json);
}
