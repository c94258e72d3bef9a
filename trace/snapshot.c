/* From a pickle's values to a gmd_snapshot.
 *
 * Names and shapes are those of torch/csrc/cuda/memory_snapshot.cpp and Module.cpp (torch 2.1
 * to 2.11); keys that older versions lack are optional, keys that gmd does not know are ignored. */
#include "gmd_snapshot.h"

#include "gmd_file.h"
#include "gmd_text.h"
#include "gmd_trace.h"
#include "pickle.h"
#include "quote.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef gmd_pickle_value value;

/* Records have about ten keys. A bound keeps the work linear where many records are one shared
 * dict. */
enum { MAX_KEYS = 64, MAX_CONF = 4096 };

/* No event, segment or block can be written in fewer bytes; a file in which there seem to be more
 * has the same list in it again and again. */
enum { LEAST_RECORD_BYTES = 8, SPARE_RECORDS = 16 };

typedef enum place_kind { AT_FILE, AT_EVENT, AT_SEGMENT, AT_BLOCK, AT_SETTINGS } place_kind;

typedef struct converter {
    gmd_snapshot *snapshot;
    const char *name;
    gmd_error *error;
    gmd_status status;
    size_t record_limit, record_count;
    size_t event_capacity, block_capacity;
    place_kind place; /* what is being read, for messages */
    size_t index, device_or_segment;
} converter;

/* --- messages ---------------------------------------------------------------------------- */

static void describe_place(const converter *c, char *text, size_t size)
{
    switch (c->place) {
    case AT_FILE:
        text[0] = 0;
        break;
    case AT_EVENT:
        snprintf(text, size, "event %zu of device %zu: ", c->index, c->device_or_segment);
        break;
    case AT_SEGMENT:
        snprintf(text, size, "segment %zu: ", c->device_or_segment);
        break;
    case AT_BLOCK:
        snprintf(text, size, "block %zu of segment %zu: ", c->index, c->device_or_segment);
        break;
    case AT_SETTINGS:
        snprintf(text, size, "allocator_settings: ");
        break;
    }
}

__attribute__((format(printf, 3, 4))) static void note_failure(converter *c, const value *at,
                                                               const char *format, ...)
{
    char place[80], text[320];
    describe_place(c, place, sizeof place);
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    c->status =
        gmd_fail(c->error, GMD_BAD_INPUT, "%s: byte %u: %s%s", c->name, at->at, place, text);
}

#define FAIL(...) (note_failure(__VA_ARGS__), false)

static bool fail_memory(converter *c)
{
    c->status = gmd_fail(c->error, GMD_NO_MEMORY, "%s: no host memory for the snapshot", c->name);
    return false;
}

/* --- values ------------------------------------------------------------------------------ */

static bool text_is(const value *v, const char *text)
{
    return v->kind == GMD_PICKLE_STRING && v->length == strlen(text) &&
           memcmp(v->text, text, v->length) == 0;
}

/* A key of a record, and where the value under it was found. */
typedef struct field {
    const char *key;
    const value *found; /* NULL: the record has no such key */
} field;

/* Looks the fields up in `record`. Writers keep the order of keys, so the search goes on from the
 * field after the last one that was found. */
static bool find_fields(converter *c, const value *record, field *fields, size_t count)
{
    if (record->kind != GMD_PICKLE_DICT) {
        return FAIL(c, record, "expected a dict, found %s", gmd_pickle_kind_name(record->kind));
    }
    const gmd_pickle_items *items = record->items;
    if (items->count / 2 > MAX_KEYS) {
        return FAIL(c, record, "expected at most %d keys, found %zu", MAX_KEYS, items->count / 2);
    }
    size_t next = 0;
    for (size_t i = 0; i < items->count; i += 2) {
        for (size_t tried = 0; tried < count; tried++) {
            size_t at = (next + tried) % count;
            if (text_is(&items->values[i], fields[at].key)) {
                fields[at].found = &items->values[i + 1];
                next = at + 1;
                break;
            }
        }
    }
    return true;
}

