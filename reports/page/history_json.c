/* history_json.c - what a page says of a history beside its columns. */
#include "history.h"

#include "gmd_min.h"
#include "gmd_size.h"
#include "gmd_text.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { MOST_MARKS = 4000 }; /* annotations: a page shows no more, and JSON is no column */

/* --- names ----------------------------------------------------------------------------------- */

static void put_streams(gmd_json *json, const history *h)
{
    char name[40];
    gmd_json_array(json, "streams");
    for (uint32_t i = 0; i < h->streams.count; i++) {
        size_t length;
        uint64_t handle;
        memcpy(&handle, gmd_interned_bytes(&h->streams, i, &length), sizeof handle);
        if (handle == 0) {
            snprintf(name, sizeof name, "default stream");
        } else {
            snprintf(name, sizeof name, handle < 4096 ? "stream %" PRIu64 : "stream 0x%" PRIx64,
                     handle);
        }
        gmd_json_string(json, NULL, name);
    }
    gmd_json_end(json);
}

static void put_names(gmd_json *json, const history *h)
{
    put_streams(json, h);
    gmd_json_array(json, "pools");
    gmd_json_string(json, NULL, "default");
    gmd_json_string(json, NULL, "private");
    gmd_json_end(json);
    gmd_json_array(json, "categories");
    for (uint32_t i = h->source.is_job ? 0 : GMD_CATEGORY_UNKNOWN; i <= GMD_CATEGORY_UNKNOWN; i++) {
        gmd_json_string(json, NULL, gmd_category_name(i));
    }
    gmd_json_end(json);
}

/* --- moments --------------------------------------------------------------------------------- */

static void put_iterations(gmd_json *json, const history *h)
{
    const gmd_iterations *it = &h->facts->iterations;
    uint32_t shown = gmd_iterations_shown(it);
    gmd_json_array(json, "iterations");
    for (uint32_t i = 0; i < shown; i++) {
        gmd_json_u64(json, NULL, h->event_of[it->starts[i]]);
    }
    gmd_json_end(json);
    if (shown) {
        uint32_t end = (uint32_t)gmd_min(it->starts[shown], h->facts->recording.last);
        gmd_json_u64(json, "iterations_end", h->event_of[end]);
        gmd_json_u64(json, "warm_up", it->warm_up);
    }
}

static void put_peak(gmd_json *json, const history *h)
{
    const gmd_peak *peak = &h->facts->recording.peak;
    gmd_json_row(json, "peak");
    gmd_json_u64(json, "event", h->event_of[peak->allocated_at]);
    gmd_json_u64(json, "allocated", peak->amount.allocated);
    gmd_json_u64(json, "reserved_event", h->event_of[peak->reserved_at]);
    gmd_json_u64(json, "reserved", peak->amount.reserved);
    gmd_json_end(json);
}

static void put_marks(gmd_json *json, const history *h, const history_mark *marks, size_t count)
{
    const gmd_snapshot *s = h->facts->snapshot;
    const gmd_recording *r = &h->facts->recording;
    size_t shown = 0;
    gmd_json_array(json, "marks");
    for (size_t i = 0; i < count; i++) {
        gmd_json_row(json, NULL);
        gmd_json_u64(json, "event", marks[i].event);
        gmd_json_string(json, "label", marks[i].label);
        gmd_json_string(json, "kind", marks[i].kind);
        gmd_json_end(json);
    }
    for (size_t i = 0; i < s->annotation_count && shown < MOST_MARKS; i++) {
        const gmd_annotation *a = &s->annotations[i];
        if (a->device != r->device || a->stage != GMD_ANNOTATION_START) {
            continue;
        }
        uint32_t moment = (uint32_t)gmd_min(gmd_moment_after(r, a->time_us), r->last);
        gmd_json_row(json, NULL);
        gmd_json_u64(json, "event", h->event_of[moment]);
        gmd_json_string(json, "label", gmd_origins_text(&s->origins, a->name, NULL));
        gmd_json_string(json, "kind", "annotation");
        gmd_json_end(json);
        shown++;
    }
    gmd_json_end(json);
}

