/* snapshot_segments.c - segments and the blocks in them. */
#include "snapshot_fields.h"

#include "gmd_grow.h"
#include "quote.h"

#include <stdlib.h>
#include <string.h>

/* --- blocks ------------------------------------------------------------------------------ */

static bool read_state(snapshot_reader *c, const snapshot_field *f, uint8_t *state)
{
    static const struct {
        const char *name;
        gmd_block_state state;
    } states[] = {{"inactive", GMD_BLOCK_INACTIVE},
                  {"active_allocated", GMD_BLOCK_ALLOCATED},
                  {"active_pending_free", GMD_BLOCK_PENDING_FREE},
                  {"active_awaiting_free", GMD_BLOCK_PENDING_FREE}};
    for (size_t i = 0; i < sizeof states / sizeof *states; i++) {
        if (snapshot_text_is(f->found, states[i].name)) {
            *state = (uint8_t)states[i].state;
            return true;
        }
    }
    char quoted[QUOTE_BYTES];
    return SNAPSHOT_FAIL(c, f->found,
                         "key 'state': expected active_allocated, active_pending_free or inactive, "
                         "found %s",
                         quote_text(f->found->text, f->found->length, quoted));
}

enum { ADDRESS, SIZE, REQUESTED, STATE, FRAMES, HISTORY, FIELDS };

static const snapshot_field block_fields[FIELDS] = {{"address", NULL},        {"size", NULL},
                                                    {"requested_size", NULL}, {"state", NULL},
                                                    {"frames", NULL},         {"history", NULL}};

/* Torch up to 2.0 had what asked for a block in a list, the last first, beside what the block's
 * memory had been before. */
static bool read_history(snapshot_reader *c, const snapshot_field *history, snapshot_field *frames,
                         snapshot_field *requested)
{
    const pickle_items *list;
    snapshot_field last[] = {{"frames", NULL}, {"real_size", NULL}};
    if (!history->found || history->found->kind == PICKLE_NONE) {
        return true;
    }
    if (!snapshot_items(c, history, &list)) {
        return false;
    }
    if (list->count == 0) {
        return true;
    }
    pickle_value first = pickle_item(list, 0, history->found->at);
    if (!snapshot_find(c, &first, last, 2)) {
        return false;
    }
    *frames = frames->found ? *frames : last[0];
    *requested = requested->found ? *requested : last[1];
    return true;
}

static bool read_request(snapshot_reader *c, const snapshot_field fields[FIELDS],
                         gmd_snapshot_block *block)
{
    snapshot_field frames = fields[FRAMES], requested = fields[REQUESTED];
    return (block->state == GMD_BLOCK_INACTIVE ||
            read_history(c, &fields[HISTORY], &frames, &requested)) &&
           snapshot_optional_number(c, &requested, block->size, &block->requested_size) &&
           snapshot_read_origin(c, &(snapshot_origin_fields){.frames = frames}, &block->origin);
}

/* `expected`: the end of the block before it. Torch up to 2.0 left the address to be added up. */
static bool read_block(snapshot_reader *c, const pickle_value *record,
                       const snapshot_field fields[FIELDS], uint64_t expected,
                       gmd_snapshot_block *block)
{
    *block = (gmd_snapshot_block){0};
    return snapshot_required_number(c, record, &fields[SIZE], &block->size) &&
           snapshot_optional_number(c, &fields[ADDRESS], expected, &block->address) &&
           snapshot_required_text(c, record, &fields[STATE]) &&
           read_state(c, &fields[STATE], &block->state) && read_request(c, fields, block);
}

bool snapshot_take_block(snapshot_reader *c, const snapshot_dict *dict, uint64_t *index)
{
    snapshot_field fields[FIELDS];
    taken_block taken = {.at = dict->at};
    memcpy(fields, block_fields, sizeof fields);
    snapshot_match(dict, fields, FIELDS);
    if (!fields[ADDRESS].found || !read_block(c, dict->pairs, fields, 0, &taken.block)) {
        return false;
    }
    *index = c->taken.block_count;
    if (!GMD_GROW(&c->taken.blocks, &c->taken.block_capacity, *index + 1)) {
        return snapshot_no_memory(c);
    }
    c->taken.blocks[c->taken.block_count++] = taken;
    return true;
}

