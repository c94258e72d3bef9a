/* regions.c - regions of memory that blocks are cut from one after the other: a stream takes its
 * blocks from its region until that is full. A region in which nothing is live any more is retired
 * with an event, and serves its own stream at once, another one when the event is complete; when
 * memory is short, the other stream waits for the event, and then retired regions go back to the
 * device. Larger blocks have a region of their own.
 *
 * A block of 0 B is where the next one begins, and is no block: nothing has to be freed.
 *
 * The handles of events that were seen to be complete are kept, which saves asking again.
 *
 * Defects, each with what goes wrong; docs/planted-defects.md has the rest. */
#include "faulty.h"

#include <pthread.h>
#include <stdlib.h>

enum {
    EMPTY_COUNTED, /* the free of a block of 0 B counts for the region that it points into */
    DONE_KEPT,     /* the handle of a complete event is kept when the event is destroyed */
    SHORT_BLIND,   /* when memory is short, a wait that fails is not looked at */
    RETIRED_BLIND, /* that a retired region's event could not be recorded is not looked at */
    ASKS_LAST,     /* an event counts as recorded where the last error, whosever it is, is none */
};
const char *const faulty_defects[] = {"empty_counted", "done_kept", "short_blind",
                                      "retired_blind", "asks_last", NULL};

#define UNIT     ((uint64_t)256)
#define REGION   ((uint64_t)8 << 20)
#define PAGE     ((uint64_t)2 << 20)
#define OWN_FROM (REGION / 4) /* the smallest block with a region of its own */
#define DONE_MAX 64

typedef struct region region;
struct region {
    region *next;
    uint64_t address, bytes, used;
    uint32_t live;
    bool is_retired;
    cudaStream_t stream;
    cudaEvent_t
        event; /* retired: the work on its blocks came before it; NULL: it is known to be over */
};

typedef struct heap {
    region *regions;
    uint64_t limit; /* of reserved bytes; 0: none */
    gmd_stats stats;
} heap;

static heap heaps[FAULTY_DEVICES];
static cudaEvent_t done[DONE_MAX];
static unsigned done_count;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static bool is_ok(cudaError_t answer)
{
    if (answer != cudaSuccess) {
        cudaGetLastError();
    }
    return answer == cudaSuccess;
}

/* --- events -------------------------------------------------------------------------------- */

static cudaEvent_t *find_done(cudaEvent_t event)
{
    for (unsigned i = 0; i < DONE_MAX; i++) {
        if (done[i] == event) {
            return &done[i];
        }
    }
    return NULL;
}

static bool is_over(cudaEvent_t event)
{
    if (!event || find_done(event)) {
        return true;
    }
    cudaError_t answer = cudaEventQuery(event);
    if (answer != cudaSuccess) {
        if (answer != cudaErrorNotReady) {
            cudaGetLastError();
        }
        return false;
    }
    done[done_count++ % DONE_MAX] = event;
    return true;
}

static void drop_event(region *r)
{
    cudaEvent_t *kept = r->event ? find_done(r->event) : NULL;
    if (kept && !faulty_is(DONE_KEPT)) {
        *kept = NULL;
    }
    if (r->event) {
        is_ok(cudaEventDestroy(r->event));
        r->event = NULL;
    }
}

/* --- regions ------------------------------------------------------------------------------- */

static bool wait_on_host(const region *r)
{
    return !r->event || is_ok(cudaEventSynchronize(r->event)) || is_ok(cudaDeviceSynchronize());
}

/* With no event to wait for, the host waits for what was done. */
static void retire(region *r)
{
    bool has_event = is_ok(cudaEventCreateWithFlags(&r->event, cudaEventDisableTiming));
    bool is_recorded = has_event && is_ok(cudaEventRecord(r->event, r->stream));
    if (faulty_is(ASKS_LAST)) {
        is_recorded = cudaGetLastError() == cudaSuccess && is_recorded;
    }
    if (has_event && !is_recorded && !faulty_is(RETIRED_BLIND)) {
        drop_event(r);
    }
    if (!has_event) {
        r->event = NULL;
    }
    if (!r->event && !is_ok(cudaStreamSynchronize(r->stream)) && !is_ok(cudaDeviceSynchronize())) {
        return; /* for ever: it is not known when that work is over */
    }
    r->is_retired = true;
}

static region *reopen(region *r, cudaStream_t stream)
{
    drop_event(r);
    r->is_retired = false;
    r->stream = stream;
    r->used = 0;
    return r;
}

static region *reuse(const heap *h, uint64_t bytes, cudaStream_t stream)
{
    for (region *r = h->regions; r; r = r->next) {
        if (r->is_retired && r->bytes == bytes && (r->stream == stream || is_over(r->event))) {
            return reopen(r, stream);
        }
    }
    return NULL;
}

