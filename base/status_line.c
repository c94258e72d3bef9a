#include "gmd_status_line.h"

#include "gmd_utf8.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <unistd.h>

#define REFRESH_SECONDS 0.1 /* on a terminal */
#define MINUTE          60.0

enum { COLUMNS_MAX = 80 };

/* Ends the text after so many columns. */
static void cut_off(char *text)
{
    const char *at = text;
    for (int columns = 0; columns < COLUMNS_MAX && *at; columns++) {
        gmd_utf8_next(&at);
    }
    text[at - text] = '\0';
}

void gmd_status_show(gmd_status_line *line, double seconds, const char *format, ...)
{
    if (seconds < line->next_shown) {
        return;
    }
    bool is_terminal = isatty(STDERR_FILENO);
    if (!is_terminal && seconds < MINUTE) {
        line->next_shown = MINUTE;
        return;
    }
    char text[COLUMNS_MAX * 8];
    int used = snprintf(text, sizeof text, "%.0f s, ", seconds);
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text + used, sizeof text - (size_t)used, format, arguments);
    va_end(arguments);
    cut_off(text);
    fprintf(stderr, is_terminal ? GMD_STATUS_BEGIN "%s" GMD_STATUS_END : "%s\n", text);
    line->next_shown = seconds + (is_terminal ? REFRESH_SECONDS : MINUTE);
    line->is_on_terminal = is_terminal;
}

void gmd_status_clear(gmd_status_line *line)
{
    if (line->is_on_terminal) {
        fprintf(stderr, GMD_STATUS_CLEAR);
        line->is_on_terminal = 0;
        line->next_shown = 0;
    }
}
