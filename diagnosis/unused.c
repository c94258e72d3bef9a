/* unused.c - what was reserved and not allocated where reserved memory was most. */
#include "gmd_unused.h"

/* The allocator takes memory in a request, whose event is the next. */
static const gmd_snapshot_event *request_after(const gmd_recording *r, uint32_t moment)
{
    for (; moment != GMD_BEFORE && moment <= r->last; moment++) {
        const gmd_snapshot_event *e = gmd_event_at(r, moment);
        if (e->device == r->device && e->action == GMD_ACTION_ALLOC) {
            return e;
        }
    }
    return NULL;
}

static gmd_status look_at_request(gmd_unused *unused, const gmd_facts *facts, gmd_error *error)
{
    const gmd_recording *r = &facts->recording;
    const gmd_snapshot_event *e = request_after(r, r->peak.reserved_at);
    if (!e) {
        return GMD_OK;
    }
    unused->has_request = true;
    unused->origin = e->origin;
    unused->requested = e->size;
    unused->stream = e->stream;
    return gmd_free_memory_find(&unused->refused, r, &facts->places, r->peak.reserved_at - 1,
                                &(gmd_asked){e->size, e->stream}, error);
}

gmd_status gmd_unused_find(gmd_unused *unused, const gmd_facts *facts, gmd_error *error)
{
    const gmd_recording *r = &facts->recording;
    *unused = (gmd_unused){0};
    gmd_status status =
        gmd_free_memory_find(&unused->free, r, &facts->places, r->peak.reserved_at, NULL, error);
    if (status == GMD_OK) {
        status = look_at_request(unused, facts, error);
    }
    if (status != GMD_OK) {
        gmd_unused_release(unused);
    }
    return status;
}

void gmd_unused_release(gmd_unused *unused)
{
    gmd_free_memory_release(&unused->free);
    gmd_free_memory_release(&unused->refused);
}