static bool wait_for(const region *r, cudaStream_t stream)
{
    if (!r->event) {
        return true;
    }
    return is_ok(cudaStreamWaitEvent(stream, r->event, 0)) || faulty_is(SHORT_BLIND);
}

static region *reuse_behind_wait(const heap *h, uint64_t bytes, cudaStream_t stream)
{
    for (region *r = h->regions; r; r = r->next) {
        if (r->is_retired && r->bytes == bytes && wait_for(r, stream)) {
            return reopen(r, stream);
        }
    }
    return NULL;
}

static region *add_region(heap *h, uint64_t bytes, cudaStream_t stream)
{
    void *memory = NULL;
    if ((h->limit && h->stats.reserved_bytes + bytes > h->limit) ||
        !is_ok(cudaMalloc(&memory, bytes))) {
        return NULL;
    }
    region *r = malloc(sizeof *r);
    if (!r) {
        abort();
    }
    *r = (region){
        .next = h->regions, .address = (uintptr_t)memory, .bytes = bytes, .stream = stream};
    h->regions = r;
    faulty_count_segment(&h->stats, bytes);
    return r;
}

static void release_retired(heap *h)
{
    for (region **link = &h->regions; *link;) {
        region *r = *link;
        void *memory = (void *)(uintptr_t)r->address; /* NOLINT(performance-no-int-to-ptr) */
        if (!r->is_retired || !wait_on_host(r) || !is_ok(cudaFree(memory))) {
            link = &r->next;
            continue;
        }
        *link = r->next;
        drop_event(r);
        faulty_count_segment_freed(&h->stats, r->bytes);
        free(r);
    }
}

static uint64_t region_bytes(uint64_t bytes)
{
    return bytes >= OWN_FROM ? (bytes + PAGE - 1) / PAGE * PAGE : REGION;
}

/* Room for so many bytes at the end of what is used of it. */
static region *region_for(heap *h, uint64_t bytes, cudaStream_t stream)
{
    bool has_own = bytes >= OWN_FROM;
    uint64_t size = region_bytes(bytes);
    for (region *r = h->regions; r && !has_own; r = r->next) {
        if (!r->is_retired && r->stream == stream && r->bytes == REGION &&
            r->bytes - r->used >= bytes) {
            return r;
        }
    }
    region *r = reuse(h, size, stream);
    r = r ? r : add_region(h, size, stream);
    r = r ? r : reuse_behind_wait(h, size, stream);
    if (!r) {
        release_retired(h);
        r = add_region(h, size, stream);
    }
    return r;
}

static region *find(const heap *h, uint64_t address)
{
    region *r = h->regions;
    while (r && address - r->address >= r->bytes) {
        r = r->next;
    }
    return r;
}

/* --- the ABI ------------------------------------------------------------------------------- */

static uint64_t round_size(uint64_t size)
{
    return (size + UNIT - 1) / UNIT * UNIT;
}

static void *allocate(heap *h, size_t size, cudaStream_t stream)
{
    region *r = size <= SIZE_MAX / 2 ? region_for(h, round_size(size), stream) : NULL;
    if (!r) {
        h->stats.num_ooms++;
        return NULL;
    }
    uint64_t address = r->address + r->used;
    if (!size && !r->live) { /* the region is still unused */
        retire(r);
    } else if (size) {
        r->used += round_size(size);
        r->live++;
        faulty_count_alloc(&h->stats, round_size(size), size);
    }
    return (void *)(uintptr_t)address; /* NOLINT(performance-no-int-to-ptr) */
}

static void give_back(heap *h, const void *pointer, size_t size, cudaStream_t stream)
{
    region *r = find(h, (uintptr_t)pointer);
    if (!r || !r->live || (!size && !faulty_is(EMPTY_COUNTED))) {
        return;
    }
    if (size) {
        faulty_count_free(&h->stats, round_size(size), size);
    }
    r->stream = stream; /* the one that it was opened for may be gone */
    if (--r->live == 0) {
        retire(r);
    }
}

void *gmd_malloc(size_t size, int device, cudaStream_t stream)
{
    if (device < 0 || device >= FAULTY_DEVICES) {
        return NULL;
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

void gmd_empty_cache(void)
{
    pthread_mutex_lock(&lock);
    for (int device = 0; device < FAULTY_DEVICES; device++) {
        if (heaps[device].regions) {
            faulty_guard guard = faulty_enter_device(device);
            release_retired(&heaps[device]);
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
    return size > SIZE_MAX / 2 ? size : region_bytes(round_size(size));
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
