#include "history.h"

#include "gmd_min.h"

#include <stdio.h>
#include <stdlib.h>

/* --- events ---------------------------------------------------------------------------------- */

static bool is_of_device(const history *h, const gmd_snapshot_event *e)
{
    return e->device == h->facts->recording.device;
}

static void number_events(history *h)
{
    const gmd_snapshot *s = h->facts->snapshot;
    for (size_t i = 0; i < s->event_count; i++) {
        h->event_count += is_of_device(h, &s->events[i]);
        h->event_of[i + 1] = h->event_count;
    }
}

/* By gmd_action. */
static uint8_t kind_of(uint8_t action)
{
    enum { OTHER = 8 };
    static const uint8_t kinds[] = {
        [GMD_ACTION_ALLOC] = 0,
        [GMD_ACTION_FREE_REQUESTED] = 1,
        [GMD_ACTION_FREE_COMPLETED] = 2,
        [GMD_ACTION_SEGMENT_ALLOC] = 3,
        [GMD_ACTION_SEGMENT_FREE] = 4,
        [GMD_ACTION_SEGMENT_MAP] = 5,
        [GMD_ACTION_SEGMENT_UNMAP] = 6,
        [GMD_ACTION_SNAPSHOT] = OTHER,
        [GMD_ACTION_OOM] = 7,
        [GMD_ACTION_OTHER] = OTHER,
    };
    return action < sizeof kinds ? kinds[action] : OTHER;
}

typedef struct event_columns {
    size_t kind, block, segment, time, request, number; /* 0 for the last three: there is none */
} event_columns;

/* The number of an event in the file, which other commands name it by, where it is not its own. */
static bool has_other_devices(const history *h)
{
    return h->event_count != h->facts->snapshot->event_count;
}

bool history_has_time(const history *h)
{
    const gmd_snapshot *s = h->facts->snapshot;
    return !h->source.counts_requests && s->event_count &&
           s->events[s->event_count - 1].time_us != s->events[0].time_us;
}

static event_columns new_event_columns(history *h)
{
    column_set *c = &h->to->columns;
    event_columns e = {.kind = columns_new(c, h->prefix, "e.kind", COLUMN_VARINT),
                       .block = columns_new(c, h->prefix, "e.block", COLUMN_VARINT),
                       .segment = columns_new(c, h->prefix, "e.segment", COLUMN_VARINT)};
    if (history_has_time(h)) {
        e.time = columns_new(c, h->prefix, "e.time", COLUMN_DELTA);
    } else if (h->source.counts_requests) {
        e.request = columns_new(c, h->prefix, "e.request", COLUMN_DELTA);
    }
    if (has_other_devices(h)) {
        e.number = columns_new(c, h->prefix, "e.number", COLUMN_DELTA);
    }
    return e;
}

static void put_event(history *h, const event_columns *to, size_t index, uint32_t range)
{
    column_set *c = &h->to->columns;
    const gmd_recording *r = &h->facts->recording;
    const gmd_snapshot_event *events = h->facts->snapshot->events, *e = &events[index];
    uint32_t lifetime = r->lifetime_of_event[index];
    columns_put(c, to->kind, kind_of(e->action));
    columns_put(c, to->block, lifetime == GMD_NO_LIFETIME ? 0 : h->block_of[lifetime] + 1);
    columns_put(c, to->segment, range);
    if (to->time) {
        columns_put(c, to->time, e->time_us - gmd_min(e->time_us, events[0].time_us));
    }
    if (to->request) {
        columns_put(c, to->request, e->time_us);
    }
    if (to->number) {
        columns_put(c, to->number, index);
    }
}

/* A step is of the last range that the event took or gave back. */
static void put_events(history *h)
{
    enum { BEFORE = 8 };
    const gmd_recording *r = &h->facts->recording;
    event_columns to = new_event_columns(h);
    column_set *c = &h->to->columns;
    size_t step = 0;
    columns_put(c, to.kind, BEFORE);
    columns_put(c, to.block, 0);
    columns_put(c, to.segment, 0);
    if (to.time) {
        columns_put(c, to.time, 0);
    }
    if (to.request) {
        columns_put(c, to.request, 0);
    }
    if (to.number) {
        columns_put(c, to.number, 0);
    }
    for (size_t i = 0; i < h->facts->snapshot->event_count; i++) {
        uint32_t range = 0;
        for (; step < r->step_count && r->steps[step].moment <= i + 1; step++) {
            range = r->steps[step].moment == i + 1 ? r->steps[step].range + 1 : 0;
        }
        if (is_of_device(h, &h->facts->snapshot->events[i])) {
            put_event(h, &to, i, range);
        }
    }
}

/* --- blocks ---------------------------------------------------------------------------------- */

