#include "gmd_fitted_table.h"

#include "gmd_grow.h"
#include "gmd_report_text.h"

#include <stdlib.h>
#include <string.h>

static const char gap[] = "...", cut[] = " ...";

enum { LEAST_NAME = 12 }; /* columns of a name, however narrow the screen */

static int larger(int a, int b)
{
    return a > b ? a : b;
}

static int smaller(int a, int b)
{
    return a < b ? a : b;
}

int gmd_fitted_width(gmd_terminal terminal)
{
    return terminal.columns > 0 ? terminal.columns : GMD_FITTED_DEFAULT_WIDTH;
}

static void put_characters(const char **text, int count, FILE *out)
{
    for (uint32_t c; count > 0 && (c = gmd_utf8_next(text)); count--) {
        gmd_utf8_put(gmd_utf8_is_control(c) ? ' ' : c, out);
    }
}

static void skip_characters(const char **text, int count)
{
    while (count-- > 0 && gmd_utf8_next(text)) {
    }
}

void gmd_fitted_put_text(const char *text, int most, FILE *out)
{
    int length = gmd_text_width(text), gap_width = (int)strlen(gap);
    if (length <= most) {
        put_characters(&text, length, out);
        return;
    }
    int head = (most - gap_width) / 2, tail = most - gap_width - head;
    put_characters(&text, head, out);
    fputs(gap, out);
    skip_characters(&text, length - head - tail);
    put_characters(&text, tail, out);
}

void gmd_fitted_put_rest(const char *text, int taken, int least, gmd_terminal terminal, FILE *out)
{
    gmd_fitted_put_text(text, larger(gmd_fitted_width(terminal) - taken, least), out);
}

void gmd_fitted_put_start(const char *text, int taken, int least, gmd_terminal terminal, FILE *out)
{
    int most = larger(gmd_fitted_width(terminal) - taken, least), length = gmd_text_width(text);
    put_characters(&text, length > most ? most - (int)strlen(cut) : length, out);
    fputs(length > most ? cut : "", out);
}

/* --- the table --------------------------------------------------------------------------- */

size_t gmd_fitted_table_rows(const gmd_fitted_table *table)
{
    return table->cell_count / table->column_count;
}

bool gmd_fitted_table_add(gmd_fitted_table *table, const char *const cells[])
{
    size_t count = table->cell_count;
    bool has_memory = GMD_GROW(&table->cells, &table->capacity, count + table->column_count);
    for (size_t i = 0; has_memory && i < table->column_count; i++) {
        table->cells[count + i] = strdup(cells[i]);
        has_memory = table->cells[count + i] != NULL;
        table->cell_count += has_memory;
    }
    while (!has_memory && table->cell_count > count) {
        free(table->cells[--table->cell_count]);
    }
    return has_memory;
}

void gmd_fitted_table_free(gmd_fitted_table *table)
{
    for (size_t i = 0; i < table->cell_count; i++) {
        free(table->cells[i]);
    }
    free(table->cells);
    *table = (gmd_fitted_table){.columns = table->columns, .column_count = table->column_count};
}

static const char *heading_of(const gmd_fitted_table *table, size_t column)
{
    const gmd_fitted_column *c = &table->columns[column];
    return table->is_brief && c->brief ? c->brief : c->heading;
}

static int natural_width(const gmd_fitted_table *table, size_t column)
{
    int width = gmd_text_width(heading_of(table, column));
    for (size_t i = column; i < table->cell_count; i += table->column_count) {
        width = larger(gmd_text_width(table->cells[i]), width);
    }
    return width;
}

/* Between two columns, and before the first one. */
static int space_before(const gmd_fitted_table *table, size_t column)
{
    return column && table->is_brief ? 1 : 2;
}

static int total_width(const gmd_fitted_table *table)
{
    int total = 0;
    for (size_t i = 0; i < table->column_count; i++) {
        total += table->widths[i] ? space_before(table, i) + table->widths[i] : 0;
    }
    return total;
}

/* Those that leave first, up to the number `left_out`, are not there. No text is shortened to less
 * than its column's least, or than `floor`, where that is less. */
static void measure(gmd_fitted_table *table, int width, int left_out, int floor)
{
    for (size_t i = 0; i < table->column_count; i++) {
        const gmd_fitted_column *c = &table->columns[i];
        bool is_there = !c->leaves || c->leaves > left_out;
        table->widths[i] = is_there ? natural_width(table, i) : 0;
    }
    for (size_t i = 0; i < table->column_count; i++) {
        int excess = total_width(table) - width, least = smaller(table->columns[i].least, floor);
        if (excess > 0 && least && table->widths[i] > least) {
            table->widths[i] = larger(table->widths[i] - excess, least);
        }
    }
}

void gmd_fitted_table_fit(gmd_fitted_table *table, int width)
{
    int most = 0;
    for (size_t i = 0; i < table->column_count; i++) {
        most = larger(table->columns[i].leaves, most);
    }
    measure(table, width, 0, width);
    table->is_brief = total_width(table) > width;
    for (int left_out = 0; left_out <= most && total_width(table) > width; left_out++) {
        measure(table, width, left_out, width);
    }
    if (total_width(table) > width) {
        measure(table, width, most, LEAST_NAME);
    }
}

static void put_cell(const gmd_fitted_table *table, size_t column, const char *text, bool is_last,
                     FILE *out)
{
    int width = table->widths[column], length = smaller(gmd_text_width(text), width);
    bool is_text = table->columns[column].is_text;
    if (width == 0) {
        return;
    }
    fprintf(out, "%*s", space_before(table, column) + (is_text ? 0 : width - length), "");
    gmd_fitted_put_text(text, width, out);
    fprintf(out, "%*s", is_text && !is_last ? width - length : 0, "");
}

void gmd_fitted_table_put_heading(const gmd_fitted_table *table, FILE *out, gmd_terminal terminal)
{
    fputs(terminal.color ? "\033[1m" : "", out);
    for (size_t i = 0; i < table->column_count; i++) {
        put_cell(table, i, heading_of(table, i), i + 1 == table->column_count, out);
    }
    fputs(terminal.color ? "\033[0m\n" : "\n", out);
}

void gmd_fitted_table_put_row(const gmd_fitted_table *table, size_t row, FILE *out)
{
    for (size_t i = 0; i < table->column_count; i++) {
        put_cell(table, i, table->cells[row * table->column_count + i],
                 i + 1 == table->column_count, out);
    }
    putc('\n', out);
}

void gmd_fitted_table_put(const gmd_fitted_table *table, FILE *out, gmd_terminal terminal)
{
    gmd_fitted_table_put_heading(table, out, terminal);
    for (size_t i = 0; i < gmd_fitted_table_rows(table); i++) {
        gmd_fitted_table_put_row(table, i, out);
    }
}
