/* snapshot_events.c - device_traces: what happened, of all devices in one order. */
#include "snapshot_fields.h"

#include "gmd_grow.h"

#include <stdlib.h>
#include <string.h>

static gmd_action action_named(const pickle_value *name)
{
    static const char *const names[] = {
        [GMD_ACTION_ALLOC] = "alloc",
        [GMD_ACTION_FREE_REQUESTED] = "free_requested",
        [GMD_ACTION_FREE_COMPLETED] = "free_completed",
        [GMD_ACTION_SEGMENT_ALLOC] = "segment_alloc",
        [GMD_ACTION_SEGMENT_FREE] = "segment_free",
        [GMD_ACTION_SEGMENT_MAP] = "segment_map",
        [GMD_ACTION_SEGMENT_UNMAP] = "segment_unmap",
        [GMD_ACTION_SNAPSHOT] = "snapshot",
        [GMD_ACTION_OOM] = "oom",
    };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (snapshot_text_is(name, names[i])) {
            return (gmd_action)i;
        }
    }
    return GMD_ACTION_OTHER;
}

enum {
    ACTION,
    ADDRESS,
    SIZE,
    STREAM,
    TIME,
    DEVICE_FREE,
    FRAMES,
    METADATA,
    COMPILE_CONTEXT,
    FIELDS
};

static const snapshot_field event_fields[FIELDS] = {
    {"action", NULL}, {"addr", NULL},          {"size", NULL},
    {"stream", NULL}, {"time_us", NULL},       {"device_free", NULL},
    {"frames", NULL}, {"user_metadata", NULL}, {"compile_context", NULL}};

/* What an event asks for; the keys of an action that is not known may mean anything. */
static bool read_request(snapshot_reader *c, const pickle_value *record,
                         const snapshot_field fields[FIELDS], gmd_snapshot_event *event)
{
    if (event->action == GMD_ACTION_OTHER) {
        return true;
    }
    bool is_oom = event->action == GMD_ACTION_OOM && fields[DEVICE_FREE].found;
    const snapshot_field *address = &fields[is_oom ? DEVICE_FREE : ADDRESS];
    if (!snapshot_required_number(c, record, address, &event->address) ||
        !snapshot_required_number(c, record, &fields[SIZE], &event->size) ||
        !snapshot_required_number(c, record, &fields[STREAM], &event->stream)) {
        return false;
    }
    bool has_range = event->action != GMD_ACTION_OOM && event->action != GMD_ACTION_SNAPSHOT;
    return !has_range || snapshot_fits(event->address, event->size) ||
           SNAPSHOT_FAIL(c, record,
                         "%llu bytes at address %llu: expected a range of 64-bit addresses",
                         (unsigned long long)event->size, (unsigned long long)event->address);
}

static bool read_event(snapshot_reader *c, const pickle_value *record,
                       const snapshot_field fields[FIELDS], gmd_snapshot_event *event)
{
    *event = (gmd_snapshot_event){0};
    if (!snapshot_required_text(c, record, &fields[ACTION])) {
        return false;
    }
    event->action = (uint8_t)action_named(fields[ACTION].found);
    return snapshot_optional_number(c, &fields[TIME], 0, &event->time_us) &&
           read_request(c, record, fields, event) &&
           snapshot_read_origin(
               c,
               &(snapshot_origin_fields){fields[FRAMES], fields[METADATA], fields[COMPILE_CONTEXT]},
               &event->origin);
}

static bool add_event(snapshot_reader *c, gmd_snapshot_event event)
{
    gmd_snapshot *s = c->snapshot;
    if (!GMD_GROW(&s->events, &c->event_capacity, s->event_count + 1)) {
        return snapshot_no_memory(c);
    }
    s->events[s->event_count++] = event;
    return true;
}

/* An action that is not known says little about what the dict is: a time has to be there, too. */
bool snapshot_take_event(snapshot_reader *c, const snapshot_dict *dict, uint64_t *index)
{
    snapshot_field fields[FIELDS];
    gmd_snapshot_event event;
    memcpy(fields, event_fields, sizeof fields);
    snapshot_match(dict, fields, FIELDS);
    if (!read_event(c, dict->pairs, fields, &event) ||
        (event.action == GMD_ACTION_OTHER && !fields[TIME].found)) {
        return false;
    }
    *index = c->snapshot->event_count;
    return add_event(c, event);
}

