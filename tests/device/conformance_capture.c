/* Captures and graphs, for conformance_streams. */
#include "conformance_api.h"

#include <pthread.h>
#include <string.h>

static const char *const mode_names[] = {"global", "thread-local", "relaxed"};

/* What a call under capture may use: made before the capture begins. */
static struct {
    cudaStream_t stream; /* capturing */
    cudaStream_t other, blocking, spare;
    cudaEvent_t outside, timed; /* recorded before the capture, on `other` */
    cudaEvent_t inside;         /* recorded in the capture */
    cudaGraphExec_t exec;
    void *memory, *host;
} c;

static int status_of(cudaStream_t stream)
{
    enum cudaStreamCaptureStatus status = (enum cudaStreamCaptureStatus)9;
    int result = (int)api.cudaStreamIsCapturing(stream, &status);
    api.cudaGetLastError();
    return result ? -result : (int)status;
}

static void ignore(void *data)
{
    (void)data;
}

static void ignore_callback(cudaStream_t stream, cudaError_t status, void *data)
{
    (void)stream;
    (void)status;
    (void)data;
}

/* Each makes one call while c.stream captures. */
#define CALLS(X)                                                                                   \
    X(malloc, cudaMalloc(&p, 512))                                                                 \
    X(free, cudaFree(c.memory))                                                                    \
    X(free_null, cudaFree(NULL))                                                                   \
    X(malloc_host, cudaMallocHost(&p, 512))                                                        \
    X(free_host, cudaFreeHost(c.host))                                                             \
    X(mem_get_info, cudaMemGetInfo(&n, &n))                                                        \
    X(pointer_attributes, cudaPointerGetAttributes(&pa, c.memory))                                 \
    X(get_device, cudaGetDevice(&i))                                                               \
    X(set_device, cudaSetDevice(0))                                                                \
    X(device_attribute, cudaDeviceGetAttribute(&i, cudaDevAttrWarpSize, 0))                        \
    X(device_synchronize, cudaDeviceSynchronize())                                                 \
    X(stream_create, cudaStreamCreateWithFlags(&s, 1))                                             \
    X(stream_destroy_other, cudaStreamDestroy(c.spare))                                            \
    X(stream_flags, cudaStreamGetFlags(c.stream, &u))                                              \
    X(stream_query, cudaStreamQuery(c.stream))                                                     \
    X(stream_query_other, cudaStreamQuery(c.other))                                                \
    X(stream_query_legacy, cudaStreamQuery(NULL))                                                  \
    X(stream_synchronize, cudaStreamSynchronize(c.stream))                                         \
    X(stream_synchronize_other, cudaStreamSynchronize(c.other))                                    \
    X(stream_synchronize_legacy, cudaStreamSynchronize(NULL))                                      \
    X(event_create, cudaEventCreate(&e))                                                           \
    X(event_query_outside, cudaEventQuery(c.outside))                                              \
    X(event_query_inside, cudaEventQuery(c.inside))                                                \
    X(event_synchronize_outside, cudaEventSynchronize(c.outside))                                  \
    X(event_synchronize_inside, cudaEventSynchronize(c.inside))                                    \
    X(event_elapsed_outside, cudaEventElapsedTime(&f, c.timed, c.timed))                           \
    X(event_elapsed_inside, cudaEventElapsedTime(&f, c.timed, c.inside))                           \
    X(event_record_again, cudaEventRecord(c.inside, c.stream))                                     \
    X(event_record_on_other, cudaEventRecord(c.inside, c.other))                                   \
    X(event_record_other, cudaEventRecord(c.timed, c.other))                                       \
    X(event_record_legacy, cudaEventRecord(c.timed, NULL))                                         \
    X(event_record_external, cudaEventRecordWithFlags(c.timed, c.stream, 1))                       \
    X(event_destroy_inside, cudaEventDestroy(c.inside))                                            \
    X(wait_outside, cudaStreamWaitEvent(c.stream, c.outside, 0))                                   \
    X(wait_outside_external, cudaStreamWaitEvent(c.stream, c.outside, 1))                          \
    X(wait_inside, cudaStreamWaitEvent(c.stream, c.inside, 0))                                     \
    X(wait_in_other, cudaStreamWaitEvent(c.other, c.inside, 0))                                    \
    X(wait_in_legacy, cudaStreamWaitEvent(NULL, c.inside, 0))                                      \
    X(memset_legacy, cudaMemset(c.memory, 0, 16))                                                  \
    X(memset_async_legacy, cudaMemsetAsync(c.memory, 0, 16, NULL))                                 \
    X(memset_async_other, cudaMemsetAsync(c.memory, 0, 16, c.other))                               \
    X(memset_async, cudaMemsetAsync(c.memory, 0, 16, c.stream))                                    \
    X(memcpy_legacy, cudaMemcpy(&i, c.memory, 4, cudaMemcpyDeviceToHost))                          \
    X(memcpy_pageable_to, cudaMemcpyAsync(c.memory, &n, 8, cudaMemcpyHostToDevice, c.stream))      \
    X(memcpy_pageable_from, cudaMemcpyAsync(&n, c.memory, 8, cudaMemcpyDeviceToHost, c.stream))    \
    X(memcpy_pinned, cudaMemcpyAsync(c.memory, c.host, 8, cudaMemcpyHostToDevice, c.stream))       \
    X(host_function, cudaLaunchHostFunc(c.stream, ignore, NULL))                                   \
    X(host_function_other, cudaLaunchHostFunc(c.other, ignore, NULL))                              \
    X(callback, cudaStreamAddCallback(c.stream, ignore_callback, NULL, 0))                         \
    X(begin_again, cudaStreamBeginCapture(c.stream, cudaStreamCaptureModeRelaxed))                 \
    X(graph_launch, cudaGraphLaunch(c.exec, c.stream))                                             \
    X(graph_launch_other, cudaGraphLaunch(c.exec, c.other))                                        \
    X(graph_upload, cudaGraphUpload(c.exec, c.stream))                                             \
    X(stream_id, cudaStreamGetId(c.stream, &id))                                                   \
    X(copy_attributes, cudaStreamCopyAttributes(c.stream, c.other))                                \
    X(driver_malloc, cuMemAlloc_v2(&d, 512))                                                       \
    X(driver_query_other, cuStreamQuery(c.other))                                                  \
    X(stream_priority, cudaStreamGetPriority(c.stream, &i))                                        \
    X(stream_device, cudaStreamGetDevice(c.stream, &i))

