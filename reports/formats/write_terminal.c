/* write_terminal.c - what a person sees at the end of a command: tables whose columns line up, and
 * for each run what was checked, what was found, how fast. */
#include "gate.h"
#include "gmd_fitted_table.h"
#include "gmd_inspect.h"
#include "gmd_report_text.h"
#include "outcome.h"
#include "placements.h"
#include "repeats.h"

#include "gmd_size.h"

#include <inttypes.h>
#include <langinfo.h>
#include <locale.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char *const bold = "\033[1m", *const red = "\033[31m", *const green = "\033[32m";

enum { sparkline_cells = 64 };

typedef struct screen {
    FILE *out;
    gmd_terminal terminal;
} screen;

static void begin_color(const screen *on, const char *color)
{
    if (on->terminal.color) {
        fputs(color, on->out);
    }
}

static void end_color(const screen *on)
{
    begin_color(on, "\033[0m");
}

static void put_colored(const screen *on, const char *color, const char *text)
{
    begin_color(on, color);
    gmd_utf8_put_line(text, on->out);
    end_color(on);
}

/* Its later lines stand below the first one. */
static void put_in_color(const screen *on, const char *color, const char *head, const char *text)
{
    enum { INDENT = 4 };
    int at = fprintf(on->out, "  ") + gmd_text_width(head);
    begin_color(on, color);
    gmd_utf8_put_line(head, on->out);
    gmd_put_flowing(on->out, on->terminal, INDENT, &at, text);
    if (*color) {
        end_color(on);
    }
    putc('\n', on->out);
}

static void put_sentence(const screen *on, const char *head, const char *text)
{
    put_in_color(on, "", head, text);
}

static void put_padded(const char *text, int width, FILE *out)
{
    gmd_fitted_put_text(text, width, out);
    int missing = width - gmd_text_width(text);
    fprintf(out, "%*s", missing > 0 ? missing : 0, "");
}

/* The columns of a phase table, by one place that says what they are. */
enum { phase_columns = 4 };

/* A narrow terminal has its columns closer, under shorter headings. */
typedef struct phase_form {
    int space, width; /* before a column, and its own */
    const char *headings[phase_columns];
} phase_form;

static const phase_form whole_form = {2,
                                      15,
                                      {"allocated", "max allocated", "reserved", "max reserved"}},
                        brief_form = {1, 11, {"allocated", "max alloc.", "reserved", "max res."}};

static int figures_width(const phase_form *form)
{
    return 2 + phase_columns * (form->space + form->width);
}

static const phase_form *phase_form_of(const screen *on)
{
    enum { LEAST_LABEL = 10 };
    bool is_narrow =
        on->terminal.columns && on->terminal.columns < figures_width(&whole_form) + LEAST_LABEL;
    return is_narrow ? &brief_form : &whole_form;
}

static uint64_t phase_figure(const gmd_phase *phase, int column)
{
    const uint64_t figures[phase_columns] = {phase->allocated, phase->max_allocated,
                                             phase->reserved, phase->max_reserved};
    return figures[column];
}

static void put_figures(const screen *on, const gmd_phase *phase, gmd_table_unit unit)
{
    const phase_form *form = phase_form_of(on);
    for (int column = 0; column < phase_columns; column++) {
        uint64_t bytes = phase_figure(phase, column);
        char number[40], cell[48];
        gmd_format_in_unit(bytes, unit, number);
        snprintf(cell, sizeof cell, "%s %s", number, unit.name);
        fprintf(on->out, "%*s%*s", form->space, "", form->width,
                bytes == GMD_STAT_UNKNOWN ? "-" : cell);
    }
    putc('\n', on->out);
}

/* One cell shows the highest of the phases that fall into it, lest a peak disappears. */
static uint64_t highest_allocated(const gmd_outcome *outcome, uint32_t cell, uint32_t cells)
{
    uint64_t count = outcome->phase_count, highest = 0;
    for (uint64_t i = cell * count / cells; i < (cell + 1) * count / cells; i++) {
        uint64_t allocated = outcome->phases[i].allocated;
        highest = allocated != GMD_STAT_UNKNOWN && allocated > highest ? allocated : highest;
    }
    return highest;
}