/* --- devices ------------------------------------------------------------------------------- */

static bool add_item(snapshot_reader *c, const pickle_value *v)
{
    uint64_t index;
    snapshot_field fields[FIELDS];
    gmd_snapshot_event event;
    if (snapshot_is_taken(v, SNAPSHOT_EVENT, &index)) {
        return add_event(c, c->snapshot->events[index]);
    }
    memcpy(fields, event_fields, sizeof fields);
    return snapshot_find(c, v, fields, FIELDS) && read_event(c, v, fields, &event) &&
           add_event(c, event);
}

/* The events of a list that were taken one after the other are where they are; of another list they
 * are added behind all that were taken. */
static bool read_device_trace(snapshot_reader *c, const pickle_value *list, event_run *run)
{
    const pickle_items *items = snapshot_items_of(list);
    if (!items) {
        return SNAPSHOT_FAIL(c, list,
                             "device_traces: device %zu: expected a list of events, found %s",
                             c->device_or_segment, pickle_kind_name(list->kind));
    }
    if (!snapshot_count(c, list, items->count)) {
        return false;
    }
    *run = (event_run){c->snapshot->event_count, items->count};
    pickle_value first = items->count ? pickle_item(items, 0, list->at) : (pickle_value){0};
    uint64_t index;
    if (pickle_is_run(items) && snapshot_is_taken(&first, SNAPSHOT_EVENT, &index)) {
        run->first = index;
        return true;
    }
    c->place = AT_EVENT;
    for (c->index = 0; c->index < items->count; c->index++) {
        pickle_value v = pickle_item(items, (uint32_t)c->index, list->at);
        if (!add_item(c, &v)) {
            return false;
        }
    }
    c->place = AT_FILE;
    return true;
}

bool snapshot_read_events(snapshot_reader *c, const snapshot_field *f)
{
    const pickle_items *traces;
    if (!snapshot_items(c, f, &traces)) {
        return false;
    }
    if (traces->count > GMD_MAX_DEVICES) {
        return SNAPSHOT_FAIL(c, f->found, "device_traces: expected at most %d devices, found %u",
                             GMD_MAX_DEVICES, traces->count);
    }
    c->snapshot->device_count = traces->count;
    for (uint32_t i = 0; i < traces->count; i++) {
        pickle_value list = pickle_item(traces, i, f->found->at);
        c->device_or_segment = i;
        if (!read_device_trace(c, &list, &c->runs[i])) {
            return false;
        }
    }
    return true;
}

/* --- one order ----------------------------------------------------------------------------- */

/* By time; of equal times the lower device's first. Within a device the recorded order stands even
 * where its times do not ascend. Device counts are small: looking at each head is good enough. */
static void merge(const gmd_snapshot_event *events, event_run runs[GMD_MAX_DEVICES],
                  gmd_snapshot_event *out)
{
    for (;;) {
        event_run *first = NULL;
        for (event_run *run = runs; run < runs + GMD_MAX_DEVICES; run++) {
            if (run->count &&
                (!first || events[run->first].time_us < events[first->first].time_us)) {
                first = run;
            }
        }
        if (!first) {
            return;
        }
        *out = events[first->first++];
        out->device = (uint8_t)(first - runs);
        out++;
        first->count--;
    }
}

bool snapshot_merge_events(snapshot_reader *c)
{
    gmd_snapshot *s = c->snapshot;
    size_t count = 0;
    for (size_t i = 0; i < GMD_MAX_DEVICES; i++) {
        count += c->runs[i].count;
    }
    s->has_events = count > 0;
    if (c->runs[0].count == s->event_count && count == s->event_count) {
        return true; /* of one device, and all that were taken */
    }
    gmd_snapshot_event *merged = malloc((count + 1) * sizeof *merged);
    if (!merged) {
        return snapshot_no_memory(c);
    }
    merge(s->events, c->runs, merged);
    free(s->events);
    s->events = merged;
    s->event_count = count;
    return true;
}
