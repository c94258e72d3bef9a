/* Reads the text format; docs/trace-format.md describes it. */
#include "quote.h"
#include "text_parser.h"

#include <stdlib.h>
#include <string.h>

#define DEFAULT_USE_NS ((uint64_t)10000)

/* --- requests ---------------------------------------------------------------------------- */

static bool parse_alloc(gmd_parser *p, gmd_request *r)
{
    r->op = GMD_OP_ALLOC;
    if (!gmd_text_take_new_block(p, &r->block) || !gmd_text_take_size(p, &r->bytes) ||
        !gmd_text_take_stream(p, &r->stream) || !gmd_text_take_device(p, &r->device)) {
        return false;
    }
    p->states[r->block] =
        (gmd_block_state){.is_live = r->expect != GMD_EXPECT_OOM, .device = r->device};
    return true;
}

static bool parse_expect(gmd_parser *p, gmd_request *r)
{
    gmd_token t = gmd_text_next_token(p);
    if (gmd_text_token_is(t, "alloc")) {
        r->expect = GMD_EXPECT_ALLOC;
    } else if (gmd_text_token_is(t, "oom")) {
        r->expect = GMD_EXPECT_OOM;
    } else {
        return UNEXPECTED(p, "'alloc' or 'oom'", t);
    }
    return parse_alloc(p, r);
}

static bool parse_use(gmd_parser *p, gmd_request *r)
{
    r->op = GMD_OP_USE;
    r->duration_ns = DEFAULT_USE_NS;
    if (!gmd_text_take_live_block(p, r) || !gmd_text_take_stream(p, &r->stream)) {
        return false;
    }
    gmd_token t = gmd_text_next_token(p);
    return !t.length || (gmd_text_read_duration(p, t, &r->duration_ns) && gmd_text_end_line(p));
}

static bool parse_record(gmd_parser *p, gmd_request *r)
{
    r->op = GMD_OP_RECORD;
    return gmd_text_take_live_block(p, r) && gmd_text_take_stream(p, &r->stream) &&
           gmd_text_end_line(p);
}

static bool parse_free(gmd_parser *p, gmd_request *r)
{
    r->op = GMD_OP_FREE;
    if (!gmd_text_take_live_block(p, r) || !gmd_text_end_line(p)) {
        return false;
    }
    p->states[r->block].is_live = false;
    return true;
}

static bool parse_wait(gmd_parser *p, gmd_request *r)
{
    r->op = GMD_OP_WAIT;
    return gmd_text_take_stream(p, &r->stream) && gmd_text_take_stream(p, &r->other_stream) &&
           gmd_text_take_device(p, &r->device);
}

static bool parse_sync(gmd_parser *p, gmd_request *r)
{
    r->op = GMD_OP_SYNC;
    r->stream = GMD_ALL_STREAMS;
    const char *before = p->at;
    gmd_token t = gmd_text_next_token(p);
    if (gmd_text_token_is(t, GMD_DEVICE_WORD)) {
        p->at = before;
    } else if (t.length && !gmd_text_stream_index(p, t, &r->stream)) {
        return false;
    }
    return gmd_text_take_device(p, &r->device);
}

static bool parse_advance(gmd_parser *p, gmd_request *r)
{
    r->op = GMD_OP_ADVANCE;
    return gmd_text_read_duration(p, gmd_text_next_token(p), &r->duration_ns) &&
           gmd_text_end_line(p);
}

static bool parse_empty_cache(gmd_parser *p, gmd_request *r)
{
    r->op = GMD_OP_EMPTY_CACHE;
    return gmd_text_end_line(p);
}

static bool parse_fraction(gmd_parser *p, gmd_request *r)
{
    char text[64], *end = text;
    gmd_token t = gmd_text_next_token(p);
    r->op = GMD_OP_FRACTION;
    bool is_number = t.length && gmd_text_copy_token(t, text, sizeof text) &&
                     strspn(text, "0123456789.eE+-") == t.length && text[0] != '-' &&
                     text[0] != '+';
    double fraction = is_number ? strtod(text, &end) : 0;
    if (!is_number || end != text + t.length || !(fraction >= 0 && fraction <= 1)) {
        return UNEXPECTED(p, "a fraction from 0 to 1", t);
    }
    r->fraction = fraction;
    return gmd_text_take_device(p, &r->device);
}

