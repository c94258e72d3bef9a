/* caching_routes.c - private pools of caching_pool.c: a block belongs to the pool that its segment
 * was taken for, and serves requests of that one only. What is free goes back to the device like
 * what the default pool has, held or not; but graphs that were captured work in what they had, free
 * or not, for as long as the pool is held. A pool may have options: gmd_set_pool_option and
 * gmd_set_pool_memory. */
#include "caching_pool.h"

#include <stdlib.h>
#include <string.h>

uint32_t owner_named(const pool *p, const uint64_t id[2])
{
    for (size_t i = 0; i < p->private_count; i++) {
        if (p->privates[i].id[0] == id[0] && p->privates[i].id[1] == id[1]) {
            return (uint32_t)i + 1;
        }
    }
    return 0;
}

static private_pool *find_private(pool *p, const uint64_t id[2])
{
    uint32_t owner = owner_named(p, id);
    return owner ? &p->privates[owner - 1] : NULL;
}

bool is_given_up(const pool *p, uint32_t owner)
{
    return owner && !p->privates[owner - 1].holders;
}

/* Nobody holds it, and no block lies in memory that was taken for it. */
static bool is_gone(const private_pool *own)
{
    return !own->holders && !own->segments;
}

/* In the place of one that is gone, if there is any. */
static private_pool *make_private(pool *p, const uint64_t id[2])
{
    size_t count = p->privates ? p->private_count : 0;
    uint32_t owner = 1;
    while (owner <= count && !is_gone(&p->privates[owner - 1])) {
        owner++;
    }
    if (owner > count) {
        private_pool *grown = realloc(p->privates, owner * sizeof *grown);
        if (!grown) {
            return NULL;
        }
        p->privates = grown;
        p->private_count = owner;
    }
    p->privates[owner - 1] = (private_pool){.id = {id[0], id[1]}};
    return &p->privates[owner - 1];
}

uint32_t owner_for(const pool *p, cudaStream_t stream)
{
    bool is_meant = p->open && (!p->accepts || p->accepts(p->context, stream));
    return is_meant ? p->open : 0;
}

/* --- options ------------------------------------------------------------------------------- */

bool is_kept_whole(const pool *p, uint32_t owner)
{
    return owner && p->privates[owner - 1].is_whole;
}

const gmd_pool_memory *source_of(const pool *p, uint32_t owner)
{
    const private_pool *own = owner ? &p->privates[owner - 1] : NULL;
    return own && own->memory.allocate ? &own->memory : NULL;
}

/* Its source learns of its end. */
static void end_if_gone(private_pool *own)
{
    if (is_gone(own)) {
        if (own->memory.done) {
            own->memory.done(own->memory.context);
        }
        own->memory = (gmd_pool_memory){0};
        own->is_whole = own->is_lent = false;
    }
}

void note_segment(pool *p, uint32_t owner, bool is_new)
{
    if (owner && is_new) {
        p->privates[owner - 1].segments++;
    } else if (owner) {
        p->privates[owner - 1].segments--;
        end_if_gone(&p->privates[owner - 1]);
    }
}

block *take_lent(pool *p, uint64_t size, bool is_large, cudaStream_t stream)
{
    block *b = NULL;
    for (uint32_t owner = 1; owner <= p->private_count && !b && !owner_for(p, stream); owner++) {
        const private_pool *own = &p->privates[owner - 1];
        b = own->is_lent && own->holders ? take_best_of(p, size, is_large, stream, owner) : NULL;
    }
    return b;
}

/* --- captures ------------------------------------------------------------------------------ */

bool is_kept_for_graphs(const pool *p, uint32_t owner)
{
    return owner && p->privates[owner - 1].is_captured && p->privates[owner - 1].holders &&
           !faulty_is(LLAMACPP26771);
}

static enum cudaStreamCaptureStatus status_of(cudaStream_t stream)
{
    enum cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
    if (cudaStreamIsCapturing(stream, &status) != cudaSuccess) {
        cudaGetLastError();
        return cudaStreamCaptureStatusActive; /* not known: nothing is done to it */
    }
    return status;
}

