/* session_pools.c - private pools: which requests go there, and for how long they are held. */
#include "session_internal.h"

#include <string.h>

typedef struct pool_id {
    uint64_t words[2]; /* {0, 0} is the default pool */
} pool_id;

static pool_id id_of(const gmd_session *s, int device, uint32_t pool)
{
    return (pool_id){{0, s->pools.serials[device][pool]}};
}

/* A pool that nobody holds any more is gone for good: an allocator need not know its name again. */
static void name_pool(gmd_session *s, int device, uint32_t pool)
{
    if (s->pools.book.holders[device][pool] == 1) {
        s->pools.serials[device][pool] = GMD_MAX_POOLS * s->pool_count++ + 1 + pool;
    }
}

/* `context` is the device's entry in gmd_session_pools.accepted. */
static bool is_the_stream(void *context, cudaStream_t stream)
{
    return *(cudaStream_t *)context == stream;
}

static bool begin(gmd_session *s, int device, uint32_t pool)
{
    const pool_id id = id_of(s, device, pool);
    cudaStream_t *stream = &s->pools.accepted[device].stream;
    bool takes_all = s->pools.accepted[device].takes_all;
    gmd_call_frame frame;
    gmd_session_give_floor(s, &frame);
    int result = s->subject.begin_pool(device, id.words, takes_all ? NULL : is_the_stream, stream);
    gmd_session_take_floor(s, &frame);
    return result == 0;
}

/* NULL: done; else what was wrong with the answer. */
static const char *end(gmd_session *s, int device, uint32_t pool)
{
    const pool_id id = id_of(s, device, pool);
    void *context = NULL;
    gmd_call_frame frame;
    gmd_session_give_floor(s, &frame);
    int result = s->subject.end_pool(device, id.words, &context);
    gmd_session_take_floor(s, &frame);
    return result != 0 ? "gmd_end_pool was refused, and the pool is open"
           : context != &s->pools.accepted[device].stream
               ? "gmd_end_pool did not give back the context of gmd_begin_pool"
               : NULL;
}

static const char *release(gmd_session *s, int device, uint32_t pool)
{
    const pool_id id = id_of(s, device, pool);
    gmd_call_frame frame;
    gmd_session_give_floor(s, &frame);
    int result = s->subject.release_pool(device, id.words);
    gmd_session_take_floor(s, &frame);
    return result != 0 ? "gmd_release_pool was refused, and the pool is held" : NULL;
}

/* An allocator may refuse to make a pool: requests then go where they went before. */
static void do_begin(gmd_session *s, const gmd_request *r)
{
    gmd_pool_book *book = &s->pools.book;
    if (!begin(s, r->device, r->pool)) {
        book->open[r->device] = 0;
        book->holders[r->device][r->pool]--;
        if (!s->view.faults_hit) {
            gmd_session_note(s, "the allocator refused a private pool on device %d", r->device);
        }
    }
}

gmd_status gmd_session_on_pool(gmd_session *s, const gmd_request *r, gmd_error *error)
{
    gmd_session_pools *p = &s->pools;
    if (r->pool >= GMD_MAX_POOLS) {
        return gmd_fail(error, GMD_BAD_INPUT, "pool %u: at most %d pools are possible", r->pool,
                        GMD_MAX_POOLS);
    }
    if (!s->subject.begin_pool) {
        if (!p->is_used) {
            gmd_session_note(s, "private pools are left out: the allocator exports no "
                                "gmd_begin_pool, gmd_end_pool and gmd_release_pool");
        }
        p->is_used = true;
        return GMD_OK;
    }
    p->is_used = true;
    cudaStream_t stream = NULL;
    bool takes_all = r->stream == GMD_ALL_STREAMS;
    if (r->op == GMD_OP_BEGIN_POOL && !takes_all) {
        gmd_status status = gmd_streams_get(&s->streams, r->device, r->stream, &stream, error);
        if (status != GMD_OK) {
            return status;
        }
    }
    if (gmd_pool_book_note(&p->book, r)) {
        return GMD_OK;
    }
    if (r->op == GMD_OP_BEGIN_POOL) {
        p->accepted[r->device].stream = stream;
        p->accepted[r->device].takes_all = takes_all;
        s->shared->outcome.scene.has_begun_pool = true;
        name_pool(s, r->device, r->pool);
        do_begin(s, r);
    } else {
        s->view.pool_failure =
            r->op == GMD_OP_END_POOL ? end(s, r->device, r->pool) : release(s, r->device, r->pool);
        s->view.pool = p->serials[r->device][r->pool];
        s->view.pool_is_let_go =
            r->op == GMD_OP_RELEASE_POOL && !p->book.holders[r->device][r->pool];
    }
    return GMD_OK;
}

bool gmd_session_leave_pool(gmd_session *s, int device)
{
    uint8_t open = s->pools.book.open[device];
    return open && !end(s, device, open - 1u);
}

bool gmd_session_reenter_pool(gmd_session *s, int device)
{
    uint32_t pool = s->pools.book.open[device] - 1u;
    bool is_begun = begin(s, device, pool);
    s->pools.book.holders[device][pool] += is_begun;
    s->pools.book.open[device] = is_begun ? s->pools.book.open[device] : 0;
    return is_begun;
}

void gmd_session_end_pools(gmd_session *s)
{
    for (int device = 0; s->pools.is_used && device < s->device_count; device++) {
        uint8_t *open = &s->pools.book.open[device];
        if (*open) {
            end(s, device, *open - 1u);
            *open = 0;
        }
    }
}

void gmd_session_release_pools(gmd_session *s)
{
    for (int device = 0; s->pools.is_used && device < s->device_count; device++) {
        for (uint32_t pool = 0; pool < GMD_MAX_POOLS; pool++) {
            for (uint32_t *held = &s->pools.book.holders[device][pool]; *held; --*held) {
                release(s, device, pool);
            }
        }
    }
}
