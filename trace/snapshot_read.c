/* From a pickle's values to a gmd_snapshot.
 *
 * Names and shapes are those of torch/csrc/cuda/memory_snapshot.cpp and Module.cpp (torch 2.1
 * to 2.13); keys that older versions lack are optional, keys that gmd does not know are ignored. */
#include "gmd_snapshot.h"

#include "pickle.h"
#include "snapshot_taken.h"

#include <stdlib.h>

/* No event, segment or block can be written in fewer bytes; a file in which there seem to be more
 * has the same list in it again and again. */
enum { LEAST_RECORD_BYTES = 8, SPARE_RECORDS = 16 };

static bool convert(snapshot_reader *c, const pickle_value *root)
{
    enum { SEGMENTS, TRACES, SETTINGS, ANNOTATIONS, FIELDS };
    snapshot_field fields[FIELDS] = {{"segments", NULL},
                                     {"device_traces", NULL},
                                     {"allocator_settings", NULL},
                                     {"external_annotations", NULL}};
    if (root->kind == PICKLE_LIST) {
        fields[SEGMENTS].found = root; /* as versions before device traces wrote it */
    } else if (root->kind != PICKLE_DICT) {
        return SNAPSHOT_FAIL(c, root, "expected a snapshot's dict, found %s",
                             pickle_kind_name(root->kind));
    } else if (!snapshot_find(c, root, fields, FIELDS) ||
               !snapshot_require(c, root, &fields[SEGMENTS])) {
        return false;
    }
    return snapshot_read_segments(c, &fields[SEGMENTS]) &&
           (!fields[TRACES].found || snapshot_read_events(c, &fields[TRACES])) &&
           snapshot_read_settings(c, &fields[SETTINGS]) &&
           (!fields[ANNOTATIONS].found || snapshot_read_annotations(c, &fields[ANNOTATIONS]));
}

static bool parse(snapshot_reader *c, const uint8_t *data, size_t size, bool is_taking)
{
    pickle_document pickle;
    const pickle_taker taker = {c, snapshot_take};
    gmd_status status =
        pickle_read_taking(&pickle, data, size, c->name, is_taking ? &taker : NULL, c->error);
    if (status == GMD_OK) {
        if (c->status == GMD_OK) {
            convert(c, &pickle.root);
        }
        pickle_free(&pickle);
    } else if (c->status == GMD_OK) {
        c->status = status;
    }
    return c->status == GMD_OK && snapshot_merge_events(c);
}

gmd_status snapshot_parse_as(gmd_snapshot *snapshot, const uint8_t *data, size_t size,
                             const char *name, bool is_taking, gmd_error *error)
{
    *snapshot = (gmd_snapshot){0};
    snapshot_reader c = {.snapshot = snapshot,
                         .name = name,
                         .error = error,
                         .status = GMD_OK,
                         .record_limit = size / LEAST_RECORD_BYTES + SPARE_RECORDS};
    if (!parse(&c, data, size, is_taking)) {
        gmd_snapshot_free(snapshot);
    }
    free(c.frames);
    gmd_interned_free(&c.long_texts.places);
    free(c.long_texts.numbers);
    snapshot_taken_free(&c.taken);
    return c.status;
}

gmd_status gmd_snapshot_parse(gmd_snapshot *snapshot, const uint8_t *data, size_t size,
                              const char *name, gmd_error *error)
{
    return snapshot_parse_as(snapshot, data, size, name, true, error);
}
