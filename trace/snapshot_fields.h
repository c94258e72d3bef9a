/* snapshot_fields.h - values of a snapshot's pickle, taken by their keys, with a message and a
 * place for each that is not what it should be: what the readers of events, segments and settings
 * share.
 *
 * Functions give false after a failure, which is then in the reader. */
#ifndef GMD_SNAPSHOT_FIELDS_H
#define GMD_SNAPSHOT_FIELDS_H

#include "gmd_snapshot.h"
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

typedef struct snapshot_reader {
    gmd_snapshot *snapshot;
    const char *name;
    gmd_error *error;
    gmd_status status;
    size_t record_limit, record_count;
    size_t event_capacity, block_capacity;
    uint32_t *frames; /* of one stack */
    size_t frame_capacity;
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

/* Looks the fields up in `record`. Writers keep the order of keys, so the search goes on from the
 * field after the last one that was found. */
bool snapshot_find(snapshot_reader *c, const pickle_value *record, snapshot_field *fields,
                   size_t count);
bool snapshot_require(snapshot_reader *c, const pickle_value *record, const snapshot_field *f);
/* The field was found. */
bool snapshot_number(snapshot_reader *c, const snapshot_field *f, uint64_t *number);
bool snapshot_items(snapshot_reader *c, const snapshot_field *f, const pickle_items **items);
bool snapshot_required_number(snapshot_reader *c, const pickle_value *record,
                              const snapshot_field *f, uint64_t *number);
bool snapshot_optional_number(snapshot_reader *c, const snapshot_field *f, uint64_t fallback,
                              uint64_t *number);
bool snapshot_required_text(snapshot_reader *c, const pickle_value *record,
                            const snapshot_field *f);
bool snapshot_optional_bool(snapshot_reader *c, const snapshot_field *f, bool *truth);

/* Counts records against what the file can hold, before memory is taken for them. */
bool snapshot_count(snapshot_reader *c, const pickle_value *list, size_t count);

/* The number of the origin; 0 where there are no such keys. */
bool snapshot_read_origin(snapshot_reader *c, const snapshot_origin_fields *f, uint32_t *origin);

/* "device_traces", "segments", "allocator_settings", "external_annotations" of the whole. */
bool snapshot_read_events(snapshot_reader *c, const snapshot_field *f);
bool snapshot_read_segments(snapshot_reader *c, const snapshot_field *f);
bool snapshot_read_settings(snapshot_reader *c, const snapshot_field *f);
bool snapshot_read_annotations(snapshot_reader *c, const snapshot_field *f);

#endif
