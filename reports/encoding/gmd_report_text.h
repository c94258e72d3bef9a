/* gmd_report_text.h - what the report writers share: text of unknown origin, numbers and table
 * columns for people. */
#ifndef GMD_REPORTS_TEXT_H
#define GMD_REPORTS_TEXT_H

#include "gmd_error.h"
#include "gmd_outcome.h"
#include "gmd_terminal.h"
#include "gmd_utf8.h"

#include <stdint.h>
#include <stdio.h>

/* Words that fill lines of so many columns, each indented; the first and those after it. */
void gmd_put_wrapped(FILE *out, int columns, int indent, const char *text);
void gmd_put_hanging(FILE *out, int columns, int first, int others, const char *text);

/* The columns that a text takes. */
int gmd_text_width(const char *text);

/* Text of unknown origin that goes on from column `*at`, which moves on: at a space whose next word
 * does not fit onto the terminal a new line begins, indented. */
void gmd_put_flowing(FILE *out, gmd_terminal terminal, int indent, int *at, const char *text);

/* What a row of figures is of, behind them: two columns after `at`, where they end, or where there
 * is no room for it, on lines of its own, indented. Ends the line. */
void gmd_put_beside(FILE *out, gmd_terminal terminal, int at, int indent, const char *text);

/* Text that is put together piece by piece before it is put on a screen, where its width decides.
 * Without host memory it goes to the screen as it is. */
typedef struct gmd_held_text {
    FILE *screen, *stream; /* the same: nothing is held */
    char *text;
    size_t size;
} gmd_held_text;

/* Where to put the pieces. Each of the others ends it, and the line. */
FILE *gmd_held_text_begin(gmd_held_text *held, FILE *screen);
/* It goes on from column `at`; the lines after the first are indented. */
void gmd_held_text_put(gmd_held_text *held, gmd_terminal terminal, int at, int indent);
/* As gmd_put_beside() does. */
void gmd_held_text_put_beside(gmd_held_text *held, gmd_terminal terminal, int at, int indent);

/* Text of unknown origin on one line, with nothing left in it that Markdown or HTML would act on.
 */
void gmd_put_markdown(const char *text, FILE *out);

/* "10,236" */
const char *gmd_format_count(uint64_t count, char text[32]);

/* The unit that all sizes of one table share, so that its columns compare at a glance. */
typedef struct gmd_table_unit {
    const char *name; /* "KiB", "MiB", "GiB" */
    double bytes;
    int decimals;
} gmd_table_unit;

gmd_table_unit gmd_table_unit_for(const gmd_phase *phases, uint32_t count);
/* "10,236.5"; "-" for GMD_STAT_UNKNOWN. */
const char *gmd_format_in_unit(uint64_t bytes, gmd_table_unit unit, char text[40]);

/* Long phase tables show both ends: of `count` rows, those with an index in [*first, *resume) are
 * left out. */
void gmd_phases_to_leave_out(uint32_t count, uint32_t *first, uint32_t *resume);

/* Flushes, and says whether all that was written to `out` arrived. `what`: "the JSON report". */
gmd_status gmd_finish_writing(FILE *out, const char *what, gmd_error *error);

#endif