#define DEFINE_CALL(name, expression)                                                              \
    static int call_##name(void)                                                                   \
    {                                                                                              \
        void *p = NULL;                                                                            \
        size_t n = 0;                                                                              \
        int i = 0;                                                                                 \
        unsigned u = 0;                                                                            \
        float f = 0;                                                                               \
        cudaStream_t s = NULL;                                                                     \
        cudaEvent_t e = NULL;                                                                      \
        unsigned long long id = 0;                                                                 \
        CUdeviceptr d = 0;                                                                         \
        struct cudaPointerAttributes pa;                                                           \
        (void)p, (void)n, (void)i, (void)u, (void)f, (void)s, (void)e, (void)id, (void)d;          \
        memset(&pa, 0, sizeof pa);                                                                 \
        int result = (int)api.expression;                                                          \
        if (s) {                                                                                   \
            api.cudaStreamDestroy(s);                                                              \
        }                                                                                          \
        return result;                                                                             \
    }
CALLS(DEFINE_CALL)

static const struct {
    const char *name;
    int (*make)(void);
} calls[] = {
#define CALL_ROW(name, expression) {#name, call_##name},
    CALLS(CALL_ROW)};

static void prepare(unsigned flags)
{
    memset(&c, 0, sizeof c);
    api.cudaStreamCreateWithFlags(&c.stream, flags);
    api.cudaStreamCreateWithFlags(&c.other, cudaStreamNonBlocking);
    api.cudaStreamCreateWithFlags(&c.blocking, 0);
    api.cudaStreamCreateWithFlags(&c.spare, cudaStreamNonBlocking);
    api.cudaEventCreateWithFlags(&c.outside, cudaEventDisableTiming);
    api.cudaEventCreateWithFlags(&c.inside, 0);
    api.cudaEventCreate(&c.timed);
    api.cudaMalloc(&c.memory, 4096);
    api.cudaMallocHost(&c.host, 4096);
    cudaGraph_t graph = NULL;
    api.cudaStreamBeginCapture(c.other, cudaStreamCaptureModeRelaxed);
    api.cudaMemsetAsync(c.memory, 0, 16, c.other);
    api.cudaStreamEndCapture(c.other, &graph);
    api.cudaGraphInstantiate(&c.exec, graph, 0);
    api.cudaGraphDestroy(graph);
    api.cudaEventRecord(c.outside, c.other);
    api.cudaEventRecord(c.timed, c.other);
    api.cudaDeviceSynchronize();
    api.cudaGetLastError();
}

