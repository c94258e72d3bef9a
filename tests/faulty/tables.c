/* tables.c - an allocator that keeps its books in tables: of blocks, of streams with their free
 * lists, of threads with the block that each freed last, of private pools. Each block is a device
 * allocation of its own. A table grows where it is full; the recorded streams of a block are kept
 * within it, and past four in an array beside it. When a block is freed, its stream waits for those
 * that were recorded; so that it serves its own stream at once, and no other. When memory is short,
 * what is free goes back to the device.
 *
 * What a private pool has serves the pool's requests only, and goes back to the device when nobody
 * holds the pool any more, or before, where no graph was captured into it.
 *
 * Defects, each of which needs more of one kind than a table of fixed size holds;
 * docs/planted-defects.md has the rest. */
#include "inline_records.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

enum {
    FIFTH_RECORD, /* the fifth recorded stream of a block takes the fourth one's place */
    RECORD_65,    /* the recorded streams of a block past the 64th are not noted */
    NINTH_DEVICE, /* the ninth device has the first one's books */
    SERIAL_WRAPS, /* blocks are counted in 16 bits, and one with the number 0 is none */
    SEGMENT_BYTE, /* the number of a block is cut off to 8 bits when it is freed */
    HOLD_BITS,    /* the holds on a pool are counted in 4 bits */
    THREAD_17,    /* two threads share a slot from the 17th on: what the one kept there is lost */
    POOL_33,      /* the 33rd private pool has the free blocks of the first */
    STREAM_65,    /* the 65th stream has the free list of the first */
};
const char *const faulty_defects[] = {"fifth_record", "record_65", "ninth_device", "serial_wraps",
                                      "segment_byte", "hold_bits", "thread_17",    "pool_33",
                                      "stream_65",    NULL};

#define UNIT         ((uint64_t)512)
#define PAGE         ((uint64_t)2 << 20)
#define SMALL_MAX    ((uint64_t)1 << 20)
#define THREADS      64 /* with a slot; others have none */
#define THREAD_SLOTS 16

typedef struct block block;
struct block {
    block *next; /* in a free list */
    uint64_t address, bytes;
    uint64_t serial; /* of its allocation; 0: it is free */
    cudaStream_t stream;
    bool is_stream_gone; /* to be given back when it is freed */
    uint32_t pool;       /* private one: 1 + its number; 0: the default one */
    inline_records records;
};

typedef struct stream_slot {
    cudaStream_t stream;
    bool is_used;
    block *free;
} stream_slot;

typedef struct private_pool {
    uint64_t id[2];
    uint32_t holders;
    bool is_captured; /* graphs work in its memory */
} private_pool;

typedef struct heap {
    block **blocks; /* all of them */
    uint32_t block_count, block_capacity;
    stream_slot *streams;
    uint32_t stream_count;
    block *deferred; /* freed, and wait for captured streams */
    block *parked;   /* of streams that are gone, to be given back when graphs no longer use them */
    block *kept[THREADS];
    private_pool *pools;       /* none goes: blocks name them by their number */
    uint32_t pool_count, open; /* open: 1 + its number; 0: none */
    gmd_stream_filter *accepts;
    void *context;
    uint64_t limit, serial; /* limit: of reserved bytes; 0: none */
    gmd_stats stats;
} heap;

static heap heaps[FAULTY_DEVICES];
static atomic_bool is_device_used[FAULTY_DEVICES];
static bool has_thread[THREADS];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static heap *heap_of(int device)
{
    return &heaps[faulty_is(NINTH_DEVICE) ? device % 8 : device];
}

/* --- calls --------------------------------------------------------------------------------- */

/* Within a call the device is the current one, the books are the caller's alone, and what a capture
 * of another stream forbids may be done. */
typedef struct call {
    faulty_guard guard;
    enum cudaStreamCaptureMode mode;
    bool is_relaxed;
} call;

static call enter(int device)
{
    call c = {.guard = faulty_enter_device(device), .mode = cudaStreamCaptureModeRelaxed};
    pthread_mutex_lock(&lock);
    c.is_relaxed = cudaThreadExchangeStreamCaptureMode(&c.mode) == cudaSuccess;
    if (!c.is_relaxed) {
        cudaGetLastError();
    }
    return c;
}

