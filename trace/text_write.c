/* Writes the text format, and single requests for messages; docs/trace-format.md describes it. */
#include "gmd_names.h"
#include "gmd_size.h"
#include "gmd_trace.h"
#include "quote.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- one request ------------------------------------------------------------------------- */

/* The names of the things that a request mentions. */
typedef struct mentions {
    const char *block, *stream, *other_stream, *function, *pool;
} mentions;

static const char *format_duration(uint64_t ns, char text[32])
{
    static const struct {
        uint64_t ns;
        const char *name;
    } units[] = {{1000000000, "s"}, {1000000, "ms"}, {1000, "us"}, {1, "ns"}};
    size_t i = 0;
    while (ns % units[i].ns || (ns == 0 && units[i].ns > 1)) {
        i++;
    }
    snprintf(text, 32, "%" PRIu64 "%s", ns / units[i].ns, units[i].name);
    return text;
}

/* The shortest decimal number that reads back as the same double. */
static const char *format_fraction(double fraction, char text[40])
{
    for (int digits = 1; digits <= 17; digits++) {
        snprintf(text, 40, "%.*g", digits, fraction);
        if (strtod(text, NULL) == fraction) {
            break;
        }
    }
    return text;
}

/* A line under way; what does not fit is cut off. */
typedef struct line {
    char *text;
    size_t size, length;
} line;

static void add(line *l, const char *before, const char *word)
{
    for (size_t i = 0; i < 2; i++) {
        const char *part = i == 0 ? before : word;
        size_t room = l->size - l->length - 1, length = strnlen(part, room);
        memcpy(l->text + l->length, part, length);
        l->length += length;
    }
    l->text[l->length] = 0;
}

static void add_number(line *l, const char *before, uint32_t number)
{
    char text[16];
    snprintf(text, sizeof text, "%" PRIu32, number);
    add(l, before, text);
}

static const char *word_of(const gmd_request *r)
{
    static const char *const expecting[] = {"alloc", "expect alloc", "expect oom"};
    bool expects = gmd_op_has(r->op, GMD_FIELD_EXPECT) && r->expect <= GMD_EXPECT_OOM;
    return expects ? expecting[r->expect] : gmd_request_rows[r->op].word;
}

/* What of the trace the field names; NULL: nothing. */
static const char *name_of(gmd_field field, const gmd_request *r, const mentions *m)
{
    switch (field) {
    case GMD_FIELD_NEW_BLOCK:
    case GMD_FIELD_BLOCK:
        return m->block;
    case GMD_FIELD_STREAM_OR_ALL:
        return r->stream == GMD_ALL_STREAMS ? NULL : m->stream;
    case GMD_FIELD_STREAM:
    case GMD_FIELD_OWN_STREAM:
        return m->stream;
    case GMD_FIELD_OTHER_STREAM:
        return m->other_stream;
    case GMD_FIELD_POOL:
        return m->pool;
    case GMD_FIELD_FUNCTION:
        return m->function;
    default:
        return NULL;
    }
}

static void add_value(line *l, gmd_field field, const gmd_request *r)
{
    char number[40];
    switch (field) {
    case GMD_FIELD_COUNT:
        add_number(l, " ", r->count);
        break;
    case GMD_FIELD_ERROR:
        add_number(l, " ", r->error);
        break;
    case GMD_FIELD_EVERY:
        add(l, "", r->every_later ? " every" : "");
        break;
    case GMD_FIELD_BYTES:
        add(l, " ", gmd_format_exact_size(r->bytes, number));
        break;
    case GMD_FIELD_BYTES_OR_NONE:
        add(l, " ", r->bytes == GMD_NO_BUDGET ? "none" : gmd_format_exact_size(r->bytes, number));
        break;
    case GMD_FIELD_DURATION:
    case GMD_FIELD_WORK_DURATION:
        add(l, " ", format_duration(r->duration_ns, number));
        break;
    case GMD_FIELD_FRACTION:
        add(l, " ", format_fraction(r->fraction, number));
        break;
    case GMD_FIELD_DEVICE:
        if (r->device) {
            add_number(l, " " GMD_DEVICE_WORD " ", r->device);
        }
        break;
    case GMD_FIELD_DEVICE_NUMBER:
        add_number(l, " ", r->device);
        break;
    default:
        break;
    }
}

