/* magazines.c - bins of powers of two, whose blocks lie in chunks of 2 MiB. Each stream has a
 * magazine of eight freed blocks for each bin; from a full one four go to the depot as a batch,
 * with an event. An empty magazine is filled from the depot, else steals a block from the fullest
 * magazine of the bin, with an event, before anything new is cut. Magazines that were idle for 20
 * seconds are flushed. Blocks of more than 1 MiB have a chunk of their own, which goes back with
 * their free.
 *
 * Chunks are found by their address, the latest one first; frees of anything else are ignored
 * (promise `misuse`). All blocks of 0 B have the address of a variable of the host.
 *
 * Defects, each with what goes wrong; docs/planted-defects.md has the rest. */
#include "faulty.h"

#include "recorded.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum {
    FLUSHES_16,   /* flushes of a magazine are counted in 4 bits, and with 0 no event is recorded */
    COLD_STEALS,  /* after four steals from a magazine its stream counts as idle */
    FLUSH_BLIND,  /* that the event of a batch could not be recorded is not looked at */
    IDLE_CLEARS,  /* the flush of idle magazines takes the thread's last error away */
    OVER_KEPT,    /* the magazine of a stream that is gone stays, as one whose work is over */
    BATCHES_KEPT, /* a batch that has filled a magazine is not freed */
    EMPTY_ALIAS,  /* a block of 0 B has the address of the latest block */
    LATEST_KEPT,  /* the latest chunk that was found is still known after it went back */
};
const char *const faulty_defects[] = {"flushes_16",  "cold_steals", "flush_blind",
                                      "idle_clears", "over_kept",   "batches_kept",
                                      "empty_alias", "latest_kept", NULL};

#define UNIT  ((uint64_t)512)
#define CHUNK ((uint64_t)2 << 20)

enum { BINS = 12, OWN_CHUNK = BINS, ROOM = 8, FLUSHED = 4, COLD = 4, IDLE = 20 };

typedef enum state { UNUSED, LIVE, CACHED, LOST } state;

typedef struct chunk chunk;
struct chunk {
    chunk *next;
    uint64_t address, bytes, block;
    uint32_t count, cut, live;
    int bin;
    bool is_unsure; /* no block of it is used again: a stream is gone that was not waited for */
    unsigned char *states;
    uint64_t *requested;
};

typedef struct item {
    chunk *chunk;
    uint32_t at;
} item;

typedef struct magazine magazine;
struct magazine {
    magazine *next;
    cudaStream_t stream;
    int bin;
    bool is_over; /* nothing is to be waited for */
    item items[ROOM];
    uint32_t count, flushes, steals;
    time_t used_at;
};

typedef struct batch batch;
struct batch {
    batch *next;
    int bin;
    cudaEvent_t event; /* NULL: nothing is to be waited for */
    item items[ROOM];
    uint32_t count;
};

typedef struct heap {
    chunk *chunks;
    magazine *magazines;
    batch *depot;
    struct {
        uint64_t address, bytes;
        chunk *chunk;
    } latest;
    item handed;
    uint64_t limit; /* of reserved bytes; 0: none */
    gmd_stats stats;
} heap;

static heap heaps[FAULTY_DEVICES];
static chunk *spare;
static recorded *notes;
static char nothing; /* where blocks of 0 B are */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static bool is_ok(cudaError_t answer)
{
    if (answer != cudaSuccess) {
        cudaGetLastError();
    }
    return answer == cudaSuccess;
}

static time_t now(void)
{
    struct timespec t = {0};
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec;
}

static void *made(void *memory)
{
    if (!memory) {
        abort();
    }
    return memory;
}

static void drop_event(cudaEvent_t event)
{
    if (event) {
        is_ok(cudaEventDestroy(event));
    }
}

static bool wait_on_host(cudaStream_t stream)
{
    return is_ok(cudaStreamSynchronize(stream)) || is_ok(cudaDeviceSynchronize());
}

/* What the stream has done by now: an event, or NULL where the host has waited. */
static bool note_work(cudaStream_t stream, bool is_recorded, bool is_blind, cudaEvent_t *event)
{
    if (is_ok(cudaEventCreateWithFlags(event, cudaEventDisableTiming))) {
        if (!is_recorded || is_ok(cudaEventRecord(*event, stream)) || is_blind) {
            return true;
        }
        drop_event(*event);
    }
    *event = NULL;
    return wait_on_host(stream);
}

static bool wait_for(cudaStream_t stream, cudaEvent_t event)
{
    return !event || is_ok(cudaStreamWaitEvent(stream, event, 0)) ||
           is_ok(cudaEventSynchronize(event)) || is_ok(cudaDeviceSynchronize());
}