typedef struct block_columns {
    size_t alloc, free, asked, address, size, requested, stream, pool, category, stack, line;
} block_columns;

static block_columns new_block_columns(history *h)
{
    column_set *c = &h->to->columns;
    const char *prefix = h->prefix;
    return (block_columns){.alloc = columns_new(c, prefix, "b.alloc", COLUMN_DELTA),
                           .free = columns_new(c, prefix, "b.free", COLUMN_VARINT),
                           .asked = columns_new(c, prefix, "b.asked", COLUMN_VARINT),
                           .address = columns_new(c, prefix, "b.address", COLUMN_DELTA),
                           .size = columns_new(c, prefix, "b.size", COLUMN_VARINT),
                           .requested = columns_new(c, prefix, "b.requested", COLUMN_VARINT),
                           .stream = columns_new(c, prefix, "b.stream", COLUMN_VARINT),
                           .pool = columns_new(c, prefix, "b.pool", COLUMN_VARINT),
                           .category = columns_new(c, prefix, "b.category", COLUMN_VARINT),
                           .stack = columns_new(c, prefix, "b.stack", COLUMN_DELTA),
                           .line = columns_new(c, prefix, "b.line", COLUMN_DELTA)};
}

/* How many events after `from` a moment is; 0: it is not in the history. */
static uint32_t events_until(const history *h, uint32_t moment, uint32_t from)
{
    return moment == GMD_NEVER ? 0 : h->event_of[moment] - from;
}

static uint32_t stream_of(history *h, uint64_t handle)
{
    uint32_t number = 0;
    if (!gmd_interned_add(&h->streams, &handle, sizeof handle, &number)) {
        h->to->has_failed = true;
    }
    return number;
}

/* Ranges of private pools, by address: all are there at the end, so that no two share any. */
typedef struct private_ranges {
    const gmd_reserved **items;
    size_t count;
} private_ranges;

static int compare_ranges(const void *a, const void *b)
{
    const gmd_reserved *const *x = a, *const *y = b;
    return ((*x)->address > (*y)->address) - ((*x)->address < (*y)->address);
}

static bool list_private(const history *h, private_ranges *to)
{
    const gmd_recording *r = &h->facts->recording;
    *to = (private_ranges){.items = malloc((r->reserved_count + 1) * sizeof *to->items)};
    for (size_t i = 0; to->items && i < r->reserved_count; i++) {
        if (r->reserved[i].is_private) {
            to->items[to->count++] = &r->reserved[i];
        }
    }
    if (to->count) {
        qsort(to->items, to->count, sizeof *to->items, compare_ranges);
    }
    return to->items != NULL;
}

