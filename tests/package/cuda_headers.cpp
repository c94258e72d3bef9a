// What C++ sources write with a toolkit's headers; exit status 0: all of it works as there.
#include <cuda_runtime.h>

static __host__ __device__ __forceinline__ int twice(int number)
{
    return 2 * number;
}

static int count;

static void expect(bool holds)
{
    count += !holds;
}

static void take_pointers_of_any_type()
{
    float *device = nullptr, *pooled = nullptr, *pinned = nullptr, *mapped = nullptr;
    void *plain = nullptr, *flagged = nullptr;
    cudaMemPool_t pool;
    expect(cudaMalloc(&device, 1024) == cudaSuccess && device);
    expect(cudaMallocAsync(&pooled, 1024, nullptr) == cudaSuccess && pooled);
    expect(cudaFreeAsync(pooled, nullptr) == cudaSuccess);
    expect(cudaDeviceGetDefaultMemPool(&pool, 0) == cudaSuccess);
    expect(cudaMallocFromPoolAsync(&pooled, 1024, pool, nullptr) == cudaSuccess && pooled);
    expect(cudaMallocHost(&pinned, 1024) == cudaSuccess && pinned);
    expect(cudaHostAlloc(&mapped, 1024, cudaHostAllocMapped) == cudaSuccess && mapped);
    expect(cudaMallocHost(&plain, 64) == cudaSuccess && plain);
    expect(cudaMallocHost(&flagged, 64, cudaHostAllocPortable) == cudaSuccess && flagged);
    pinned[0] = mapped[0] = 1;
    expect(cudaMemcpyAsync(device, pinned, 4, cudaMemcpyHostToDevice) == cudaSuccess);
    expect(cudaFree(device) == cudaSuccess && cudaFreeAsync(pooled, nullptr) == cudaSuccess);
    expect(cudaFreeHost(pinned) == cudaSuccess && cudaFreeHost(mapped) == cudaSuccess);
    expect(cudaFreeHost(plain) == cudaSuccess && cudaFreeHost(flagged) == cudaSuccess);
}

static void leave_arguments_out()
{
    cudaEvent_t event;
    cudaStream_t stream;
    void *memory = nullptr, *function = nullptr;
    expect(cudaStreamCreate(&stream) == cudaSuccess);
    expect(cudaEventCreate(&event, cudaEventDisableTiming) == cudaSuccess);
    expect(cudaEventRecord(event) == cudaSuccess);
    expect(cudaEventRecordWithFlags(event) == cudaSuccess);
    expect(cudaStreamWaitEvent(stream, event) == cudaSuccess);
    expect(cudaMalloc(&memory, 64) == cudaSuccess);
    expect(cudaMemsetAsync(memory, 0, 64) == cudaSuccess);
    expect(cudaMemcpyPeerAsync(memory, 0, memory, 0, 64) == cudaSuccess);
    (void)cudaGetDriverEntryPointByVersion("cuMemCreate", &function, 12000, cudaEnableDefault,
                                           nullptr);
    expect(cudaFree(memory) == cudaSuccess);
    expect(cudaEventDestroy(event) == cudaSuccess && cudaStreamDestroy(stream) == cudaSuccess);
}

// A simulated device has no managed memory, so that this may be refused.
static void take_managed_memory()
{
    void *plain = nullptr;
    int *typed = nullptr;
    expect((cudaMallocManaged(&plain, 64) == cudaSuccess) == (plain != nullptr));
    expect((cudaMallocManaged(&typed, 64, cudaMemAttachHost) == cudaSuccess) == (typed != nullptr));
    cudaFree(plain);
    cudaFree(typed);
    cudaGetLastError();
}

static void instantiate_graphs()
{
    cudaGraph_t graph;
    cudaGraphExec_t without, with;
    expect(cudaGraphCreate(&graph, 0) == cudaSuccess);
    expect(cudaGraphInstantiate(&without, graph) == cudaSuccess);
    expect(cudaGraphInstantiate(&with, graph, nullptr, nullptr, 0) == cudaSuccess);
    expect(cudaGraphExecDestroy(without) == cudaSuccess);
    expect(cudaGraphExecDestroy(with) == cudaSuccess);
    expect(cudaGraphDestroy(graph) == cudaSuccess);
}

static void CUDART_CB note(void *called)
{
    *static_cast<bool *>(called) = true;
}

static void call_the_host()
{
    bool is_called = false;
    expect(cudaLaunchHostFunc(nullptr, note, &is_called) == cudaSuccess);
    expect(cudaDeviceSynchronize() == cudaSuccess && is_called);
}

int main()
{
    take_pointers_of_any_type();
    leave_arguments_out();
    take_managed_memory();
    instantiate_graphs();
    call_the_host();
    return count + twice(0);
}
