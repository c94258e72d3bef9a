/* Reads the text format; docs/trace-format.md describes it. */
#include "gmd_size.h"
#include "gmd_text.h"
#include "gmd_trace.h"
#include "names.h"
#include "quote.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#define DEFAULT_USE_NS ((uint64_t)10000)

typedef struct token { /* points into the text */
    const char *text;
    size_t length;
} token;

/* What a line may say about a block depends on the lines before it. */
typedef struct block_state {
    bool is_live;
    uint8_t device;
} block_state;

typedef struct parser {
    gmd_trace *trace;
    const char *file;
    unsigned line;
    const char *start, *at, *end; /* of the line, without its comment */
    uint8_t thread;
    bool has_devices, has_capacity, has_conf, has_schedule, has_interleave, has_streams;
    gmd_name_table blocks, streams, threads, functions;
    block_state *states; /* trace->blocks.capacity entries at least */
    size_t state_capacity;
    gmd_status status;
    gmd_error *error;
} parser;

/* --- messages ---------------------------------------------------------------------------- */

__attribute__((format(printf, 2, 3))) static void note_failure(parser *p, const char *format, ...)
{
    char text[512];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    p->status = gmd_fail(p->error, GMD_BAD_INPUT, "%s:%u: %s", p->file, p->line, text);
}

#define FAIL(...) (note_failure(__VA_ARGS__), false)

static void note_unexpected(parser *p, const char *expected, token found)
{
    char quoted[GMD_QUOTE_BYTES];
    note_failure(p, "expected %s, found %s", expected,
                 found.length ? gmd_quote(found.text, found.length, quoted)
                              : "the end of the line");
}

#define UNEXPECTED(...) (note_unexpected(__VA_ARGS__), false)

static bool fail_memory(parser *p)
{
    p->status = gmd_fail(p->error, GMD_NO_MEMORY, "%s:%u: no host memory", p->file, p->line);
    return false;
}

/* Takes over the outcome of a function that knows nothing of lines. */
static bool adopt(parser *p, gmd_status status)
{
    if (status == GMD_OK) {
        return true;
    }
    char place[256];
    snprintf(place, sizeof place, "%.200s:%u", p->file, p->line);
    gmd_error_prefix(p->error, place);
    p->status = status;
    return false;
}

/* --- tokens ------------------------------------------------------------------------------ */

static bool is_space(char c)
{
    return c == ' ' || c == '\t';
}

/* An empty token: the end of the line. */
static token next_token(parser *p)
{
    while (p->at < p->end && is_space(*p->at)) {
        p->at++;
    }
    token t = {.text = p->at};
    while (p->at < p->end && !is_space(*p->at)) {
        p->at++;
    }
    t.length = (size_t)(p->at - t.text);
    return t;
}

static bool token_is(token t, const char *word)
{
    return t.length == strlen(word) && memcmp(t.text, word, t.length) == 0;
}

static bool end_line(parser *p)
{
    token t = next_token(p);
    return !t.length || UNEXPECTED(p, "the end of the line", t);
}

/* The number readers of base/ want terminated text; no number needs more than `size` bytes. */
static bool copy_token(token t, char *text, size_t size)
{
    if (t.length >= size) {
        return false;
    }
    memcpy(text, t.text, t.length);
    text[t.length] = 0;
    return true;
}

static bool take_size(parser *p, uint64_t *bytes)
{
    char text[64];
    token t = next_token(p);
    *bytes = 0;
    return (copy_token(t, text, sizeof text) && gmd_parse_size(text, bytes)) ||
           UNEXPECTED(p, "a size such as 512, 20MiB or 1.5GiB", t);
}

static bool read_duration(parser *p, token t, uint64_t *ns)
{
    char text[64];
    return (copy_token(t, text, sizeof text) && gmd_parse_duration(text, ns)) ||
           UNEXPECTED(p, "a duration such as 500ns, 10us, 2ms or 1s", t);
}

static bool take_number(parser *p, const char *expected, uint64_t least, uint64_t most,
                        uint64_t *number)
{
    char text[64];
    token t = next_token(p);
    *number = 0;
    return (copy_token(t, text, sizeof text) && gmd_parse_u64(text, number) && *number >= least &&
            *number <= most) ||
           UNEXPECTED(p, expected, t);
}

/* --- names ------------------------------------------------------------------------------- */

static bool add_name(parser *p, gmd_names *names, gmd_name_table *table, char letter, token t,
                     uint32_t *index)
{
    char text[GMD_NAME_BYTES];
    bool is_default = gmd_name_is_default(t.text, t.length, letter, names->count);
    copy_token(t, text, sizeof text);
    return adopt(p, gmd_names_add(names, is_default ? NULL : text, index, p->error)) &&
           (gmd_name_table_add(table, t.text, t.length, *index) || fail_memory(p));
}

