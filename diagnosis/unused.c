/* unused.c - what was reserved and not allocated where reserved memory was most. */
#include "gmd_unused.h"

static bool is_in(const gmd_snapshot_event *block, const gmd_snapshot_event *taken)
{
    return block->address < taken->address + taken->size &&
           taken->address < block->address + block->size;
}

/* The allocator takes memory in a request, whose event is the device's next: it is served from that
 * memory. GMD_NEVER: the recording does not have it, or it was refused all the same. */
static uint32_t served_after(const gmd_recording *r, uint32_t taken)
{
    for (uint32_t moment = taken; taken != GMD_BEFORE && moment++ < r->last;) {
        const gmd_snapshot_event *e = gmd_event_at(r, moment);
        if (e->device == r->device) {
            bool is_served = e->action == GMD_ACTION_ALLOC && is_in(e, gmd_event_at(r, taken));
            return is_served ? moment : GMD_NEVER;
        }
    }
    return GMD_NEVER;
}

static gmd_status look_at_request(gmd_unused *unused, const gmd_facts *facts, uint32_t served,
                                  gmd_error *error)
{
    const gmd_recording *r = &facts->recording;
    const gmd_snapshot_event *e = gmd_event_at(r, served);
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
    const uint32_t taken = r->peak.reserved_at, served = served_after(r, taken);
    *unused = (gmd_unused){0};
    gmd_status status = gmd_free_memory_find(&unused->free, r, &facts->places,
                                             served == GMD_NEVER ? taken : served, NULL, error);
    if (status == GMD_OK) {
        status = look_at_request(unused, facts, served, error);
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
