#include "checkpoints.h"

#include "block_requests.h"
#include "blocks.h"
#include "frames.h"
#include "journal_writer.h"
#include "notes.h"
#include "view.h"

#include <stdlib.h>
#include <string.h>

bool checkpoints_are_possible(gmd_session *s)
{
    const char *missing = !s->subject.checkpoint_pool
                              ? "the allocator exports no gmd_checkpoint_pool, "
                                "gmd_restore_pool and gmd_drop_checkpoint"
                          : s->interleaving.overlap ? "threads are interleaved"
                          : !s->workload->trace     ? "the blocks of the workload have no numbers"
                                                    : NULL;
    if (missing && !s->pools.has_missed_checkpoints) {
        session_note(s, "checkpoints of private pools are left out: %s", missing);
        s->pools.has_missed_checkpoints = true;
    }
    return !missing;
}

/* --- what is kept ------------------------------------------------------------------------ */

static void drop(gmd_session *s, kept_pool *kept)
{
    if (kept->made) {
        call_frame frame;
        enter_allocator(s, "gmd_drop_checkpoint", &frame);
        s->subject.drop_checkpoint(kept->made);
        leave_allocator(s, &frame);
    }
    free(kept->blocks);
    *kept = (kept_pool){0};
}

void checkpoints_drop(gmd_session *s, int device, uint32_t pool)
{
    drop(s, &s->pools.kept[device][pool]);
}

void checkpoints_drop_all(gmd_session *s)
{
    for (int device = 0; s->pools.is_used && device < s->device_count; device++) {
        for (uint32_t pool = 0; pool < GMD_MAX_POOLS; pool++) {
            checkpoints_drop(s, device, pool);
        }
    }
}

void checkpoints_forget_stream(gmd_session *s, int device, uint32_t stream)
{
    for (uint32_t pool = 0; s->pools.is_used && pool < GMD_MAX_POOLS; pool++) {
        kept_pool *kept = &s->pools.kept[device][pool];
        bool is_there = false;
        for (size_t i = 0; i < kept->count; i++) {
            is_there = is_there || kept->blocks[i].live.stream == stream;
        }
        if (is_there) {
            drop(s, kept);
        }
    }
}

static session_block *next_of_pool(const gmd_session *s, int device, uint32_t serial, uint32_t *id)
{
    session_block *b;
    do {
        b = live_blocks_next(&s->blocks, id);
    } while (b && (b->live.device != device || b->live.pool != serial));
    return b;
}

static size_t count_of_pool(const gmd_session *s, int device, uint32_t serial)
{
    size_t count = 0;
    for (uint32_t id = 0; next_of_pool(s, device, serial, &id);) {
        count++;
    }
    return count;
}

static bool has_orphan(const gmd_session *s, int device, uint32_t serial)
{
    const session_block *b;
    uint32_t id = 0;
    do {
        b = next_of_pool(s, device, serial, &id);
    } while (b && !b->is_orphan);
    return b;
}

gmd_status checkpoints_make(gmd_session *s, const gmd_request *r, gmd_error *error)
{
    kept_pool *kept = &s->pools.kept[r->device][r->pool];
    uint32_t serial = s->pools.serials[r->device][r->pool];
    const uint64_t id[2] = {0, serial};
    if (has_orphan(s, r->device, serial)) { /* it would be gone already */
        drop(s, kept);
        return GMD_OK;
    }
    size_t count = count_of_pool(s, r->device, serial);
    session_block *blocks = malloc((count + 1) * sizeof *blocks);
    if (!blocks) {
        return gmd_fail(error, GMD_NO_MEMORY, "no host memory for %zu blocks of a pool", count);
    }
    gmd_checkpoint *made = NULL;
    char message[200] = "";
    call_frame frame;
    enter_allocator(s, "gmd_checkpoint_pool", &frame);
    int result = s->subject.checkpoint_pool(r->device, id, &made, message, sizeof message);
    leave_allocator(s, &frame);
    if (result != 0 || !made) {
        free(blocks);
        return GMD_OK;
    }
    drop(s, kept);
    *kept = (kept_pool){.made = made, .blocks = blocks, .count = count};
    uint32_t next = 0;
    for (size_t i = 0; i < count; i++) {
        blocks[i] = *next_of_pool(s, r->device, serial, &next);
    }
    return GMD_OK;
}

/* --- what the allocator tells ------------------------------------------------------------ */

/* Freed blocks first, then those that are live, as they are expected: each is to be told once. */
typedef struct expected {
    uint64_t address, bytes;
    cudaStream_t stream;
    bool is_live, is_told;
} expected;

typedef struct expectations {
    expected *list;
    size_t count;
    const gmd_pool_failure *failure; /* the first; NULL: none */
    uint64_t address;                /* of its block */
} expectations;

static const gmd_pool_failure
    other_freed = {"other_freed", "a block was told as freed that is not live in it"},
    other_live = {"other_live", "a block was told as live that was not in the checkpoint"},
    untold_freed = {"untold_freed", "a live block of it was not told as freed"},
    untold_live = {"untold_live", "a block of the checkpoint was not told as live"},
    smaller = {"smaller", "a block of the checkpoint was told with less than was asked for"},
    other_stream = {"other_stream", "a block of the checkpoint was told with another stream"};

static void fail(expectations *e, const gmd_pool_failure *failure, uint64_t address)
{
    if (!e->failure) {
        e->failure = failure;
        e->address = address;
    }
}

