/* lock_free_pool.c - blocks that are taken and given back without a lock: sizes are rounded to
 * powers of two up to 1 MiB and cut from slabs of at most 32 blocks and 2 MiB; larger ones have a
 * slab of their own. For each size, a stream has a slot with the block that it freed last, and a
 * stack (Treiber's) of those before; a device has a stack of blocks that no work is pending on. A
 * stack's head holds the number of the first node and a version, which each change counts on:
 * without it, a head that has come back would be taken for one that never left (ABA).
 *
 * A slab counts its blocks that are out. A lock is taken for what is rare: new slabs, new streams,
 * and giving slabs back, for which all stacks are emptied behind a wait for the device.
 *
 * Compiled with -fsanitize=thread, so that gmd sees its atomic operations (driver/tsan).
 *
 * Defects, each with what goes wrong; docs/planted-defects.md has the rest. */
#include "faulty.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

enum {
    NO_VERSION,  /* a head has no version: ABA */
    COUNT_READ,  /* a slab's count is read, and then written one lower */
    EARLY_BLOCK, /* a new slab's blocks are on the stack before their addresses are written */
    EARLY_LINK,  /* a freed block is the head before its link to the next is written */
    SLOT_READ,   /* a slot is looked at, and then emptied */
    PLAIN_SUM,   /* allocated bytes are added up without an atomic operation */
};
const char *const faulty_defects[] = {"no_version", "count_read", "early_block", "early_link",
                                      "slot_read",  "plain_sum",  NULL};

#define LEAST   ((uint64_t)256)
#define CUT_MAX ((uint64_t)1 << 20) /* the largest block of a slab with several */
#define SLAB    ((uint64_t)2 << 20)
enum {
    SIZES = 13,        /* 256 B, 512 B... 1 MiB */
    BLOCKS = 32,       /* of a slab, at most */
    OWN = SIZES,       /* of a block that has a slab of its own */
    STREAMS = 16,      /* of a device; the blocks of further ones are not kept */
    SLABS = 4096,      /* of a device */
    NODES = 4096 * 32, /* of a device; number 0 is none */
};

typedef struct node { /* of a block */
    _Atomic uint32_t next;
    uint32_t slab;
    uint64_t address;
} node;

typedef struct slab {
    _Atomic uint64_t address; /* 0: there is none here */
    _Atomic uint64_t bytes;
    uint64_t block_bytes;
    uint32_t first, count; /* of its nodes */
    int size;              /* index; OWN */
    _Atomic int32_t out;   /* of its blocks */
    uint32_t found;        /* likewise, when all stacks are emptied */
    bool is_leaving;
} slab;

typedef _Atomic uint64_t stack; /* version << 32 | number of the first node */

typedef struct cache {    /* of a stream */
    _Atomic uint64_t key; /* its handle + 1; 0: no stream has this */
    _Atomic uint32_t slots[SIZES];
    stack stacks[SIZES];
} cache;

typedef struct heap {
    node nodes[NODES];
    slab slabs[SLABS];
    _Atomic uint32_t slab_count; /* all beyond it are not there */
    uint32_t node_count;         /* all beyond it were never used */
    uint32_t
        spare[SIZES + 1]; /* for each size: nodes of a slab that went back, by their first; 0 */
    cache caches[STREAMS];
    stack clean[SIZES];
    bool is_used;
    uint64_t limit; /* of reserved bytes; 0: none */
    gmd_stats segments;
    _Atomic uint64_t blocks, bytes, requested, bytes_peak, refused;
} heap;

static heap heaps[FAULTY_DEVICES];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static bool is_done(cudaError_t answer)
{
    if (answer != cudaSuccess) {
        cudaGetLastError();
    }
    return answer == cudaSuccess;
}

static int size_index(uint64_t size)
{
    int index = 0;
    while (index < SIZES && LEAST << index < size) {
        index++;
    }
    return index;
}

/* --- stacks -------------------------------------------------------------------------------- */

static uint64_t make_head(uint64_t before, uint32_t first)
{
    uint64_t version = faulty_is(NO_VERSION) ? 0 : (before >> 32) + 1;
    return version << 32 | first;
}

static uint32_t pop(heap *h, stack *s)
{
    uint64_t head = atomic_load(s);
    for (uint32_t first; (first = (uint32_t)head);) {
        uint32_t next = atomic_load(&h->nodes[first].next);
        if (atomic_compare_exchange_weak(s, &head, make_head(head, next))) {
            return first;
        }
    }
    return 0;
}

static void push(heap *h, stack *s, uint32_t first)
{
    uint64_t head = atomic_load(s);
    if (faulty_is(EARLY_LINK)) {
        while (!atomic_compare_exchange_weak(s, &head, make_head(head, first))) {
        }
        atomic_store(&h->nodes[first].next, (uint32_t)head);
        return;
    }
    do {
        atomic_store(&h->nodes[first].next, (uint32_t)head);
    } while (!atomic_compare_exchange_weak(s, &head, make_head(head, first)));
}

