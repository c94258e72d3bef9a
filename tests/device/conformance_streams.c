/* conformance_streams - makes the calls on streams, events, host functions, copies, captures and
 * graphs, right and wrong, on the simulated or a real device and prints what each answers. The two
 * transcripts must be equal: conformance_streams.expected.
 *
 * As in conformance.c nothing is printed that a device may choose, and a query is only asked where
 * its answer is forced. Exit status: 0 done, 3 the device could not be opened, 77 no GPU. */
#include "conformance_api.h"
#include "conformance_device.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

conformance_api api;
gmd_runtime rt;
void *large;

int show(const char *what, int result)
{
    printf("%-68s %s", what, rt.cudaGetErrorName((cudaError_t)result));
    int last = (int)api.cudaGetLastError();
    if (last != result) {
        printf("  last error %s", rt.cudaGetErrorName((cudaError_t)last));
    }
    printf("\n");
    return result;
}

void tell(const char *what, int is_so)
{
    printf("%-68s %s\n", what, is_so ? "yes" : "no");
}

void keep_busy(cudaStream_t stream)
{
    if (rt.sim) {
        rt.sim->gmd_sim_launch(stream, 10000000, NULL, 0);
        return;
    }
    for (int i = 0; i < 100; i++) {
        api.cudaMemsetAsync(large, i, LARGE_BYTES, stream);
    }
}

static cudaStream_t own_stream(void)
{
    cudaStream_t stream = NULL;
    api.cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
    return stream;
}

/* --- streams and events ------------------------------------------------------------------ */

static void identities(void)
{
    cudaStream_t stream = own_stream(), other = own_stream();
    unsigned long long id = 0, other_id = 0;
    int device = -1;
    printf("# identities\n");
    SHOW(cudaStreamGetId(stream, &id));
    SHOW(cudaStreamGetId(other, &other_id));
    tell("ids differ", id != other_id);
    SHOW(cudaStreamGetId(NULL, &id));
    SHOW(cudaStreamGetId(cudaStreamLegacy, &other_id));
    tell("NULL is the legacy stream", id == other_id);
    SHOW(cudaStreamGetId(cudaStreamPerThread, &other_id));
    tell("the per-thread stream is another", id != other_id);
    SHOW(cudaStreamGetId(stream, NULL));
    SHOW(cudaStreamGetDevice(stream, &device));
    tell("it is the current device's", device == 0);
    SHOW(cudaStreamGetDevice(NULL, &device));
    SHOW(cudaStreamCopyAttributes(stream, other));
    SHOW(cudaStreamCopyAttributes(stream, NULL));
    SHOW(cudaStreamCopyAttributes(NULL, stream));
    SHOW(cudaStreamAttachMemAsync(stream, large, 0, 4));
    SHOW(cudaStreamAttachMemAsync(stream, NULL, 0, 4));
    SHOW(cudaStreamAttachMemAsync(stream, &device, sizeof device, 1));
    SHOW(cudaStreamDestroy(stream));
    SHOW(cudaStreamDestroy(other));
}