static void take_told(void *context, void *ptr, uint64_t size, cudaStream_t stream, int is_live)
{
    expectations *e = context;
    uint64_t address = (uint64_t)(uintptr_t)ptr;
    size_t i = 0;
    while (i < e->count && (e->list[i].address != address || e->list[i].is_live != !!is_live ||
                            e->list[i].is_told)) {
        i++;
    }
    if (i == e->count) {
        fail(e, is_live ? &other_live : &other_freed, address);
        return;
    }
    e->list[i].is_told = true;
    if (is_live && size < e->list[i].bytes) {
        fail(e, &smaller, address);
    } else if (is_live && stream != e->list[i].stream) {
        fail(e, &other_stream, address);
    }
}

static gmd_status expect(gmd_session *s, const gmd_live_block *b, bool is_live, expectations *e,
                         gmd_error *error)
{
    cudaStream_t stream = NULL;
    gmd_status status = streams_get(&s->streams, b->device, b->stream, &stream, error);
    e->list[e->count++] = (expected){b->address, b->bytes, stream, is_live, false};
    return status;
}

static gmd_status expect_all(gmd_session *s, int device, const kept_pool *kept, uint32_t serial,
                             expectations *e, gmd_error *error)
{
    gmd_status status = GMD_OK;
    session_block *b;
    for (uint32_t id = 0; status == GMD_OK && (b = next_of_pool(s, device, serial, &id)) != NULL;) {
        status = block_settle(s, b, error);
        status = status == GMD_OK ? expect(s, &b->live, false, e, error) : status;
    }
    for (size_t i = 0; i < kept->count && status == GMD_OK; i++) {
        status = expect(s, &kept->blocks[i].live, true, e, error);
    }
    return status;
}

static void check_all_told(expectations *e)
{
    for (size_t i = 0; i < e->count; i++) {
        if (!e->list[i].is_told) {
            fail(e, e->list[i].is_live ? &untold_live : &untold_freed, e->list[i].address);
        }
    }
}

/* --- a restore --------------------------------------------------------------------------- */

static const session_block *find_kept(const kept_pool *kept, const gmd_live_block *b)
{
    for (size_t i = 0; i < kept->count; i++) {
        const gmd_live_block *k = &kept->blocks[i].live;
        if (k->address == b->address && k->born == b->born) {
            return &kept->blocks[i];
        }
    }
    return NULL;
}

static gmd_status end_blocks(gmd_session *s, int device, const kept_pool *kept, uint32_t serial,
                             gmd_error *error)
{
    gmd_status status = GMD_OK;
    session_block *b;
    for (uint32_t id = 0; status == GMD_OK && (b = next_of_pool(s, device, serial, &id)) != NULL;) {
        if (!find_kept(kept, &b->live)) {
            status = block_end(s, b, error);
        }
    }
    return status;
}

static bool is_live_still(const gmd_session *s, const gmd_live_block *b)
{
    const session_block *now = live_blocks_find(&s->blocks, b->id);
    return now && now->live.address == b->address && now->live.born == b->born;
}

/* Its number is beyond those of the trace. */
static gmd_status bring_back(gmd_session *s, const gmd_live_block *was, gmd_error *error)
{
    uint32_t id = (uint32_t)s->workload->trace->blocks.count + s->pools.returned++;
    session_block *place = live_blocks_at(&s->blocks, id);
    if (!place) {
        return gmd_fail(error, GMD_NO_MEMORY, "no host memory for block %u", id);
    }
    session_block back = {.live = *was, .is_for_graph = true};
    back.live.id = id;
    live_blocks_add(&s->blocks, place, &back);
    s->view.block = &place->live;
    view_refresh(s);
    journal_writer_alloc(s,
                         &(gmd_request){.op = GMD_OP_ALLOC,
                                        .block = was->id,
                                        .bytes = was->bytes,
                                        .stream = was->stream,
                                        .device = (uint8_t)was->device},
                         was->address);
    if (!s->is_over) {
        judge_ask(&s->judge, GMD_HOOK_AFTER_ALLOC, &s->view);
    }
    s->view.block = NULL;
    return GMD_OK;
}

static gmd_status take_over(gmd_session *s, const gmd_request *r, kept_pool *kept, gmd_error *error)
{
    gmd_status status = end_blocks(s, r->device, kept, s->pools.serials[r->device][r->pool], error);
    for (size_t i = 0; i < kept->count && status == GMD_OK; i++) {
        gmd_live_block *b = &kept->blocks[i].live;
        if (!is_live_still(s, b)) {
            status = bring_back(s, b, error);
            b->id = (uint32_t)s->workload->trace->blocks.count + s->pools.returned - 1;
        }
    }
    return status;
}

gmd_status checkpoints_restore(gmd_session *s, const gmd_request *r, gmd_error *error)
{
    kept_pool *kept = &s->pools.kept[r->device][r->pool];
    uint32_t serial = s->pools.serials[r->device][r->pool];
    if (!kept->made) { /* the allocator refused it, or its streams are gone */
        return GMD_OK;
    }
    size_t count = count_of_pool(s, r->device, serial) + kept->count;
    expectations e = {.list = calloc(count + 1, sizeof *e.list)};
    gmd_status status =
        e.list ? expect_all(s, r->device, kept, serial, &e, error)
               : gmd_fail(error, GMD_NO_MEMORY, "no host memory for %zu blocks of a pool", count);
    char message[200] = "";
    int result = -1;
    if (status == GMD_OK) {
        call_frame frame;
        enter_allocator(s, "gmd_restore_pool", &frame);
        result =
            s->subject.restore_pool(r->device, kept->made, take_told, &e, message, sizeof message);
        leave_allocator(s, &frame);
    }
    if (result == 0) {
        check_all_told(&e);
        s->view.pools.restored = e.failure;
        s->view.pools.restored_address = e.address;
        status = e.failure ? GMD_OK : take_over(s, r, kept, error);
    }
    free(e.list);
    return status;
}