static uint32_t take_slot(_Atomic uint32_t *slot)
{
    if (!faulty_is(SLOT_READ)) {
        return atomic_exchange(slot, 0);
    }
    uint32_t found = atomic_load(slot);
    if (found) {
        atomic_store(slot, 0);
    }
    return found;
}

/* --- streams ------------------------------------------------------------------------------- */

static cache *find_cache(heap *h, cudaStream_t stream)
{
    uint64_t key = (uint64_t)(uintptr_t)stream + 1;
    for (int i = 0; i < STREAMS; i++) {
        if (atomic_load(&h->caches[i].key) == key) {
            return &h->caches[i];
        }
    }
    return NULL;
}

/* NULL: there are too many streams. */
static cache *add_cache(heap *h, cudaStream_t stream)
{
    pthread_mutex_lock(&lock);
    cache *found = find_cache(h, stream); /* another thread may have added it */
    for (int i = 0; !found && i < STREAMS; i++) {
        if (!atomic_load(&h->caches[i].key)) {
            found = &h->caches[i];
            atomic_store(&found->key, (uint64_t)(uintptr_t)stream + 1);
        }
    }
    pthread_mutex_unlock(&lock);
    return found;
}

static cache *cache_of(heap *h, cudaStream_t stream)
{
    cache *found = find_cache(h, stream);
    return found ? found : add_cache(h, stream);
}

/* --- slabs, under the lock ----------------------------------------------------------------- */

static uint64_t slab_bytes(uint64_t size)
{
    uint64_t blocks = BLOCKS * (LEAST << size_index(size));
    return size > CUT_MAX ? (size + SLAB - 1) / SLAB * SLAB : blocks < SLAB ? blocks : SLAB;
}

/* Numbers for `count` nodes of blocks of that size; 0: there are no more. */
static uint32_t take_nodes(heap *h, int size, uint32_t count)
{
    uint32_t first = h->spare[size];
    if (first) {
        h->spare[size] = h->nodes[first].slab;
    } else if (count < NODES - h->node_count) {
        first = h->node_count + 1;
        h->node_count += count;
    }
    return first;
}

static void give_nodes_back(heap *h, int size, uint32_t first)
{
    h->nodes[first].slab = h->spare[size];
    h->spare[size] = first;
}

static slab *unused_slab(heap *h)
{
    uint32_t i = 0;
    while (i < SLABS && atomic_load(&h->slabs[i].address)) {
        i++;
    }
    if (i == SLABS) {
        return NULL;
    }
    if (i >= atomic_load(&h->slab_count)) {
        atomic_store(&h->slab_count, i + 1);
    }
    return &h->slabs[i];
}

static void write_node(heap *h, const slab *s, uint32_t i)
{
    h->nodes[s->first + i].slab = (uint32_t)(s - h->slabs);
    h->nodes[s->first + i].address = atomic_load(&s->address) + i * s->block_bytes;
}

/* The first block is the caller's, and out; the others are everybody's. */
static void hand_out(heap *h, slab *s)
{
    write_node(h, s, 0);
    for (uint32_t i = 1; i < s->count; i++) {
        if (!faulty_is(EARLY_BLOCK)) {
            write_node(h, s, i);
        }
        push(h, &h->clean[s->size], s->first + i);
        if (faulty_is(EARLY_BLOCK)) {
            write_node(h, s, i);
        }
    }
}

static uint32_t grow(heap *h, uint64_t size)
{
    int index = size_index(size);
    uint64_t bytes = slab_bytes(size);
    uint32_t count = index == OWN ? 1 : (uint32_t)(bytes / (LEAST << index));
    void *memory = NULL;
    slab *s = unused_slab(h);
    if (!s || (h->limit && h->segments.reserved_bytes + bytes > h->limit) ||
        !is_done(cudaMalloc(&memory, bytes))) {
        return 0;
    }
    uint32_t first = take_nodes(h, index, count);
    if (!first) {
        is_done(cudaFree(memory));
        return 0;
    }
    atomic_store(&s->bytes, bytes);
    s->block_bytes = index == OWN ? bytes : LEAST << index;
    s->first = first;
    s->count = count;
    s->size = index;
    atomic_store(&s->out, 1);
    atomic_store(&s->address, (uintptr_t)memory);
    faulty_count_segment(&h->segments, bytes);
    hand_out(h, s);
    return first;
}

static bool release(heap *h, slab *s)
{
    void *memory = (void *)(uintptr_t)s->address; /* NOLINT(performance-no-int-to-ptr) */
    if (!is_done(cudaFree(memory))) {
        return false;
    }
    faulty_count_segment_freed(&h->segments, s->bytes);
    atomic_store(&s->address, 0);
    give_nodes_back(h, s->size, s->first);
    return true;
}

