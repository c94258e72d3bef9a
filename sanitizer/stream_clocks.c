#include "stream_clocks.h"

#include "gmd_grow.h"

#include <stdlib.h>

#define STREAMS_MOST  4096
#define DEVICES_MOST  128
#define LEGACY_HANDLE 1
#define THREAD_HANDLE 2

void stream_clocks_free(stream_clocks *all)
{
    for (uint32_t i = 0; i < all->count; i++) {
        gmd_past_drop(all->all[i]->before);
        free(all->all[i]->pending);
        free(all->all[i]);
    }
    for (uint32_t i = 0; i < all->device_count; i++) {
        free(all->devices[i].blocking);
    }
    free(all->devices);
    free(all->all);
    handle_table_free(&all->by_name);
    *all = (stream_clocks){0};
}

/* Handles are addresses: small numbers and those with the uppermost bit are free for the others. */
uint64_t stream_key(order_stream name)
{
    uint64_t device = (uint32_t)name.device % DEVICES_MOST;
    if (name.handle > THREAD_HANDLE) {
        return name.handle;
    }
    return name.handle == THREAD_HANDLE
               ? UINT64_C(1) << 63 | device << 52 | (name.thread & ((UINT64_C(1) << 52) - 1))
               : 1 + device;
}

static bool is_legacy(order_stream name)
{
    return name.handle <= LEGACY_HANDLE;
}

static device_clocks *device_of(stream_clocks *all, int device)
{
    uint32_t index = (uint32_t)device % DEVICES_MOST;
    if (index >= all->device_count) {
        device_clocks *more = realloc(all->devices, (index + 1) * sizeof *more);
        if (!more) {
            return NULL;
        }
        for (uint32_t i = all->device_count; i <= index; i++) {
            more[i] = (device_clocks){0};
        }
        all->devices = more;
        all->device_count = index + 1;
    }
    return &all->devices[index];
}

stream_clock *stream_clocks_find(const stream_clocks *all, order_stream name)
{
    return handle_table_get(&all->by_name, stream_key(name));
}

/* --- structures -------------------------------------------------------------------------- */

/* Spare are the destroyed streams whose work the host knows to be over. */
static void collect_gone(stream_clocks *all, bool also_others)
{
    for (stream_clock **link = &all->gone; *link;) {
        stream_clock *s = *link;
        if (!also_others && !stream_clock_is_over(s, s->tail)) {
            link = &s->next;
            continue;
        }
        s->progress.known = s->tail;
        *link = s->next;
        s->next = all->spare;
        all->spare = s;
    }
}

static stream_clock *new_structure(stream_clocks *all)
{
    if (!GMD_GROW(&all->all, &all->capacity, all->count + 1)) {
        return NULL;
    }
    stream_clock *s = calloc(1, sizeof *s);
    if (s) {
        s->progress.id = all->count;
        all->all[all->count++] = s;
    }
    return s;
}

/* At the bound what destroyed streams had queued is taken to be over: nobody is accused for it. */
static stream_clock *take_structure(stream_clocks *all)
{
    if (!all->spare && all->gone) {
        collect_gone(all, all->count >= STREAMS_MOST);
    }
    stream_clock *s = all->spare;
    if (!s) {
        return all->count < STREAMS_MOST ? new_structure(all) : NULL;
    }
    all->spare = s->next;
    gmd_past_drop(s->before);
    free(s->pending);
    *s = (stream_clock){.progress = {.id = s->progress.id, .known = s->tail},
                        .tail = s->tail,
                        .epoch = s->epoch + 1};
    return s;
}

static bool join_device(stream_clocks *all, stream_clock *s)
{
    device_clocks *d = device_of(all, s->name.device);
    if (!d) {
        return false;
    }
    if (is_legacy(s->name)) {
        d->legacy = s;
    } else if (s->is_blocking) {
        if (!GMD_GROW(&d->blocking, &d->blocking_capacity, d->blocking_count + 1)) {
            return false;
        }
        s->seen_by_default = s->tail;
        d->blocking[d->blocking_count++] = s;
    }
    return true;
}

static void leave_device(stream_clocks *all, stream_clock *s)
{
    device_clocks *d = device_of(all, s->name.device);
    for (uint32_t i = 0; d && s->is_blocking && i < d->blocking_count; i++) {
        if (d->blocking[i] == s) {
            d->blocking[i] = d->blocking[--d->blocking_count];
            return;
        }
    }
}

static void put_back(stream_clocks *all, stream_clock *s)
{
    s->is_gone = true;
    s->next = all->gone;
    all->gone = s;
}

