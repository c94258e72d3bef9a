/* gmd_fitted_table.h - a table for people that fits a width: names are shortened in the middle,
 * numbers never; then what can do without is left out; names get shorter still last. */
#ifndef GMD_REPORTS_FITTED_TABLE_H
#define GMD_REPORTS_FITTED_TABLE_H

#include "gmd_terminal.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

enum { GMD_FITTED_COLUMNS = 9, GMD_FITTED_DEFAULT_WIDTH = 100 };

/* The width of a terminal, or that of a file or a pipe. */
int gmd_fitted_width(gmd_terminal terminal);

/* The text in so many columns: "model.blocks...weight" where it is longer. */
void gmd_fitted_put_text(const char *text, int most, FILE *out);
/* The same at the end of a line, of which `taken` columns are; at least `least`. */
void gmd_fitted_put_rest(const char *text, int taken, int least, gmd_terminal terminal, FILE *out);
/* Likewise its start, of text that is read from there: "loss = cross_entropy(mod ...". */
void gmd_fitted_put_start(const char *text, int taken, int least, gmd_terminal terminal, FILE *out);

typedef struct gmd_fitted_column {
    const char *heading;
    const char *brief; /* the heading where the table is too wide, and columns are closer; NULL:
                          the same */
    bool is_text;      /* to the left */
    int least;  /* a text may be shortened to so many columns before others leave; 0: never */
    int leaves; /* 1: left out first where the table is still too wide; 0: never */
} gmd_fitted_column;

typedef struct gmd_fitted_table {
    const gmd_fitted_column *columns;
    size_t column_count;
    char **cells; /* row by row */
    size_t cell_count, capacity;
    int widths[GMD_FITTED_COLUMNS]; /* 0: left out */
    bool is_brief;
} gmd_fitted_table;

/* `cells`: one for each column. False: there is no host memory, and nothing is added. */
bool gmd_fitted_table_add(gmd_fitted_table *table, const char *const cells[]);
/* After the last row. */
void gmd_fitted_table_fit(gmd_fitted_table *table, int width);
void gmd_fitted_table_put_heading(const gmd_fitted_table *table, FILE *out, gmd_terminal terminal);
void gmd_fitted_table_put_row(const gmd_fitted_table *table, size_t row, FILE *out);
/* Heading and rows. */
void gmd_fitted_table_put(const gmd_fitted_table *table, FILE *out, gmd_terminal terminal);
size_t gmd_fitted_table_rows(const gmd_fitted_table *table);
void gmd_fitted_table_free(gmd_fitted_table *table);

#endif