/* The index of a name, which its first mention makes. */
static bool name_index(parser *p, gmd_names *names, gmd_name_table *table, char letter,
                       uint32_t most, const char *what, token t, uint32_t *index)
{
    const gmd_name_slot *slot = gmd_name_table_find(table, t.text, t.length);
    if (slot) {
        *index = slot->value;
        return true;
    }
    *index = 0;
    if (!gmd_name_is_valid(t.text, t.length)) {
        return UNEXPECTED(p, what, t);
    }
    if (names->count >= most) {
        char quoted[GMD_QUOTE_BYTES];
        return FAIL(p, "expected %s: at most %u are possible, found %s as one more", what, most,
                    gmd_quote(t.text, t.length, quoted));
    }
    return add_name(p, names, table, letter, t, index);
}

static bool stream_index(parser *p, token t, uint32_t *stream)
{
    return name_index(p, &p->trace->streams, &p->streams, 's', GMD_MAX_STREAMS, "a stream", t,
                      stream);
}

static bool take_stream(parser *p, uint32_t *stream)
{
    return stream_index(p, next_token(p), stream);
}

static bool reserve_states(parser *p)
{
    size_t needed = (size_t)p->trace->blocks.count + 1;
    if (needed <= p->state_capacity) {
        return true;
    }
    size_t capacity = p->state_capacity ? p->state_capacity * 2 : 64;
    block_state *states = realloc(p->states, capacity * sizeof *states);
    if (!states) {
        return fail_memory(p);
    }
    memset(states + p->state_capacity, 0, (capacity - p->state_capacity) * sizeof *states);
    p->states = states;
    p->state_capacity = capacity;
    return true;
}

/* The id of a block that the line allocates. */
static bool take_new_block(parser *p, uint32_t *block)
{
    token t = next_token(p);
    if (!reserve_states(p) ||
        !name_index(p, &p->trace->blocks, &p->blocks, 'b', (uint32_t)GMD_MAX_TRACE_LEN,
                    "the id of a block", t, block)) {
        return false;
    }
    return !p->states[*block].is_live ||
           UNEXPECTED(p, "the id of a block that is not allocated", t);
}

/* The id of a block that the line uses. */
static bool take_live_block(parser *p, gmd_request *request)
{
    token t = next_token(p);
    const gmd_name_slot *slot = gmd_name_table_find(&p->blocks, t.text, t.length);
    if (!slot || !p->states[slot->value].is_live) {
        return UNEXPECTED(p, "the id of an allocated block", t);
    }
    request->block = slot->value;
    request->device = p->states[slot->value].device;
    return true;
}

static bool take_device_number(parser *p, uint8_t *device)
{
    uint64_t number = 0;
    uint32_t count = p->trace->device_count ? p->trace->device_count : GMD_MAX_DEVICES;
    if (!take_number(p, "the number of a device of this trace, from 0", 0, count - 1, &number)) {
        return false;
    }
    *device = (uint8_t)number;
    return end_line(p);
}

/* [device N] */
static bool take_device(parser *p, uint8_t *device)
{
    token t = next_token(p);
    if (!t.length) {
        return true;
    }
    return token_is(t, GMD_DEVICE_WORD) ? take_device_number(p, device)
                                        : UNEXPECTED(p, "'device' or the end of the line", t);
}

/* --- header lines ------------------------------------------------------------------------ */

static bool once(parser *p, bool *seen, const char *what)
{
    if (*seen) {
        return FAIL(p, "expected one line '%s', found a second", what);
    }
    *seen = true;
    return true;
}

static bool parse_devices(parser *p, gmd_request *unused)
{
    (void)unused;
    uint64_t count;
    if (!once(p, &p->has_devices, "devices") ||
        !take_number(p, "a number of devices from 1 to 16", 1, GMD_MAX_DEVICES, &count)) {
        return false;
    }
    p->trace->device_count = (uint32_t)count;
    return end_line(p);
}

static bool parse_capacity(parser *p, gmd_request *unused)
{
    (void)unused;
    if (!once(p, &p->has_capacity, "capacity") || !take_size(p, &p->trace->capacity_bytes)) {
        return false;
    }
    return p->trace->capacity_bytes ? end_line(p) : FAIL(p, "expected a size over 0, found 0");
}

/* All of the line: settings may be separated by ", ". */
static bool parse_conf(parser *p, gmd_request *unused)
{
    (void)unused;
    if (!once(p, &p->has_conf, "conf")) {
        return false;
    }
    const char *start = p->at, *end = p->end;
    while (start < end && is_space(*start)) {
        start++;
    }
    while (end > start && is_space(end[-1])) {
        end--;
    }
    if (!gmd_conf_is_valid(start, (size_t)(end - start))) {
        return UNEXPECTED(p, "allocator settings, at most 4096 bytes without control characters",
                          ((token){start, (size_t)(end - start)}));
    }
    p->trace->conf = gmd_text_copy(start, (size_t)(end - start));
    return p->trace->conf || fail_memory(p);
}

