/* stream_order - memory is not handed to a new owner whose work could run before all work of its
 * earlier owner that the allocator was told of has happened; nor is it given back to the device
 * while such work may still run.
 *
 * The ranges of freed blocks are kept with the last use by each stream that the host does not know
 * to be over. Whether a use runs before what the new owner queues is the device's to say, for every
 * schedule and not only the one at hand. A use is forgotten when the host knows of its end, or when
 * a later owner's work, which was found to run after it, takes its place. A block of 0 B owns no
 * byte: its work touches nothing. */
#include "gmd_grow.h"
#include "gmd_intervals.h"
#include "list.h"
#include "wording.h"

#include <inttypes.h>
#include <stdlib.h>

#define SWEEP_LEAST 1024

typedef struct mark { /* one use of freed memory */
    gmd_use use;
    uint64_t address, bytes, born, freed; /* the block: where it was, and the requests */
    uint32_t stream;                      /* the block's */
    uint32_t next;                        /* of the same range; 0: none */
} mark;

typedef struct pending {
    gmd_intervals ranges; /* value: the range's first mark */
    mark *marks;          /* from 1 */
    uint32_t used, capacity, spare;
    uint32_t sweep_at; /* ranges; beyond, those whose work is known to be over are dropped */
    bool lacks_memory; /* a mark could not be kept */
} pending;

static void *create(void)
{
    pending *p = calloc(1, sizeof *p);
    if (p) {
        p->sweep_at = SWEEP_LEAST;
    }
    return p;
}

static void destroy(void *state)
{
    pending *p = state;
    gmd_intervals_free(&p->ranges);
    free(p->marks);
    free(p);
}

static const char *blind_spot(const gmd_view *view)
{
    bool has_reason = view->canaries.reason && *view->canaries.reason;
    return view->ask.is_ordered || view->canaries.are_there ? NULL
           : has_reason                                     ? view->canaries.reason
                        : "a real device does not tell which work runs after which";
}

/* --- lists of marks ---------------------------------------------------------------------- */

/* Puts a copy of `m` before the list; 0: the host has no memory. */
static uint32_t push(pending *p, const mark *m, uint32_t list)
{
    uint32_t at = p->spare;
    mark copy = *m; /* `m` may lie in the array that grows */
    if (at) {
        p->spare = p->marks[at].next;
    } else {
        if (!GMD_GROW(&p->marks, &p->capacity, p->used + 2)) {
            p->lacks_memory = true;
            return 0;
        }
        at = ++p->used;
    }
    p->marks[at] = copy;
    p->marks[at].next = list;
    return at;
}

/* Takes the first mark off the list and gives the rest. */
static uint32_t pop(pending *p, uint32_t list)
{
    uint32_t rest = p->marks[list].next;
    p->marks[list].next = p->spare;
    p->spare = list;
    return rest;
}

static uint32_t copy_list(pending *p, uint32_t list)
{
    uint32_t copy = 0;
    for (uint32_t at = list; at; at = p->marks[at].next) {
        uint32_t longer = push(p, &p->marks[at], copy);
        copy = longer ? longer : copy;
    }
    return copy;
}

static void drop_list(pending *p, uint32_t list)
{
    while (list) {
        list = pop(p, list);
    }
}

/* The list without the marks that the host knows to be over. */
static uint32_t drop_known(pending *p, uint32_t list, const gmd_view *view)
{
    uint32_t *link = &list;
    while (*link) {
        if (view->ask.is_known(view->ask.context, &p->marks[*link].use)) {
            *link = pop(p, *link);
        } else {
            link = &p->marks[*link].next;
        }
    }
    return list;
}

/* --- ranges ------------------------------------------------------------------------------ */

static void sweep(pending *p, const gmd_view *view)
{
    uint64_t at = 0;
    for (gmd_interval *i; (i = gmd_intervals_after(&p->ranges, at)) != NULL;) {
        at = i->end;
        i->value = drop_known(p, (uint32_t)i->value, view);
        if (!i->value) {
            gmd_intervals_remove(&p->ranges, i->address);
        }
    }
    p->sweep_at = 2 * p->ranges.count > SWEEP_LEAST ? 2 * p->ranges.count : SWEEP_LEAST;
}

static bool add_range(pending *p, uint64_t from, uint64_t to, uint32_t list)
{
    return !list || gmd_intervals_insert(&p->ranges, from, to, list);
}

