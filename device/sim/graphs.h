/* graphs.h - graphs, which captures build, and executable ones, whose work launches queue. */
#ifndef GMD_SIM_GRAPHS_H
#define GMD_SIM_GRAPHS_H

#include "entry.h"

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

/* NULL or false: the host has no memory. */
graph *graph_new(void);
void graph_delete(graph *g);
bool graph_add(graph *g, const entry *work, const uint32_t *after, uint32_t count);
graph *graph_find(cudaGraph_t handle); /* NULL: there is none */
cudaGraph_t graph_handle(const graph *g);
cudaGraphNode_t graph_node_handle(const graph *g, uint32_t node);
/* The graph and the number of a node; NULL: there is no such node. */
graph *graph_find_node(cudaGraphNode_t handle, uint32_t *number);

/* Executable graphs. */
graph *exec_new(const graph *from);
void exec_delete(graph *exec);
graph *exec_find(cudaGraphExec_t handle);
cudaGraphExec_t exec_handle(const graph *exec);

void graphs_reset(void);
const char *graphs_violation(void); /* what does not hold of graphs; NULL: all does */

#endif
