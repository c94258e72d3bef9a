/* capture.h - what captures and graphs share: captures build graphs, launches queue their work. */
#ifndef GMD_SIM_CAPTURE_H
#define GMD_SIM_CAPTURE_H

#include "queue.h"

typedef struct graph_node {
    entry work;
    uint32_t *after; /* nodes of the same graph, all of them earlier ones */
    uint32_t after_count;
} graph_node;

typedef struct graph {
    graph_node *nodes;
    uint32_t count, capacity;
    uint32_t slot;
    bool is_capturing;
} graph;

/* graphs.c: NULL or false: the host has no memory. */
graph *graph_new(void);
void graph_delete(graph *g);
bool graph_add(graph *g, const entry *work, const uint32_t *after, uint32_t count);
graph *graph_find(cudaGraph_t handle);
cudaGraph_t graph_handle(const graph *g);
cudaGraphNode_t graph_node_handle(const graph *g, uint32_t node);
/* The node's number; false: it is none of this graph. */
bool graph_node_number(const graph *g, cudaGraphNode_t handle, uint32_t *number);

#endif