static void put_sparkline(const screen *on, const gmd_outcome *outcome)
{
    uint32_t cells =
        outcome->phase_count < sparkline_cells ? outcome->phase_count : sparkline_cells;
    uint64_t highest = highest_allocated(outcome, 0, 1);
    if (!on->terminal.utf8 || cells < 3 || highest == 0) {
        return;
    }
    fputs("  allocated ", on->out);
    for (uint32_t cell = 0; cell < cells; cell++) {
        double share = (double)highest_allocated(outcome, cell, cells) / (double)highest;
        gmd_utf8_put(0x2581 + (uint32_t)(share * 7 + 0.5), on->out);
    }
    putc('\n', on->out);
}

static void put_phase_headings(const screen *on, const char *first, int label_width)
{
    fputs("  ", on->out);
    begin_color(on, bold);
    put_padded(first, label_width, on->out);
    const phase_form *form = phase_form_of(on);
    for (int column = 0; column < phase_columns; column++) {
        fprintf(on->out, "%*s%*s", form->space, "", form->width, form->headings[column]);
    }
    end_color(on);
    putc('\n', on->out);
}

/* The width of the widest label that leaves room for the figures, or of `other`, which stands in
 * their column. */
static int phase_label_width(const screen *on, const gmd_outcome *outcome, const char *other)
{
    enum { LEAST_LABEL = 8 };
    int room = gmd_fitted_width(on->terminal) - figures_width(phase_form_of(on));
    int most = room > LEAST_LABEL ? room : LEAST_LABEL;
    int label_width = gmd_text_width(other);
    for (uint32_t i = 0; i < outcome->phase_count; i++) {
        int width = gmd_text_width(outcome->phases[i].label);
        label_width = width > label_width ? width : label_width;
    }
    return label_width < most ? label_width : most;
}

/* A row for the figures, and two more where they have a range. */
static void put_phase(const screen *on, const gmd_phase *phase, const gmd_phase *least,
                      const gmd_phase *most, int label_width, gmd_table_unit unit)
{
    fputs("  ", on->out);
    put_padded(phase->label, label_width, on->out);
    put_figures(on, phase, unit);
    if (least) {
        fprintf(on->out, "  %-*s", label_width, "  least");
        put_figures(on, least, unit);
        fprintf(on->out, "  %-*s", label_width, "  most");
        put_figures(on, most, unit);
    }
}

/* Estimates put the figures of some phase in doubt. */
static bool has_doubts(const gmd_outcome *outcome)
{
    gmd_phase least, most;
    bool has = false;
    for (uint32_t i = 0; i < outcome->phase_count && !has; i++) {
        has = phase_doubt(&outcome->phases[i], &least, &most);
    }
    return has;
}

static void put_phases(const screen *on, const gmd_outcome *outcome)
{
    if (outcome->phase_count == 0) {
        return;
    }
    int label_width = phase_label_width(on, outcome, has_doubts(outcome) ? "  least" : "phase");
    put_phase_headings(on, "phase", label_width);
    gmd_table_unit unit = gmd_table_unit_for(outcome->phases, outcome->phase_count);
    uint32_t first, resume;
    gmd_phases_to_leave_out(outcome->phase_count, &first, &resume);
    for (uint32_t i = 0; i < outcome->phase_count; i++) {
        if (i == first) {
            fprintf(on->out, "  ... %u phases left out ...\n", resume - first);
            i = resume;
        }
        gmd_phase least, most;
        bool is_doubted = phase_doubt(&outcome->phases[i], &least, &most);
        put_phase(on, &outcome->phases[i], is_doubted ? &least : NULL, &most, label_width, unit);
    }
    if (outcome->phases_dropped) {
        fprintf(on->out, "  ... %u more were not kept ...\n", outcome->phases_dropped);
    }
    put_sparkline(on, outcome);
}