static void driver_streams(void)
{
    CUstream stream = NULL;
    CUevent event = NULL, late = NULL;
    CUcontext context = NULL;
    unsigned flags = 9;
    unsigned long long id = 0;
    int value = 9;
    float ms = -1;
    printf("# streams and events of the driver\n");
    SHOW(cuStreamCreate(&stream, 1));
    SHOW(cuStreamCreate(NULL, 0));
    SHOW(cuStreamGetFlags(stream, &flags));
    tell("its flags are 1", flags == 1);
    SHOW(cuStreamGetFlags(stream, NULL));
    SHOW(cuStreamGetPriority(stream, &value));
    SHOW(cuStreamGetPriority(stream, NULL));
    SHOW(cuStreamGetId(stream, &id));
    SHOW(cuStreamGetDevice(stream, &value));
    SHOW(cuStreamGetCtx(stream, &context));
    CUcontext current = NULL;
    api.cuCtxGetCurrent(&current);
    tell("its context is the current one", context == current);
    SHOW(cuStreamGetCtx(NULL, &context));
    SHOW(cuStreamGetCtx(stream, NULL));
    SHOW(cuEventCreate(&event, 0));
    SHOW(cuEventCreate(&late, 0));
    SHOW(cuEventCreate(NULL, 0));
    SHOW(cuEventCreate(&late, 0x100));
    SHOW(cuEventRecord(event, stream));
    SHOW(cuEventRecordWithFlags(late, stream, 0));
    SHOW(cuEventRecordWithFlags(late, stream, 0x100));
    SHOW(cuStreamWaitEvent(stream, event, 0));
    SHOW(cuStreamWaitEvent(stream, event, 0x100));
    SHOW(cuEventSynchronize(late));
    SHOW(cuEventElapsedTime(&ms, event, late));
    SHOW(cuEventElapsedTime_v2(&ms, event, late));
    SHOW(cuEventElapsedTime_v2(NULL, event, late));
    SHOW(cuEventRecord(NULL, stream));
    SHOW(cuEventSynchronize(NULL));
    SHOW(cuEventQuery(NULL));
    SHOW(cuEventDestroy_v2(NULL));
    SHOW(cuEventDestroy_v2(event));
    SHOW(cuEventDestroy_v2(late));
    SHOW(cuStreamDestroy_v2(NULL));
    SHOW(cuStreamDestroy_v2(stream));
    SHOW(cuStreamCreateWithPriority(&stream, 0, -3));
    SHOW(cuStreamGetPriority(stream, &value));
    tell("its priority is -3", value == -3);
    SHOW(cuStreamDestroy_v2(stream));
    SHOW(cuStreamCreateWithPriority(&stream, 0x100, 0));
}

static void unfinished(void)
{
    cudaStream_t stream = own_stream(), other = own_stream();
    cudaEvent_t event = NULL;
    printf("# unfinished work\n");
    api.cudaEventCreateWithFlags(&event, cudaEventDisableTiming);
    keep_busy(stream);
    SHOW(cudaEventRecord(event, stream));
    SHOW(cuStreamQuery(stream));
    SHOW(cuEventQuery(event));
    SHOW(cudaStreamWaitEvent(other, event, 0));
    SHOW(cudaEventDestroy(event));
    SHOW(cudaStreamQuery(other));
    SHOW(cudaStreamDestroy(stream));
    SHOW(cudaStreamSynchronize(other));
    SHOW(cudaStreamQuery(other));
    keep_busy(other);
    SHOW(cudaMemset(large, 1, 16));
    SHOW(cudaStreamQuery(other));
    SHOW(cudaStreamQuery(cudaStreamPerThread));
    SHOW(cudaStreamQuery_ptsz(NULL));
    SHOW(cudaStreamSynchronize(other));
    SHOW(cudaMemsetAsync_ptsz(large, 1, 16, NULL));
    SHOW(cudaMemset_ptds(large, 1, 16));
    SHOW(cudaDeviceSynchronize());
    SHOW(cudaStreamDestroy(other));
}

/* --- host functions ---------------------------------------------------------------------- */

static struct {
    int order[8], count, runs;
    int of_malloc, of_query, of_synchronize, of_last_error, of_get_device, of_driver, of_event;
    int of_launch, of_peek;
    int status;
    cudaStream_t stream;
} seen;

static void note_order(void *number)
{
    seen.order[seen.count++ % 8] = (int)(intptr_t)number;
}

static void call_cuda(void *event)
{
    void *pointer;
    int device;
    size_t bytes;
    seen.of_malloc = (int)api.cudaMalloc(&pointer, 512);
    seen.of_peek = (int)api.cudaPeekAtLastError();
    seen.of_last_error = (int)api.cudaGetLastError();
    seen.of_query = (int)api.cudaStreamQuery(NULL);
    seen.of_synchronize = (int)api.cudaDeviceSynchronize();
    seen.of_event = (int)api.cudaEventQuery(event);
    seen.of_get_device = (int)api.cudaGetDevice(&device);
    seen.of_launch = (int)api.cudaLaunchHostFunc(NULL, note_order, NULL);
    seen.of_driver = (int)api.cuMemGetInfo_v2(&bytes, &bytes);
}

static void take_callback(cudaStream_t stream, cudaError_t status, void *data)
{
    void *pointer;
    seen.stream = stream;
    seen.status = (int)status;
    seen.of_malloc = (int)api.cudaMalloc(&pointer, 512);
    ++*(int *)data;
}

