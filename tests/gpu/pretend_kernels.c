/* pretend_kernels.so - preloaded, it makes of gmd's simulated libcudart ($GMD_CUDART) a device that
 * is taken for a real one, as hide_control.so does, and that runs the kernels of
 * driver/gpu/canary.cu: what gmd learns from what blocks hold is tested where there is no GPU.
 *
 * A kernel is a host function of its stream. What memory holds is a set of ranges, each of one
 * fill: the words that it wrote, apart from their places, which is what real memory would tell.
 * Fills and verifications go through every word, also those of large blocks; since blocks begin at
 * multiples of 512 B, every 64th word shows the same. A verification reports its first wrong word.
 *
 * The simulated device runs a graph's nodes in the order of capture. Here the first one runs all
 * the kernels of the graph, in some order that their dependencies allow, another one at each
 * launch; the number in $GMD_TEST_ORDER chooses. Other streams' kernels do not run in between. Work
 * that is no kernel leaves no contents behind.
 *
 * Thread safety: host functions may run on any thread; `lock` guards all that changes. */
#define _GNU_SOURCE
#include "gmd_cuda.h"
#include "gmd_grow.h"
#include "gmd_hold.h"
#include "gmd_intervals.h"
#include "gmd_random.h"
#include "preloaded.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#define MARK_SHIFT 24
#define PLACES     (((uint64_t)1 << MARK_SHIFT) - 1)

/* As in canary.c and canary.cu. */
typedef struct canary_report {
    _Atomic uint32_t count;
    uint32_t capacity;
    uint64_t reported[1024];
    struct {
        uint64_t ticket, word, found;
        _Atomic uint32_t is_complete;
    } entries[];
} canary_report;

typedef struct graph graph;

typedef struct kernel {
    bool verifies; /* else it fills */
    uint64_t address, end, words_of, ticket;
    canary_report *report;

    /* Where it is captured. Nothing tells when the last graph with it is gone: it stays. */
    graph *graph;
    cudaGraphNode_t node;
    uint64_t runs;
    size_t dependency_count;
    const struct kernel *dependencies[];
} kernel;