/* --- out of memory --------------------------------------------------------------------------- */

static uint64_t free_bytes(const gmd_free_memory *f)
{
    uint64_t bytes = 0;
    for (int cause = 0; cause < GMD_FREE_CAUSE_COUNT; cause++) {
        bytes += f->by_cause[cause];
    }
    return bytes;
}

static void put_oom(gmd_json *json, const history *h, const gmd_oom *oom)
{
    gmd_json_row(json, NULL);
    gmd_json_u64(json, "event", h->event_of[oom->moment]);
    gmd_json_u64(json, "bytes", oom->requested);
    gmd_json_string(json, "text", oom->change);
    gmd_json_string(json, "cause", gmd_oom_cause_name(oom->cause));
    gmd_json_string(json, "reason", gmd_oom_cause_sentence(oom->cause));
    gmd_json_string(json, "outcome", gmd_oom_outcome_name(oom->outcome));
    gmd_json_u64(json, "repeats", oom->repeats);
    gmd_json_u64(json, "allocated", oom->free.amount.allocated);
    gmd_json_u64(json, "reserved", oom->free.amount.reserved);
    gmd_json_u64(json, "largest_servable", oom->largest);
    if (oom->device_free != GMD_NOT_KNOWN) {
        gmd_json_u64(json, "device_free", oom->device_free);
    }
    gmd_json_u64(json, "free", free_bytes(&oom->free));
    gmd_json_array(json, "cached");
    for (int cause = 0; cause < GMD_FREE_CAUSE_COUNT; cause++) {
        if (oom->free.by_cause[cause]) {
            gmd_json_row(json, NULL);
            gmd_json_string(json, "cause",
                            gmd_free_cause_sentence(&oom->free, (gmd_free_cause)cause));
            gmd_json_u64(json, "bytes", oom->free.by_cause[cause]);
            gmd_json_end(json);
        }
    }
    gmd_json_end(json);
    gmd_json_end(json);
}

static void put_ooms(gmd_json *json, const history *h)
{
    gmd_json_array(json, "ooms");
    for (size_t i = 0; i < h->device->ooms.count; i++) {
        put_oom(json, h, &h->device->ooms.items[i]);
    }
    gmd_json_end(json);
}

/* --- the whole ------------------------------------------------------------------------------- */

void history_write(history *h, const char *name, uint32_t input, const history_mark *marks,
                   size_t mark_count)
{
    char address[24];
    const gmd_recording *r = &h->facts->recording;
    gmd_json *json = document_add(h->to, DOCUMENT_HISTORIES, NULL);
    snprintf(address, sizeof address, "%" PRIu64, h->address_base);
    gmd_json_string(json, "name", name);
    if (h->source.workload) {
        gmd_json_string(json, "workload", h->source.workload);
    }
    gmd_json_u64(json, "device", r->device);
    gmd_json_u64(json, "input", input);
    gmd_json_string(json, "address_base", address);
    gmd_json_u64(json, "events", (uint64_t)h->event_count + 1);
    gmd_json_u64(json, "blocks", r->lifetime_count);
    gmd_json_u64(json, "segments", r->reserved_count);
    gmd_json_bool(json, "truncated",
                  h->source.is_run ? h->source.lacks_events : !gmd_is_complete(r));
    gmd_json_bool(json, "has_time", history_has_time(h));
    gmd_json_bool(json, "has_reserved", h->facts->snapshot->recorder == GMD_RECORDER_PYTORCH);
    put_names(json, h);
    put_iterations(json, h);
    put_peak(json, h);
    put_ooms(json, h);
    put_marks(json, h, marks, mark_count);
    gmd_json_string(json, "prefix", h->prefix);
    gmd_json_end(json);
}
