#include "snapshot_fields.h"

#include <stdarg.h>
#include <stdio.h>

/* Records have about ten keys. A bound keeps the work linear where many records are one shared
 * dict. */
enum { MAX_KEYS = 64 };

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
    describe_place(c, place, sizeof place);
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    c->status =
        gmd_fail(c->error, GMD_BAD_INPUT, "%s: byte %u: %s%s", c->name, at->at, place, text);
}

bool snapshot_no_memory(snapshot_reader *c)
{
    c->status = gmd_fail(c->error, GMD_NO_MEMORY, "%s: no host memory for the snapshot", c->name);
    return false;
}

/* --- values ------------------------------------------------------------------------------ */

bool snapshot_find(snapshot_reader *c, const pickle_value *record, snapshot_field *fields,
                   size_t count)
{
    if (record->kind != PICKLE_DICT) {
        return SNAPSHOT_FAIL(c, record, "expected a dict, found %s",
                             pickle_kind_name(record->kind));
    }
    const pickle_items *items = record->items;
    if (items->count / 2 > MAX_KEYS) {
        return SNAPSHOT_FAIL(c, record, "expected at most %d keys, found %zu", MAX_KEYS,
                             items->count / 2);
    }
    size_t next = 0;
    for (size_t i = 0; i < items->count; i += 2) {
        for (size_t tried = 0; tried < count; tried++) {
            size_t at = (next + tried) % count;
            if (snapshot_text_is(&items->values[i], fields[at].key)) {
                fields[at].found = &items->values[i + 1];
                next = at + 1;
                break;
            }
        }
    }
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

bool snapshot_items(snapshot_reader *c, const snapshot_field *f, const pickle_items **items)
{
    *items = NULL;
    if (f->found->kind != PICKLE_LIST && f->found->kind != PICKLE_TUPLE) {
        return SNAPSHOT_FAIL(c, f->found, "key '%s': expected a list, found %s", f->key,
                             pickle_kind_name(f->found->kind));
    }
    *items = f->found->items;
    return true;
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