/* `size` is not 0. What is no request is an empty line. */
static void write_request(const gmd_request *r, const mentions *m, char *text, size_t size)
{
    line l = {.text = text, .size = size};
    text[0] = 0;
    if (r->op >= GMD_OP_COUNT) {
        return;
    }
    add(&l, "", word_of(r));
    for (size_t i = 0; i < GMD_REQUEST_FIELDS; i++) {
        gmd_field field = (gmd_field)gmd_request_rows[r->op].fields[i];
        const char *name = name_of(field, r, m);
        if (name) {
            add(&l, " ", name);
        } else {
            add_value(&l, field, r);
        }
    }
}

const char *gmd_request_text(const gmd_trace *trace, const gmd_request *request, char *text,
                             size_t size)
{
    char names[5][GMD_NAME_BYTES];
    mentions m = {.block = gmd_name_text(&trace->blocks, 'b', request->block, names[0]),
                  .stream = gmd_name_text(&trace->streams, 's', request->stream, names[1]),
                  .other_stream =
                      gmd_name_text(&trace->streams, 's', request->other_stream, names[2]),
                  .function = gmd_name_text(&trace->functions, 'f', request->function, names[3]),
                  .pool = gmd_name_text(&trace->pools, 'p', request->pool, names[4])};
    if (size) {
        write_request(request, &m, text, size);
    }
    return text;
}

/* --- the whole trace --------------------------------------------------------------------- */

typedef struct writer {
    const gmd_trace *trace;
    gmd_written_names blocks, streams, threads, functions, pools;
    FILE *out;
    gmd_error *error;
} writer;

/* Reading numbers streams in the order of first mention; false if that would change their order. */
static bool streams_come_in_order(const gmd_trace *trace)
{
    uint32_t next = 1;
    for (size_t i = 0; i < trace->count; i++) {
        gmd_request r = trace->requests[i];
        uint32_t *streams[2];
        size_t count = gmd_request_streams(&r, streams);
        for (size_t k = 0; k < count; k++) {
            if (*streams[k] >= next && *streams[k] != next++) {
                return false;
            }
        }
    }
    return next >= trace->streams.count;
}

static void write_schedule(FILE *out, const char *word, const gmd_schedule *schedule)
{
    if (schedule->kind != GMD_SCHEDULE_UNSTATED) {
        fprintf(out, "%s ", word);
        gmd_schedule_write(schedule, out);
        fputc('\n', out);
    }
}

static gmd_status write_header(const writer *w)
{
    const gmd_trace *t = w->trace;
    char text[24];
    fputs("gmd-trace 1\n", w->out);
    if (t->conditions.device_count) {
        fprintf(w->out, "devices %u\n", t->conditions.device_count);
    }
    if (t->conditions.capacity_bytes) {
        fprintf(w->out, "capacity %s\n", gmd_format_exact_size(t->conditions.capacity_bytes, text));
    }
    if (t->conditions.conf && *t->conditions.conf) {
        if (!gmd_conf_is_valid(t->conditions.conf, strlen(t->conditions.conf))) {
            char quoted[QUOTE_BYTES];
            return gmd_fail(
                w->error, GMD_BAD_INPUT,
                "the allocator settings %s cannot be written into a trace: expected one "
                "line of text without '#'",
                quote_text(t->conditions.conf, strlen(t->conditions.conf), quoted));
        }
        fprintf(w->out, "conf %s\n", t->conditions.conf);
    }
    if (gmd_placement_is_stated(&t->conditions.placement)) {
        char placement[GMD_PLACEMENT_TEXT];
        fprintf(w->out, "placement %s\n", gmd_placement_write(&t->conditions.placement, placement));
    }
    if (t->conditions.reuses_handles) {
        fputs("handles reused\n", w->out);
    }
    if (t->conditions.moves_clock) {
        fputs("clock trace\n", w->out);
    }
    write_schedule(w->out, "schedule", &t->conditions.schedule);
    write_schedule(w->out, "interleave", &t->conditions.interleave);
    if (!streams_come_in_order(t)) {
        fputs("streams", w->out);
        for (uint32_t i = 0; i < w->streams.count; i++) {
            fprintf(w->out, " %s", w->streams.items[i]);
        }
        fputc('\n', w->out);
    }
    return GMD_OK;
}

