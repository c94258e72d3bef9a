/* snapshot_fields.h - values of a snapshot's pickle, taken by their keys, with a message and a
 * place for each that is not what it should be: what the readers of events, segments and settings
 * share.
 *
 * Functions give false after a failure, which is then in the reader. */
#ifndef GMD_SNAPSHOT_FIELDS_H
#define GMD_SNAPSHOT_FIELDS_H

#include "gmd_snapshot.h"
#include "pickle.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

typedef enum gmd_snapshot_place {
    GMD_AT_FILE,
    GMD_AT_EVENT,
    GMD_AT_SEGMENT,
    GMD_AT_BLOCK,
    GMD_AT_SETTINGS
} gmd_snapshot_place;

typedef struct gmd_snapshot_reader {
    gmd_snapshot *snapshot;
    const char *name;
    gmd_error *error;
    gmd_status status;
    size_t record_limit, record_count;
    size_t event_capacity, block_capacity;
    gmd_snapshot_place place; /* what is being read, for messages */
    size_t index, device_or_segment;
} gmd_snapshot_reader;

/* A key of a record, and where the value under it was found. */
typedef struct gmd_snapshot_field {
    const char *key;
    const gmd_pickle_value *found; /* NULL: the record has no such key */
} gmd_snapshot_field;

__attribute__((format(printf, 3, 4))) void
gmd_snapshot_refuse(gmd_snapshot_reader *c, const gmd_pickle_value *at, const char *format, ...);
#define GMD_SNAPSHOT_FAIL(...) (gmd_snapshot_refuse(__VA_ARGS__), false)

bool gmd_snapshot_no_memory(gmd_snapshot_reader *c);

static inline bool gmd_snapshot_text_is(const gmd_pickle_value *v, const char *text)
{
    return v->kind == GMD_PICKLE_STRING && v->length == strlen(text) &&
           memcmp(v->text, text, v->length) == 0;
}

static inline bool gmd_snapshot_fits(uint64_t address, uint64_t size) /* the address space */
{
    return size <= UINT64_MAX - address;
}

/* Looks the fields up in `record`. Writers keep the order of keys, so the search goes on from the
 * field after the last one that was found. */
bool gmd_snapshot_find(gmd_snapshot_reader *c, const gmd_pickle_value *record,
                       gmd_snapshot_field *fields, size_t count);
bool gmd_snapshot_require(gmd_snapshot_reader *c, const gmd_pickle_value *record,
                          const gmd_snapshot_field *f);
/* Of a field that was found. */
bool gmd_snapshot_number(gmd_snapshot_reader *c, const gmd_snapshot_field *f, uint64_t *number);
bool gmd_snapshot_items(gmd_snapshot_reader *c, const gmd_snapshot_field *f,
                        const gmd_pickle_items **items);
bool gmd_snapshot_required_number(gmd_snapshot_reader *c, const gmd_pickle_value *record,
                                  const gmd_snapshot_field *f, uint64_t *number);
bool gmd_snapshot_optional_number(gmd_snapshot_reader *c, const gmd_snapshot_field *f,
                                  uint64_t fallback, uint64_t *number);
bool gmd_snapshot_required_text(gmd_snapshot_reader *c, const gmd_pickle_value *record,
                                const gmd_snapshot_field *f);
bool gmd_snapshot_optional_bool(gmd_snapshot_reader *c, const gmd_snapshot_field *f, bool *truth);

/* Counts records against what the file can hold, before memory is taken for them. */
bool gmd_snapshot_count(gmd_snapshot_reader *c, const gmd_pickle_value *list, size_t count);

/* "device_traces", "segments", "allocator_settings" of the whole. */
bool gmd_snapshot_read_events(gmd_snapshot_reader *c, const gmd_snapshot_field *f);
bool gmd_snapshot_read_segments(gmd_snapshot_reader *c, const gmd_snapshot_field *f);
bool gmd_snapshot_read_settings(gmd_snapshot_reader *c, const gmd_snapshot_field *f);

#endif
