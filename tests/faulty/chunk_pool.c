/* chunk_pool.c - a suballocating pool in the design of CuPy's memory pool
 * (https://docs.cupy.dev/en/stable/user_guide/memory.html): segments are cut into chunks that know
 * their neighbours; a freed chunk is merged with the free ones beside it. Free chunks belong to one
 * stream, and so do the segments that they were cut from. One lock guards the free chunks, a second
 * one the chunks in use.
 *
 * Defects, each with what goes wrong; docs/planted-defects.md has the rest. */
#include "faulty.h"

#include <pthread.h>
#include <stdlib.h>

enum {
    CUPY317,       /* a chunk is taken from the free ones under one lock and marked as used under
                      the other: a free of its neighbour in between merges with it */
    CUPY3008,      /* segments that go back are not taken off the bytes that the limit counts */
    RELEASE_SPLIT, /* a segment goes back when its first chunk is free */
    HALF_MERGE,    /* a freed chunk is merged with the one behind it and not with the one before */
    MERGES_USED,   /* the chunk behind is merged whether it is in use or not */
    OTHER_STREAM,  /* a free chunk of one stream serves another */
};
const char *const faulty_defects[] = {
    "cupy317", "cupy3008", "release_split", "half_merge", "merges_used", "other_stream", NULL};

#define UNIT    ((uint64_t)512)
#define SEGMENT ((uint64_t)2 << 20) /* the least */

typedef struct chunk chunk;
struct chunk {
    uint64_t address, size;
    int device;
    cudaStream_t stream;
    bool is_used, is_listed;
    chunk *before, *after;            /* neighbours in the segment */
    chunk *next_listed, *last_listed; /* free ones */
    chunk *next_in_use;               /* those in use */
};

static chunk *listed, *in_use, *retired;
static gmd_stats stats[FAULTY_DEVICES];
static uint64_t limits[FAULTY_DEVICES]; /* of reserved bytes; 0: none */
static pthread_mutex_t free_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t use_lock = PTHREAD_MUTEX_INITIALIZER;

/* --- free chunks; with free_lock held ---------------------------------------------------- */

static void list_chunk(chunk *c)
{
    c->is_listed = true;
    c->last_listed = NULL;
    c->next_listed = listed;
    if (listed) {
        listed->last_listed = c;
    }
    listed = c;
}

static void unlist_chunk(chunk *c)
{
    if (!c->is_listed) {
        return; /* somebody else has taken it */
    }
    c->is_listed = false;
    if (c->last_listed) {
        c->last_listed->next_listed = c->next_listed;
    } else {
        listed = c->next_listed;
    }
    if (c->next_listed) {
        c->next_listed->last_listed = c->last_listed;
    }
}

static chunk *pop_best(uint64_t size, int device, cudaStream_t stream)
{
    chunk *best = NULL;
    for (chunk *c = listed; c; c = c->next_listed) {
        if (c->size >= size && c->device == device &&
            (c->stream == stream || faulty_is(OTHER_STREAM)) &&
            (!best || c->size < best->size ||
             (c->size == best->size && c->address < best->address))) {
            best = c;
        }
    }
    if (best) {
        unlist_chunk(best);
    }
    return best;
}

/* What is left of `c` becomes a free chunk behind it. */
static void split(chunk *c, uint64_t size)
{
    chunk *rest = c->size > size ? calloc(1, sizeof *rest) : NULL;
    if (!rest) {
        return; /* all of it, then */
    }
    *rest = (chunk){.address = c->address + size,
                    .size = c->size - size,
                    .device = c->device,
                    .stream = c->stream,
                    .before = c,
                    .after = c->after};
    if (c->after) {
        c->after->before = rest;
    }
    c->after = rest;
    c->size = size;
    list_chunk(rest);
}

/* With a defect the structure is kept: a thread may be about to use it. */
static void drop_chunk(chunk *c)
{
    if (!faulty_active) {
        free(c);
        return;
    }
    c->next_listed = retired;
    retired = c;
}

/* `c` takes the chunk behind it in. */
static void merge_after(chunk *c)
{
    chunk *gone = c->after;
    unlist_chunk(gone);
    c->size += gone->size;
    c->after = gone->after;
    if (c->after) {
        c->after->before = c;
    }
    drop_chunk(gone);
}

/* --- segments ---------------------------------------------------------------------------- */