stream_clock *stream_clocks_create(stream_clocks *all, order_stream name, bool is_blocking)
{
    stream_clocks_destroy(all, name);
    stream_clock *s = take_structure(all);
    if (!s) {
        return NULL;
    }
    s->name = name;
    s->is_blocking = is_blocking || name.handle <= THREAD_HANDLE;
    if (!join_device(all, s) || !handle_table_set(&all->by_name, stream_key(name), s)) {
        leave_device(all, s);
        put_back(all, s);
        return NULL;
    }
    return s;
}

stream_clock *stream_clocks_get(stream_clocks *all, order_stream name)
{
    stream_clock *s = stream_clocks_find(all, name);
    return s ? s : stream_clocks_create(all, name, false);
}

stream_clock *stream_clocks_create_captured(stream_clocks *all, const stream_clock *of,
                                            struct capture *capture)
{
    stream_clock *s = take_structure(all);
    if (s) {
        s->name = of->name;
        s->capture = capture;
    }
    return s;
}

/* The order within a graph matters to nobody outside. */
void stream_clocks_end_captured(stream_clocks *all, stream_clock *s)
{
    s->progress.known = s->tail;
    put_back(all, s);
}

/* Destroying a blocking stream must not let the default stream forget to wait for it. */
void stream_clocks_destroy(stream_clocks *all, order_stream name)
{
    stream_clock *s = handle_table_remove(&all->by_name, stream_key(name));
    if (!s) {
        return;
    }
    device_clocks *d = device_of(all, s->name.device);
    if (d && d->legacy && d->legacy != s && s->is_blocking) {
        stream_clock_follow(d->legacy, stream_clock_point(s));
    }
    if (d && d->legacy == s) {
        d->legacy = NULL;
    }
    leave_device(all, s);
    put_back(all, s);
}

/* --- order ------------------------------------------------------------------------------- */

bool stream_clock_follow(stream_clock *s, clock_point p)
{
    if (!p.on || stream_clock_is_after(s, p.on, p.ticket)) {
        return true;
    }
    gmd_past *joined;
    gmd_past_item item = {&p.on->progress, p.ticket};
    if (!gmd_past_join(s->before, p.before, item, &s->progress, &joined)) {
        return false;
    }
    gmd_past_drop(s->before);
    s->before = joined;
    return true;
}

static bool order_default_after_all(device_clocks *d, stream_clock *s)
{
    if (d->saw_entries == d->blocking_entries) {
        return true;
    }
    for (uint32_t i = 0; i < d->blocking_count; i++) {
        stream_clock *other = d->blocking[i];
        if (other->seen_by_default != other->tail) {
            if (!stream_clock_follow(s, stream_clock_point(other))) {
                return false;
            }
            other->seen_by_default = other->tail;
        }
    }
    d->saw_entries = d->blocking_entries;
    return true;
}

bool stream_clock_order_default(stream_clocks *all, stream_clock *s)
{
    if (!s->is_blocking || s->capture) {
        return true;
    }
    device_clocks *d = device_of(all, s->name.device);
    if (!d || !d->legacy) {
        return d != NULL;
    }
    if (s == d->legacy) {
        return order_default_after_all(d, s);
    }
    if (s->saw_default == d->legacy->tail) {
        return true;
    }
    s->saw_default = d->legacy->tail;
    return stream_clock_follow(s, stream_clock_point(d->legacy));
}

bool stream_clock_push(stream_clocks *all, stream_clock *s)
{
    bool is_ordered = stream_clock_order_default(all, s);
    s->tail++;
    device_clocks *d = s->is_blocking && !s->capture ? device_of(all, s->name.device) : NULL;
    if (d && s != d->legacy) {
        d->blocking_entries++;
    }
    return is_ordered;
}

/* --- what the host knows ----------------------------------------------------------------- */

/* Every past is closed, so that what lies before a ticket that is known is known as well. */
static void learn(stream_clock *s, uint64_t ticket)
{
    if (s->progress.known < ticket) {
        s->progress.known = ticket;
    }
}

void stream_clocks_learn(clock_point p)
{
    if (!p.on || stream_clock_is_over(p.on, p.ticket)) {
        return;
    }
    for (uint32_t i = 0; p.before && i < p.before->count; i++) {
        learn((stream_clock *)p.before->items[i].on, p.before->items[i].ticket);
    }
    learn(p.on, p.ticket);
}

void stream_clocks_learn_device(stream_clocks *all, int device)
{
    for (uint32_t i = 0; i < all->count; i++) {
        stream_clock *s = all->all[i];
        if (s->name.device == device && !s->capture) {
            stream_clocks_learn(stream_clock_point(s));
        }
    }
}
