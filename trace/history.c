#include "gmd_history.h"

#include "gmd_size.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- the memory limit -------------------------------------------------------------------- */

/* The device memory that PyTorch's algorithm asks for when no cached block fits; the one rule of
 * the recorded allocator that reading a history needs. */
static uint64_t segment_size_for(uint64_t block_size)
{
    const uint64_t step = 2 * GMD_MIB;
    if (block_size <= GMD_MIB) {
        return step;
    }
    if (block_size < 10 * GMD_MIB) {
        return 20 * GMD_MIB;
    }
    return block_size > UINT64_MAX - step ? UINT64_MAX : (block_size + step - 1) / step * step;
}

/* A run of segment_free events, and the limits under which the allocation after it would have had
 * to give the cache back: all that are below `explained_below`. */
typedef struct free_run {
    size_t first, end;        /* events */
    uint64_t explained_below; /* bytes; 0: no allocation of a new segment follows */
    bool before_oom;
} free_run;

typedef struct limit_evidence {
    uint64_t at_least; /* the most that was ever reserved */
    uint64_t below;    /* an allocation failed that would have brought reserved to this */
    uint64_t reserved;
} limit_evidence;

static free_run read_free_run(const gmd_snapshot *s, size_t at, limit_evidence *evidence)
{
    free_run run = {.first = at};
    uint64_t before = evidence->reserved;
    for (; at < s->event_count && s->events[at].action == GMD_ACTION_SEGMENT_FREE; at++) {
        evidence->reserved -= s->events[at].size;
    }
    run.end = at;
    if (at < s->event_count && s->events[at].action == GMD_ACTION_SEGMENT_ALLOC) {
        run.explained_below = before + s->events[at].size;
    }
    run.before_oom = at < s->event_count && s->events[at].action == GMD_ACTION_OOM;
    return run;
}

static void weigh(const gmd_snapshot_event *e, limit_evidence *evidence)
{
    if (e->action == GMD_ACTION_SEGMENT_ALLOC) {
        evidence->reserved += e->size;
        if (evidence->reserved > evidence->at_least) {
            evidence->at_least = evidence->reserved;
        }
    } else if (e->action == GMD_ACTION_OOM) {
        uint64_t needed = segment_size_for(e->size);
        uint64_t total =
            needed > UINT64_MAX - evidence->reserved ? UINT64_MAX : needed + evidence->reserved;
        if (total < evidence->below) {
            evidence->below = total;
        }
    }
}

/* What the free runs of a history say together. */
typedef struct run_survey {
    bool any;
    bool maps;          /* expandable segments: what is reserved is not in the segment events */
    bool all_explained; /* by some limit that nothing else contradicts */
    uint64_t tightest;  /* the lowest explained_below among those */
} run_survey;

static run_survey survey_runs(const gmd_snapshot *s, limit_evidence *evidence)
{
    *evidence = (limit_evidence){.below = UINT64_MAX};
    for (size_t i = 0; i < s->event_count;) {
        if (s->events[i].action == GMD_ACTION_SEGMENT_FREE) {
            i = read_free_run(s, i, evidence).end;
        } else {
            weigh(&s->events[i++], evidence);
        }
    }
    run_survey survey = {.all_explained = true, .tightest = UINT64_MAX};
    limit_evidence again = {.below = UINT64_MAX};
    for (size_t i = 0; i < s->event_count;) {
        if (s->events[i].action != GMD_ACTION_SEGMENT_FREE) {
            survey.maps = survey.maps || s->events[i].action == GMD_ACTION_SEGMENT_MAP;
            weigh(&s->events[i++], &again);
            continue;
        }
        free_run run = read_free_run(s, i, &again);
        i = run.end;
        survey.any = true;
        if (run.explained_below > evidence->at_least) {
            survey.tightest =
                run.explained_below < survey.tightest ? run.explained_below : survey.tightest;
        } else if (!run.before_oom) {
            survey.all_explained = false;
        }
    }
    return survey;
}

/* The highest limit that the history allows; 0: nothing in it speaks for one. Freed segments speak
 * for one only if all of them can be put down to it: a job that empties its cache itself does so
 * also where no limit is near. */
static uint64_t infer_limit(const run_survey *survey, const limit_evidence *evidence)
{
    uint64_t below = evidence->below;
    if (survey->maps) {
        return 0;
    }
    if (survey->any && survey->all_explained && survey->tightest < below) {
        below = survey->tightest;
    }
    return below == UINT64_MAX || below <= evidence->at_least ? 0 : below - 1;
}

/* --- addresses of live blocks ------------------------------------------------------------ */

typedef struct address_slot {
    uint64_t address; /* 0: empty */
    uint32_t block;
} address_slot;

typedef struct address_map { /* open addressing; never more than half full */
    address_slot *slots;
    size_t mask;
    unsigned shift;
} address_map;

