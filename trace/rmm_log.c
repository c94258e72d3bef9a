#include "rmm_log.h"

#include "gmd_grow.h"
#include "gmd_min.h"
#include "quote.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TIME, ACTION, POINTER, SIZE, STREAM, COLUMNS };
enum { MOST_FIELDS = 32, MOST_HEAD = 1024 };
#define NOT_THERE     SIZE_MAX
#define DAY_US        (UINT64_C(86400) * 1000000)
#define HALF_A_DAY_US (DAY_US / 2)

static const char *const column_names[COLUMNS] = {"Time", "Action", "Pointer", "Size", "Stream"};

typedef struct text {
    const char *bytes;
    size_t length;
} text;

typedef struct row {
    text fields[MOST_FIELDS];
    size_t count;
} row;

typedef struct reader {
    gmd_snapshot *snapshot;
    size_t event_capacity;
    size_t columns[COLUMNS]; /* which field of a row each is */
    size_t field_count;
    uint64_t days_us; /* a log goes on after midnight, its times begin again */
    uint64_t last_us; /* of the day */
    size_t line;      /* from 1 */
    const char *name;
    gmd_error *error;
} reader;

__attribute__((format(printf, 2, 3))) static gmd_status refuse(reader *r, const char *format, ...)
{
    char words[300];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(words, sizeof words, format, arguments);
    va_end(arguments);
    return gmd_fail(r->error, GMD_BAD_INPUT, "%s:%zu: %s", r->name, r->line, words);
}

/* --- rows ------------------------------------------------------------------------------------ */

static bool is(text t, const char *word)
{
    return t.length == strlen(word) && memcmp(t.bytes, word, t.length) == 0;
}

/* False: there are more fields than any log has. */
static bool split(const char *line, size_t length, row *out)
{
    out->count = 0;
    if (length && line[length - 1] == '\r') {
        length--;
    }
    for (size_t at = 0;;) {
        const char *comma = memchr(line + at, ',', length - at);
        size_t end = comma ? (size_t)(comma - line) : length;
        if (out->count == MOST_FIELDS) {
            return false;
        }
        out->fields[out->count++] = (text){line + at, end - at};
        if (!comma) {
            return true;
        }
        at = end + 1;
    }
}

static size_t line_length(const uint8_t *data, size_t size)
{
    const uint8_t *end = memchr(data, '\n', size);
    return end ? (size_t)(end - data) : size;
}

static bool find_columns(const row *head, size_t columns[COLUMNS])
{
    for (size_t i = 0; i < COLUMNS; i++) {
        columns[i] = NOT_THERE;
        for (size_t k = 0; k < head->count && columns[i] == NOT_THERE; k++) {
            columns[i] = is(head->fields[k], column_names[i]) ? k : NOT_THERE;
        }
        if (columns[i] == NOT_THERE) {
            return false;
        }
    }
    return true;
}

bool rmm_log_is(const uint8_t *data, size_t size)
{
    row head;
    size_t columns[COLUMNS];
    size = gmd_min(size, MOST_HEAD);
    return size && split((const char *)data, line_length(data, size), &head) &&
           find_columns(&head, columns);
}

/* --- fields ---------------------------------------------------------------------------------- */

static bool parse_digits(text t, unsigned base, uint64_t *value)
{
    *value = 0;
    for (size_t i = 0; i < t.length; i++) {
        char c = t.bytes[i];
        unsigned digit = c >= '0' && c <= '9'   ? (unsigned)(c - '0')
                         : c >= 'a' && c <= 'f' ? (unsigned)(c - 'a') + 10
                         : c >= 'A' && c <= 'F' ? (unsigned)(c - 'A') + 10
                                                : base;
        if (digit >= base || *value > (UINT64_MAX - digit) / base) {
            return false;
        }
        *value = *value * base + digit;
    }
    return t.length > 0;
}

static bool parse_hex(text t, uint64_t *value)
{
    if (is(t, "(nil)")) {
        *value = 0;
        return true;
    }
    bool has_prefix = t.length > 2 && t.bytes[0] == '0' && (t.bytes[1] | 0x20) == 'x';
    return parse_digits(has_prefix ? (text){t.bytes + 2, t.length - 2} : t, 16, value);
}

/* "11:48:13.123456"; the day is not in it. */
static bool parse_time(text t, uint64_t *us)
{
    static const unsigned limits[] = {24, 60, 61}; /* a leap second */
    uint64_t value, total = 0;
    if (t.length != 15 || (t.bytes[8] != '.' && t.bytes[8] != ':') || t.bytes[2] != ':' ||
        t.bytes[5] != ':') {
        return false;
    }
    for (size_t i = 0; i < 3; i++) {
        if (!parse_digits((text){t.bytes + 3 * i, 2}, 10, &value) || value >= limits[i]) {
            return false;
        }
        total = total * 60 + value;
    }
    bool ok = parse_digits((text){t.bytes + 9, 6}, 10, &value);
    *us = total * 1000000 + value;
    return ok;
}

