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
    if (r->verdict && asprintf(&text, "%s: %s", r->verdict, r->message) >= 0) {
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

/* Behind "oracle", "oracle.kind" or "oracle.kind name=value other=\"a value\"". */
static char *end_of_verdict(char *text)
{
    char *at = text + strspn(text, "abcdefghijklmnopqrstuvwxyz_.");
    while (*at == ' ') {
        at += strcspn(at, "=");
        at += *at == '=';
        char *closing = *at == '"' ? strchr(at + 1, '"') : NULL;
        at = closing ? closing + 1 : at + strcspn(at, " :");
    }
    return at;
}

void gmd_reproducer_read_comments(gmd_reproducer *reproducer, char *text)
{
    char *next = text + strcspn(text, "\n");
    next += *next != 0;
    char *verdict = take_comment(next, &next);
    char *colon = verdict ? end_of_verdict(verdict) : NULL;
    if (!colon || colon == verdict || strncmp(colon, ": ", 2) != 0) {
        return;
    }
    *colon = 0;
    reproducer->verdict = verdict;
    reproducer->message = colon + 2;
    char *origin = take_comment(next, &next);
    char *allocator = origin ? strstr(origin, allocator_mark) : NULL;
    if (allocator) {
        *allocator = 0;
        reproducer->allocator = allocator + sizeof allocator_mark - 1;
    }
    reproducer->origin = origin;
}
