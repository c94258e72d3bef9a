#include "check_end.h"

#include "gmd_grow.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct end_block { /* of either side, in address order */
    uint64_t address, size, requested_size, segment, segment_size;
    uint32_t stream; /* index into the trace's streams; UINT32_MAX: none of them */
    uint8_t state, is_large;
} end_block;

typedef struct end_state {
    int device;
    const gmd_trace *trace;
    const run_streams *streams;
    end_block *blocks;
    size_t count, capacity;
    bool is_out_of_memory;
} end_state;

static void add_end_block(end_state *e, const end_block *b)
{
    if (!GMD_GROW(&e->blocks, &e->capacity, e->count + 1)) {
        e->is_out_of_memory = true;
        return;
    }
    e->blocks[e->count++] = *b;
}

static uint32_t index_of_recorded_stream(const end_state *e, uint64_t handle)
{
    for (uint32_t i = 0; i < e->trace->streams.count; i++) {
        if (e->trace->stream_handles[i] == handle) {
            return i;
        }
    }
    return UINT32_MAX;
}

static void add_walked(void *context, const gmd_block_info *b)
{
    const end_state *e = context;
    add_end_block(context, &(end_block){.stream = streams_index(e->streams, e->device, b->stream),
                                        .address = b->address,
                                        .size = b->size,
                                        .requested_size = b->requested_size,
                                        .segment = b->segment_address,
                                        .segment_size = b->segment_size,
                                        .state = (uint8_t)b->state,
                                        .is_large = (uint8_t)b->is_large});
}

static void add_recorded_state(end_state *e, const gmd_snapshot *s)
{
    for (size_t i = 0; i < s->segment_count; i++) {
        const gmd_snapshot_segment *segment = &s->segments[i];
        uint32_t stream = index_of_recorded_stream(e, segment->stream);
        for (size_t k = 0; k < segment->block_count && segment->device == e->device; k++) {
            const gmd_snapshot_block *b = &s->blocks[segment->first_block + k];
            add_end_block(e, &(end_block){.stream = stream,
                                          .address = b->address,
                                          .size = b->size,
                                          .requested_size = b->requested_size,
                                          .segment = segment->address,
                                          .segment_size = segment->total_size,
                                          .state = b->state,
                                          .is_large = segment->is_large});
        }
    }
}

static int compare_end_blocks(const void *a, const void *b)
{
    const end_block *x = a, *y = b;
    return (x->address > y->address) - (x->address < y->address);
}

static void describe(const end_block *b, char text[200])
{
    static const char *const states[] = {"free", "allocated", "pending"};
    if (!b) {
        snprintf(text, 200, "no further block");
        return;
    }
    snprintf(text, 200,
             "%s block 0x%" PRIx64 " of %" PRIu64 " B (last asked for: %" PRIu64
             ") in the %s segment 0x%" PRIx64 " of %" PRIu64 " B of stream %u",
             b->state < 3 ? states[b->state] : "unknown", b->address, b->size, b->requested_size,
             b->is_large ? "large" : "small", b->segment, b->segment_size, b->stream);
}

static void sort_by_address(end_state *e)
{
    if (e->count) { /* qsort takes no NULL */
        qsort(e->blocks, e->count, sizeof *e->blocks, compare_end_blocks);
    }
}

static void compare_end_states(checker *c, end_state *want, end_state *got)
{
    sort_by_address(want);
    sort_by_address(got);
    for (size_t i = 0; i < want->count || i < got->count; i++) {
        const end_block *w = i < want->count ? &want->blocks[i] : NULL;
        const end_block *g = i < got->count ? &got->blocks[i] : NULL;
        bool same = w && g && w->address == g->address && w->size == g->size &&
                    w->segment == g->segment && w->segment_size == g->segment_size &&
                    w->state == g->state && w->is_large == g->is_large &&
                    w->requested_size == g->requested_size && w->stream == g->stream;
        if (!same) {
            char expected[200], seen[200];
            describe(w, expected);
            describe(g, seen);
            checker_differ(c, c->result->requests, "end_state", expected, "%s", seen);
            return;
        }
        c->result->blocks_compared++;
    }
}

/* The sums of a recorded segment are those of its blocks. */
static bool check_recorded_sums(checker *c)
{
    const gmd_snapshot *s = c->input->snapshot;
    for (size_t i = 0; i < s->segment_count; i++) {
        const gmd_snapshot_segment *segment = &s->segments[i];
        uint64_t allocated = 0, active = 0, requested = 0;
        for (size_t k = 0; k < segment->block_count; k++) {
            const gmd_snapshot_block *b = &s->blocks[segment->first_block + k];
            allocated += b->state == GMD_BLOCK_ALLOCATED ? b->size : 0;
            active += b->state != GMD_BLOCK_INACTIVE ? b->size : 0;
            requested += b->state != GMD_BLOCK_INACTIVE ? b->requested_size : 0;
        }
        if (allocated != segment->allocated_size || active != segment->active_size ||
            requested != segment->requested_size) {
            char expected[200];
            snprintf(expected, sizeof expected,
                     "segment 0x%" PRIx64 ": allocated %" PRIu64 ", active %" PRIu64
                     ", requested %" PRIu64,
                     segment->address, segment->allocated_size, segment->active_size,
                     segment->requested_size);
            checker_differ(c, c->result->requests, "end_state", expected,
                           "its own blocks sum up to %" PRIu64 ", %" PRIu64 " and %" PRIu64,
                           allocated, active, requested);
            return false;
        }
    }
    return true;
}

static gmd_status check_end_of_device(checker *c, int device, gmd_error *error)
{
    end_state want = {
        .device = device, .trace = &c->input->history->trace, .streams = &c->session->streams};
    end_state got = want;
    add_recorded_state(&want, c->input->snapshot);
    bool walked = gmd_session_subject(c->session)->walk(device, add_walked, &got) == 0;
    gmd_status status = GMD_OK;
    if (want.is_out_of_memory || got.is_out_of_memory || !walked) {
        status = gmd_fail(error, GMD_NO_MEMORY, "no host memory for the end state");
    } else {
        compare_end_states(c, &want, &got);
    }
    free(want.blocks);
    free(got.blocks);
    return status;
}

gmd_status check_end_state(checker *c, gmd_error *error)
{
    if (!gmd_session_subject(c->session)->walk || !c->knows_places || !check_recorded_sums(c)) {
        return GMD_OK;
    }
    gmd_status status = GMD_OK;
    for (int device = 0; device < c->session->device_count && c->result->exact && status == GMD_OK;
         device++) {
        status = check_end_of_device(c, device, error);
    }
    c->result->end_state_checked = status == GMD_OK;
    return status;
}
