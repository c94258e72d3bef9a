#include "gmd_memory_timeline.h"

#include "gmd_grow.h"

#include <stdlib.h>
#include <string.h>

/* The profiler's categories by their numbers: _CATEGORY_TO_INDEX. What it calls autograd_detail,
 * intermediate results of backward() that are no gradients, is temporary in gmd's terms. */
static const uint8_t categories[] = {GMD_PARAMETER, GMD_OPTIMIZER_STATE, GMD_INPUT,
                                     GMD_TEMPORARY, GMD_ACTIVATION,      GMD_GRADIENT,
                                     GMD_TEMPORARY, GMD_CATEGORY_UNKNOWN};
enum { CATEGORY_COUNT = sizeof categories / sizeof *categories };
enum { RAW_TIME, RAW_ACTION, RAW_BYTES, RAW_CATEGORY, RAW_FIELDS };
enum { SUM_FIELDS = CATEGORY_COUNT + 1, NS_PER_US = 1000 };

typedef struct reader {
    gmd_memory_timeline *timeline;
    const uint8_t *data;
    size_t size, at;
    int64_t *times;
    size_t time_count, time_capacity;
    const char *name;
    gmd_error *error;
    gmd_status status;
} reader;

static bool refuse(reader *r, const char *expected)
{
    if (r->status == GMD_OK) {
        r->status = gmd_fail(r->error, GMD_BAD_INPUT,
                             "%s: byte %zu: not torch.profiler's memory timeline: expected %s",
                             r->name, r->at, expected);
    }
    return false;
}

static bool no_memory(reader *r)
{
    r->status = gmd_fail(r->error, GMD_NO_MEMORY, "%s: no host memory", r->name);
    return false;
}

/* --- JSON of whole numbers ------------------------------------------------------------------- */

/* The next byte that is no space; 0: the end. */
static uint8_t peek(reader *r)
{
    while (r->at < r->size && memchr(" \t\r\n", r->data[r->at], 4)) {
        r->at++;
    }
    return r->at < r->size ? r->data[r->at] : 0;
}

static bool take(reader *r, char c)
{
    bool is_there = peek(r) == (uint8_t)c;
    r->at += is_there;
    return is_there;
}

static bool need(reader *r, char c, const char *expected)
{
    return take(r, c) || refuse(r, expected);
}

static bool is_digit(const reader *r)
{
    return r->at < r->size && r->data[r->at] >= '0' && r->data[r->at] <= '9';
}

static bool need_number(reader *r, int64_t *number)
{
    bool is_negative = take(r, '-'), fits = true;
    *number = 0;
    if (!is_digit(r)) {
        return refuse(r, "a whole number");
    }
    for (; is_digit(r) && fits; r->at++) {
        int digit = r->data[r->at] - '0';
        fits = !__builtin_mul_overflow(*number, 10, number) &&
               !__builtin_sub_overflow(*number, digit, number);
    }
    /* Collected below 0, where there is room for one more. */
    if (!fits || (!is_negative && __builtin_sub_overflow(0, *number, number))) {
        return refuse(r, "a number of at most 64 bits");
    }
    return true;
}

/* A list of `count` numbers, neither more nor fewer. */
static bool need_numbers(reader *r, int64_t *numbers, size_t count, const char *expected)
{
    if (!need(r, '[', expected)) {
        return false;
    }
    for (size_t i = 0; i < count; i++) {
        if ((i && !need(r, ',', expected)) || !need_number(r, &numbers[i])) {
            return false;
        }
    }
    return need(r, ']', expected);
}

/* --- rows ------------------------------------------------------------------------------------ */

/* The row of a time, which is the last one's, or a new one with what the last one had. */
static gmd_timeline_row *row_of(reader *r, int64_t time_us)
{
    gmd_memory_timeline *t = r->timeline;
    gmd_timeline_row next = {0};
    if (t->count && t->rows[t->count - 1].time_us == time_us) {
        return &t->rows[t->count - 1];
    }
    if (!GMD_GROW(&t->rows, &t->capacity, t->count + 1)) {
        no_memory(r);
        return NULL;
    }
    if (t->count) {
        next = t->rows[t->count - 1];
    }
    next.time_us = time_us;
    t->rows[t->count] = next;
    return &t->rows[t->count++];
}

static bool add(reader *r, gmd_timeline_row *row, int64_t category, int64_t bytes)
{
    if (category < 0 || category >= CATEGORY_COUNT) {
        return refuse(r, "a category from 0 to 7 before this");
    }
    int64_t *sum = &row->bytes[categories[category]];
    return !__builtin_add_overflow(*sum, bytes, sum) || refuse(r, "sums of at most 64 bits");
}

/* Amounts of a category may pass below 0 where the profiler changes its mind; never all of them. */
static bool has_sound_sum(reader *r, const gmd_timeline_row *row)
{
    int64_t sum = 0;
    for (int i = 0; i < GMD_TIMELINE_CATEGORIES; i++) {
        if (__builtin_add_overflow(sum, row->bytes[i], &sum)) {
            return refuse(r, "sums of at most 64 bits");
        }
    }
    return sum >= 0 || refuse(r, "no more memory freed than there was");
}