static bool address_map_make(address_map *map, size_t entries)
{
    unsigned bits = 4;
    while (((size_t)1 << bits) < entries * 2) {
        bits++;
    }
    map->mask = ((size_t)1 << bits) - 1;
    map->shift = 64 - bits;
    map->slots = calloc(map->mask + 1, sizeof *map->slots);
    return map->slots != NULL;
}

static size_t home_of(const address_map *map, uint64_t address)
{
    return (size_t)(address * 0x9e3779b97f4a7c15u >> map->shift);
}

/* False: there is a live block at this address already. */
static bool address_map_put(address_map *map, uint64_t address, uint32_t block)
{
    size_t at = home_of(map, address);
    for (; map->slots[at].address; at = (at + 1) & map->mask) {
        if (map->slots[at].address == address) {
            return false;
        }
    }
    map->slots[at] = (address_slot){address, block};
    return true;
}

static bool address_map_take(address_map *map, uint64_t address, uint32_t *block)
{
    size_t at = home_of(map, address);
    for (; map->slots[at].address != address; at = (at + 1) & map->mask) {
        if (!map->slots[at].address) {
            return false;
        }
    }
    *block = map->slots[at].block;
    size_t hole = at;
    for (at = (at + 1) & map->mask; map->slots[at].address; at = (at + 1) & map->mask) {
        size_t home = home_of(map, map->slots[at].address);
        if (((at - home) & map->mask) >= ((at - hole) & map->mask)) {
            map->slots[hole] = map->slots[at];
            hole = at;
        }
    }
    map->slots[hole].address = 0;
    return true;
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

typedef struct builder {
    gmd_history *history;
    const gmd_snapshot *snapshot;
    const char *name;
    address_map live;
    size_t *born;            /* by block: its allocation's request */
    uint64_t completed_late; /* free_completed events of deferred frees */
    uint64_t reserved;
    uint32_t first_call; /* calls from here on belong to the request to come */
    bool blames_limit;   /* a run that the limit explains is put down to it */
    gmd_error *error;
} builder;

static gmd_status add_request(builder *b, const gmd_request *request, size_t event,
                              uint64_t address, bool is_oom)
{
    gmd_history *h = b->history;
    gmd_status status = gmd_trace_append(&h->trace, request, b->error);
    if (status == GMD_OK) {
        h->recorded[h->trace.count - 1] =
            (gmd_recorded){.address = address,
                           .event = event,
                           .first_call = b->first_call,
                           .call_count = (uint32_t)h->call_count - b->first_call,
                           .is_oom = is_oom};
        b->first_call = (uint32_t)h->call_count;
    }
    return status;
}

static void add_call(builder *b, const gmd_snapshot_event *e, bool is_free)
{
    b->history->calls[b->history->call_count++] =
        (gmd_recorded_call){.address = e->address, .size = e->size, .is_free = is_free};
    b->reserved = is_free ? b->reserved - e->size : b->reserved + e->size;
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

/* The segment that was made for an allocation belongs to its stream and can hold it. */
static gmd_status check_segment(builder *b, const gmd_snapshot_event *e, size_t event)
{
    const gmd_snapshot_event *segment = event ? e - 1 : NULL;
    if (!segment || segment->action != GMD_ACTION_SEGMENT_ALLOC) {
        return GMD_OK;
    }
    if (segment->stream != e->stream || segment->device != e->device) {
        return contradiction(b, event,
                             "the segment for it was allocated on another stream or device");
    }
    return GMD_OK;
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
    bool is_oom = e->action == GMD_ACTION_OOM;
    b->history->oom_count += is_oom;
    b->born[request.block] = b->history->trace.count;
    if (!is_oom && (!e->address || !address_map_put(&b->live, e->address, request.block))) {
        return contradiction(b, event, "alloc at 0x%" PRIx64 ", where a block is live already",
                             e->address);
    }
    return add_request(b, &request, event, is_oom ? 0 : e->address, is_oom);
}

/* Where something is counted, the first place is kept. */
static void count_with_place(builder *b, uint64_t *count, uint64_t *first)
{
    if ((*count)++ == 0) {
        *first = b->history->trace.count;
    }
}

static gmd_status add_free(builder *b, const gmd_snapshot_event *e, size_t event)
{
    gmd_history *h = b->history;
    gmd_request request = {.op = GMD_OP_FREE, .device = e->device};
    if (!e->address || !address_map_take(&b->live, e->address, &request.block)) {
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
    const gmd_snapshot_event *next = event + 1 < b->snapshot->event_count ? e + 1 : NULL;
    bool is_completed =
        next && next->action == GMD_ACTION_FREE_COMPLETED && next->address == e->address;
    if (!is_completed) {
        count_with_place(b, &h->deferred_frees, &h->first_deferred);
    } else if (next->size != e->size || next->stream != e->stream || next->device != e->device) {
        return contradiction(b, event + 1,
                             "free_completed is not of the block whose free it follows");
    }
    return add_request(b, &request, event, 0, false);
}

static gmd_status complete_free(builder *b, const gmd_snapshot_event *e, size_t event)
{
    bool is_prompt =
        event && e[-1].action == GMD_ACTION_FREE_REQUESTED && e[-1].address == e->address;
    if (is_prompt || b->history->orphan_frees) {
        return GMD_OK;
    }
    if (b->completed_late == b->history->deferred_frees) {
        return contradiction(b, event, "free_completed at 0x%" PRIx64 " without its free_requested",
                             e->address);
    }
    b->completed_late++;
    return GMD_OK;
}

/* Calls that belong to no allocation, so far: an empty_cache(). */
static gmd_status add_empty_cache(builder *b, size_t event)
{
    b->history->empty_cache_count++;
    return add_request(b, &(gmd_request){.op = GMD_OP_EMPTY_CACHE}, event, 0, false);
}

/* Takes the run of segment_free events at *at. */
static gmd_status add_free_run(builder *b, size_t *at)
{
    limit_evidence evidence = {.reserved = b->reserved};
    free_run run = read_free_run(b->snapshot, *at, &evidence);
    for (size_t i = run.first; i < run.end; i++) {
        add_call(b, &b->snapshot->events[i], true);
    }
    *at = run.end;
    bool explained =
        run.before_oom || (b->blames_limit && run.explained_below > b->history->limit_bytes);
    return explained ? GMD_OK : add_empty_cache(b, run.first);
}

static gmd_status add_event(builder *b, size_t at)
{
    const gmd_snapshot_event *e = &b->snapshot->events[at];
    bool is_alloc = e->action == GMD_ACTION_ALLOC || e->action == GMD_ACTION_OOM;
    bool has_calls = b->first_call < b->history->call_count;
    if (has_calls && !is_alloc && e->action != GMD_ACTION_SEGMENT_ALLOC) {
        return contradiction(b, at, "a segment was allocated and no alloc event follows it");
    }
    switch (e->action) {
    case GMD_ACTION_SEGMENT_ALLOC:
        add_call(b, e, false);
        return GMD_OK;
    case GMD_ACTION_ALLOC:
    case GMD_ACTION_OOM:
        return add_alloc(b, e, at);
    case GMD_ACTION_FREE_REQUESTED:
        return add_free(b, e, at);
    case GMD_ACTION_FREE_COMPLETED:
        return complete_free(b, e, at);
    case GMD_ACTION_SEGMENT_MAP:
    case GMD_ACTION_SEGMENT_UNMAP:
        b->history->mapped_events++;
        return GMD_OK;
    default:
        return GMD_OK; /* not a request */
    }
}

static gmd_status add_all(builder *b)
{
    gmd_status status = GMD_OK;
    for (size_t at = 0; at < b->snapshot->event_count && status == GMD_OK;) {
        status = b->snapshot->events[at].action == GMD_ACTION_SEGMENT_FREE ? add_free_run(b, &at)
                                                                           : add_event(b, at++);
    }
    if (status == GMD_OK && b->first_call < b->history->call_count) {
        status = gmd_fail(b->error, GMD_BAD_INPUT,
                          "%s: ends with a segment_alloc that no alloc event follows", b->name);
    }
    return status;
}

static void settle_limit(builder *b, uint64_t limit_bytes)
{
    limit_evidence evidence;
    run_survey survey = survey_runs(b->snapshot, &evidence);
    b->history->limit_inferred = limit_bytes == 0 && !survey.maps;
    b->history->limit_bytes = limit_bytes ? limit_bytes : infer_limit(&survey, &evidence);
    /* A job with calls of its own to empty_cache makes them at the limit, too: then a run that
     * either could explain is put down to the job, since both have the same effect. */
    b->blames_limit = b->history->limit_bytes && survey.all_explained;
}

gmd_status gmd_history_build(gmd_history *history, const gmd_snapshot *snapshot,
                             uint64_t limit_bytes, const char *name, gmd_error *error)
{
    *history = (gmd_history){0};
    gmd_trace_init(&history->trace);
    builder b = {.history = history, .snapshot = snapshot, .name = name, .error = error};
    size_t events = snapshot->event_count;
    /* Every request comes from at least one event of its own. */
    history->recorded = calloc(events + 1, sizeof *history->recorded);
    history->calls = calloc(events + 1, sizeof *history->calls);
    b.born = calloc(events + 1, sizeof *b.born);
    if (!history->recorded || !history->calls || !b.born ||
        !address_map_make(&b.live, events + 1)) {
        free(b.born);
        gmd_history_free(history);
        return gmd_fail(error, GMD_NO_MEMORY, "%s: no host memory for %zu events", name, events);
    }
    history->trace.device_count = snapshot->device_count;
    settle_limit(&b, limit_bytes);
    gmd_status status = number_streams(&history->trace, snapshot, name, error);
    if (status == GMD_OK) {
        status = add_all(&b);
    }
    free(b.live.slots);
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