/* The first run's phases, which is that with rising addresses, and the range of all. */
static void put_placements(const screen *on, const gmd_report *report, const gmd_repeat *repeat)
{
    const gmd_outcome *rising = report->outcomes[repeat->first];
    char text[PLACEMENTS_TEXT], bound[BOUND_RANGE_TEXT];
    put_sentence(on, "", placements_text(report, repeat, text));
    int label_width = phase_label_width(on, rising, "  least");
    const gmd_table_unit unit = gmd_table_unit_for(rising->phases, rising->phase_count);
    uint32_t first, resume;
    gmd_phases_to_leave_out(rising->phase_count, &first, &resume);
    if (rising->phase_count) {
        put_phase_headings(on, "phase", label_width);
    }
    for (uint32_t i = 0; i < rising->phase_count; i++) {
        if (i == first) {
            fprintf(on->out, "  ... %u phases left out ...\n", resume - first);
            i = resume;
        }
        const phase_range range = placements_phase(report, repeat, i);
        put_phase(on, &range.rising, phase_range_is_point(&range) ? NULL : &range.least,
                  &range.most, label_width, unit);
    }
    for (uint32_t i = 0; i < rising->bound_count; i++) {
        const bound_range range = placements_bound(report, repeat, i);
        put_sentence(on, "bound: ", bound_range_text(&range, bound));
    }
}

/* "  bound: allocated at most 120.0 MiB: held, with a peak of 112.5 MiB" */
static void put_bounds(const screen *on, const gmd_outcome *outcome)
{
    char text[BOUND_TEXT];
    for (uint32_t i = 0; i < outcome->bound_count; i++) {
        put_sentence(on, "bound: ", bound_text(outcome, i, text));
    }
}

/* The next oracle with that fate, from number `at` on; the count: there are no more. */
static uint32_t next_of_fate(const gmd_outcome *outcome, uint32_t at, gmd_oracle_fate fate)
{
    while (at < outcome->oracle_count && outcome->oracles[at].fate != fate) {
        at++;
    }
    return at;
}

static void put_oracles(const screen *on, const gmd_outcome *outcome, gmd_oracle_fate fate,
                        const char *heading)
{
    char text[sizeof *outcome->oracles + 8];
    int at = gmd_text_width(heading), indent = at + 1;
    uint32_t i = next_of_fate(outcome, 0, fate);
    if (i == outcome->oracle_count) {
        return;
    }
    fputs(heading, on->out);
    while (i < outcome->oracle_count) {
        const gmd_oracle_result *result = &outcome->oracles[i];
        i = next_of_fate(outcome, i + 1, fate);
        bool has_reason = *result->reason && on->terminal.verbose;
        snprintf(text, sizeof text, " %s%s%s%s%s", result->name, has_reason ? " (" : "",
                 has_reason ? result->reason : "", has_reason ? ")" : "",
                 i < outcome->oracle_count ? "," : "");
        gmd_put_flowing(on->out, on->terminal, indent, &at, text);
    }
    if (fate == GMD_ORACLE_SKIPPED && !on->terminal.verbose) {
        gmd_put_flowing(on->out, on->terminal, indent, &at, " (--verbose: why)");
    }
    putc('\n', on->out);
}

static void put_case(const screen *on, const gmd_report *report, const gmd_violation *violation)
{
    char text[2048];
    bool has_command = gmd_report_replay(report, violation, text, sizeof text);
    fputs(has_command ? "    replay: " : "    case: ", on->out);
    gmd_utf8_put_line(has_command ? text : violation->case_path, on->out);
    putc('\n', on->out);
}

