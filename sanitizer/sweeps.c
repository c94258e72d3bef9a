#include "sweeps.h"

#include "gmd_min.h"
#include "kernels_image.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

enum { THREADS = SWEEP_STRIPE / 16, BLOCKS_MAX = 512, VERSION = 12000 };

#define BLOCK_BYTES ((uint64_t)THREADS * 64) /* of a thread block, where there are few */

/* From the driver API; https://docs.nvidia.com/cuda/cuda-driver-api, "Library Management". */
typedef struct driver_functions {
    CUresult (*load)(void **library, const void *image, void *jit_options, void **jit_values,
                     unsigned int jit_count, void *options, void **values, unsigned int count);
    CUresult (*unload)(void *library);
    CUresult (*get_kernel)(void **kernel, void *library, const char *name);
    CUresult (*launch)(void *kernel, unsigned int grid_x, unsigned int grid_y, unsigned int grid_z,
                       unsigned int block_x, unsigned int block_y, unsigned int block_z,
                       unsigned int shared_bytes, cudaStream_t stream, void **parameters,
                       void **extra);
} driver_functions;

struct sweeps {
    driver_functions driver;
    void *library, *few, *many;
    sweep_fn *run; /* in place of the kernels */
    void *context;
    int device_count;
    sweep_finds **finds; /* of each device */
    uint32_t *seen;      /* of finds[device]->count */
};

/* --- loading ------------------------------------------------------------------------------ */

static gmd_status find_function(const char *name, void *to, gmd_error *error)
{
    void *function = NULL;
    enum cudaDriverEntryPointQueryResult found = cudaDriverEntryPointSymbolNotFound;
    cudaError_t result = cudaGetDriverEntryPointByVersion(name, &function, VERSION, 0, &found);
    if (result != cudaSuccess || found != cudaDriverEntryPointSuccess || !function) {
        (void)cudaGetLastError();
        return gmd_fail(error, GMD_BAD_INPUT, "sanitizer: the driver has no %s", name);
    }
    memcpy(to, &function, sizeof function);
    return GMD_OK;
}

static gmd_status load_kernels(sweeps *s, gmd_error *error)
{
    driver_functions *d = &s->driver;
    const struct {
        const char *name;
        void *to;
    } functions[] = {{"cuLibraryLoadData", &d->load},
                     {"cuLibraryUnload", &d->unload},
                     {"cuLibraryGetKernel", &d->get_kernel},
                     {"cuLaunchKernel", &d->launch}};
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++) {
        gmd_status status = find_function(functions[i].name, functions[i].to, error);
        if (status != GMD_OK) {
            return status;
        }
    }
    CUresult result = d->load(&s->library, kernels_image, NULL, NULL, 0, NULL, NULL, 0);
    if (result == CUDA_SUCCESS) {
        result = d->get_kernel(&s->few, s->library, "gmd_sweep_few");
    }
    if (result == CUDA_SUCCESS) {
        result = d->get_kernel(&s->many, s->library, "gmd_sweep_many");
    }
    return result == CUDA_SUCCESS
               ? GMD_OK
               : gmd_fail(error, GMD_BAD_INPUT,
                          "sanitizer: the driver does not take its kernels (CUresult %d)", result);
}

static gmd_status make_finds(sweeps *s, int device, gmd_error *error)
{
    void *memory = NULL;
    cudaError_t result =
        cudaHostAlloc(&memory, sizeof(sweep_finds), cudaHostAllocPortable | cudaHostAllocMapped);
    if (result != cudaSuccess) {
        (void)cudaGetLastError();
        return gmd_fail(error, GMD_FAILED, "sanitizer: no pinned memory for what kernels find: %s",
                        cudaGetErrorString(result));
    }
    memset(memory, 0, sizeof(sweep_finds));
    s->finds[device] = memory;
    return GMD_OK;
}

/* --- running ------------------------------------------------------------------------------ */

static uint64_t swept_bytes(const sweep_range *r)
{
    return r->flags & SWEEP_STRIPED ? r->bytes / SWEEP_STRIPE_STEP * SWEEP_STRIPE : r->bytes;
}

static uint64_t largest_of(const sweep_range *ranges, uint32_t count)
{
    uint64_t largest = 0;
    for (uint32_t i = 0; i < count; i++) {
        uint64_t bytes = swept_bytes(&ranges[i]);
        largest = bytes > largest ? bytes : largest;
    }
    return largest;
}

