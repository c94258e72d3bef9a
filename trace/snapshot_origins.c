/* snapshot_origins.c - frames, user_metadata and compile_context of events, segments and blocks;
 * external_annotations.
 *
 * Writers share one list of frames among all events of a traceback, and one dict among all lists
 * that a frame is in. A list or dict is therefore converted once and remembers its number. */
#include "snapshot_fields.h"

#include "gmd_grow.h"

#include <stdlib.h>
#include <string.h>

/* Tracebacks are as deep as Python's limit of recursion allows; C++ frames come on top. */
enum { MAX_FRAMES = 1 << 16 };

/* --- texts --------------------------------------------------------------------------------- */

/* Texts up to here are looked at each time: a reference to one takes two bytes. */
enum { SHORT_TEXT = 64 };

static bool add_new_text(snapshot_reader *c, const pickle_value *v, uint32_t *text)
{
    return gmd_origins_add_name(&c->snapshot->origins, v->text, v->length, text) ||
           snapshot_no_memory(c);
}

static bool add_long_text(snapshot_reader *c, const pickle_value *v, uint32_t *text)
{
    snapshot_texts *seen = &c->long_texts;
    uint32_t place, count = seen->places.count;
    if (!gmd_interned_add(&seen->places, &v->text, sizeof v->text, &place) ||
        !GMD_GROW(&seen->numbers, &seen->capacity, seen->places.count)) {
        return snapshot_no_memory(c);
    }
    if (place == count && !add_new_text(c, v, &seen->numbers[place])) {
        return false;
    }
    *text = seen->numbers[place];
    return true;
}

/* What is not a text counts as none: user_metadata is whatever the program passed. */
static bool add_text(snapshot_reader *c, const snapshot_field *f, uint32_t *text)
{
    const pickle_value *v = f->found;
    *text = 0;
    if (!v || v->kind != PICKLE_STRING || v->length == 0) {
        return true;
    }
    return v->length > SHORT_TEXT ? add_long_text(c, v, text) : add_new_text(c, v, text);
}

/* --- frames -------------------------------------------------------------------------------- */

enum { NAME, FILE_NAME, LINE, FRAME_FIELDS };

static const snapshot_field frame_fields[FRAME_FIELDS] = {
    {"name", NULL}, {"filename", NULL}, {"line", NULL}};

static bool add_frame(snapshot_reader *c, const snapshot_field fields[FRAME_FIELDS],
                      uint32_t *number)
{
    gmd_frame frame = {0};
    const pickle_value *line = fields[LINE].found;
    if (line && line->kind == PICKLE_NATURAL && line->number <= UINT32_MAX) {
        frame.line = (uint32_t)line->number;
    }
    return add_text(c, &fields[NAME], &frame.function) &&
           add_text(c, &fields[FILE_NAME], &frame.file) &&
           (gmd_origins_add_frame(&c->snapshot->origins, &frame, number) || snapshot_no_memory(c));
}

bool snapshot_take_frame(snapshot_reader *c, const snapshot_dict *dict, uint64_t *index)
{
    snapshot_field fields[FRAME_FIELDS];
    uint32_t number;
    memcpy(fields, frame_fields, sizeof fields);
    snapshot_match(dict, fields, FRAME_FIELDS);
    if (!fields[NAME].found || !fields[LINE].found || !add_frame(c, fields, &number)) {
        return false;
    }
    *index = number;
    return true;
}

static bool read_frame(snapshot_reader *c, const pickle_value *v, uint32_t *number)
{
    uint64_t index;
    snapshot_field fields[FRAME_FIELDS];
    if (snapshot_is_taken(v, SNAPSHOT_FRAME, &index)) {
        *number = (uint32_t)index;
        return true;
    }
    if (v->kind == PICKLE_DICT && v->items->note) {
        *number = v->items->note - 1;
        return true;
    }
    memcpy(fields, frame_fields, sizeof fields);
    if (!snapshot_find(c, v, fields, FRAME_FIELDS) || !add_frame(c, fields, number)) {
        return false;
    }
    v->items->note = *number + 1;
    return true;
}

/* --- stacks -------------------------------------------------------------------------------- */

/* The note of a list that could not be read, so that it is not tried for each event. */
#define NOTE_OF_WRONG UINT32_MAX

static bool read_frames(snapshot_reader *c, const snapshot_field *f, const pickle_items *list)
{
    if (list->count > MAX_FRAMES) {
        return SNAPSHOT_FAIL(c, f->found, "key '%s': expected at most %d frames, found %u", f->key,
                             MAX_FRAMES, list->count);
    }
    if (!GMD_GROW(&c->frames, &c->frame_capacity, list->count)) {
        return snapshot_no_memory(c);
    }
    for (uint32_t i = 0; i < list->count; i++) {
        pickle_value v = pickle_item(list, i, f->found->at);
        if (!read_frame(c, &v, &c->frames[i])) {
            return false;
        }
    }
    return true;
}

static bool read_list(snapshot_reader *c, const snapshot_field *f, pickle_items *list,
                      uint32_t *stack)
{
    bool is_wrong = list->note == NOTE_OF_WRONG;
    if (list->note && !is_wrong) {
        *stack = list->note - 1;
        return true;
    }
    if ((is_wrong && c->is_taking) || !read_frames(c, f, list)) {
        list->note = NOTE_OF_WRONG;
        return false;
    }
    if (!gmd_origins_add_stack(&c->snapshot->origins, c->frames, list->count, stack)) {
        return snapshot_no_memory(c);
    }
    list->note = *stack + 1;
    return true;
}

