/* Reads the text format; docs/trace-format.md describes it. */
#include "gmd_assert.h"
#include "gmd_file.h"
#include "gmd_log.h"
#include "gmd_spelling.h"
#include "gmd_trace_validity.h"
#include "quote.h"
#include "text_parser.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- requests ---------------------------------------------------------------------------- */

/* What the lines after this one may say depends on the blocks and pools that there are. */
static bool note_request(text_parser *p, const gmd_request *r, const char *start)
{
    if (gmd_op_has(r->op, GMD_FIELD_NEW_BLOCK)) {
        p->states[r->block] =
            (gmd_block_state){.is_live = r->expect != GMD_EXPECT_OOM, .device = r->device};
    } else if (gmd_op_is(r->op, GMD_IS_FREE)) {
        p->states[r->block].is_live = false;
    } else if (gmd_op_is_on_pool(r->op)) {
        const char *expected = gmd_pool_state_note(&p->pool_state, r);
        p->at = expected ? start : p->at;
        return !expected || UNEXPECTED(p, expected, text_next_token(p));
    }
    return true;
}

static bool parse_request(text_parser *p, gmd_request *r)
{
    const gmd_request_row *row = &gmd_request_rows[r->op];
    const char *start = p->at;
    for (size_t i = 0; i < GMD_REQUEST_FIELDS && row->fields[i]; i++) {
        if (!text_take_field(p, (gmd_field)row->fields[i], r)) {
            return false;
        }
    }
    return text_end_line(p) && note_request(p, r, start);
}

static bool parse_expect(text_parser *p, gmd_request *r)
{
    text_token t = text_next_token(p);
    if (text_token_is(t, "alloc")) {
        r->expect = GMD_EXPECT_ALLOC;
    } else if (text_token_is(t, "oom")) {
        r->expect = GMD_EXPECT_OOM;
    } else {
        return UNEXPECTED(p, "'alloc' or 'oom'", t);
    }
    r->op = GMD_OP_ALLOC;
    return parse_request(p, r);
}

static bool parse_thread(text_parser *p, gmd_request *unused)
{
    (void)unused;
    uint32_t thread;
    if (!text_name_index(p, &p->trace->threads, &p->threads, 't', GMD_MAX_THREADS, "a thread",
                         text_next_token(p), &thread)) {
        return false;
    }
    p->thread = (uint8_t)thread;
    return text_end_line(p);
}

/* --- lines ------------------------------------------------------------------------------- */

/* Beside the words of requests (gmd_request_table.h). */
typedef struct directive {
    const char *word;
    bool (*parse)(text_parser *p, gmd_request *request);
    enum { HEADER, REQUEST, SWITCH } kind; /* SWITCH: no request, anywhere */
} directive;

static const directive directives[] = {
    {"expect", parse_expect, REQUEST},         {"thread", parse_thread, SWITCH},
    {"repeat", text_parse_repeat, SWITCH},     {"}", text_parse_repeat_end, SWITCH},
    {"devices", text_parse_devices, HEADER},   {"capacity", text_parse_capacity, HEADER},
    {"conf", text_parse_conf, HEADER},         {"placement", text_parse_placement, HEADER},
    {"handles", text_parse_handles, HEADER},   {"clock", text_parse_clock, HEADER},
    {"schedule", text_parse_schedule, HEADER}, {"interleave", text_parse_interleave, HEADER},
    {"streams", text_parse_streams, HEADER},
};

static const directive *find_directive(text_token word, gmd_request *request)
{
    static const directive of_requests = {NULL, parse_request, REQUEST};
    for (uint32_t op = 0; op < GMD_OP_COUNT; op++) {
        if (text_token_is(word, gmd_request_rows[op].word)) {
            request->op = (uint8_t)op;
            return &of_requests;
        }
    }
    for (size_t i = 0; i < sizeof directives / sizeof *directives; i++) {
        if (text_token_is(word, directives[i].word)) {
            return &directives[i];
        }
    }
    return NULL;
}

/* With the words that are spelt like it. */
static bool refuse_directive(text_parser *p, text_token word)
{
    char name[GMD_SPELLING_MAX + 1], expected[sizeof((gmd_near *)NULL)->text + 60];
    gmd_near near;
    if (!text_copy_token(word, name, sizeof name)) {
        *name = '\0';
    }
    gmd_near_begin(&near, name);
    for (uint32_t op = 0; op < GMD_OP_COUNT; op++) {
        gmd_near_offer(&near, gmd_request_rows[op].word);
    }
    for (size_t i = 0; i < sizeof directives / sizeof *directives; i++) {
        gmd_near_offer(&near, directives[i].word);
    }
    snprintf(expected, sizeof expected, "a request such as 'alloc' or 'free'%s",
             gmd_near_text(&near));
    return UNEXPECTED(p, expected, word);
}

