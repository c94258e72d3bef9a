#include "journal_writer.h"

#include "frames.h"
#include "gmd_grow.h"
#include "gmd_intervals.h"
#include "gmd_journal.h"
#include "gmd_names.h"
#include "request_place.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

typedef struct pending_free { /* requested, and not completed yet */
    gmd_journal_event requested;
    bool is_pending; /* the allocator still shows it so */
} pending_free;

struct journal_writer {
    gmd_journal *journal;
    pending_free *pending;
    size_t pending_count, pending_capacity;
    uint64_t pending_bytes[GMD_MAX_DEVICES]; /* of the latest statistics */
    gmd_intervals segments;                  /* to the streams that they were made for */
    uint64_t first;                          /* event of the request under way */
};

gmd_status journal_writer_open(gmd_session *s, gmd_error *error)
{
    gmd_journal *journal = s->options->process.is_second_run ? NULL : s->options->recording.journal;
    if (!journal) {
        return GMD_OK;
    }
    s->journal = calloc(1, sizeof *s->journal);
    if (!s->journal) {
        return gmd_fail(error, GMD_NO_MEMORY, "no host memory for the journal of a run");
    }
    s->journal->journal = journal;
    journal->count = journal->dropped = journal->block_count = 0; /* of an earlier run */
    journal->is_walked = false;
    journal->device_count = (uint32_t)s->device_count;
    snprintf(journal->conf, sizeof journal->conf, "%s",
             s->options->conditions.conf ? s->options->conditions.conf : "");
    return GMD_OK;
}

void journal_writer_close(gmd_session *s)
{
    if (s->journal) {
        gmd_intervals_free(&s->journal->segments);
        free(s->journal->pending);
        free(s->journal);
        s->journal = NULL;
    }
}

/* --- events ------------------------------------------------------------------------------- */

static _Thread_local const gmd_request *under_way; /* in this thread */

void journal_writer_begin(gmd_session *s, const gmd_request *r)
{
    if (s->journal) {
        under_way = r;
        s->journal->first = s->journal->journal->count;
    }
}