static void leave(call *c)
{
    if (c->is_relaxed && cudaThreadExchangeStreamCaptureMode(&c->mode) != cudaSuccess) {
        cudaGetLastError();
    }
    pthread_mutex_unlock(&lock);
    faulty_leave_device(c->guard);
}

/* --- threads ------------------------------------------------------------------------------- */

static pthread_key_t thread_key;
static pthread_once_t thread_key_once = PTHREAD_ONCE_INIT;

static void leave_slot(void *slot)
{
    pthread_mutex_lock(&lock);
    *(bool *)slot = false;
    pthread_mutex_unlock(&lock);
}

static void make_thread_key(void)
{
    pthread_key_create(&thread_key, leave_slot);
}

/* The number of the thread that calls; THREADS: there are too many. */
static uint32_t thread_number(void)
{
    pthread_once(&thread_key_once, make_thread_key);
    bool *own = pthread_getspecific(thread_key);
    uint32_t number = own ? (uint32_t)(own - has_thread) : 0;
    if (own) {
        return number;
    }
    while (number < THREADS && has_thread[number]) {
        number++;
    }
    if (number < THREADS && pthread_setspecific(thread_key, &has_thread[number]) == 0) {
        has_thread[number] = true;
        return number;
    }
    return THREADS;
}

/* --- private pools ------------------------------------------------------------------------- */

static private_pool *find_pool(const heap *h, const uint64_t id[2])
{
    for (uint32_t i = 0; i < h->pool_count; i++) {
        private_pool *p = &h->pools[i];
        if (p->id[0] == id[0] && p->id[1] == id[1] && p->holders) {
            return p;
        }
    }
    return NULL;
}

/* One that nobody holds, and of which no block is left, comes again under another name. */
static private_pool *find_unused(const heap *h)
{
    for (uint32_t i = 0; i < h->pool_count; i++) {
        bool is_used = h->pools[i].holders;
        for (uint32_t k = 0; k < h->block_count && !is_used; k++) {
            is_used = h->blocks[k]->pool == i + 1;
        }
        if (!is_used) {
            return &h->pools[i];
        }
    }
    return NULL;
}

static private_pool *make_pool(heap *h, const uint64_t id[2])
{
    private_pool *p = find_unused(h);
    private_pool *grown = p ? NULL : realloc(h->pools, (h->pool_count + 1) * sizeof *grown);
    if (grown) {
        h->pools = grown;
        p = &grown[h->pool_count++];
    }
    if (p) {
        *p = (private_pool){.id = {id[0], id[1]}};
    }
    return p;
}

static bool is_held(const heap *h, uint32_t pool)
{
    uint32_t holders = h->pools[pool - 1].holders;
    return faulty_is(HOLD_BITS) ? holders % 16 : holders;
}

static bool is_for_graphs(const heap *h, uint32_t pool)
{
    return pool && is_held(h, pool) && h->pools[pool - 1].is_captured;
}

static uint32_t pool_for(const heap *h, cudaStream_t stream)
{
    bool is_meant = h->open && (!h->accepts || h->accepts(h->context, stream));
    return is_meant ? h->open : 0;
}

static bool serves(const block *b, uint32_t pool)
{
    bool is_alike = faulty_is(POOL_33) && b->pool && pool && b->pool % 32 == pool % 32;
    return b->pool == pool || is_alike;
}

/* --- free blocks --------------------------------------------------------------------------- */

static stream_slot *slot_of(heap *h, cudaStream_t stream)
{
    uint32_t i = 0, unused = h->stream_count;
    while (i < h->stream_count && !(h->streams[i].is_used && h->streams[i].stream == stream)) {
        unused = !h->streams[i].is_used && unused == h->stream_count ? i : unused;
        i++;
    }
    i = i == h->stream_count ? unused : i;
    if (i == h->stream_count) {
        stream_slot *grown = realloc(h->streams, (h->stream_count + 1) * sizeof *grown);
        if (!grown) {
            return NULL;
        }
        h->streams = grown;
        grown[h->stream_count++] = (stream_slot){.free = NULL};
    }
    h->streams[i].stream = stream;
    h->streams[i].is_used = true;
    return &h->streams[faulty_is(STREAM_65) ? i % 64 : i];
}

