#include "gmd_history.h"

#include "deferred.h"
#include "expandable.h"
#include "free_runs.h"
#include "gmd_address_table.h"
#include "memory_limit.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- several devices --------------------------------------------------------------------- */

static bool is_allocation(const gmd_snapshot_event *e)
{
    return e->action == GMD_ACTION_ALLOC || e->action == GMD_ACTION_OOM;
}

/* Whether other devices gave segments back between two events: then an empty_cache() was under way,
 * which goes through all devices, and not a retry, which concerns one. */
static bool is_emptying(const gmd_snapshot_event *events, size_t from, size_t to)
{
    for (size_t i = from + 1; i < to; i++) {
        if (event_gives(&events[i])) {
            return true;
        }
    }
    return false;
}

/* Whether event `to`, the next of its device after `from`, belongs with it. */
static bool belongs(const gmd_snapshot_event *events, size_t from, size_t to)
{
    const gmd_snapshot_event *e = &events[to];
    switch (events[from].action) {
    case GMD_ACTION_FREE_REQUESTED:
        return e->action == GMD_ACTION_FREE_COMPLETED && e->address == events[from].address;
    case GMD_ACTION_SEGMENT_ALLOC:
        return is_allocation(e);
    case GMD_ACTION_SEGMENT_MAP:
        return is_allocation(e) || e->action == GMD_ACTION_SEGMENT_MAP;
    case GMD_ACTION_SEGMENT_FREE:
    case GMD_ACTION_SEGMENT_UNMAP:
        return event_gives(e) ||
               ((event_takes(e) || e->action == GMD_ACTION_OOM) && !is_emptying(events, from, to));
    default:
        return false;
    }
}

/* Each device has its own allocator and its own lock, so events of several devices interleave. Here
 * those that belong together (segments and their allocation, a free and its completion) are made
 * neighbours again, at the place of the first of them. `next` gives each event's successor on its
 * device. */
static void regroup(const gmd_snapshot_event *from, const size_t *next, size_t count,
                    bool *is_taken, gmd_snapshot_event *to)
{
    size_t filled = 0;
    for (size_t i = 0; i < count; i++) {
        if (is_taken[i]) {
            continue;
        }
        to[filled++] = from[i];
        size_t at = i;
        for (size_t k = next[i]; k < count && belongs(from, at, k); k = next[k]) {
            to[filled++] = from[k];
            is_taken[k] = true;
            at = k;
        }
    }
}

static void link_devices(const gmd_snapshot_event *events, size_t count, size_t *next)
{
    size_t last[GMD_MAX_DEVICES];
    for (int device = 0; device < GMD_MAX_DEVICES; device++) {
        last[device] = count;
    }
    for (size_t i = count; i-- > 0;) {
        next[i] = last[events[i].device];
        last[events[i].device] = i;
    }
}

/* A copy of the snapshot's events in which groups are whole; NULL: no host memory. */
static gmd_snapshot_event *events_by_group(const gmd_snapshot *s)
{
    gmd_snapshot_event *grouped = malloc((s->event_count + 1) * sizeof *grouped);
    size_t *next = malloc((s->event_count + 1) * sizeof *next);
    bool *is_taken = calloc(s->event_count + 1, sizeof *is_taken);
    bool has_memory = grouped && next && is_taken;
    if (has_memory) {
        link_devices(s->events, s->event_count, next);
        regroup(s->events, next, s->event_count, is_taken, grouped);
    } else {
        free(grouped);
    }
    free(next);
    free(is_taken);
    return has_memory ? grouped : NULL;
}

/* --- streams ----------------------------------------------------------------------------- */

typedef struct handle_list { /* ascending */
    uint64_t *items;
    uint32_t count;
} handle_list;

