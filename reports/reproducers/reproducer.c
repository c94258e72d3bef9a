/* What the C program and the Python script share: where they go, and what a case says of itself. */
#include "reproducer.h"

#include "gmd_output.h"

#include <string.h>

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

gmd_status put_case_lines(const gmd_trace *trace, const char *indent, FILE *out, gmd_error *error)
{
    char *text = NULL, *rest;
    size_t size = 0;
    FILE *memory = open_memstream(&text, &size);
    gmd_status status = memory ? gmd_trace_write(trace, memory, error)
                               : gmd_fail(error, GMD_NO_MEMORY, "no host memory for a program");
    if (memory) {
        fclose(memory);
    }
    for (char *line = status == GMD_OK ? strtok_r(text, "\n", &rest) : NULL; line;
         line = strtok_r(NULL, "\n", &rest)) {
        fputs(indent, out);
        put_comment_text(line, out);
        fputc('\n', out);
    }
    free(text);
    return status;
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

/* --- beside a case ----------------------------------------------------------------------- */

typedef gmd_status writer(const gmd_reproducer *reproducer, FILE *out, gmd_error *error);

static gmd_status write_to(const gmd_reproducer *reproducer, const char *stem, int stem_length,
                           const char *ending, writer *write, gmd_error *error)
{
    char path[4400];
    int length = snprintf(path, sizeof path, "%.*s%s", stem_length, stem, ending);
    const char *slash = strrchr(path, '/');
    gmd_reproducer named = *reproducer;
    gmd_output out;
    named.name = slash ? slash + 1 : path;
    if (length >= (int)sizeof path) {
        return gmd_fail(error, GMD_BAD_INPUT, "%.200s...: the name of the file is too long", path);
    }
    gmd_status status = gmd_output_open(&out, path, error);
    if (status == GMD_OK) {
        status = write(&named, out.stream, error);
        status = gmd_output_close(&out, status, error);
    }
    return status;
}

gmd_status gmd_reproducer_write_beside(const gmd_reproducer *reproducer, const char *case_path,
                                       gmd_error *error)
{
    char reason[200];
    size_t stem = strlen(case_path);
    stem -= stem > 4 && strcmp(case_path + stem - 4, ".gmd") == 0 ? 4 : 0;
    gmd_status status = GMD_OK;
    if (gmd_reproducer_fits_c(reproducer, reason, sizeof reason)) {
        status = write_to(reproducer, case_path, (int)stem, ".c", gmd_reproducer_write_c, error);
    }
    if (status == GMD_OK && gmd_reproducer_fits_python(reproducer, reason, sizeof reason)) {
        status =
            write_to(reproducer, case_path, (int)stem, ".py", gmd_reproducer_write_python, error);
    }
    return status;
}