static block *take_from(block **list, uint64_t bytes, uint32_t pool)
{
    for (block **link = list; *link; link = &(*link)->next) {
        block *b = *link;
        if (b->bytes == bytes && serves(b, pool)) {
            *link = b->next;
            b->next = NULL;
            return b;
        }
    }
    return NULL;
}

static uint32_t index_of(const heap *h, uint64_t address)
{
    uint32_t i = 0;
    while (i < h->block_count && h->blocks[i]->address != address) {
        i++;
    }
    return i;
}

static bool give_back(heap *h, block *b)
{
    void *memory = (void *)(uintptr_t)b->address; /* NOLINT(performance-no-int-to-ptr) */
    if (cudaFree(memory) != cudaSuccess) {
        cudaGetLastError();
        return false;
    }
    faulty_count_segment_freed(&h->stats, b->bytes);
    h->blocks[index_of(h, b->address)] = h->blocks[--h->block_count];
    free(b);
    return true;
}

static bool is_to_stay(const heap *h, const block *b, bool given_up_only)
{
    return is_for_graphs(h, b->pool) || (given_up_only && (!b->pool || is_held(h, b->pool)));
}

static void give_back_list(heap *h, block **list, bool given_up_only)
{
    for (block **link = list; *link;) {
        block *b = *link, *next = b->next;
        if (!is_to_stay(h, b, given_up_only) && give_back(h, b)) {
            *link = next;
        } else {
            link = &b->next;
        }
    }
}

/* Free memory goes back to the device: all, or only that of pools that nobody holds any more. */
static void release(heap *h, bool given_up_only)
{
    for (uint32_t i = 0; i < h->stream_count; i++) {
        give_back_list(h, &h->streams[i].free, given_up_only);
    }
    for (uint32_t i = 0; i < THREADS; i++) {
        give_back_list(h, &h->kept[i], given_up_only);
    }
    give_back_list(h, &h->parked, false);
}

/* --- frees --------------------------------------------------------------------------------- */

static bool is_to_go(const heap *h, const block *b)
{
    return b->is_stream_gone || (b->pool && !is_held(h, b->pool));
}

static void push(block **list, block *b)
{
    b->next = *list;
    *list = b;
}

static void put(heap *h, block *b)
{
    stream_slot *slot = b->is_stream_gone ? NULL : slot_of(h, b->stream);
    if (slot && !is_to_go(h, b)) {
        push(&slot->free, b);
    } else if (is_for_graphs(h, b->pool) || !give_back(h, b)) {
        push(&h->parked, b);
    }
}

/* The thread's slot has the block that it freed last. */
static void keep(heap *h, block *b)
{
    uint32_t number = thread_number();
    bool is_plain = !b->pool && !b->is_stream_gone;
    if (!is_plain || number == THREADS) {
        put(h, b);
        return;
    }
    bool is_shared = faulty_is(THREAD_17) && number >= THREAD_SLOTS;
    block **kept = &h->kept[is_shared ? number % THREAD_SLOTS : number], *before = *kept;
    *kept = b;
    b->next = NULL;
    if (before && !is_shared) {
        put(h, before);
    }
}

static void settle(heap *h, block *b)
{
    records_wait(&b->records, b->stream, b->is_stream_gone);
    keep(h, b);
}

/* What is captured cannot be waited for. */
static bool waits_for_capture(const block *b)
{
    return b->records.count && ((!b->is_stream_gone && is_stream_captured(b->stream)) ||
                                records_have_captured(&b->records));
}

static void settle_deferred(heap *h)
{
    block *list = h->deferred;
    h->deferred = NULL;
    while (list) {
        block *b = list;
        list = b->next;
        b->next = NULL;
        if (waits_for_capture(b)) {
            push(&h->deferred, b);
        } else {
            settle(h, b);
        }
    }
}

static void free_block(heap *h, block *b, size_t size)
{
    faulty_count_free(&h->stats, b->bytes, size);
    b->serial = 0;
    if (waits_for_capture(b)) {
        push(&h->deferred, b);
    } else {
        settle(h, b);
    }
}

/* --- allocations --------------------------------------------------------------------------- */