static bool read_stack(snapshot_reader *c, const snapshot_field *f, uint32_t *stack)
{
    const pickle_value *v = f->found;
    *stack = 0;
    if (!v || v->kind == PICKLE_NONE) {
        return true;
    }
    if (v->kind == PICKLE_NOTED) {
        *stack = (uint32_t)v->number - 1;
        return true;
    }
    if (v->kind != PICKLE_LIST && v->kind != PICKLE_TUPLE) {
        return SNAPSHOT_FAIL(c, v, "key '%s': expected a list, found %s", f->key,
                             pickle_kind_name(v->kind));
    }
    return read_list(c, f, v->items, stack);
}

/* --- origins ------------------------------------------------------------------------------- */

static bool add_origin(snapshot_reader *c, const gmd_origin *o, uint32_t *number)
{
    const gmd_origin *last = &c->last_origin;
    if (o->stack != last->stack || o->metadata != last->metadata ||
        o->compile_context != last->compile_context) {
        if (!gmd_origins_add(&c->snapshot->origins, o, &c->last_origin_number)) {
            return snapshot_no_memory(c);
        }
        c->last_origin = *o;
    }
    *number = c->last_origin_number;
    return true;
}

bool snapshot_read_origin(snapshot_reader *c, const snapshot_origin_fields *f, uint32_t *origin)
{
    gmd_origin o = {0};
    const pickle_value *compiled = f->compile_context.found;
    return add_text(c, &f->metadata, &o.metadata) &&
           (!compiled || snapshot_text_is(compiled, "N/A") ||
            add_text(c, &f->compile_context, &o.compile_context)) &&
           read_stack(c, &f->frames, &o.stack) && add_origin(c, &o, origin);
}

/* --- annotations --------------------------------------------------------------------------- */

static gmd_annotation_stage stage_of(const snapshot_field *f)
{
    if (snapshot_text_is(f->found, "START")) {
        return GMD_ANNOTATION_START;
    }
    return snapshot_text_is(f->found, "END") ? GMD_ANNOTATION_END : GMD_ANNOTATION_OTHER;
}

enum { STAGE, ANNOTATION_NAME, DEVICE, TIME, ANNOTATION_FIELDS };

static const snapshot_field annotation_fields[ANNOTATION_FIELDS] = {
    {"stage", NULL}, {"name", NULL}, {"device", NULL}, {"time_us", NULL}};

static bool read_annotation(snapshot_reader *c, const pickle_value *record,
                            const snapshot_field fields[ANNOTATION_FIELDS], gmd_annotation *a)
{
    uint64_t device;
    *a = (gmd_annotation){0};
    if (!snapshot_required_text(c, record, &fields[STAGE]) ||
        !snapshot_required_text(c, record, &fields[ANNOTATION_NAME]) ||
        !snapshot_optional_number(c, &fields[DEVICE], 0, &device) ||
        !snapshot_optional_number(c, &fields[TIME], 0, &a->time_us)) {
        return false;
    }
    if (device >= GMD_MAX_DEVICES) {
        return SNAPSHOT_FAIL(c, fields[DEVICE].found, "key 'device': expected less than %d",
                             GMD_MAX_DEVICES);
    }
    a->stage = (uint8_t)stage_of(&fields[STAGE]);
    a->device = (uint8_t)device;
    return add_text(c, &fields[ANNOTATION_NAME], &a->name);
}

bool snapshot_take_annotation(snapshot_reader *c, const snapshot_dict *dict, uint64_t *index)
{
    snapshot_field fields[ANNOTATION_FIELDS];
    gmd_annotation a;
    memcpy(fields, annotation_fields, sizeof fields);
    snapshot_match(dict, fields, ANNOTATION_FIELDS);
    if (!fields[TIME].found || !read_annotation(c, dict->pairs, fields, &a)) {
        return false;
    }
    *index = c->taken.annotation_count;
    if (!GMD_GROW(&c->taken.annotations, &c->taken.annotation_capacity, *index + 1)) {
        return snapshot_no_memory(c);
    }
    c->taken.annotations[c->taken.annotation_count++] = a;
    return true;
}

static bool find_annotation(snapshot_reader *c, const pickle_value *v, gmd_annotation *a)
{
    uint64_t index;
    snapshot_field fields[ANNOTATION_FIELDS];
    if (snapshot_is_taken(v, SNAPSHOT_ANNOTATION, &index)) {
        *a = c->taken.annotations[index];
        return true;
    }
    memcpy(fields, annotation_fields, sizeof fields);
    return snapshot_find(c, v, fields, ANNOTATION_FIELDS) && read_annotation(c, v, fields, a);
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
    s->annotations = calloc((size_t)list->count + 1, sizeof *s->annotations);
    if (!s->annotations) {
        return snapshot_no_memory(c);
    }
    c->place = AT_ANNOTATION;
    for (c->index = 0; c->index < list->count; c->index++) {
        pickle_value v = pickle_item(list, (uint32_t)c->index, f->found->at);
        if (!find_annotation(c, &v, &s->annotations[c->index])) {
            return false;
        }
        s->annotation_count++;
    }
    c->place = AT_FILE;
    return true;
}
