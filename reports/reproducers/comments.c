/* comments.c - what a case says of itself, read and written. */
#define _GNU_SOURCE /* asprintf */
#include "reproducer.h"

#include <string.h>

enum { COMMENT_MOST = 98 };

/* --- comments ---------------------------------------------------------------------------- */

void put_comment_text(const char *text, FILE *out)
{
    for (const char *c = text; *c; c++) {
        bool ends_comment = c[0] == '*' && c[1] == '/';
        fputc((unsigned char)*c < ' ' ? ' ' : *c, out);
        if (ends_comment || (c[0] == '/' && c[1] == '*')) {
            fputc(' ', out);
        }
    }
}

void put_c_string(const char *text, FILE *out)
{
    fputc('"', out);
    for (const char *c = text; *c; c++) {
        if (*c == '"' || *c == '\\') {
            fprintf(out, "\\%c", *c);
        } else if ((unsigned char)*c < ' ' || *c == '?') {
            fprintf(out, "\\%03o", (unsigned char)*c);
        } else {
            fputc(*c, out);
        }
    }
    fputc('"', out);
}

void put_wrapped(const char *text, const char *indent, FILE *out)
{
    size_t column = 0;
    while (*text) {
        size_t word = strcspn(text, " \n\t");
        if (column > 0 && column + 1 + word > COMMENT_MOST) {
            fputc('\n', out);
            column = 0;
        }
        if (word > 0) {
            fputs(column ? " " : indent, out);
            column += column ? 1 : strlen(indent);
            char *copy = strndup(text, word);
            put_comment_text(copy ? copy : "", out);
            column += word;
            free(copy);
        }
        text += word + (text[word] != 0);
    }
    fputs(column ? "\n" : "", out);
}

void put_findings(const gmd_reproducer *r, const char *indent, FILE *out)
{
    char *text = NULL;
    if (r->oracle && asprintf(&text, "%s: %s", r->oracle, r->message) >= 0) {
        put_wrapped(text, indent, out);
        free(text);
        text = NULL;
    }
    if ((r->allocator || r->origin) &&
        asprintf(&text, "%s%s%s%s", r->origin ? r->origin : "",
                 r->origin && r->allocator ? "; " : "", r->allocator ? "allocator: " : "",
                 r->allocator ? r->allocator : "") >= 0) {
        put_wrapped(text, indent, out);
        free(text);
    }
}

bool needs_simulator(const gmd_trace *trace)
{
    for (size_t i = 0; i < trace->count; i++) {
        if (trace->requests[i].op == GMD_OP_FAULT || trace->requests[i].op == GMD_OP_BUDGET) {
            return true;
        }
    }
    return false;
}

/* --- what a case file says --------------------------------------------------------------- */

/* The comment in the line at `line`, ended there; NULL: the line is none. `*next` gets the line
 * after it. */
static char *take_comment(char *line, char **next)
{
    char *end = line + strcspn(line, "\n");
    *next = *end ? end + 1 : end;
    if (line[0] != '#' || line[1] != ' ') {
        return NULL;
    }
    *end = 0;
    return line + 2;
}

static const char allocator_mark[] = " --allocator ";

static bool is_oracle_name(const char *text, size_t length)
{
    return length > 0 && length < 24 && strspn(text, "abcdefghijklmnopqrstuvwxyz_") == length;
}

void gmd_reproducer_read_comments(gmd_reproducer *reproducer, char *text)
{
    char *next = text + strcspn(text, "\n");
    next += *next != 0;
    char *verdict = take_comment(next, &next);
    char *colon = verdict ? strstr(verdict, ": ") : NULL;
    if (!colon || !is_oracle_name(verdict, (size_t)(colon - verdict))) {
        return;
    }
    *colon = 0;
    reproducer->oracle = verdict;
    reproducer->message = colon + 2;
    char *origin = take_comment(next, &next);
    char *allocator = origin ? strstr(origin, allocator_mark) : NULL;
    if (allocator) {
        *allocator = 0;
        reproducer->allocator = allocator + sizeof allocator_mark - 1;
    }
    reproducer->origin = origin;
}