/* --- [[time, ...], [[0, bytes...], ...]] ----------------------------------------------------- */

static bool add_sums(reader *r, size_t index)
{
    int64_t sums[SUM_FIELDS];
    if (!need_numbers(r, sums, SUM_FIELDS, "a list of 9 numbers")) {
        return false;
    }
    gmd_timeline_row *row = row_of(r, r->times[index]);
    if (!row) {
        return false;
    }
    memset(row->bytes, 0, sizeof row->bytes);
    for (int64_t i = 0; i < CATEGORY_COUNT; i++) {
        if (!add(r, row, i, sums[i + 1])) {
            return false;
        }
    }
    return has_sound_sum(r, row);
}

/* Behind the times and a comma. */
static bool read_sums(reader *r)
{
    if (!need(r, '[', "the list of sizes")) {
        return false;
    }
    for (size_t i = 0; i < r->time_count; i++) {
        if ((i && !need(r, ',', "as many sizes as times")) || !add_sums(r, i)) {
            return false;
        }
    }
    return need(r, ']', "as many sizes as times");
}

/* --- [[time, action, bytes, category], ...] -------------------------------------------------- */

static int64_t raw_time(const reader *r, int64_t time_ns)
{
    const gmd_memory_timeline *t = r->timeline;
    int64_t last = t->count ? t->rows[t->count - 1].time_us : 0;
    return time_ns < 0 ? last : time_ns / NS_PER_US; /* what was there before the first */
}

static bool add_raw(reader *r, const int64_t fields[RAW_FIELDS])
{
    gmd_timeline_row *row = row_of(r, raw_time(r, fields[RAW_TIME]));
    return row && add(r, row, fields[RAW_CATEGORY], fields[RAW_BYTES]);
}

/* Between two events of one time sums may be anything: they are looked at when all are there. */
static bool read_raw(reader *r)
{
    int64_t fields[RAW_FIELDS];
    bool ok = r->time_count == RAW_FIELDS ? add_raw(r, r->times)
                                          : refuse(r, "lists of 4 numbers, or times and sizes");
    while (ok && take(r, ',')) {
        ok = need_numbers(r, fields, RAW_FIELDS, "a list of 4 numbers") && add_raw(r, fields);
    }
    for (size_t i = 0; ok && i < r->timeline->count; i++) {
        ok = has_sound_sum(r, &r->timeline->rows[i]);
    }
    return ok;
}

/* --- the whole ------------------------------------------------------------------------------- */

/* The first list: times, or the first event. */
static bool read_first(reader *r)
{
    if (!need(r, '[', "a list of lists")) {
        return false;
    }
    while (peek(r) != ']') {
        if ((r->time_count && !need(r, ',', "',' or ']'")) ||
            !GMD_GROW(&r->times, &r->time_capacity, r->time_count + 1)) {
            return r->status == GMD_OK ? no_memory(r) : false;
        }
        if (!need_number(r, &r->times[r->time_count])) {
            return false;
        }
        r->time_count++;
    }
    return need(r, ']', "']'");
}

/* A list of lists comes second where the first has times. */
static bool has_sums(reader *r)
{
    size_t start = r->at;
    bool is_it = take(r, ',') && take(r, '[') && (peek(r) == '[' || peek(r) == ']');
    r->at = start;
    return is_it;
}

static bool read_timeline(reader *r)
{
    if (!need(r, '[', "a list")) {
        return false;
    }
    if (!take(r, ']')) {
        bool ok =
            read_first(r) && (has_sums(r) ? need(r, ',', "','") && read_sums(r) : read_raw(r));
        if (!ok || !need(r, ']', "',' or ']'")) {
            return false;
        }
    }
    return peek(r) == 0 || refuse(r, "nothing behind the list");
}

gmd_status gmd_memory_timeline_parse(gmd_memory_timeline *timeline, const uint8_t *data,
                                     size_t size, const char *name, gmd_error *error)
{
    *timeline = (gmd_memory_timeline){0};
    reader r = {.timeline = timeline, .data = data, .size = size, .name = name, .error = error};
    read_timeline(&r);
    free(r.times);
    if (r.status != GMD_OK) {
        gmd_memory_timeline_free(timeline);
    }
    return r.status;
}

void gmd_memory_timeline_free(gmd_memory_timeline *timeline)
{
    free(timeline->rows);
    *timeline = (gmd_memory_timeline){0};
}

uint64_t gmd_timeline_allocated(const gmd_timeline_row *row)
{
    int64_t sum = 0;
    for (int i = 0; i < GMD_TIMELINE_CATEGORIES; i++) {
        sum += row->bytes[i];
    }
    return (uint64_t)sum;
}

size_t gmd_timeline_peak(const gmd_memory_timeline *timeline)
{
    size_t peak = 0;
    for (size_t i = 1; i < timeline->count; i++) {
        bool is_higher = gmd_timeline_allocated(&timeline->rows[i]) >
                         gmd_timeline_allocated(&timeline->rows[peak]);
        peak = is_higher ? i : peak;
    }
    return peak;
}