/* --- chunks -------------------------------------------------------------------------------- */

static int bin_of(uint64_t size)
{
    int bin = 0;
    while (bin < BINS && UNIT << bin < size) {
        bin++;
    }
    return bin;
}

static uint64_t chunk_bytes(uint64_t size)
{
    return bin_of(size) < OWN_CHUNK ? CHUNK : (size + CHUNK - 1) / CHUNK * CHUNK;
}

static chunk *new_chunk(heap *h, uint64_t size)
{
    uint64_t bytes = chunk_bytes(size);
    void *memory = NULL;
    if ((h->limit && h->stats.reserved_bytes + bytes > h->limit) ||
        !(memory = faulty_take(bytes))) {
        return NULL;
    }
    chunk *c = spare;
    if (c) {
        spare = c->next;
    } else {
        c = made(malloc(sizeof *c));
    }
    int bin = bin_of(size);
    uint64_t block = bin < OWN_CHUNK ? UNIT << bin : bytes;
    *c = (chunk){.next = h->chunks, .address = (uintptr_t)memory, .bytes = bytes, .block = block};
    c->bin = bin;
    c->count = (uint32_t)(bytes / block);
    c->states = made(calloc(c->count, 1));
    c->requested = made(calloc(c->count, sizeof *c->requested));
    h->chunks = c;
    faulty_count_segment(&h->stats, bytes);
    return c;
}

static uint32_t without(item *items, uint32_t count, const chunk *c)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < count; i++) {
        if (items[i].chunk != c) {
            items[kept++] = items[i];
        }
    }
    return kept;
}

static void drop_items(heap *h, const chunk *c)
{
    for (magazine *m = h->magazines; m; m = m->next) {
        m->count = without(m->items, m->count, c);
    }
    for (batch **link = &h->depot; *link;) {
        batch *b = *link;
        b->count = without(b->items, b->count, c);
        if (b->count) {
            link = &b->next;
            continue;
        }
        *link = b->next;
        drop_event(b->event);
        free(b);
    }
}

/* Goes back where no block is live: cudaFree waits for all work. */
static bool release_chunk(heap *h, chunk **link)
{
    chunk *c = *link;
    void *memory = (void *)(uintptr_t)c->address; /* NOLINT(performance-no-int-to-ptr) */
    if (c->live || !is_ok(cudaFree(memory))) {
        return false;
    }
    *link = c->next;
    drop_items(h, c);
    faulty_count_segment_freed(&h->stats, c->bytes);
    if (h->latest.chunk == c && !faulty_is(LATEST_KEPT)) {
        h->latest.bytes = 0;
    }
    if (h->handed.chunk == c) {
        h->handed.chunk = NULL;
    }
    free(c->states);
    free(c->requested);
    c->count = 0;
    c->next = spare;
    spare = c;
    return true;
}

static void release(heap *h)
{
    for (chunk **link = &h->chunks; *link;) {
        if (!release_chunk(h, link)) {
            link = &(*link)->next;
        }
    }
}

/* The live block that begins there; its chunk is NULL: there is none. */
static item find(heap *h, uint64_t address)
{
    if (address - h->latest.address >= h->latest.bytes) {
        chunk *c = h->chunks;
        while (c && address - c->address >= c->bytes) {
            c = c->next;
        }
        if (!c) {
            return (item){0};
        }
        h->latest.address = c->address;
        h->latest.bytes = c->bytes;
        h->latest.chunk = c;
    }
    chunk *c = h->latest.chunk;
    uint64_t offset = address - h->latest.address, at = offset / c->block;
    bool is_live = offset % c->block == 0 && at < c->count && c->states[at] == LIVE;
    return is_live ? (item){c, (uint32_t)at} : (item){0};
}

/* --- magazines and the depot --------------------------------------------------------------- */

static magazine *magazine_of(heap *h, int bin, cudaStream_t stream)
{
    magazine *m = h->magazines;
    while (m && !(m->stream == stream && m->bin == bin)) {
        m = m->next;
    }
    if (!m) {
        m = made(calloc(1, sizeof *m));
        *m = (magazine){.next = h->magazines, .stream = stream, .bin = bin};
        h->magazines = m;
    }
    return m;
}

