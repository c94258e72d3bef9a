#include "gmd_diff_report.h"

#include "compared_line.h"
#include "diff_figures.h"
#include "place_json.h"

#include "gmd_json.h"
#include "gmd_min.h"
#include "gmd_report_text.h"
#include "gmd_size.h"

#include <stdlib.h>

enum { BEFORE, AFTER };

/* --- the diff -------------------------------------------------------------------------------- */

static gmd_status compare(gmd_comparison *c, const gmd_diff_input *before, const gmd_holders *a,
                          const gmd_diff_input *after, const gmd_holders *b, gmd_grouping grouping,
                          gmd_error *error)
{
    const gmd_compared_side sides[] = {{before->places, a}, {after->places, b}};
    return gmd_comparison_of(c, sides, 2, grouping, error);
}

gmd_status gmd_diff_make(gmd_diff *diff, const gmd_diff_input *before, const gmd_diff_input *after,
                         bool is_of_end, gmd_error *error)
{
    *diff = (gmd_diff){.before = before, .after = after, .is_of_end = is_of_end};
    gmd_status status =
        compare(&diff->lines, before, &before->lines, after, &after->lines, GMD_BY_LINE, error);
    if (status == GMD_OK) {
        status = compare(&diff->stacks, before, &before->stacks, after, &after->stacks,
                         GMD_BY_STACK, error);
    }
    if (status == GMD_OK) {
        status = compare(&diff->categories, before, &before->categories, after, &after->categories,
                         GMD_BY_CATEGORY, error);
    }
    if (status == GMD_OK && !diff_figures_match(diff)) {
        status = gmd_fail(error, GMD_NO_MEMORY, "no host memory for the diff");
    }
    if (status != GMD_OK) {
        gmd_diff_free(diff);
    }
    return status;
}

void gmd_diff_free(gmd_diff *diff)
{
    gmd_comparison_free(&diff->lines);
    gmd_comparison_free(&diff->stacks);
    gmd_comparison_free(&diff->categories);
    free(diff->figures);
    diff->figures = NULL;
    diff->figure_count = 0;
}

uint64_t gmd_diff_growth(const gmd_diff *diff)
{
    const uint64_t *total = diff->lines.total;
    return total[AFTER] > total[BEFORE] ? total[AFTER] - total[BEFORE] : 0;
}

/* --- text ------------------------------------------------------------------------------------ */

static const char *format_change(uint64_t before, uint64_t after, char text[32])
{
    char size[24];
    bool grew = after >= before;
    gmd_format_size(grew ? after - before : before - after, size);
    snprintf(text, 32, "%s%s", after == before ? "" : grew ? "+" : "-", size);
    return text;
}

static const char *format_figure(const gmd_diff_figure *figure, char text[32])
{
    if (!figure) {
        return "-";
    }
    return figure->is_bytes ? gmd_format_size(figure->value, text)
                            : gmd_format_count(figure->value, text);
}

static const char *format_figure_change(const gmd_diff_figure_row *row, char text[32])
{
    char count[32];
    if (!row->before || !row->after) {
        return "";
    }
    uint64_t before = row->before->value, after = row->after->value;
    if (row->before->is_bytes) {
        return format_change(before, after, text);
    }
    gmd_format_count(after >= before ? after - before : before - after, count);
    snprintf(text, 32, "%s%.30s", after == before ? "" : after > before ? "+" : "-", count);
    return text;
}

enum { FIGURE_COLUMNS = 37, BELOW = 4 }; /* of a row, before its name; the indent of one below */

static void put_name(const gmd_comparison *c, const gmd_compared_row *row,
                     void (*put_text)(const char *, FILE *), FILE *out)
{
    if (c->grouping == GMD_BY_CATEGORY) {
        fputs(gmd_category_name((uint32_t)row->key), out);
        return;
    }
    compared_line_put(row, put_text, out);
}

/* Behind the figures, or below them. */
static void put_name_beside(const gmd_comparison *c, const gmd_compared_row *row,
                            gmd_terminal terminal, FILE *out)
{
    gmd_held_text held;
    put_name(c, row, gmd_utf8_put_line, gmd_held_text_begin(&held, out));
    gmd_held_text_put_beside(&held, terminal, FIGURE_COLUMNS, BELOW);
}

static void put_rest(size_t count, uint32_t rows, FILE *out)
{
    char text[32];
    if (rows < count) {
        fprintf(out, "  and %s more\n", gmd_format_count(count - rows, text));
    }
}