/* What is in a graph, as one line: the types of its nodes. */
static void tell_graph(cudaGraph_t graph)
{
    cudaGraphNode_t nodes[32];
    size_t count = 0;
    int counts[16] = {0};
    if (!graph || api.cudaGraphGetNodes(graph, NULL, &count) || count > 32 ||
        api.cudaGraphGetNodes(graph, nodes, &count)) {
        printf(" no graph");
        return;
    }
    for (size_t i = 0; i < count; i++) {
        enum cudaGraphNodeType type;
        if (api.cudaGraphNodeGetType(nodes[i], &type) == cudaSuccess && type < 16) {
            counts[type]++;
        }
    }
    printf(" nodes");
    for (int type = 0; type < 16; type++) {
        if (counts[type]) {
            printf(" %d:%d", type, counts[type]);
        }
    }
}

static void release(void)
{
    api.cudaEventDestroy(c.outside);
    api.cudaEventDestroy(c.inside);
    api.cudaEventDestroy(c.timed);
    api.cudaStreamDestroy(c.stream);
    api.cudaStreamDestroy(c.other);
    api.cudaStreamDestroy(c.blocking);
    api.cudaDeviceSynchronize();
    api.cudaGraphExecDestroy(c.exec);
    api.cudaGetLastError();
}

/* One call within a capture: its result, the capture's state after it, and how the capture ends. */
static void one_call(size_t which, enum cudaStreamCaptureMode mode, unsigned flags)
{
    prepare(flags);
    cudaGraph_t graph = NULL;
    api.cudaStreamBeginCapture(c.stream, mode);
    api.cudaMemsetAsync(c.memory, 1, 16, c.stream);
    api.cudaEventRecord(c.inside, c.stream);
    int result = calls[which].make();
    int last = (int)api.cudaGetLastError();
    int status = status_of(c.stream), other = status_of(c.other);
    int end = (int)api.cudaStreamEndCapture(c.stream, &graph);
    api.cudaGetLastError();
    printf("%-12s %-12s %-26s result %d last %d status %d other %d end %d", mode_names[mode],
           flags ? "nonblocking" : "blocking", calls[which].name, result, last, status, other, end);
    tell_graph(graph);
    printf("\n");
    if (graph) {
        api.cudaGraphDestroy(graph);
    }
    release();
}

/* --- how captures begin, spread and end -------------------------------------------------- */

