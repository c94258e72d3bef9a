#include "pool_sources.h"

#include "gmd_intervals.h"

#include <stdlib.h>

/* One for each pool with memory of its own, since the process began; those that are gone are used
 * again. Threads take turns where there are any: pools have no options where they are interleaved.
 */
typedef struct pool_source {
    struct pool_source *next;
    const gmd_session *session; /* NULL: its run is over */
    gmd_runtime runtime;        /* a copy: it outlasts the session */
    int device;
    uint32_t serial;     /* of the pool */
    gmd_intervals given; /* and not given back */
    bool is_done;        /* the allocator has said that the pool is gone */
    const gmd_pool_failure *failure;
    uint64_t failed_at; /* an address */
} pool_source;

static pool_source *sources;

static const gmd_pool_failure wrong_device = {
    "device", "its source was asked for memory of another device than the pool's"};
static const gmd_pool_failure not_given = {
    "release", "its source was given memory back that it had not given"};
static const gmd_pool_failure wrong_size = {
    "size", "its source was given memory back with another size or device than it had given"};
static const gmd_pool_failure kept = {
    "kept", "its end was told to its source while memory of the source was not given back"};
static const gmd_pool_failure after_end = {
    "after_end", "its source was called after the pool's end was told to it"};
static const gmd_pool_failure elsewhere = {"elsewhere",
                                           "a block of it is not in the memory of its source"};
static const gmd_pool_failure anothers = {
    "anothers", "memory of its source serves a request that went elsewhere"};

static void fail(pool_source *s, const gmd_pool_failure *failure, uint64_t address)
{
    if (!s->failure) {
        s->failure = failure;
        s->failed_at = address;
    }
}

/* --- what the allocator calls -------------------------------------------------------------- */

/* On the pool's device, whichever is current. An error is the source's own to clear. */
static cudaError_t on_device(const pool_source *s, void **memory, uint64_t size)
{
    int current = s->device;
    const gmd_runtime *rt = &s->runtime;
    rt->cudaGetDevice(&current);
    if (current != s->device) {
        rt->cudaSetDevice(s->device);
    }
    cudaError_t result = size ? rt->cudaMalloc(memory, (size_t)size) : rt->cudaFree(*memory);
    if (result != cudaSuccess) {
        rt->cudaGetLastError();
    }
    if (current != s->device) {
        rt->cudaSetDevice(current);
    }
    return result;
}

static void *allocate(void *context, size_t size, int device)
{
    pool_source *s = context;
    void *memory = NULL;
    if (s->is_done || device != s->device) {
        fail(s, s->is_done ? &after_end : &wrong_device, 0);
    }
    if (!size || on_device(s, &memory, size) != cudaSuccess) {
        return NULL;
    }
    uint64_t address = (uint64_t)(uintptr_t)memory;
    if (!gmd_intervals_insert(&s->given, address, address + size, 0)) {
        on_device(s, &memory, 0);
        return NULL;
    }
    return memory;
}

static void release(void *context, void *ptr, size_t size, int device)
{
    pool_source *s = context;
    uint64_t address = (uint64_t)(uintptr_t)ptr;
    const gmd_interval *found = gmd_intervals_after(&s->given, address);
    if (s->is_done) {
        fail(s, &after_end, address);
    }
    if (!found || found->address != address) {
        fail(s, &not_given, address);
        return;
    }
    if (found->end != address + size || device != s->device) {
        fail(s, &wrong_size, address);
    }
    gmd_intervals_remove(&s->given, address);
    on_device(s, &ptr, 0);
}

static void end_source(void *context)
{
    pool_source *s = context;
    if (s->is_done || s->given.count) {
        const gmd_interval *first = gmd_intervals_after(&s->given, 0);
        fail(s, s->is_done ? &after_end : &kept, first ? first->address : 0);
    }
    s->is_done = true;
}

/* --- the session's side -------------------------------------------------------------------- */

static pool_source *spare_source(void)
{
    pool_source *s = sources;
    while (s && (!s->is_done || s->session)) {
        s = s->next;
    }
    if (!s && (s = calloc(1, sizeof *s))) {
        s->next = sources;
        sources = s;
    }
    return s;
}

gmd_pool_memory pool_sources_open(gmd_session *session, int device, uint32_t serial)
{
    pool_source *s = spare_source();
    if (!s) {
        return (gmd_pool_memory){0};
    }
    gmd_intervals_free(&s->given);
    *s = (pool_source){.next = s->next,
                       .session = session,
                       .runtime = session->runtime,
                       .device = device,
                       .serial = serial};
    return (gmd_pool_memory){
        .allocate = allocate, .release = release, .done = end_source, .context = s};
}

void pool_sources_forget(void)
{
    for (pool_source *s = sources; s; s = s->next) {
        s->session = NULL;
        s->failure = NULL;
    }
}

static bool has_given(const pool_source *s, const gmd_live_block *b)
{
    const gmd_interval *found = gmd_intervals_after(&s->given, b->address);
    return found && found->address <= b->address && b->address + b->bytes <= found->end;
}

static void look_at_block(pool_source *s, const gmd_pool_state *pools, const gmd_live_block *b)
{
    bool is_own = b->device == s->device && b->pool == s->serial;
    if (!b->bytes || is_own == has_given(s, b)) {
        return;
    }
    uint8_t options = pools->options[s->device][gmd_pool_number(s->serial)];
    if (is_own || b->pool || !(options & GMD_POOL_USE_ON_OOM)) {
        fail(s, is_own ? &elsewhere : &anothers, b->address);
    }
}

void pool_sources_show(gmd_session *session, const gmd_live_block *handed_out)
{
    for (pool_source *s = sources; s; s = s->next) {
        if (s->session == session && handed_out && !s->is_done) {
            look_at_block(s, &session->pools.state, handed_out);
        }
        if (s->session == session && s->failure && !session->view.pools.source) {
            session->view.pools.source = s->failure;
            session->view.pools.source_serial = s->serial;
            session->view.pools.source_address = s->failed_at;
        }
        s->failure = NULL;
    }
}