static bool parse_fault(gmd_parser *p, gmd_request *r)
{
    uint64_t count, code;
    r->op = GMD_OP_FAULT;
    if (!gmd_text_name_index(p, &p->trace->functions, &p->functions, 'f',
                             (uint32_t)GMD_MAX_TRACE_LEN, "the name of a CUDA function",
                             gmd_text_next_token(p), &r->function) ||
        !gmd_text_take_number(p, "which call fails, from 1", 1, UINT32_MAX, &count) ||
        !gmd_text_take_number(p, "an error code from 1", 1, UINT32_MAX, &code)) {
        return false;
    }
    r->count = (uint32_t)count;
    r->error = (uint32_t)code;
    gmd_token t = gmd_text_next_token(p);
    r->every_later = gmd_text_token_is(t, "every");
    return !t.length || (r->every_later ? gmd_text_end_line(p)
                                        : UNEXPECTED(p, "'every' or the end of the line", t));
}

static bool parse_current_device(gmd_parser *p, gmd_request *r)
{
    r->op = GMD_OP_DEVICE;
    return gmd_text_take_device_number(p, &r->device);
}

static bool parse_destroy(gmd_parser *p, gmd_request *r)
{
    r->op = GMD_OP_DESTROY;
    gmd_token t = gmd_text_next_token(p);
    if (gmd_text_token_is(t, "s0")) {
        return UNEXPECTED(p, "a stream other than the default one", t);
    }
    return gmd_text_stream_index(p, t, &r->stream) && gmd_text_take_device(p, &r->device);
}

static bool parse_budget(gmd_parser *p, gmd_request *r)
{
    r->op = GMD_OP_BUDGET;
    const char *before = p->at;
    if (gmd_text_token_is(gmd_text_next_token(p), "none")) {
        r->bytes = GMD_NO_BUDGET;
    } else {
        p->at = before;
        if (!gmd_text_take_size(p, &r->bytes)) {
            return false;
        }
    }
    return gmd_text_take_device(p, &r->device);
}

/* [STREAM] [device N] */
static bool take_accepted(gmd_parser *p, gmd_request *r)
{
    const char *before = p->at;
    gmd_token t = gmd_text_next_token(p);
    r->stream = GMD_ALL_STREAMS;
    if (gmd_text_token_is(t, GMD_DEVICE_WORD)) {
        p->at = before;
    } else if (t.length && !gmd_text_stream_index(p, t, &r->stream)) {
        return false;
    }
    return gmd_text_take_device(p, &r->device);
}

static bool take_place(gmd_parser *p, gmd_request *r, gmd_op op)
{
    switch (op) {
    case GMD_OP_BEGIN_POOL:
        return take_accepted(p, r);
    case GMD_OP_BEGIN_CAPTURE:
    case GMD_OP_LAUNCH:
        return gmd_text_take_stream(p, &r->stream) && gmd_text_take_device(p, &r->device);
    default:
        return gmd_text_take_device(p, &r->device);
    }
}

/* What may stand here depends on the pools that are open and held. */
static bool parse_on_pool(gmd_parser *p, gmd_request *r, gmd_op op)
{
    gmd_token t = gmd_text_next_token(p);
    r->op = (uint8_t)op;
    if (!gmd_text_name_index(p, &p->trace->pools, &p->pools, 'p', GMD_MAX_POOLS, "a pool", t,
                             &r->pool) ||
        !take_place(p, r, op)) {
        return false;
    }
    const char *expected = gmd_pool_book_note(&p->pool_book, r);
    return !expected || UNEXPECTED(p, expected, t);
}

static bool parse_begin_capture(gmd_parser *p, gmd_request *r)
{
    return parse_on_pool(p, r, GMD_OP_BEGIN_CAPTURE);
}

static bool parse_end_capture(gmd_parser *p, gmd_request *r)
{
    return parse_on_pool(p, r, GMD_OP_END_CAPTURE);
}

static bool parse_launch(gmd_parser *p, gmd_request *r)
{
    return parse_on_pool(p, r, GMD_OP_LAUNCH);
}

static bool parse_begin_pool(gmd_parser *p, gmd_request *r)
{
    return parse_on_pool(p, r, GMD_OP_BEGIN_POOL);
}

static bool parse_end_pool(gmd_parser *p, gmd_request *r)
{
    return parse_on_pool(p, r, GMD_OP_END_POOL);
}

static bool parse_release_pool(gmd_parser *p, gmd_request *r)
{
    return parse_on_pool(p, r, GMD_OP_RELEASE_POOL);
}

static bool parse_thread(gmd_parser *p, gmd_request *unused)
{
    (void)unused;
    uint32_t thread;
    if (!gmd_text_name_index(p, &p->trace->threads, &p->threads, 't', GMD_MAX_THREADS, "a thread",
                             gmd_text_next_token(p), &thread)) {
        return false;
    }
    p->thread = (uint8_t)thread;
    return gmd_text_end_line(p);
}

/* --- lines ------------------------------------------------------------------------------- */