static const char *written(const gmd_written_names *names, uint32_t index)
{
    return index < names->count ? names->items[index] : NULL;
}

/* False: the request refers to an entry that its trace does not have. */
static bool find_mentions(const writer *w, const gmd_request *r, mentions *m)
{
    *m = (mentions){.block = written(&w->blocks, r->block),
                    .stream = written(&w->streams, r->stream),
                    .other_stream = written(&w->streams, r->other_stream),
                    .function = written(&w->functions, r->function),
                    .pool = written(&w->pools, r->pool)};
    return r->op < GMD_OP_COUNT && r->thread < w->threads.count &&
           (m->block || !gmd_op_has_block(r->op)) && (m->stream || !gmd_request_names_stream(r)) &&
           (m->other_stream || !gmd_op_has(r->op, GMD_FIELD_OTHER_STREAM)) &&
           (m->function || !gmd_op_has(r->op, GMD_FIELD_FUNCTION)) &&
           (m->pool || !gmd_op_is_on_pool(r->op));
}

static gmd_status write_requests(const writer *w)
{
    char text[4 * GMD_NAME_BYTES];
    uint8_t thread = 0;
    for (size_t i = 0; i < w->trace->count; i++) {
        const gmd_request *r = &w->trace->requests[i];
        mentions m;
        if (!find_mentions(w, r, &m)) {
            return gmd_fail(w->error, GMD_FAILED,
                            "request %zu refers to what its trace does not have", i);
        }
        if (r->thread != thread) {
            thread = r->thread;
            fprintf(w->out, "thread %s\n", w->threads.items[thread]);
        }
        write_request(r, &m, text, sizeof text);
        fputs(text, w->out);
        fputc('\n', w->out);
    }
    return GMD_OK;
}

static bool make_names(writer *w)
{
    const gmd_trace *t = w->trace;
    return gmd_written_names_make(&w->blocks, &t->blocks, 'b', NULL) &&
           gmd_written_names_make(&w->streams, &t->streams, 's', "s0") &&
           gmd_written_names_make(&w->threads, &t->threads, 't', "main") &&
           gmd_written_names_make(&w->functions, &t->functions, 'f', NULL) &&
           gmd_written_names_make(&w->pools, &t->pools, 'p', NULL);
}

gmd_status gmd_trace_write(const gmd_trace *trace, FILE *out, gmd_error *error)
{
    writer w = {.trace = trace, .out = out, .error = error};
    gmd_status status =
        make_names(&w) ? GMD_OK : gmd_fail(error, GMD_NO_MEMORY, "no host memory to write a trace");
    if (status == GMD_OK) {
        status = write_header(&w);
    }
    if (status == GMD_OK) {
        status = write_requests(&w);
    }
    gmd_written_names_free(&w.blocks);
    gmd_written_names_free(&w.streams);
    gmd_written_names_free(&w.threads);
    gmd_written_names_free(&w.functions);
    gmd_written_names_free(&w.pools);
    if (status == GMD_OK && (fflush(out) || ferror(out))) {
        status = gmd_fail(error, GMD_FAILED, "a trace cannot be written: %s", strerror(errno));
    }
    return status;
}