static bool require(converter *c, const value *record, const field *f)
{
    return f->found || FAIL(c, record, "expected the key '%s'", f->key);
}

static bool read_number(converter *c, const field *f, uint64_t *number)
{
    if (f->found->kind != GMD_PICKLE_NATURAL) {
        bool is_negative = f->found->kind == GMD_PICKLE_NEGATIVE;
        return FAIL(c, f->found, "key '%s': expected an integer%s, found %s", f->key,
                    is_negative ? " from 0" : "", gmd_pickle_kind_name(f->found->kind));
    }
    *number = f->found->number;
    return true;
}

static bool required_number(converter *c, const value *record, const field *f, uint64_t *number)
{
    *number = 0;
    return require(c, record, f) && read_number(c, f, number);
}

static bool optional_number(converter *c, const field *f, uint64_t fallback, uint64_t *number)
{
    *number = fallback;
    return !f->found || read_number(c, f, number);
}

static bool read_items(converter *c, const field *f, const gmd_pickle_items **items)
{
    *items = NULL;
    if (f->found->kind != GMD_PICKLE_LIST && f->found->kind != GMD_PICKLE_TUPLE) {
        return FAIL(c, f->found, "key '%s': expected a list, found %s", f->key,
                    gmd_pickle_kind_name(f->found->kind));
    }
    *items = f->found->items;
    return true;
}

static bool required_text(converter *c, const value *record, const field *f)
{
    if (!require(c, record, f)) {
        return false;
    }
    return f->found->kind == GMD_PICKLE_STRING ||
           FAIL(c, f->found, "key '%s': expected a string, found %s", f->key,
                gmd_pickle_kind_name(f->found->kind));
}

static bool optional_bool(converter *c, const field *f, bool *truth)
{
    *truth = false;
    if (!f->found) {
        return true;
    }
    if (f->found->kind != GMD_PICKLE_BOOL) {
        return FAIL(c, f->found, "key '%s': expected a boolean, found %s", f->key,
                    gmd_pickle_kind_name(f->found->kind));
    }
    *truth = f->found->number;
    return true;
}

/* Counts records against what the file can hold, before memory is taken for them. */
static bool count_records(converter *c, const value *list, size_t count)
{
    if (count > c->record_limit - c->record_count) {
        return FAIL(c, list, "more events, segments and blocks than the file has room for: %s",
                    "is the same list in it many times?");
    }
    c->record_count += count;
    return true;
}

static bool fits_address_space(uint64_t address, uint64_t size)
{
    return size <= UINT64_MAX - address;
}

/* --- events ------------------------------------------------------------------------------ */

static gmd_action action_named(const value *name)
{
    static const char *const names[] = {
        [GMD_ACTION_ALLOC] = "alloc",
        [GMD_ACTION_FREE_REQUESTED] = "free_requested",
        [GMD_ACTION_FREE_COMPLETED] = "free_completed",
        [GMD_ACTION_SEGMENT_ALLOC] = "segment_alloc",
        [GMD_ACTION_SEGMENT_FREE] = "segment_free",
        [GMD_ACTION_SEGMENT_MAP] = "segment_map",
        [GMD_ACTION_SEGMENT_UNMAP] = "segment_unmap",
        [GMD_ACTION_SNAPSHOT] = "snapshot",
        [GMD_ACTION_OOM] = "oom",
    };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (text_is(name, names[i])) {
            return (gmd_action)i;
        }
    }
    return GMD_ACTION_OTHER;
}