/* Takes all blocks of a stack into a list by their links. */
static uint32_t drain(heap *h, stack *s, uint32_t list)
{
    for (uint32_t n; (n = pop(h, s));) {
        atomic_store(&h->nodes[n].next, list);
        list = n;
    }
    return list;
}

static void push_all(heap *h, stack *s, uint32_t list)
{
    for (uint32_t next; list; list = next) {
        next = atomic_load(&h->nodes[list].next);
        push(h, s, list);
    }
}

/* The host waits for the stream, and its blocks are everybody's. */
static bool clean_cache(heap *h, cache *c)
{
    uint32_t lists[SIZES];
    for (int size = 0; size < SIZES; size++) {
        uint32_t n = atomic_exchange(&c->slots[size], 0);
        if (n) {
            atomic_store(&h->nodes[n].next, 0);
        }
        lists[size] = drain(h, &c->stacks[size], n);
    }
    cudaStream_t stream =
        (cudaStream_t)(uintptr_t)(c->key - 1); /* NOLINT(performance-no-int-to-ptr) */
    bool is_clean = is_done(cudaStreamSynchronize(stream)) || is_done(cudaDeviceSynchronize());
    for (int size = 0; size < SIZES; size++) {
        push_all(h, is_clean ? &h->clean[size] : &c->stacks[size], lists[size]);
    }
    return is_clean;
}

/* A slab goes back when all its blocks are in our hands: other threads take and free some
 * meanwhile. */
static void release_size(heap *h, int size)
{
    uint32_t list = drain(h, &h->clean[size], 0), next;
    for (uint32_t n = list; n; n = atomic_load(&h->nodes[n].next)) {
        h->slabs[h->nodes[n].slab].found++;
    }
    for (; list; list = next) {
        slab *s = &h->slabs[h->nodes[list].slab];
        next = atomic_load(&h->nodes[list].next);
        s->is_leaving = s->found == s->count && (s->is_leaving || !atomic_load(&s->out));
        if (!s->is_leaving) {
            push(h, &h->clean[size], list);
        }
    }
}

static void release_slab(heap *h, slab *s)
{
    bool is_unused = s->size == OWN && s->address && !atomic_load(&s->out);
    if ((s->is_leaving || is_unused) && !release(h, s) && s->size != OWN) {
        for (uint32_t i = 0; i < s->count; i++) {
            push(h, &h->clean[s->size], s->first + i);
        }
    }
    s->is_leaving = false;
    s->found = 0;
}

static void release_all(heap *h)
{
    for (int i = 0; i < STREAMS; i++) {
        if (h->caches[i].key) {
            clean_cache(h, &h->caches[i]);
        }
    }
    for (int size = 0; size < SIZES; size++) {
        release_size(h, size);
    }
    for (uint32_t i = 0; i < h->slab_count; i++) {
        release_slab(h, &h->slabs[i]);
    }
}

/* --- figures ------------------------------------------------------------------------------- */

/* Returns the sum. */
static uint64_t add_bytes(heap *h, uint64_t bytes)
{
    return faulty_is(PLAIN_SUM) ? *(uint64_t *)&h->bytes += bytes
                                : atomic_fetch_add(&h->bytes, bytes) + bytes;
}

static void count_block(heap *h, uint64_t bytes, uint64_t requested)
{
    atomic_fetch_add(&h->blocks, 1);
    atomic_fetch_add(&h->requested, requested);
    uint64_t now = add_bytes(h, bytes), peak = atomic_load(&h->bytes_peak);
    while (now > peak && !atomic_compare_exchange_weak(&h->bytes_peak, &peak, now)) {
    }
}

static void count_block_freed(heap *h, uint64_t bytes, uint64_t requested)
{
    atomic_fetch_sub(&h->blocks, 1);
    atomic_fetch_sub(&h->requested, requested);
    add_bytes(h, -bytes);
}

static void count_in(slab *s)
{
    if (!faulty_is(COUNT_READ)) {
        atomic_fetch_sub(&s->out, 1);
        return;
    }
    int32_t out = atomic_load(&s->out);
    atomic_store(&s->out, out - 1);
}

/* --- the ABI ------------------------------------------------------------------------------- */

static uint32_t take(heap *h, int size, cudaStream_t stream)
{
    cache *c = cache_of(h, stream);
    uint32_t n = c ? take_slot(&c->slots[size]) : 0;
    n = n || !c ? n : pop(h, &c->stacks[size]);
    return n ? n : pop(h, &h->clean[size]);
}