static void put_violations(const screen *on, const gmd_report *report, size_t index)
{
    const gmd_outcome *outcome = report->outcomes[index];
    for (uint32_t i = 0; i < outcome->violation_count; i++) {
        const gmd_violation *violation = &outcome->violations[i];
        char head[64], moment[GMD_MOMENT_TEXT];
        snprintf(head, sizeof head, "%s, %s: ", violation->oracle,
                 gmd_violation_moment(violation, moment));
        put_in_color(on, red, head, violation->message);
        if (is_first_of_identity(outcome, i)) {
            put_known_line(&violation->identity, "    ", on->out);
        }
        put_limit(violation, "    ", on->out);
        if (*violation->case_path) {
            put_case(on, report, violation);
            gmd_case_listing_put(outcome_listing(report, index, i), "    ", on->out);
        }
    }
}

static void put_exact(const screen *on, const gmd_check *check)
{
    char matched[32], requests[32], events[32], blocks[32], figures[32], text[300];
    int at = fprintf(on->out, "  ") + (int)strlen("exact"), used;
    put_colored(on, green, "exact");
    used = snprintf(text, sizeof text, ": %s of %s requests, %s device events",
                    gmd_format_count(check->matched, matched),
                    gmd_format_count(check->requests, requests),
                    gmd_format_count(check->device_events, events));
    if (check->end_state_checked) {
        used += snprintf(text + used, sizeof text - (size_t)used, ", %s blocks at the end",
                         gmd_format_count(check->blocks_compared, blocks));
    }
    if (check->statistics_checked) {
        snprintf(text + used, sizeof text - (size_t)used, ", %s statistics",
                 gmd_format_count(check->figures_compared, figures));
    }
    gmd_put_flowing(on->out, on->terminal, 4, &at, text);
    putc('\n', on->out);
}

static void put_labelled(const screen *on, const char *label, const char *text)
{
    fprintf(on->out, "    %-9s ", label);
    gmd_utf8_put_line(text, on->out);
    putc('\n', on->out);
}

static void put_difference(const screen *on, const gmd_check *check)
{
    char matched[32], requests[32];
    fputs("  ", on->out);
    put_colored(on, red, "not exact");
    fprintf(on->out, ": %s of %s requests matched\n", gmd_format_count(check->matched, matched),
            gmd_format_count(check->requests, requests));
    if (!check->first_difference.present) {
        return;
    }
    if (check->first_difference.request >= check->requests) {
        fputs("  first difference at the end: ", on->out);
    } else {
        fprintf(on->out, "  first difference at request %" PRIu64 ": ",
                check->first_difference.request);
    }
    gmd_utf8_put_line(check->first_difference.what, on->out);
    putc('\n', on->out);
    if (*check->first_difference.text) {
        put_labelled(on, "request", check->first_difference.text);
    }
    put_labelled(on, "expected", check->first_difference.expected);
    put_labelled(on, "got", check->first_difference.got);
}

/* "spurious_oom mattered in 3 requests: 11502, 16002, 16003" */
static void put_quirks(const screen *on, const gmd_check *check)
{
    for (uint32_t i = 0; i < check->quirk_count; i++) {
        const gmd_check_quirk *q = &check->quirks[i];
        uint64_t shown = sizeof q->requests / sizeof *q->requests;
        char count[32];
        fputs("  quirk ", on->out);
        gmd_utf8_put_line(q->name, on->out);
        fprintf(on->out, " mattered in %s request%s:", gmd_format_count(q->count, count),
                q->count == 1 ? "" : "s");
        for (uint64_t k = 0; k < q->count && k < shown; k++) {
            fprintf(on->out, "%s %" PRIu64, k ? "," : "", q->requests[k]);
        }
        fputs(q->count > shown ? ", ...\n" : "\n", on->out);
    }
}

static void put_cut_off(const screen *on, const gmd_check *check)
{
    char matched[32], requests[32];
    fputs("  ", on->out);
    put_colored(on, red, "stopped by a violation");
    fprintf(on->out, " at request %" PRIu64 ": no difference in the %s of %s requests before it\n",
            check->cut_off_at, gmd_format_count(check->matched, matched),
            gmd_format_count(check->requests, requests));
}