static bool read_event(converter *c, const value *record, gmd_snapshot_event *event)
{
    enum { ACTION, ADDRESS, SIZE, STREAM, TIME, DEVICE_FREE, FIELDS };
    field fields[FIELDS] = {{"action", NULL}, {"addr", NULL},    {"size", NULL},
                            {"stream", NULL}, {"time_us", NULL}, {"device_free", NULL}};
    *event = (gmd_snapshot_event){.device = (uint8_t)c->device_or_segment};
    if (!find_fields(c, record, fields, FIELDS) || !required_text(c, record, &fields[ACTION])) {
        return false;
    }
    gmd_action action = action_named(fields[ACTION].found);
    event->action = (uint8_t)action;
    if (!optional_number(c, &fields[TIME], 0, &event->time_us)) {
        return false;
    }
    if (action == GMD_ACTION_OTHER) {
        return true; /* what its keys mean is not known either */
    }
    bool is_oom = action == GMD_ACTION_OOM && fields[DEVICE_FREE].found;
    const field *address = &fields[is_oom ? DEVICE_FREE : ADDRESS];
    if (!required_number(c, record, address, &event->address) ||
        !required_number(c, record, &fields[SIZE], &event->size) ||
        !required_number(c, record, &fields[STREAM], &event->stream)) {
        return false;
    }
    bool has_range = action != GMD_ACTION_OOM && action != GMD_ACTION_SNAPSHOT;
    return !has_range || fits_address_space(event->address, event->size) ||
           FAIL(c, record, "%llu bytes at address %llu: expected a range of 64-bit addresses",
                (unsigned long long)event->size, (unsigned long long)event->address);
}

static bool reserve_events(converter *c, size_t count)
{
    gmd_snapshot *s = c->snapshot;
    size_t needed = s->event_count + count;
    if (needed <= c->event_capacity) {
        return true;
    }
    gmd_snapshot_event *events = realloc(s->events, needed * sizeof *events);
    if (!events) {
        return fail_memory(c);
    }
    s->events = events;
    c->event_capacity = needed;
    return true;
}

static bool read_device_trace(converter *c, const value *list)
{
    if (list->kind != GMD_PICKLE_LIST && list->kind != GMD_PICKLE_TUPLE) {
        return FAIL(c, list, "device_traces: device %zu: expected a list of events, found %s",
                    c->device_or_segment, gmd_pickle_kind_name(list->kind));
    }
    size_t count = list->items->count;
    if (!count_records(c, list, count) || !reserve_events(c, count)) {
        return false;
    }
    c->place = AT_EVENT;
    for (c->index = 0; c->index < count; c->index++) {
        gmd_snapshot_event *event = &c->snapshot->events[c->snapshot->event_count];
        if (!read_event(c, &list->items->values[c->index], event)) {
            return false;
        }
        c->snapshot->event_count++;
    }
    c->place = AT_FILE;
    return true;
}

/* The events of one device that are still to be merged. */
typedef struct event_run {
    const gmd_snapshot_event *next, *end;
} event_run;

/* By time; of equal times the lower device's first. Within a device the recorded order stands even
 * where its times do not ascend. Device counts are small: looking at each head is good enough. */
static void merge(event_run *runs, size_t run_count, gmd_snapshot_event *out)
{
    for (;;) {
        event_run *first = NULL;
        for (size_t i = 0; i < run_count; i++) {
            if (runs[i].next != runs[i].end &&
                (!first || runs[i].next->time_us < first->next->time_us)) {
                first = &runs[i];
            }
        }
        if (!first) {
            return;
        }
        *out++ = *first->next++;
    }
}

static bool merge_devices(converter *c, const size_t ends[GMD_MAX_DEVICES])
{
    gmd_snapshot *s = c->snapshot;
    event_run runs[GMD_MAX_DEVICES];
    size_t run_count = 0, start = 0;
    for (uint32_t device = 0; device < s->device_count; start = ends[device++]) {
        if (ends[device] > start) {
            runs[run_count++] = (event_run){s->events + start, s->events + ends[device]};
        }
    }
    if (run_count < 2) {
        return true;
    }
    gmd_snapshot_event *merged = malloc(s->event_count * sizeof *merged);
    if (!merged) {
        return fail_memory(c);
    }
    merge(runs, run_count, merged);
    free(s->events);
    s->events = merged;
    return true;
}