typedef struct directive {
    const char *word;
    bool (*parse)(gmd_parser *p, gmd_request *request);
    enum { HEADER, REQUEST, SWITCH } kind; /* SWITCH: no request, anywhere */
} directive;

static const directive directives[] = {
    {"alloc", parse_alloc, REQUEST},
    {"free", parse_free, REQUEST},
    {"use", parse_use, REQUEST},
    {"record", parse_record, REQUEST},
    {"expect", parse_expect, REQUEST},
    {"wait", parse_wait, REQUEST},
    {"sync", parse_sync, REQUEST},
    {"advance", parse_advance, REQUEST},
    {"thread", parse_thread, SWITCH},
    {"empty_cache", parse_empty_cache, REQUEST},
    {"fraction", parse_fraction, REQUEST},
    {"fault", parse_fault, REQUEST},
    {GMD_DEVICE_WORD, parse_current_device, REQUEST},
    {"destroy", parse_destroy, REQUEST},
    {"budget", parse_budget, REQUEST},
    {"begin_pool", parse_begin_pool, REQUEST},
    {"end_pool", parse_end_pool, REQUEST},
    {"begin_capture", parse_begin_capture, REQUEST},
    {"end_capture", parse_end_capture, REQUEST},
    {"launch", parse_launch, REQUEST},
    {"release_pool", parse_release_pool, REQUEST},
    {"devices", gmd_text_parse_devices, HEADER},
    {"capacity", gmd_text_parse_capacity, HEADER},
    {"conf", gmd_text_parse_conf, HEADER},
    {"schedule", gmd_text_parse_schedule, HEADER},
    {"interleave", gmd_text_parse_interleave, HEADER},
    {"streams", gmd_text_parse_streams, HEADER},
};

static const directive *find_directive(gmd_token word)
{
    for (size_t i = 0; i < sizeof directives / sizeof *directives; i++) {
        if (gmd_text_token_is(word, directives[i].word)) {
            return &directives[i];
        }
    }
    return NULL;
}

static bool parse_directive(gmd_parser *p)
{
    gmd_token word = gmd_text_next_token(p);
    if (!word.length) {
        return true;
    }
    const directive *d = find_directive(word);
    if (!d) {
        return UNEXPECTED(p, "a request such as 'alloc' or 'free'", word);
    }
    if (d->kind == HEADER && p->trace->count) {
        return UNEXPECTED(p, "header lines before the first request", word);
    }
    gmd_request request = {.thread = p->thread, .line = p->line};
    if (!d->parse(p, &request)) {
        return false;
    }
    return d->kind != REQUEST || gmd_text_adopt(p, gmd_trace_append(p->trace, &request, p->error));
}

static bool parse_version(gmd_parser *p)
{
    gmd_token word = gmd_text_next_token(p), version = gmd_text_next_token(p);
    if (!gmd_text_token_is(word, "gmd-trace")) {
        return UNEXPECTED(p, "'gmd-trace 1' as the first line", word);
    }
    return gmd_text_token_is(version, "1") ? gmd_text_end_line(p)
                                           : UNEXPECTED(p, "version 1 of the format", version);
}

static bool check_encoding(gmd_parser *p, const char *end)
{
    size_t length = (size_t)(end - p->start), good = gmd_utf8_prefix(p->start, length);
    return good == length ||
           FAIL(p, "byte %zu of the line is 0x%02x: expected UTF-8 text without NUL", good + 1,
                (unsigned char)p->start[good]);
}

static bool parse_line(gmd_parser *p, const char *start, const char *end)
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

static bool parse_lines(gmd_parser *p, const char *text, const char *end)
{
    do {
        size_t left = (size_t)(end - text);
        const char *newline = left ? memchr(text, '\n', left) : NULL;
        const char *stop = newline ? newline : end;
        p->line++;
        if (!parse_line(p, text, stop)) {
            return false;
        }
        text = newline ? newline + 1 : end;
    } while (text < end);
    return true;
}

gmd_status gmd_trace_parse(gmd_trace *trace, const char *text, size_t length, const char *file,
                           gmd_error *error)
{
    gmd_error local = {""};
    gmd_parser p = {
        .trace = trace, .file = file, .status = GMD_OK, .error = error ? error : &local};
    gmd_trace_init(trace);
    bool ok = trace->streams.count && trace->threads.count &&
              gmd_name_table_add(&p.streams, "s0", 2, 0) &&
              gmd_name_table_add(&p.threads, "main", 4, 0);
    if (!ok) {
        p.line = 1;
        gmd_text_fail_memory(&p);
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
    free(p.states);
    if (p.status != GMD_OK) {
        gmd_trace_free(trace);
    }
    return p.status;
}
