/* write_perfetto.c - a run as a trace for https://ui.perfetto.dev: memory as counters, allocations
 * as slices by stream, violations and refusals as instants.
 *
 * The format is Perfetto's protobuf (perfetto.dev/docs/reference/synthetic-track-event; the field
 * numbers are those of protos/perfetto/trace). The time axis counts requests, a microsecond for
 * each: most requests take no time on the simulated device, and messages name a request by its
 * number.
 *
 * Slices of one track must nest, and lifetimes do not: each block that is alive has a track of its
 * own, a lane, which is used again when it is free. Perfetto shows tracks of the same name and
 * parent as one. */
#include "gmd_protobuf.h"
#include "gmd_report_text.h"
#include "outcome.h"
#include "perfetto_places.h"

#include "gmd_grow.h"
#include "gmd_size.h"
#include "gmd_timeline.h"
#include "gmd_trace.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { /* fields */
       PACKET_TIMESTAMP = 8,
       PACKET_EVENT = 11,
       PACKET_TRACK = 60,
       EVENT_TYPE = 9,
       EVENT_TRACK = 11,
       EVENT_NAME = 23,
       EVENT_COUNTER = 30,
       ANNOTATION_U64 = 3,
       TRACK_UUID = 1,
       TRACK_NAME = 2,
       TRACK_PROCESS = 3,
       TRACK_PARENT = 5,
       TRACK_COUNTER = 8,
       PROCESS_PID = 1,
       PROCESS_NAME = 6,
       COUNTER_UNIT = 3,
};
enum { TYPE_BEGIN = 1, TYPE_END, TYPE_INSTANT, TYPE_COUNTER, UNIT_BYTES = 3 };

#define REQUEST_NS 1000

typedef struct lane {
    uint64_t track;
    uint32_t row, next_free; /* index + 1 of the next free lane of its row; 0: none */
} lane;

/* The lanes of one stream of one device. */
typedef struct row {
    uint32_t stream, free; /* index + 1 of a free lane; 0: none */
    uint8_t device;
} row;

typedef struct counter {
    uint64_t track, value; /* track 0: none yet */
} counter;

typedef struct writer {
    FILE *out;
    perfetto_places places;
    uint64_t last_track;
    uint64_t process, events;             /* tracks */
    counter counters[GMD_MAX_DEVICES][2]; /* allocated, reserved */
    lane *lanes;
    row *rows;
    uint32_t lane_count, row_count, row_capacity;
    size_t lane_capacity;
    uint32_t *lane_of; /* by block: index + 1 of its lane while it is alive */
    uint32_t block_count;
    bool no_memory;
} writer;

/* --- packets ----------------------------------------------------------------------------- */

static void put_packet(writer *w, uint64_t at, uint32_t field, const gmd_message *data)
{
    gmd_message packet = {.size = 0};
    gmd_message_u64(&packet, PACKET_TIMESTAMP, at * REQUEST_NS);
    gmd_message_u64(&packet, PACKET_SEQUENCE, SEQUENCE);
    if (field == PACKET_EVENT && w->places.origins) {
        gmd_message_u64(&packet, PACKET_FLAGS, FLAG_NEEDS_STATE);
    }
    gmd_message_add(&packet, field, data);
    gmd_message_write(&packet, TRACE_PACKET, w->out);
}

static uint64_t put_track(writer *w, const char *name, uint32_t kind, const gmd_message *detail)
{
    gmd_message track = {.size = 0};
    gmd_message_u64(&track, TRACK_UUID, ++w->last_track);
    gmd_message_text(&track, TRACK_NAME, name);
    if (kind != TRACK_PROCESS) {
        gmd_message_u64(&track, TRACK_PARENT, w->process);
    }
    if (detail) {
        gmd_message_add(&track, kind, detail);
    }
    put_packet(w, 0, PACKET_TRACK, &track);
    return w->last_track;
}

static gmd_message event_of(unsigned type, uint64_t track, const char *name)
{
    gmd_message event = {.size = 0};
    gmd_message_u64(&event, EVENT_TYPE, type);
    gmd_message_u64(&event, EVENT_TRACK, track);
    if (name) {
        gmd_message_text(&event, EVENT_NAME, name);
    }
    return event;
}