static bool read_device_traces(converter *c, const field *f)
{
    const gmd_pickle_items *traces;
    size_t ends[GMD_MAX_DEVICES] = {0};
    if (!read_items(c, f, &traces)) {
        return false;
    }
    if (traces->count > GMD_MAX_DEVICES) {
        return FAIL(c, f->found, "device_traces: expected at most %d devices, found %zu",
                    GMD_MAX_DEVICES, traces->count);
    }
    c->snapshot->device_count = (uint32_t)traces->count;
    for (size_t i = 0; i < traces->count; i++) {
        c->device_or_segment = i;
        if (!read_device_trace(c, &traces->values[i])) {
            return false;
        }
        ends[i] = c->snapshot->event_count;
    }
    c->snapshot->has_events = c->snapshot->event_count > 0;
    return merge_devices(c, ends);
}

/* --- blocks ------------------------------------------------------------------------------ */

static bool read_state(converter *c, const field *f, uint8_t *state)
{
    static const struct {
        const char *name;
        gmd_block_state state;
    } states[] = {{"inactive", GMD_BLOCK_INACTIVE},
                  {"active_allocated", GMD_BLOCK_ALLOCATED},
                  {"active_pending_free", GMD_BLOCK_PENDING_FREE},
                  {"active_awaiting_free", GMD_BLOCK_PENDING_FREE}};
    for (size_t i = 0; i < sizeof states / sizeof *states; i++) {
        if (text_is(f->found, states[i].name)) {
            *state = (uint8_t)states[i].state;
            return true;
        }
    }
    char quoted[GMD_QUOTE_BYTES];
    return FAIL(c, f->found,
                "key 'state': expected active_allocated, active_pending_free or inactive, "
                "found %s",
                gmd_quote(f->found->text, f->found->length, quoted));
}

/* `expected`: the end of the block before it. Torch up to 2.0 left the address to be added up. */
static bool read_block(converter *c, const value *record, uint64_t expected,
                       gmd_snapshot_block *block)
{
    enum { ADDRESS, SIZE, REQUESTED, STATE, FIELDS };
    field fields[FIELDS] = {
        {"address", NULL}, {"size", NULL}, {"requested_size", NULL}, {"state", NULL}};
    *block = (gmd_snapshot_block){0};
    return find_fields(c, record, fields, FIELDS) &&
           required_number(c, record, &fields[SIZE], &block->size) &&
           optional_number(c, &fields[ADDRESS], expected, &block->address) &&
           optional_number(c, &fields[REQUESTED], block->size, &block->requested_size) &&
           required_text(c, record, &fields[STATE]) && read_state(c, &fields[STATE], &block->state);
}

static bool check_block(converter *c, const value *record, const gmd_snapshot_segment *segment,
                        uint64_t expected, const gmd_snapshot_block *block)
{
    uint64_t end = segment->address + segment->total_size;
    if (block->size == 0) {
        return FAIL(c, record, "key 'size': expected over 0");
    }
    if (block->address < expected) {
        return FAIL(c, record,
                    "key 'address': expected at least %llu, the end of what is before it, "
                    "found %llu",
                    (unsigned long long)expected, (unsigned long long)block->address);
    }
    if (block->address > end || block->size > end - block->address) {
        return FAIL(c, record,
                    "%llu bytes at %llu: expected them to end at or before %llu, the segment's end",
                    (unsigned long long)block->size, (unsigned long long)block->address,
                    (unsigned long long)end);
    }
    return true;
}

static bool reserve_blocks(converter *c, size_t count)
{
    gmd_snapshot *s = c->snapshot;
    size_t needed = s->block_count + count;
    if (needed <= c->block_capacity) {
        return true;
    }
    size_t capacity = needed < c->block_capacity * 2 ? c->block_capacity * 2 : needed;
    gmd_snapshot_block *blocks = realloc(s->blocks, capacity * sizeof *blocks);
    if (!blocks) {
        return fail_memory(c);
    }
    s->blocks = blocks;
    c->block_capacity = capacity;
    return true;
}

