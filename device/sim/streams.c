#include "streams.h"

#include "due.h"
#include "point.h"

#include "gmd_assert.h"
#include "gmd_grow.h"

#include <stdlib.h>
#include <string.h>

stream_table streams;

/* Room for every structure to be in every list is made when it is made, so that queueing and
 * learning cannot fail for it. */
static bool grow_lists(void)
{
    uint32_t capacity = streams.active_capacity;
    stream ***lists[] = {&streams.all, &streams.active, &streams.open, &streams.due,
                         &streams.by_value};
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++) {
        capacity = streams.active_capacity;
        if (!GMD_GROW(lists[i], &capacity, streams.stream_structs + 1)) {
            return false;
        }
    }
    streams.active_capacity = capacity;
    return true;
}

static void recycle(stream *s)
{
    s->next = streams.free_list;
    streams.free_list = s;
}

/* One more structure, which nothing uses. */
static bool add_structure(void)
{
    if (!grow_lists()) {
        return false;
    }
    stream *s = calloc(1, sizeof *s);
    if (!s) {
        return false;
    }
    s->progress.id = streams.stream_structs;
    streams.all[streams.stream_structs++] = s;
    recycle(s);
    return true;
}

/* A new or recycled structure. Tickets go on where its earlier life ended, all of which the host
 * knows to be over: so what still refers to that life finds it complete, and before everything. */
static stream *new_stream(int device, unsigned flags, int priority)
{
    if (!streams.free_list && !add_structure()) {
        return NULL;
    }
    stream *s = streams.free_list;
    streams.free_list = s->next;
    s->handle = NULL;
    s->device = device;
    s->flags = flags;
    s->priority = priority;
    s->is_destroyed = false;
    s->saw_default = s->seen_by_default = s->saw_blocking = 0;
    s->end_ns = 0;
    return s;
}

void stream_recycle_unused(stream *s)
{
    if (!s->is_destroyed || s->head != s->tail) {
        return;
    }
    if (!s->is_open) {
        recycle(s);
        return;
    }
    free(s->ring); /* it may be long until the host learns of its end */
    s->ring = NULL;
    s->ring_size = 0;
}

void stream_open(stream *s)
{
    s->is_open = true;
    s->open_index = streams.open_count;
    streams.open[streams.open_count++] = s;
}

void stream_close(stream *s)
{
    GMD_ASSERT(s->is_open && streams.open[s->open_index] == s, "a stream that closes is open");
    s->progress.known = s->tail;
    gmd_past_drop(s->before);
    s->before = NULL;
    stream *last = streams.open[--streams.open_count];
    streams.open[s->open_index] = last;
    last->open_index = s->open_index;
    s->is_open = false;
    stream_recycle_unused(s);
}

/* The serial number of the stream that was destroyed last on the device, or one that was never
 * used. */
static uint32_t take_serial(int device)
{
    for (uint32_t i = streams.gone_count; i-- > 0;) {
        gone_stream found = streams.gone[i];
        if (found.device == device) {
            streams.gone_count--;
            memmove(&streams.gone[i], &streams.gone[i + 1],
                    (streams.gone_count - i) * sizeof found);
            return found.serial;
        }
    }
    return streams.serials++;
}

stream *stream_create(int device, unsigned flags, int priority)
{
    if (!GMD_GROW(&streams.by_serial, &streams.serial_capacity, streams.serials + 1) ||
        !GMD_GROW(&streams.gone, &streams.gone_capacity, streams.serials + 1)) {
        return NULL;
    }
    stream *s = new_stream(device, flags, priority);
    if (s) {
        uint32_t serial = take_serial(device);
        s->handle = (cudaStream_t)(uintptr_t)handle_make(HANDLE_STREAM, serial);
        streams.by_serial[serial] = s;
        sim.devices[device].stream_count++;
    }
    return s;
}

static stream *create_unnamed(int device)
{
    stream *s = new_stream(device, cudaStreamDefault, 0);
    if (s) {
        s->next = streams.unnamed;
        streams.unnamed = s;
    }
    return s;
}

static stream *thread_default(sim_thread *thread)
{
    stream **slot = &thread->default_stream[thread->device];
    if (!*slot) {
        *slot = create_unnamed(thread->device);
    }
    return *slot;
}

stream *stream_find(sim_thread *thread, cudaStream_t handle)
{
    if (handle == NULL || handle == cudaStreamLegacy) {
        return sim.devices[thread->device].legacy;
    }
    if (handle == cudaStreamPerThread) {
        return thread_default(thread);
    }
    uint64_t serial = handle_serial((uintptr_t)handle, HANDLE_STREAM);
    return serial < streams.serials ? streams.by_serial[serial] : NULL;
}