static void annotate(gmd_message *event, const char *name, uint64_t value)
{
    gmd_message annotation = {.size = 0};
    gmd_message_text(&annotation, ANNOTATION_NAME, name);
    gmd_message_u64(&annotation, ANNOTATION_U64, value);
    gmd_message_add(event, EVENT_ANNOTATION, &annotation);
}

static void annotate_text(gmd_message *event, const char *name, const char *value)
{
    gmd_message annotation = {.size = 0};
    gmd_message_text(&annotation, ANNOTATION_NAME, name);
    gmd_message_text(&annotation, ANNOTATION_TEXT, value);
    gmd_message_add(event, EVENT_ANNOTATION, &annotation);
}

/* --- lanes ------------------------------------------------------------------------------- */

static uint32_t row_of(writer *w, const gmd_timeline_entry *e)
{
    uint32_t i = 0;
    while (i < w->row_count && (w->rows[i].stream != e->stream || w->rows[i].device != e->device)) {
        i++;
    }
    if (i == w->row_count) {
        if (!GMD_GROW(&w->rows, &w->row_capacity, i + 1)) {
            return UINT32_MAX;
        }
        w->rows[w->row_count++] = (row){.stream = e->stream, .device = e->device};
    }
    return i;
}

static uint32_t add_lane(writer *w, uint32_t row_index)
{
    char name[64];
    if (!GMD_GROW(&w->lanes, &w->lane_capacity, (size_t)w->lane_count + 1)) {
        return 0;
    }
    snprintf(name, sizeof name, "device %u, stream %" PRIu32, w->rows[row_index].device,
             w->rows[row_index].stream);
    w->lanes[w->lane_count] = (lane){.track = put_track(w, name, 0, NULL), .row = row_index};
    return ++w->lane_count;
}

/* Index + 1 of a lane in which nothing is alive; 0: no memory. */
static uint32_t take_lane(writer *w, const gmd_timeline_entry *e)
{
    uint32_t row_index = row_of(w, e);
    uint32_t taken = row_index == UINT32_MAX ? 0 : w->rows[row_index].free;
    if (taken) {
        w->rows[row_index].free = w->lanes[taken - 1].next_free;
    } else if (row_index != UINT32_MAX) {
        taken = add_lane(w, row_index);
    }
    w->no_memory = w->no_memory || !taken;
    return taken;
}

static void give_lane(writer *w, uint32_t taken)
{
    lane *l = &w->lanes[taken - 1];
    l->next_free = w->rows[l->row].free;
    w->rows[l->row].free = taken;
}

/* --- requests ---------------------------------------------------------------------------- */

static void put_instant(writer *w, uint64_t at, const char *name, const char *detail)
{
    gmd_message event = event_of(TYPE_INSTANT, w->events, name);
    annotate(&event, "request", at);
    if (detail) {
        annotate_text(&event, "message", detail);
    }
    put_packet(w, at, PACKET_EVENT, &event);
}

static void put_alloc(writer *w, uint64_t at, const gmd_timeline_entry *e)
{
    char size[24], name[48];
    gmd_format_size(e->bytes, size);
    if (!e->address) {
        snprintf(name, sizeof name, "refused: %s", size);
        put_instant(w, at, name, NULL);
        return;
    }
    uint32_t taken = take_lane(w, e);
    if (!taken || e->block >= w->block_count) {
        return;
    }
    gmd_message event = event_of(TYPE_BEGIN, w->lanes[taken - 1].track, size);
    annotate(&event, "request", at);
    annotate(&event, "bytes", e->bytes);
    annotate(&event, "address", e->address);
    perfetto_places_add(&w->places, &event, e, w->out);
    put_packet(w, at, PACKET_EVENT, &event);
    w->lane_of[e->block] = taken;
}

static void put_free(writer *w, uint64_t at, const gmd_timeline_entry *e)
{
    uint32_t taken = e->block < w->block_count ? w->lane_of[e->block] : 0;
    if (taken && w->lanes) {
        gmd_message event = event_of(TYPE_END, w->lanes[taken - 1].track, NULL);
        put_packet(w, at, PACKET_EVENT, &event);
        give_lane(w, taken);
        w->lane_of[e->block] = 0;
    }
}