/* `v`: a dict, or a record whose place is in the file is then found. */
static bool find_block(snapshot_reader *c, pickle_value *v, uint64_t expected,
                       gmd_snapshot_block *block)
{
    uint64_t index;
    snapshot_field fields[FIELDS];
    if (snapshot_is_taken(v, SNAPSHOT_BLOCK, &index)) {
        *block = c->taken.blocks[index].block;
        v->at = c->taken.blocks[index].at;
        return true;
    }
    memcpy(fields, block_fields, sizeof fields);
    return snapshot_find(c, v, fields, FIELDS) && read_block(c, v, fields, expected, block);
}

static bool check_block(snapshot_reader *c, const pickle_value *record,
                        const gmd_snapshot_segment *segment, uint64_t expected,
                        const gmd_snapshot_block *block)
{
    uint64_t end = segment->address + segment->total_size;
    if (block->size == 0) {
        return SNAPSHOT_FAIL(c, record, "key 'size': expected over 0");
    }
    if (block->address < expected) {
        return SNAPSHOT_FAIL(c, record,
                             "key 'address': expected at least %llu, the end of what is before it, "
                             "found %llu",
                             (unsigned long long)expected, (unsigned long long)block->address);
    }
    if (block->address > end || block->size > end - block->address) {
        return SNAPSHOT_FAIL(
            c, record,
            "%llu bytes at %llu: expected them to end at or before %llu, the segment's end",
            (unsigned long long)block->size, (unsigned long long)block->address,
            (unsigned long long)end);
    }
    return true;
}

static bool reserve_blocks(snapshot_reader *c, size_t count)
{
    gmd_snapshot *s = c->snapshot;
    return GMD_GROW(&s->blocks, &c->block_capacity, s->block_count + count) ||
           snapshot_no_memory(c);
}

static bool read_blocks(snapshot_reader *c, const snapshot_field *f, gmd_snapshot_segment *segment)
{
    const pickle_items *list;
    if (!snapshot_items(c, f, &list) || !snapshot_count(c, f->found, list->count) ||
        !reserve_blocks(c, list->count)) {
        return false;
    }
    segment->first_block = c->snapshot->block_count;
    segment->block_count = list->count;
    uint64_t expected = segment->address;
    c->place = AT_BLOCK;
    for (c->index = 0; c->index < list->count; c->index++) {
        pickle_value record = pickle_item(list, (uint32_t)c->index, f->found->at);
        gmd_snapshot_block *block = &c->snapshot->blocks[c->snapshot->block_count];
        if (!find_block(c, &record, expected, block) ||
            !check_block(c, &record, segment, expected, block)) {
            return false;
        }
        expected = block->address + block->size;
        c->snapshot->block_count++;
    }
    c->place = AT_SEGMENT;
    return true;
}

/* --- segments ---------------------------------------------------------------------------- */

static bool read_pool_id(snapshot_reader *c, const snapshot_field *f, uint64_t pool_id[2])
{
    const pickle_items *pair;
    if (!f->found) {
        return true;
    }
    if (!snapshot_items(c, f, &pair)) {
        return false;
    }
    if (pair->count != 2) {
        return SNAPSHOT_FAIL(c, f->found, "key '%s': expected two integers, found %u values",
                             f->key, pair->count);
    }
    for (uint32_t i = 0; i < 2; i++) {
        pickle_value number = pickle_item(pair, i, f->found->at);
        snapshot_field member = {f->key, &number};
        if (!snapshot_number(c, &member, &pool_id[i])) {
            return false;
        }
    }
    return true;
}