static void host_functions(void)
{
    cudaStream_t stream = own_stream();
    cudaEvent_t event = NULL;
    int called = 0;
    printf("# host functions\n");
    api.cudaEventCreateWithFlags(&event, cudaEventDisableTiming);
    SHOW(cudaLaunchHostFunc(stream, note_order, (void *)1));
    SHOW(cudaLaunchHostFunc(stream, note_order, (void *)2));
    SHOW(cudaLaunchHostFunc(NULL, note_order, (void *)3));
    SHOW(cudaLaunchHostFunc(stream, NULL, NULL));
    SHOW(cudaDeviceSynchronize());
    tell("each ran once", seen.count == 3);
    SHOW(cuLaunchHostFunc(stream, note_order, (void *)4));
    SHOW(cuLaunchHostFunc(stream, NULL, NULL));
    SHOW(cudaStreamSynchronize(stream));
    tell("the driver's too", seen.count == 4 && seen.order[3] == 4);
    keep_busy(stream);
    SHOW(cudaLaunchHostFunc(stream, note_order, (void *)5));
    tell("it waits for the work before it", seen.count == 4);
    SHOW(cudaStreamSynchronize(stream));
    tell("then it runs", seen.count == 5 && seen.order[4] == 5);
    SHOW(cudaEventRecord(event, stream));
    SHOW(cudaLaunchHostFunc(stream, call_cuda, event));
    SHOW(cudaStreamSynchronize(stream));
    show("in a host function: cudaMalloc", seen.of_malloc);
    show("in a host function: cudaPeekAtLastError", seen.of_peek);
    show("in a host function: cudaGetLastError", seen.of_last_error);
    show("in a host function: cudaStreamQuery", seen.of_query);
    show("in a host function: cudaDeviceSynchronize", seen.of_synchronize);
    show("in a host function: cudaEventQuery", seen.of_event);
    show("in a host function: cudaGetDevice", seen.of_get_device);
    show("in a host function: cudaLaunchHostFunc", seen.of_launch);
    show("in a host function: cuMemGetInfo", seen.of_driver);
    SHOW(cudaStreamAddCallback(stream, take_callback, &called, 0));
    SHOW(cudaStreamSynchronize(stream));
    tell("a callback ran with its stream and success",
         called == 1 && seen.stream == stream && seen.status == 0);
    show("in a callback: cudaMalloc", seen.of_malloc);
    SHOW(cudaStreamAddCallback(stream, take_callback, &called, 1));
    SHOW(cudaStreamAddCallback(stream, NULL, &called, 0));
    SHOW(cuStreamAddCallback(stream, NULL, &called, 0));
    SHOW(cudaStreamDestroy(stream));
    SHOW(cudaEventDestroy(event));
}

/* --- copies ------------------------------------------------------------------------------ */

static bool all_are(const unsigned char *bytes, size_t size, unsigned char value)
{
    for (size_t i = 0; i < size; i++) {
        if (bytes[i] != value) {
            return false;
        }
    }
    return true;
}

static unsigned char here[4096], there[4096];