static void begin_and_end(void)
{
    cudaGraph_t graph = NULL;
    enum cudaStreamCaptureStatus status;
    enum cudaStreamCaptureMode mode = cudaStreamCaptureModeRelaxed;
    unsigned long long id = 0, second = 0;
    prepare(cudaStreamNonBlocking);
    SHOW(cudaStreamBeginCapture(NULL, cudaStreamCaptureModeGlobal));
    SHOW(cudaStreamBeginCapture(cudaStreamLegacy, cudaStreamCaptureModeRelaxed));
    SHOW(cudaStreamBeginCapture(c.stream, (enum cudaStreamCaptureMode)7));
    SHOW(cudaStreamEndCapture(c.stream, &graph));
    SHOW(cudaStreamIsCapturing(c.stream, &status));
    SHOW(cudaStreamIsCapturing(c.stream, NULL));
    SHOW(cudaStreamIsCapturing(NULL, &status));
    SHOW(cudaStreamGetCaptureInfo(c.stream, &status, NULL, NULL, NULL, NULL, NULL));
    SHOW(cudaStreamGetCaptureInfo(c.stream, NULL, NULL, NULL, NULL, NULL, NULL));
    SHOW(cudaThreadExchangeStreamCaptureMode(&mode));
    tell("a thread begins as global", mode == cudaStreamCaptureModeGlobal);
    SHOW(cudaThreadExchangeStreamCaptureMode(&mode));
    tell("and then was relaxed", mode == cudaStreamCaptureModeRelaxed);
    SHOW(cudaStreamBeginCapture(c.stream, cudaStreamCaptureModeGlobal));
    SHOW(cudaStreamGetCaptureInfo(c.stream, &status, &id, &graph, NULL, NULL, NULL));
    tell("it is active and has an id and a graph", status == 1 && id != 0 && graph != NULL);
    SHOW(cuStreamIsCapturing(c.stream, (CUstreamCaptureStatus *)&status));
    cudaGraph_t ended = NULL;
    SHOW(cudaStreamEndCapture(c.other, &ended));
    SHOW(cudaStreamEndCapture(c.stream, NULL));
    tell("it has ended all the same", status_of(c.stream) == 0);
    SHOW(cudaStreamEndCapture(c.stream, &ended));
    SHOW(cudaStreamBeginCapture(c.stream, cudaStreamCaptureModeGlobal));
    SHOW(cudaStreamGetCaptureInfo(c.stream, &status, &second, NULL, NULL, NULL, NULL));
    tell("another capture has another id", second != id);
    SHOW(cudaStreamEndCapture(c.stream, &ended));
    size_t count = 9;
    SHOW(cudaGraphGetNodes(ended, NULL, &count));
    tell("an empty capture gives an empty graph", count == 0);
    SHOW(cudaGraphDestroy(ended));
    SHOW(cudaStreamBeginCapture(c.stream, cudaStreamCaptureModeGlobal));
    SHOW(cudaStreamDestroy(c.stream));
    SHOW(cudaMalloc(&c.memory, 512));
    api.cudaStreamCreateWithFlags(&c.stream, cudaStreamNonBlocking);
    release();
}

