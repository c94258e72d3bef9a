#include "gate_figures.h"

#include "gmd_report_text.h"
#include "gmd_xml.h"
#include "outcome.h"

#include <math.h>
#include <string.h>

#define SHOWN_MAX 5 /* of a category; the others are counted, and in the JSON */

static const char *category_verdict(const gmd_gate_result *gate, const char *category)
{
    bool was_run;
    gmd_verdict verdict = gmd_gate_category_verdict(gate, category, &was_run);
    return was_run || verdict == GMD_FAIL ? gmd_verdict_name(verdict) : "not run";
}

/* The category's next figure that is worse, from number `*at` on, which is then the one after it:
 * they are in this order. NULL: there are no more. */
static const gmd_gate_figure *next_worse(const gmd_gate_result *gate, const char *category,
                                         size_t *at)
{
    while (*at < gate->figure_count) {
        const gmd_gate_figure *f = &gate->figures[(*at)++];
        if (strcmp(f->category, category) == 0 && gmd_gate_is_regression(f)) {
            return f;
        }
    }
    return NULL;
}

/* Items that failed by being no figure at all (--update-baseline). */
static size_t not_measured(const gmd_gate_result *gate, const char *category)
{
    size_t count = 0;
    for (size_t i = 0; i < gate->part_count; i++) {
        const gmd_gate_part *p = &gate->parts[i];
        for (size_t k = 0; k < p->item_count && strcmp(p->category, category) == 0; k++) {
            const gmd_gate_item *item = &p->items[k];
            count +=
                item->fate == GMD_GATE_FAILED && !gmd_gate_regressions(gate, category, item->name);
        }
    }
    return count;
}

/* "12 of 250 figures are worse, 3 better, 235 as before" */
static const char *summary_of(const gmd_gate_result *gate, const char *category, char *text,
                              size_t size)
{
    size_t worse = gmd_gate_regressions(gate, category, NULL);
    size_t better = gmd_gate_figures(gate, category, NULL, GMD_GATE_BETTER);
    size_t same = gmd_gate_figures(gate, category, NULL, GMD_GATE_SAME);
    size_t fresh = gmd_gate_figures(gate, category, NULL, GMD_GATE_UNJUDGED);
    const char *reason = "";
    for (size_t i = 0; i < gate->part_count; i++) {
        bool is_of = strcmp(gate->parts[i].category, category) == 0;
        reason = is_of && !gate->parts[i].was_run ? gate->parts[i].reason : reason;
    }
    if (strcmp(category, "correctness") == 0) {
        size_t limits = 0;
        for (size_t i = 0; i < gate->finding_count; i++) {
            limits += *gate->findings[i].violation.limit != '\0';
        }
        int used = snprintf(text, size, "%zu finding%s", gate->finding_count,
                            gate->finding_count == 1 ? "" : "s");
        if (limits) {
            snprintf(text + used, size - (size_t)used, ", %zu of them %s", limits,
                     limits == 1 ? "a limit" : "limits");
        }
        return text;
    }
    size_t lost = not_measured(gate, category), at = 0;
    if (lost) {
        at = (size_t)snprintf(text, size, "%zu item%s could not be measured; ", lost,
                              lost == 1 ? "" : "s");
        text += at;
        size -= at;
    }
    if (worse + better + same + fresh == 0) {
        snprintf(text, size, "%s", *reason ? reason : lost ? "no figures" : "not asked for");
    } else if (worse + better + same == 0) {
        snprintf(text, size, "%zu figures%s", fresh,
                 gate->baseline.was_written ? " written" : ", none of them in the baseline");
    } else {
        snprintf(text, size, "%zu of %zu figures worse, %zu better, %zu as before%s", worse,
                 worse + better + same, better, same,
                 fresh ? "; others are not in the baseline" : "");
    }
    return text - at;
}

/* --- terminal ---------------------------------------------------------------------------- */

static void put_figure(const gmd_gate_figure *f, FILE *out)
{
    char text[400];
    gmd_utf8_put_line(f->item, out);
    fputs(": ", out);
    gmd_utf8_put_line(gmd_gate_figure_text(f, text, sizeof text), out);
    putc('\n', out);
}

