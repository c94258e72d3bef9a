/* snapshot_fields.h - values of a snapshot's pickle, taken by their keys, with a message and a
 * place for each that is not what it should be: what the readers of events, segments and settings
 * share.
 *
 * Functions give false after a failure, which is then in the reader. */
#ifndef GMD_SNAPSHOT_FIELDS_H
#define GMD_SNAPSHOT_FIELDS_H

#include "gmd_snapshot.h"
#include "gmd_trace.h"
#include "pickle_values.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

typedef enum snapshot_place {
    AT_FILE,
    AT_EVENT,
    AT_SEGMENT,
    AT_BLOCK,
    AT_SETTINGS,
    AT_ANNOTATION
} snapshot_place;

/* Records that are taken while the pickle is read (snapshot_taken.h). */
typedef enum snapshot_type {
    SNAPSHOT_EVENT,
    SNAPSHOT_BLOCK,
    SNAPSHOT_ANNOTATION,
    SNAPSHOT_FRAME,
    SNAPSHOT_TYPES
} snapshot_type;

/* Records have about ten keys. A bound keeps the work linear where many records are one shared
 * dict. */
enum { SNAPSHOT_MAX_KEYS = 64, SNAPSHOT_SHAPE_KEYS = 16 };

/* The keys of a dict, and which field each of them is. A writer that numbers its values refers to
 * the same strings in the same order again and again, so that their places are enough to know it.
 */
typedef struct snapshot_shape {
    const char *keys[SNAPSHOT_SHAPE_KEYS];
    uint8_t lengths[SNAPSHOT_SHAPE_KEYS];
    uint8_t fields[SNAPSHOT_SHAPE_KEYS]; /* UINT8_MAX: none */
    size_t count;                        /* of keys; 0: nothing is known */
} snapshot_shape;

/* A dict that may be taken. */
typedef struct snapshot_dict {
    uint64_t at;               /* byte of the file */
    const pickle_value *pairs; /* key, value, key, value... */
    size_t count;              /* of pairs' values */
    snapshot_shape *shape;     /* of the last dict of its type; NULL: it is of none */
    bool has_shape;            /* the dict has it, too */
} snapshot_dict;

typedef struct taken_block {
    gmd_snapshot_block block;
    uint64_t at; /* byte of its dict */
} taken_block;

/* Events are in gmd_snapshot.events from the start, frames in its origins. */
typedef struct snapshot_taken {
    taken_block *blocks;
    size_t block_count, block_capacity;
    gmd_annotation *annotations;
    size_t annotation_count, annotation_capacity;
    snapshot_shape shapes[SNAPSHOT_TYPES]; /* of the last dict of each type */
} snapshot_taken;

/* Events of one device, one after the other in gmd_snapshot.events. */
typedef struct event_run {
    size_t first, count;
} event_run;

/* Texts by where they are in the file, so that one that is referred to again and again is looked at
 * once. */
typedef struct snapshot_texts {
    gmd_interned places;
    uint32_t *numbers; /* in gmd_snapshot.origins, of each place */
    size_t capacity;
} snapshot_texts;

typedef struct snapshot_reader {
    gmd_snapshot *snapshot;
    const char *name;
    gmd_error *error;
    gmd_status status;
    size_t record_limit, record_count;
    size_t event_capacity, block_capacity;
    event_run runs[GMD_MAX_DEVICES];
    uint32_t *frames; /* of one stack */
    size_t frame_capacity;
    snapshot_texts long_texts;
    gmd_origin last_origin; /* what was added last, and its number */
    uint32_t last_origin_number;
    bool is_taking; /* what is not right stays a dict, whose place is known when it is read */
    snapshot_taken taken;
    snapshot_place place; /* what is being read, for messages */
    size_t index, device_or_segment;
} snapshot_reader;

/* A key of a record, and where the value under it was found. */
typedef struct snapshot_field {
    const char *key;
    const pickle_value *found; /* NULL: the record has no such key */
} snapshot_field;

/* The keys that say where a record comes from. */
typedef struct snapshot_origin_fields {
    snapshot_field frames, metadata, compile_context;
} snapshot_origin_fields;

__attribute__((format(printf, 3, 4))) void
snapshot_refuse(snapshot_reader *c, const pickle_value *at, const char *format, ...);
#define SNAPSHOT_FAIL(...) (snapshot_refuse(__VA_ARGS__), false)