static void over_streams(void)
{
    cudaGraph_t graph = NULL;
    const cudaGraphNode_t *nodes = NULL;
    enum cudaStreamCaptureStatus status;
    size_t count = 9;
    printf("# captures over several streams\n");
    prepare(cudaStreamNonBlocking);
    api.cudaStreamBeginCapture(c.stream, cudaStreamCaptureModeGlobal);
    SHOW(cudaMemsetAsync(c.memory, 1, 16, c.stream));
    SHOW(cudaEventRecord(c.inside, c.stream));
    SHOW(cudaStreamWaitEvent(c.other, c.inside, 0));
    tell("the other captures too", status_of(c.other) == 1);
    SHOW(cudaMemsetAsync(c.memory, 2, 16, c.other));
    SHOW(cudaMemsetAsync(c.memory, 3, 16, c.stream));
    SHOW(cudaStreamEndCapture(c.other, &graph));
    tell("that stops it", status_of(c.stream) == 2);
    SHOW(cudaStreamEndCapture(c.stream, &graph));
    api.cudaStreamBeginCapture(c.stream, cudaStreamCaptureModeGlobal);
    api.cudaMemsetAsync(c.memory, 1, 16, c.stream);
    api.cudaEventRecord(c.inside, c.stream);
    api.cudaStreamWaitEvent(c.other, c.inside, 0);
    api.cudaMemsetAsync(c.memory, 2, 16, c.other);
    SHOW(cudaStreamEndCapture(c.stream, &graph));
    tell("unjoined: nothing captures any more",
         status_of(c.stream) == 0 && status_of(c.other) == 0 && graph == NULL);
    api.cudaStreamBeginCapture(c.stream, cudaStreamCaptureModeGlobal);
    api.cudaMemsetAsync(c.memory, 1, 16, c.stream);
    api.cudaEventRecord(c.inside, c.stream);
    api.cudaStreamWaitEvent(c.other, c.inside, 0);
    api.cudaMemsetAsync(c.memory, 2, 16, c.other);
    api.cudaMemsetAsync(c.memory, 3, 16, c.stream);
    SHOW(cudaEventRecord(c.timed, c.other));
    SHOW(cudaStreamWaitEvent(c.stream, c.timed, 0));
    SHOW(cudaStreamGetCaptureInfo(c.stream, &status, NULL, NULL, &nodes, NULL, &count));
    tell("the next work depends on two nodes", count == 2);
    SHOW(cudaMemsetAsync(c.memory, 4, 16, c.stream));
    SHOW(cudaStreamGetCaptureInfo(c.stream, &status, NULL, NULL, &nodes, NULL, &count));
    tell("then on one", count == 1);
    cudaGraphNode_t last = nodes ? nodes[0] : NULL;
    size_t dependencies = 9;
    SHOW(cudaGraphNodeGetDependencies(last, NULL, NULL, &dependencies));
    tell("which has two", dependencies == 2);
    SHOW(cudaStreamUpdateCaptureDependencies(c.stream, NULL, NULL, 0, 1));
    SHOW(cudaStreamGetCaptureInfo(c.stream, &status, NULL, NULL, &nodes, NULL, &count));
    tell("none is left", count == 0);
    SHOW(cudaStreamUpdateCaptureDependencies(c.stream, &last, NULL, 1, 0));
    SHOW(cudaStreamUpdateCaptureDependencies(c.stream, &last, NULL, 1, 9));
    SHOW(cudaStreamUpdateCaptureDependencies(c.other, NULL, NULL, 0, 0));
    SHOW(cudaStreamUpdateCaptureDependencies(c.spare, NULL, NULL, 0, 0));
    SHOW(cudaStreamEndCapture(c.stream, &graph));
    tell("the other stopped too", status_of(c.other) == 0);
    printf("the graph has");
    tell_graph(graph);
    printf("\n");
    SHOW(cudaEventQuery(c.inside));
    SHOW(cudaEventSynchronize(c.inside));
    SHOW(cudaStreamWaitEvent(c.other, c.inside, 0));
    SHOW(cudaEventRecord(c.inside, c.other));
    SHOW(cudaEventSynchronize(c.inside));
    SHOW(cudaGraphDestroy(graph));
    release();
}

static void two_captures(void)
{
    cudaGraph_t graph = NULL;
    cudaEvent_t event = NULL;
    printf("# two captures\n");
    prepare(cudaStreamNonBlocking);
    api.cudaEventCreateWithFlags(&event, cudaEventDisableTiming);
    SHOW(cudaStreamBeginCapture(c.stream, cudaStreamCaptureModeGlobal));
    SHOW(cudaStreamBeginCapture(c.other, cudaStreamCaptureModeGlobal));
    api.cudaMemsetAsync(c.memory, 1, 16, c.stream);
    SHOW(cudaEventRecord(event, c.stream));
    SHOW(cudaStreamWaitEvent(c.other, event, 0));
    tell("the first is invalid", status_of(c.stream) == 2);
    tell("the second is invalid", status_of(c.other) == 2);
    SHOW(cudaStreamEndCapture(c.other, &graph));
    SHOW(cudaStreamEndCapture(c.stream, &graph));
    SHOW(cudaStreamBeginCapture(c.blocking, cudaStreamCaptureModeRelaxed));
    SHOW(cudaStreamIsCapturing(NULL, (enum cudaStreamCaptureStatus *)&(int){0}));
    SHOW(cudaStreamWaitEvent(NULL, c.outside, 0));
    tell("still active", status_of(c.blocking) == 1);
    SHOW(cudaStreamEndCapture(c.blocking, &graph));
    SHOW(cudaGraphDestroy(graph));
    api.cudaEventDestroy(event);
    release();
}

/* --- threads ----------------------------------------------------------------------------- */

static int of_malloc, of_end, of_relaxed, of_local;

