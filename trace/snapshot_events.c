/* snapshot_events.c - device_traces: what happened, of all devices in one order. */
#include "snapshot_fields.h"

#include "gmd_grow.h"
#include "gmd_trace.h"

#include <stdlib.h>

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

static bool read_event(snapshot_reader *c, const pickle_value *record, gmd_snapshot_event *event)
{
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
    snapshot_field fields[FIELDS] = {
        {"action", NULL}, {"addr", NULL},          {"size", NULL},
        {"stream", NULL}, {"time_us", NULL},       {"device_free", NULL},
        {"frames", NULL}, {"user_metadata", NULL}, {"compile_context", NULL}};
    *event = (gmd_snapshot_event){.device = (uint8_t)c->device_or_segment};
    if (!snapshot_find(c, record, fields, FIELDS) ||
        !snapshot_required_text(c, record, &fields[ACTION])) {
        return false;
    }
    gmd_action action = action_named(fields[ACTION].found);
    event->action = (uint8_t)action;
    if (!snapshot_optional_number(c, &fields[TIME], 0, &event->time_us)) {
        return false;
    }
    snapshot_origin_fields origin = {fields[FRAMES], fields[METADATA], fields[COMPILE_CONTEXT]};
    if (!snapshot_read_origin(c, &origin, &event->origin)) {
        return false;
    }
    if (action == GMD_ACTION_OTHER) {
        return true; /* what its keys mean is not known either */
    }
    bool is_oom = action == GMD_ACTION_OOM && fields[DEVICE_FREE].found;
    const snapshot_field *address = &fields[is_oom ? DEVICE_FREE : ADDRESS];
    if (!snapshot_required_number(c, record, address, &event->address) ||
        !snapshot_required_number(c, record, &fields[SIZE], &event->size) ||
        !snapshot_required_number(c, record, &fields[STREAM], &event->stream)) {
        return false;
    }
    bool has_range = action != GMD_ACTION_OOM && action != GMD_ACTION_SNAPSHOT;
    return !has_range || snapshot_fits(event->address, event->size) ||
           SNAPSHOT_FAIL(c, record,
                         "%llu bytes at address %llu: expected a range of 64-bit addresses",
                         (unsigned long long)event->size, (unsigned long long)event->address);
}

static bool reserve_events(snapshot_reader *c, size_t count)
{
    gmd_snapshot *s = c->snapshot;
    return GMD_GROW(&s->events, &c->event_capacity, s->event_count + count) ||
           snapshot_no_memory(c);
}

static bool read_device_trace(snapshot_reader *c, const pickle_value *list)
{
    if (list->kind != PICKLE_LIST && list->kind != PICKLE_TUPLE) {
        return SNAPSHOT_FAIL(c, list,
                             "device_traces: device %zu: expected a list of events, found %s",
                             c->device_or_segment, pickle_kind_name(list->kind));
    }
    size_t count = list->items->count;
    if (!snapshot_count(c, list, count) || !reserve_events(c, count)) {
        return false;
    }
    c->place = AT_EVENT;
    for (c->index = 0; c->index < count; c->index++) {
        gmd_snapshot_event *event = &c->snapshot->events[c->snapshot->event_count];
        if (!read_event(c, &list->items->values[c->index], event)) {
            return false;
        }
        c->snapshot->event_count++;
    }
    c->place = AT_FILE;
    return true;
}

/* The events of one device that are still to be merged. */
typedef struct event_run {
    const gmd_snapshot_event *next, *end;
} event_run;

/* By time; of equal times the lower device's first. Within a device the recorded order stands even
 * where its times do not ascend. Device counts are small: looking at each head is good enough. */
static void merge(event_run *runs, size_t run_count, gmd_snapshot_event *out)
{
    for (;;) {
        event_run *first = NULL;
        for (size_t i = 0; i < run_count; i++) {
            if (runs[i].next != runs[i].end &&
                (!first || runs[i].next->time_us < first->next->time_us)) {
                first = &runs[i];
            }
        }
        if (!first) {
            return;
        }
        *out++ = *first->next++;
    }
}

static bool merge_devices(snapshot_reader *c, const size_t ends[GMD_MAX_DEVICES])
{
    gmd_snapshot *s = c->snapshot;
    event_run runs[GMD_MAX_DEVICES];
    size_t run_count = 0, start = 0;
    for (uint32_t device = 0; device < s->device_count; start = ends[device++]) {
        if (ends[device] > start) {
            runs[run_count++] = (event_run){s->events + start, s->events + ends[device]};
        }
    }
    if (run_count < 2 || s->event_count == 0) {
        return true;
    }
    gmd_snapshot_event *merged = malloc(s->event_count * sizeof *merged);
    if (!merged) {
        return snapshot_no_memory(c);
    }
    merge(runs, run_count, merged);
    free(s->events);
    s->events = merged;
    return true;
}

bool snapshot_read_events(snapshot_reader *c, const snapshot_field *f)
{
    const pickle_items *traces;
    size_t ends[GMD_MAX_DEVICES] = {0};
    if (!snapshot_items(c, f, &traces)) {
        return false;
    }
    if (traces->count > GMD_MAX_DEVICES) {
        return SNAPSHOT_FAIL(c, f->found, "device_traces: expected at most %d devices, found %zu",
                             GMD_MAX_DEVICES, traces->count);
    }
    c->snapshot->device_count = (uint32_t)traces->count;
    for (size_t i = 0; i < traces->count; i++) {
        c->device_or_segment = i;
        if (!read_device_trace(c, &traces->values[i])) {
            return false;
        }
        ends[i] = c->snapshot->event_count;
    }
    c->snapshot->has_events = c->snapshot->event_count > 0;
    return merge_devices(c, ends);
}
