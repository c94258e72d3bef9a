/* Writes the text format, and single requests for messages; docs/trace-format.md describes it. */
#include "gmd_hash.h"
#include "gmd_min.h"
#include "gmd_names.h"
#include "gmd_repeats.h"
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
    const char *device; /* in place of its number; NULL: the number */
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
    case GMD_FIELD_DEVICE_NUMBER:
        return m->device;
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
    case GMD_FIELD_POOL_OPTIONS:
        for (int i = 0; i < GMD_POOL_OPTION_COUNT; i++) {
            if (r->pool_options & 1u << i) {
                add(l, " +", gmd_pool_option_words[i]);
            }
        }
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
        if (field == GMD_FIELD_DEVICE && m->device) {
            add(&l, " " GMD_DEVICE_WORD " ", m->device);
        } else if (name) {
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
    gmd_numbering numbering;
    size_t repeated_lines, repeated_bytes; /* so far, for all turns */
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

/* --- repeats ----------------------------------------------------------------------------- */

enum { TURNS_LEAST = 8, STEPPED_BYTES = GMD_NAME_BYTES + 16, LINE_BYTES = 4 * GMD_NAME_BYTES };

/* Where the number at the end of a name begins; NULL: it has none that could be counted on. */
static const char *number_of(const char *name, uint64_t *number)
{
    size_t length = strlen(name), at = length;
    while (at > 0 && name[at - 1] >= '0' && name[at - 1] <= '9') {
        at--;
    }
    bool is_counting = length > at && length - at < 10 && (name[at] != '0' || length - at == 1);
    *number = is_counting ? strtoull(name + at, NULL, 10) : 0;
    return is_counting ? name + at : NULL;
}

/* A number that is one more for the name that counts one more. */
static uint32_t key_of(const char *name)
{
    uint64_t number = 0;
    const char *digits = number_of(name, &number);
    size_t length = digits ? (size_t)(digits - name) : strlen(name);
    return (uint32_t)(gmd_hash_bytes(GMD_HASH_OF_NOTHING, name, length) + number);
}

/* NULL: no host memory. */
static uint32_t *number_names(const gmd_written_names *names)
{
    uint32_t *numbers = malloc(((size_t)names->count + 1) * sizeof *numbers);
    for (uint32_t i = 0; numbers && i < names->count; i++) {
        numbers[i] = key_of(names->items[i]);
    }
    return numbers;
}

/* Places of entries are not the same when the text is read, names are. */
static bool is_numbered(const gmd_written_names *names, uint32_t first, uint32_t now, int8_t step,
                        size_t turn)
{
    char expected[STEPPED_BYTES];
    uint64_t number = 0;
    int64_t by = step * (int64_t)turn;
    if (!step) {
        return first == now;
    }
    const char *name = written(names, first), *named = written(names, now);
    const char *digits = name ? number_of(name, &number) : NULL;
    if (!digits || !named || (int64_t)number + by < 0) {
        return false;
    }
    snprintf(expected, sizeof expected, "%.*s%" PRIu64, (int)(digits - name), name,
             number + (uint64_t)by);
    return strcmp(expected, named) == 0;
}

static bool can_be_told(void *context, const gmd_request *first, const gmd_request *now,
                        const gmd_turn_step *step, size_t turn)
{
    const writer *w = context;
    bool is_on_pool = gmd_op_is_on_pool(first->op);
    bool has_other = is_on_pool || gmd_op_has(first->op, GMD_FIELD_OTHER_STREAM);
    return (!gmd_op_has_block(first->op) ||
            is_numbered(&w->blocks, first->block, now->block, step->block, turn)) &&
           (!gmd_request_names_stream(first) ||
            is_numbered(&w->streams, first->stream, now->stream, step->stream, turn)) &&
           (!has_other || is_numbered(is_on_pool ? &w->pools : &w->streams, first->pool, now->pool,
                                      step->other, turn)) &&
           is_numbered(&w->threads, first->thread, now->thread, step->thread, turn);
}

/* The name, with its number as that of the turn where it steps. */
static const char *stepped(const char *name, int8_t step, char text[STEPPED_BYTES])
{
    uint64_t number = 0;
    const char *digits = name && step ? number_of(name, &number) : NULL;
    if (!digits) {
        return name;
    }
    snprintf(text, STEPPED_BYTES, "%.*s%%%s%s", (int)(digits - name), name, number ? digits : "",
             step < 0 ? "-" : "");
    return text;
}

static void add_stepped(const writer *w, const gmd_request *r, const gmd_turn_step *step,
                        char *told, size_t size)
{
    char names[4][STEPPED_BYTES], device[STEPPED_BYTES], number[16];
    mentions m;
    find_mentions(w, r, &m);
    m.block = stepped(m.block, step->block, names[0]);
    m.stream = stepped(m.stream, step->stream, names[1]);
    m.other_stream = stepped(m.other_stream, step->other, names[2]);
    m.pool = stepped(m.pool, step->other, names[3]);
    snprintf(number, sizeof number, "%u", r->device);
    m.device = step->device ? stepped(number, step->device, device) : NULL;
    write_request(r, &m, told, size);
}

static bool is_on_one_thread(const gmd_request *first, const gmd_repeat *repeat)
{
    for (uint32_t k = 0; k < repeat->length; k++) {
        if (repeat->steps[k].thread || first[k].thread != first->thread) {
            return false;
        }
    }
    return true;
}

/* The lines of a turn; how many. */
static size_t print_turn(const writer *w, const gmd_request *first, const gmd_repeat *repeat,
                         FILE *out)
{
    char told[LINE_BYTES], text[STEPPED_BYTES];
    size_t lines = repeat->length;
    bool is_one = is_on_one_thread(first, repeat);
    for (uint32_t k = 0; k < repeat->length; k++) {
        const gmd_turn_step *step = &repeat->steps[k];
        bool is_same = k && first[k].thread == first[k - 1].thread &&
                       step->thread == repeat->steps[k - 1].thread;
        if (!is_one && !is_same) {
            fprintf(out, "  thread %s\n",
                    stepped(w->threads.items[first[k].thread], step->thread, text));
            lines++;
        }
        add_stepped(w, &first[k], step, told, sizeof told);
        fprintf(out, "  %s\n", told);
    }
    return lines;
}

/* As many requests as were written; 0: they are none that repeat, or more than a reader takes. */
static gmd_status write_repeat(writer *w, size_t at, uint8_t *thread, size_t *count)
{
    const gmd_repeat_search search = {
        .least = TURNS_LEAST, .numbering = &w->numbering, .check = can_be_told, .context = w};
    gmd_repeat repeat = gmd_repeat_at(w->trace, at, &search);
    const gmd_request *first = &w->trace->requests[at];
    char *body = NULL;
    size_t size = 0;
    *count = 0;
    if (repeat.turns < TURNS_LEAST) {
        return GMD_OK;
    }
    FILE *out = open_memstream(&body, &size);
    size_t lines = out ? print_turn(w, first, &repeat, out) : 0;
    if (!out || fclose(out) != 0) {
        free(body);
        return gmd_fail(w->error, GMD_NO_MEMORY, "no host memory to write a trace");
    }
    size_t lines_left = (GMD_REPEAT_LINES - w->repeated_lines) / gmd_max(lines, 1);
    size_t bytes_left = (GMD_REPEAT_BYTES - w->repeated_bytes) / gmd_max(size, 1);
    size_t most = gmd_min(lines_left, bytes_left);
    size_t turns = gmd_min(repeat.turns, most);
    if (turns >= TURNS_LEAST) {
        if (is_on_one_thread(first, &repeat) && first->thread != *thread) {
            fprintf(w->out, "thread %s\n", w->threads.items[first->thread]);
        }
        fprintf(w->out, "repeat %zu {\n%s}\n", turns, body);
        w->repeated_lines += turns * lines;
        w->repeated_bytes += turns * size;
        *count = turns * repeat.length;
        *thread = first[*count - 1].thread;
    }
    free(body);
    return GMD_OK;
}

static bool is_complete(const writer *w, gmd_error *error)
{
    for (size_t i = 0; i < w->trace->count; i++) {
        mentions m;
        if (!find_mentions(w, &w->trace->requests[i], &m)) {
            gmd_fail(error, GMD_FAILED, "request %zu refers to what its trace does not have", i);
            return false;
        }
    }
    return true;
}

static void write_one(const writer *w, const gmd_request *r, uint8_t *thread)
{
    char text[LINE_BYTES];
    mentions m;
    find_mentions(w, r, &m);
    if (r->thread != *thread) {
        *thread = r->thread;
        fprintf(w->out, "thread %s\n", w->threads.items[*thread]);
    }
    write_request(r, &m, text, sizeof text);
    fputs(text, w->out);
    fputc('\n', w->out);
}

static gmd_status write_requests(writer *w)
{
    uint8_t thread = 0;
    if (!is_complete(w, w->error)) {
        return GMD_FAILED;
    }
    for (size_t i = 0; i < w->trace->count;) {
        size_t repeated;
        gmd_status status = write_repeat(w, i, &thread, &repeated);
        if (status != GMD_OK) {
            return status;
        }
        if (!repeated) {
            write_one(w, &w->trace->requests[i], &thread);
        }
        i += repeated ? repeated : 1;
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

static bool make_numbering(writer *w, uint32_t *numbers[4])
{
    const gmd_written_names *names[] = {&w->blocks, &w->streams, &w->threads, &w->pools};
    bool is_made = true;
    for (size_t i = 0; i < 4; i++) {
        numbers[i] = number_names(names[i]);
        is_made = is_made && numbers[i];
    }
    w->numbering = (gmd_numbering){.blocks = numbers[0],
                                   .streams = numbers[1],
                                   .threads = numbers[2],
                                   .pools = numbers[3],
                                   .stream_count = w->streams.count};
    return is_made;
}

gmd_status gmd_trace_write(const gmd_trace *trace, FILE *out, gmd_error *error)
{
    writer w = {.trace = trace, .out = out, .error = error};
    uint32_t *numbers[4] = {NULL};
    gmd_status status = make_names(&w) && make_numbering(&w, numbers)
                            ? GMD_OK
                            : gmd_fail(error, GMD_NO_MEMORY, "no host memory to write a trace");
    if (status == GMD_OK) {
        status = write_header(&w);
    }
    if (status == GMD_OK) {
        status = write_requests(&w);
    }
    for (size_t i = 0; i < 4; i++) {
        free(numbers[i]);
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
