/* stream_wait_pool.c - a suballocating pool in the design of RMM's pool_memory_resource
 * (https://docs.rapids.ai/api/rmm; rapidsai/rmm, stream_ordered_memory_resource): free blocks are
 * kept in one list for each stream, with one event that is recorded on the stream at each free. A
 * request looks in its own stream's list first; then in the others', where its stream waits for the
 * list's event before it takes a block; then it takes the other lists over, one after the other,
 * waiting for each, since neighbours in different lists may make a block that is large enough; only
 * then the pool grows. The list of a destroyed stream stays, since its event does.
 *
 * Memory that no stream has used yet is in a list of its own, which needs no wait.
 *
 * Streams are told apart by their handles: where a new stream gets the handle of one that was
 * destroyed, all work of the old one must be over by then.
 *
 * Defects, each with what goes wrong; docs/planted-defects.md has the rest. */
#include "faulty.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum {
    RMM2489,        /* a list that took another one over keeps its event as it was, before the wait:
                       who takes such a block from it waits for nothing */
    RMM510,         /* waits on the host for the other list's stream instead of for its event, and
                       does not notice that the stream was destroyed */
    ORT12913,       /* what is left of a block that is split belongs to no stream */
    DALI2983,       /* other streams' blocks are taken without waiting */
    CURRENT_DEVICE, /* allocates on the thread's current device, not on the request's */
    LEAVES_DEVICE,  /* leaves the request's device current */
    RMM397,         /* a merged block does not know that it begins a segment, and is merged with the
                       segment before it */
    RMM2039,        /* when memory is short, free neighbours in different lists stay apart */
    RMM1912,        /* two threads make the list of a stream: the block of the second is lost */
    STALE_EVENT,    /* a list's event is recorded only when its first block comes */
    WRONG_LIST,     /* a freed block goes into the list that was made first */
    RETRY_OVERLIMIT, /* the second try to grow does not look at the limit */
};
const char *const faulty_defects[] = {
    "rmm2489",       "rmm510",          "ort12913", "dali2983", "current_device",
    "leaves_device", "rmm397",          "rmm2039",  "rmm1912",  "stale_event",
    "wrong_list",    "retry_overlimit", NULL};

#define ALIGNMENT ((uint64_t)256)
#define GRANULE   ((uint64_t)2 << 20)
#define GROWTH    ((uint64_t)32 << 20) /* a segment is at least this large, if there is room */

typedef struct block {
    uint64_t address, size;
    bool is_merged; /* free blocks: was put together from two */
} block;

typedef struct blocks { /* ascending addresses, neighbours of one segment merged */
    block *items;
    size_t count, capacity;
} blocks;

typedef struct stream_list {
    cudaStream_t stream;
    cudaEvent_t event; /* all work that may use the blocks came before it */
    blocks free;
} stream_list;

typedef struct pool {
    blocks segments;
    blocks fresh; /* never used, or known to be done with */
    stream_list *lists;
    size_t list_count, list_capacity;
    uint64_t limit; /* of reserved bytes; 0: none */
    gmd_stats stats;
} pool;

static pool pools[FAULTY_DEVICES];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static uint64_t round_up(uint64_t size, uint64_t to)
{
    return (size + to - 1) / to * to;
}

/* --- ordered blocks ---------------------------------------------------------------------- */

static bool reserve(void **items, size_t count, size_t *capacity, size_t item_size)
{
    if (count < *capacity) {
        return true;
    }
    size_t larger = *capacity ? *capacity * 2 : 16;
    void *grown = realloc(*items, larger * item_size);
    if (!grown) {
        return false;
    }
    *items = grown;
    *capacity = larger;
    return true;
}

