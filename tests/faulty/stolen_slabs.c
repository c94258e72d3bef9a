/* stolen_slabs.c - blocks of equal size cut from slabs, kept by the stream that freed them: sizes
 * are rounded to powers of two up to 1 MiB, larger ones to 2 MiB and have a slab of their own. A
 * request takes a block of its own stream, else one that nobody's work is pending on, else it
 * steals another stream's: its stream waits for that stream's work so far, unless it has since that
 * stream's latest free (the books of waits). When memory is short, a slab in which nothing is live
 * is cut anew for the size at hand, behind waits for all streams that freed its blocks; then such
 * slabs go back to the device.
 *
 * Requests for 0 B all get one address, which no device has, and are no blocks.
 *
 * Defects, each with what goes wrong; docs/planted-defects.md has the rest. */
#include "recorded.h"

#include <pthread.h>
#include <stdlib.h>

enum {
    NOTHING_KEPT,  /* the address of 0 B goes into the list of the smallest blocks when it is freed
                    */
    WAITS_KEPT,    /* that others waited for a destroyed stream is kept under its handle */
    RECUT_BLIND,   /* a wait that fails before a slab is cut anew is not looked at */
    RECUT_RECORD,  /* nor is an event that could not be recorded for such a wait */
    CLEARS_ERRORS, /* before memory goes back to the device, the thread's last error is cleared */
};
const char *const faulty_defects[] = {"nothing_kept", "waits_kept",    "recut_blind",
                                      "recut_record", "clears_errors", NULL};

#define LEAST   ((uint64_t)256)
#define CUT_MAX ((uint64_t)1 << 20) /* the largest block of a slab with several */
#define SLAB    ((uint64_t)2 << 20)
#define STREAMS 128 /* caches of a device; further streams take the last */
#define NOBODY  (-1)

typedef struct slab slab;
typedef struct block block;
struct block {
    block *next; /* in the list that it is in */
    slab *slab;
    uint64_t address;
    int cache; /* whose list it is in; NOBODY: it is live, or in the clean list */
    bool is_live;
};

struct slab {
    slab *next;
    uint64_t address, bytes, block_bytes;
    uint32_t count, live;
    block *blocks;
};

typedef struct cache { /* of a stream */
    bool is_used;
    cudaStream_t stream;
    cudaEvent_t event; /* NULL: none was needed yet */
    block *free;
    uint64_t freed;           /* how often the stream has freed a block */
    uint64_t waited[STREAMS]; /* the `freed` of the other stream when this one last waited for it */
} cache;

typedef struct heap {
    slab *slabs;
    block *clean; /* that no work is pending on */
    cache caches[STREAMS];
    bool is_used;
    uint64_t limit; /* of reserved bytes; 0: none */
    gmd_stats stats;
} heap;

static heap heaps[FAULTY_DEVICES];
static recorded *records;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static char nothing; /* whose address is that of 0 B */

/* The caller may not have looked at its last error yet: only an error of ours is cleared. */
static bool is_done(cudaError_t answer)
{
    if (answer != cudaSuccess) {
        cudaGetLastError();
    }
    return answer == cudaSuccess;
}

static uint64_t round_size(uint64_t size)
{
    if (size > CUT_MAX) {
        return (size + SLAB - 1) / SLAB * SLAB;
    }
    uint64_t rounded = LEAST;
    while (rounded < size) {
        rounded *= 2;
    }
    return rounded;
}

/* --- lists --------------------------------------------------------------------------------- */

static void put(block **list, block *b, int cache_index)
{
    b->next = *list;
    b->cache = cache_index;
    *list = b;
}

static block *take(block **list, uint64_t bytes)
{
    while (*list && (*list)->slab->block_bytes != bytes) {
        list = &(*list)->next;
    }
    block *found = *list;
    if (found) {
        *list = found->next;
        found->cache = NOBODY;
    }
    return found;
}

