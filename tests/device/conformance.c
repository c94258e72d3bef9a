/* conformance - makes every call of gmd_cuda.h, right and wrong, on the simulated or a real device
 * and prints what each answers. The two transcripts must be equal: conformance.expected.
 *
 * Nothing is printed that a device may choose (addresses, sizes of memory, times), and a query is
 * only asked where its answer is forced: after a synchronisation, or behind so much work that it
 * cannot be done. Exit status: 0 done, 3 the device could not be opened, 77 no GPU (CTest:
 * skipped). */
#include "gmd_runtime.h"

#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MIB ((size_t)1 << 20)

static gmd_runtime rt;

/* A line for one call: its result, and the last error that it left. */
static cudaError_t show(const char *what, cudaError_t result)
{
    printf("%-58s %s", what, rt.cudaGetErrorName(result));
    cudaError_t last = rt.cudaGetLastError();
    if (last != result) {
        printf("  last error %s", rt.cudaGetErrorName(last));
    }
    printf("\n");
    return result;
}

static void tell(const char *what, int is_so)
{
    printf("%-58s %s\n", what, is_so ? "yes" : "no");
}

#define SHOW(call) show(#call, rt.call)

/* --- devices and errors ------------------------------------------------------------------ */

static void devices(void)
{
    int value = -1, count = 0;
    printf("# devices\n");
    SHOW(cudaGetDeviceCount(&count));
    SHOW(cudaGetDeviceCount(NULL));
    SHOW(cudaGetDevice(&value));
    tell("the current device is the first", value == 0);
    SHOW(cudaGetDevice(NULL));
    SHOW(cudaSetDevice(-1));
    SHOW(cudaSetDevice(100000));
    SHOW(cudaSetDevice(0));
    SHOW(cudaDeviceGetAttribute(&value, cudaDevAttrWarpSize, 0));
    tell("a warp has 32 threads", value == 32);
    SHOW(cudaDeviceGetAttribute(&value, cudaDevAttrUnifiedAddressing, 0));
    tell("addresses are unified", value == 1);
    SHOW(cudaDeviceGetAttribute(&value, cudaDevAttrWarpSize, 100000));
    SHOW(cudaDeviceGetAttribute(&value, cudaDevAttrWarpSize, -1));
    SHOW(cudaDeviceGetAttribute(&value, (enum cudaDeviceAttr)99999, 0));
    SHOW(cudaDeviceGetAttribute(NULL, cudaDevAttrWarpSize, 0));
    SHOW(cudaRuntimeGetVersion(&value));
    tell("the runtime is CUDA 12 or later", value >= 12000);
    SHOW(cudaRuntimeGetVersion(NULL));
    SHOW(cudaDriverGetVersion(&value));
    tell("the driver is CUDA 12 or later", value >= 12000);
    SHOW(cudaDriverGetVersion(NULL));
    int least = 1, greatest = 1;
    SHOW(cudaDeviceGetStreamPriorityRange(&least, &greatest));
    tell("priorities go from 0 down", least == 0 && greatest < 0);
    SHOW(cudaDeviceGetStreamPriorityRange(NULL, NULL));
}

static void errors(void)
{
    static const int known[] = {0, 1, 2, 3, 100, 101, 400, 600, 700, 719, 801, 900, 999};
    printf("# errors\n");
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        cudaError_t error = (cudaError_t)known[i];
        printf("%d %s: %s\n", known[i], rt.cudaGetErrorName(error), rt.cudaGetErrorString(error));
    }
    printf("123456 %s: %s\n", rt.cudaGetErrorName((cudaError_t)123456),
           rt.cudaGetErrorString((cudaError_t)123456));
    void *pointer = NULL;
    rt.cudaSetDevice(-1);
    tell("a success leaves the last error", rt.cudaMalloc(&pointer, 512) == cudaSuccess &&
                                                rt.cudaPeekAtLastError() == cudaErrorInvalidDevice);
    rt.cudaFree((void *)(uintptr_t)1);
    tell("a later failure replaces it", rt.cudaPeekAtLastError() == cudaErrorInvalidValue);
    tell("peeking leaves it", rt.cudaPeekAtLastError() == cudaErrorInvalidValue);
    tell("getting returns it", rt.cudaGetLastError() == cudaErrorInvalidValue);
    tell("getting clears it", rt.cudaGetLastError() == cudaSuccess);
    rt.cudaFree(pointer);
}