static void put_regressions(const gmd_gate_result *gate, const char *category, FILE *out,
                            gmd_terminal terminal)
{
    char command[GMD_GATE_COMMAND_MAX];
    size_t count = gmd_gate_regressions(gate, category, NULL), shown = 0, at = 0;
    const gmd_gate_figure *worst = next_worse(gate, category, &at), *f = worst;
    if (!worst) {
        return;
    }
    fprintf(out, "%s%s%s: ", terminal.color ? "\033[31m" : "", category,
            terminal.color ? "\033[0m" : "");
    for (; f && shown < SHOWN_MAX; f = next_worse(gate, category, &at)) {
        fputs(shown++ ? "   " : "", out);
        put_figure(f, out);
    }
    if (count > shown) {
        fprintf(out, "   and %zu more\n", count - shown);
    }
    fputs("   again:  ", out);
    gmd_utf8_put_line(gmd_gate_figure_command(gate, worst, command, sizeof command), out);
    fputs("\n   accept: ", out);
    gmd_utf8_put_line(gate->baseline.commands, out);
    fputs(" --update-baseline\n\n", out);
}

void gate_regressions_terminal(const gmd_gate_result *gate, FILE *out, gmd_terminal terminal)
{
    const char *category;
    for (size_t i = 0; (category = gmd_gate_category(i)) != NULL; i++) {
        put_regressions(gate, category, out, terminal);
    }
}

void gate_categories_terminal(const gmd_gate_result *gate, FILE *out, gmd_terminal terminal)
{
    char text[400];
    const char *category;
    for (size_t i = 0; (category = gmd_gate_category(i)) != NULL; i++) {
        int at = fprintf(out, "%-12s %-8s ", category, category_verdict(gate, category));
        gmd_put_flowing(out, terminal, at, &at, summary_of(gate, category, text, sizeof text));
        putc('\n', out);
    }
    for (size_t i = 0; i < gate->baseline.note_count; i++) {
        fputs("baseline: ", out);
        gmd_utf8_put_line(gate->baseline.notes[i], out);
        putc('\n', out);
    }
    if (gate->baseline.was_written) {
        fputs("baseline: written: ", out);
        gmd_utf8_put_line(gate->baseline.path, out);
        putc('\n', out);
    }
}

/* --- Markdown ---------------------------------------------------------------------------- */

static void put_regressions_markdown(const gmd_gate_result *gate, const char *category, FILE *out)
{
    char text[1300];
    size_t count = gmd_gate_regressions(gate, category, NULL), shown = 0, at = 0;
    const gmd_gate_figure *worst = next_worse(gate, category, &at), *f = worst;
    if (!worst) {
        return;
    }
    fprintf(out, "\n**%s**\n\n", category);
    for (; f && shown < SHOWN_MAX; f = next_worse(gate, category, &at), shown++) {
        fputs("- ", out);
        gmd_put_markdown(f->item, out);
        fputs(": ", out);
        gmd_put_markdown(gmd_gate_figure_text(f, text, sizeof text), out);
        putc('\n', out);
    }
    if (count > shown) {
        fprintf(out, "- and %zu more\n", count - shown);
    }
    fputs("\nAgain: ", out);
    gmd_put_markdown(gmd_gate_figure_command(gate, worst, text, sizeof text), out);
    fputs("<br>To accept it: ", out);
    gmd_put_markdown(gate->baseline.commands, out);
    fputs(" --update-baseline\n", out);
}

void gate_categories_markdown(const gmd_gate_result *gate, FILE *out)
{
    char text[400];
    const char *category;
    fputs("| category | verdict | |\n| :-- | :-- | :-- |\n", out);
    for (size_t i = 0; (category = gmd_gate_category(i)) != NULL; i++) {
        fprintf(out, "| %s | %s | ", category, category_verdict(gate, category));
        gmd_put_markdown(summary_of(gate, category, text, sizeof text), out);
        fputs(" |\n", out);
    }
    for (size_t i = 0; (category = gmd_gate_category(i)) != NULL; i++) {
        put_regressions_markdown(gate, category, out);
    }
    putc('\n', out);
    for (size_t i = 0; i < gate->baseline.note_count; i++) {
        fputs("- ", out);
        gmd_put_markdown(gate->baseline.notes[i], out);
        putc('\n', out);
    }
    putc('\n', out);
}

/* --- JSON -------------------------------------------------------------------------------- */