static cudaError_t launch(sweeps *s, int device, cudaStream_t stream, const sweep_range *ranges,
                          uint32_t count)
{
    uint64_t blocks = largest_of(ranges, count) / BLOCK_BYTES + 1;
    unsigned int width = (unsigned int)gmd_min(blocks, BLOCKS_MAX);
    sweep_few few;
    sweep_many many;
    void *task = count <= SWEEP_FEW ? (void *)&few : (void *)&many;
    if (count <= SWEEP_FEW) {
        few.finds = s->finds[device];
        memcpy(few.ranges, ranges, count * sizeof *ranges);
    } else {
        many.finds = s->finds[device];
        memcpy(many.ranges, ranges, count * sizeof *ranges);
    }
    CUresult result = s->driver.launch(count <= SWEEP_FEW ? s->few : s->many, width, count, 1,
                                       THREADS, 1, 1, 0, stream, &task, NULL);
    return (cudaError_t)result;
}

cudaError_t sweeps_run(sweeps *s, int device, cudaStream_t stream, const sweep_range *ranges,
                       uint32_t count)
{
    if (count == 0) {
        return cudaSuccess;
    }
    return s->run ? s->run(s->context, stream, ranges, count, s->finds[device])
                  : launch(s, device, stream, ranges, count);
}

gmd_status sweeps_prepare(sweeps *s, int device, gmd_error *error)
{
    const sweep_range nothing[SWEEP_FEW + 1] = {{0}};
    gmd_status status = make_finds(s, device, error);
    if (status != GMD_OK) {
        return status;
    }
    cudaError_t result = sweeps_run(s, device, NULL, nothing, 1);
    result = result == cudaSuccess ? sweeps_run(s, device, NULL, nothing, SWEEP_FEW + 1) : result;
    result = result == cudaSuccess ? cudaStreamSynchronize(NULL) : result;
    return result == cudaSuccess
               ? GMD_OK
               : gmd_fail(error, GMD_FAILED, "sanitizer: its kernels do not run: %s",
                          cudaGetErrorString(result));
}

gmd_status sweeps_make(sweeps **made, int device_count, sweep_fn *run, void *context,
                       gmd_error *error)
{
    *made = NULL;
    sweeps *s = calloc(1, sizeof *s);
    if (!s) {
        return gmd_fail(error, GMD_NO_MEMORY, "sanitizer: no host memory");
    }
    s->run = run;
    s->context = context;
    s->device_count = device_count;
    s->finds = calloc((size_t)device_count, sizeof(sweep_finds *));
    s->seen = calloc((size_t)device_count, sizeof *s->seen);
    gmd_status status =
        s->finds && s->seen ? GMD_OK : gmd_fail(error, GMD_NO_MEMORY, "sanitizer: no host memory");
    status = status == GMD_OK && !run ? load_kernels(s, error) : status;
    if (status != GMD_OK) {
        sweeps_close(s);
        return status;
    }
    *made = s;
    return GMD_OK;
}

gmd_status sweeps_open(sweeps **made, int device_count, gmd_error *error)
{
    return sweeps_make(made, device_count, NULL, NULL, error);
}

void sweeps_close(sweeps *s)
{
    if (!s) {
        return;
    }
    if (s->library) {
        (void)s->driver.unload(s->library);
    }
    for (int device = 0; s->finds && device < s->device_count; device++) {
        if (s->finds[device]) {
            (void)cudaFreeHost(s->finds[device]);
        }
    }
    free(s->finds);
    free(s->seen);
    free(s);
}

/* --- what they found ---------------------------------------------------------------------- */

/* The structure is shared with the device, which knows no _Atomic. */
static uint32_t load(const uint32_t *number)
{
    return __atomic_load_n(number, __ATOMIC_ACQUIRE);
}

bool sweeps_have_news(sweeps *s, int device)
{
    uint32_t count = load(&s->finds[device]->count);
    return __atomic_load_n(&s->seen[device], __ATOMIC_RELAXED) != count &&
           __atomic_exchange_n(&s->seen[device], count, __ATOMIC_RELAXED) != count;
}

bool sweeps_next(sweeps *s, int device, sweep_find *find)
{
    for (size_t i = 0; i < SWEEP_FINDS; i++) {
        sweep_find *entry = &s->finds[device]->entries[i];
        if (load(&entry->state) == SWEEP_COMPLETE) {
            *find = *entry;
            __atomic_store_n(&entry->state, SWEEP_FREE, __ATOMIC_RELEASE);
            return true;
        }
    }
    return false;
}

uint32_t sweeps_lost(const sweeps *s, int device)
{
    return load(&s->finds[device]->lost);
}
