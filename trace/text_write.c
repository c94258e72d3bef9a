/* Writes the text format, and single requests for messages; docs/trace-format.md describes it. */
#include "gmd_pool_book.h"
#include "gmd_size.h"
#include "gmd_trace.h"
#include "names.h"
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

static int write_device(char *text, size_t size, uint8_t device)
{
    return device ? snprintf(text, size, " " GMD_DEVICE_WORD " %u", device) : 0;
}

static int write_alloc(const gmd_request *r, const mentions *m, char *text, size_t size)
{
    static const char *const prefix[] = {"alloc", "expect alloc", "expect oom"};
    char bytes[24];
    return snprintf(text, size, "%s %s %s %s", prefix[r->expect <= GMD_EXPECT_OOM ? r->expect : 0],
                    m->block, gmd_format_exact_size(r->bytes, bytes), m->stream);
}

static int write_sync(const gmd_request *r, const mentions *m, char *text, size_t size)
{
    bool is_all = r->stream == GMD_ALL_STREAMS;
    return snprintf(text, size, "sync%s%s", is_all ? "" : " ", is_all ? "" : m->stream);
}

static int write_on_pool(const gmd_request *r, const mentions *m, char *text, size_t size)
{
    static const char *const words[] = {"begin_pool",  "end_pool", "begin_capture",
                                        "end_capture", "launch",   "release_pool"};
    bool has_stream = gmd_request_names_stream(r);
    return snprintf(text, size, "%s %s%s%s", words[r->op - GMD_OP_BEGIN_POOL], m->pool,
                    has_stream ? " " : "", has_stream ? m->stream : "");
}

/* Lengths are snprintf's; the device follows where the block does not tell it. */
static void write_request(const gmd_request *r, const mentions *m, char *text, size_t size)
{
    char number[40];
    int length = 0;
    switch ((gmd_op)r->op) {
    case GMD_OP_ALLOC:
        length = write_alloc(r, m, text, size);
        break;
    case GMD_OP_FREE:
        snprintf(text, size, "free %s", m->block);
        return;
    case GMD_OP_USE:
        snprintf(text, size, "use %s %s %s", m->block, m->stream,
                 format_duration(r->duration_ns, number));
        return;
    case GMD_OP_RECORD:
        snprintf(text, size, "record %s %s", m->block, m->stream);
        return;
    case GMD_OP_WAIT:
        length = snprintf(text, size, "wait %s %s", m->stream, m->other_stream);
        break;
    case GMD_OP_SYNC:
        length = write_sync(r, m, text, size);
        break;
    case GMD_OP_ADVANCE:
        snprintf(text, size, "advance %s", format_duration(r->duration_ns, number));
        return;
    case GMD_OP_EMPTY_CACHE:
        snprintf(text, size, "empty_cache");
        return;
    case GMD_OP_FRACTION:
        length = snprintf(text, size, "fraction %s", format_fraction(r->fraction, number));
        break;
    case GMD_OP_FAULT:
        snprintf(text, size, "fault %s %u %u%s", m->function, r->count, r->error,
                 r->every_later ? " every" : "");
        return;
    case GMD_OP_DEVICE:
        snprintf(text, size, GMD_DEVICE_WORD " %u", r->device);
        return;
    case GMD_OP_DESTROY:
        length = snprintf(text, size, "destroy %s", m->stream);
        break;
    case GMD_OP_BUDGET:
        length =
            snprintf(text, size, "budget %s",
                     r->bytes == GMD_NO_BUDGET ? "none" : gmd_format_exact_size(r->bytes, number));
        break;
    case GMD_OP_BEGIN_POOL:
    case GMD_OP_END_POOL:
    case GMD_OP_BEGIN_CAPTURE:
    case GMD_OP_END_CAPTURE:
    case GMD_OP_LAUNCH:
    case GMD_OP_RELEASE_POOL:
        length = write_on_pool(r, m, text, size);
        break;
    case GMD_OP_COUNT:
        break;
    }
    if ((size_t)length < size) {
        write_device(text + length, size - (size_t)length, r->device);
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
        text[0] = 0;
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
        const gmd_request *r = &trace->requests[i];
        if (gmd_request_names_stream(r) && r->stream >= next && r->stream != next++) {
            return false;
        }
        if (r->op == GMD_OP_WAIT && r->other_stream >= next && r->other_stream != next++) {
            return false;
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
    if (t->device_count) {
        fprintf(w->out, "devices %u\n", t->device_count);
    }
    if (t->capacity_bytes) {
        fprintf(w->out, "capacity %s\n", gmd_format_exact_size(t->capacity_bytes, text));
    }
    if (t->conf && *t->conf) {
        if (!gmd_conf_is_valid(t->conf, strlen(t->conf))) {
            char quoted[GMD_QUOTE_BYTES];
            return gmd_fail(
                w->error, GMD_BAD_INPUT,
                "the allocator settings %s cannot be written into a trace: expected one "
                "line of text without '#'",
                gmd_quote(t->conf, strlen(t->conf), quoted));
        }
        fprintf(w->out, "conf %s\n", t->conf);
    }
    write_schedule(w->out, "schedule", &t->schedule);
    write_schedule(w->out, "interleave", &t->interleave);
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
    bool has_block = r->op <= GMD_OP_RECORD;
    bool has_stream = gmd_request_names_stream(r);
    return r->op < GMD_OP_COUNT && r->thread < w->threads.count && (!has_block || m->block) &&
           (!has_stream || m->stream) && (r->op != GMD_OP_WAIT || m->other_stream) &&
           (r->op != GMD_OP_FAULT || m->function) && (!gmd_op_is_on_pool(r->op) || m->pool);
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