bool snapshot_no_memory(snapshot_reader *c);

static inline bool snapshot_text_is(const pickle_value *v, const char *text)
{
    return v->kind == PICKLE_STRING && v->length == strlen(text) &&
           memcmp(v->text, text, v->length) == 0;
}

static inline bool snapshot_fits(uint64_t address, uint64_t size) /* the address space */
{
    return size <= UINT64_MAX - address;
}

/* A record's number is its index among those of its type, below the type. */
enum { SNAPSHOT_TYPE_SHIFT = 56 };

static inline uint64_t snapshot_record(snapshot_type type, uint64_t index)
{
    return (uint64_t)type << SNAPSHOT_TYPE_SHIFT | index;
}

/* Whether a value is a record of this type, and its index then. */
static inline bool snapshot_is_taken(const pickle_value *v, snapshot_type type, uint64_t *index)
{
    *index = v->number & ~(UINT64_MAX << SNAPSHOT_TYPE_SHIFT);
    return v->kind == PICKLE_RECORD && v->number >> SNAPSHOT_TYPE_SHIFT == type;
}

/* Looks the fields up in `record`. Writers keep the order of keys, so the search goes on from the
 * field after the last one that was found. */
bool snapshot_find(snapshot_reader *c, const pickle_value *record, snapshot_field *fields,
                   size_t count);
/* The same for the up to SNAPSHOT_MAX_KEYS entries of a dict that may be taken; its shape is known
 * from then on. */
void snapshot_match(const snapshot_dict *dict, snapshot_field *fields, size_t field_count);
bool snapshot_has_shape(const snapshot_shape *shape, const pickle_value *pairs, size_t count);
bool snapshot_require(snapshot_reader *c, const pickle_value *record, const snapshot_field *f);
/* The field was found. */
bool snapshot_number(snapshot_reader *c, const snapshot_field *f, uint64_t *number);
bool snapshot_items(snapshot_reader *c, const snapshot_field *f, const pickle_items **items);
/* NULL: it is no list or tuple. Their values are to be had from pickle_item(). */
const pickle_items *snapshot_items_of(const pickle_value *v);
bool snapshot_required_number(snapshot_reader *c, const pickle_value *record,
                              const snapshot_field *f, uint64_t *number);
bool snapshot_optional_number(snapshot_reader *c, const snapshot_field *f, uint64_t fallback,
                              uint64_t *number);
bool snapshot_required_text(snapshot_reader *c, const pickle_value *record,
                            const snapshot_field *f);
bool snapshot_optional_bool(snapshot_reader *c, const snapshot_field *f, bool *truth);

/* Counts records against what the file can hold, before memory is taken for them. */
bool snapshot_count(snapshot_reader *c, const pickle_value *list, size_t count);

/* Notes of lists of frames are 1 more than the number of their stack; the empty one has number 0.
 */
enum { SNAPSHOT_NOTE_OF_EMPTY = 1 };

/* The number of the origin; 0 where there are no such keys. */
bool snapshot_read_origin(snapshot_reader *c, const snapshot_origin_fields *f, uint32_t *origin);

/* Takes a dict while the pickle is read. False: it is not right, or there is no host memory, which
 * is then in the reader. */
bool snapshot_take_event(snapshot_reader *c, const snapshot_dict *dict, uint64_t *index);
bool snapshot_take_block(snapshot_reader *c, const snapshot_dict *dict, uint64_t *index);
bool snapshot_take_annotation(snapshot_reader *c, const snapshot_dict *dict, uint64_t *index);
bool snapshot_take_frame(snapshot_reader *c, const snapshot_dict *dict, uint64_t *index);

/* "device_traces", "segments", "allocator_settings", "external_annotations" of the whole. */
bool snapshot_read_events(snapshot_reader *c, const snapshot_field *f);
bool snapshot_read_segments(snapshot_reader *c, const snapshot_field *f);
bool snapshot_read_settings(snapshot_reader *c, const snapshot_field *f);
bool snapshot_read_annotations(snapshot_reader *c, const snapshot_field *f);

/* Brings the events that were read into their order. */
bool snapshot_merge_events(snapshot_reader *c);

#endif
