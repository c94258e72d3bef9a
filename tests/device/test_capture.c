/* Captures and graphs, beyond what the transcript of the real device shows. */
#include "device_test.h"

static cudaStream_t begun(enum cudaStreamCaptureMode mode)
{
    cudaStream_t stream = new_stream(cudaStreamNonBlocking);
    assert_success(cudaStreamBeginCapture(stream, mode));
    return stream;
}

static cudaGraphExec_t instantiated(cudaStream_t stream)
{
    cudaGraph_t graph = NULL;
    cudaGraphExec_t exec = NULL;
    assert_success(cudaStreamEndCapture(stream, &graph));
    assert_success(cudaGraphInstantiate(&exec, graph, 0));
    assert_success(cudaGraphDestroy(graph));
    return exec;
}

TEST_F(fresh_device, captured_work_is_not_queued)
{
    cudaStream_t stream = begun(cudaStreamCaptureModeGlobal);
    assert_success(gmd_sim_launch(stream, 1000, NULL, 0));
    assert_int_equal(gmd_sim_pending(stream), 0);
}

TEST_F(fresh_device, a_launch_queues_each_captured_entry)
{
    cudaStream_t stream = begun(cudaStreamCaptureModeGlobal);
    assert_success(gmd_sim_launch(stream, 1000, NULL, 0));
    assert_success(gmd_sim_launch(stream, 1000, NULL, 0));
    cudaGraphExec_t exec = instantiated(stream);
    assert_success(cudaGraphLaunch(exec, stream));
    assert_int_equal(gmd_sim_pending(stream), 2);
}

TEST_F(fresh_device, a_launched_kernel_touches_what_was_captured)
{
    void *memory = device_malloc(4096);
    cudaStream_t stream = begun(cudaStreamCaptureModeGlobal);
    gmd_sim_access ranges[5];
    for (int i = 0; i < 5; i++) { /* more than an entry holds itself */
        ranges[i] = (gmd_sim_access){.address = (uintptr_t)memory, .size = 4096};
    }
    assert_success(gmd_sim_launch(stream, 1000, ranges, 5));
    cudaGraphExec_t exec = instantiated(stream);
    assert_success(cudaFree(memory));
    assert_success(cudaGraphLaunch(exec, stream));
    assert_int_equal(cudaStreamSynchronize(stream), cudaErrorIllegalAddress);
}

TEST_F(fresh_device, an_executable_graph_outlives_its_graph)
{
    cudaStream_t stream = begun(cudaStreamCaptureModeGlobal);
    assert_success(gmd_sim_launch(stream, 1000, NULL, 0));
    cudaGraphExec_t exec = instantiated(stream); /* destroys the graph */
    assert_success(cudaGraphLaunch(exec, stream));
    assert_success(cudaGraphLaunch(exec, stream));
    assert_success(cudaStreamSynchronize(stream));
}

TEST_F(fresh_device, a_refused_call_is_misuse)
{
    void *memory;
    begun(cudaStreamCaptureModeGlobal);
    assert_int_equal(cudaMalloc(&memory, 512), cudaErrorStreamCaptureUnsupported);
    assert_int_equal(gmd_sim_misuse_count(), 1);
}

TEST_F(fresh_device, a_refused_allocation_allocates_nothing)
{
    void *memory;
    gmd_sim_device_state device;
    begun(cudaStreamCaptureModeThreadLocal);
    assert_int_equal(cudaMalloc(&memory, 512), cudaErrorStreamCaptureUnsupported);
    assert_int_equal(gmd_sim_device(0, &device), 0);
    assert_int_equal(device.allocation_count, 0);
}

TEST_F(fresh_device, a_reset_ends_captures_and_graphs)
{
    cudaStream_t stream = begun(cudaStreamCaptureModeGlobal);
    assert_success(gmd_sim_launch(stream, 1000, NULL, 0));
    cudaGraphExec_t exec = instantiated(stream);
    begun(cudaStreamCaptureModeGlobal);
    gmd_sim_config config = device_config();
    device_reset(&config);
    void *memory;
    assert_success(cudaMalloc(&memory, 512));
    assert_int_equal(cudaGraphLaunch(exec, NULL), cudaErrorInvalidValue);
}

TEST_F(fresh_device, captured_work_is_no_order)
{
    cudaStream_t captured = begun(cudaStreamCaptureModeGlobal);
    cudaStream_t other = new_stream(cudaStreamNonBlocking);
    cudaEvent_t event;
    assert_success(gmd_sim_launch(other, 1000, NULL, 0));
    gmd_sim_point work;
    assert_int_equal(gmd_sim_point_of(0, other, &work), 0);
    assert_success(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
    assert_success(cudaEventRecord(event, captured));
    assert_success(cudaStreamWaitEvent(captured, event, 0));
    assert_false(gmd_sim_is_ordered(work, 0, captured));
}

TEST_F(fresh_device, the_mode_of_a_thread_is_the_same_for_runtime_and_driver)
{
    enum cudaStreamCaptureMode mode = cudaStreamCaptureModeRelaxed;
    assert_success(cudaThreadExchangeStreamCaptureMode(&mode));
    assert_int_equal(mode, cudaStreamCaptureModeGlobal);
    CUstreamCaptureMode driver_mode = (CUstreamCaptureMode)cudaStreamCaptureModeThreadLocal;
    assert_int_equal(cuThreadExchangeStreamCaptureMode(&driver_mode), CUDA_SUCCESS);
    assert_int_equal(driver_mode, cudaStreamCaptureModeRelaxed);
    mode = (enum cudaStreamCaptureMode)7;
    assert_int_equal(cudaThreadExchangeStreamCaptureMode(&mode), cudaErrorInvalidValue);
}

TEST_F(fresh_device, the_nodes_of_a_graph_tell_what_they_do)
{
    cudaStream_t stream = begun(cudaStreamCaptureModeRelaxed);
    cudaGraph_t graph;
    cudaGraphNode_t nodes[2];
    enum cudaGraphNodeType type;
    size_t count = 2;
    assert_success(gmd_sim_launch(stream, 10, NULL, 0));
    assert_success(cudaStreamEndCapture(stream, &graph));
    assert_success(cudaGraphGetNodes(graph, nodes, &count));
    assert_int_equal(count, 1);
    assert_success(cudaGraphNodeGetType(nodes[0], &type));
    assert_int_equal(type, cudaGraphNodeTypeKernel);
}

TEST_F(fresh_device, a_launched_graph_records_and_waits_for_events_outside)
{
    cudaEvent_t before = new_event(0), after = new_event(0);
    cudaStream_t other = new_stream(cudaStreamNonBlocking);
    cudaStream_t stream = begun(cudaStreamCaptureModeRelaxed);
    gmd_sim_point work;
    assert_success(cudaStreamWaitEvent(stream, before, cudaEventWaitExternal));
    assert_success(cudaEventRecordWithFlags(after, stream, cudaEventRecordExternal));
    cudaGraphExec_t exec = instantiated(stream);
    launch(other, 1000);
    assert_int_equal(gmd_sim_point_of(0, other, &work), 0);
    assert_success(cudaEventRecord(before, other));
    assert_success(cudaGraphLaunch(exec, stream));
    assert_true(gmd_sim_is_ordered(work, 0, stream));
    assert_int_equal(cudaEventQuery(after), cudaErrorNotReady);
    assert_success(cudaStreamSynchronize(stream));
    assert_success(cudaEventQuery(after));
}
