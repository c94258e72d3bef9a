/* From a pickle's values to a gmd_snapshot.
 *
 * Names and shapes are those of torch/csrc/cuda/memory_snapshot.cpp and Module.cpp (torch 2.1
 * to 2.13); keys that older versions lack are optional, keys that gmd does not know are ignored. */
#include "gmd_file.h"
#include "gmd_snapshot.h"

#include "pickle.h"
#include "snapshot_taken.h"

#include <stdlib.h>
#include <string.h>

/* No event, segment or block can be written in fewer bytes; a file in which there seem to be more
 * has the same list in it again and again. */
enum { LEAST_RECORD_BYTES = 8, SPARE_RECORDS = 16 };

static bool begins_with(const uint8_t *data, size_t size, const char *bytes, size_t count)
{
    return size >= count && memcmp(data, bytes, count) == 0;
}

static const char zip_file[] = "is a zip file, as torch.save() writes, and no memory snapshot "
                               "(torch.cuda.memory._dump_snapshot() writes one)",
                  cut_off[] = "is cut off";

/* What a file is that is not one snapshot. */
static const char *foreign_kind(const uint8_t *data, size_t size, bool is_cut_off)
{
    if (size == 0) {
        return "is empty";
    }
    if (begins_with(data, size, "PK\3\4", 4)) {
        return zip_file;
    }
    if (is_cut_off && begins_with(data, size, "\x80", 1)) {
        return cut_off;
    }
    return "is no memory snapshot, or a damaged one (torch.cuda.memory._dump_snapshot() writes "
           "one)";
}

/* Before the parser's word, which has the byte, that which the user needs; of a zip file no byte is
 * wrong. */
static void explain(const snapshot_reader *c, const char *kind)
{
    const size_t length = strlen(c->name);
    if (c->error && c->status == GMD_BAD_INPUT) {
        const gmd_error cause = *c->error;
        bool has_name = strncmp(cause.text, c->name, length) == 0;
        gmd_fail(c->error, c->status, "%s: %s%s%s", c->name, kind,
                 has_name && kind != zip_file ? cause.text + length : "",
                 kind == cut_off ? GMD_CUT_OFF_ADVICE : "");
    }
}

enum { SEGMENTS, TRACES, SETTINGS, ANNOTATIONS, FIELDS };

/* What makes a pickle a snapshot. */
static bool find_parts(snapshot_reader *c, const pickle_value *root, snapshot_field *parts)
{
    if (root->kind == PICKLE_LIST) {
        parts[SEGMENTS].found = root; /* as versions before device traces wrote it */
        return true;
    }
    if (root->kind != PICKLE_DICT) {
        return SNAPSHOT_FAIL(c, root, "expected a snapshot's dict, found %s",
                             pickle_kind_name(root->kind));
    }
    return snapshot_find(c, root, parts, FIELDS) && snapshot_require(c, root, &parts[SEGMENTS]);
}

static bool convert(snapshot_reader *c, const snapshot_field *parts)
{
    return snapshot_read_segments(c, &parts[SEGMENTS]) &&
           (!parts[TRACES].found || snapshot_read_events(c, &parts[TRACES])) &&
           snapshot_read_settings(c, &parts[SETTINGS]) &&
           (!parts[ANNOTATIONS].found || snapshot_read_annotations(c, &parts[ANNOTATIONS]));
}

static bool parse(snapshot_reader *c, const uint8_t *data, size_t size, bool is_taking)
{
    pickle_document pickle;
    snapshot_field parts[FIELDS] = {{"segments", NULL},
                                    {"device_traces", NULL},
                                    {"allocator_settings", NULL},
                                    {"external_annotations", NULL}};
    const pickle_taker taker = {c, snapshot_take};
    gmd_status status =
        pickle_read_taking(&pickle, data, size, c->name, is_taking ? &taker : NULL, c->error);
    if (status == GMD_OK) {
        if (c->status == GMD_OK && find_parts(c, &pickle.root, parts)) {
            convert(c, parts);
        } else {
            explain(c, foreign_kind(data, size, false));
        }
        pickle_free(&pickle);
    } else if (c->status == GMD_OK) {
        c->status = status;
        explain(c, foreign_kind(data, size, pickle.is_cut_off));
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