static void driver_copies(void)
{
    cudaStream_t stream = own_stream();
    CUdeviceptr at = (uintptr_t)large;
    printf("# copies of the driver\n");
    memset(here, 3, sizeof here);
    SHOW(cuMemcpyHtoD_v2(at, here, 4096));
    SHOW(cuMemcpyDtoD_v2(at + 4096, at, 4096));
    SHOW(cuMemcpyDtoH_v2(there, at + 4096, 4096));
    tell("the data made the round trip", all_are(there, 4096, 3));
    SHOW(cuMemsetD8_v2(at, 7, 4096));
    SHOW(cuMemsetD32_v2(at + 16, 0x09090909, 4));
    SHOW(cuMemcpy((uintptr_t)there, at, 4096));
    tell("bytes and words are set",
         all_are(there, 16, 7) && all_are(there + 16, 16, 9) && all_are(there + 32, 4064, 7));
    SHOW(cuMemsetD32_v2(at + 2, 5, 4));
    SHOW(cuMemsetD8_v2(0, 5, 4));
    SHOW(cuMemsetD8_v2(at, 5, 0));
    SHOW(cuMemsetD8Async(at, 1, 4096, stream));
    SHOW(cuMemsetD32Async(at, 0x02020202, 512, stream));
    SHOW(cuMemcpyDtoDAsync_v2(at + 8192, at, 4096, stream));
    SHOW(cuMemcpyAsync(at + 12288, at + 8192, 4096, stream));
    SHOW(cuMemcpyDtoHAsync_v2(there, at + 12288, 4096, stream));
    SHOW(cuStreamSynchronize(stream));
    tell("in stream order", all_are(there, 2048, 2) && all_are(there + 2048, 2048, 1));
    SHOW(cuMemcpyHtoDAsync_v2(at, here, 16, stream));
    SHOW(cuMemcpyHtoD_v2(0, here, 16));
    SHOW(cuMemcpyDtoH_v2(NULL, at, 16));
    SHOW(cuMemcpyHtoD_v2(at, here, 0));
    SHOW(cuMemcpyDtoD_v2(at, (uintptr_t)here, 16));
    SHOW(cudaStreamDestroy(stream));
}

static void two_dimensions(void)
{
    cudaStream_t stream = own_stream();
    printf("# two dimensions\n");
    memset(there, 0, sizeof there);
    SHOW(cudaMemset(large, 1, 4096));
    SHOW(cudaMemset2D(large, 64, 5, 32, 16));
    SHOW(cudaMemcpy2D(there, 32, large, 64, 32, 16, cudaMemcpyDeviceToHost));
    tell("the rows are set", all_are(there, 512, 5));
    SHOW(cudaMemcpy(there, large, 1024, cudaMemcpyDeviceToHost));
    tell("what lies between them is not", all_are(there + 32, 32, 1) && all_are(there + 64, 32, 5));
    SHOW(cudaMemset2D(large, 16, 5, 32, 2));
    SHOW(cudaMemset2D(large, 64, 5, 0, 2));
    SHOW(cudaMemset2D(large, 64, 5, 32, 0));
    SHOW(cudaMemset2D(NULL, 64, 5, 32, 2));
    SHOW(cudaMemset2DAsync(large, 64, 6, 64, 2, stream));
    SHOW(cudaMemcpy2DAsync(large, 64, here, 64, 64, 2, cudaMemcpyHostToDevice, stream));
    SHOW(cudaMemcpy2D(there, 16, large, 64, 32, 2, cudaMemcpyDeviceToHost));
    SHOW(cudaMemcpy2D(there, 32, large, 16, 32, 2, cudaMemcpyDeviceToHost));
    SHOW(cudaMemcpy2D(there, 64, large, 64, 64, 0, cudaMemcpyDeviceToHost));
    SHOW(cudaMemcpy2D(there, 64, large, 64, 0, 4, cudaMemcpyDeviceToHost));
    SHOW(cudaMemcpy2D(NULL, 64, large, 64, 64, 4, cudaMemcpyDeviceToHost));
    SHOW(cudaMemcpy2D(there, 64, large, 64, 64, 4, cudaMemcpyHostToDevice));
    SHOW(cudaMemcpy2D(there, 64, large, 64, 64, 4, (enum cudaMemcpyKind)77));
    SHOW(cudaStreamSynchronize(stream));
    SHOW(cudaStreamDestroy(stream));
}

static void peers(void)
{
    cudaStream_t stream = own_stream();
    char *at = large;
    printf("# copies between devices\n");
    SHOW(cudaMemset(at, 4, 4096));
    SHOW(cudaMemcpyPeer(at + 4096, 0, at, 0, 4096));
    SHOW(cudaMemcpyPeerAsync(at + 8192, 0, at + 4096, 0, 4096, stream));
    SHOW(cudaStreamSynchronize(stream));
    SHOW(cudaMemcpy(there, at + 8192, 4096, cudaMemcpyDeviceToHost));
    tell("the data arrived", all_are(there, 4096, 4));
    SHOW(cudaMemcpyPeer(at, 0, at, -1, 16));
    SHOW(cudaMemcpyPeer(at, 100000, at, 0, 16));
    SHOW(cudaMemcpyPeer(at, 0, NULL, 0, 16));
    SHOW(cudaMemcpyPeer(at, 0, here, 0, 16));
    SHOW(cudaMemcpyPeer(at, 0, at, 0, 0));
    SHOW(cudaStreamDestroy(stream));
}