/* Rows of several threads may be a little out of order; a step back of half a day is midnight. */
static uint64_t absolute_time(reader *r, uint64_t us)
{
    if (us + HALF_A_DAY_US < r->last_us) {
        r->days_us += DAY_US;
    }
    r->last_us = us;
    return r->days_us + us;
}

/* --- events ---------------------------------------------------------------------------------- */

static gmd_status add_event(reader *r, gmd_action action, const gmd_snapshot_event *event)
{
    gmd_snapshot *s = r->snapshot;
    if (!GMD_GROW(&s->events, &r->event_capacity, s->event_count + 1)) {
        return gmd_fail(r->error, GMD_NO_MEMORY, "%s: no host memory", r->name);
    }
    s->events[s->event_count] = *event;
    s->events[s->event_count++].action = (uint8_t)action;
    return GMD_OK;
}

/* Nothing is allocated for a request of no bytes, whatever pointer it got. */
static gmd_status add_row(reader *r, text action, const gmd_snapshot_event *event)
{
    bool is_empty = event->size == 0 || event->address == 0;
    if (is(action, "allocate")) {
        return is_empty ? GMD_OK : add_event(r, GMD_ACTION_ALLOC, event);
    }
    if (is(action, "allocate failure")) {
        return add_event(r, GMD_ACTION_OOM, event);
    }
    if (!is(action, "free")) {
        char words[QUOTE_BYTES];
        return refuse(r, "Action: expected allocate, allocate failure or free, found %s",
                      quote_text(action.bytes, action.length, words));
    }
    gmd_status status = is_empty ? GMD_OK : add_event(r, GMD_ACTION_FREE_REQUESTED, event);
    return status == GMD_OK && !is_empty ? add_event(r, GMD_ACTION_FREE_COMPLETED, event) : status;
}

static gmd_status refuse_field(reader *r, int column, text found, const char *expected)
{
    char words[QUOTE_BYTES];
    return refuse(r, "%s: expected %s, found %s", column_names[column], expected,
                  quote_text(found.bytes, found.length, words));
}

static gmd_status read_row(reader *r, const row *fields)
{
    gmd_snapshot_event event = {0};
    uint64_t time_us;
    text at[COLUMNS];
    if (fields->count != r->field_count) {
        return refuse(r, "expected %zu fields, found %zu: the log is damaged, or cut off here",
                      r->field_count, fields->count);
    }
    for (size_t i = 0; i < COLUMNS; i++) {
        at[i] = fields->fields[r->columns[i]];
    }
    if (!parse_time(at[TIME], &time_us)) {
        return refuse_field(r, TIME, at[TIME], "HH:MM:SS.microseconds");
    }
    if (!parse_hex(at[POINTER], &event.address)) {
        return refuse_field(r, POINTER, at[POINTER], "a hexadecimal address");
    }
    if (!parse_digits(at[SIZE], 10, &event.size)) {
        return refuse_field(r, SIZE, at[SIZE], "a number of bytes");
    }
    if (!parse_hex(at[STREAM], &event.stream)) {
        return refuse_field(r, STREAM, at[STREAM], "a hexadecimal handle");
    }
    if (event.size > UINT64_MAX - event.address) {
        return refuse(r, "%" PRIu64 " bytes at 0x%" PRIx64 ": expected a range of 64-bit addresses",
                      event.size, event.address);
    }
    event.time_us = absolute_time(r, time_us);
    return add_row(r, at[ACTION], &event);
}

/* --- the whole ------------------------------------------------------------------------------- */

/* A last line that is not ended may be cut in the middle of a number. */
static gmd_status read_lines(reader *r, const uint8_t *data, size_t size)
{
    gmd_status status = GMD_OK;
    for (size_t at = 0; status == GMD_OK && at < size;) {
        row fields;
        size_t length = line_length(data + at, size - at);
        r->line++;
        if (at + length == size) {
            return refuse(r, "the file is cut off within this line; without the line it is whole");
        }
        if (!split((const char *)data + at, length, &fields)) {
            return refuse(r, "expected at most %d fields", MOST_FIELDS);
        }
        if (r->line == 1) {
            find_columns(&fields, r->columns);
            r->field_count = fields.count;
        } else {
            status = read_row(r, &fields);
        }
        at += length + 1;
    }
    return status;
}

gmd_status rmm_log_parse(gmd_snapshot *snapshot, const uint8_t *data, size_t size, const char *name,
                         gmd_error *error)
{
    *snapshot = (gmd_snapshot){.device_count = 1, .recorder = GMD_RECORDER_RMM};
    reader r = {.snapshot = snapshot, .name = name, .error = error};
    gmd_status status = read_lines(&r, data, size);
    snapshot->has_events = snapshot->event_count > 0;
    if (status != GMD_OK) {
        gmd_snapshot_free(snapshot);
    }
    return status;
}
