/* snapshot_origins.c - frames, user_metadata and compile_context of events, segments and blocks;
 * external_annotations.
 *
 * Writers share one list of frames among all events of a traceback, and one dict among all lists
 * that a frame is in. A list or dict is therefore converted once and remembers its number. */
#include "snapshot_fields.h"

#include "gmd_grow.h"
#include "gmd_trace.h"

#include <stdlib.h>

/* Tracebacks are as deep as Python's limit of recursion allows; C++ frames come on top. */
enum { MAX_FRAMES = 1 << 16 };

/* --- texts --------------------------------------------------------------------------------- */

/* What is not a text counts as none: user_metadata is whatever the program passed. */
static bool add_text(snapshot_reader *c, const snapshot_field *f, uint32_t *text)
{
    *text = 0;
    return !f->found || f->found->kind != PICKLE_STRING ||
           gmd_origins_add_text(&c->snapshot->origins, f->found->text, f->found->length, text) ||
           snapshot_no_memory(c);
}

/* --- stacks -------------------------------------------------------------------------------- */

static bool read_frame(snapshot_reader *c, const pickle_value *record, uint32_t *number)
{
    enum { NAME, FILE_NAME, LINE, FIELDS };
    snapshot_field fields[FIELDS] = {{"name", NULL}, {"filename", NULL}, {"line", NULL}};
    gmd_frame frame = {0};
    if (record->kind == PICKLE_DICT && record->items->note) {
        *number = record->items->note - 1;
        return true;
    }
    if (!snapshot_find(c, record, fields, FIELDS) || !add_text(c, &fields[NAME], &frame.function) ||
        !add_text(c, &fields[FILE_NAME], &frame.file)) {
        return false;
    }
    const pickle_value *line = fields[LINE].found;
    if (line && line->kind == PICKLE_NATURAL && line->number <= UINT32_MAX) {
        frame.line = (uint32_t)line->number;
    }
    if (!gmd_origins_add_frame(&c->snapshot->origins, &frame, number)) {
        return snapshot_no_memory(c);
    }
    record->items->note = *number + 1;
    return true;
}

static bool read_frames(snapshot_reader *c, const pickle_items *list, uint32_t *numbers)
{
    for (size_t i = 0; i < list->count; i++) {
        if (!read_frame(c, &list->values[i], &numbers[i])) {
            return false;
        }
    }
    return true;
}

static bool read_stack(snapshot_reader *c, const snapshot_field *f, uint32_t *stack)
{
    *stack = 0;
    if (!f->found || f->found->kind == PICKLE_NONE) {
        return true;
    }
    const pickle_items *list;
    if (!snapshot_items(c, f, &list)) {
        return false;
    }
    if (list->note) {
        *stack = list->note - 1;
        return true;
    }
    if (list->count > MAX_FRAMES) {
        return SNAPSHOT_FAIL(c, f->found, "key '%s': expected at most %d frames, found %zu", f->key,
                             MAX_FRAMES, list->count);
    }
    if (!GMD_GROW(&c->frames, &c->frame_capacity, list->count)) {
        return snapshot_no_memory(c);
    }
    if (!read_frames(c, list, c->frames)) {
        return false;
    }
    if (!gmd_origins_add_stack(&c->snapshot->origins, c->frames, list->count, stack)) {
        return snapshot_no_memory(c);
    }
    f->found->items->note = *stack + 1;
    return true;
}

bool snapshot_read_origin(snapshot_reader *c, const snapshot_origin_fields *f, uint32_t *origin)
{
    gmd_origin o = {0};
    *origin = 0;
    if (!read_stack(c, &f->frames, &o.stack) || !add_text(c, &f->metadata, &o.metadata)) {
        return false;
    }
    const pickle_value *compiled = f->compile_context.found;
    if (compiled && !snapshot_text_is(compiled, "N/A") &&
        !add_text(c, &f->compile_context, &o.compile_context)) {
        return false;
    }
    return (!o.stack && !o.metadata && !o.compile_context) ||
           gmd_origins_add(&c->snapshot->origins, &o, origin) || snapshot_no_memory(c);
}

/* --- annotations --------------------------------------------------------------------------- */

static gmd_annotation_stage stage_of(const snapshot_field *f)
{
    if (snapshot_text_is(f->found, "START")) {
        return GMD_ANNOTATION_START;
    }
    return snapshot_text_is(f->found, "END") ? GMD_ANNOTATION_END : GMD_ANNOTATION_OTHER;
}

static bool read_annotation(snapshot_reader *c, const pickle_value *record, gmd_annotation *a)
{
    enum { STAGE, NAME, DEVICE, TIME, FIELDS };
    snapshot_field fields[FIELDS] = {
        {"stage", NULL}, {"name", NULL}, {"device", NULL}, {"time_us", NULL}};
    uint64_t device;
    *a = (gmd_annotation){0};
    if (!snapshot_find(c, record, fields, FIELDS) ||
        !snapshot_required_text(c, record, &fields[STAGE]) ||
        !snapshot_required_text(c, record, &fields[NAME]) ||
        !snapshot_optional_number(c, &fields[DEVICE], 0, &device) ||
        !snapshot_optional_number(c, &fields[TIME], 0, &a->time_us) ||
        !add_text(c, &fields[NAME], &a->name)) {
        return false;
    }
    if (device >= GMD_MAX_DEVICES) {
        return SNAPSHOT_FAIL(c, fields[DEVICE].found, "key 'device': expected less than %d",
                             GMD_MAX_DEVICES);
    }
    a->stage = (uint8_t)stage_of(&fields[STAGE]);
    a->device = (uint8_t)device;
    return true;
}

bool snapshot_read_annotations(snapshot_reader *c, const snapshot_field *f)
{
    gmd_snapshot *s = c->snapshot;
    const pickle_items *list;
    if (f->found->kind == PICKLE_NONE) {
        return true;
    }
    if (!snapshot_items(c, f, &list) || !snapshot_count(c, f->found, list->count)) {
        return false;
    }
    s->annotations = calloc(list->count + 1, sizeof *s->annotations);
    if (!s->annotations) {
        return snapshot_no_memory(c);
    }
    c->place = AT_ANNOTATION;
    for (c->index = 0; c->index < list->count; c->index++) {
        if (!read_annotation(c, &list->values[c->index], &s->annotations[c->index])) {
            return false;
        }
        s->annotation_count++;
    }
    c->place = AT_FILE;
    return true;
}