bool is_captured(cudaStream_t stream)
{
    return status_of(stream) != cudaStreamCaptureStatusNone;
}

void note_capture(pool *p, cudaStream_t stream)
{
    enum cudaStreamCaptureStatus status = status_of(stream);
    if (p->open && status != cudaStreamCaptureStatusNone) {
        private_pool *own = &p->privates[p->open - 1];
        own->is_captured = true;
        own->has_failed = own->has_failed || status == cudaStreamCaptureStatusInvalidated;
    }
}

capture_mode relax(void)
{
    capture_mode mode = {.before = cudaStreamCaptureModeRelaxed};
    mode.is_changed = cudaThreadExchangeStreamCaptureMode(&mode.before) == cudaSuccess;
    if (!mode.is_changed) {
        cudaGetLastError();
    }
    return mode;
}

void unrelax(capture_mode mode)
{
    if (mode.is_changed && !faulty_is(MODE_LEFT) &&
        cudaThreadExchangeStreamCaptureMode(&mode.before) != cudaSuccess) {
        cudaGetLastError();
    }
}

/* --- the ABI ------------------------------------------------------------------------------- */

EXPORT int gmd_begin_pool(int device, const uint64_t id[2], gmd_stream_filter *accepts,
                          void *context);
int gmd_begin_pool(int device, const uint64_t id[2], gmd_stream_filter *accepts, void *context)
{
    pool *p = &pools[device];
    pthread_mutex_lock(&lock);
    private_pool *own = p->open ? NULL : find_private(p, id);
    if (!own && !p->open) {
        own = make_private(p, id);
    }
    if (own) {
        own->holders++;
        p->open = (uint32_t)(own - p->privates) + 1;
        p->accepts = accepts;
        p->context = context;
    }
    pthread_mutex_unlock(&lock);
    return own ? 0 : -1;
}

EXPORT int gmd_end_pool(int device, const uint64_t id[2], void **context);
int gmd_end_pool(int device, const uint64_t id[2], void **context)
{
    pool *p = &pools[device];
    pthread_mutex_lock(&lock);
    const private_pool *own = find_private(p, id);
    bool is_open = own && p->open == (uint32_t)(own - p->privates) + 1;
    if (is_open) {
        p->open = 0;
        *context = p->context;
    }
    pthread_mutex_unlock(&lock);
    return is_open ? 0 : -1;
}

EXPORT int gmd_release_pool(int device, const uint64_t id[2]);
int gmd_release_pool(int device, const uint64_t id[2])
{
    pthread_mutex_lock(&lock);
    private_pool *own = find_private(&pools[device], id);
    bool is_held = own && own->holders;
    if (is_held && !(own->has_failed && faulty_is(PYTORCH190348))) {
        own->holders--;
        end_if_gone(own);
    }
    pthread_mutex_unlock(&lock);
    return is_held ? 0 : -1;
}

EXPORT int gmd_set_pool_option(int device, const uint64_t id[2], const char *name, int is_on);
int gmd_set_pool_option(int device, const uint64_t id[2], const char *name, int is_on)
{
    pthread_mutex_lock(&lock);
    private_pool *own = find_private(&pools[device], id);
    bool *option = !own || !own->holders             ? NULL
                   : strcmp(name, "no_split") == 0   ? &own->is_whole
                   : strcmp(name, "use_on_oom") == 0 ? &own->is_lent
                                                     : NULL;
    if (option) {
        *option = is_on;
    }
    pthread_mutex_unlock(&lock);
    return option ? 0 : -1;
}

EXPORT int gmd_set_pool_memory(int device, const uint64_t id[2], const gmd_pool_memory *memory);
int gmd_set_pool_memory(int device, const uint64_t id[2], const gmd_pool_memory *memory)
{
    pthread_mutex_lock(&lock);
    private_pool *own = find_private(&pools[device], id);
    bool can_have = own && own->holders && !own->segments && !own->memory.allocate;
    if (can_have) {
        own->memory = *memory;
    }
    pthread_mutex_unlock(&lock);
    return can_have ? 0 : -1;
}