static uint64_t time_of(const gmd_session *s)
{
    struct timespec now;
    const gmd_recorded *recorded = recorded_of(s, s->request_index);
    if (recorded) {
        return recorded->time_us;
    }
    if (s->runtime.sim) {
        return s->request_index;
    }
    clock_gettime(CLOCK_REALTIME, &now);
    return (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000;
}

static uint64_t stream_of(const gmd_session *s, uint32_t index)
{
    const gmd_trace *t = s->workload->trace;
    return t && t->stream_handles && index < t->streams.count ? t->stream_handles[index] : index;
}

/* Where a walk shows what lies there. */
static uint64_t place_of(const gmd_session *s, int device, uint64_t address)
{
    if (!s->is_placed) {
        return address;
    }
    enter_for_question(s, "gmd_place_of");
    uint64_t place = s->subject.place_of(device, address);
    leave_question();
    return place ? place : address;
}

static gmd_journal_event event_of(const gmd_session *s, gmd_action action, int device)
{
    return (gmd_journal_event){.action = (uint8_t)(action + 1),
                               .device = (uint8_t)device,
                               .request = (uint32_t)s->request_index,
                               .line = place_of_request(s, under_way),
                               .time_us = time_of(s)};
}

static void name_block(const gmd_session *s, uint32_t block, gmd_journal_event *e)
{
    char text[GMD_NAME_BYTES];
    const gmd_trace *t = s->workload->trace;
    if (t && block < t->blocks.count) {
        snprintf(e->name, sizeof e->name, "%s", gmd_name_text(&t->blocks, 'b', block, text));
    }
}

static void add(gmd_journal *j, const gmd_journal_event *e)
{
    if (j->count >= GMD_JOURNAL_EVENT_MAX) {
        j->dropped++;
        return;
    }
    j->events[j->count] = *e;
    j->count++; /* a crash in between leaves it out */
}

/* What an allocator finds when a request begins comes before what it does then. */
static void add_first(gmd_session *s, const gmd_journal_event *e)
{
    gmd_journal *j = s->journal->journal;
    uint64_t at = s->journal->first;
    add(j, e);
    if (!s->interleaving.overlap && !j->dropped && at < j->count) {
        memmove(&j->events[at + 1], &j->events[at], (j->count - 1 - at) * sizeof *j->events);
        j->events[at] = *e;
        s->journal->first++;
    }
}

/* --- frees -------------------------------------------------------------------------------- */

static void note_completed(gmd_session *s, const gmd_journal_event *requested)
{
    gmd_journal_event e = *requested;
    e.action = GMD_ACTION_FREE_COMPLETED + 1;
    e.request = (uint32_t)s->request_index;
    e.time_us = time_of(s);
    const gmd_recorded *recorded = recorded_of(s, requested->request);
    if (recorded) {
        e.origin = recorded->completed_origin;
    }
    if (requested->request != e.request) {
        add_first(s, &e);
    } else {
        add(s->journal->journal, &e);
    }
}

/* Those that are pending no more are completed, in the order in which they were requested. */
static void complete_marked(gmd_session *s)
{
    struct journal_writer *writer = s->journal;
    size_t kept = 0;
    for (size_t i = 0; i < writer->pending_count; i++) {
        if (writer->pending[i].is_pending) {
            writer->pending[kept++] = writer->pending[i];
        } else {
            note_completed(s, &writer->pending[i].requested);
        }
    }
    writer->pending_count = kept;
}

/* All that is pending in a range is pending no more. */
static void complete_in(gmd_session *s, int device, uint64_t address, uint64_t size)
{
    bool is_any = false;
    for (size_t i = 0; i < s->journal->pending_count; i++) {
        pending_free *p = &s->journal->pending[i];
        const gmd_journal_event *e = &p->requested;
        p->is_pending =
            e->device != device || e->address >= address + size || address >= e->address + e->size;
        is_any = is_any || !p->is_pending;
    }
    if (is_any) {
        complete_marked(s);
    }
}

static bool read_pending_bytes(const gmd_session *s, int device, uint64_t *bytes)
{
    const gmd_stats *f = &s->figures.stats[device];
    if (!s->figures.has_stats || f->active_bytes == GMD_STAT_UNKNOWN ||
        f->allocated_bytes == GMD_STAT_UNKNOWN || f->active_bytes < f->allocated_bytes) {
        return false;
    }
    *bytes = f->active_bytes - f->allocated_bytes;
    return true;
}

typedef struct pending_place {
    uint64_t address;
    size_t index; /* among those pending */
} pending_place;

typedef struct pending_walk {
    struct journal_writer *writer;
    pending_place *places; /* of the device, by address */
    size_t count;
} pending_walk;

static int compare_places(const void *a, const void *b)
{
    const pending_place *x = a, *y = b;
    return (x->address > y->address) - (x->address < y->address);
}

static void keep_pending(void *context, const gmd_block_info *b)
{
    const pending_walk *walk = context;
    pending_place key = {.address = b->address};
    const pending_place *found =
        b->state == GMD_BLOCK_PENDING_FREE
            ? bsearch(&key, walk->places, walk->count, sizeof key, compare_places)
            : NULL;
    if (found) {
        walk->writer->pending[found->index].is_pending = true;
    }
}

static void settle_by_walk(gmd_session *s, int device)
{
    struct journal_writer *writer = s->journal;
    pending_walk walk = {.writer = writer,
                         .places = malloc((writer->pending_count + 1) * sizeof *walk.places)};
    if (!walk.places) {
        return; /* they are known to be completed later */
    }
    for (size_t i = 0; i < writer->pending_count; i++) {
        pending_free *p = &writer->pending[i];
        p->is_pending = p->requested.device != device;
        if (!p->is_pending) {
            walk.places[walk.count++] = (pending_place){p->requested.address, i};
        }
    }
    qsort(walk.places, walk.count, sizeof *walk.places, compare_places);
    enter_for_question(s, "gmd_walk");
    int result = s->subject.walk(device, keep_pending, &walk);
    leave_question();
    if (result == 0) {
        complete_marked(s);
    }
    free(walk.places);
}

void journal_writer_settle(gmd_session *s, int device)
{
    uint64_t bytes;
    if (!s->journal || s->view.is_busy || !read_pending_bytes(s, device, &bytes)) {
        return;
    }
    uint64_t before = s->journal->pending_bytes[device];
    s->journal->pending_bytes[device] = bytes;
    if (!bytes && s->journal->pending_count) {
        complete_in(s, device, 0, UINT64_MAX);
    } else if (bytes < before && s->subject.walk) {
        settle_by_walk(s, device);
    }
}

void journal_writer_free(gmd_session *s, const gmd_live_block *b)
{
    struct journal_writer *writer = s->journal;
    if (!writer) {
        return;
    }
    gmd_journal_event e = event_of(s, GMD_ACTION_FREE_REQUESTED, b->device);
    e.address = place_of(s, b->device, b->address);
    e.size = b->bytes;
    e.stream = stream_of(s, b->stream);
    name_block(s, b->id, &e);
    add(writer->journal, &e);
    if (!GMD_GROW(&writer->pending, &writer->pending_capacity, writer->pending_count + 1)) {
        return; /* then it is never seen to be completed */
    }
    writer->pending[writer->pending_count++] = (pending_free){.requested = e};
}

void journal_writer_freed(gmd_session *s, const gmd_live_block *b, bool is_recorded)
{
    struct journal_writer *writer = s->journal;
    if (!writer) {
        return;
    }
    uint64_t bytes, before = writer->pending_bytes[b->device];
    bool is_known = !s->view.is_busy && read_pending_bytes(s, b->device, &bytes);
    if (is_known) {
        writer->pending_bytes[b->device] = bytes;
    }
    bool may_wait = is_recorded && s->subject.record_stream && (!is_known || bytes > before);
    if (may_wait) {
        return;
    }
    uint64_t address = place_of(s, b->device, b->address);
    const pending_free *last =
        writer->pending_count ? &writer->pending[writer->pending_count - 1] : NULL;
    if (last && last->requested.device == b->device && last->requested.address == address) {
        writer->pending_count--;
        note_completed(s, &last->requested);
    } else { /* other threads' frees came in between, or the device has it back by now */
        complete_in(s, b->device, address, 1);
    }
}

/* --- allocations -------------------------------------------------------------------------- */

void journal_writer_alloc(gmd_session *s, const gmd_request *r, uint64_t address)
{
    if (!s->journal) {
        return;
    }
    journal_writer_settle(s, r->device);
    gmd_journal_event e = event_of(s, GMD_ACTION_ALLOC, r->device);
    e.address = place_of(s, r->device, address);
    e.size = r->bytes;
    e.stream = stream_of(s, r->stream);
    name_block(s, r->block, &e);
    complete_in(s, r->device, e.address, e.size);
    add(s->journal->journal, &e);
}

static uint64_t free_bytes_of(gmd_session *s, int device)
{
    const gmd_device_figures *f = &s->figures.now[device];
    size_t bytes = 0, total;
    int previous;
    if (s->runtime.sim) {
        return f->capacity_bytes - f->physical_bytes;
    }
    if (streams_enter(&s->streams, device, &previous, NULL) != GMD_OK) {
        return 0;
    }
    if (s->runtime.cudaMemGetInfo(&bytes, &total) != cudaSuccess) {
        bytes = 0;
    }
    streams_leave(&s->streams, previous, NULL);
    return bytes;
}

void journal_writer_refusal(gmd_session *s, const gmd_request *r)
{
    if (!s->journal) {
        return;
    }
    journal_writer_settle(s, r->device);
    gmd_journal_event e = event_of(s, GMD_ACTION_OOM, r->device);
    e.address = free_bytes_of(s, r->device);
    e.size = r->bytes;
    e.stream = stream_of(s, r->stream);
    name_block(s, r->block, &e);
    add(s->journal->journal, &e);
}

/* --- the device --------------------------------------------------------------------------- */

/* Memory is given back in whole segments, pages maybe in larger ranges than they came in. */
static uint64_t forget_segments(gmd_intervals *segments, uint64_t address, uint64_t size)
{
    const gmd_interval *first = gmd_intervals_after(segments, address);
    uint64_t stream = first && first->address < address + size ? first->value : 0;
    while (first && first->address < address + size) {
        gmd_intervals_remove(segments, first->address);
        first = gmd_intervals_after(segments, address);
    }
    return stream;
}

/* A range is mapped with a call for each of its handles: one event, as in PyTorch's history. */
static bool joins(gmd_journal *j, const gmd_journal_event *e)
{
    bool has_last = j->count && j->count <= GMD_JOURNAL_EVENT_MAX;
    gmd_journal_event *last = has_last ? &j->events[j->count - 1] : NULL;
    bool is_mapping =
        e->action == GMD_ACTION_SEGMENT_MAP + 1 || e->action == GMD_ACTION_SEGMENT_UNMAP + 1;
    if (!last || !is_mapping || last->action != e->action || last->device != e->device ||
        last->request != e->request || last->stream != e->stream ||
        last->address + last->size != e->address) {
        return false;
    }
    last->size += e->size;
    return true;
}

void journal_writer_call(gmd_session *s, const gmd_sim_call *call)
{
    static const gmd_action actions[] = {
        [GMD_SIM_CALL_MALLOC] = GMD_ACTION_SEGMENT_ALLOC,
        [GMD_SIM_CALL_FREE] = GMD_ACTION_SEGMENT_FREE,
        [GMD_SIM_CALL_MAP] = GMD_ACTION_SEGMENT_MAP,
        [GMD_SIM_CALL_UNMAP] = GMD_ACTION_SEGMENT_UNMAP,
    };
    struct journal_writer *writer = s->journal;
    if (!writer) {
        return;
    }
    gmd_journal_event e = event_of(s, actions[call->kind], call->device);
    e.address = call->address;
    e.size = call->size;
    if (under_way && (under_way->op == GMD_OP_ALLOC || under_way->op == GMD_OP_FREE)) {
        name_block(s, under_way->block, &e);
    }
    if (call->kind == GMD_SIM_CALL_FREE || call->kind == GMD_SIM_CALL_UNMAP) {
        complete_in(s, call->device, call->address, call->size);
        e.stream = forget_segments(&writer->segments, call->address, call->size);
    } else {
        e.stream = under_way && under_way->op == GMD_OP_ALLOC ? stream_of(s, under_way->stream) : 0;
        forget_segments(&writer->segments, call->address, call->size);
        gmd_intervals_insert(&writer->segments, call->address, call->address + call->size,
                             e.stream);
    }
    if (!joins(writer->journal, &e)) {
        add(writer->journal, &e);
    }
}

/* --- the end ------------------------------------------------------------------------------ */

typedef struct block_walk {
    const gmd_session *session;
    gmd_journal *journal;
    int device;
    bool is_full;
} block_walk;

static void note_block(void *context, const gmd_block_info *b)
{
    block_walk *walk = context;
    gmd_journal *j = walk->journal;
    if (j->block_count >= GMD_JOURNAL_BLOCK_MAX) {
        walk->is_full = true;
        return;
    }
    uint32_t stream = streams_index(&walk->session->streams, walk->device, b->stream);
    j->blocks[j->block_count++] = (gmd_journal_block){
        .segment_address = b->segment_address,
        .segment_size = b->segment_size,
        .address = b->address,
        .size = b->size,
        .requested_size = b->requested_size,
        .stream = stream == UINT32_MAX ? (uintptr_t)b->stream : stream_of(walk->session, stream),
        .pool_id = {b->pool_id[0], b->pool_id[1]},
        .device = (uint8_t)walk->device,
        .state = (uint8_t)b->state,
        .is_large = b->is_large != 0,
        .is_expandable = b->is_expandable != 0,
    };
}

/* Who has just been found wrong may have nothing left that can be walked. */
void journal_writer_end(gmd_session *s)
{
    if (s->journal && !s->is_over && s->subject.walk && !s->journal->journal->dropped) {
        bool is_whole = true;
        for (int device = 0; device < s->device_count && is_whole; device++) {
            block_walk walk = {.session = s, .journal = s->journal->journal, .device = device};
            enter_for_question(s, "gmd_walk");
            is_whole = s->subject.walk(device, note_block, &walk) == 0 && !walk.is_full;
            leave_question();
        }
        s->journal->journal->is_walked = is_whole;
    }
    journal_writer_close(s);
}