static chunk *new_segment(uint64_t size, int device, cudaStream_t stream)
{
    chunk *c = calloc(1, sizeof *c);
    uint64_t limit = limits[device];
    bool is_within = !limit || stats[device].reserved_bytes + size <= limit;
    void *memory = c && is_within ? faulty_take(size) : NULL;
    if (!memory) {
        free(c);
        return NULL;
    }
    *c = (chunk){.address = (uintptr_t)memory, .size = size, .device = device, .stream = stream};
    faulty_count_segment(&stats[device], size);
    return c;
}

/* A segment that is one free chunk goes back. cudaFree waits for the work on it. */
static void release_segments(void)
{
    for (chunk *c = listed, *next; c; c = next) {
        next = c->next_listed;
        if (!c->before && (!c->after || faulty_is(RELEASE_SPLIT))) {
            unlist_chunk(c);
            if (!faulty_is(CUPY3008)) {
                faulty_count_segment_freed(&stats[c->device], c->size);
            }
            cudaFree((void *)(uintptr_t)c->address); /* NOLINT(performance-no-int-to-ptr) */
            drop_chunk(c);
        }
    }
}

/* --- the ABI ----------------------------------------------------------------------------- */

static void put_in_use(chunk *c, size_t requested)
{
    c->next_in_use = in_use;
    in_use = c;
    faulty_count_alloc(&stats[c->device], c->size, requested);
}

static chunk *take_from_use(const void *pointer)
{
    for (chunk **link = &in_use; *link; link = &(*link)->next_in_use) {
        if ((*link)->address == (uintptr_t)pointer) {
            chunk *c = *link;
            *link = c->next_in_use;
            return c;
        }
    }
    return NULL;
}

static chunk *take_chunk(uint64_t size, int device, cudaStream_t stream)
{
    pthread_mutex_lock(&free_lock);
    chunk *c = pop_best(size, device, stream);
    uint64_t segment = (size + SEGMENT - 1) / SEGMENT * SEGMENT;
    if (!c) {
        c = new_segment(segment, device, stream);
    }
    if (!c) {
        release_segments();
        c = new_segment(segment, device, stream);
    }
    if (c && !faulty_is(CUPY317)) {
        c->is_used = true;
        split(c, size);
    }
    pthread_mutex_unlock(&free_lock);
    if (c && faulty_is(CUPY317)) {
        pthread_mutex_lock(&free_lock);
        split(c, size);
        pthread_mutex_unlock(&free_lock);
    }
    return c;
}

void *gmd_malloc(size_t size, int device, cudaStream_t stream)
{
    faulty_guard guard = faulty_enter_device(device);
    chunk *c = NULL;
    if (size <= SIZE_MAX / 2) {
        c = take_chunk((size ? size + UNIT - 1 : UNIT) / UNIT * UNIT, device, stream);
    }
    pthread_mutex_lock(&use_lock);
    if (c) {
        c->is_used = true;
        put_in_use(c, size);
    } else {
        stats[device].num_ooms++;
    }
    void *memory = c ? (void *)(uintptr_t)c->address : NULL; /* NOLINT(performance-no-int-to-ptr) */
    pthread_mutex_unlock(&use_lock);
    faulty_leave_device(guard);
    return memory;
}

void gmd_free(void *pointer, size_t size, int device, cudaStream_t stream)
{
    (void)stream;
    pthread_mutex_lock(&use_lock);
    chunk *c = take_from_use(pointer);
    if (c) {
        faulty_count_free(&stats[device], c->size, size);
    }
    pthread_mutex_unlock(&use_lock);
    if (!c) {
        return;
    }
    pthread_mutex_lock(&free_lock);
    c->is_used = false;
    if (c->after && (!c->after->is_used || faulty_is(MERGES_USED))) {
        merge_after(c);
    }
    if (c->before && !c->before->is_used && !faulty_is(HALF_MERGE)) {
        c = c->before;
        unlist_chunk(c);
        merge_after(c);
    }
    list_chunk(c);
    pthread_mutex_unlock(&free_lock);
}

void gmd_empty_cache(void)
{
    pthread_mutex_lock(&free_lock);
    release_segments();
    pthread_mutex_unlock(&free_lock);
}

void gmd_set_memory_fraction(double fraction, int device)
{
    uint64_t limit;
    if (faulty_limit(fraction, device, &limit)) {
        pthread_mutex_lock(&free_lock);
        limits[device] = limit;
        pthread_mutex_unlock(&free_lock);
    }
}

int gmd_get_stats(int device, gmd_stats *out)
{
    pthread_mutex_lock(&free_lock);
    pthread_mutex_lock(&use_lock);
    int result = faulty_give_stats(&stats[device], out);
    pthread_mutex_unlock(&use_lock);
    pthread_mutex_unlock(&free_lock);
    return result;
}
