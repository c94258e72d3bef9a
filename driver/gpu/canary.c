#include "gmd_canary.h"

#include "canary_image.h"
#include "entry_point.h"

#include "gmd_min.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#define REPORT_CAPACITY  1024
#define REPORTED_TICKETS 1024
#define LARGE_BYTES      ((uint64_t)64 << 20) /* from here on only every LARGE_STEPth word */
#define LARGE_STEP       64
#define THREADS          256
#define BLOCKS_MAX       512
#define MARK_SHIFT       24

/* As in canary.cu. Written by the device while the host reads. */
typedef struct canary_entry {
    uint64_t ticket, word, found;
    _Atomic uint32_t is_complete;
} canary_entry;

typedef struct canary_report {
    _Atomic uint32_t count;
    uint32_t capacity;
    uint64_t reported[REPORTED_TICKETS]; /* used by the device only */
    canary_entry entries[REPORT_CAPACITY];
} canary_report;

/* Both in pinned memory: the same address on host and devices. */
typedef struct canary_reports {
    canary_report kept;
    struct {
        _Atomic uint32_t count;
        uint32_t capacity; /* 0 */
    } dropped;
} canary_reports;

_Static_assert(offsetof(canary_report, entries) == 8 + 8 * REPORTED_TICKETS &&
                   sizeof(canary_entry) == 32,
               "canary.cu has the same structure");

/* From the driver API; https://docs.nvidia.com/cuda/cuda-driver-api, "Library Management". */
typedef struct driver_functions {
    int (*load)(void **library, const void *image, void *jit_options, void **jit_values,
                unsigned int jit_count, void *options, void **values, unsigned int count);
    int (*unload)(void *library);
    int (*get_kernel)(void **kernel, void *library, const char *name);
    int (*launch)(void *kernel, unsigned int grid_x, unsigned int grid_y, unsigned int grid_z,
                  unsigned int block_x, unsigned int block_y, unsigned int block_z,
                  unsigned int shared_bytes, cudaStream_t stream, void **parameters, void **extra);
} driver_functions;

struct canary_kernels {
    const gmd_runtime *runtime;
    driver_functions driver;
    void *library, *fill, *verify;
    canary_reports *reports;
    uint32_t read;
};

/* --- loading ------------------------------------------------------------------------------ */

static gmd_status find_functions(canary_kernels *c, gmd_error *error)
{
    const struct {
        const char *name;
        void *to;
    } functions[] = {{"cuLibraryLoadData", &c->driver.load},
                     {"cuLibraryUnload", &c->driver.unload},
                     {"cuLibraryGetKernel", &c->driver.get_kernel},
                     {"cuLaunchKernel", &c->driver.launch}};
    gmd_status status = GMD_OK;
    for (size_t i = 0; i < sizeof functions / sizeof *functions && status == GMD_OK; i++) {
        status = find_entry_point(c->runtime, functions[i].name, functions[i].to, error);
    }
    return status;
}

static gmd_status load_kernels(canary_kernels *c, gmd_error *error)
{
    int result = c->driver.load(&c->library, canary_image, NULL, NULL, 0, NULL, NULL, 0);
    if (result == 0) {
        result = c->driver.get_kernel(&c->fill, c->library, "gmd_canary_fill");
    }
    if (result == 0) {
        result = c->driver.get_kernel(&c->verify, c->library, "gmd_canary_verify");
    }
    return result == 0 ? GMD_OK
                       : gmd_fail(error, GMD_BAD_INPUT,
                                  "the driver does not take gmd's kernels (CUresult %d)", result);
}

static gmd_status make_reports(canary_kernels *c, gmd_error *error)
{
    void *memory = NULL;
    cudaError_t result = c->runtime->cudaHostAlloc(&memory, sizeof(canary_reports),
                                                   cudaHostAllocPortable | cudaHostAllocMapped);
    if (result != cudaSuccess) {
        return gmd_fail(error, GMD_BAD_INPUT, "no pinned memory for what kernels find: %s",
                        gmd_runtime_error_text(c->runtime, result));
    }
    c->reports = memory;
    memset(memory, 0, sizeof(canary_reports));
    c->reports->kept.capacity = REPORT_CAPACITY;
    return GMD_OK;
}

/* --- kernels ------------------------------------------------------------------------------ */

static cudaError_t launch(canary_kernels *c, void *kernel, cudaStream_t stream, uint64_t words,
                          uint64_t step, void **parameters)
{
    uint64_t threads = (words + step - 1) / step;
    uint64_t blocks = (threads + THREADS - 1) / THREADS;
    blocks = blocks < 1 ? 1 : gmd_min(blocks, BLOCKS_MAX);
    int result = c->driver.launch(kernel, (unsigned int)blocks, 1, 1, THREADS, 1, 1, 0, stream,
                                  parameters, NULL);
    if (entry_point_may_retry(c->runtime, result)) {
        result = c->driver.launch(kernel, (unsigned int)blocks, 1, 1, THREADS, 1, 1, 0, stream,
                                  parameters, NULL);
    }
    return (cudaError_t)result;
}