static void drop_slab_from(block **list, const slab *s)
{
    while (*list) {
        if ((*list)->slab == s) {
            *list = (*list)->next;
        } else {
            list = &(*list)->next;
        }
    }
}

/* --- streams ------------------------------------------------------------------------------- */

/* The host waits for it, and its blocks are everybody's. */
static bool clean_cache(heap *h, cache *c)
{
    if (!is_done(cudaStreamSynchronize(c->stream)) && !is_done(cudaDeviceSynchronize())) {
        return false;
    }
    for (block *b; (b = c->free);) {
        c->free = b->next;
        put(&h->clean, b, NOBODY);
    }
    return true;
}

static void drop_event(cache *c)
{
    if (c->event) {
        is_done(cudaEventDestroy(c->event));
        c->event = NULL;
    }
}

/* Its blocks are clean: nothing is known of the next stream that gets its place. */
static void forget_cache(heap *h, int index)
{
    drop_event(&h->caches[index]);
    h->caches[index] = (cache){0};
    for (int i = 0; i < STREAMS; i++) {
        h->caches[i].waited[index] = 0;
    }
}

static int cache_of(heap *h, cudaStream_t stream)
{
    int unused = STREAMS - 1;
    for (int i = 0; i < STREAMS; i++) {
        if (h->caches[i].is_used && h->caches[i].stream == stream) {
            return i;
        }
        unused = !h->caches[i].is_used && i < unused ? i : unused;
    }
    cache *c = &h->caches[unused];
    if (c->is_used) {
        if (!clean_cache(h, c)) {
            abort();
        }
        forget_cache(h, unused);
    }
    c->is_used = true;
    c->stream = stream;
    return unused;
}

/* The event stands for all that the stream has done so far. */
static bool record_end(cache *c, bool is_looked_at)
{
    if (!c->event && !is_done(cudaEventCreateWithFlags(&c->event, cudaEventDisableTiming))) {
        c->event = NULL;
        return false;
    }
    return is_done(cudaEventRecord(c->event, c->stream)) || !is_looked_at;
}

/* What the stream of `own` does from now on comes after what that of `other` has freed. */
static bool wait_for(heap *h, int own, int other, bool is_recut)
{
    cache *mine = &h->caches[own], *theirs = &h->caches[other];
    if (own == other || mine->waited[other] >= theirs->freed) {
        return true;
    }
    bool looks_at_record = !(is_recut && faulty_is(RECUT_RECORD));
    bool looks_at_wait = !(is_recut && faulty_is(RECUT_BLIND));
    if (!record_end(theirs, looks_at_record) ||
        (!is_done(cudaStreamWaitEvent(mine->stream, theirs->event, 0)) && looks_at_wait)) {
        return false;
    }
    mine->waited[other] = theirs->freed;
    return true;
}

/* --- slabs --------------------------------------------------------------------------------- */

static bool cut(heap *h, slab *s, uint64_t bytes, block **list, int cache_index)
{
    uint32_t count = (uint32_t)(s->bytes / bytes);
    block *blocks = calloc(count, sizeof *blocks);
    if (!blocks) {
        return false;
    }
    for (int i = 0; s->blocks && i < STREAMS; i++) {
        drop_slab_from(&h->caches[i].free, s);
    }
    drop_slab_from(&h->clean, s);
    free(s->blocks);
    s->blocks = blocks;
    s->block_bytes = bytes;
    s->count = count;
    for (uint32_t i = count; i-- > 0;) {
        blocks[i] = (block){.slab = s, .address = s->address + i * bytes};
        put(list, &blocks[i], cache_index);
    }
    return true;
}

static uint64_t slab_bytes(uint64_t bytes)
{
    return bytes > SLAB ? bytes : SLAB;
}