stream *stream_of(sim_call *call, cudaStream_t handle)
{
    stream *s = stream_find(call->thread, handle);
    if (!s && handle == cudaStreamPerThread) {
        call->lacks_memory = true;
    } else if (!s) {
        call_misuse_of(call, 0, "stream_gone",
                       "the stream was never created, or is destroyed or from before a reset");
    }
    return s;
}

stream *stream_by_id(uint32_t id)
{
    return id < streams.stream_structs ? streams.all[id] : NULL;
}

void stream_destroy(stream *s)
{
    uint32_t serial = (uint32_t)handle_serial((uintptr_t)s->handle, HANDLE_STREAM);
    streams.by_serial[serial] = NULL;
    if (sim.config.reuses_handles) {
        streams.gone[streams.gone_count++] = (gone_stream){serial, s->device};
    }
    sim.devices[s->device].stream_count--;
    s->is_destroyed = true;
    stream_recycle_unused(s);
}

/* --- reset ------------------------------------------------------------------------------- */

bool streams_init(uint32_t device_count)
{
    bool has_room = GMD_GROW(&streams.by_serial, &streams.serial_capacity, 1);
    while (has_room && streams.stream_structs < device_count) {
        has_room = add_structure();
    }
    return has_room;
}

/* Every structure is free then, and streams_init has made enough of them for what comes. */
void streams_reset(void)
{
    while (streams.open_count) {
        stream_close(streams.open[streams.open_count - 1]);
    }
    for (uint32_t i = 1; i < streams.serials; i++) {
        if (streams.by_serial[i]) {
            recycle(streams.by_serial[i]);
        }
    }
    for (stream *s; (s = streams.unnamed);) {
        streams.unnamed = s->next;
        recycle(s);
    }
    streams.serials = 1;
    streams.gone_count = 0;
    streams.by_serial[0] = NULL; /* what a handle that is none finds */
    for (uint32_t d = 0; d < sim.config.device_count; d++) {
        sim.devices[d].legacy = create_unnamed((int)d);
    }
}

void streams_reset_device(int device)
{
    for (uint32_t i = 1; i < streams.serials; i++) {
        stream *s = streams.by_serial[i];
        if (s && s->device == device) {
            streams.by_serial[i] = NULL;
            recycle(s);
        }
    }
    sim.devices[device].stream_count = 0;
}

/* --- validity ---------------------------------------------------------------------------- */

static const char *past_violation(const stream *s)
{
    for (uint32_t i = 0; s->before && i < s->before->count; i++) {
        const gmd_past_item *item = &s->before->items[i];
        const stream *on = stream_of_progress(item->on);
        if (item->ticket > on->tail || on == s ||
            (i && s->before->items[i - 1].on->id >= item->on->id)) {
            return "a past has tickets that were given, of other streams, in their order";
        }
    }
    return NULL;
}

static const char *stream_violation(const stream *s)
{
    if (s->head > s->tail || s->progress.known > s->tail) {
        return "no stream is further than what was queued on it";
    }
    if (s->tail - s->head > s->ring_size || s->ring_size & (s->ring_size - 1)) {
        return "the work of a stream fits its ring";
    }
    bool is_active = s->active_index < streams.active_count && streams.active[s->active_index] == s;
    if (is_active != (s->head != s->tail)) {
        return "the streams with work are active";
    }
    bool is_open = s->open_index < streams.open_count && streams.open[s->open_index] == s;
    if (is_open != s->is_open || (!is_open && s->progress.known != s->tail)) {
        return "the streams of which the host does not know that all is over are open";
    }
    const char *violation = due_violation(s);
    return violation ? violation : past_violation(s);
}

static const char *needed_violation(void)
{
    uint32_t needed = 0;
    for (uint32_t i = 0; i < streams.stream_structs; i++) {
        needed += streams.all[i]->need > streams.all[i]->head;
    }
    return needed == streams.needed_count ? NULL : "the streams that are waited for are counted";
}

const char *streams_violation(void)
{
    uint64_t named[GMD_SIM_DEVICE_MAX] = {0};
    for (uint32_t i = 0; i < streams.stream_structs; i++) {
        const char *violation = streams.all[i]->progress.id == i ? stream_violation(streams.all[i])
                                                                 : "a stream knows its number";
        if (violation) {
            return violation;
        }
    }
    for (uint32_t i = 1; i < streams.serials; i++) {
        const stream *s = streams.by_serial[i];
        if (s && (s->is_destroyed || (uintptr_t)s->handle != handle_make(HANDLE_STREAM, i))) {
            return "a handle is that of its stream";
        }
        if (s) {
            named[s->device]++;
        }
    }
    for (uint32_t d = 0; d < sim.config.device_count; d++) {
        if (sim.devices[d].stream_count != named[d]) {
            return "a device counts its streams";
        }
    }
    return needed_violation();
}