static void *elsewhere(void *unused)
{
    void *memory = NULL;
    cudaGraph_t graph = NULL;
    enum cudaStreamCaptureMode mode = cudaStreamCaptureModeRelaxed;
    (void)unused;
    api.cudaSetDevice(0);
    api.cudaThreadExchangeStreamCaptureMode(&mode);
    of_relaxed = (int)api.cudaMalloc(&memory, 512);
    api.cudaThreadExchangeStreamCaptureMode(&mode);
    mode = cudaStreamCaptureModeThreadLocal;
    api.cudaThreadExchangeStreamCaptureMode(&mode);
    of_local = (int)api.cudaMalloc(&memory, 512);
    api.cudaThreadExchangeStreamCaptureMode(&mode);
    of_malloc = (int)api.cudaMalloc(&memory, 512);
    of_end = (int)api.cudaStreamEndCapture(c.stream, &graph);
    return NULL;
}

static void threads(void)
{
    printf("# captures and other threads\n");
    for (int mode = 0; mode < 3; mode++) {
        pthread_t thread;
        cudaGraph_t graph = NULL;
        prepare(cudaStreamNonBlocking);
        printf("capture mode %s\n", mode_names[mode]);
        SHOW(cudaStreamBeginCapture(c.stream, (enum cudaStreamCaptureMode)mode));
        pthread_create(&thread, NULL, elsewhere, NULL);
        pthread_join(thread, NULL);
        show("in another, relaxed thread: cudaMalloc", of_relaxed);
        show("in another, thread-local thread: cudaMalloc", of_local);
        show("in another thread: cudaMalloc", of_malloc);
        show("in another thread: cudaStreamEndCapture", of_end);
        SHOW(cudaStreamEndCapture(c.stream, &graph));
        release();
        prepare(cudaStreamNonBlocking);
        enum cudaStreamCaptureMode relaxed = cudaStreamCaptureModeRelaxed;
        SHOW(cudaStreamBeginCapture(c.stream, (enum cudaStreamCaptureMode)mode));
        SHOW(cudaThreadExchangeStreamCaptureMode(&relaxed));
        SHOW(cudaMalloc(&c.memory, 512));
        SHOW(cudaEventQuery(c.outside));
        SHOW(cudaStreamSynchronize(c.other));
        SHOW(cudaDeviceSynchronize());
        SHOW(cudaThreadExchangeStreamCaptureMode(&relaxed));
        SHOW(cudaStreamEndCapture(c.stream, &graph));
        release();
    }
}

void capture_section(void)
{
    printf("# captures\n");
    begin_and_end();
    over_streams();
    two_captures();
    threads();
    printf("# calls within a capture\n");
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
        for (int mode = 0; mode < 3; mode++) {
            one_call(i, (enum cudaStreamCaptureMode)mode, cudaStreamNonBlocking);
        }
        one_call(i, cudaStreamCaptureModeGlobal, 0);
    }
}

/* --- graphs ------------------------------------------------------------------------------ */

static int host_runs;

static void count_run(void *data)
{
    (void)data;
    host_runs++;
}

static cudaGraph_t captured_graph(unsigned char *memory, unsigned char *host)
{
    cudaGraph_t graph = NULL;
    api.cudaStreamBeginCapture(c.stream, cudaStreamCaptureModeGlobal);
    api.cudaMemcpyAsync(memory, host, 64, cudaMemcpyHostToDevice, c.stream);
    api.cudaEventRecord(c.inside, c.stream);
    api.cudaStreamWaitEvent(c.other, c.inside, 0);
    api.cudaMemcpyAsync(memory + 64, memory, 64, cudaMemcpyDeviceToDevice, c.other);
    api.cudaMemcpyAsync(memory + 128, memory, 64, cudaMemcpyDeviceToDevice, c.stream);
    api.cudaEventRecord(c.timed, c.other);
    api.cudaStreamWaitEvent(c.stream, c.timed, 0);
    api.cudaMemcpyAsync(host + 64, memory + 64, 128, cudaMemcpyDeviceToHost, c.stream);
    api.cudaLaunchHostFunc(c.stream, count_run, NULL);
    show("the capture ends", (int)api.cudaStreamEndCapture(c.stream, &graph));
    return graph;
}