static block *grow(heap *h, uint64_t bytes)
{
    uint64_t size = slab_bytes(bytes);
    void *memory = NULL;
    if ((h->limit && h->stats.reserved_bytes + size > h->limit) ||
        !is_done(cudaMalloc(&memory, size))) {
        return NULL;
    }
    slab *s = malloc(sizeof *s);
    if (!s) {
        abort();
    }
    *s = (slab){.next = h->slabs, .address = (uintptr_t)memory, .bytes = size};
    h->slabs = s;
    faulty_count_segment(&h->stats, size);
    return cut(h, s, bytes, &h->clean, NOBODY) ? take(&h->clean, bytes) : NULL;
}

static bool wait_for_slab(heap *h, int own, const slab *s)
{
    bool has_waited = true;
    for (uint32_t i = 0; i < s->count && has_waited; i++) {
        int other = s->blocks[i].cache;
        has_waited = other == NOBODY || wait_for(h, own, other, true);
    }
    return has_waited;
}

/* A slab of another size, in which nothing is live. */
static block *recut(heap *h, int own, uint64_t bytes)
{
    for (slab *s = h->slabs; s; s = s->next) {
        if (!s->live && s->bytes == SLAB && bytes <= SLAB && s->block_bytes != bytes &&
            wait_for_slab(h, own, s) && cut(h, s, bytes, &h->caches[own].free, own)) {
            h->caches[own].freed++; /* who steals one waits for the others' work, too */
            return take(&h->caches[own].free, bytes);
        }
    }
    return NULL;
}

static void release_slabs(heap *h)
{
    if (faulty_is(CLEARS_ERRORS)) {
        cudaGetLastError();
    }
    for (int i = 0; i < STREAMS; i++) {
        if (h->caches[i].free) {
            clean_cache(h, &h->caches[i]);
        }
    }
    for (slab **link = &h->slabs; *link;) {
        slab *s = *link;
        bool is_clean = !s->live;
        for (uint32_t i = 0; i < s->count && is_clean; i++) {
            is_clean = s->blocks[i].cache == NOBODY;
        }
        void *memory = (void *)(uintptr_t)s->address; /* NOLINT(performance-no-int-to-ptr) */
        if (!is_clean || !is_done(cudaFree(memory))) {
            link = &s->next;
            continue;
        }
        drop_slab_from(&h->clean, s);
        *link = s->next;
        faulty_count_segment_freed(&h->stats, s->bytes);
        free(s->blocks);
        free(s);
    }
}

static block *find(const heap *h, uint64_t address)
{
    for (const slab *s = h->slabs; s; s = s->next) {
        if (address >= s->address && address - s->address < s->bytes) {
            return &s->blocks[(address - s->address) / s->block_bytes];
        }
    }
    return NULL;
}

/* --- the ABI ------------------------------------------------------------------------------- */

static block *steal(heap *h, int own, uint64_t bytes)
{
    for (int i = 0; i < STREAMS; i++) {
        block *found = i == own ? NULL : take(&h->caches[i].free, bytes);
        if (found && wait_for(h, own, i, false)) {
            return found;
        }
        if (found) {
            put(&h->caches[i].free, found, i);
        }
    }
    return NULL;
}

static block *find_block(heap *h, uint64_t bytes, cudaStream_t stream)
{
    h->is_used = true;
    int own = cache_of(h, stream);
    block *b = take(&h->caches[own].free, bytes);
    b = b ? b : take(&h->clean, bytes);
    b = b ? b : steal(h, own, bytes);
    b = b ? b : grow(h, bytes);
    b = b ? b : recut(h, own, bytes);
    if (!b) {
        release_slabs(h);
        b = take(&h->clean, bytes);
    }
    return b ? b : grow(h, bytes);
}

static void *allocate(heap *h, size_t size, cudaStream_t stream)
{
    block *b = size <= SIZE_MAX / 2 ? find_block(h, round_size(size), stream) : NULL;
    if (!b) {
        h->stats.num_ooms++;
        return NULL;
    }
    b->is_live = true;
    b->slab->live++;
    faulty_count_alloc(&h->stats, b->slab->block_bytes, size);
    return (void *)(uintptr_t)b->address; /* NOLINT(performance-no-int-to-ptr) */
}

