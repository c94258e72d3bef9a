/* Every call that names a stream, with one that is destroyed: it is refused, reported as misuse,
 * and changes nothing. */
#include "device_test.h"

#include <string.h>

static cudaStream_t gone;
static void *memory;
static cudaEvent_t event;

static int destroy_a_stream(void **state)
{
    int failed = fresh_device(state);
    gone = new_stream(0);
    memory = device_malloc(MIB);
    event = new_event(0);
    return failed || cudaStreamDestroy(gone) != cudaSuccess;
}

FIXTURE(gone_stream, destroy_a_stream, NULL);

/* Both APIs have the same number for it. */
#define assert_gone(call)                                                                          \
    do {                                                                                           \
        uint64_t misuses = gmd_sim_misuse_count();                                                 \
        int result = (int)(call);                                                                  \
        if (result != cudaErrorInvalidResourceHandle || gmd_sim_misuse_count() != misuses + 1) {   \
            fail_msg("%s: answered %d", #call, result);                                            \
        }                                                                                          \
    } while (0)

static void nothing(void *data)
{
    (void)data;
}

static void nothing_as_callback(cudaStream_t stream, cudaError_t status, void *data)
{
    (void)stream;
    (void)status;
    (void)data;
}

TEST_F(gone_stream, what_is_asked_about_it)
{
    int priority, device;
    unsigned flags;
    unsigned long long id;
    CUcontext context;
    assert_gone(cudaStreamQuery(gone));
    assert_gone(cudaStreamSynchronize(gone));
    assert_gone(cudaStreamGetFlags(gone, &flags));
    assert_gone(cudaStreamGetPriority(gone, &priority));
    assert_gone(cudaStreamGetId(gone, &id));
    assert_gone(cudaStreamGetDevice(gone, &device));
    assert_gone(cudaStreamCopyAttributes(gone, NULL));
    assert_gone(cudaStreamDestroy(gone));
    assert_gone(cuStreamGetCtx(gone, &context));
}

TEST_F(gone_stream, what_is_queued_on_it)
{
    char here[16] = "";
    assert_gone(gmd_sim_launch(gone, 10, NULL, 0));
    assert_gone(cudaMemsetAsync(memory, 0, 16, gone));
    assert_gone(cudaMemset2DAsync(memory, 512, 0, 16, 2, gone));
    assert_gone(cudaMemcpyAsync(memory, here, 16, cudaMemcpyHostToDevice, gone));
    assert_gone(cudaMemcpyPeerAsync(memory, 0, memory, 0, 16, gone));
    assert_gone(cudaLaunchHostFunc(gone, nothing, NULL));
    assert_gone(cudaStreamAddCallback(gone, nothing_as_callback, NULL, 0));
    assert_gone(cuStreamWriteValue32_v2(gone, (uintptr_t)memory, 1, 0));
    assert_gone(cuStreamWaitValue32_v2(gone, (uintptr_t)memory, 1, 0));
    assert_success(cudaDeviceSynchronize());
}

TEST_F(gone_stream, events_that_are_recorded_or_waited_for_on_it)
{
    assert_gone(cudaEventRecord(event, gone));
    assert_gone(cudaEventRecordWithFlags(event, gone, 0));
    assert_gone(cudaStreamWaitEvent(gone, event, 0));
}

TEST_F(gone_stream, memory_that_is_ordered_by_it)
{
    void *piece = NULL;
    assert_gone(cudaMallocAsync(&piece, 512, gone));
    assert_null(piece);
    assert_success(cudaMallocAsync(&piece, 512, NULL));
    assert_gone(cudaFreeAsync(piece, gone));
    assert_success(cudaFreeAsync(piece, NULL));
}

TEST_F(gone_stream, captures_and_graphs_on_it)
{
    enum cudaStreamCaptureStatus status;
    cudaGraph_t graph;
    cudaGraphExec_t executable;
    assert_gone(cudaStreamBeginCapture(gone, cudaStreamCaptureModeRelaxed));
    assert_gone(cudaStreamIsCapturing(gone, &status));
    assert_gone(cudaStreamGetCaptureInfo(gone, &status, NULL, NULL, NULL, NULL, NULL));
    assert_gone(cudaStreamUpdateCaptureDependencies(gone, NULL, NULL, 0, 0));
    assert_gone(cudaStreamEndCapture(gone, &graph));
    assert_success(cudaGraphCreate(&graph, 0));
    assert_success(cudaGraphInstantiate(&executable, graph, 0));
    assert_gone(cudaGraphUpload(executable, gone));
    assert_gone(cudaGraphLaunch(executable, gone));
}