static void graph_objects(cudaGraph_t graph)
{
    cudaGraphNode_t nodes[16], roots[4];
    size_t count = 0;
    enum cudaGraphNodeType type;
    SHOW(cudaGraphGetNodes(graph, NULL, &count));
    tell("it has 5 nodes", count == 5);
    SHOW(cudaGraphGetNodes(graph, NULL, NULL));
    SHOW(cudaGraphGetNodes(NULL, NULL, &count));
    count = 16;
    SHOW(cudaGraphGetNodes(graph, nodes, &count));
    tell("again 5", count == 5);
    count = 4;
    SHOW(cudaGraphGetRootNodes(graph, roots, &count));
    tell("one of them a root", count == 1);
    SHOW(cudaGraphNodeGetType(roots[0], &type));
    tell("it is a copy", type == cudaGraphNodeTypeMemcpy);
    SHOW(cudaGraphNodeGetType(NULL, &type));
    SHOW(cudaGraphNodeGetType(roots[0], NULL));
    SHOW(cudaGraphNodeGetDependencies(roots[0], NULL, NULL, &count));
    tell("it depends on nothing", count == 0);
    SHOW(cudaGraphNodeGetDependencies(NULL, NULL, NULL, &count));
    SHOW(cudaGraphNodeGetDependencies(roots[0], NULL, NULL, NULL));
    SHOW(cudaGraphDebugDotPrint(graph, "/dev/null", 0));
    SHOW(cudaGraphDebugDotPrint(graph, NULL, 0));
    SHOW(cudaGraphDebugDotPrint(NULL, "/dev/null", 0));
}

void graph_section(void)
{
    cudaGraphExec_t exec = NULL, empty = NULL;
    cudaGraph_t created = NULL;
    printf("# graphs\n");
    prepare(cudaStreamNonBlocking);
    unsigned char *host = c.host;
    memset(host, 9, 64);
    memset(host + 64, 0, 128);
    cudaGraph_t graph = captured_graph(c.memory, host);
    graph_objects(graph);
    SHOW(cudaGraphInstantiate(&exec, graph, 0));
    SHOW(cudaGraphInstantiateWithFlags(&empty, graph, 0x1000));
    SHOW(cudaGraphInstantiate(NULL, graph, 0));
    SHOW(cudaGraphInstantiate(&empty, NULL, 0));
    SHOW(cudaGraphUpload(exec, c.stream));
    SHOW(cudaGraphLaunch(exec, c.stream));
    SHOW(cudaStreamSynchronize(c.stream));
    tell("the captured work was done", host[64] == 9 && host[191] == 9 && host_runs == 1);
    host[0] = 5;
    SHOW(cudaGraphLaunch(exec, c.other));
    SHOW(cuGraphLaunch(exec, c.other));
    SHOW(cudaStreamSynchronize(c.other));
    tell("and again", host[64] == 5 && host_runs == 3);
    SHOW(cudaGraphLaunch(NULL, c.stream));
    SHOW(cudaGraphLaunch(exec, NULL));
    SHOW(cudaDeviceSynchronize());
    SHOW(cudaGraphDestroy(graph));
    SHOW(cudaGraphLaunch(exec, c.stream));
    SHOW(cudaGraphExecDestroy(exec));
    SHOW(cudaStreamSynchronize(c.stream));
    tell("the work was done though the graph was destroyed", host_runs == 5);
    SHOW(cudaGraphExecDestroy(NULL));
    SHOW(cudaGraphDestroy(NULL));
    SHOW(cudaGraphCreate(&created, 0));
    SHOW(cudaGraphCreate(NULL, 0));
    SHOW(cudaGraphCreate(&created, 1));
    SHOW(cudaStreamBeginCaptureToGraph(c.stream, created, NULL, NULL, 0,
                                       cudaStreamCaptureModeGlobal));
    SHOW(cudaMemsetAsync(c.memory, 1, 16, c.stream));
    SHOW(cudaStreamEndCapture(c.stream, &graph));
    tell("it is the graph that was given", graph == created);
    SHOW(cudaStreamBeginCaptureToGraph(c.stream, NULL, NULL, NULL, 0, cudaStreamCaptureModeGlobal));
    SHOW(cudaGraphInstantiate(&empty, created, 0));
    SHOW(cudaGraphLaunch(empty, c.stream));
    SHOW(cudaStreamSynchronize(c.stream));
    SHOW(cudaGraphExecDestroy(empty));
    SHOW(cudaGraphDestroy(created));
    release();
}