/* The smallest block, as if the address of 0 B were one. */
static void keep_nothing(heap *h, int own)
{
    static slab none = {.block_bytes = LEAST, .count = 1, .live = 1};
    block *b = calloc(1, sizeof *b);
    if (b) {
        *b = (block){.slab = &none, .address = (uintptr_t)&nothing};
        put(&h->caches[own].free, b, own);
    }
}

static void give_back(heap *h, void *pointer, size_t size, cudaStream_t stream)
{
    int own = cache_of(h, stream);
    block *b = find(h, (uintptr_t)pointer);
    if (pointer == &nothing) {
        if (faulty_is(NOTHING_KEPT)) {
            keep_nothing(h, own);
        }
        return;
    }
    if (!b || !b->is_live) {
        return;
    }
    recorded_wait(recorded_take(&records, pointer), stream);
    b->is_live = false;
    b->slab->live--;
    faulty_count_free(&h->stats, b->slab->block_bytes, size);
    h->caches[own].freed++;
    put(&h->caches[own].free, b, own);
}

void *gmd_malloc(size_t size, int device, cudaStream_t stream)
{
    if (device < 0 || device >= FAULTY_DEVICES) {
        return NULL;
    }
    if (!size) {
        return &nothing;
    }
    faulty_guard guard = faulty_enter_device(device);
    pthread_mutex_lock(&lock);
    void *memory = allocate(&heaps[device], size, stream);
    pthread_mutex_unlock(&lock);
    faulty_leave_device(guard);
    return memory;
}

void gmd_free(void *pointer, size_t size, int device, cudaStream_t stream)
{
    faulty_guard guard = faulty_enter_device(device);
    pthread_mutex_lock(&lock);
    give_back(&heaps[device], pointer, size, stream);
    pthread_mutex_unlock(&lock);
    faulty_leave_device(guard);
}

EXPORT void gmd_record_stream(void *pointer, cudaStream_t stream);
void gmd_record_stream(void *pointer, cudaStream_t stream)
{
    if (pointer != &nothing) {
        pthread_mutex_lock(&lock);
        recorded_add(&records, pointer, stream);
        pthread_mutex_unlock(&lock);
    }
}

/* A new stream may get its handle: of the old one nothing stays but blocks that nobody works on. */
EXPORT void gmd_forget_stream(int device, cudaStream_t stream);
void gmd_forget_stream(int device, cudaStream_t stream)
{
    heap *h = &heaps[device];
    faulty_guard guard = faulty_enter_device(device);
    pthread_mutex_lock(&lock);
    recorded_forget(&records, stream);
    int index = cache_of(h, stream);
    bool is_clean = clean_cache(h, &h->caches[index]);
    if (is_clean && faulty_is(WAITS_KEPT)) {
        h->caches[index].freed = 0;
    } else if (is_clean) {
        forget_cache(h, index);
    }
    pthread_mutex_unlock(&lock);
    faulty_leave_device(guard);
}

void gmd_empty_cache(void)
{
    pthread_mutex_lock(&lock);
    for (int device = 0; device < FAULTY_DEVICES; device++) {
        heap *h = &heaps[device];
        if (!h->is_used) {
            continue;
        }
        faulty_guard guard = faulty_enter_device(device);
        release_slabs(h);
        for (int i = 0; i < STREAMS; i++) {
            drop_event(&h->caches[i]);
        }
        faulty_leave_device(guard);
    }
    pthread_mutex_unlock(&lock);
}

void gmd_set_memory_fraction(double fraction, int device)
{
    uint64_t limit;
    if (faulty_limit(fraction, device, &limit)) {
        pthread_mutex_lock(&lock);
        heaps[device].limit = limit;
        pthread_mutex_unlock(&lock);
    }
}

EXPORT uint64_t gmd_device_request(size_t size);
uint64_t gmd_device_request(size_t size)
{
    return size > SIZE_MAX / 2 ? size : slab_bytes(round_size(size));
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