static void put_table(const gmd_comparison *c, const char *title, uint32_t rows,
                      gmd_terminal terminal, FILE *out)
{
    char before[24], after[24], change[32];
    size_t shown = gmd_min(c->row_count, rows);
    if (c->row_count == 0) {
        return;
    }
    fprintf(out, "\n      before      after      change  %s\n", title);
    for (size_t i = 0; i < shown; i++) {
        const gmd_compared_row *row = &c->rows[i];
        fprintf(out, "  %10s %10s %11s", gmd_format_size(row->bytes[BEFORE], before),
                gmd_format_size(row->bytes[AFTER], after),
                format_change(row->bytes[BEFORE], row->bytes[AFTER], change));
        put_name_beside(c, row, terminal, out);
    }
    put_rest(c->row_count, rows, out);
}

static void put_figures(const gmd_diff *diff, uint32_t rows, gmd_terminal terminal, FILE *out)
{
    char before[32], after[32], change[32];
    if (diff->figure_count == 0) {
        return;
    }
    fputs("\n      before      after      change  figure\n", out);
    for (size_t i = 0; i < diff->figure_count && i < rows; i++) {
        const gmd_diff_figure_row *row = &diff->figures[i];
        fprintf(out, "  %10s %10s %11s", format_figure(row->before, before),
                format_figure(row->after, after), format_figure_change(row, change));
        gmd_put_beside(out, terminal, FIGURE_COLUMNS, BELOW, diff_figure_of(row)->name);
    }
    put_rest(diff->figure_count, rows, out);
}

static void put_sides(const gmd_diff *diff, gmd_terminal terminal, FILE *out)
{
    const char *before = diff->before->name, *after = diff->after->name;
    int width = gmd_text_width(before) + gmd_text_width(" -> ") + gmd_text_width(after);
    gmd_utf8_put_line(before, out);
    fputs(terminal.columns && width > terminal.columns ? " ->\n    " : " -> ", out);
    gmd_utf8_put_line(after, out);
    putc('\n', out);
}

gmd_status gmd_diff_write_text(const gmd_diff *diff, uint32_t rows, gmd_terminal terminal,
                               FILE *out, gmd_error *error)
{
    const uint64_t *total = diff->lines.total;
    char before[24], after[24], change[32];
    put_sides(diff, terminal, out);
    fprintf(out, "Allocated at the %s: %s -> %s (%s)\n", diff->is_of_end ? "end" : "peak",
            gmd_format_size(total[BEFORE], before), gmd_format_size(total[AFTER], after),
            format_change(total[BEFORE], total[AFTER], change));
    put_table(&diff->lines, "line", rows, terminal, out);
    put_table(&diff->categories, "category", rows, terminal, out);
    put_figures(diff, rows, terminal, out);
    return gmd_finish_writing(out, "the diff", error);
}

static void put_markdown_head(const char *title, FILE *out)
{
    fprintf(out, "| %s | before | after | change |\n| --- | ---: | ---: | ---: |\n", title);
}

static void put_markdown_table(const gmd_comparison *c, const char *title, uint32_t rows, FILE *out)
{
    char before[24], after[24], change[32];
    if (c->row_count == 0) {
        return;
    }
    put_markdown_head(title, out);
    for (size_t i = 0; i < c->row_count && i < rows; i++) {
        const gmd_compared_row *row = &c->rows[i];
        fputs("| ", out);
        put_name(c, row, gmd_put_markdown, out);
        fprintf(out, " | %s | %s | %s |\n", gmd_format_size(row->bytes[BEFORE], before),
                gmd_format_size(row->bytes[AFTER], after),
                format_change(row->bytes[BEFORE], row->bytes[AFTER], change));
    }
    fputc('\n', out);
}

static void put_markdown_figures(const gmd_diff *diff, uint32_t rows, FILE *out)
{
    char before[32], after[32], change[32];
    if (diff->figure_count == 0) {
        return;
    }
    put_markdown_head("figure", out);
    for (size_t i = 0; i < diff->figure_count && i < rows; i++) {
        const gmd_diff_figure_row *row = &diff->figures[i];
        fputs("| ", out);
        gmd_put_markdown(diff_figure_of(row)->name, out);
        fprintf(out, " | %s | %s | %s |\n", format_figure(row->before, before),
                format_figure(row->after, after), format_figure_change(row, change));
    }
    fputc('\n', out);
}