static bool parse_directive(text_parser *p)
{
    text_token word = text_next_token(p);
    if (!word.length) {
        return true;
    }
    gmd_request request = {.thread = p->thread, .line = p->line};
    const directive *d = find_directive(word, &request);
    if (!d) {
        return refuse_directive(p, word);
    }
    if (d->kind == HEADER && (p->trace->count || p->repeat.body)) {
        return UNEXPECTED(p, "header lines before the first request", word);
    }
    if (!d->parse(p, &request)) {
        return false;
    }
    return d->kind != REQUEST || text_adopt(p, gmd_trace_append(p->trace, &request, p->error));
}

static bool parse_version(text_parser *p)
{
    text_token word = text_next_token(p), version = text_next_token(p);
    if (!text_token_is(word, "gmd-trace")) {
        return UNEXPECTED(p, "'gmd-trace 1' as the first line", word);
    }
    return text_token_is(version, "1") ? text_end_line(p)
                                       : UNEXPECTED(p, "version 1 of the format", version);
}

static bool check_encoding(text_parser *p, const char *end)
{
    size_t length = (size_t)(end - p->start), good = utf8_prefix(p->start, length);
    return good == length ||
           FAIL(p, "byte %zu of the line is 0x%02x: expected UTF-8 text without NUL", good + 1,
                (unsigned char)p->start[good]);
}

static bool parse_line(text_parser *p, const char *start, const char *end)
{
    end -= end > start && end[-1] == '\r';
    p->start = p->at = start;
    if (!check_encoding(p, end)) {
        return false;
    }
    const char *comment = end > start ? memchr(start, '#', (size_t)(end - start)) : NULL;
    p->end = comment ? comment : end;
    return p->line == 1 ? parse_version(p) : parse_directive(p);
}

static bool parse_lines(text_parser *p, const char *text, const char *end)
{
    p->next = text;
    do {
        const char *start = p->next;
        size_t left = (size_t)(end - start);
        const char *newline = left ? memchr(start, '\n', left) : NULL;
        p->next = newline ? newline + 1 : end;
        p->line++;
        if (!parse_line(p, start, newline ? newline : end)) {
            return false;
        }
    } while (p->next < end);
    return text_repeat_is_over(p);
}

gmd_status gmd_trace_parse(gmd_trace *trace, const char *text, size_t length, const char *file,
                           gmd_error *error)
{
    gmd_error local = {""};
    text_parser p = {
        .trace = trace, .file = file, .status = GMD_OK, .error = error ? error : &local};
    gmd_trace_init(trace);
    bool ok = trace->streams.count && trace->threads.count &&
              gmd_name_table_add(&p.streams, "s0", 2, 0) &&
              gmd_name_table_add(&p.threads, "main", 4, 0);
    if (!ok) {
        p.line = 1;
        text_fail_memory(&p);
    } else if (length > UINT32_MAX) {
        p.status = gmd_fail(p.error, GMD_BAD_INPUT, "%s: %zu bytes: expected less than 4 GiB", file,
                            length);
    } else {
        parse_lines(&p, text, text + length);
    }
    gmd_name_table_free(&p.blocks);
    gmd_name_table_free(&p.streams);
    gmd_name_table_free(&p.threads);
    gmd_name_table_free(&p.functions);
    gmd_name_table_free(&p.pools);
    text_free_words(&p.words);
    free(p.states);
    if (p.status != GMD_OK) {
        gmd_trace_free(trace);
    } else {
        GMD_ASSERT_VALID(gmd_trace_violation(trace));
    }
    GMD_LOG(TRACE, "%s: %zu bytes, %zu requests%s", file, length, trace->count,
            p.status == GMD_OK ? "" : ", refused");
    return p.status;
}

gmd_status gmd_trace_read(gmd_trace *trace, const char *path, gmd_error *error)
{
    uint8_t *text = NULL;
    size_t size = 0;
    *trace = (gmd_trace){0};
    gmd_status status = gmd_file_read(path, &text, &size, error);
    if (status == GMD_OK) {
        status = gmd_trace_parse(trace, (const char *)text, size, path, error);
    }
    free(text);
    return status;
}
