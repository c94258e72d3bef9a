/* The functions on graphs.
 *
 * A launch queues the nodes on its stream one after another, in the order in which they were
 * captured, which their dependencies always allow; branches that could run side by side do not. */
#include "calls.h"
#include "capture.h"
#include "event_calls.h"
#include "graphs.h"
#include "happens_before.h"
#include "point.h"
#include "push.h"
#include "queue.h"
#include "streams.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- looking at graphs ------------------------------------------------------------------- */

static enum cudaGraphNodeType type_of(const graph_node *node)
{
    switch (node->work.kind) {
    case ENTRY_KERNEL:
        return cudaGraphNodeTypeKernel;
    case ENTRY_COPY:
        return cudaGraphNodeTypeMemcpy;
    case ENTRY_FILL:
        return cudaGraphNodeTypeMemset;
    case ENTRY_HOST:
        return cudaGraphNodeTypeHost;
    case ENTRY_RECORD:
        return cudaGraphNodeTypeEventRecord;
    case ENTRY_WAIT_EVENT:
        return cudaGraphNodeTypeWaitEvent;
    default:
        return cudaGraphNodeTypeEmpty;
    }
}

static int no_such(sim_call *call)
{
    return call_misuse(call, cudaErrorInvalidValue,
                       "the graph or node was never made, or is destroyed, or no place is given");
}

/* As many handles as there is room for; the others become NULL. */
static void put(const graph *g, const uint32_t *numbers, uint32_t available, cudaGraphNode_t *nodes,
                size_t *count)
{
    for (size_t i = 0; nodes && i < *count; i++) {
        nodes[i] = i < available ? graph_node_handle(g, numbers[i]) : NULL;
    }
    *count = !nodes || available < *count ? available : *count;
}

static int list_nodes(sim_call *call, cudaGraph_t handle, bool roots_only, cudaGraphNode_t *nodes,
                      size_t *count)
{
    const graph *g = graph_find(handle);
    if (!g || !count) {
        return no_such(call);
    }
    uint32_t *numbers = malloc((g->count + 1) * sizeof *numbers), found = 0;
    if (!numbers) {
        return cudaErrorMemoryAllocation;
    }
    for (uint32_t i = 0; i < g->count; i++) {
        if (!roots_only || g->nodes[i].after_count == 0) {
            numbers[found++] = i;
        }
    }
    put(g, numbers, found, nodes, count);
    free(numbers);
    return cudaSuccess;
}

static int node_type(sim_call *call, cudaGraphNode_t handle, enum cudaGraphNodeType *type)
{
    uint32_t number;
    const graph *g = graph_find_node(handle, &number);
    if (!g || !type) {
        return no_such(call);
    }
    *type = type_of(&g->nodes[number]);
    return cudaSuccess;
}

static int dependencies(sim_call *call, cudaGraphNode_t handle, cudaGraphNode_t *nodes,
                        cudaGraphEdgeData *edges, size_t *count)
{
    uint32_t number;
    const graph *g = graph_find_node(handle, &number);
    if (!g || !count) {
        return no_such(call);
    }
    put(g, g->nodes[number].after, g->nodes[number].after_count, nodes, count);
    if (edges && nodes) {
        memset(edges, 0, *count * sizeof *edges);
    }
    return cudaSuccess;
}

static int print_dot(sim_call *call, cudaGraph_t handle, const char *path)
{
    static const char *const names[] = {"kernel", "memcpy", "memset",     "host",
                                        "graph",  "empty",  "wait_event", "event_record"};
    const graph *g = graph_find(handle);
    FILE *file = g && path ? fopen(path, "we") : NULL;
    if (!file) {
        return g && path ? cudaErrorOperatingSystem : no_such(call);
    }
    fprintf(file, "digraph gmd {\n");
    for (uint32_t i = 0; i < g->count; i++) {
        fprintf(file, "  n%u [label=\"%s\"];\n", i, names[type_of(&g->nodes[i])]);
        for (uint32_t k = 0; k < g->nodes[i].after_count; k++) {
            fprintf(file, "  n%u -> n%u;\n", g->nodes[i].after[k], i);
        }
    }
    fprintf(file, "}\n");
    return fclose(file) == 0 ? cudaSuccess : cudaErrorOperatingSystem;
}

static int create(sim_call *call, cudaGraph_t *out, unsigned flags)
{
    if (!out || flags) {
        return call_misuse(call, cudaErrorInvalidValue,
                           "no place for the new graph, or unknown flags");
    }
    graph *g = graph_new();
    if (g) {
        *out = graph_handle(g);
    }
    return g ? cudaSuccess : cudaErrorMemoryAllocation;
}

static int destroy(sim_call *call, cudaGraph_t handle)
{
    graph *g = graph_find(handle);
    if (!g || g->is_capturing) {
        return no_such(call);
    }
    graph_delete(g);
    return cudaSuccess;
}

