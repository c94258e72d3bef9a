/* cudamallocasync.c - libgmd_cudamallocasync.so: cudaMallocAsync and cudaFreeAsync on each device's
 * default pool, with the ABI of gmd_abi.h.
 *
 * The pool keeps what is freed (its release threshold is raised, as PyTorch's own backend for it
 * does), so there is a cache to empty. It has no limit that a memory fraction could set. Streams
 * that were recorded for a block are waited for by its free: on a gate, a stream of the adapter's
 * own, so that the caller's streams wait for nothing that they did not ask for. There is one gate
 * for each device that needs one, so blocks whose frees wait come back in the order of the frees.
 * Where it cannot be had, the host waits instead, and a block that cannot be freed at all is
 * offered again later. Sync: the table's lock. */
#define GMD_ABI_EXPORT __attribute__((visibility("default")))
#include "allocation.h"
#include "calls.h"
#include "gmd_abi.h"
#include "gmd_cuda.h"

#include <stdlib.h>

static int device_count;
static cudaMemPool_t pools[ADAPTER_DEVICES];

static struct gate {     /* of a device */
    cudaStream_t stream; /* NULL: none */
    cudaEvent_t event;   /* likewise; marks a place on another stream for the gate to wait for */
} gates[ADAPTER_DEVICES];

void gmd_init(int count)
{
    adapter_begin();
    block_table_lock();
    device_count = count < ADAPTER_DEVICES ? count : ADAPTER_DEVICES;
    for (int device = 0; device < device_count; device++) {
        uint64_t threshold = UINT64_MAX;
        if (adapter_succeeded("cudaDeviceGetDefaultMemPool",
                              cudaDeviceGetDefaultMemPool(&pools[device], device))) {
            adapter_succeeded("cudaMemPoolSetAttribute",
                              cudaMemPoolSetAttribute(pools[device],
                                                      cudaMemPoolAttrReleaseThreshold, &threshold));
        }
    }
    block_table_unlock();
}

/* --- allocating -------------------------------------------------------------------------- */

/* The streams that the block waited for may be gone by now, and cudaFree of a pool's memory waits
 * for nothing (CUDA Driver API, cuMemFree): the host waits for the device. */
static bool free_again(table_entry *b)
{
    int previous;
    if (!device_enter(b->device, &previous)) {
        return false;
    }
    bool is_free = adapter_served(cudaDeviceSynchronize()) && adapter_served(cudaFree(b->memory));
    device_leave(b->device, previous);
    return is_free;
}

static cudaError_t allocate(void **memory, size_t size, cudaStream_t stream)
{
    return cudaMallocAsync(memory, size, stream);
}

void *gmd_malloc(size_t size, int device, cudaStream_t stream)
{
    static const adapter_source source = {"cudaMallocAsync", allocate, free_again};
    return adapter_allocate(&source, size, device, stream);
}

/* --- recorded streams -------------------------------------------------------------------- */

static block_use **find_use(table_entry *b, cudaStream_t stream)
{
    block_use **link = &b->uses;
    while (*link && (*link)->stream != stream) {
        link = &(*link)->next;
    }
    return link;
}

void gmd_record_stream(void *ptr, cudaStream_t stream)
{
    adapter_begin();
    block_table_lock();
    table_entry *b = block_table_find(ptr);
    if (b && b->stream != stream && !*find_use(b, stream)) {
        block_use *use = malloc(sizeof *use);
        if (use) {
            *use = (block_use){.next = b->uses, .stream = stream};
            b->uses = use;
        } else {
            adapter_say("gmd_record_stream: the host has no memory");
        }
    }
    block_table_unlock();
}

/* With the device current. */
static bool open_gate(struct gate *g)
{
    if (!g->event && !adapter_served(cudaEventCreateWithFlags(&g->event, cudaEventDisableTiming))) {
        g->event = NULL;
    }
    if (!g->stream &&
        !adapter_served(cudaStreamCreateWithFlags(&g->stream, cudaStreamNonBlocking))) {
        g->stream = NULL;
    }
    return g->event && g->stream;
}

/* With nothing queued. What cannot be destroyed stays for the next time. */
static void close_gate(struct gate *g)
{
    if (g->event && adapter_succeeded("cudaEventDestroy", cudaEventDestroy(g->event))) {
        g->event = NULL;
    }
    if (g->stream && adapter_succeeded("cudaStreamDestroy", cudaStreamDestroy(g->stream))) {
        g->stream = NULL;
    }
}

/* The gate runs nothing more before all that is queued on `waited` now. */
static bool follow(const struct gate *g, cudaStream_t waited)
{
    return adapter_served(cudaEventRecord(g->event, waited)) &&
           adapter_served(cudaStreamWaitEvent(g->stream, g->event, 0));
}

static bool free_behind_gate(const table_entry *b, cudaStream_t stream)
{
    struct gate *g = &gates[b->device];
    bool waits = open_gate(g) && follow(g, stream);
    for (const block_use *use = b->uses; waits && use; use = use->next) {
        waits = follow(g, use->stream);
    }
    return waits && adapter_served(cudaFreeAsync(b->memory, g->stream));
}