static uint64_t round_size(uint64_t size)
{
    uint64_t to = size <= SMALL_MAX ? UNIT : PAGE;
    return size ? (size + to - 1) / to * to : UNIT;
}

static bool has_room(heap *h)
{
    uint32_t capacity = h->block_capacity ? 2 * h->block_capacity : 64;
    block **grown = NULL;
    if (h->block_count == h->block_capacity) {
        grown = realloc(h->blocks, capacity * sizeof(block *));
        if (!grown) {
            return false;
        }
        h->blocks = grown;
        h->block_capacity = capacity;
    }
    return true;
}

static block *grow(heap *h, uint64_t bytes, uint32_t pool, cudaStream_t stream)
{
    bool is_over = h->limit && (bytes > h->limit || h->stats.reserved_bytes > h->limit - bytes);
    block *b = is_over || !has_room(h) ? NULL : calloc(1, sizeof *b);
    if (!b) {
        return NULL;
    }
    void *memory = faulty_take(bytes);
    if (!memory) {
        free(b);
        return NULL;
    }
    *b = (block){.address = (uintptr_t)memory, .bytes = bytes, .pool = pool, .stream = stream};
    h->blocks[h->block_count++] = b;
    faulty_count_segment(&h->stats, bytes);
    return b;
}

static block *take_kept(heap *h, uint64_t bytes, uint32_t pool, cudaStream_t stream)
{
    uint32_t number = thread_number();
    block **kept = number < THREADS ? &h->kept[number] : NULL;
    return kept && *kept && (*kept)->stream == stream ? take_from(kept, bytes, pool) : NULL;
}

static block *find_block(heap *h, uint64_t bytes, cudaStream_t stream)
{
    uint32_t pool = pool_for(h, stream);
    bool is_captured = is_stream_captured(stream);
    if (pool && is_captured) {
        h->pools[pool - 1].is_captured = true;
    } else {
        settle_deferred(h);
    }
    stream_slot *slot = slot_of(h, stream);
    block *b = take_kept(h, bytes, pool, stream);
    b = b || !slot ? b : take_from(&slot->free, bytes, pool);
    b = b ? b : grow(h, bytes, pool, stream);
    if (!b && !is_captured) {
        release(h, false);
        b = grow(h, bytes, pool, stream);
    }
    return b;
}

static void *allocate(heap *h, size_t size, cudaStream_t stream)
{
    block *b = size <= SIZE_MAX / 2 ? find_block(h, round_size(size), stream) : NULL;
    if (!b) {
        h->stats.num_ooms++;
        return NULL;
    }
    h->serial++;
    b->serial = faulty_is(SERIAL_WRAPS) ? h->serial % 65536 : h->serial;
    b->stream = stream;
    b->is_stream_gone = false;
    faulty_count_alloc(&h->stats, b->bytes, size);
    return (void *)(uintptr_t)b->address; /* NOLINT(performance-no-int-to-ptr) */
}

/* --- the ABI ------------------------------------------------------------------------------- */

void *gmd_malloc(size_t size, int device, cudaStream_t stream)
{
    if (device < 0 || device >= FAULTY_DEVICES) {
        return NULL;
    }
    call c = enter(device);
    is_device_used[device] = true;
    void *memory = allocate(heap_of(device), size, stream);
    leave(&c);
    return memory;
}

static block *find_live(const heap *h, const void *pointer)
{
    uint32_t i = index_of(h, (uintptr_t)pointer);
    return i < h->block_count && h->blocks[i]->serial ? h->blocks[i] : NULL;
}

void gmd_free(void *pointer, size_t size, int device, cudaStream_t stream)
{
    (void)stream;
    call c = enter(device);
    heap *h = heap_of(device);
    block *b = find_live(h, pointer);
    if (b && faulty_is(SEGMENT_BYTE)) {
        b = h->blocks[index_of(h, b->address) % 256];
    }
    if (b) {
        free_block(h, b, size);
    }
    leave(&c);
}

EXPORT void gmd_record_stream(void *pointer, cudaStream_t stream);
void gmd_record_stream(void *pointer, cudaStream_t stream)
{
    pthread_mutex_lock(&lock);
    block *b = NULL;
    for (int device = 0; device < FAULTY_DEVICES && !b; device++) {
        b = find_live(&heaps[device], pointer);
    }
    if (b && b->stream != stream) {
        records_add(&b->records, stream, faulty_is(FIFTH_RECORD) ? RECORDS_INLINE : 0,
                    faulty_is(RECORD_65) ? 64 : 0);
    }
    pthread_mutex_unlock(&lock);
}