/* --- memory ------------------------------------------------------------------------------ */

static size_t free_bytes(void)
{
    size_t bytes = 0, total = 0;
    rt.cudaMemGetInfo(&bytes, &total);
    return bytes;
}

static void allocation(void)
{
    void *pointer = &pointer, *second = NULL;
    int on_host = 0;
    size_t bytes;
    printf("# memory\n");
    SHOW(cudaMalloc(&pointer, 0));
    tell("an allocation of nothing is NULL", pointer == NULL);
    SHOW(cudaMalloc(NULL, 512));
    SHOW(cudaMalloc(&pointer, 1));
    SHOW(cudaMalloc(&second, 1));
    tell("addresses are 512-byte aligned", ((uintptr_t)pointer | (uintptr_t)second) % 512 == 0);
    SHOW(cudaFree(NULL));
    SHOW(cudaFree((char *)pointer + 256));
    SHOW(cudaFree(&on_host));
    SHOW(cudaFree(second));
    SHOW(cudaFree(second));
    SHOW(cudaFree(pointer));
    pointer = &on_host;
    SHOW(cudaMalloc(&pointer, (size_t)1 << 46));
    SHOW(cudaMalloc(&pointer, SIZE_MAX));
    SHOW(cudaMemGetInfo(&bytes, NULL));
    SHOW(cudaMemGetInfo(NULL, NULL));
}

static void accounting(void)
{
    void *large = NULL, *odd = NULL;
    size_t before = free_bytes();
    SHOW(cudaMalloc(&large, 64 * MIB));
    tell("64 MiB take 64 MiB", before - free_bytes() == 64 * MIB);
    SHOW(cudaMalloc(&odd, 65 * MIB));
    tell("65 MiB take 66 MiB", before - free_bytes() == 130 * MIB);
    tell("large addresses are 2 MiB aligned", ((uintptr_t)large | (uintptr_t)odd) % (2 * MIB) == 0);
    SHOW(cudaFree(large));
    SHOW(cudaFree(odd));
    tell("all of it comes back", free_bytes() == before);
}

static void pinned(void)
{
    void *host = NULL;
    int on_stack = 0;
    SHOW(cudaMallocHost(&host, 4096));
    SHOW(cudaFreeHost(host));
    SHOW(cudaHostAlloc(&host, 4096, cudaHostAllocPortable | cudaHostAllocMapped));
    SHOW(cudaFreeHost(host));
    SHOW(cudaFreeHost(host));
    SHOW(cudaFreeHost(NULL));
    SHOW(cudaFreeHost(&on_stack));
    SHOW(cudaHostAlloc(&host, 4096, 0x1000));
    SHOW(cudaMallocHost(NULL, 4096));
    host = &on_stack;
    SHOW(cudaMallocHost(&host, 0));
    tell("page-locked memory of nothing is NULL", host == NULL);
}

static void describe(const char *what, const void *pointer)
{
    struct cudaPointerAttributes a;
    memset(&a, 0x55, sizeof a);
    cudaError_t result = rt.cudaPointerGetAttributes(&a, pointer);
    show(what, result);
    if (result == cudaSuccess) {
        printf("    type %d, device %d, on the device %s, on the host %s\n", (int)a.type, a.device,
               !a.devicePointer             ? "NULL"
               : a.devicePointer == pointer ? "the same"
                                            : "another",
               !a.hostPointer             ? "NULL"
               : a.hostPointer == pointer ? "the same"
                                          : "another");
    }
}