/* The oldest go to the depot. */
static bool flush(heap *h, magazine *m, uint32_t count)
{
    cudaEvent_t event = NULL;
    m->flushes++;
    bool is_recorded = !faulty_is(FLUSHES_16) || m->flushes % 16;
    if (!m->is_over && !note_work(m->stream, is_recorded, faulty_is(FLUSH_BLIND), &event)) {
        return false;
    }
    batch *b = made(malloc(sizeof *b));
    *b = (batch){.next = h->depot, .bin = m->bin, .event = event, .count = count};
    memcpy(b->items, m->items, count * sizeof *m->items);
    memmove(m->items, m->items + count, (m->count - count) * sizeof *m->items);
    m->count -= count;
    h->depot = b;
    return true;
}

static void flush_idle(heap *h)
{
    time_t idle_before = now() - IDLE;
    for (magazine *m = h->magazines; m; m = m->next) {
        if (m->count && m->used_at < idle_before) {
            flush(h, m, m->count);
            if (faulty_is(IDLE_CLEARS)) {
                cudaGetLastError();
            }
        }
    }
}

static void fill(heap *h, magazine *m)
{
    batch **link = &h->depot;
    while (*link && !((*link)->bin == m->bin && wait_for(m->stream, (*link)->event))) {
        link = &(*link)->next;
    }
    batch *b = *link;
    if (!b) {
        return;
    }
    *link = b->next;
    memcpy(m->items, b->items, b->count * sizeof *b->items);
    m->count = b->count;
    drop_event(b->event);
    if (!faulty_is(BATCHES_KEPT)) {
        free(b);
    }
}

/* `to` goes on when what `from` has done by now is over. */
static bool order(magazine *from, cudaStream_t to)
{
    cudaEvent_t event = NULL;
    if (from->is_over || (faulty_is(COLD_STEALS) && from->steals >= COLD)) {
        return true;
    }
    bool is_ordered = note_work(from->stream, true, false, &event) && wait_for(to, event);
    drop_event(event);
    return is_ordered;
}

static item steal(heap *h, const magazine *own)
{
    magazine *fullest = NULL;
    for (magazine *m = h->magazines; m; m = m->next) {
        bool is_meant = m != own && m->bin == own->bin && m->count;
        fullest = is_meant && (!fullest || m->count > fullest->count) ? m : fullest;
    }
    if (!fullest || !order(fullest, own->stream)) {
        return (item){0};
    }
    fullest->steals++;
    return fullest->items[--fullest->count];
}

/* --- blocks -------------------------------------------------------------------------------- */

static item cut(chunk *c)
{
    return (item){c, c->cut++};
}

static item take_new(heap *h, uint64_t size)
{
    int bin = bin_of(size);
    for (chunk *c = h->chunks; c && bin < OWN_CHUNK; c = c->next) {
        if (c->bin == bin && c->cut < c->count && !c->is_unsure) {
            return cut(c);
        }
    }
    chunk *c = new_chunk(h, size);
    if (!c) {
        release(h);
        c = new_chunk(h, size);
    }
    return c ? cut(c) : (item){0};
}

static item take(heap *h, uint64_t size, cudaStream_t stream)
{
    int bin = bin_of(size);
    item taken = {0};
    if (bin < OWN_CHUNK) {
        magazine *m = magazine_of(h, bin, stream);
        if (!m->count) {
            fill(h, m);
        }
        m->used_at = now();
        taken = m->count ? m->items[--m->count] : steal(h, m);
    }
    return taken.chunk ? taken : take_new(h, size);
}

static void *address_of(item i)
{
    uint64_t address = i.chunk->address + i.at * i.chunk->block;
    return (void *)(uintptr_t)address; /* NOLINT(performance-no-int-to-ptr) */
}

static void *allocate(heap *h, uint64_t size, cudaStream_t stream)
{
    if (!size) {
        bool is_alias = faulty_is(EMPTY_ALIAS) && h->handed.chunk;
        return is_alias ? address_of(h->handed) : &nothing;
    }
    flush_idle(h);
    item i = size <= SIZE_MAX / 2 ? take(h, size, stream) : (item){0};
    if (!i.chunk) {
        h->stats.num_ooms++;
        return NULL;
    }
    i.chunk->states[i.at] = LIVE;
    i.chunk->requested[i.at] = size;
    i.chunk->live++;
    h->handed = i;
    faulty_count_alloc(&h->stats, i.chunk->block, size);
    return address_of(i);
}

static void keep(heap *h, item i, cudaStream_t stream)
{
    magazine *m = magazine_of(h, i.chunk->bin, stream);
    m->used_at = now();
    m->steals = 0;
    if (i.chunk->is_unsure || (m->count == ROOM && !flush(h, m, FLUSHED))) {
        i.chunk->states[i.at] = LOST; /* until its chunk goes back */
        return;
    }
    i.chunk->states[i.at] = CACHED;
    m->items[m->count++] = i;
}