typedef gmd_status schedule_reader(gmd_schedule *schedule, const char *text, size_t length,
                                   gmd_error *error);

/* All of the line. */
static bool take_schedule(parser *p, gmd_schedule *schedule, schedule_reader *reader)
{
    const char *start = p->at;
    p->at = p->end;
    return adopt(p, reader(schedule, start, (size_t)(p->end - start), p->error));
}

static bool parse_schedule(parser *p, gmd_request *unused)
{
    (void)unused;
    return once(p, &p->has_schedule, "schedule") &&
           take_schedule(p, &p->trace->schedule, gmd_schedule_parse);
}

static bool parse_interleave(parser *p, gmd_request *unused)
{
    (void)unused;
    return once(p, &p->has_interleave, "interleave") &&
           take_schedule(p, &p->trace->interleave, gmd_interleave_parse);
}

/* Names all streams in the order of their handles; without it that is the order of first mention.
 */
static bool parse_streams(parser *p, gmd_request *unused)
{
    (void)unused;
    if (!once(p, &p->has_streams, "streams")) {
        return false;
    }
    token t = next_token(p);
    if (!token_is(t, "s0")) {
        return UNEXPECTED(p, "the default stream, s0, as the first", t);
    }
    for (t = next_token(p); t.length; t = next_token(p)) {
        uint32_t stream, count = p->trace->streams.count;
        if (!stream_index(p, t, &stream)) {
            return false;
        }
        if (stream != count) {
            return UNEXPECTED(p, "a stream that is not in the list yet", t);
        }
    }
    return true;
}

/* --- requests ---------------------------------------------------------------------------- */

static bool parse_alloc(parser *p, gmd_request *r)
{
    r->op = GMD_OP_ALLOC;
    if (!take_new_block(p, &r->block) || !take_size(p, &r->bytes) || !take_stream(p, &r->stream) ||
        !take_device(p, &r->device)) {
        return false;
    }
    p->states[r->block] =
        (block_state){.is_live = r->expect != GMD_EXPECT_OOM, .device = r->device};
    return true;
}

static bool parse_expect(parser *p, gmd_request *r)
{
    token t = next_token(p);
    if (token_is(t, "alloc")) {
        r->expect = GMD_EXPECT_ALLOC;
    } else if (token_is(t, "oom")) {
        r->expect = GMD_EXPECT_OOM;
    } else {
        return UNEXPECTED(p, "'alloc' or 'oom'", t);
    }
    return parse_alloc(p, r);
}

static bool parse_use(parser *p, gmd_request *r)
{
    r->op = GMD_OP_USE;
    r->duration_ns = DEFAULT_USE_NS;
    if (!take_live_block(p, r) || !take_stream(p, &r->stream)) {
        return false;
    }
    token t = next_token(p);
    return !t.length || (read_duration(p, t, &r->duration_ns) && end_line(p));
}

static bool parse_record(parser *p, gmd_request *r)
{
    r->op = GMD_OP_RECORD;
    return take_live_block(p, r) && take_stream(p, &r->stream) && end_line(p);
}

static bool parse_free(parser *p, gmd_request *r)
{
    r->op = GMD_OP_FREE;
    if (!take_live_block(p, r) || !end_line(p)) {
        return false;
    }
    p->states[r->block].is_live = false;
    return true;
}

static bool parse_wait(parser *p, gmd_request *r)
{
    r->op = GMD_OP_WAIT;
    return take_stream(p, &r->stream) && take_stream(p, &r->other_stream) &&
           take_device(p, &r->device);
}

static bool parse_sync(parser *p, gmd_request *r)
{
    r->op = GMD_OP_SYNC;
    r->stream = GMD_ALL_STREAMS;
    const char *before = p->at;
    token t = next_token(p);
    if (token_is(t, GMD_DEVICE_WORD)) {
        p->at = before;
    } else if (t.length && !stream_index(p, t, &r->stream)) {
        return false;
    }
    return take_device(p, &r->device);
}

static bool parse_advance(parser *p, gmd_request *r)
{
    r->op = GMD_OP_ADVANCE;
    return read_duration(p, next_token(p), &r->duration_ns) && end_line(p);
}

static bool parse_empty_cache(parser *p, gmd_request *r)
{
    r->op = GMD_OP_EMPTY_CACHE;
    return end_line(p);
}