static void put_check(const screen *on, const gmd_check *check)
{
    put_quirks(on, check);
    if (check->present && check->exact) {
        put_exact(on, check);
    } else if (check->present && check->is_cut_off) {
        put_cut_off(on, check);
    } else if (check->present) {
        put_difference(on, check);
    }
}

static void put_verdict(const screen *on, const gmd_outcome *outcome)
{
    char requests[32], rate[32], text[200];
    const char *verdict = gmd_verdict_name(outcome->verdict);
    bool has_rate = requests_per_second(outcome) > 0;
    int at = fprintf(on->out, "  ") + gmd_text_width(verdict);
    put_colored(on, outcome->verdict == GMD_PASS ? green : red, verdict);
    snprintf(text, sizeof text, ": %s request%s in %.3f s%s%s%s, seed %" PRIu64 "%s%s",
             gmd_format_count(outcome->requests, requests), outcome->requests == 1 ? "" : "s",
             outcome->seconds, has_rate ? " (" : "",
             has_rate ? gmd_format_count((uint64_t)requests_per_second(outcome), rate) : "",
             has_rate ? " requests/s)" : "", outcome->seed,
             *outcome->placement ? ", placement " : "", outcome->placement);
    gmd_put_flowing(on->out, on->terminal, 4, &at, text);
    if (is_error(outcome)) {
        fputs("\n  ", on->out);
        put_colored(on, red, outcome->error);
    }
    putc('\n', on->out);
}

static void put_title(const gmd_outcome *outcome, FILE *out)
{
    gmd_utf8_put_line(outcome->name, out);
    fputs(*outcome->variant ? "  " : "", out);
    gmd_utf8_put_line(outcome->variant, out);
}

/* How far the figures can be trusted. */
static void put_workspaces(const screen *on, const gmd_workspace_use *use)
{
    if (!use->recorded && !use->estimated) {
        return;
    }
    fprintf(on->out, "  workspaces of cuDNN: %" PRIu64 " recorded, %" PRIu64 " estimated\n",
            use->recorded, use->estimated);
    if (use->estimated) {
        put_sentence(on, "least and most: ", "where 19 in 20 such estimates are");
    }
}

static void put_outcome(const screen *on, const gmd_report *report, size_t index)
{
    const gmd_outcome *outcome = report->outcomes[index];
    begin_color(on, bold);
    put_title(outcome, on->out);
    end_color(on);
    putc('\n', on->out);
    if (!on->terminal.quiet) {
        put_phases(on, outcome);
        gmd_inspection_terminal(report->inspections ? report->inspections[index] : NULL, on->out,
                                on->terminal);
        put_workspaces(on, &outcome->workspaces);
        put_bounds(on, outcome);
        put_oracles(on, outcome, GMD_ORACLE_PASSED, "  passed:");
        put_oracles(on, outcome, GMD_ORACLE_SKIPPED, "  skipped:");
        for (uint32_t i = 0; i < outcome->note_count; i++) {
            put_sentence(on, "note: ", outcome->notes[i]);
        }
    }
    put_violations(on, report, index);
    put_check(on, &outcome->check);
    put_verdict(on, outcome);
}

/* What a run came to: the figures of its last phase, or its statistics where it has no phases. */
static gmd_phase final_figures(const gmd_outcome *outcome)
{
    gmd_phase figures = {.allocated = GMD_STAT_UNKNOWN,
                         .max_allocated = GMD_STAT_UNKNOWN,
                         .reserved = GMD_STAT_UNKNOWN,
                         .max_reserved = GMD_STAT_UNKNOWN};
    if (outcome->has_stats) {
        figures.allocated = outcome->stats.allocated_bytes;
        figures.max_allocated = outcome->stats.allocated_bytes_peak;
        figures.reserved = outcome->stats.reserved_bytes;
        figures.max_reserved = outcome->stats.reserved_bytes_peak;
    }
    if (outcome->phase_count > 0) {
        const gmd_phase *last = &outcome->phases[outcome->phase_count - 1];
        figures.allocated = last->allocated;
        figures.reserved = last->reserved;
    }
    return figures;
}