static uint32_t take_new(heap *h, uint64_t size, int device)
{
    faulty_guard guard = faulty_enter_device(device);
    pthread_mutex_lock(&lock);
    h->is_used = true;
    uint32_t n = grow(h, size);
    if (!n) {
        release_all(h);
        n = grow(h, size);
    }
    pthread_mutex_unlock(&lock);
    faulty_leave_device(guard);
    return n;
}

void *gmd_malloc(size_t size, int device, cudaStream_t stream)
{
    if (device < 0 || device >= FAULTY_DEVICES) {
        return NULL;
    }
    heap *h = &heaps[device];
    int index = size_index(size);
    uint32_t n = index == OWN ? 0 : take(h, index, stream);
    bool is_new = !n && size <= SIZE_MAX / 2 && (n = take_new(h, size, device));
    n = n || index == OWN ? n : take(h, index, stream); /* of slabs that cannot go back */
    if (!n) {
        atomic_fetch_add(&h->refused, 1);
        return NULL;
    }
    slab *s = &h->slabs[h->nodes[n].slab];
    if (!is_new) { /* counted already */
        atomic_fetch_add(&s->out, 1);
    }
    count_block(h, s->block_bytes, size);
    return (void *)(uintptr_t)h->nodes[n].address; /* NOLINT(performance-no-int-to-ptr) */
}

static slab *find_slab(heap *h, uint64_t address)
{
    uint32_t count = atomic_load(&h->slab_count);
    for (uint32_t i = 0; i < count; i++) {
        uint64_t start = atomic_load(&h->slabs[i].address);
        if (start && address >= start && address - start < h->slabs[i].bytes &&
            start == h->slabs[i].address) { /* else it has another slab's bytes by now */
            return &h->slabs[i];
        }
    }
    return NULL;
}

static void keep(heap *h, const slab *s, uint32_t n, cudaStream_t stream)
{
    cache *c = cache_of(h, stream);
    if (!c) {
        if (is_done(cudaStreamSynchronize(stream)) || is_done(cudaDeviceSynchronize())) {
            push(h, &h->clean[s->size], n); /* else it is lost */
        }
        return;
    }
    uint32_t before = atomic_exchange(&c->slots[s->size], n);
    if (before) {
        push(h, &c->stacks[s->size], before);
    }
}

/* cudaFree waits for the device. */
static void give_back_own(heap *h, slab *s, int device)
{
    faulty_guard guard = faulty_enter_device(device);
    pthread_mutex_lock(&lock);
    release_slab(h, s); /* unless another thread has, and the slab is another's by now */
    pthread_mutex_unlock(&lock);
    faulty_leave_device(guard);
}

void gmd_free(void *pointer, size_t size, int device, cudaStream_t stream)
{
    if (device < 0 || device >= FAULTY_DEVICES) {
        return;
    }
    heap *h = &heaps[device];
    slab *s = find_slab(h, (uintptr_t)pointer);
    if (!s) {
        return;
    }
    bool is_own = s->size == OWN; /* once it is not out, others may give its slab back */
    uint32_t n = s->first + (uint32_t)(((uintptr_t)pointer - s->address) / s->block_bytes);
    count_block_freed(h, s->block_bytes, size);
    count_in(s);
    if (is_own) {
        give_back_own(h, s, device);
    } else {
        keep(h, s, n, stream);
    }
}

/* A new stream may get its handle: its blocks are clean when its work is done. */
EXPORT void gmd_forget_stream(int device, cudaStream_t stream);
void gmd_forget_stream(int device, cudaStream_t stream)
{
    heap *h = &heaps[device];
    cache *c = find_cache(h, stream);
    if (!c) {
        return;
    }
    faulty_guard guard = faulty_enter_device(device);
    pthread_mutex_lock(&lock);
    if (clean_cache(h, c)) {
        atomic_store(&c->key, 0);
    }
    pthread_mutex_unlock(&lock);
    faulty_leave_device(guard);
}

void gmd_empty_cache(void)
{
    pthread_mutex_lock(&lock);
    for (int device = 0; device < FAULTY_DEVICES; device++) {
        if (heaps[device].is_used) {
            faulty_guard guard = faulty_enter_device(device);
            release_all(&heaps[device]);
            faulty_leave_device(guard);
        }
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
    return size > SIZE_MAX / 2 ? size : slab_bytes(size);
}

int gmd_get_stats(int device, gmd_stats *out)
{
    if (device < 0 || device >= FAULTY_DEVICES) {
        return -1;
    }
    heap *h = &heaps[device];
    pthread_mutex_lock(&lock);
    gmd_stats now = h->segments;
    pthread_mutex_unlock(&lock);
    now.allocation_count = atomic_load(&h->blocks);
    now.allocated_bytes = atomic_load(&h->bytes);
    now.requested_bytes = atomic_load(&h->requested);
    now.allocated_bytes_peak = atomic_load(&h->bytes_peak);
    now.num_ooms = atomic_load(&h->refused);
    return faulty_give_stats(&now, out);
}