static uint64_t step_of(uint64_t bytes)
{
    return bytes >= LARGE_BYTES ? LARGE_STEP : 1;
}

cudaError_t gmd_canary_fill(canary_kernels *c, cudaStream_t stream, uint64_t address,
                            uint64_t bytes, uint64_t mark)
{
    uint64_t words = bytes / 8, step = step_of(bytes);
    void *parameters[] = {&address, &words, &step, &mark};
    return words ? launch(c, c->fill, stream, words, step, parameters) : cudaSuccess;
}

static cudaError_t compare(canary_kernels *c, cudaStream_t stream, uint64_t address, uint64_t bytes,
                           uint64_t mark, uint64_t ticket, void *report)
{
    uint64_t words = bytes / 8, step = step_of(bytes);
    void *parameters[] = {&address, &words, &step, &mark, &ticket, &report};
    return words ? launch(c, c->verify, stream, words, step, parameters) : cudaSuccess;
}

cudaError_t gmd_canary_verify(canary_kernels *c, cudaStream_t stream, uint64_t address,
                              uint64_t bytes, uint64_t mark, uint64_t ticket)
{
    return compare(c, stream, address, bytes, mark, ticket, &c->reports->kept);
}

cudaError_t canary_read(canary_kernels *c, cudaStream_t stream, uint64_t address, uint64_t bytes)
{
    return compare(c, stream, address, bytes, 0, 0, &c->reports->dropped);
}

/* Code comes to a device with its first launch there: not while memory is counted. */
static gmd_status warm_up(canary_kernels *c, int device_count, gmd_error *error)
{
    uint64_t nothing = 0, step = 1;
    canary_report *report = &c->reports->kept;
    void *parameters[] = {&nothing, &nothing, &step, &nothing, &nothing, &report};
    cudaError_t result = cudaSuccess;
    int previous = 0;
    c->runtime->cudaGetDevice(&previous);
    for (int device = 0; device < device_count && result == cudaSuccess; device++) {
        c->runtime->cudaSetDevice(device);
        result = launch(c, c->fill, NULL, 0, 1, parameters);
        result = result == cudaSuccess ? launch(c, c->verify, NULL, 0, 1, parameters) : result;
        result = result == cudaSuccess ? c->runtime->cudaDeviceSynchronize() : result;
    }
    c->runtime->cudaSetDevice(previous);
    return result == cudaSuccess ? GMD_OK
                                 : gmd_fail(error, GMD_BAD_INPUT, "gmd's kernels do not run: %s",
                                            gmd_runtime_error_text(c->runtime, result));
}

gmd_status canaries_open(canary_kernels **canaries, const gmd_runtime *runtime, int device_count,
                         gmd_error *error)
{
    *canaries = NULL;
    if (!canary_image_size) {
        return gmd_fail(error, GMD_BAD_INPUT, "gmd was built without nvcc, so without kernels");
    }
    canary_kernels *c = calloc(1, sizeof *c);
    if (!c) {
        return gmd_fail(error, GMD_NO_MEMORY, "no host memory for kernels");
    }
    c->runtime = runtime;
    gmd_status status = find_functions(c, error);
    status = status == GMD_OK ? load_kernels(c, error) : status;
    status = status == GMD_OK ? make_reports(c, error) : status;
    status = status == GMD_OK ? warm_up(c, device_count, error) : status;
    if (status != GMD_OK) {
        canaries_close(c);
        return status;
    }
    *canaries = c;
    return GMD_OK;
}

void canaries_close(canary_kernels *c)
{
    if (!c) {
        return;
    }
    if (c->library) {
        c->driver.unload(c->library);
    }
    if (c->reports) {
        c->runtime->cudaFreeHost(c->reports);
    }
    free(c);
}

/* --- what they found ---------------------------------------------------------------------- */

bool canary_next(canary_kernels *c, canary_hit *finding)
{
    if (c->read == REPORT_CAPACITY) {
        return false;
    }
    canary_entry *e = &c->reports->kept.entries[c->read];
    if (!atomic_load_explicit(&e->is_complete, memory_order_acquire)) {
        return false;
    }
    c->read++;
    *finding = (canary_hit){.ticket = e->ticket, .offset = e->word * 8, .found = e->found};
    return true;
}

bool canaries_are_full(const canary_kernels *c)
{
    return atomic_load(&c->reports->kept.count) > REPORT_CAPACITY;
}

void canaries_forget(canary_kernels *c)
{
    canary_report *kept = &c->reports->kept;
    uint32_t count = atomic_load(&kept->count);
    for (uint32_t i = 0; i < count && i < REPORT_CAPACITY; i++) {
        atomic_store(&kept->entries[i].is_complete, 0);
    }
    atomic_store(&kept->count, 0);
    c->read = 0;
}

uint64_t canary_mark_of(uint64_t word)
{
    return word >> MARK_SHIFT;
}

bool canary_is_written_at(uint64_t word, uint64_t address, uint64_t block, uint64_t bytes)
{
    uint64_t offset = address - block;
    return address >= block && offset < bytes &&
           ((word ^ offset / 8) & (((uint64_t)1 << MARK_SHIFT) - 1)) == 0;
}