static bool read_blocks(converter *c, const field *f, gmd_snapshot_segment *segment)
{
    const gmd_pickle_items *list;
    if (!read_items(c, f, &list) || !count_records(c, f->found, list->count) ||
        !reserve_blocks(c, list->count)) {
        return false;
    }
    segment->first_block = c->snapshot->block_count;
    segment->block_count = list->count;
    uint64_t expected = segment->address;
    c->place = AT_BLOCK;
    for (c->index = 0; c->index < list->count; c->index++) {
        const value *record = &list->values[c->index];
        gmd_snapshot_block *block = &c->snapshot->blocks[c->snapshot->block_count];
        if (!read_block(c, record, expected, block) ||
            !check_block(c, record, segment, expected, block)) {
            return false;
        }
        expected = block->address + block->size;
        c->snapshot->block_count++;
    }
    c->place = AT_SEGMENT;
    return true;
}

/* --- segments ---------------------------------------------------------------------------- */

static bool read_pool_id(converter *c, const field *f, uint64_t pool_id[2])
{
    const gmd_pickle_items *pair;
    if (!f->found) {
        return true;
    }
    if (!read_items(c, f, &pair)) {
        return false;
    }
    if (pair->count != 2) {
        return FAIL(c, f->found, "key '%s': expected two integers, found %zu values", f->key,
                    pair->count);
    }
    for (size_t i = 0; i < 2; i++) {
        field member = {f->key, &pair->values[i]};
        if (!read_number(c, &member, &pool_id[i])) {
            return false;
        }
    }
    return true;
}

static bool read_pool_kind(converter *c, const field *f, bool *is_large)
{
    *is_large = text_is(f->found, "large");
    return *is_large || text_is(f->found, "small") ||
           FAIL(c, f->found, "key '%s': expected 'large' or 'small'", f->key);
}

static bool read_device(converter *c, const value *record, const field *f, uint8_t *device)
{
    uint64_t number;
    if (!required_number(c, record, f, &number)) {
        return false;
    }
    if (number >= GMD_MAX_DEVICES) {
        return FAIL(c, f->found, "key '%s': expected less than %d, found %llu", f->key,
                    GMD_MAX_DEVICES, (unsigned long long)number);
    }
    *device = (uint8_t)number;
    return true;
}

static bool read_segment(converter *c, const value *record, gmd_snapshot_segment *s)
{
    enum {
        DEVICE,
        ADDRESS,
        TOTAL,
        ALLOCATED,
        ACTIVE,
        REQUESTED,
        STREAM,
        TYPE,
        POOL,
        EXPANDABLE,
        BLOCKS
    };
    field f[] = {{"device", NULL},         {"address", NULL},      {"total_size", NULL},
                 {"allocated_size", NULL}, {"active_size", NULL},  {"requested_size", NULL},
                 {"stream", NULL},         {"segment_type", NULL}, {"segment_pool_id", NULL},
                 {"is_expandable", NULL},  {"blocks", NULL}};
    *s = (gmd_snapshot_segment){0};
    bool ok = find_fields(c, record, f, sizeof f / sizeof *f) &&
              read_device(c, record, &f[DEVICE], &s->device) &&
              required_number(c, record, &f[ADDRESS], &s->address) &&
              required_number(c, record, &f[TOTAL], &s->total_size) &&
              required_number(c, record, &f[ALLOCATED], &s->allocated_size) &&
              required_number(c, record, &f[ACTIVE], &s->active_size) &&
              optional_number(c, &f[REQUESTED], s->active_size, &s->requested_size) &&
              required_number(c, record, &f[STREAM], &s->stream) &&
              required_text(c, record, &f[TYPE]) && read_pool_kind(c, &f[TYPE], &s->is_large) &&
              read_pool_id(c, &f[POOL], s->pool_id) &&
              optional_bool(c, &f[EXPANDABLE], &s->is_expandable) && require(c, record, &f[BLOCKS]);
    if (ok && !fits_address_space(s->address, s->total_size)) {
        return FAIL(c, record, "%llu bytes at address %llu: expected a range of 64-bit addresses",
                    (unsigned long long)s->total_size, (unsigned long long)s->address);
    }
    return ok && read_blocks(c, &f[BLOCKS], s);
}