static void attributes(void)
{
    char *pointer = NULL;
    void *host = NULL;
    int on_stack = 0;
    printf("# pointers\n");
    rt.cudaMalloc((void **)&pointer, 4096);
    rt.cudaMallocHost(&host, 4096);
    describe("attributes of device memory", pointer);
    describe("attributes of the middle of device memory", pointer + 100);
    describe("attributes of page-locked memory", host);
    describe("attributes of ordinary memory", &on_stack);
    describe("attributes of NULL", NULL);
    SHOW(cudaPointerGetAttributes(NULL, pointer));
    rt.cudaFreeHost(host);
    rt.cudaFree(pointer);
}

/* --- streams and events ------------------------------------------------------------------ */

static void streams(void)
{
    cudaStream_t stream = NULL, other = NULL;
    unsigned flags = 99;
    int priority = 99;
    printf("# streams\n");
    SHOW(cudaStreamCreate(&stream));
    SHOW(cudaStreamCreate(NULL));
    SHOW(cudaStreamGetFlags(stream, &flags));
    tell("its flags are 0", flags == 0);
    SHOW(cudaStreamQuery(stream));
    SHOW(cudaStreamSynchronize(stream));
    SHOW(cudaStreamDestroy(stream));
    SHOW(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    SHOW(cudaStreamGetFlags(stream, &flags));
    tell("its flags are 1", flags == 1);
    SHOW(cudaStreamGetFlags(stream, NULL));
    SHOW(cudaStreamGetPriority(stream, NULL));
    SHOW(cudaStreamCreateWithFlags(&other, 0x100));
    SHOW(cudaStreamCreateWithFlags(NULL, 0));
    SHOW(cudaStreamCreateWithPriority(&other, cudaStreamNonBlocking, -1000));
    SHOW(cudaStreamGetPriority(other, &priority));
    tell("a priority beyond the range is clamped", priority == -5);
    SHOW(cudaStreamDestroy(other));
    SHOW(cudaStreamCreateWithPriority(&other, 0, 1000));
    SHOW(cudaStreamGetPriority(other, &priority));
    tell("at the other end too", priority == 0);
    SHOW(cudaStreamDestroy(other));
    SHOW(cudaStreamDestroy(stream));
    SHOW(cudaStreamQuery(NULL));
    SHOW(cudaStreamQuery(cudaStreamLegacy));
    SHOW(cudaStreamQuery(cudaStreamPerThread));
    SHOW(cudaStreamSynchronize(NULL));
    SHOW(cudaStreamGetFlags(NULL, &flags));
    SHOW(cudaStreamGetPriority(NULL, &priority));
    SHOW(cudaStreamDestroy(NULL));
    SHOW(cudaStreamDestroy(cudaStreamLegacy));
    SHOW(cudaStreamDestroy(cudaStreamPerThread));
    SHOW(cudaDeviceSynchronize());
}

static void events(void)
{
    cudaEvent_t timed = NULL, untimed = NULL, event = NULL;
    cudaStream_t stream = NULL;
    float ms = -1;
    printf("# events\n");
    rt.cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
    SHOW(cudaEventCreate(&timed));
    SHOW(cudaEventCreate(NULL));
    SHOW(cudaEventCreateWithFlags(&untimed, cudaEventDisableTiming));
    SHOW(cudaEventCreateWithFlags(NULL, 0));
    SHOW(cudaEventCreateWithFlags(&event, 0x100));
    SHOW(cudaEventCreateWithFlags(&event, cudaEventInterprocess));
    SHOW(cudaEventCreateWithFlags(&event, cudaEventBlockingSync));
    SHOW(cudaEventQuery(timed));
    SHOW(cudaEventSynchronize(timed));
    SHOW(cudaStreamWaitEvent(stream, timed, 0));
    SHOW(cudaEventElapsedTime(&ms, timed, event));
    SHOW(cudaEventRecord(timed, stream));
    SHOW(cudaEventRecordWithFlags(event, stream, cudaEventRecordDefault));
    SHOW(cudaEventRecordWithFlags(event, stream, 0x100));
    SHOW(cudaEventRecord(untimed, NULL));
    SHOW(cudaStreamWaitEvent(stream, untimed, 0));
    SHOW(cudaStreamWaitEvent(stream, untimed, 0x100));
    SHOW(cudaStreamWaitEvent(NULL, timed, 0));
    SHOW(cudaEventSynchronize(event));
    SHOW(cudaDeviceSynchronize());
    SHOW(cudaEventQuery(event));
    SHOW(cudaEventQuery(untimed));
    SHOW(cudaEventElapsedTime(&ms, timed, event));
    tell("time does not go backwards", ms >= 0);
    SHOW(cudaEventElapsedTime(&ms, timed, untimed));
    SHOW(cudaEventElapsedTime(NULL, timed, event));
    SHOW(cudaEventRecord(NULL, stream));
    SHOW(cudaEventQuery(NULL));
    SHOW(cudaEventSynchronize(NULL));
    SHOW(cudaStreamWaitEvent(stream, NULL, 0));
    SHOW(cudaEventElapsedTime(&ms, NULL, event));
    SHOW(cudaEventDestroy(NULL));
    SHOW(cudaEventDestroy(event));
    SHOW(cudaEventDestroy(untimed));
    SHOW(cudaEventDestroy(timed));
    SHOW(cudaStreamDestroy(stream));
}

/* --- data -------------------------------------------------------------------------------- */

static int all_are(const unsigned char *bytes, size_t size, unsigned char value)
{
    for (size_t i = 0; i < size; i++) {
        if (bytes[i] != value) {
            return 0;
        }
    }
    return 1;
}

static void copies(void)
{
    static unsigned char from[4096], to[4096];
    unsigned char *device = NULL, *second = NULL;
    const enum cudaMemcpyKind unknown = (enum cudaMemcpyKind)77;
    printf("# copies\n");
    memset(from, 3, sizeof from);
    rt.cudaMalloc((void **)&device, 4096);
    rt.cudaMalloc((void **)&second, 4096);
    SHOW(cudaMemset(device, 5, 4096));
    SHOW(cudaMemcpy(to, device, 4096, cudaMemcpyDeviceToHost));
    tell("a memset is seen by a later copy", all_are(to, sizeof to, 5));
    SHOW(cudaMemcpy(device, from, 4096, cudaMemcpyHostToDevice));
    SHOW(cudaMemcpy(second, device, 4096, cudaMemcpyDeviceToDevice));
    SHOW(cudaMemcpy(to, second, 4096, cudaMemcpyDefault));
    tell("data makes the round trip", all_are(to, sizeof to, 3));
    memset(to, 0, sizeof to);
    SHOW(cudaMemcpy(to, from, 4096, cudaMemcpyHostToHost));
    tell("host to host copies too", all_are(to, sizeof to, 3));
    SHOW(cudaMemset(device, 0, 0));
    SHOW(cudaMemset(NULL, 0, 0));
    SHOW(cudaMemset(NULL, 0, 1));
    SHOW(cudaMemset(from, 0, 1));
    SHOW(cudaMemcpy(device, from, 0, cudaMemcpyHostToDevice));
    SHOW(cudaMemcpy(device, from, 16, unknown));
    SHOW(cudaMemcpy(device, from, 16, cudaMemcpyDeviceToHost));
    SHOW(cudaMemcpy(to, device, 16, cudaMemcpyHostToDevice));
    SHOW(cudaMemcpy(device, NULL, 16, cudaMemcpyHostToDevice));
    SHOW(cudaMemcpy(NULL, device, 16, cudaMemcpyDeviceToHost));
    rt.cudaFree(second);
    rt.cudaFree(device);
}

static void ordered_copies(void)
{
    static unsigned char to[4096], from[4096];
    unsigned char *device = NULL;
    cudaStream_t a = NULL, b = NULL;
    cudaEvent_t event = NULL;
    rt.cudaStreamCreateWithFlags(&a, cudaStreamNonBlocking);
    rt.cudaStreamCreateWithFlags(&b, cudaStreamNonBlocking);
    rt.cudaEventCreateWithFlags(&event, cudaEventDisableTiming);
    rt.cudaMalloc((void **)&device, 4096);
    memset(from, 1, sizeof from);
    SHOW(cudaMemcpyAsync(device, from, 4096, cudaMemcpyHostToDevice, a));
    memset(from, 9, sizeof from);
    SHOW(cudaMemcpyAsync(to, device, 4096, cudaMemcpyDeviceToHost, a));
    SHOW(cudaStreamSynchronize(a));
    tell("a pageable source is read by the call", all_are(to, sizeof to, 1));
    SHOW(cudaMemsetAsync(device, 7, 4096, a));
    SHOW(cudaEventRecord(event, a));
    SHOW(cudaStreamWaitEvent(b, event, 0));
    SHOW(cudaMemcpyAsync(to, device, 4096, cudaMemcpyDeviceToHost, b));
    SHOW(cudaStreamSynchronize(b));
    tell("a wait orders one stream after another", all_are(to, sizeof to, 7));
    SHOW(cudaMemsetAsync(NULL, 7, 4096, a));
    SHOW(cudaMemsetAsync(device, 7, 0, a));
    rt.cudaFree(device);
    rt.cudaEventDestroy(event);
    rt.cudaStreamDestroy(a);
    rt.cudaStreamDestroy(b);
}

/* --- unfinished work --------------------------------------------------------------------- */

/* Some milliseconds of work on any device: far more than the calls that follow take. */
static void keep_busy(cudaStream_t stream, void *large, size_t size)
{
    for (int i = 0; i < 100; i++) {
        rt.cudaMemsetAsync(large, i, size, stream);
    }
}

static void unfinished_stream(void *large, size_t size)
{
    cudaStream_t stream = NULL, idle = NULL;
    cudaEvent_t event = NULL, timed = NULL, first = NULL;
    float ms = 0;
    rt.cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
    rt.cudaStreamCreateWithFlags(&idle, cudaStreamNonBlocking);
    rt.cudaEventCreateWithFlags(&event, cudaEventDisableTiming);
    rt.cudaEventCreate(&timed);
    rt.cudaEventCreate(&first);
    rt.cudaEventRecord(first, stream);
    keep_busy(stream, large, size);
    SHOW(cudaEventRecord(event, stream));
    SHOW(cudaEventRecord(timed, stream));
    SHOW(cudaStreamQuery(stream));
    SHOW(cudaEventQuery(event));
    SHOW(cudaEventElapsedTime(&ms, first, timed));
    SHOW(cudaStreamQuery(idle));
    SHOW(cudaStreamWaitEvent(idle, event, 0));
    SHOW(cudaStreamQuery(idle));
    SHOW(cudaStreamQuery(NULL));
    SHOW(cudaEventSynchronize(event));
    SHOW(cudaEventQuery(event));
    SHOW(cudaDeviceSynchronize());
    SHOW(cudaStreamQuery(idle));
    SHOW(cudaEventElapsedTime(&ms, first, timed));
    tell("the work took time", ms > 0);
    keep_busy(stream, large, size);
    SHOW(cudaEventRecord(event, stream));
    SHOW(cudaStreamDestroy(stream));
    SHOW(cudaEventQuery(event));
    SHOW(cudaEventSynchronize(event));
    SHOW(cudaEventQuery(event));
    rt.cudaEventDestroy(event);
    rt.cudaEventDestroy(timed);
    rt.cudaEventDestroy(first);
    rt.cudaStreamDestroy(idle);
}

static void default_stream(void *large, size_t size)
{
    cudaStream_t blocking = NULL, other = NULL;
    cudaEvent_t event = NULL;
    rt.cudaStreamCreate(&blocking);
    rt.cudaStreamCreate(&other);
    rt.cudaEventCreateWithFlags(&event, cudaEventDisableTiming);
    keep_busy(blocking, large, size);
    SHOW(cudaStreamQuery(NULL));
    SHOW(cudaStreamQuery(other));
    SHOW(cudaEventRecord(event, NULL));
    SHOW(cudaEventQuery(event));
    SHOW(cudaStreamSynchronize(NULL));
    SHOW(cudaStreamQuery(blocking));
    SHOW(cudaEventQuery(event));
    keep_busy(NULL, large, size);
    SHOW(cudaStreamQuery(NULL));
    SHOW(cudaStreamQuery(blocking));
    /* Work of its own, or the real stream does not wait for the default stream's at all. */
    SHOW(cudaMemsetAsync(large, 1, 4096, blocking));
    SHOW(cudaEventRecord(event, blocking));
    SHOW(cudaEventQuery(event));
    SHOW(cudaStreamSynchronize(blocking));
    SHOW(cudaEventQuery(event));
    SHOW(cudaStreamQuery(NULL));
    rt.cudaEventDestroy(event);
    rt.cudaStreamDestroy(blocking);
    rt.cudaStreamDestroy(other);
}

static void unfinished(void)
{
    const size_t size = 512 * MIB;
    void *large = NULL, *small = NULL;
    cudaStream_t stream = NULL;
    cudaEvent_t event = NULL;
    printf("# unfinished work\n");
    rt.cudaMalloc(&large, size);
    unfinished_stream(large, size);
    printf("# the default stream\n");
    default_stream(large, size);
    printf("# cudaFree waits\n");
    rt.cudaMalloc(&small, 4 * MIB);
    rt.cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
    rt.cudaEventCreateWithFlags(&event, cudaEventDisableTiming);
    keep_busy(stream, large, size);
    rt.cudaEventRecord(event, stream);
    SHOW(cudaEventQuery(event));
    SHOW(cudaFree(small));
    SHOW(cudaEventQuery(event));
    rt.cudaEventDestroy(event);
    rt.cudaStreamDestroy(stream);
    rt.cudaFree(large);
}

/* --- the driver -------------------------------------------------------------------------- */

static struct {
#define DRIVER_FIELD(result, name, parameters, arguments) __typeof__(&name) name;
    GMD_CUDA_DRIVER_FUNCTIONS(DRIVER_FIELD)
#undef DRIVER_FIELD
} driver;

static int load_driver(void)
{
    void *library = dlopen("libcuda.so.1", RTLD_NOW);
#define DRIVER_LOAD(result, name, parameters, arguments)                                           \
    *(void **)&driver.name = library ? dlsym(library, #name) : NULL;                               \
    if (!driver.name) {                                                                            \
        fprintf(stderr, "conformance: libcuda.so.1 has no %s\n", #name);                           \
        return 0;                                                                                  \
    }
    GMD_CUDA_DRIVER_FUNCTIONS(DRIVER_LOAD)
#undef DRIVER_LOAD
    return 1;
}

#define DRIVE(call)                                                                                \
    do {                                                                                           \
        const char *name_ = NULL;                                                                  \
        CUresult result_ = driver.call;                                                            \
        driver.cuGetErrorName(result_, &name_);                                                    \
        printf("%-58s %s\n", #call, name_ ? name_ : "(no name)");                                  \
    } while (0)

static void driver_calls(void)
{
    int value = -1, active = -1;
    unsigned flags = 99;
    char name[64];
    size_t bytes = 0, total = 0;
    const char *text = NULL;
    CUdevice device = -1;
    CUcontext current = NULL, primary = NULL;
    CUdeviceptr pointer = 0;
    printf("# driver\n");
    DRIVE(cuInit(1));
    DRIVE(cuInit(0));
    DRIVE(cuDriverGetVersion(&value));
    DRIVE(cuDriverGetVersion(NULL));
    DRIVE(cuDeviceGetCount(&value));
    DRIVE(cuDeviceGetCount(NULL));
    DRIVE(cuDeviceGet(&device, 0));
    DRIVE(cuDeviceGet(&device, -1));
    DRIVE(cuDeviceGet(&device, 100000));
    DRIVE(cuDeviceGetName(name, sizeof name, 0));
    DRIVE(cuDeviceTotalMem_v2(&bytes, 0));
    DRIVE(cuDeviceTotalMem_v2(NULL, 0));
    DRIVE(cuDeviceGetAttribute(&value, CU_DEVICE_ATTRIBUTE_WARP_SIZE, 0));
    DRIVE(cuDeviceGetAttribute(NULL, CU_DEVICE_ATTRIBUTE_WARP_SIZE, 0));
    DRIVE(cuDeviceGetAttribute(&value, CU_DEVICE_ATTRIBUTE_WARP_SIZE, 100000));
    DRIVE(cuCtxGetCurrent(&current));
    DRIVE(cuCtxGetCurrent(NULL));
    DRIVE(cuDevicePrimaryCtxRetain(&primary, 0));
    tell("the runtime uses the primary context", current && current == primary);
    DRIVE(cuDevicePrimaryCtxGetState(0, &flags, &active));
    tell("the primary context is active", active == 1);
    DRIVE(cuMemGetInfo_v2(&bytes, &total));
    DRIVE(cuMemAlloc_v2(&pointer, 0));
    DRIVE(cuMemAlloc_v2(NULL, 512));
    DRIVE(cuMemAlloc_v2(&pointer, (size_t)1 << 46));
    DRIVE(cuMemAlloc_v2(&pointer, 4 * MIB));
    DRIVE(cuMemFree_v2(pointer + 256));
    DRIVE(cuMemFree_v2(pointer));
    DRIVE(cuMemFree_v2(pointer));
    DRIVE(cuMemFree_v2(0));
    DRIVE(cuStreamQuery(NULL));
    DRIVE(cuStreamSynchronize(NULL));
    DRIVE(cuEventQuery(NULL));
    DRIVE(cuCtxSetCurrent(NULL));
    DRIVE(cuMemAlloc_v2(&pointer, 512));
    DRIVE(cuMemGetInfo_v2(&bytes, &total));
    DRIVE(cuCtxSetCurrent(primary));
    DRIVE(cuDevicePrimaryCtxRelease_v2(0));
    DRIVE(cuGetErrorString(CUDA_ERROR_OUT_OF_MEMORY, &text));
    printf("    %s\n", text);
    DRIVE(cuGetErrorString((CUresult)123456, &text));
    tell("the driver leaves the runtime's last error", rt.cudaGetLastError() == cudaSuccess);
}

/* A fresh simulated device; a real one is as it is. */
static void prepare(int is_backed)
{
    if (rt.sim) {
        gmd_sim_config config;
        rt.sim->gmd_sim_default_config(&config);
        config.device_count = 1;
        config.capacity_bytes = (uint64_t)8 << 30;
        config.backed = is_backed;
        rt.sim->gmd_sim_reset(&config);
    }
    rt.cudaFree(NULL);
    rt.cudaGetLastError();
}

int main(int argc, char **argv)
{
    if (argc != 3 || (strcmp(argv[1], "sim") != 0 && strcmp(argv[1], "cuda") != 0)) {
        fprintf(stderr, "usage: conformance sim|cuda LIBRARY-FOLDER\n");
        return 2;
    }
    setvbuf(stdout, NULL, _IOLBF, 0); /* or a crash would take the lines before it along */
    int is_real = strcmp(argv[1], "cuda") == 0;
    gmd_error error;
    if (gmd_runtime_open(&rt, is_real ? GMD_DEVICE_CUDA : GMD_DEVICE_SIM, argv[2], &error) !=
        GMD_OK) {
        fprintf(stderr, "conformance: %s\n", error.text);
        return is_real ? 77 : 3;
    }
    prepare(1);
    devices();
    errors();
    allocation();
    accounting();
    pinned();
    attributes();
    streams();
    events();
    copies();
    ordered_copies();
    prepare(0); /* unbacked: the next part writes gigabytes */
    unfinished();
    if (!load_driver()) {
        return 3;
    }
    driver_calls();
    printf("# reset\n");
    SHOW(cudaDeviceReset());
    return 0;
}