/* No range goes across `address` any more. */
static bool cut_at(pending *p, uint64_t address)
{
    gmd_interval *i = gmd_intervals_after(&p->ranges, address);
    if (!i || i->address >= address) {
        return true;
    }
    uint64_t end = i->end;
    i->end = address;
    return add_range(p, address, end, copy_list(p, (uint32_t)i->value));
}

/* What was noted of the memory before is settled: this use runs after all of it. */
static bool replace(pending *p, uint64_t from, uint64_t to, uint32_t list)
{
    gmd_interval *i = gmd_intervals_after(&p->ranges, from);
    if (list && i && i->address == from && i->end == to) {
        drop_list(p, (uint32_t)i->value);
        i->value = list;
        return true;
    }
    if (!cut_at(p, from) || !cut_at(p, to)) {
        return false;
    }
    while ((i = gmd_intervals_after(&p->ranges, from)) != NULL && i->address < to) {
        drop_list(p, (uint32_t)i->value);
        gmd_intervals_remove(&p->ranges, i->address);
    }
    return add_range(p, from, to, list);
}

/* Adds `list` to what is noted already; of two uses on one stream the later one counts. */
static uint32_t join(pending *p, uint32_t old, uint32_t list)
{
    uint32_t *link = &old;
    while (*link) {
        uint32_t at = list;
        while (at && p->marks[at].use.place != p->marks[*link].use.place) {
            at = p->marks[at].next;
        }
        if (at) {
            *link = pop(p, *link);
        } else {
            link = &p->marks[*link].next;
        }
    }
    for (uint32_t at = list; at; at = p->marks[at].next) {
        uint32_t longer = push(p, &p->marks[at], old);
        old = longer ? longer : old;
    }
    return old;
}

/* The block was used on other streams only: nothing tells that they ran after the earlier owner. */
static bool add(pending *p, uint64_t from, uint64_t to, uint32_t list)
{
    bool has_memory = cut_at(p, from) && cut_at(p, to);
    while (has_memory && from < to) {
        gmd_interval *i = gmd_intervals_after(&p->ranges, from);
        if (i && i->address == from) {
            i->value = join(p, (uint32_t)i->value, list);
            from = i->end;
            continue;
        }
        uint64_t end = i && i->address < to ? i->address : to;
        has_memory = add_range(p, from, end, copy_list(p, list));
        from = end;
    }
    drop_list(p, list);
    return has_memory;
}

/* --- hooks ------------------------------------------------------------------------------- */

static uint64_t end_of(const gmd_live_block *b)
{
    return b->address + b->bytes;
}

/* The device cannot say it of work in a graph: the graph runs as a whole, whenever it is
 * launched, and orders no more than what was captured. */
static void judge_clash(const gmd_view *view, gmd_judge *judge)
{
    const gmd_live_block *b = view->block;
    const gmd_graph_access *other = view->pools.clash;
    gmd_violation_add(judge, GMD_KIND(stream_order, reused_in_capture), GMD_NO_PARTIES,
                      "%s on stream %" PRIu32
                      ", which is captured, takes memory that the work of request %" PRIu64
                      " uses (%s at 0x%" PRIx64 "), captured on stream %" PRIu32
                      " before: nothing in the graph makes stream %" PRIu32 " wait for it",
                      BLOCK(view, b), b->stream, other->request, BYTES(other->bytes),
                      other->address, other->stream, b->stream);
}

static void after_alloc(void *state, const gmd_view *view, gmd_judge *judge)
{
    pending *p = state;
    const gmd_live_block *b = view->block;
    if (!b->bytes) {
        return;
    }
    if (view->pools.clash) {
        judge_clash(view, judge);
        return;
    }
    uint64_t from = b->address, end = end_of(b);
    for (gmd_interval *i;
         (i = gmd_intervals_after(&p->ranges, from)) != NULL && i->address < end;) {
        from = i->end;
        for (uint32_t at = (uint32_t)i->value; at; at = p->marks[at].next) {
            const mark *m = &p->marks[at];
            gmd_precondition_met(judge, (unsigned)(m->use.stream == b->stream) << 1 |
                                            (m->stream == b->stream));
            if (!view->ask.is_ordered(view->ask.context, &m->use, b->device, b->stream)) {
                gmd_violation_add(
                    judge, GMD_KIND(stream_order, reused_early), GMD_NO_PARTIES,
                    "%s on stream %" PRIu32 " takes memory of the %s (request %" PRIu64
                    ") on stream %" PRIu32 ", which was freed in request %" PRIu64
                    ": nothing makes stream %" PRIu32 " wait for the work that request %" PRIu64
                    " queued on stream %" PRIu32,
                    BLOCK(view, b), b->stream, BLOCK(view, m), m->born, m->stream, m->freed,
                    b->stream, m->use.request, m->use.stream);
                return;
            }
        }
    }
}