const char *const gate_changes[] = {"unjudged", "same", "better", "worse", "lost", NULL};

static void write_span(gmd_json *json, const char *key, const char *interval,
                       const gmd_gate_span *s)
{
    if (s->value == floor(s->value) && s->value < 0x1p53) { /* bytes, calls */
        gmd_json_u64(json, key, (uint64_t)s->value);
    } else {
        gmd_json_exact(json, key, s->value);
    }
    if (s->low < s->high) {
        gmd_json_array(json, interval);
        gmd_json_exact(json, NULL, s->low);
        gmd_json_exact(json, NULL, s->high);
        gmd_json_end(json);
    }
}

static void write_figure(gmd_json *json, const gmd_gate_result *gate, const gmd_gate_figure *f)
{
    char command[GMD_GATE_COMMAND_MAX];
    gmd_json_row(json, NULL);
    gmd_json_string(json, "category", f->category);
    gmd_json_string(json, "item", f->item);
    gmd_json_string(json, "name", f->name);
    gmd_json_string(json, "unit", f->unit);
    if (f->change != GMD_GATE_LOST) {
        write_span(json, "value", "interval", &f->now);
    }
    if (f->change != GMD_GATE_UNJUDGED) {
        write_span(json, "before", "before_interval", &f->before);
    }
    gmd_json_string(json, "change", gate_changes[f->change]);
    if (f->change == GMD_GATE_LOST) {
        gmd_json_string(json, "reason", f->detail);
    }
    if (gmd_gate_is_regression(f)) {
        gmd_json_string(json, "replay", gmd_gate_figure_command(gate, f, command, sizeof command));
    }
    gmd_json_end(json);
}

void gate_figures_json(gmd_json *json, const gmd_gate_result *gate)
{
    char text[400];
    const char *category;
    gmd_json_array(json, "categories");
    for (size_t i = 0; (category = gmd_gate_category(i)) != NULL; i++) {
        gmd_json_row(json, NULL);
        gmd_json_string(json, "name", category);
        gmd_json_string(json, "verdict", category_verdict(gate, category));
        gmd_json_string(json, "summary", summary_of(gate, category, text, sizeof text));
        gmd_json_end(json);
    }
    gmd_json_end(json);
    if (gate->baseline.path[0]) {
        gmd_json_object(json, "baseline");
        gmd_json_string(json, "path", gate->baseline.path);
        gmd_json_string(json, "command", gate->baseline.commands);
        gmd_json_bool(json, "written", gate->baseline.was_written);
        gmd_json_array(json, "notes");
        for (size_t i = 0; i < gate->baseline.note_count; i++) {
            gmd_json_string(json, NULL, gate->baseline.notes[i]);
        }
        gmd_json_end(json);
        gmd_json_end(json);
    }
    gmd_json_array(json, "figures");
    for (size_t i = 0; i < gate->figure_count; i++) {
        write_figure(json, gate, &gate->figures[i]);
    }
    gmd_json_end(json);
}

/* --- JUnit ------------------------------------------------------------------------------- */

void gate_figures_junit(const gmd_gate_result *gate, const gmd_gate_part *part,
                        const gmd_gate_item *item, FILE *out)
{
    char text[1300];
    bool is_first = true;
    for (size_t i = 0; i < gate->figure_count; i++) {
        const gmd_gate_figure *f = &gate->figures[i];
        bool is_of = strcmp(f->category, part->category) == 0 && strcmp(f->item, item->name) == 0;
        if (!is_of || !gmd_gate_is_regression(f)) {
            continue;
        }
        gmd_gate_figure_text(f, text, sizeof text);
        if (is_first) {
            fputs("      <failure", out);
            gmd_put_attribute("message", text, out);
            gmd_put_attribute("type", f->name, out);
            fputs(">replay: ", out);
            gmd_put_xml(gmd_gate_figure_command(gate, f, text, sizeof text), out);
            fputs("\naccept: ", out);
            gmd_put_xml(gate->baseline.commands, out);
            fputs(" --update-baseline\n</failure>\n      <system-out>", out);
            gmd_gate_figure_text(f, text, sizeof text);
        }
        gmd_put_xml(text, out);
        putc('\n', out);
        is_first = false;
    }
    fputs(is_first ? "" : "</system-out>\n", out);
}
