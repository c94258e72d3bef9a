#include "gmd_ooms.h"

#include "gmd_grow.h"
#include "gmd_min.h"
#include "gmd_recorded_settings.h"
#include "gmd_size.h"

#include <stdio.h>
#include <stdlib.h>

/* Each is looked at by itself, at the cost of a pass over all blocks. */
enum { MOST_LOOKED_AT = 64 };

typedef struct autopsy {
    const gmd_facts *facts;
    const uint32_t *leak_frames;
    size_t leak_frame_count;
    gmd_recorded_settings settings;
    uint64_t highest_reserved; /* that the job ever had: what it was allowed at least */
} autopsy;

/* --- one OOM --------------------------------------------------------------------------------- */

static bool leaks(const autopsy *a, uint32_t frame)
{
    for (size_t i = 0; i < a->leak_frame_count; i++) {
        if (a->leak_frames[i] == frame) {
            return true;
        }
    }
    return false;
}

static void add_up(const autopsy *a, gmd_oom *oom)
{
    const gmd_recording *r = &a->facts->recording;
    for (size_t i = 0; i < r->lifetime_count; i++) {
        const gmd_lifetime *l = &r->lifetimes[i];
        if (!gmd_is_active_at(l, oom->moment)) {
            continue;
        }
        bool is_allocated = gmd_is_allocated_at(l, oom->moment);
        oom->amount.active += l->size;
        oom->amount.allocated += is_allocated ? l->size : 0;
        oom->leaked +=
            is_allocated && leaks(a, gmd_places_frame(&a->facts->places, l->origin)) ? l->size : 0;
    }
    for (size_t i = 0; i < r->reserved_count; i++) {
        oom->amount.reserved +=
            gmd_is_reserved_at(&r->reserved[i], oom->moment) ? r->reserved[i].size : 0;
    }
}

/* What a correct allocator could still have taken from the device: the job was allowed at least
 * what it once had. */
static uint64_t headroom(const autopsy *a, const gmd_oom *oom)
{
    uint64_t allowed =
        a->highest_reserved > oom->amount.reserved ? a->highest_reserved - oom->amount.reserved : 0;
    return oom->device_free == UINT64_MAX ? allowed : gmd_min(allowed, oom->device_free);
}

/* Free parts of the right stream that only lie in the wrong places. */
static uint64_t scattered(const gmd_oom *oom)
{
    const uint64_t *by = oom->free.by_cause;
    return by[GMD_FREE_TOO_SMALL] + by[GMD_FREE_OVERSIZE] + by[GMD_FREE_OTHER_STREAM] +
           by[GMD_FREE_OTHER_POOL];
}

static gmd_oom_cause judge(const autopsy *a, const gmd_oom *oom, uint64_t needed)
{
    uint64_t room = headroom(a, oom);
    if (oom->free.by_cause[GMD_FREE_FITTING]) {
        return GMD_OOM_ALLOCATOR;
    }
    if (oom->leaked + room >= needed && oom->leaked > 0) {
        return GMD_OOM_LEAK;
    }
    if (scattered(oom) + room >= needed) {
        return GMD_OOM_FRAGMENTATION;
    }
    if (oom->device_free != UINT64_MAX && oom->device_free >= needed) {
        return GMD_OOM_LIMIT;
    }
    return GMD_OOM_CAPACITY;
}

static void suggest(gmd_oom *oom, const autopsy *a)
{
    char missing[24], scattered_text[24];
    gmd_format_size(oom->missing, missing);
    gmd_format_size(scattered(oom), scattered_text);
    switch (oom->cause) {
    case GMD_OOM_LEAK:
        snprintf(oom->change, sizeof oom->change, "mend the leak: it held more than was missing");
        break;
    case GMD_OOM_FRAGMENTATION:
        snprintf(oom->change, sizeof oom->change, "%s: %s are free, in parts that are too small",
                 a->settings.is_expandable ? "fewer different sizes"
                                           : "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True",
                 scattered_text);
        break;
    case GMD_OOM_LIMIT:
        snprintf(oom->change, sizeof oom->change,
                 "a memory limit that is %s higher (set_per_process_memory_fraction)", missing);
        break;
    case GMD_OOM_ALLOCATOR:
        snprintf(
            oom->change, sizeof oom->change,
            "none in the job: a free block was large enough (pytorch#189504); the same request "
            "again is served");
        break;
    default:
        snprintf(oom->change, sizeof oom->change, "%s more memory, or that much less held",
                 missing);
        break;
    }
}