static void before_free(void *state, const gmd_view *view, gmd_judge *judge)
{
    pending *p = state;
    const gmd_live_block *b = view->block;
    if (!b->bytes) {
        return;
    }
    mark m = {.address = b->address,
              .bytes = b->bytes,
              .born = b->born,
              .freed = view->request_index,
              .stream = b->stream};
    uint32_t list = 0;
    bool is_used_on_its_own = false, has_memory = true;
    p->lacks_memory = false;
    for (size_t i = 0; i < view->uses.count; i++) {
        m.use = view->uses.list[i];
        is_used_on_its_own = is_used_on_its_own || m.use.stream == b->stream;
        if (!view->ask.is_known(view->ask.context, &m.use)) {
            uint32_t longer = push(p, &m, list);
            list = longer ? longer : list;
        }
    }
    if (is_used_on_its_own) {
        has_memory = replace(p, b->address, end_of(b), list) && has_memory;
    } else if (list) {
        has_memory = add(p, b->address, end_of(b), list) && has_memory;
    }
    if (!has_memory || p->lacks_memory) {
        gmd_violation_add(judge, GMD_KIND(stream_order, no_host_memory), GMD_NO_PARTIES,
                          "gmd ran out of host memory after %" PRIu32 " ranges", p->ranges.count);
    }
}

static void check_given_back(pending *p, const gmd_view *view, const gmd_device_call *call,
                             gmd_judge *judge)
{
    uint64_t from = call->address, end = call->address + call->size;
    for (gmd_interval *i;
         (i = gmd_intervals_after(&p->ranges, from)) != NULL && i->address < end;) {
        from = i->end;
        i->value = drop_known(p, (uint32_t)i->value, view);
        if (i->value) {
            const mark *m = &p->marks[i->value];
            gmd_violation_add(judge, GMD_KIND(stream_order, given_back_early), GMD_NO_PARTIES,
                              "%s at 0x%" PRIx64
                              " were given back to the device, and the work that request %" PRIu64
                              " queued on stream %" PRIu32 " may still use the %s (request %" PRIu64
                              ") in it, which was freed in request %" PRIu64,
                              BYTES(call->size), call->address, m->use.request, m->use.stream,
                              BLOCK(view, m), m->born, m->freed);
            return;
        }
        gmd_intervals_remove(&p->ranges, i->address);
    }
}

/* On a real device: the memory had a new owner before the work of the earlier one had run. */
static void on_canary_finding(void *state, const gmd_view *view, gmd_judge *judge)
{
    (void)state;
    const gmd_canary_finding *finding = view->canaries.finding;
    const gmd_live_block *b = &finding->block, *other = &finding->other;
    if (!finding->has_other || gmd_canary_is_about_graphs(finding)) {
        return;
    }
    gmd_violation_add(judge, GMD_KIND(stream_order, handed_on_early), GMD_NO_PARTIES,
                      "the work that request %" PRIu64 " queued on stream %" PRIu32
                      " found, %s into its %s (request %" PRIu64 ", stream %" PRIu32
                      "), what the %s (request %" PRIu64 ", stream %" PRIu32
                      ") had written: the memory was handed on before that work had run",
                      finding->use.request, finding->use.stream, BYTES(finding->offset),
                      BLOCK(view, b), b->born, b->stream, BLOCK(view, other), other->born,
                      other->stream);
}

static void after_request(void *state, const gmd_view *view, gmd_judge *judge)
{
    pending *p = state;
    for (size_t i = 0; i < view->calls.count; i++) {
        if (view->calls.list[i].is_free && p->ranges.count) {
            check_given_back(p, view, &view->calls.list[i], judge);
        }
    }
    if (p->ranges.count > p->sweep_at) {
        sweep(p, view);
    }
}

static void at_end(void *state, const gmd_view *view, gmd_judge *judge)
{
    after_request(state, view, judge);
}

const gmd_oracle oracle_stream_order = {
    .entry = ORACLE_ENTRY(stream_order),
    .blind_spot = blind_spot,
    .create = create,
    .destroy = destroy,
    .after_alloc = after_alloc,
    .before_free = before_free,
    .on_canary_finding = on_canary_finding,
    .after_request = after_request,
    .at_end = at_end,
};