static void values(void)
{
    cudaStream_t stream = own_stream(), other = own_stream();
    CUdeviceptr at = (uintptr_t)large;
    unsigned word = 0;
    printf("# values in memory\n");
    SHOW(cudaMemset(large, 0, 64));
    SHOW(cuStreamWriteValue32_v2(stream, at, 17, 0));
    SHOW(cuStreamWaitValue32_v2(stream, at, 17, CU_STREAM_WAIT_VALUE_EQ));
    SHOW(cuStreamWaitValue32_v2(stream, at, 9, CU_STREAM_WAIT_VALUE_GEQ));
    SHOW(cuStreamWaitValue32_v2(stream, at, 1, CU_STREAM_WAIT_VALUE_AND));
    SHOW(cuStreamSynchronize(stream));
    SHOW(cudaMemcpy(&word, large, 4, cudaMemcpyDeviceToHost));
    tell("the value was written", word == 17);
    SHOW(cuStreamWaitValue32_v2(stream, at, 18, CU_STREAM_WAIT_VALUE_EQ));
    SHOW(cuStreamQuery(stream));
    SHOW(cuStreamWriteValue32_v2(other, at, 18, 0));
    SHOW(cuStreamSynchronize(other));
    SHOW(cuStreamSynchronize(stream));
    SHOW(cuStreamWriteValue32_v2(stream, at + 2, 17, 0));
    SHOW(cuStreamWaitValue32_v2(stream, at + 2, 17, 0));
    SHOW(cuStreamWaitValue32_v2(stream, at, 17, 0x70));
    SHOW(cuStreamWriteValue32_v2(stream, 0, 17, 0));
    SHOW(cudaStreamDestroy(stream));
    SHOW(cudaStreamDestroy(other));
}

/* --- an illegal access ------------------------------------------------------------------- */

/* A kernel that writes where nothing is: PTX on a real device. */
static void launch_illegal(cudaStream_t stream)
{
    if (rt.sim) {
        gmd_sim_access access = {.address = 16, .size = 4, .is_write = true};
        rt.sim->gmd_sim_launch(stream, 1000, &access, 1);
        return;
    }
    static const char ptx[] = ".version 7.0\n.target sm_70\n.address_size 64\n"
                              ".visible .entry wild()\n{\n.reg .u64 %a;\n.reg .u32 %v;\n"
                              "mov.u64 %a, 16;\nmov.u32 %v, 1;\nst.global.u32 [%a], %v;\nret;\n}\n";
    CUresult (*load)(void **, const void *);
    CUresult (*find)(void **, void *, const char *);
    CUresult (*launch)(void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                       CUstream, void **, void **);
    void *driver = dlopen("libcuda.so.1", RTLD_NOW);
    *(void **)&load = dlsym(driver, "cuModuleLoadData");
    *(void **)&find = dlsym(driver, "cuModuleGetFunction");
    *(void **)&launch = dlsym(driver, "cuLaunchKernel");
    void *module = NULL, *function = NULL;
    if (load(&module, ptx) || find(&function, module, "wild") ||
        launch(function, 1, 1, 1, 1, 1, 1, 0, stream, NULL, NULL)) {
        printf("the illegal kernel could not be launched\n");
    }
}

