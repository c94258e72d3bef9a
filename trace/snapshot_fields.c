#include "snapshot_fields.h"

#include <stdarg.h>
#include <stdio.h>

/* --- messages ---------------------------------------------------------------------------- */

static void describe_place(const snapshot_reader *c, char *text, size_t size)
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
    case AT_ANNOTATION:
        snprintf(text, size, "annotation %zu: ", c->index);
        break;
    case AT_SETTINGS:
        snprintf(text, size, "allocator_settings: ");
        break;
    }
}

void snapshot_refuse(snapshot_reader *c, const pickle_value *at, const char *format, ...)
{
    char place[80], text[320];
    if (c->is_taking) {
        return;
    }
    describe_place(c, place, sizeof place);
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    c->status = gmd_fail(c->error, GMD_BAD_INPUT, "%s: byte %llu: %s%s", c->name,
                         (unsigned long long)at->at, place, text);
}

bool snapshot_no_memory(snapshot_reader *c)
{
    c->status = gmd_fail(c->error, GMD_NO_MEMORY, "%s: no host memory for the snapshot", c->name);
    return false;
}

/* --- values ------------------------------------------------------------------------------ */

bool snapshot_has_shape(const snapshot_shape *shape, const pickle_value *pairs, size_t count)
{
    if (count != shape->count * 2) {
        return false;
    }
    for (size_t i = 0; i < shape->count; i++) {
        const pickle_value *key = &pairs[i * 2];
        if (key->kind != PICKLE_STRING || key->text != shape->keys[i] ||
            key->length != shape->lengths[i]) {
            return false;
        }
    }
    return count > 0;
}

static void learn(snapshot_shape *shape, const pickle_value *pairs, size_t count,
                  const uint8_t *fields)
{
    shape->count = count / 2;
    for (size_t i = 0; i < shape->count; i++) {
        const pickle_value *key = &pairs[i * 2];
        if (key->kind != PICKLE_STRING || key->length > UINT8_MAX) {
            shape->count = 0;
            return;
        }
        shape->keys[i] = key->text;
        shape->lengths[i] = (uint8_t)key->length;
        shape->fields[i] = fields[i];
    }
}

/* Which of the fields a key is; `next` is tried first. UINT8_MAX: none. */
static uint8_t field_named(const pickle_value *key, const snapshot_field *fields, size_t count,
                           size_t next)
{
    for (size_t tried = 0; tried < count; tried++) {
        size_t at = (next + tried) % count;
        if (snapshot_text_is(key, fields[at].key)) {
            return (uint8_t)at;
        }
    }
    return UINT8_MAX;
}

static void match_shape(const snapshot_dict *dict, snapshot_field *fields)
{
    const snapshot_shape *shape = dict->shape;
    for (size_t i = 0; i < shape->count; i++) {
        if (shape->fields[i] != UINT8_MAX) {
            fields[shape->fields[i]].found = &dict->pairs[i * 2 + 1];
        }
    }
}

void snapshot_match(const snapshot_dict *dict, snapshot_field *fields, size_t field_count)
{
    if (dict->has_shape) {
        match_shape(dict, fields);
        return;
    }
    uint8_t numbers[SNAPSHOT_MAX_KEYS];
    size_t next = 0, keys = dict->count / 2;
    for (size_t i = 0; i < keys; i++) {
        numbers[i] = field_named(&dict->pairs[i * 2], fields, field_count, next);
        if (numbers[i] != UINT8_MAX) {
            fields[numbers[i]].found = &dict->pairs[i * 2 + 1];
            next = numbers[i] + 1u;
        }
    }
    if (dict->shape && keys <= SNAPSHOT_SHAPE_KEYS) {
        learn(dict->shape, dict->pairs, dict->count, numbers);
    }
}

bool snapshot_find(snapshot_reader *c, const pickle_value *record, snapshot_field *fields,
                   size_t count)
{
    if (record->kind != PICKLE_DICT) {
        return SNAPSHOT_FAIL(c, record, "expected a dict, found %s",
                             pickle_kind_name(record->kind));
    }
    const pickle_items *items = record->items;
    if (items->count / 2 > SNAPSHOT_MAX_KEYS) {
        return SNAPSHOT_FAIL(c, record, "expected at most %d keys, found %u", SNAPSHOT_MAX_KEYS,
                             items->count / 2);
    }
    snapshot_match(&(snapshot_dict){.pairs = items->values, .count = items->count}, fields, count);
    return true;
}

bool snapshot_require(snapshot_reader *c, const pickle_value *record, const snapshot_field *f)
{
    return f->found || SNAPSHOT_FAIL(c, record, "expected the key '%s'", f->key);
}

bool snapshot_number(snapshot_reader *c, const snapshot_field *f, uint64_t *number)
{
    if (f->found->kind != PICKLE_NATURAL) {
        bool is_negative = f->found->kind == PICKLE_NEGATIVE;
        return SNAPSHOT_FAIL(c, f->found, "key '%s': expected an integer%s, found %s", f->key,
                             is_negative ? " from 0" : "", pickle_kind_name(f->found->kind));
    }
    *number = f->found->number;
    return true;
}

bool snapshot_required_number(snapshot_reader *c, const pickle_value *record,
                              const snapshot_field *f, uint64_t *number)
{
    *number = 0;
    return snapshot_require(c, record, f) && snapshot_number(c, f, number);
}

bool snapshot_optional_number(snapshot_reader *c, const snapshot_field *f, uint64_t fallback,
                              uint64_t *number)
{
    *number = fallback;
    return !f->found || snapshot_number(c, f, number);
}

const pickle_items *snapshot_items_of(const pickle_value *v)
{
    static const pickle_items none;
    if (v->kind == PICKLE_NOTED && v->number == SNAPSHOT_NOTE_OF_EMPTY) {
        return &none; /* an event's empty list of frames, which the writer also has for others */
    }
    return v->kind == PICKLE_LIST || v->kind == PICKLE_TUPLE ? v->items : NULL;
}

bool snapshot_items(snapshot_reader *c, const snapshot_field *f, const pickle_items **items)
{
    *items = snapshot_items_of(f->found);
    return *items || SNAPSHOT_FAIL(c, f->found, "key '%s': expected a list, found %s", f->key,
                                   pickle_kind_name(f->found->kind));
}

bool snapshot_required_text(snapshot_reader *c, const pickle_value *record, const snapshot_field *f)
{
    if (!snapshot_require(c, record, f)) {
        return false;
    }
    return f->found->kind == PICKLE_STRING ||
           SNAPSHOT_FAIL(c, f->found, "key '%s': expected a string, found %s", f->key,
                         pickle_kind_name(f->found->kind));
}

bool snapshot_optional_bool(snapshot_reader *c, const snapshot_field *f, bool *truth)
{
    *truth = false;
    if (!f->found) {
        return true;
    }
    if (f->found->kind != PICKLE_BOOL) {
        return SNAPSHOT_FAIL(c, f->found, "key '%s': expected a boolean, found %s", f->key,
                             pickle_kind_name(f->found->kind));
    }
    *truth = f->found->number;
    return true;
}

bool snapshot_count(snapshot_reader *c, const pickle_value *list, size_t count)
{
    if (count > c->record_limit - c->record_count) {
        return SNAPSHOT_FAIL(c, list,
                             "more events, segments and blocks than the file has room for: %s",
                             "is the same list in it many times?");
    }
    c->record_count += count;
    return true;
}