SIM_CALL(cudaGraphCreate, (cudaGraph_t * out, unsigned flags), create(&call, out, flags))
SIM_CALL(cudaGraphDestroy, (cudaGraph_t handle), destroy(&call, handle))
SIM_CALL(cudaGraphGetNodes, (cudaGraph_t handle, cudaGraphNode_t *nodes, size_t *count),
         list_nodes(&call, handle, false, nodes, count))
SIM_CALL(cudaGraphGetRootNodes, (cudaGraph_t handle, cudaGraphNode_t *nodes, size_t *count),
         list_nodes(&call, handle, true, nodes, count))
SIM_CALL(cudaGraphNodeGetType, (cudaGraphNode_t handle, enum cudaGraphNodeType *type),
         node_type(&call, handle, type))
SIM_CALL(cudaGraphNodeGetDependencies,
         (cudaGraphNode_t handle, cudaGraphNode_t *nodes, cudaGraphEdgeData *edges, size_t *count),
         dependencies(&call, handle, nodes, edges, count))

cudaError_t gmd_sim_cudaGraphDebugDotPrint(cudaGraph_t handle, const char *path, unsigned flags)
{
    sim_call call;
    (void)flags; /* which parameters are printed: none are */
    if (call_enter(&call, CALL_cudaGraphDebugDotPrint)) {
        call.record.result = print_dot(&call, handle, path);
    }
    return (cudaError_t)call_leave(&call);
}

/* --- executable graphs ------------------------------------------------------------------- */

/* Freed on launch, upload, launched from the device, priorities of nodes: none changes what is
 * simulated. */
enum { INSTANTIATE_FLAGS = 0xF };

static int instantiate(sim_call *call, cudaGraphExec_t *out, cudaGraph_t handle,
                       unsigned long long flags)
{
    const graph *g = graph_find(handle);
    if (!out || !g || (flags & ~(unsigned long long)INSTANTIATE_FLAGS)) {
        return no_such(call);
    }
    const graph *exec = exec_new(g);
    if (!exec) {
        return cudaErrorMemoryAllocation;
    }
    *out = exec_handle(exec);
    return cudaSuccess;
}

static bool queue_node(const graph_node *node, stream *s)
{
    switch (node->work.kind) {
    case ENTRY_RECORD:
        return event_record_by_graph(node->work.event, s) == cudaSuccess;
    case ENTRY_WAIT_EVENT:
        return event_wait_by_graph(node->work.event, s) == cudaSuccess;
    default: {
        entry work;
        if (!entry_copy(&work, &node->work)) {
            return false;
        }
        if (work.kind == ENTRY_HOST) {
            work.host.before = gmd_past_keep(s->before);
        }
        bool is_queued = stream_push(s, work);
        if (!is_queued) {
            entry_drop(&work);
        }
        return is_queued;
    }
    }
}

static int check_launch(sim_call *call, const graph *exec, stream *s)
{
    if (!s) {
        return cudaErrorInvalidResourceHandle;
    }
    if (!exec) {
        return no_such(call);
    }
    if (s->capture) {
        return capture_refuse(call, s, cudaErrorStreamCaptureUnsupported,
                              "a graph cannot be launched or uploaded in a capturing stream");
    }
    return capture_check_work(call, s);
}

static int launch(sim_call *call, cudaGraphExec_t handle, cudaStream_t on)
{
    const graph *exec = exec_find(handle);
    stream *s = stream_of(call, on);
    int refused = check_launch(call, exec, s);
    if (refused) {
        return refused;
    }
    bool is_queued = stream_order_default(s);
    for (uint32_t i = 0; is_queued && i < exec->count; i++) {
        is_queued = queue_node(&exec->nodes[i], s);
        exec = exec_find(handle); /* a host function may have run */
        if (!exec) {
            return cudaSuccess;
        }
    }
    return is_queued ? cudaSuccess : cudaErrorMemoryAllocation;
}

static int upload(sim_call *call, cudaGraphExec_t handle, cudaStream_t on)
{
    return check_launch(call, exec_find(handle), stream_of(call, on));
}

static int destroy_exec(sim_call *call, cudaGraphExec_t handle)
{
    graph *exec = exec_find(handle);
    if (!exec) {
        return no_such(call);
    }
    exec_delete(exec);
    return cudaSuccess;
}

SIM_CALL(cudaGraphInstantiate, (cudaGraphExec_t * out, cudaGraph_t from, unsigned long long flags),
         instantiate(&call, out, from, flags))
SIM_CALL(cudaGraphInstantiateWithFlags,
         (cudaGraphExec_t * out, cudaGraph_t from, unsigned long long flags),
         instantiate(&call, out, from, flags))
SIM_CALL(cudaGraphUpload, (cudaGraphExec_t handle, cudaStream_t on), upload(&call, handle, on))
SIM_CALL(cudaGraphLaunch, (cudaGraphExec_t handle, cudaStream_t on), launch(&call, handle, on))
SIM_CALL(cudaGraphExecDestroy, (cudaGraphExec_t handle), destroy_exec(&call, handle))
SIM_DRIVER_CALL(cuGraphLaunch, (CUgraphExec handle, CUstream on), launch(&call, handle, on))
