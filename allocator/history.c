#include "history.h"

#include "pending_queues.h"

#include "gmd_grow.h"
#include "gmd_min.h"

#include <stdlib.h>
#include <string.h>

#define MOST_ENTRIES ((uint64_t)1 << 40) /* no more than there is host memory for */

bool history_open(device_allocator *d, heap *h)
{
    if (!d->history.max_entries) {
        return true;
    }
    h->history = history_ring_create(d->history.max_entries, d->history.epoch);
    if (h->history) {
        h->history->skipped = d->skipped;
        h->history->notes = d->has_notes ? d->stacks : NULL;
    }
    return h->history != NULL;
}

/* --- on and off --------------------------------------------------------------------------- */

static void forget_block_stacks(heap *h)
{
    for (uint64_t i = 0; h->allocated.slots && i <= h->allocated.mask; i++) {
        block *b = block_map_at(&h->allocated, i);
        if (b) {
            block_detail_of(b)->stack = 0;
        }
    }
}

static void forget_pending_stack(void *context, block *b)
{
    (void)context;
    block_detail_of(b)->stack = 0;
}

static void drop_all(device_allocator *d)
{
    for (heap *h = d->heaps; h; h = h->next_of_device) {
        free(h->history);
        h->history = NULL;
    }
    free(d->history.past);
    segment_stacks_release(&d->history.segments);
    d->history = (history){0};
    atomic_store_explicit(&d->captures, 0, memory_order_relaxed);
}

static void capture(device_allocator *d, gmd_stacks which)
{
    uint64_t captures = (uint64_t)d->history.epoch << 32 | (uint64_t)which;
    atomic_store_explicit(&d->captures, captures, memory_order_relaxed);
}

/* A detail holds what its last owner left. */
static void begin_stacks(device_allocator *d)
{
    d->history.epoch = stacks_new_epoch();
    for (heap *h = d->heaps; h; h = h->next_of_device) {
        forget_block_stacks(h);
    }
    pending_each(&d->pending, forget_pending_stack, NULL);
}

bool history_change_stacks(device_allocator *d, gmd_stacks which)
{
    if (!d->history.max_entries) {
        return false;
    }
    if (which != GMD_STACKS_OFF && !d->history.epoch) {
        begin_stacks(d);
    }
    for (heap *h = d->heaps; h; h = h->next_of_device) {
        h->history->epoch = d->history.epoch;
        h->history->skipped = d->skipped;
    }
    capture(d, which);
    return true;
}

bool history_switch(device_allocator *d, uint64_t max_entries, gmd_stacks which)
{
    drop_all(d);
    if (!max_entries) {
        return true;
    }
    d->history.max_entries = gmd_min(max_entries, MOST_ENTRIES);
    d->history.start = ticks_moment_now();
    if (which != GMD_STACKS_OFF) {
        begin_stacks(d);
    }
    for (heap *h = d->heaps; h; h = h->next_of_device) {
        if (!history_open(d, h)) {
            drop_all(d);
            return false;
        }
    }
    capture(d, which);
    return true;
}

void history_carry_notes(device_allocator *d)
{
    d->has_notes = true;
    for (heap *h = d->heaps; h; h = h->next_of_device) {
        if (h->history) {
            h->history->notes = d->stacks;
        }
    }
}

/* --- events ------------------------------------------------------------------------------- */

void history_note(device_allocator *d, history_kind kind, uint64_t address, uint64_t size,
                  const free_set *set)
{
    history_add(set->heap, kind, address, size);
    if (!d->history.epoch) {
        return;
    }
    if (kind == HISTORY_SEGMENT_ALLOC || kind == HISTORY_SEGMENT_MAP) {
        segment_stacks_add(&d->history.segments, address, stacks_current(d->history.epoch));
    } else {
        segment_stacks_remove(&d->history.segments, address, size);
    }
}

/* It concerns no stream: any ring will do. No request made it, so the thread's latest stack, which
 * is of its latest request, is not its own. */
void history_note_snapshot(device_allocator *d, uint64_t active_bytes)
{
    if (d->heaps && d->heaps->history) {
        history_put(d->heaps, HISTORY_SNAPSHOT, ticks_now(), 0, active_bytes, 0);
    }
}

/* --- in one order ------------------------------------------------------------------------- */

static uint64_t ring_count(const device_allocator *d, const history_ring *r)
{
    return r ? gmd_min(gmd_min(r->count, r->mask + 1), d->history.max_entries) : 0;
}