static void put_counter(writer *w, uint64_t at, uint8_t device, int which, uint64_t value)
{
    static const char *const names[] = {"allocated", "reserved"};
    counter *c = &w->counters[device][which];
    if (value == GMD_STAT_UNKNOWN || (c->track && c->value == value)) {
        return;
    }
    if (!c->track) {
        char name[64];
        gmd_message detail = {.size = 0};
        gmd_message_u64(&detail, COUNTER_UNIT, UNIT_BYTES);
        snprintf(name, sizeof name, "device %u, %s", device, names[which]);
        c->track = put_track(w, name, TRACK_COUNTER, &detail);
    }
    c->value = value;
    gmd_message event = event_of(TYPE_COUNTER, c->track, NULL);
    gmd_message_u64(&event, EVENT_COUNTER, value);
    put_packet(w, at, PACKET_EVENT, &event);
}

static void put_request(writer *w, uint64_t at, const gmd_timeline_entry *e)
{
    if (e->op == GMD_OP_ALLOC) {
        put_alloc(w, at, e);
    } else if (e->op == GMD_OP_FREE) {
        put_free(w, at, e);
    } else if (e->op == GMD_OP_EMPTY_CACHE) {
        put_instant(w, at, "empty_cache", NULL);
    }
    uint8_t device = e->device % GMD_MAX_DEVICES;
    put_counter(w, at, device, 0, e->allocated);
    put_counter(w, at, device, 1, e->reserved);
}

/* --- runs -------------------------------------------------------------------------------- */

static void begin_run(writer *w, const gmd_report *report, size_t index)
{
    char title[GMD_TITLE_TEXT];
    gmd_message process = {.size = 0};
    gmd_outcome_title(report, index, title);
    gmd_message_u64(&process, PROCESS_PID, index + 1);
    gmd_message_text(&process, PROCESS_NAME, title);
    w->process = put_track(w, title, TRACK_PROCESS, &process);
    w->events = put_track(w, "events", 0, NULL);
    memset(w->counters, 0, sizeof w->counters);
    w->lane_count = w->row_count = 0;
}

static uint32_t blocks_of(const gmd_timeline *timeline)
{
    uint32_t count = 0;
    for (uint64_t i = 0; i < timeline->count; i++) {
        const gmd_timeline_entry *e = &timeline->entries[i];
        count = e->op == GMD_OP_ALLOC && e->block >= count ? e->block + 1 : count;
    }
    return count;
}

/* Blocks that are never freed stay open: Perfetto draws them to the end, as not finished. */
static void put_run(writer *w, const gmd_report *report, size_t index)
{
    const gmd_outcome *o = report->outcomes[index];
    const gmd_timeline *timeline = report->timelines[index];
    begin_run(w, report, index);
    perfetto_places_of_run(&w->places, o);
    w->block_count = blocks_of(timeline);
    w->lane_of = calloc(w->block_count + (size_t)1, sizeof *w->lane_of);
    w->no_memory = w->no_memory || !w->lane_of;
    for (uint64_t i = 0; i < timeline->count && !w->no_memory; i++) {
        put_request(w, i, &timeline->entries[i]);
    }
    for (uint32_t i = 0; i < o->violation_count; i++) {
        put_instant(w, o->violations[i].request, o->violations[i].oracle, o->violations[i].message);
    }
    if (timeline->dropped) {
        put_instant(w, timeline->count, "the timeline is full: later requests are left out", NULL);
    }
    free(w->lane_of);
    w->lane_of = NULL;
}

gmd_status gmd_report_perfetto(const gmd_report *report, FILE *out, gmd_error *error)
{
    writer w = {.out = out};
    gmd_status status = perfetto_places_begin(&w.places, report, out, error);
    for (size_t i = 0; status == GMD_OK && i < report->outcome_count; i++) {
        if (report->timelines && report->timelines[i]) {
            put_run(&w, report, i);
        }
    }
    free(w.lanes);
    free(w.rows);
    perfetto_places_free(&w.places);
    if (status != GMD_OK) {
        return status;
    }
    if (w.no_memory) {
        return gmd_fail(error, GMD_NO_MEMORY, "no host memory for the Perfetto trace");
    }
    return gmd_finish_writing(out, "the Perfetto trace", error);
}