struct graph {
    unsigned long long capture;
    kernel **kernels;
    size_t count, capacity;
    uint64_t launches;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static gmd_intervals memory;
static graph *latest; /* whose capture began last */
static gmd_random order;

static struct {
    __typeof__(cudaLaunchHostFunc) *cudaLaunchHostFunc;
    hold_wait_fn *gmd_sim_cuStreamWaitValue32_v2;
    __typeof__(cudaStreamGetCaptureInfo) *cudaStreamGetCaptureInfo;
    __typeof__(cudaGetDriverEntryPointByVersion) *cudaGetDriverEntryPointByVersion;
} runtime;

_Noreturn static void give_up(const char *reason)
{
    fprintf(stderr, "pretend_kernels: %s\n", reason);
    abort();
}

static void *must(void *pointer)
{
    return pointer ? pointer : (give_up("no host memory"), NULL);
}

/* --- what memory holds -------------------------------------------------------------------- */

/* The same for all words of a fill of the block at `address`; word_at is a word of it. */
static uint64_t words_of(uint64_t address, uint64_t mark)
{
    return mark << MARK_SHIFT | (address / 8 & PLACES);
}

static uint64_t word_at(uint64_t words, uint64_t address)
{
    return (words & ~PLACES) | ((address / 8 - words) & PLACES);
}

static void put(uint64_t address, uint64_t end, uint64_t words)
{
    if (address < end && !gmd_intervals_insert(&memory, address, end, words)) {
        give_up("no host memory");
    }
}

static void fill(const kernel *k)
{
    const gmd_interval *next;
    while ((next = gmd_intervals_after(&memory, k->address)) && next->address < k->end) {
        gmd_interval old = *next;
        gmd_intervals_remove(&memory, old.address);
        put(old.address, k->address, old.value);
        put(k->end, old.end, old.value);
        if (old.end > k->end) {
            break;
        }
    }
    put(k->address, k->end, k->words_of);
}

/* The only place that knows how findings reach the host: as canary.cu's. */
static void report(const kernel *k, uint64_t address, uint64_t found)
{
    if (!k->report->capacity || k->report->reported[k->ticket % 1024] == k->ticket) {
        return;
    }
    k->report->reported[k->ticket % 1024] = k->ticket;
    uint32_t at = atomic_fetch_add(&k->report->count, 1);
    if (at < k->report->capacity) {
        k->report->entries[at].ticket = k->ticket;
        k->report->entries[at].word = (address - k->address) / 8;
        k->report->entries[at].found = found;
        atomic_store_explicit(&k->report->entries[at].is_complete, 1, memory_order_release);
    }
}

static void verify(const kernel *k)
{
    for (uint64_t at = k->address; at < k->end;) {
        const gmd_interval *here = gmd_intervals_after(&memory, at);
        bool is_written = here && here->address <= at;
        if (!is_written || here->value != k->words_of) {
            report(k, at, is_written ? word_at(here->value, at) : 0);
            return;
        }
        at = here->end;
    }
}

/* --- kernels that run --------------------------------------------------------------------- */

static void run(kernel *k)
{
    (k->verifies ? verify : fill)(k);
    k->runs++;
}

static bool is_ready(const kernel *k, uint64_t launches)
{
    bool is_ready = k->runs < launches;
    for (size_t i = 0; i < k->dependency_count && is_ready; i++) {
        is_ready = k->dependencies[i]->runs == launches;
    }
    return is_ready;
}

static void run_graph(graph *g)
{
    g->launches++;
    for (size_t done = 0; done < g->count; done++) {
        kernel *chosen = NULL;
        uint64_t ready = 0;
        for (size_t i = 0; i < g->count; i++) {
            if (is_ready(g->kernels[i], g->launches) && gmd_random_below(&order, ++ready) == 0) {
                chosen = g->kernels[i];
            }
        }
        if (!chosen) {
            give_up("kernels of a graph wait for one another");
        }
        run(chosen);
    }
}

static void run_on_host(void *data)
{
    kernel *k = data;
    pthread_mutex_lock(&lock);
    if (!k->graph) {
        run(k);
        free(k);
    } else if (k == k->graph->kernels[0]) {
        run_graph(k->graph);
    }
    pthread_mutex_unlock(&lock);
}

/* --- kernels that are launched ------------------------------------------------------------ */

typedef struct capture {
    enum cudaStreamCaptureStatus status;
    unsigned long long id;
    const cudaGraphNode_t *nodes; /* that the stream's next one depends on */
    size_t count;
} capture;

static cudaError_t look_at_capture(cudaStream_t stream, capture *c)
{
    *c = (capture){.status = cudaStreamCaptureStatusNone};
    return runtime.cudaStreamGetCaptureInfo(stream, &c->status, &c->id, NULL, &c->nodes, NULL,
                                            &c->count);
}

/* Captures come one after another. */
static graph *graph_of(const capture *c)
{
    if (!latest || latest->capture != c->id) {
        latest = must(calloc(1, sizeof *latest));
        latest->capture = c->id;
    }
    return latest;
}

static const kernel *kernel_at(const graph *g, cudaGraphNode_t node)
{
    size_t i = 0;
    while (i < g->count && g->kernels[i]->node != node) {
        i++;
    }
    return i < g->count ? g->kernels[i]
                        : (give_up("a captured kernel depends on what is no kernel"), NULL);
}

static kernel *new_kernel(const kernel *like, const capture *c)
{
    bool is_captured = c->status == cudaStreamCaptureStatusActive;
    size_t count = is_captured ? c->count : 0;
    kernel *k = must(malloc(sizeof *k + count * sizeof *k->dependencies));
    *k = *like;
    if (is_captured) {
        pthread_mutex_lock(&lock);
        k->graph = graph_of(c);
        for (; k->dependency_count < count; k->dependency_count++) {
            k->dependencies[k->dependency_count] =
                kernel_at(k->graph, c->nodes[k->dependency_count]);
        }
        pthread_mutex_unlock(&lock);
    }
    return k;
}

/* After its launch it is what the stream's next node depends on. */
static void join_graph(kernel *k, cudaStream_t stream)
{
    capture now;
    if (look_at_capture(stream, &now) != cudaSuccess || now.count != 1) {
        give_up("no node for a captured kernel");
    }
    pthread_mutex_lock(&lock);
    graph *g = k->graph;
    if (!GMD_GROW(&g->kernels, &g->capacity, g->count + 1)) {
        give_up("no host memory");
    }
    k->node = now.nodes[0];
    g->kernels[g->count++] = k;
    pthread_mutex_unlock(&lock);
}

static cudaError_t queue(const kernel *like, cudaStream_t stream)
{
    capture c;
    cudaError_t result = look_at_capture(stream, &c);
    if (result != cudaSuccess) {
        return result;
    }
    kernel *k = new_kernel(like, &c);
    bool is_captured = k->graph; /* else it may have run, and be gone */
    result = runtime.cudaLaunchHostFunc(stream, run_on_host, k);
    if (result != cudaSuccess) {
        free(k);
        return result;
    }
    if (is_captured) {
        join_graph(k, stream);
    }
    return result;
}

/* --- the driver's functions that canary.c and hold.c ask for ------------------------------ */

static char fill_kernel, verify_kernel; /* handles */

static int load(void **library, const void *image, void *jit_options, void **jit_values,
                unsigned int jit_count, void *options, void **values, unsigned int count)
{
    (void)image, (void)jit_options, (void)jit_values, (void)jit_count;
    (void)options, (void)values, (void)count;
    *library = &memory;
    return CUDA_SUCCESS;
}

static int unload(void *library)
{
    (void)library;
    return CUDA_SUCCESS;
}

static int get_kernel(void **out, void *library, const char *name)
{
    (void)library;
    *out = strcmp(name, "gmd_canary_fill") == 0     ? &fill_kernel
           : strcmp(name, "gmd_canary_verify") == 0 ? &verify_kernel
                                                    : NULL;
    return *out ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
}

/* Parameters as in canary.cu: block, words, step, mark, and to verify ticket, report. */
static int launch(void *which, unsigned int grid_x, unsigned int grid_y, unsigned int grid_z,
                  unsigned int block_x, unsigned int block_y, unsigned int block_z,
                  unsigned int shared_bytes, cudaStream_t stream, void **parameters, void **extra)
{
    (void)grid_x, (void)grid_y, (void)grid_z, (void)block_x, (void)block_y, (void)block_z;
    (void)shared_bytes, (void)extra;
    uint64_t address = *(uint64_t *)parameters[0], words = *(uint64_t *)parameters[1];
    uint64_t mark = *(uint64_t *)parameters[3];
    kernel k = {
        .address = address, .end = address + 8 * words, .words_of = words_of(address, mark)};
    if (which == &verify_kernel) {
        k.verifies = true;
        k.ticket = *(uint64_t *)parameters[4];
        k.report = *(canary_report **)parameters[5];
    }
    return words ? (int)queue(&k, stream) : CUDA_SUCCESS;
}

static cudaError_t entry_point(const char *symbol, void **function, unsigned int version,
                               unsigned long long flags,
                               enum cudaDriverEntryPointQueryResult *result)
{
    int (*const launches)(void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                          unsigned, cudaStream_t, void **, void **) = launch;
    int (*const loads)(void **, const void *, void *, void **, unsigned, void *, void **,
                       unsigned) = load;
    int (*const unloads)(void *) = unload;
    int (*const gets)(void **, void *, const char *) = get_kernel;
    const struct {
        const char *name;
        const void *address_of_pointer; /* ISO C has no cast from function to object */
    } ours[] = {{"cuLaunchKernel", &launches},
                {"cuLibraryLoadData", &loads},
                {"cuLibraryUnload", &unloads},
                {"cuLibraryGetKernel", &gets},
                {"cuStreamWaitValue32", &runtime.gmd_sim_cuStreamWaitValue32_v2}};
    for (size_t i = 0; i < sizeof ours / sizeof *ours; i++) {
        if (strcmp(symbol, ours[i].name) == 0) {
            memcpy(function, ours[i].address_of_pointer, sizeof *function);
            *result = cudaDriverEntryPointSuccess;
            return cudaSuccess;
        }
    }
    return runtime.cudaGetDriverEntryPointByVersion(symbol, function, version, flags, result);
}

/* --- what the program finds --------------------------------------------------------------- */

static void find(void *library, const char *name, void *to)
{
    void *found = real_dlsym(library, name);
    if (!found) {
        give_up(name);
    }
    memcpy(to, &found, sizeof found);
}

static void begin(void)
{
    const char *path = getenv("GMD_CUDART"), *seed = getenv("GMD_TEST_ORDER");
    void *library = path ? dlopen(path, RTLD_NOW | RTLD_NOLOAD) : NULL;
    if (!library) {
        give_up("GMD_CUDART names no libcudart that is loaded");
    }
    order.state = seed ? strtoull(seed, NULL, 10) : 0;
    find(library, "cudaLaunchHostFunc", &runtime.cudaLaunchHostFunc);
    find(library, "gmd_sim_cuStreamWaitValue32_v2", &runtime.gmd_sim_cuStreamWaitValue32_v2);
    find(library, "cudaStreamGetCaptureInfo", &runtime.cudaStreamGetCaptureInfo);
    find(library, "cudaGetDriverEntryPointByVersion", &runtime.cudaGetDriverEntryPointByVersion);
}

__attribute__((visibility("default"))) void *dlsym(void *restrict handle, const char *restrict name)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    if (is_control(name)) {
        return NULL;
    }
    if (strcmp(name, "cudaGetDriverEntryPointByVersion") != 0) {
        return real_dlsym(handle, name);
    }
    pthread_once(&once, begin);
    __typeof__(entry_point) *ours = entry_point;
    void *found;
    memcpy(&found, &ours, sizeof found);
    return found;
}