static bool read_pool_kind(snapshot_reader *c, const snapshot_field *f, bool *is_large)
{
    *is_large = snapshot_text_is(f->found, "large");
    return *is_large || snapshot_text_is(f->found, "small") ||
           SNAPSHOT_FAIL(c, f->found, "key '%s': expected 'large' or 'small'", f->key);
}

static bool read_device(snapshot_reader *c, const pickle_value *record, const snapshot_field *f,
                        uint8_t *device)
{
    uint64_t number;
    if (!snapshot_required_number(c, record, f, &number)) {
        return false;
    }
    if (number >= GMD_MAX_DEVICES) {
        return SNAPSHOT_FAIL(c, f->found, "key '%s': expected less than %d, found %llu", f->key,
                             GMD_MAX_DEVICES, (unsigned long long)number);
    }
    *device = (uint8_t)number;
    return true;
}

static bool read_segment(snapshot_reader *c, const pickle_value *record, gmd_snapshot_segment *s)
{
    enum {
        DEVICE,
        START,
        TOTAL,
        ALLOCATED,
        ACTIVE,
        ASKED,
        STREAM,
        TYPE,
        POOL,
        EXPANDABLE,
        STACK,
        BLOCKS
    };
    snapshot_field f[] = {
        {"device", NULL},         {"address", NULL},      {"total_size", NULL},
        {"allocated_size", NULL}, {"active_size", NULL},  {"requested_size", NULL},
        {"stream", NULL},         {"segment_type", NULL}, {"segment_pool_id", NULL},
        {"is_expandable", NULL},  {"frames", NULL},       {"blocks", NULL}};
    *s = (gmd_snapshot_segment){0};
    bool ok = snapshot_find(c, record, f, sizeof f / sizeof *f) &&
              read_device(c, record, &f[DEVICE], &s->device) &&
              snapshot_required_number(c, record, &f[START], &s->address) &&
              snapshot_required_number(c, record, &f[TOTAL], &s->total_size) &&
              snapshot_required_number(c, record, &f[ALLOCATED], &s->allocated_size) &&
              snapshot_required_number(c, record, &f[ACTIVE], &s->active_size) &&
              snapshot_optional_number(c, &f[ASKED], s->active_size, &s->requested_size) &&
              snapshot_required_number(c, record, &f[STREAM], &s->stream) &&
              snapshot_required_text(c, record, &f[TYPE]) &&
              read_pool_kind(c, &f[TYPE], &s->is_large) && read_pool_id(c, &f[POOL], s->pool_id) &&
              snapshot_optional_bool(c, &f[EXPANDABLE], &s->is_expandable) &&
              snapshot_read_origin(c, &(snapshot_origin_fields){.frames = f[STACK]}, &s->origin) &&
              snapshot_require(c, record, &f[BLOCKS]);
    if (ok && !snapshot_fits(s->address, s->total_size)) {
        return SNAPSHOT_FAIL(c, record,
                             "%llu bytes at address %llu: expected a range of 64-bit addresses",
                             (unsigned long long)s->total_size, (unsigned long long)s->address);
    }
    return ok && read_blocks(c, &f[BLOCKS], s);
}

bool snapshot_read_segments(snapshot_reader *c, const snapshot_field *f)
{
    const pickle_items *list;
    if (!snapshot_items(c, f, &list) || !snapshot_count(c, f->found, list->count)) {
        return false;
    }
    c->snapshot->segments = calloc(list->count + 1, sizeof *c->snapshot->segments);
    if (!c->snapshot->segments) {
        return snapshot_no_memory(c);
    }
    for (uint32_t i = 0; i < list->count; i++) {
        pickle_value record = pickle_item(list, i, f->found->at);
        c->place = AT_SEGMENT;
        c->device_or_segment = i;
        if (!read_segment(c, &record, &c->snapshot->segments[i])) {
            return false;
        }
        c->snapshot->segment_count++;
    }
    c->place = AT_FILE;
    return true;
}
