#include "gmd_report_text.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* Phase tables up to this length are shown whole; longer ones keep this many rows at either end. */
enum { whole_table_rows = 24, kept_rows = 8 };

void gmd_put_markdown(const char *text, FILE *out)
{
    for (uint32_t c = gmd_utf8_next(&text); c; c = gmd_utf8_next(&text)) {
        if (gmd_utf8_is_control(c)) {
            putc(' ', out);
        } else if (c == '&') {
            fputs("&amp;", out);
        } else if (c == '<') {
            fputs("&lt;", out);
        } else if (c == '>') {
            fputs("&gt;", out);
        } else {
            if (c < 0x80 && strchr("\\`*_{}[]|#~$@", (int)c)) {
                putc('\\', out);
            }
            gmd_utf8_put(c, out);
        }
    }
}

/* Puts a comma before each group of three of the digits that `text` starts with. */
static void group_digits(char *text, size_t size)
{
    size_t digits = strspn(text, "0123456789");
    for (size_t at = digits; at > 3; at -= 3) {
        size_t rest = strlen(text + at - 3) + 1;
        if (at - 3 + rest + 1 > size) {
            return;
        }
        memmove(text + at - 2, text + at - 3, rest);
        text[at - 3] = ',';
    }
}

const char *gmd_format_count(uint64_t count, char text[32])
{
    snprintf(text, 32, "%" PRIu64, count);
    group_digits(text, 32);
    return text;
}

static uint64_t largest_known(uint64_t largest, uint64_t value)
{
    return value != GMD_STAT_UNKNOWN && value > largest ? value : largest;
}

gmd_table_unit gmd_table_unit_for(const gmd_phase *phases, uint32_t count)
{
    uint64_t largest = 0;
    for (uint32_t i = 0; i < count; i++) {
        largest = largest_known(largest, phases[i].max_allocated);
        largest = largest_known(largest, phases[i].max_reserved);
        largest = largest_known(largest, phases[i].allocated);
        largest = largest_known(largest, phases[i].reserved);
    }
    const uint64_t mib = (uint64_t)1 << 20;
    if (largest < mib) {
        return (gmd_table_unit){"KiB", 1024.0, 1};
    }
    if (largest < (uint64_t)100 * 1024 * mib) {
        return (gmd_table_unit){"MiB", (double)mib, 1};
    }
    return (gmd_table_unit){"GiB", 1024.0 * (double)mib, 2};
}

const char *gmd_format_in_unit(uint64_t bytes, gmd_table_unit unit, char text[40])
{
    if (bytes == GMD_STAT_UNKNOWN) {
        memcpy(text, "-", sizeof "-");
        return text;
    }
    snprintf(text, 40, "%.*f", unit.decimals, (double)bytes / unit.bytes);
    group_digits(text, 40);
    return text;
}

void gmd_phases_to_leave_out(uint32_t count, uint32_t *first, uint32_t *resume)
{
    bool is_long = count > whole_table_rows;
    *first = is_long ? kept_rows : count;
    *resume = is_long ? count - kept_rows : count;
}

gmd_status gmd_finish_writing(FILE *out, const char *what, gmd_error *error)
{
    errno = 0;
    bool flushed = fflush(out) == 0;
    if (!flushed || ferror(out)) {
        return gmd_fail(error, GMD_FAILED, "cannot write %s: %s", what,
                        errno ? strerror(errno) : "an earlier write failed");
    }
    return GMD_OK;
}

int gmd_text_width(const char *text)
{
    int width = 0;
    while (gmd_utf8_next(&text)) {
        width++;
    }
    return width;
}

/* The bytes of the unit that the text begins with; 0: it begins with none. */
static size_t unit_length(const char *text)
{
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB", "%", "ms", "s"};
    for (size_t i = 0; i < sizeof units / sizeof *units; i++) {
        size_t length = strlen(units[i]);
        if (strncmp(text, units[i], length) == 0 && !isalnum((unsigned char)text[length])) {
            return length;
        }
    }
    return 0;
}

static bool is_in_figure(const char *text, const char *space)
{
    return space > text && isdigit((unsigned char)space[-1]) && unit_length(space + 1) > 0;
}

/* The bytes up to the space at which a line may end: "12.5 MiB" stays on one. */
static size_t word_length(const char *text)
{
    size_t length = strcspn(text, " ");
    if (text[length] && is_in_figure(text, text + length)) {
        length += 1 + strcspn(text + length + 1, " ");
    }
    return length;
}

static int width_of_word(const char *text)
{
    const char *end = text + word_length(text);
    int width = 0;
    while (text < end && gmd_utf8_next(&text)) {
        width++;
    }
    return width;
}

void gmd_put_flowing(FILE *out, gmd_terminal terminal, int indent, int *at, const char *text)
{
    const char *first = text;
    for (uint32_t c; (c = gmd_utf8_next(&text));) {
        bool is_space = c == ' ' || gmd_utf8_is_control(c);
        bool is_full = is_space && terminal.columns && *at > indent &&
                       !is_in_figure(first, text - 1) &&
                       *at + 1 + width_of_word(text) > terminal.columns;
        if (is_full) {
            fprintf(out, "\n%*s", indent, "");
            *at = indent;
        } else {
            gmd_utf8_put(is_space ? ' ' : c, out);
            (*at)++;
        }
    }
}

void gmd_put_beside(FILE *out, gmd_terminal terminal, int at, int indent, const char *text)
{
    enum { GAP = 2 };
    bool has_room = !terminal.columns || at + GAP + gmd_text_width(text) <= terminal.columns;
    fprintf(out, "%s%*s", has_room ? "" : "\n", has_room ? GAP : indent, "");
    at = has_room ? at + GAP : indent;
    gmd_put_flowing(out, terminal, indent, &at, text);
    putc('\n', out);
}

void gmd_put_hanging(FILE *out, int columns, int first, int others, const char *text)
{
    int column = 0, indent = first;
    for (const char *word = text + strspn(text, " "); *word; word += strspn(word, " ")) {
        int length = (int)word_length(word);
        if (column > 0 && column + 1 + length > columns) {
            fputc('\n', out);
            column = 0;
            indent = others;
        }
        column += fprintf(out, "%*s%.*s", column == 0 ? indent : 1, "", length, word);
        word += length;
    }
    fputc('\n', out);
}

void gmd_put_wrapped(FILE *out, int columns, int indent, const char *text)
{
    gmd_put_hanging(out, columns, indent, indent, text);
}

FILE *gmd_held_text_begin(gmd_held_text *held, FILE *screen)
{
    *held = (gmd_held_text){.screen = screen};
    FILE *stream = open_memstream(&held->text, &held->size);
    held->stream = stream ? stream : screen;
    return held->stream;
}

/* False: it is on the screen already. */
static bool end_holding(gmd_held_text *held)
{
    if (held->stream == held->screen) {
        putc('\n', held->screen);
        return false;
    }
    fclose(held->stream);
    return true;
}

void gmd_held_text_put(gmd_held_text *held, gmd_terminal terminal, int at, int indent)
{
    if (end_holding(held)) {
        gmd_put_flowing(held->screen, terminal, indent, &at, held->text ? held->text : "");
        putc('\n', held->screen);
        free(held->text);
    }
}

void gmd_held_text_put_beside(gmd_held_text *held, gmd_terminal terminal, int at, int indent)
{
    if (end_holding(held)) {
        gmd_put_beside(held->screen, terminal, at, indent, held->text ? held->text : "");
        free(held->text);
    }
}