/* The number of handles below `handle`. */
static uint32_t handles_below(const handle_list *list, uint64_t handle)
{
    uint32_t low = 0, high = list->count;
    while (low < high) {
        uint32_t middle = (low + high) / 2;
        if (list->items[middle] < handle) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

/* False: the list is full. */
static bool add_handle(handle_list *list, uint64_t handle)
{
    uint32_t at = handles_below(list, handle);
    if (at < list->count && list->items[at] == handle) {
        return true;
    }
    if (list->count == GMD_MAX_STREAMS) {
        return false;
    }
    memmove(&list->items[at + 1], &list->items[at], (list->count - at) * sizeof *list->items);
    list->items[at] = handle;
    list->count++;
    return true;
}

/* Gives trace.streams one entry for each handle, in ascending order: the order in which the
 * recorded allocator gave its cache back. The default stream (0) is there already. */
static gmd_status number_streams(gmd_trace *trace, const gmd_snapshot *s, const char *name,
                                 gmd_error *error)
{
    handle_list list = {.items = malloc(GMD_MAX_STREAMS * sizeof *list.items)};
    if (!list.items) {
        return gmd_fail(error, GMD_NO_MEMORY, "%s: no host memory", name);
    }
    trace->stream_handles = list.items;
    add_handle(&list, 0);
    for (size_t i = 0; i < s->event_count; i++) {
        bool is_new = i == 0 || s->events[i].stream != s->events[i - 1].stream;
        if (is_new && !add_handle(&list, s->events[i].stream)) {
            return gmd_fail(error, GMD_BAD_INPUT, "%s: event %zu: more than %d streams", name, i,
                            GMD_MAX_STREAMS);
        }
    }
    gmd_status status = GMD_OK;
    for (uint32_t i = 1, index; i < list.count && status == GMD_OK; i++) {
        status = gmd_names_add(&trace->streams, NULL, &index, error);
    }
    return status;
}

static uint32_t stream_index(const gmd_trace *trace, uint64_t handle)
{
    const handle_list list = {trace->stream_handles, trace->streams.count};
    return handles_below(&list, handle); /* it is in there */
}

/* --- requests ---------------------------------------------------------------------------- */

/* Stands for a free whose block is from before the recording. */
#define NO_REQUEST UINT32_MAX

typedef struct builder {
    gmd_history *history;
    const gmd_snapshot *snapshot;
    const char *name;
    gmd_address_table live;     /* blocks */
    gmd_address_table waiting;  /* blocks whose free has been asked for and is not complete: its
                                   request; NO_REQUEST */
    gmd_address_table segments; /* address -> its call */
    expandable_segments expandable;
    deferred_plan deferred; /* events NULL: such frees are plain frees */
    uint32_t first_helper;  /* stream of the deferred plan's first */
    size_t *born;           /* by block: its allocation's request */
    uint32_t first_call;    /* calls from here on belong to the request to come */
    bool frees_refused;     /* of the hints */
    int emptied_device;     /* of the last run that became an empty_cache() */
    free_runs runs;
    size_t next_run;
    gmd_error *error;
} builder;

static gmd_status add_request(builder *b, const gmd_request *request, size_t event,
                              uint64_t address, bool is_oom)
{
    gmd_history *h = b->history;
    gmd_status status = gmd_trace_append(&h->trace, request, b->error);
    if (status == GMD_OK) {
        const gmd_snapshot_event *e = &b->snapshot->events[event];
        h->recorded[h->trace.count - 1] =
            (gmd_recorded){.address = address,
                           .event = event,
                           .origin = e->origin,
                           .completed_origin = e->origin,
                           .time_us = e->time_us,
                           .first_call = b->first_call,
                           .call_count = (uint32_t)h->call_count - b->first_call,
                           .is_oom = is_oom};
        b->first_call = (uint32_t)h->call_count;
    }
    return status;
}

__attribute__((format(printf, 3, 4))) static gmd_status contradiction(builder *b, size_t event,
                                                                      const char *format, ...)
{
    char text[400];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    return gmd_fail(b->error, GMD_BAD_INPUT, "%s: event %zu (request %zu): %s", b->name, event,
                    b->history->trace.count, text);
}

/* A request that the recorded program did not make: it has no part in what was recorded. */
static gmd_status add_own_request(builder *b, const gmd_request *request, size_t event)
{
    uint32_t first_call = b->first_call;
    b->first_call = (uint32_t)b->history->call_count;
    gmd_status status = add_request(b, request, event, 0, false);
    b->first_call = first_call;
    if (status == GMD_OK) {
        b->history->recorded[b->history->trace.count - 1].origin = 0;
    }
    return status;
}

/* Where something is counted, the first place is kept. */
static void count_with_place(builder *b, uint64_t *count, uint64_t *first)
{
    if ((*count)++ == 0) {
        *first = b->history->trace.count;
    }
}

static gmd_recorded_call *add_call(builder *b, const gmd_snapshot_event *e)
{
    gmd_recorded_call *call = &b->history->calls[b->history->call_count++];
    *call = (gmd_recorded_call){.address = e->address,
                                .size = e->size,
                                .is_free = event_gives(e),
                                .is_mapping = e->action == GMD_ACTION_SEGMENT_MAP ||
                                              e->action == GMD_ACTION_SEGMENT_UNMAP,
                                .device = e->device};
    b->history->mapped_events += call->is_mapping;
    return call;
}

static gmd_status add_segment_alloc(builder *b, const gmd_snapshot_event *e, size_t event)
{
    if (!e->address ||
        !gmd_address_table_put(&b->segments, e->address, (uint32_t)b->history->call_count)) {
        return contradiction(b, event, "segment_alloc at 0x%" PRIx64 ", where a segment is already",
                             e->address);
    }
    add_call(b, e);
    return GMD_OK;
}

static gmd_status add_segment_map(builder *b, const gmd_snapshot_event *e)
{
    expandable_answer answer = expandable_map(&b->expandable, e);
    if (answer == EXPANDABLE_NO_MEMORY) {
        return gmd_fail(b->error, GMD_NO_MEMORY, "%s: no host memory", b->name);
    }
    add_call(b, e)->opens_segment = answer == EXPANDABLE_NEW;
    return GMD_OK;
}

static gmd_status add_segment_free(builder *b, const gmd_snapshot_event *e, size_t event)
{
    uint32_t call;
    if (!e->address || !gmd_address_table_take(&b->segments, e->address, &call)) {
        count_with_place(b, &b->history->orphan_segments, &b->history->first_orphan);
    } else if (b->history->calls[call].size != e->size) {
        return contradiction(b, event,
                             "segment_free at 0x%" PRIx64 " of %" PRIu64
                             " B, which was allocated with %" PRIu64 " B",
                             e->address, e->size, b->history->calls[call].size);
    }
    add_call(b, e);
    return GMD_OK;
}

static gmd_status add_giving(builder *b, const gmd_snapshot_event *e, size_t event)
{
    if (e->action == GMD_ACTION_SEGMENT_FREE) {
        return add_segment_free(b, e, event);
    }
    if (!expandable_unmap(&b->expandable, e)) {
        count_with_place(b, &b->history->orphan_segments, &b->history->first_orphan);
    }
    add_call(b, e);
    return GMD_OK;
}

/* The segment that was made for an allocation belongs to its stream and device. */
static gmd_status check_segment(builder *b, const gmd_snapshot_event *e, size_t event)
{
    const gmd_snapshot_event *segment = event ? e - 1 : NULL;
    if (!segment || !event_takes(segment)) {
        return GMD_OK;
    }
    if (segment->stream != e->stream || segment->device != e->device) {
        return contradiction(b, event,
                             "the segment for it was allocated on another stream or device");
    }
    return GMD_OK;
}

static gmd_status add_refused(builder *b, const gmd_request *request, size_t event)
{
    b->history->oom_count++;
    gmd_status status = add_request(b, request, event, 0, true);
    if (status != GMD_OK || !b->frees_refused) {
        return status;
    }
    const gmd_request give_back = {
        .op = GMD_OP_FREE, .device = request->device, .block = request->block};
    return add_own_request(b, &give_back, event);
}

static gmd_status add_alloc(builder *b, const gmd_snapshot_event *e, size_t event)
{
    gmd_request request = {.op = GMD_OP_ALLOC,
                           .device = e->device,
                           .stream = stream_index(&b->history->trace, e->stream),
                           .bytes = e->size};
    gmd_status status = gmd_names_add(&b->history->trace.blocks, NULL, &request.block, b->error);
    if (status == GMD_OK) {
        status = check_segment(b, e, event);
    }
    if (status != GMD_OK) {
        return status;
    }
    if (b->deferred.events && b->deferred.events[event].is_awaited) {
        status = add_own_request(
            b, &(gmd_request){.op = GMD_OP_ADVANCE, .duration_ns = DEFERRED_STEP_NS}, event);
    }
    if (status != GMD_OK) {
        return status;
    }
    if (e->action == GMD_ACTION_OOM) {
        return add_refused(b, &request, event);
    }
    b->born[request.block] = b->history->trace.count;
    if (!e->address || !gmd_address_table_put(&b->live, e->address, request.block)) {
        return contradiction(b, event, "alloc at 0x%" PRIx64 ", where a block is live already",
                             e->address);
    }
    return add_request(b, &request, event, e->address, false);
}

/* Its completion is an event of its own, later. */
static gmd_status add_waiting_free(builder *b, const gmd_request *free_it, size_t event)
{
    gmd_status status = add_request(b, free_it, event, 0, false);
    uint64_t address = b->snapshot->events[event].address;
    if (status == GMD_OK && gmd_address_table_has(&b->waiting, address)) {
        uint32_t unused;
        gmd_address_table_take(&b->waiting, address, &unused);
        gmd_address_table_put(&b->waiting, address, (uint32_t)b->history->trace.count - 1);
    }
    return status;
}

/* Recorded work on another stream, and then the free. */
static gmd_status add_deferred_free(builder *b, const gmd_request *free_it, size_t event)
{
    const deferred_event *plan = &b->deferred.events[event];
    gmd_request work = *free_it;
    work.op = GMD_OP_USE;
    work.stream = b->first_helper + plan->helper;
    work.duration_ns = plan->duration_ns;
    gmd_request record = work;
    record.op = GMD_OP_RECORD;
    gmd_status status = add_own_request(b, &work, event);
    if (status == GMD_OK) {
        status = add_own_request(b, &record, event);
    }
    return status == GMD_OK ? add_waiting_free(b, free_it, event) : status;
}

static bool is_completed_next(const builder *b, const gmd_snapshot_event *e, size_t event)
{
    return event + 1 < b->snapshot->event_count && e[1].action == GMD_ACTION_FREE_COMPLETED &&
           e[1].address == e->address;
}

static gmd_status add_free(builder *b, const gmd_snapshot_event *e, size_t event)
{
    gmd_history *h = b->history;
    bool is_completed = is_completed_next(b, e, event);
    if (e->address && !is_completed) {
        gmd_address_table_put(&b->waiting, e->address, NO_REQUEST);
    }
    gmd_request request = {.op = GMD_OP_FREE, .device = e->device};
    if (!e->address || !gmd_address_table_take(&b->live, e->address, &request.block)) {
        count_with_place(b, &h->orphan_frees, &h->first_orphan);
        return GMD_OK;
    }
    const gmd_request *alloc = &h->trace.requests[b->born[request.block]];
    if (alloc->bytes != e->size || h->trace.stream_handles[alloc->stream] != e->stream ||
        alloc->device != e->device) {
        return contradiction(b, event,
                             "the free at 0x%" PRIx64 " is of %" PRIu64
                             " B, or of a stream or device, that its allocation was not",
                             e->address, e->size);
    }
    if (b->deferred.events && b->deferred.events[event].is_deferred) {
        h->deferred_frees++;
        return add_deferred_free(b, &request, event);
    }
    if (!is_completed) {
        count_with_place(b, &h->deferred_frees, &h->first_deferred);
    } else if (e[1].size != e->size || e[1].stream != e->stream || e[1].device != e->device) {
        return contradiction(b, event + 1,
                             "free_completed is not of the block whose free it follows");
    }
    gmd_status status = add_waiting_free(b, &request, event);
    if (status == GMD_OK && is_completed) {
        h->recorded[h->trace.count - 1].completed_origin = e[1].origin;
    }
    return status;
}

/* Calls that belong to no allocation: an empty_cache(), which goes through all devices in turn. */
static gmd_status add_empty_cache(builder *b, size_t event, int device)
{
    gmd_history *h = b->history;
    gmd_recorded *last = h->trace.count ? &h->recorded[h->trace.count - 1] : NULL;
    bool goes_on = last && h->trace.requests[h->trace.count - 1].op == GMD_OP_EMPTY_CACHE &&
                   device > b->emptied_device;
    b->emptied_device = device;
    if (goes_on) {
        last->call_count += (uint32_t)h->call_count - b->first_call;
        b->first_call = (uint32_t)h->call_count;
        return GMD_OK;
    }
    h->empty_cache_count++;
    return add_request(b, &(gmd_request){.op = GMD_OP_EMPTY_CACHE}, event, 0, false);
}

static gmd_status complete_free(builder *b, const gmd_snapshot_event *e, size_t event)
{
    uint32_t request;
    bool is_prompt =
        event && e[-1].action == GMD_ACTION_FREE_REQUESTED && e[-1].address == e->address;
    if (is_prompt) {
        return GMD_OK;
    }
    if (!gmd_address_table_take(&b->waiting, e->address, &request)) {
        if (gmd_address_table_has(&b->live, e->address)) {
            return contradiction(
                b, event, "free_completed at 0x%" PRIx64 " without its free_requested", e->address);
        }
        count_with_place(b, &b->history->orphan_frees, &b->history->first_orphan);
        return GMD_OK;
    }
    if (request != NO_REQUEST) {
        b->history->recorded[request].completed_origin = e->origin;
    }
    return b->deferred.events && b->deferred.events[event].is_emptied
               ? add_empty_cache(b, event, e->device)
               : GMD_OK;
}

/* Takes the run of events at *at that give memory back. */
static gmd_status add_free_run(builder *b, size_t *at)
{
    const gmd_snapshot_event *events = b->snapshot->events;
    const free_run *run = &b->runs.items[b->next_run++];
    gmd_status status = GMD_OK;
    for (; *at < run->end && status == GMD_OK; ++*at) {
        status = event_gives(&events[*at]) ? add_giving(b, &events[*at], *at)
                                           : complete_free(b, &events[*at], *at);
    }
    return status == GMD_OK && run->verdict == RUN_EMPTY_CACHE
               ? add_empty_cache(b, run->first, events[run->first].device)
               : status;
}

static gmd_status add_event(builder *b, size_t at)
{
    const gmd_snapshot_event *e = &b->snapshot->events[at];
    bool has_calls = b->first_call < b->history->call_count;
    if (has_calls && !is_allocation(e) && !event_takes(e)) {
        return contradiction(b, at, "a segment was allocated and no alloc event follows it");
    }
    switch (e->action) {
    case GMD_ACTION_SEGMENT_ALLOC:
        return add_segment_alloc(b, e, at);
    case GMD_ACTION_ALLOC:
    case GMD_ACTION_OOM:
        return add_alloc(b, e, at);
    case GMD_ACTION_FREE_REQUESTED:
        return add_free(b, e, at);
    case GMD_ACTION_FREE_COMPLETED:
        return complete_free(b, e, at);
    case GMD_ACTION_SEGMENT_MAP:
        return add_segment_map(b, e);
    default:
        return GMD_OK; /* not a request */
    }
}

static gmd_status add_all(builder *b)
{
    gmd_status status = GMD_OK;
    for (size_t at = 0; at < b->snapshot->event_count && status == GMD_OK;) {
        status = event_gives(&b->snapshot->events[at]) ? add_free_run(b, &at) : add_event(b, at++);
    }
    if (status == GMD_OK && b->first_call < b->history->call_count) {
        status = gmd_fail(b->error, GMD_BAD_INPUT,
                          "%s: ends with a segment_alloc that no alloc event follows", b->name);
    }
    return status;
}

/* A free may need work and its recording before it; every other request has an event of its own. */
#define REQUESTS_PER_EVENT 3

/* The streams that blocks wait for once more. */
static gmd_status add_helpers(builder *b)
{
    gmd_trace *trace = &b->history->trace;
    gmd_status status = deferred_plan_make(&b->deferred, b->snapshot, &b->runs, b->name, b->error);
    b->first_helper = trace->streams.count;
    if (status == GMD_OK && b->first_helper + b->deferred.helper_count > GMD_MAX_STREAMS) {
        status =
            gmd_fail(b->error, GMD_BAD_INPUT, "%s: more than %d streams", b->name, GMD_MAX_STREAMS);
    }
    for (uint32_t i = 0, index; i < b->deferred.helper_count && status == GMD_OK; i++) {
        status = gmd_names_add(&trace->streams, NULL, &index, b->error);
        trace->stream_handles[b->first_helper + i] = UINT64_MAX; /* of nothing that was recorded */
    }
    return status;
}

static gmd_status build(builder *b, const gmd_history_hints *hints)
{
    gmd_history *h = b->history;
    size_t events = b->snapshot->event_count;
    h->recorded = calloc(events * REQUESTS_PER_EVENT + 1, sizeof *h->recorded);
    h->calls = calloc(events + 1, sizeof *h->calls);
    b->born = calloc(events + 1, sizeof *b->born);
    if (!h->recorded || !h->calls || !b->born || !gmd_address_table_make(&b->live, events + 1) ||
        !gmd_address_table_make(&b->waiting, events + 1) ||
        !gmd_address_table_make(&b->segments, events + 1) ||
        !free_runs_find(&b->runs, b->snapshot, hints)) {
        return gmd_fail(b->error, GMD_NO_MEMORY, "%s: no host memory for %zu events", b->name,
                        events);
    }
    h->trace.conditions.device_count = b->snapshot->device_count;
    h->limit_bytes = b->runs.limit_bytes;
    h->limit_inferred = b->runs.limit_inferred;
    h->limit_is_contradicted = memory_limit_is_contradicted(&b->runs);
    h->waits_again = hints->waits_again;
    gmd_status status = number_streams(&h->trace, b->snapshot, b->name, b->error);
    if (status == GMD_OK && hints->waits_again) {
        status = add_helpers(b);
    }
    status = status == GMD_OK ? add_all(b) : status;
    h->nearest_reservations = b->expandable.nearest;
    return status;
}

gmd_status gmd_history_build(gmd_history *history, const gmd_snapshot *snapshot,
                             const gmd_history_hints *hints, const char *name, gmd_error *error)
{
    *history = (gmd_history){0};
    gmd_trace_init(&history->trace);
    gmd_snapshot grouped = *snapshot;
    /* Without, streams would be numbered from one too few. */
    bool has_begun = history->trace.streams.count && history->trace.threads.count;
    grouped.events = has_begun ? events_by_group(snapshot) : NULL;
    builder b = {.history = history,
                 .snapshot = &grouped,
                 .name = name,
                 .frees_refused = hints->frees_refused,
                 .error = error};
    gmd_status status = grouped.events ? build(&b, hints)
                                       : gmd_fail(error, GMD_NO_MEMORY, "%s: no host memory", name);
    free(grouped.events);
    gmd_address_table_free(&b.live);
    gmd_address_table_free(&b.waiting);
    gmd_address_table_free(&b.segments);
    deferred_plan_free(&b.deferred);
    expandable_free(&b.expandable);
    free_runs_free(&b.runs);
    free(b.born);
    if (status != GMD_OK) {
        gmd_history_free(history);
    }
    return status;
}

void gmd_history_free(gmd_history *history)
{
    gmd_trace_free(&history->trace);
    free(history->recorded);
    free(history->calls);
    *history = (gmd_history){0};
}