gmd_status gmd_diff_write_markdown(const gmd_diff *diff, uint32_t rows, FILE *out, gmd_error *error)
{
    const uint64_t *total = diff->lines.total;
    char before[24], after[24], change[32];
    fprintf(out, "**Allocated at the %s: %s -> %s (%s)**\n\n", diff->is_of_end ? "end" : "peak",
            gmd_format_size(total[BEFORE], before), gmd_format_size(total[AFTER], after),
            format_change(total[BEFORE], total[AFTER], change));
    put_markdown_table(&diff->lines, "line", rows, out);
    put_markdown_table(&diff->categories, "category", rows, out);
    put_markdown_figures(diff, rows, out);
    return gmd_finish_writing(out, "the Markdown report", error);
}

/* --- JSON ------------------------------------------------------------------------------------ */

static void put_amounts(gmd_json *json, const gmd_compared_row *row)
{
    gmd_json_u64(json, "before", row->bytes[BEFORE]);
    gmd_json_u64(json, "after", row->bytes[AFTER]);
    gmd_json_i64(json, "change", (int64_t)(row->bytes[AFTER] - row->bytes[BEFORE]));
}

static void put_lines(gmd_json *json, const gmd_comparison *c)
{
    gmd_json_array(json, "lines");
    for (size_t i = 0; i < c->row_count; i++) {
        gmd_json_row(json, NULL);
        place_json_put(json, c->rows[i].named_by, (uint32_t)c->rows[i].key);
        put_amounts(json, &c->rows[i]);
        gmd_json_end(json);
    }
    gmd_json_end(json);
}

static void put_stacks(gmd_json *json, const gmd_comparison *c)
{
    gmd_json_array(json, "stacks");
    for (size_t i = 0; i < c->row_count; i++) {
        gmd_json_object(json, NULL);
        put_amounts(json, &c->rows[i]);
        place_json_put_frames(json, c->rows[i].named_by, (uint32_t)c->rows[i].key);
        gmd_json_end(json);
    }
    gmd_json_end(json);
}

static void put_categories(gmd_json *json, const gmd_comparison *c)
{
    gmd_json_array(json, "categories");
    for (size_t i = 0; i < c->row_count; i++) {
        gmd_json_row(json, NULL);
        gmd_json_string(json, "category", gmd_category_name((uint32_t)c->rows[i].key));
        put_amounts(json, &c->rows[i]);
        gmd_json_end(json);
    }
    gmd_json_end(json);
}

static void put_figure(gmd_json *json, const char *key, const gmd_diff_figure *figure)
{
    if (figure) {
        gmd_json_u64(json, key, figure->value);
    } else {
        gmd_json_null(json, key);
    }
}

static void put_json_figures(gmd_json *json, const gmd_diff *diff)
{
    gmd_json_array(json, "figures");
    for (size_t i = 0; i < diff->figure_count; i++) {
        const gmd_diff_figure_row *row = &diff->figures[i];
        gmd_json_row(json, NULL);
        gmd_json_string(json, "figure", diff_figure_of(row)->name);
        put_figure(json, "before", row->before);
        put_figure(json, "after", row->after);
        if (row->before && row->after) {
            gmd_json_i64(json, "change", (int64_t)(row->after->value - row->before->value));
        } else {
            gmd_json_null(json, "change");
        }
        gmd_json_end(json);
    }
    gmd_json_end(json);
}

gmd_status gmd_diff_write_json(const gmd_diff *diff, const char *version, uint64_t threshold,
                               FILE *out, gmd_error *error)
{
    gmd_json json;
    gmd_json_start(&json, out);
    gmd_json_object(&json, NULL);
    gmd_json_string(&json, "gmd", version);
    gmd_json_string(&json, "command", "diff");
    gmd_json_string(&json, "verdict", gmd_diff_growth(diff) > threshold ? "fail" : "pass");
    gmd_json_string(&json, "moment", diff->is_of_end ? "end" : "peak");
    gmd_json_string(&json, "snapshot_before", diff->before->name);
    gmd_json_string(&json, "snapshot_after", diff->after->name);
    gmd_json_u64(&json, "before", diff->lines.total[BEFORE]);
    gmd_json_u64(&json, "after", diff->lines.total[AFTER]);
    gmd_json_i64(&json, "change", (int64_t)(diff->lines.total[AFTER] - diff->lines.total[BEFORE]));
    put_lines(&json, &diff->lines);
    put_categories(&json, &diff->categories);
    put_stacks(&json, &diff->stacks);
    put_json_figures(&json, diff);
    gmd_json_end(&json);
    gmd_json_finish(&json);
    return gmd_finish_writing(out, "the JSON report", error);
}
