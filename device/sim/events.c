#include "events.h"

#include "gmd_grow.h"

#include <stdlib.h>

static struct {
    event *slots; /* [0] is not used */
    uint32_t count, capacity;
    uint32_t free_list;
    uint64_t creations; /* of the process: 18 bits of it tell the lives of a slot apart */
} events;

enum { SLOT_BITS = 20, LIFE_BITS = HANDLE_SERIAL_BITS - SLOT_BITS };

event *event_find(cudaEvent_t handle)
{
    uint64_t slot = handle_serial((uintptr_t)handle, HANDLE_EVENT) & ((1u << SLOT_BITS) - 1);
    return slot && slot < events.count && events.slots[slot].handle == handle ? &events.slots[slot]
                                                                              : NULL;
}

event *event_of(sim_call *call, cudaEvent_t handle)
{
    event *e = event_find(handle);
    if (!e) {
        call_misuse_of(call, 0, "event_gone",
                       "the event was never created, or is destroyed or from before a reset");
    }
    return e;
}

bool event_is_complete(const event *e)
{
    return !e->at.on || e->at.on->head >= e->at.ticket;
}

void event_forget(event *e)
{
    point_store(&e->at, (point){.on = NULL});
    free(e->capture_after);
    e->capture_after = NULL;
    e->capture_id = 0;
    e->capture_count = 0;
}

bool event_keeps_time(const event *e)
{
    return !(e->flags & cudaEventDisableTiming);
}

void event_recorded(cudaEvent_t handle, const stream *s, uint64_t ticket, uint64_t end_ns)
{
    event *e = event_find(handle);
    if (e && e->at.on == s && e->at.ticket == ticket) {
        e->end_ns = end_ns;
    }
}

/* Takes the event that was deleted last; with gmd_sim_config.reuses_handles, last on the device. */
static uint32_t take_deleted(int device)
{
    uint32_t *link = &events.free_list;
    while (sim.config.reuses_handles && *link && events.slots[*link].device != device) {
        link = &events.slots[*link].next_free;
    }
    uint32_t slot = *link;
    if (slot) {
        *link = events.slots[slot].next_free;
    }
    return slot;
}

static uint32_t new_slot(void)
{
    bool has_room = events.count < 1u << SLOT_BITS &&
                    GMD_GROW(&events.slots, &events.capacity, events.count + 1);
    return has_room ? events.count++ : 0;
}

event *event_new(int device, unsigned flags)
{
    uint32_t deleted = take_deleted(device), slot = deleted ? deleted : new_slot();
    if (!slot) {
        return NULL;
    }
    event *e = &events.slots[slot];
    bool has_handle = deleted && sim.config.reuses_handles;
    uint64_t life = has_handle ? e->life : ++events.creations & ((1u << LIFE_BITS) - 1);
    uint64_t handle = handle_make(HANDLE_EVENT, life << SLOT_BITS | slot);
    *e = (event){
        .handle = (cudaEvent_t)(uintptr_t)handle, .life = life, .device = device, .flags = flags};
    sim.devices[device].event_count++;
    return e;
}

void event_delete(event *e)
{
    sim.devices[e->device].event_count--;
    event_forget(e);
    e->handle = NULL;
    e->next_free = events.free_list;
    events.free_list = (uint32_t)(e - events.slots);
}

void events_reset(void)
{
    for (uint32_t slot = 1; slot < events.count; slot++) {
        event_forget(&events.slots[slot]);
    }
    events.count = 1;
    events.free_list = 0;
}

void events_reset_device(int device)
{
    for (uint32_t slot = 1; slot < events.count; slot++) {
        if (events.slots[slot].handle && events.slots[slot].device == device) {
            event_delete(&events.slots[slot]);
        }
    }
}

/* --- validity ---------------------------------------------------------------------------- */

const char *events_violation(void)
{
    uint64_t counts[GMD_SIM_DEVICE_MAX] = {0};
    uint32_t in_use = 0, spare = 0;
    for (uint32_t slot = 1; slot < events.count; slot++) {
        const event *e = &events.slots[slot];
        if (e->handle) {
            counts[e->device]++;
            in_use++;
        }
        if (e->at.on && (!e->handle || e->at.ticket > e->at.on->tail)) {
            return "an event was recorded on a ticket that was given";
        }
    }
    for (uint32_t slot = events.free_list; slot && spare < events.count;
         slot = events.slots[slot].next_free) {
        spare++;
    }
    if (events.count && in_use + spare != events.count - 1) {
        return "a place for an event is in use or free";
    }
    for (uint32_t d = 0; d < sim.config.device_count; d++) {
        if (sim.devices[d].event_count != counts[d]) {
            return "a device counts its events";
        }
    }
    return NULL;
}