static bool read_segments(converter *c, const field *f)
{
    const gmd_pickle_items *list;
    if (!read_items(c, f, &list) || !count_records(c, f->found, list->count)) {
        return false;
    }
    c->snapshot->segments = calloc(list->count + 1, sizeof *c->snapshot->segments);
    if (!c->snapshot->segments) {
        return fail_memory(c);
    }
    for (size_t i = 0; i < list->count; i++) {
        c->place = AT_SEGMENT;
        c->device_or_segment = i;
        if (!read_segment(c, &list->values[i], &c->snapshot->segments[i])) {
            return false;
        }
        c->snapshot->segment_count++;
    }
    c->place = AT_FILE;
    return true;
}

/* --- the whole --------------------------------------------------------------------------- */

static bool read_conf(converter *c, const field *f)
{
    if (!f->found || f->found->kind == GMD_PICKLE_NONE) {
        return true;
    }
    if (!required_text(c, f->found, f)) {
        return false;
    }
    size_t length = f->found->length;
    if (length > MAX_CONF || gmd_utf8_prefix(f->found->text, length) < length) {
        return FAIL(c, f->found, "key '%s': expected at most %d bytes of UTF-8 text without NUL",
                    f->key, MAX_CONF);
    }
    if (c->snapshot->conf && length == 0) {
        return true;
    }
    free(c->snapshot->conf);
    c->snapshot->conf = gmd_text_copy(f->found->text, length);
    return c->snapshot->conf || fail_memory(c);
}

/* Whether a setting differs from PyTorch's default, which is off for all that are looked at: False,
 * 0, or -1 (max_split_size; also written as the largest number). */
static bool is_number_set(const value *v)
{
    switch (v->kind) {
    case GMD_PICKLE_BOOL:
        return v->number != 0;
    case GMD_PICKLE_NATURAL:
        return v->number != 0 && v->number != UINT64_MAX;
    case GMD_PICKLE_NEGATIVE:
        return v->negative != -1;
    case GMD_PICKLE_FLOAT:
        return v->real != 0;
    default:
        return false;
    }
}

/* roundup_power2_divisions has a number for each power of two. */
static bool is_set(const value *v)
{
    if (v->kind != GMD_PICKLE_DICT) {
        return is_number_set(v);
    }
    for (size_t i = 1; i < v->items->count; i += 2) {
        if (is_number_set(&v->items->values[i])) {
            return true;
        }
    }
    return false;
}

static uint64_t natural(const value *v)
{
    return v->kind == GMD_PICKLE_NATURAL || v->kind == GMD_PICKLE_BOOL ? v->number : 0;
}

/* Keys are the intervals' first sizes in MiB, as text. */
static void read_roundup(gmd_snapshot_settings *settings, const value *v)
{
    for (size_t i = 0; v->kind == GMD_PICKLE_DICT && i + 1 < v->items->count; i += 2) {
        const value *key = &v->items->values[i];
        uint64_t mib = 0;
        for (uint32_t k = 0; key->kind == GMD_PICKLE_STRING && k < key->length && mib < 65536;
             k++) {
            mib = mib * 10 + (uint64_t)(key->text[k] - '0') % 10;
        }
        for (int interval = 0; interval < GMD_ROUNDUP_INTERVALS; interval++) {
            if (mib == (uint64_t)1 << interval) {
                settings->roundup_divisions[interval] = natural(&v->items->values[i + 1]);
            }
        }
    }
}

enum { MAX_SPLIT_SIZE, GC_THRESHOLD, EXPANDABLE, ROUNDUP, FLAGS };

static void read_values(gmd_snapshot_settings *settings, const field flags[FLAGS])
{
    const value *split = flags[MAX_SPLIT_SIZE].found, *threshold = flags[GC_THRESHOLD].found;
    const value *expandable = flags[EXPANDABLE].found, *roundup = flags[ROUNDUP].found;
    settings->max_split_bytes = split && is_number_set(split) ? natural(split) : 0;
    settings->gc_threshold = threshold && threshold->kind == GMD_PICKLE_FLOAT ? threshold->real : 0;
    settings->is_expandable = expandable && natural(expandable) != 0;
    if (roundup) {
        read_roundup(settings, roundup);
    }
}

