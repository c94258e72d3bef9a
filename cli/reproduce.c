#include "reproduce.h"

#include "gmd_file.h"
#include "gmd_kind.h"
#include "gmd_known.h"
#include "gmd_output.h"
#include "gmd_text.h"

#include <stdlib.h>
#include <string.h>

bool cli_is_verdict(const char *text)
{
    char oracle[24], kind[GMD_KIND_NAME];
    snprintf(oracle, sizeof oracle, "%.*s", (int)strcspn(text, "."), text);
    snprintf(kind, sizeof kind, "%.*s", (int)strcspn(text, " "), text);
    return gmd_oracle_is_named(oracle) && (strcmp(kind, oracle) == 0 || gmd_kind_find(kind));
}

/* Whether the case's own verdict is of the oracle or kind that was asked for. */
static bool is_about(const char *own, const char *wanted)
{
    size_t length = strlen(wanted);
    return own && strncmp(own, wanted, length) == 0 && strchr(". ", own[length]);
}

/* What the command line says comes before what the case says of itself. */
static void describe(gmd_reproducer *r, char *text, const char *output, const char *allocator,
                     const char *verdict)
{
    r->name = gmd_file_name(output);
    gmd_reproducer_read_comments(r, text);
    if (r->verdict && !cli_is_verdict(r->verdict)) {
        r->verdict = r->message = r->origin = r->allocator = NULL; /* a comment of another kind */
    }
    if (verdict && !is_about(r->verdict, verdict)) {
        r->verdict = verdict;
        r->message = "what this oracle finds (docs/oracles.md of gmd)";
    }
    r->allocator = allocator ? allocator : r->allocator;
}

static gmd_status write_program(const gmd_reproducer *r, const char *output,
                                cli_reproduce_fn *writer, gmd_error *error)
{
    gmd_output out;
    gmd_status status = gmd_output_open(&out, output, error);
    if (status == GMD_OK) {
        status = writer(r, out.stream, error);
        status = gmd_output_close(&out, status, error);
    }
    return status;
}

gmd_status cli_reproduce(const char *path, const char *output, cli_reproduce_fn *writer,
                         const char *allocator, const char *verdict, const cli_reading *reading,
                         gmd_error *error)
{
    uint8_t *text = NULL;
    size_t size = 0;
    gmd_trace trace = {0};
    cli_read read;
    cli_read_begin(&read, reading, path);
    gmd_status status = gmd_file_read(path, &text, &size, error);
    if (status == GMD_OK) {
        status = gmd_trace_parse(&trace, (const char *)text, size, path, error);
    }
    status = cli_read_end(&read, status, error);
    if (status == GMD_OK) {
        gmd_reproducer r = {.trace = &trace};
        describe(&r, (char *)text, output, allocator, verdict);
        status = write_program(&r, output, writer, error);
    }
    gmd_trace_free(&trace);
    free(text);
    return status;
}