static void illegal_access(void)
{
    cudaStream_t stream = own_stream(), other = NULL;
    cudaEvent_t event = NULL;
    void *pointer = NULL, *host = NULL, *live = NULL;
    struct cudaPointerAttributes attributes;
    enum cudaStreamCaptureStatus status;
    size_t bytes;
    int value;
    printf("# an illegal access\n");
    api.cudaEventCreate(&event);
    api.cudaMalloc(&live, 512);
    api.cudaMallocHost(&host, 512);
    launch_illegal(stream);
    SHOW(cudaStreamSynchronize(stream));
    SHOW(cudaGetLastError());
    SHOW(cudaPeekAtLastError());
    SHOW(cudaMalloc(&pointer, 512));
    SHOW(cudaFree(live));
    SHOW(cudaFree(NULL));
    SHOW(cudaMemGetInfo(&bytes, &bytes));
    SHOW(cudaDeviceSynchronize());
    SHOW(cudaStreamQuery(stream));
    SHOW(cudaStreamCreate(&other));
    SHOW(cudaStreamGetFlags(stream, (unsigned *)&value));
    SHOW(cudaStreamIsCapturing(stream, &status));
    SHOW(cudaEventCreate(&event));
    SHOW(cudaEventRecord(event, stream));
    SHOW(cudaEventQuery(event));
    SHOW(cudaStreamWaitEvent(stream, event, 0));
    SHOW(cudaMemset(large, 0, 16));
    SHOW(cudaMemcpy(here, large, 16, cudaMemcpyDeviceToHost));
    SHOW(cudaLaunchHostFunc(stream, note_order, NULL));
    SHOW(cudaMallocHost(&pointer, 512));
    SHOW(cudaFreeHost(host));
    SHOW(cudaPointerGetAttributes(&attributes, large));
    SHOW(cudaGetDevice(&value));
    SHOW(cudaSetDevice(0));
    SHOW(cudaGetDeviceCount(&value));
    SHOW(cudaDeviceGetAttribute(&value, cudaDevAttrWarpSize, 0));
    SHOW(cudaDeviceGetStreamPriorityRange(&value, &value));
    SHOW(cudaDriverGetVersion(&value));
    SHOW(cuMemGetInfo_v2(&bytes, &bytes));
    SHOW(cuStreamQuery(stream));
    SHOW(cuDeviceGetCount(&value));
    SHOW(cudaEventDestroy(event));
    SHOW(cudaStreamDestroy(stream));
    SHOW(cudaDeviceReset());
    SHOW(cudaGetLastError());
}

/* --- the program ------------------------------------------------------------------------- */

static void *resolve(void *library, const char *name)
{
    void *function = dlsym(library, name);
    if (!function) {
        fprintf(stderr, "conformance_streams: there is no %s\n", name);
        exit(3);
    }
    return function;
}

static void resolve_all(void)
{
    void *runtime = dlopen(rt.path, RTLD_NOW), *driver = dlopen("libcuda.so.1", RTLD_NOW);
    if (!runtime || !driver) {
        fprintf(stderr, "conformance_streams: %s\n", dlerror());
        exit(3);
    }
#define FROM_RUNTIME(result, name, parameters, arguments)                                          \
    *(void **)&api.name = resolve(runtime, #name);
#define FROM_DRIVER(result, name, parameters, arguments)                                           \
    *(void **)&api.name = resolve(driver, #name);
    GMD_CUDART_FUNCTIONS(FROM_RUNTIME)
    GMD_CUDART_FURTHER_FUNCTIONS(FROM_RUNTIME)
    GMD_CUDA_DRIVER_FUNCTIONS(FROM_DRIVER)
    *(void **)&api.cudaStreamQuery_ptsz = resolve(runtime, "cudaStreamQuery_ptsz");
    *(void **)&api.cudaMemsetAsync_ptsz = resolve(runtime, "cudaMemsetAsync_ptsz");
    *(void **)&api.cudaMemset_ptds = resolve(runtime, "cudaMemset_ptds");
}

int main(int argc, char **argv)
{
    if (argc != 3) {
        fprintf(stderr, "usage: conformance_streams sim|cuda LIBRARY-FOLDER\n");
        return 2;
    }
    setvbuf(stdout, NULL, _IOLBF, 0); /* or a crash would take the lines before it along */
    int status = open_device(&rt, argc, argv);
    if (status) {
        return status;
    }
    if (rt.sim) {
        gmd_sim_config config;
        rt.sim->gmd_sim_default_config(&config);
        config.backed = true;
        rt.sim->gmd_sim_reset(&config);
    }
    resolve_all();
    api.cudaMalloc(&large, LARGE_BYTES);
    identities();
    driver_streams();
    unfinished();
    host_functions();
    driver_copies();
    two_dimensions();
    peers();
    values();
    capture_section();
    graph_section();
    illegal_access();
    return 0;
}