static int title_width(const gmd_outcome *outcome)
{
    return gmd_text_width(outcome->name) +
           (*outcome->variant ? 2 + gmd_text_width(outcome->variant) : 0);
}

/* After several runs: all of them side by side, and one line for the whole. */
static void put_overview(const screen *on, const gmd_report *report)
{
    int label_width = 0;
    gmd_table_unit unit = {"KiB", 0, 0};
    for (size_t i = 0; i < report->outcome_count; i++) {
        const gmd_phase figures = final_figures(report->outcomes[i]);
        const gmd_table_unit wanted = gmd_table_unit_for(&figures, 1);
        int width = title_width(report->outcomes[i]);
        label_width = width > label_width ? width : label_width;
        unit = wanted.bytes > unit.bytes ? wanted : unit;
    }
    /* Where there is no room beside its figures, a run has a line of its own above them. */
    bool is_narrow = on->terminal.columns &&
                     label_width + figures_width(phase_form_of(on)) > on->terminal.columns;
    int column = is_narrow ? (int)strlen("run") : label_width;
    put_phase_headings(on, "run", column);
    for (size_t i = 0; i < report->outcome_count; i++) {
        const gmd_phase figures = final_figures(report->outcomes[i]);
        fputs("  ", on->out);
        put_title(report->outcomes[i], on->out);
        int missing = is_narrow ? column + 2 : column - title_width(report->outcomes[i]);
        fprintf(on->out, "%s%*s", is_narrow ? "\n" : "", missing, "");
        put_figures(on, &figures, unit);
    }
}

/* What repeated runs have in common, a workload after the other. */
static void put_repeats(const screen *on, const gmd_report *report)
{
    for (size_t i = 0; i < report->repeat_count; i++) {
        const gmd_repeat *repeat = &report->repeats[i];
        fputs(i ? "\n" : "", on->out);
        begin_color(on, bold);
        put_title(report->outcomes[repeat->first], on->out);
        end_color(on);
        putc('\n', on->out);
        if (repeat->is_of_placements) {
            put_placements(on, report, repeat);
        } else {
            repeat_terminal(report, repeat, on->out, on->terminal);
        }
    }
}

static void put_total(const screen *on, const gmd_report *report)
{
    gmd_verdict verdict = gmd_report_verdict(report);
    char requests[32];
    put_colored(on, verdict == GMD_PASS ? green : red, gmd_verdict_name(verdict));
    fprintf(on->out, ": %zu runs, %s request%s in %.3f s\n", report->outcome_count,
            gmd_format_count(report_requests(report), requests),
            report_requests(report) == 1 ? "" : "s", report_seconds(report));
}

void gmd_report_terminal_run(const gmd_report *report, size_t index, bool is_first, FILE *out,
                             gmd_terminal terminal)
{
    const screen on = {out, terminal};
    fputs(is_first ? "" : "\n", out);
    put_outcome(&on, report, index);
    fflush(out);
}

void gmd_report_terminal_end(const gmd_report *report, bool is_first, FILE *out,
                             gmd_terminal terminal)
{
    const screen on = {out, terminal};
    if (report->gate) {
        gate_terminal(report, out, terminal);
        return;
    }
    if (report->outcome_count > 1 && !terminal.quiet) {
        fputs(is_first ? "" : "\n", out);
        if (report->repeat_count) {
            put_repeats(&on, report);
        } else {
            put_overview(&on, report);
        }
        put_total(&on, report);
    }
    fflush(out);
}

void gmd_report_terminal(const gmd_report *report, FILE *out, gmd_terminal terminal)
{
    bool is_first = true;
    for (size_t i = 0; i < report->outcome_count && !report->gate; i++) {
        bool passed_quietly = terminal.quiet && report->outcomes[i]->verdict == GMD_PASS;
        if (!passed_quietly && !is_repeated(report, i)) {
            gmd_report_terminal_run(report, i, is_first, out, terminal);
            is_first = false;
        }
    }
    gmd_report_terminal_end(report, is_first, out, terminal);
}