static bool parse_fraction(parser *p, gmd_request *r)
{
    char text[64], *end = text;
    token t = next_token(p);
    r->op = GMD_OP_FRACTION;
    bool is_number = t.length && copy_token(t, text, sizeof text) &&
                     strspn(text, "0123456789.eE+-") == t.length && text[0] != '-' &&
                     text[0] != '+';
    double fraction = is_number ? strtod(text, &end) : 0;
    if (!is_number || end != text + t.length || !(fraction >= 0 && fraction <= 1)) {
        return UNEXPECTED(p, "a fraction from 0 to 1", t);
    }
    r->fraction = fraction;
    return take_device(p, &r->device);
}

static bool parse_fault(parser *p, gmd_request *r)
{
    uint64_t count, code;
    r->op = GMD_OP_FAULT;
    if (!name_index(p, &p->trace->functions, &p->functions, 'f', (uint32_t)GMD_MAX_TRACE_LEN,
                    "the name of a CUDA function", next_token(p), &r->function) ||
        !take_number(p, "which call fails, from 1", 1, UINT32_MAX, &count) ||
        !take_number(p, "an error code from 1", 1, UINT32_MAX, &code)) {
        return false;
    }
    r->count = (uint32_t)count;
    r->error = (uint32_t)code;
    token t = next_token(p);
    r->every_later = token_is(t, "every");
    return !t.length ||
           (r->every_later ? end_line(p) : UNEXPECTED(p, "'every' or the end of the line", t));
}

static bool parse_current_device(parser *p, gmd_request *r)
{
    r->op = GMD_OP_DEVICE;
    return take_device_number(p, &r->device);
}

static bool parse_destroy(parser *p, gmd_request *r)
{
    r->op = GMD_OP_DESTROY;
    token t = next_token(p);
    if (token_is(t, "s0")) {
        return UNEXPECTED(p, "a stream other than the default one", t);
    }
    return stream_index(p, t, &r->stream) && take_device(p, &r->device);
}

static bool parse_budget(parser *p, gmd_request *r)
{
    r->op = GMD_OP_BUDGET;
    const char *before = p->at;
    if (token_is(next_token(p), "none")) {
        r->bytes = GMD_NO_BUDGET;
    } else {
        p->at = before;
        if (!take_size(p, &r->bytes)) {
            return false;
        }
    }
    return take_device(p, &r->device);
}

static bool parse_thread(parser *p, gmd_request *unused)
{
    (void)unused;
    uint32_t thread;
    if (!name_index(p, &p->trace->threads, &p->threads, 't', GMD_MAX_THREADS, "a thread",
                    next_token(p), &thread)) {
        return false;
    }
    p->thread = (uint8_t)thread;
    return end_line(p);
}

/* --- lines ------------------------------------------------------------------------------- */

typedef struct directive {
    const char *word;
    bool (*parse)(parser *p, gmd_request *request);
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
    {"devices", parse_devices, HEADER},
    {"capacity", parse_capacity, HEADER},
    {"conf", parse_conf, HEADER},
    {"schedule", parse_schedule, HEADER},
    {"interleave", parse_interleave, HEADER},
    {"streams", parse_streams, HEADER},
};

static const directive *find_directive(token word)
{
    for (size_t i = 0; i < sizeof directives / sizeof *directives; i++) {
        if (token_is(word, directives[i].word)) {
            return &directives[i];
        }
    }
    return NULL;
}

static bool parse_directive(parser *p)
{
    token word = next_token(p);
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
    return d->kind != REQUEST || adopt(p, gmd_trace_append(p->trace, &request, p->error));
}

static bool parse_version(parser *p)
{
    token word = next_token(p), version = next_token(p);
    if (!token_is(word, "gmd-trace")) {
        return UNEXPECTED(p, "'gmd-trace 1' as the first line", word);
    }
    return token_is(version, "1") ? end_line(p) : UNEXPECTED(p, "version 1 of the format", version);
}

static bool check_encoding(parser *p, const char *end)
{
    size_t length = (size_t)(end - p->start), good = gmd_utf8_prefix(p->start, length);
    return good == length ||
           FAIL(p, "byte %zu of the line is 0x%02x: expected UTF-8 text without NUL", good + 1,
                (unsigned char)p->start[good]);
}

static bool parse_line(parser *p, const char *start, const char *end)
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

static bool parse_lines(parser *p, const char *text, const char *end)
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
    parser p = {.trace = trace, .file = file, .status = GMD_OK, .error = error ? error : &local};
    gmd_trace_init(trace);
    bool ok = trace->streams.count && trace->threads.count &&
              gmd_name_table_add(&p.streams, "s0", 2, 0) &&
              gmd_name_table_add(&p.threads, "main", 4, 0);
    if (!ok) {
        p.line = 1;
        fail_memory(&p);
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
    free(p.states);
    if (p.status != GMD_OK) {
        gmd_trace_free(trace);
    }
    return p.status;
}