/* True: the pool has it again, for work after that on the streams which used it. */
static bool give_back(table_entry *b, cudaStream_t stream)
{
    int previous;
    bool is_free = false;
    if (!b->waits_for_device && device_enter(b->device, &previous)) {
        is_free = b->uses || b->waits_for_gate ? free_behind_gate(b, stream)
                                               : adapter_served(cudaFreeAsync(b->memory, stream));
        device_leave(b->device, previous);
    }
    return is_free || free_again(b);
}

void gmd_free(void *ptr, size_t size, int device, cudaStream_t stream)
{
    (void)size;
    (void)device;
    adapter_begin();
    if (!ptr) {
        return;
    }
    block_table_lock();
    table_entry *b = block_table_take(ptr);
    if (!b) {
        adapter_say("gmd_free: a free of what is not allocated (freed before, or never allocated)");
    } else if (give_back(b, stream)) {
        block_table_given_back(b);
    } else {
        adapter_say("gmd_free: neither cudaFreeAsync nor cudaFree takes the block");
        block_table_keep(b);
    }
    block_table_unlock();
}

static bool is_used_on(table_entry *b, void *stream)
{
    return *find_use(b, stream) != NULL;
}

static bool drop_use(table_entry *b, cudaStream_t stream)
{
    block_use **link = find_use(b, stream), *use = *link;
    if (use) {
        *link = use->next;
        free(use);
    }
    return use != NULL;
}

static bool settle_use(table_entry *b, void *stream)
{
    bool is_used = drop_use(b, stream);
    b->waits_for_gate |= is_used;
    return is_used;
}

static bool lose_use(table_entry *b, void *stream)
{
    bool is_used = drop_use(b, stream);
    b->waits_for_device |= is_used;
    return is_used;
}

static bool can_forget(int device, cudaStream_t stream)
{
    int previous;
    if (!device_enter(device, &previous)) {
        return false;
    }
    struct gate *g = &gates[device];
    bool is_settled =
        (open_gate(g) && follow(g, stream)) || adapter_served(cudaStreamSynchronize(stream));
    device_leave(device, previous);
    return is_settled;
}

/* Whatever the gate frees from now on comes after the stream's work, or the host has waited for it.
 * Where neither can be, the frees of the blocks wait for the device: nobody may ask the stream. */
void gmd_forget_stream(int device, cudaStream_t stream)
{
    adapter_begin();
    block_table_lock();
    if (block_table_each(device, is_used_on, stream)) {
        block_table_each(device, can_forget(device, stream) ? settle_use : lose_use, stream);
    }
    block_table_unlock();
}

/* --- the pools --------------------------------------------------------------------------- */

/* With the device current. The gate, on which nothing is queued then, is made again when needed. */
static void empty_pool(int device)
{
    block_table_retry(device, free_again);
    if (!adapter_succeeded("cudaDeviceSynchronize", cudaDeviceSynchronize())) {
        return;
    }
    close_gate(&gates[device]);
    adapter_succeeded("cudaMemPoolTrimTo", cudaMemPoolTrimTo(pools[device], 0));
}

void gmd_empty_cache(void)
{
    adapter_begin();
    block_table_lock();
    for (int device = 0; device < device_count; device++) {
        int previous;
        if (device_enter(device, &previous)) {
            empty_pool(device);
            device_leave(device, previous);
        }
    }
    block_table_unlock();
}

/* What is reserved is the pool's: all pages that it holds. */
static bool read_figures(int device, gmd_stats *out)
{
    if (device < 0 || device >= device_count || !block_table_read(device, out)) {
        return false;
    }
    out->segment_count = GMD_STAT_UNKNOWN;
    out->inactive_split_bytes = GMD_STAT_UNKNOWN;
    return adapter_succeeded("cudaMemPoolGetAttribute",
                             cudaMemPoolGetAttribute(pools[device],
                                                     cudaMemPoolAttrReservedMemCurrent,
                                                     &out->reserved_bytes)) &&
           adapter_succeeded("cudaMemPoolGetAttribute",
                             cudaMemPoolGetAttribute(pools[device], cudaMemPoolAttrReservedMemHigh,
                                                     &out->reserved_bytes_peak));
}

int gmd_get_stats(int device, gmd_stats *out)
{
    adapter_begin();
    block_table_lock();
    bool is_read = read_figures(device, out);
    block_table_unlock();
    return is_read ? 0 : -1;
}

void gmd_reset_peak_stats(int device)
{
    uint64_t zero = 0;
    adapter_begin();
    block_table_lock();
    if (device >= 0 && device < device_count) {
        block_table_reset_peaks(device);
        adapter_succeeded(
            "cudaMemPoolSetAttribute",
            cudaMemPoolSetAttribute(pools[device], cudaMemPoolAttrReservedMemHigh, &zero));
    }
    block_table_unlock();
}

const char *gmd_last_error(void)
{
    return adapter_error();
}