static bool is_in_private(const private_ranges *ranges, const gmd_lifetime *l)
{
    size_t low = 0, high = ranges->count;
    while (low < high) { /* the first that begins behind the block's beginning */
        size_t middle = low + (high - low) / 2;
        if (ranges->items[middle]->address <= l->address) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    const gmd_reserved *r = low ? ranges->items[low - 1] : NULL;
    return r && l->address - r->address < r->size && gmd_is_reserved_at(r, l->born);
}

static void put_block(history *h, const block_columns *to, size_t lifetime,
                      const private_ranges *ranges)
{
    column_set *c = &h->to->columns;
    const gmd_lifetime *l = &h->facts->recording.lifetimes[lifetime];
    uint32_t born = h->event_of[l->born];
    columns_put(c, to->alloc, born);
    columns_put(c, to->free, events_until(h, l->released, born));
    columns_put(c, to->asked, events_until(h, l->freed, born));
    columns_put(c, to->address, l->address - h->address_base);
    columns_put(c, to->size, l->size);
    columns_put(c, to->requested, l->requested);
    columns_put(c, to->stream, stream_of(h, l->stream));
    columns_put(c, to->pool, is_in_private(ranges, l));
    columns_put(c, to->category, h->source.is_job ? h->facts->categories.of_lifetime[lifetime] : 0);
    columns_put(c, to->stack, stacks_node(&h->stacks, l->origin));
    columns_put(c, to->line, stacks_line(&h->stacks, l->origin));
}

/* Those that were there from the start come first; the others are in order already. */
static void number_blocks(history *h)
{
    const gmd_recording *r = &h->facts->recording;
    uint32_t number = 0;
    for (int from_start = 1; from_start >= 0; from_start--) {
        for (size_t i = 0; i < r->lifetime_count; i++) {
            if ((r->lifetimes[i].born == GMD_BEFORE) == from_start) {
                h->block_of[i] = number++;
            }
        }
    }
}

static void put_blocks(history *h, const private_ranges *ranges)
{
    const gmd_recording *r = &h->facts->recording;
    block_columns to = new_block_columns(h);
    for (int from_start = 1; from_start >= 0; from_start--) {
        for (size_t i = 0; i < r->lifetime_count; i++) {
            if ((r->lifetimes[i].born == GMD_BEFORE) == from_start) {
                put_block(h, &to, i, ranges);
            }
        }
    }
}

/* --- out of memory --------------------------------------------------------------------------- */

static void put_ooms(history *h)
{
    column_set *c = &h->to->columns;
    const gmd_ooms *ooms = &h->device->ooms;
    size_t event = columns_new(c, h->prefix, "o.event", COLUMN_DELTA),
           bytes = columns_new(c, h->prefix, "o.bytes", COLUMN_VARINT),
           item = columns_new(c, h->prefix, "o.item", COLUMN_VARINT);
    for (size_t i = 0; i < ooms->event_count; i++) {
        const gmd_oom_event *e = &ooms->events[i];
        columns_put(c, event, h->event_of[e->moment]);
        columns_put(c, bytes, gmd_event_at(&h->facts->recording, e->moment)->size);
        columns_put(c, item, e->item == GMD_NO_OOM ? 0 : (uint64_t)e->item + 1);
    }
}

/* --- segments -------------------------------------------------------------------------------- */

static void put_segments(history *h)
{
    enum { SMALL, LARGE, EXPANDABLE };
    column_set *c = &h->to->columns;
    const gmd_recording *r = &h->facts->recording;
    size_t alloc = columns_new(c, h->prefix, "s.alloc", COLUMN_DELTA),
           freed = columns_new(c, h->prefix, "s.free", COLUMN_VARINT),
           address = columns_new(c, h->prefix, "s.address", COLUMN_DELTA),
           size = columns_new(c, h->prefix, "s.size", COLUMN_VARINT),
           stream = columns_new(c, h->prefix, "s.stream", COLUMN_VARINT),
           pool = columns_new(c, h->prefix, "s.pool", COLUMN_VARINT),
           kind = columns_new(c, h->prefix, "s.kind", COLUMN_VARINT),
           stack = columns_new(c, h->prefix, "s.stack", COLUMN_VARINT);
    for (size_t i = 0; i < r->reserved_count; i++) {
        const gmd_reserved *s = &r->reserved[i];
        uint32_t taken = h->event_of[s->taken];
        columns_put(c, alloc, taken);
        columns_put(c, freed, events_until(h, s->given, taken));
        columns_put(c, address, s->address - h->address_base);
        columns_put(c, size, s->size);
        columns_put(c, stream, stream_of(h, s->stream));
        columns_put(c, pool, s->is_private);
        columns_put(c, kind, s->is_mapped ? EXPANDABLE : gmd_reserved_is_small(s) ? SMALL : LARGE);
        columns_put(c, stack, stacks_node(&h->stacks, s->origin));
    }
}

/* --- the whole ------------------------------------------------------------------------------- */

static uint64_t lowest_address(const gmd_recording *r)
{
    uint64_t lowest = UINT64_MAX;
    for (size_t i = 0; i < r->lifetime_count; i++) {
        lowest = gmd_min(lowest, r->lifetimes[i].address);
    }
    for (size_t i = 0; i < r->reserved_count; i++) {
        lowest = gmd_min(lowest, r->reserved[i].address);
    }
    return lowest == UINT64_MAX ? 0 : lowest;
}

gmd_status history_make(history *h, document *to, const gmd_device_diagnosis *device,
                        uint32_t number, history_source source, gmd_error *error)
{
    const gmd_facts *facts = &device->facts;
    private_ranges ranges = {0};
    *h = (history){.to = to,
                   .device = device,
                   .facts = facts,
                   .number = number,
                   .source = source,
                   .address_base = lowest_address(&facts->recording),
                   .event_of = calloc(facts->snapshot->event_count + 1, sizeof *h->event_of),
                   .block_of = calloc(facts->recording.lifetime_count + 1, sizeof *h->block_of)};
    snprintf(h->prefix, sizeof h->prefix, "h%u.", number);
    gmd_status status = stacks_begin(&h->stacks, to, &facts->places, h->prefix, error);
    bool has_memory = status == GMD_OK && h->event_of && h->block_of && list_private(h, &ranges);
    if (has_memory) {
        number_events(h);
        number_blocks(h);
        put_events(h);
        put_blocks(h, &ranges);
        put_ooms(h);
        put_segments(h);
    } else {
        status = status == GMD_OK
                     ? gmd_fail(error, GMD_NO_MEMORY, "no host memory for a history of the page")
                     : status;
        history_free(h);
    }
    free(ranges.items);
    return status;
}

void history_free(history *h)
{
    free(h->event_of);
    free(h->block_of);
    gmd_interned_free(&h->streams);
    stacks_free(&h->stacks);
    *h = (history){0};
}