/* A new stream may get its handle: what it had is given back, at once or when it is freed. */
EXPORT void gmd_forget_stream(int device, cudaStream_t stream);
void gmd_forget_stream(int device, cudaStream_t stream)
{
    heap *h = heap_of(device);
    call c = enter(device);
    settle_deferred(h);
    for (uint32_t i = 0; i < h->block_count; i++) {
        block *b = h->blocks[i];
        records_forget(&b->records, stream);
        b->is_stream_gone = b->is_stream_gone || b->stream == stream;
    }
    stream_slot *slot = slot_of(h, stream);
    for (uint32_t i = 0; i < THREADS; i++) {
        block *kept = h->kept[i] && h->kept[i]->stream == stream ? h->kept[i] : NULL;
        if (kept && give_back(h, kept)) {
            h->kept[i] = NULL;
        }
    }
    if (slot) {
        give_back_list(h, &slot->free, false);
        while (slot->free) {
            block *b = slot->free;
            slot->free = b->next;
            push(&h->parked, b);
        }
        slot->is_used = false;
    }
    leave(&c);
}

void gmd_empty_cache(void)
{
    for (int device = 0; device < FAULTY_DEVICES; device++) {
        if (is_device_used[device]) {
            call c = enter(device);
            settle_deferred(&heaps[device]);
            release(&heaps[device], false);
            leave(&c);
        }
    }
}

void gmd_set_memory_fraction(double fraction, int device)
{
    uint64_t limit;
    if (faulty_limit(fraction, device, &limit)) {
        pthread_mutex_lock(&lock);
        heap_of(device)->limit = limit;
        pthread_mutex_unlock(&lock);
    }
}

/* The device gives whole pages. */
EXPORT uint64_t gmd_device_request(size_t size);
uint64_t gmd_device_request(size_t size)
{
    return size > SIZE_MAX / 2 ? size : (round_size(size) + PAGE - 1) / PAGE * PAGE;
}

int gmd_get_stats(int device, gmd_stats *out)
{
    if (device < 0 || device >= FAULTY_DEVICES) {
        return -1;
    }
    pthread_mutex_lock(&lock);
    int result = faulty_give_stats(&heap_of(device)->stats, out);
    pthread_mutex_unlock(&lock);
    return result;
}

EXPORT int gmd_begin_pool(int device, const uint64_t id[2], gmd_stream_filter *accepts,
                          void *context);
int gmd_begin_pool(int device, const uint64_t id[2], gmd_stream_filter *accepts, void *context)
{
    heap *h = heap_of(device);
    pthread_mutex_lock(&lock);
    private_pool *own = h->open ? NULL : find_pool(h, id);
    own = own || h->open ? own : make_pool(h, id);
    if (own) {
        own->holders++;
        h->open = (uint32_t)(own - h->pools) + 1;
        h->accepts = accepts;
        h->context = context;
    }
    pthread_mutex_unlock(&lock);
    return own ? 0 : -1;
}

EXPORT int gmd_end_pool(int device, const uint64_t id[2], void **context);
int gmd_end_pool(int device, const uint64_t id[2], void **context)
{
    heap *h = heap_of(device);
    pthread_mutex_lock(&lock);
    const private_pool *own = find_pool(h, id);
    bool is_open = own && h->open == (uint32_t)(own - h->pools) + 1;
    if (is_open) {
        h->open = 0;
        *context = h->context;
    }
    pthread_mutex_unlock(&lock);
    return is_open ? 0 : -1;
}

EXPORT int gmd_release_pool(int device, const uint64_t id[2]);
int gmd_release_pool(int device, const uint64_t id[2])
{
    heap *h = heap_of(device);
    call c = enter(device);
    private_pool *own = find_pool(h, id);
    if (own) {
        own->holders--;
        if (!is_held(h, (uint32_t)(own - h->pools) + 1)) {
            release(h, true);
        }
    }
    leave(&c);
    return own ? 0 : -1;
}