/* Index of the first block at or after the address. */
static size_t find_place(const blocks *b, uint64_t address)
{
    size_t low = 0, high = b->count;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (b->items[middle].address < address) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

static void remove_at(blocks *b, size_t i)
{
    b->count--;
    memmove(&b->items[i], &b->items[i + 1], (b->count - i) * sizeof b->items[0]);
}

/* Without host memory the process ends: a block that is not in a list would be lost. */
static void insert_at(blocks *b, size_t i, block added)
{
    if (!reserve((void **)&b->items, b->count, &b->capacity, sizeof b->items[0])) {
        abort();
    }
    memmove(&b->items[i + 1], &b->items[i], (b->count - i) * sizeof b->items[0]);
    b->items[i] = added;
    b->count++;
}

static bool begins_segment(const pool *p, uint64_t address)
{
    size_t i = find_place(&p->segments, address);
    return i < p->segments.count && p->segments.items[i].address == address;
}

/* Segments that happen to be neighbours are given back one by one: nothing merges across. */
static void add_free(const pool *p, blocks *b, block added)
{
    size_t i = find_place(b, added.address);
    bool joins_next =
        i < b->count && added.address + added.size == b->items[i].address &&
        (!begins_segment(p, b->items[i].address) || (faulty_is(RMM397) && b->items[i].is_merged));
    bool joins_last = i > 0 && b->items[i - 1].address + b->items[i - 1].size == added.address &&
                      !begins_segment(p, added.address);
    if (joins_last) {
        b->items[i - 1].size += added.size;
        b->items[i - 1].is_merged = true;
        if (joins_next) {
            b->items[i - 1].size += b->items[i].size;
            remove_at(b, i);
        }
    } else if (joins_next) {
        b->items[i].address = added.address;
        b->items[i].size += added.size;
        b->items[i].is_merged = true;
    } else {
        insert_at(b, i, added);
    }
}

/* The smallest that fits, the lowest of equals; its start is cut off where more is left. */
static bool take_best(pool *p, blocks *b, uint64_t size, uint64_t *address)
{
    size_t best = b->count;
    for (size_t i = 0; i < b->count; i++) {
        if (b->items[i].size >= size &&
            (best == b->count || b->items[i].size < b->items[best].size)) {
            best = i;
        }
    }
    if (best == b->count) {
        return false;
    }
    block *found = &b->items[best];
    *address = found->address;
    block rest = {.address = found->address + size, .size = found->size - size};
    if (rest.size && !faulty_is(ORT12913)) {
        *found = rest;
        return true;
    }
    remove_at(b, best);
    if (rest.size) {
        add_free(p, &p->fresh, rest);
    }
    return true;
}

/* --- lists of streams -------------------------------------------------------------------- */

static stream_list *find_list(const pool *p, cudaStream_t stream)
{
    for (size_t i = 0; i < p->list_count; i++) {
        if (p->lists[i].stream == stream) {
            return &p->lists[i];
        }
    }
    return NULL;
}

/* NULL: no host memory, or no event. */
static stream_list *list_of(pool *p, cudaStream_t stream)
{
    stream_list *list = find_list(p, stream);
    if (list) {
        return list;
    }
    cudaEvent_t event;
    if (!reserve((void **)&p->lists, p->list_count, &p->list_capacity, sizeof p->lists[0])) {
        return NULL;
    }
    if (cudaEventCreateWithFlags(&event, cudaEventDisableTiming) != cudaSuccess) {
        cudaGetLastError();
        return NULL;
    }
    p->lists[p->list_count] = (stream_list){.stream = stream, .event = event};
    return &p->lists[p->list_count++];
}

/* Makes `stream` wait for all that the blocks of another list were used for. */
static bool wait_for_list(const stream_list *other, cudaStream_t stream)
{
    if (faulty_is(DALI2983)) {
        return true;
    }
    if (faulty_is(RMM510)) {
        cudaStreamSynchronize(other->stream);
        cudaGetLastError();
        return true;
    }
    return cudaStreamWaitEvent(stream, other->event, 0) == cudaSuccess;
}

static bool take_from_others(pool *p, stream_list *own, uint64_t size, uint64_t *address)
{
    for (size_t i = 0; i < p->list_count; i++) {
        stream_list *other = &p->lists[i];
        if (other != own && take_best(p, &other->free, size, address)) {
            if (wait_for_list(other, own->stream)) {
                return true;
            }
            cudaGetLastError();
            add_free(p, &other->free, (block){.address = *address, .size = size});
        }
    }
    return false;
}

static bool take_over(pool *p, stream_list *own, stream_list *other)
{
    if (!wait_for_list(other, own->stream)) {
        cudaGetLastError();
        return false;
    }
    for (size_t i = 0; i < other->free.count; i++) {
        add_free(p, &own->free, other->free.items[i]);
    }
    other->free.count = 0;
    return true;
}

/* For work of which no event, or none that can be waited for, tells the end. False: nor can that.
 */
static bool wait_for_device(void)
{
    cudaGetLastError(); /* of the wait that failed */
    bool is_over = cudaDeviceSynchronize() == cudaSuccess;
    cudaGetLastError();
    return is_over;
}

/* With no event to wait for, the host waits. */
static void record_end(const stream_list *list)
{
    if (cudaEventRecord(list->event, list->stream) != cudaSuccess) {
        wait_for_device();
    }
}

/* Neighbours in different lists may fit together. Afterwards the own event must stand for the work
 * of those streams, too: it is recorded behind the waits. */
static bool take_after_merging(pool *p, stream_list *own, uint64_t size, uint64_t *address)
{
    bool has_merged = false, found = faulty_is(RMM2039);
    for (size_t i = 0; i < p->list_count && !found; i++) {
        stream_list *other = &p->lists[i];
        if (other != own && other->free.count && take_over(p, own, other)) {
            has_merged = true;
            found = take_best(p, &own->free, size, address);
        }
    }
    if (has_merged && !faulty_is(RMM2489)) {
        record_end(own);
    }
    return found && !faulty_is(RMM2039);
}

/* --- segments ---------------------------------------------------------------------------- */

static bool add_segment(pool *p, uint64_t size, bool is_retry)
{
    void *memory = NULL;
    bool has_limit = p->limit && !(is_retry && faulty_is(RETRY_OVERLIMIT));
    if (has_limit && p->stats.reserved_bytes + size > p->limit) {
        return false;
    }
    if (cudaMalloc(&memory, size) != cudaSuccess) {
        cudaGetLastError();
        return false;
    }
    block segment = {.address = (uintptr_t)memory, .size = size};
    insert_at(&p->segments, find_place(&p->segments, segment.address), segment);
    add_free(p, &p->fresh, segment);
    faulty_count_segment(&p->stats, size);
    return true;
}

/* Waits for what was done with all free blocks: they are as good as fresh then. */
static void gather_free(pool *p)
{
    size_t kept = 0;
    for (size_t i = 0; i < p->list_count; i++) {
        stream_list *list = &p->lists[i];
        if (cudaEventSynchronize(list->event) != cudaSuccess && !wait_for_device()) {
            p->lists[kept++] = *list;
            continue;
        }
        for (size_t k = 0; k < list->free.count; k++) {
            add_free(p, &p->fresh, list->free.items[k]);
        }
        cudaEventDestroy(list->event);
        free(list->free.items);
    }
    p->list_count = kept;
}

static void release_segments(pool *p)
{
    gather_free(p);
    for (size_t i = p->segments.count; i-- > 0;) {
        block segment = p->segments.items[i];
        size_t at = find_place(&p->fresh, segment.address);
        if (at < p->fresh.count && p->fresh.items[at].address == segment.address &&
            p->fresh.items[at].size == segment.size) {
            remove_at(&p->fresh, at);
            remove_at(&p->segments, i);
            faulty_count_segment_freed(&p->stats, segment.size);
            cudaFree((void *)(uintptr_t)segment.address); /* NOLINT(performance-no-int-to-ptr) */
        }
    }
}

/* Memory that is given back may make room for a segment; and free blocks that were in different
 * lists may already do, now that they are in one. */
static bool take_after_growing(pool *p, uint64_t size, uint64_t *address)
{
    uint64_t least = round_up(size, GRANULE);
    if ((least < GROWTH && add_segment(p, GROWTH, false)) || add_segment(p, least, false)) {
        return take_best(p, &p->fresh, size, address);
    }
    if (!faulty_is(RMM2039)) {
        release_segments(p);
    }
    return take_best(p, &p->fresh, size, address) ||
           (add_segment(p, least, true) && take_best(p, &p->fresh, size, address));
}

/* --- the ABI ----------------------------------------------------------------------------- */

static bool find_block(pool *p, cudaStream_t stream, uint64_t size, uint64_t *address)
{
    stream_list *own = list_of(p, stream);
    if (!own) {
        return false;
    }
    return take_best(p, &own->free, size, address) || take_best(p, &p->fresh, size, address) ||
           take_from_others(p, own, size, address) || take_after_merging(p, own, size, address) ||
           take_after_growing(p, size, address);
}

void *gmd_malloc(size_t size, int device, cudaStream_t stream)
{
    if (device < 0 || device >= FAULTY_DEVICES) {
        return NULL;
    }
    pool *p = &pools[device];
    uint64_t bytes = round_up(size ? size : 1, ALIGNMENT), address = 0;
    faulty_guard guard = {0};
    if (!faulty_is(CURRENT_DEVICE)) {
        guard = faulty_enter_device(device);
    }
    pthread_mutex_lock(&lock);
    bool found = size <= SIZE_MAX / 2 && find_block(p, stream, bytes, &address);
    if (found) {
        faulty_count_alloc(&p->stats, bytes, size);
    } else {
        p->stats.num_ooms++;
    }
    pthread_mutex_unlock(&lock);
    if (!faulty_is(LEAVES_DEVICE)) {
        faulty_leave_device(guard);
    }
    return found ? (void *)(uintptr_t)address : NULL; /* NOLINT(performance-no-int-to-ptr) */
}

/* The list was not there, and is, once the lock was taken again to make it. */
static bool is_made_meanwhile(const pool *p, cudaStream_t stream)
{
    if (find_list(p, stream)) {
        return false;
    }
    pthread_mutex_unlock(&lock);
    pthread_mutex_lock(&lock);
    return find_list(p, stream) != NULL;
}

void gmd_free(void *pointer, size_t size, int device, cudaStream_t stream)
{
    pool *p = &pools[device];
    block freed = {.address = (uintptr_t)pointer, .size = round_up(size ? size : 1, ALIGNMENT)};
    faulty_guard guard = faulty_enter_device(device);
    pthread_mutex_lock(&lock);
    bool is_lost = faulty_is(RMM1912) && is_made_meanwhile(p, stream);
    stream_list *list = list_of(p, stream);
    bool is_old = list && list->free.count && faulty_is(STALE_EVENT);
    if (list && (is_old || cudaEventRecord(list->event, stream) == cudaSuccess)) {
        list = faulty_is(WRONG_LIST) ? p->lists : list;
        if (!is_lost) {
            add_free(p, &list->free, freed);
        }
    } else if (wait_for_device()) { /* with no event to wait for */
        add_free(p, &p->fresh, freed);
    } /* else it is lost, and nobody's too early */
    faulty_count_free(&p->stats, freed.size, size);
    pthread_mutex_unlock(&lock);
    faulty_leave_device(guard);
}

void gmd_empty_cache(void)
{
    pthread_mutex_lock(&lock);
    for (int device = 0; device < FAULTY_DEVICES; device++) {
        if (pools[device].segments.count || pools[device].list_count) {
            faulty_guard guard = faulty_enter_device(device);
            release_segments(&pools[device]);
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
        pools[device].limit = limit;
        pthread_mutex_unlock(&lock);
    }
}

int gmd_get_stats(int device, gmd_stats *out)
{
    if (device < 0 || device >= FAULTY_DEVICES) {
        return -1;
    }
    pthread_mutex_lock(&lock);
    int result = faulty_give_stats(&pools[device].stats, out);
    pthread_mutex_unlock(&lock);
    return result;
}