static void give_back(heap *h, const void *pointer, cudaStream_t stream)
{
    item i = find(h, (uintptr_t)pointer);
    chunk *c = i.chunk;
    if (!c) {
        return;
    }
    recorded_wait(recorded_take(&notes, pointer), stream);
    c->live--;
    faulty_count_free(&h->stats, c->block, c->requested[i.at]);
    if (c->bin < OWN_CHUNK) {
        keep(h, i, stream);
        return;
    }
    c->states[i.at] = LOST;
    chunk **link = &h->chunks;
    while (*link != c) {
        link = &(*link)->next;
    }
    release_chunk(h, link);
}

/* --- the ABI ------------------------------------------------------------------------------- */

void *gmd_malloc(size_t size, int device, cudaStream_t stream)
{
    if (device < 0 || device >= FAULTY_DEVICES) {
        return NULL;
    }
    faulty_guard guard = faulty_enter_device(device);
    pthread_mutex_lock(&lock);
    void *pointer = allocate(&heaps[device], size, stream);
    pthread_mutex_unlock(&lock);
    faulty_leave_device(guard);
    return pointer;
}

void gmd_free(void *pointer, size_t size, int device, cudaStream_t stream)
{
    (void)size;
    if (!pointer || device < 0 || device >= FAULTY_DEVICES) {
        return;
    }
    faulty_guard guard = faulty_enter_device(device);
    pthread_mutex_lock(&lock);
    give_back(&heaps[device], pointer, stream);
    pthread_mutex_unlock(&lock);
    faulty_leave_device(guard);
}

EXPORT void gmd_record_stream(void *pointer, cudaStream_t stream);
void gmd_record_stream(void *pointer, cudaStream_t stream)
{
    pthread_mutex_lock(&lock);
    recorded_add(&notes, pointer, stream);
    pthread_mutex_unlock(&lock);
}

/* Its blocks need no event any more, or are used no more. */
static void retire(heap *h, magazine *m, bool is_known)
{
    m->is_over = is_known;
    if (is_known && m->count) {
        flush(h, m, m->count);
    }
    for (uint32_t i = 0; i < m->count; i++) {
        m->items[i].chunk->states[m->items[i].at] = LOST;
    }
    free(m);
}

static void forget(heap *h, cudaStream_t stream)
{
    bool is_known = wait_on_host(stream);
    for (magazine **link = &h->magazines; *link;) {
        magazine *m = *link;
        if (m->stream != stream) {
            link = &m->next;
        } else if (faulty_is(OVER_KEPT) && is_known) {
            m->is_over = true;
            link = &m->next;
        } else {
            *link = m->next;
            retire(h, m, is_known);
        }
    }
    for (chunk *c = h->chunks; c && !is_known; c = c->next) {
        c->is_unsure = true;
    }
}

EXPORT void gmd_forget_stream(int device, cudaStream_t stream);
void gmd_forget_stream(int device, cudaStream_t stream)
{
    if (device < 0 || device >= FAULTY_DEVICES) {
        return;
    }
    faulty_guard guard = faulty_enter_device(device);
    pthread_mutex_lock(&lock);
    recorded_forget(&notes, stream);
    forget(&heaps[device], stream);
    pthread_mutex_unlock(&lock);
    faulty_leave_device(guard);
}

void gmd_empty_cache(void)
{
    pthread_mutex_lock(&lock);
    for (int device = 0; device < FAULTY_DEVICES; device++) {
        if (heaps[device].chunks) {
            faulty_guard guard = faulty_enter_device(device);
            release(&heaps[device]);
            faulty_leave_device(guard);
        }
    }
    pthread_mutex_unlock(&lock);
}

void gmd_set_memory_fraction(double fraction, int device)
{
    if (device < 0 || device >= FAULTY_DEVICES) {
        return;
    }
    pthread_mutex_lock(&lock);
    faulty_limit(fraction, device, &heaps[device].limit);
    pthread_mutex_unlock(&lock);
}

EXPORT uint64_t gmd_device_request(size_t size);
uint64_t gmd_device_request(size_t size)
{
    return size > SIZE_MAX / 2 ? size : chunk_bytes(size);
}

int gmd_get_stats(int device, gmd_stats *out)
{
    if (device < 0 || device >= FAULTY_DEVICES) {
        return -1;
    }
    pthread_mutex_lock(&lock);
    int result = faulty_give_stats(&heaps[device].stats, out);
    pthread_mutex_unlock(&lock);
    return result;
}

EXPORT unsigned gmd_promises(void);
unsigned gmd_promises(void)
{
    return GMD_PROMISE_MISUSE;
}