/* The settings in force, which need not come from the environment's string. */
static bool read_flags(converter *c, const value *settings)
{
    field flags[FLAGS] = {[MAX_SPLIT_SIZE] = {"max_split_size", NULL},
                          [GC_THRESHOLD] = {"garbage_collection_threshold", NULL},
                          [EXPANDABLE] = {"expandable_segments", NULL},
                          [ROUNDUP] = {"roundup_power2_divisions", NULL}};
    if (!find_fields(c, settings, flags, FLAGS)) {
        return false;
    }
    for (int i = 0; i < FLAGS && !c->snapshot->setting; i++) {
        if (flags[i].found && is_set(flags[i].found)) {
            c->snapshot->setting = flags[i].key;
        }
    }
    read_values(&c->snapshot->settings, flags);
    return true;
}

/* The variable has been called PYTORCH_ALLOC_CONF as well since it became device-neutral. */
static bool read_settings(converter *c, const field *f)
{
    field names[] = {{"PYTORCH_CUDA_ALLOC_CONF", NULL}, {"PYTORCH_ALLOC_CONF", NULL}};
    if (!f->found || f->found->kind == GMD_PICKLE_NONE) {
        return true;
    }
    c->place = AT_SETTINGS;
    bool ok = find_fields(c, f->found, names, 2) && read_conf(c, &names[0]) &&
              read_conf(c, &names[1]) && read_flags(c, f->found);
    c->place = AT_FILE;
    return ok;
}

static bool convert(converter *c, const value *root)
{
    enum { SEGMENTS, TRACES, SETTINGS, FIELDS };
    field fields[FIELDS] = {
        {"segments", NULL}, {"device_traces", NULL}, {"allocator_settings", NULL}};
    if (root->kind == GMD_PICKLE_LIST) {
        fields[SEGMENTS].found = root; /* as versions before device traces wrote it */
    } else if (root->kind != GMD_PICKLE_DICT) {
        return FAIL(c, root, "expected a snapshot's dict, found %s",
                    gmd_pickle_kind_name(root->kind));
    } else if (!find_fields(c, root, fields, FIELDS) || !require(c, root, &fields[SEGMENTS])) {
        return false;
    }
    return read_segments(c, &fields[SEGMENTS]) &&
           (!fields[TRACES].found || read_device_traces(c, &fields[TRACES])) &&
           read_settings(c, &fields[SETTINGS]);
}

gmd_status gmd_snapshot_parse(gmd_snapshot *snapshot, const uint8_t *data, size_t size,
                              const char *name, gmd_error *error)
{
    *snapshot = (gmd_snapshot){0};
    gmd_pickle pickle;
    gmd_status status = gmd_pickle_read(&pickle, data, size, name, error);
    if (status != GMD_OK) {
        return status;
    }
    converter c = {.snapshot = snapshot,
                   .name = name,
                   .error = error,
                   .status = GMD_OK,
                   .record_limit = size / LEAST_RECORD_BYTES + SPARE_RECORDS};
    if (!convert(&c, &pickle.root)) {
        gmd_snapshot_free(snapshot);
    }
    gmd_pickle_free(&pickle);
    return c.status;
}

gmd_status gmd_snapshot_read(gmd_snapshot *snapshot, const char *path, gmd_error *error)
{
    uint8_t *data;
    size_t size;
    *snapshot = (gmd_snapshot){0};
    gmd_status status = gmd_file_read(path, &data, &size, error);
    if (status == GMD_OK) {
        status = gmd_snapshot_parse(snapshot, data, size, path, error);
        free(data);
    }
    return status;
}

void gmd_snapshot_free(gmd_snapshot *snapshot)
{
    free(snapshot->events);
    free(snapshot->segments);
    free(snapshot->blocks);
    free(snapshot->conf);
    *snapshot = (gmd_snapshot){0};
}
