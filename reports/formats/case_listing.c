#include "gmd_case_listing.h"

#include "gmd_file.h"
#include "gmd_report_text.h"
#include "gmd_trace.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* --- lines -------------------------------------------------------------------------------- */

static bool is_said(const char *text, size_t length)
{
    size_t blank = strspn(text, " \t\r");
    return blank < length && text[blank] != '#' && strncmp(text, "gmd-trace ", 10) != 0;
}

/* Without a comment at its end. */
static size_t said_length(const char *text, size_t length)
{
    const char *comment = memchr(text, '#', length);
    length = comment ? (size_t)(comment - text) : length;
    while (length && strchr(" \t\r", text[length - 1])) {
        length--;
    }
    return length;
}

/* False: there is no room for it. */
static bool add_line(gmd_case_listing *listing, uint32_t number, const char *text, size_t length)
{
    if (listing->count == GMD_CASE_LINES) {
        return false;
    }
    gmd_case_line *line = &listing->lines[listing->count++];
    *line = (gmd_case_line){.line = number, .request = UINT64_MAX};
    snprintf(line->text, sizeof line->text, "%.*s", (int)said_length(text, length), text);
    return true;
}

static bool add_lines(gmd_case_listing *listing, const char *text, size_t size)
{
    uint32_t number = 1;
    for (size_t at = 0; at < size; number++) {
        const char *end = memchr(text + at, '\n', size - at);
        size_t length = end ? (size_t)(end - (text + at)) : size - at;
        if (is_said(text + at, length) && !add_line(listing, number, text + at, length)) {
            return false;
        }
        at += length + 1;
    }
    return true;
}

/* --- requests ----------------------------------------------------------------------------- */

static gmd_case_line *line_of(gmd_case_listing *listing, uint32_t number)
{
    for (uint32_t i = 0; i < listing->count; i++) {
        if (listing->lines[i].line == number) {
            return &listing->lines[i];
        }
    }
    return NULL;
}

static void number_requests(gmd_case_listing *listing, const gmd_trace *trace)
{
    for (size_t i = 0; i < trace->count; i++) {
        gmd_case_line *line = line_of(listing, trace->requests[i].line);
        if (line) {
            line->request = i;
        }
    }
}

static void add_answers(gmd_case_listing *listing, const gmd_trace *trace,
                        const gmd_journal *journal)
{
    for (uint64_t i = 0; i < journal->count; i++) {
        const gmd_journal_event *e = &journal->events[i];
        gmd_case_line *line =
            e->request < trace->count ? line_of(listing, trace->requests[e->request].line) : NULL;
        if (line && e->action == GMD_ACTION_ALLOC + 1) {
            snprintf(line->answer, sizeof line->answer, "0x%" PRIx64, e->address);
        } else if (line && e->action == GMD_ACTION_OOM + 1) {
            snprintf(line->answer, sizeof line->answer, "out of memory");
        }
    }
}

static void mark_failing(gmd_case_listing *listing, const gmd_outcome *outcome)
{
    for (uint32_t i = 0; i < listing->count && outcome->violation_count; i++) {
        listing->lines[i].is_failing = listing->lines[i].request == outcome->violations[0].request;
    }
}

void gmd_case_listing_read(gmd_case_listing *listing, const char *path, const gmd_outcome *outcome,
                           const gmd_journal *journal)
{
    uint8_t *text = NULL;
    size_t size = 0;
    gmd_trace trace;
    gmd_error error;
    *listing = (gmd_case_listing){0};
    if (gmd_file_read(path, &text, &size, &error) != GMD_OK) {
        return;
    }
    if (gmd_trace_parse(&trace, (const char *)text, size, path, &error) == GMD_OK &&
        add_lines(listing, (const char *)text, size)) {
        number_requests(listing, &trace);
        mark_failing(listing, outcome);
        if (journal) {
            add_answers(listing, &trace, journal);
        }
    } else {
        listing->count = 0;
    }
    gmd_trace_free(&trace);
    free(text);
}

/* --- writing ------------------------------------------------------------------------------ */

/* What has no answer may be longer than the column. */
static int widest_text(const gmd_case_listing *listing)
{
    size_t widest = strlen("case");
    for (uint32_t i = 0; i < listing->count; i++) {
        const gmd_case_line *line = &listing->lines[i];
        size_t length = *line->answer ? strlen(line->text) : 0;
        widest = length > widest ? length : widest;
    }
    return (int)widest;
}

static void put_line(const gmd_case_line *line, int width, const char *indent, FILE *out)
{
    fprintf(out, "%s%c %4" PRIu32, indent, line->is_failing ? '>' : ' ', line->line);
    if (line->request != UINT64_MAX) {
        fprintf(out, " %7" PRIu64 "  ", line->request);
    } else {
        fprintf(out, " %7s  ", "");
    }
    gmd_utf8_put_line(line->text, out);
    if (*line->answer) {
        fprintf(out, "%*s  %s", width - (int)strlen(line->text), "", line->answer);
    }
    putc('\n', out);
}

void gmd_case_listing_put(const gmd_case_listing *listing, const char *indent, FILE *out)
{
    if (!listing) {
        return;
    }
    int width = widest_text(listing);
    fprintf(out, "%s  line request  %-*s  answer\n", indent, width, "case");
    for (uint32_t i = 0; i < listing->count; i++) {
        put_line(&listing->lines[i], width, indent, out);
    }
}