static gmd_status look_at(const autopsy *a, gmd_oom *oom, gmd_error *error)
{
    const gmd_facts *f = a->facts;
    const gmd_asked asked = {oom->requested, oom->stream};
    gmd_status status =
        gmd_free_memory_find(&oom->free, &f->recording, &f->places, oom->moment, &asked, error);
    if (status != GMD_OK) {
        return status;
    }
    add_up(a, oom);
    uint64_t needed = gmd_recorded_segment_size(&a->settings, oom->requested);
    uint64_t room = headroom(a, oom);
    oom->missing = needed > room ? needed - room : 0;
    oom->largest = gmd_max(oom->free.largest_part, room / (2 * GMD_MIB) * (2 * GMD_MIB));
    oom->cause = judge(a, oom, needed);
    suggest(oom, a);
    return GMD_OK;
}

/* --- all ------------------------------------------------------------------------------------- */

static gmd_oom *find_same(const gmd_ooms *ooms, const gmd_snapshot_event *e)
{
    for (size_t i = ooms->count; i-- > 0;) {
        gmd_oom *oom = &ooms->items[i];
        if (oom->requested == e->size && oom->origin == e->origin && oom->stream == e->stream) {
            return oom;
        }
    }
    return NULL;
}

static gmd_status note(gmd_ooms *ooms, const autopsy *a, uint32_t moment, gmd_error *error)
{
    const gmd_snapshot_event *e = gmd_event_at(&a->facts->recording, moment);
    gmd_oom *same = find_same(ooms, e);
    if (same) {
        same->repeats++;
        return GMD_OK;
    }
    if (ooms->count == MOST_LOOKED_AT) {
        ooms->left_out++;
        return GMD_OK;
    }
    gmd_oom *oom = &ooms->items[ooms->count++];
    *oom = (gmd_oom){.moment = moment,
                     .origin = e->origin,
                     .requested = e->size,
                     .stream = e->stream,
                     .device_free = e->address};
    return look_at(a, oom, error);
}

gmd_status gmd_ooms_find(gmd_ooms *ooms, const gmd_facts *facts, const uint32_t *leak_frames,
                         size_t leak_frame_count, gmd_error *error)
{
    const gmd_recording *r = &facts->recording;
    const autopsy a = {.facts = facts,
                       .leak_frames = leak_frames,
                       .leak_frame_count = leak_frame_count,
                       .settings = gmd_recorded_settings_of(facts->snapshot),
                       .highest_reserved = r->peak.amount.reserved};
    *ooms = (gmd_ooms){0};
    if (r->oom_count == 0) {
        return GMD_OK;
    }
    ooms->items = calloc(MOST_LOOKED_AT, sizeof *ooms->items);
    gmd_status status = GMD_OK;
    if (!ooms->items) {
        status = gmd_fail(error, GMD_NO_MEMORY, "no host memory for the out-of-memories");
    }
    for (uint32_t moment = r->first; status == GMD_OK && moment <= r->last; moment++) {
        const gmd_snapshot_event *e = gmd_event_at(r, moment);
        if (e->device == r->device && e->action == GMD_ACTION_OOM) {
            status = note(ooms, &a, moment, error);
        }
    }
    if (status != GMD_OK) {
        gmd_ooms_free(ooms);
    }
    return status;
}

void gmd_ooms_free(gmd_ooms *ooms)
{
    for (size_t i = 0; i < ooms->count; i++) {
        gmd_free_memory_release(&ooms->items[i].free);
    }
    free(ooms->items);
    *ooms = (gmd_ooms){0};
}

const char *gmd_oom_cause_name(gmd_oom_cause cause)
{
    static const char *const names[] = {
#define GMD_OOM_CAUSE_NAME(name, text) text,
        GMD_OOM_CAUSES(GMD_OOM_CAUSE_NAME)
#undef GMD_OOM_CAUSE_NAME
    };
    return names[cause];
}