/* The order within a ring is certain; a reading of the clock may be a few ns early. */
static size_t copy_ring(const device_allocator *d, const heap *h, history_event *to)
{
    const history_ring *r = h->history;
    size_t count = ring_count(d, r);
    uint64_t ticks = 0;
    for (size_t i = 0; i < count; i++) {
        history_entry e = r->entries[(r->count - count + i) & r->mask];
        ticks = gmd_max(e.ticks, ticks);
        e.ticks = ticks;
        to[i] = (history_event){e, e.kind == HISTORY_SNAPSHOT ? NULL : h->stream};
    }
    return count;
}

/* Runs that follow each other, [from, middle) and [middle, end), into one; of equal ticks the first
 * run's event comes first. */
static void merge(const history_event *from, const history_event *middle, const history_event *end,
                  history_event *to)
{
    const history_event *second = middle;
    while (from < middle && second < end) {
        *to++ = second->entry.ticks < from->entry.ticks ? *second++ : *from++;
    }
    memcpy(to, from, (size_t)(middle - from) * sizeof *to);
    to += middle - from;
    memcpy(to, second, (size_t)(end - second) * sizeof *to);
}

/* Pairs of neighbouring runs until one is left; run i is from starts[i] to starts[i + 1]. Gives
 * where the events are then. */
static history_event *merge_runs(history_event *events, history_event *spare, size_t *starts,
                                 size_t count)
{
    while (count > 1) {
        size_t merged = 0;
        for (size_t i = 0; i < count; i += 2) {
            size_t middle = starts[i + 1], end = i + 2 <= count ? starts[i + 2] : middle;
            merge(events + starts[i], events + middle, events + end, spare + starts[i]);
            starts[merged++] = starts[i];
        }
        starts[merged] = starts[count];
        count = merged;
        history_event *swapped = events;
        events = spare;
        spare = swapped;
    }
    return events;
}

static bool is_run_start(const history_event *events, size_t i)
{
    return i == 0 || events[i].entry.ticks < events[i - 1].entry.ticks;
}

/* Stable, and quick where long runs are in order already. False: no host memory. */
static bool sort(history_event **events, size_t count)
{
    size_t run_count = 0;
    for (size_t i = 0; i < count; i++) {
        run_count += is_run_start(*events, i);
    }
    if (run_count < 2) {
        return true;
    }
    history_event *spare = malloc(count * sizeof *spare);
    size_t *starts = malloc((run_count + 1) * sizeof *starts);
    if (spare && starts) {
        run_count = 0;
        for (size_t i = 0; i < count; i++) {
            if (is_run_start(*events, i)) {
                starts[run_count++] = i;
            }
        }
        starts[run_count] = count;
        history_event *sorted = merge_runs(*events, spare, starts, run_count);
        spare = sorted == spare ? *events : spare;
        *events = sorted;
    }
    bool is_sorted = spare && starts;
    free(spare);
    free(starts);
    return is_sorted;
}

/* In order, and only the latest of them. */
static bool sort_latest(const device_allocator *d, history_event **events, size_t *count)
{
    if (!sort(events, *count)) {
        return false;
    }
    size_t kept = gmd_min(*count, d->history.max_entries);
    memmove(*events, *events + (*count - kept), kept * sizeof **events);
    *count = kept;
    return true;
}

bool history_collect(const device_allocator *d, history_event **events, size_t *count)
{
    size_t total = d->history.past_count;
    for (const heap *h = d->heaps; h; h = h->next_of_device) {
        total += ring_count(d, h->history);
    }
    history_event *all = malloc((total + 1) * sizeof *all);
    if (!all) {
        return false;
    }
    size_t end = d->history.past_count;
    if (end) {
        memcpy(all, d->history.past, end * sizeof *all);
    }
    for (const heap *h = d->heaps; h; h = h->next_of_device) {
        end += copy_ring(d, h, all + end);
    }
    bool is_sorted = sort_latest(d, &all, &total);
    if (!is_sorted) {
        free(all);
        return false;
    }
    *events = all;
    *count = total;
    return true;
}

static bool reserve_past(history *past, size_t more)
{
    return GMD_GROW(&past->past, &past->past_capacity, past->past_count + more);
}

/* Without host memory the heap's events are lost. */
void history_retire(device_allocator *d, heap *h)
{
    history *all = &d->history;
    if (!h->history || !reserve_past(all, ring_count(d, h->history))) {
        return;
    }
    all->past_count += copy_ring(d, h, all->past + all->past_count);
    if (all->past_count / 2 > all->max_entries) {
        history_event *before = all->past;
        if (sort_latest(d, &all->past, &all->past_count) && all->past != before) {
            all->past_capacity = all->past_count;
        }
    }
}
