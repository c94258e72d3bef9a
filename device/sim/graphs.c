#include "graphs.h"

#include "queue.h"

#include "gmd_grow.h"

#include <stdlib.h>

/* Handles count up; what is destroyed leaves NULL. [0] is not used. */
typedef struct table {
    graph **slots;
    uint32_t count, capacity;
} table;

static table graphs, execs;

enum { NODE_BITS = 19, NODES_MAX = 1 << NODE_BITS };

static bool table_add(table *t, graph *g)
{
    if (t->count + 1 >= NODES_MAX || !GMD_GROW(&t->slots, &t->capacity, t->count + 2)) {
        return false;
    }
    g->slot = ++t->count;
    t->slots[g->slot] = g;
    return true;
}

static graph *table_find(const table *t, uint64_t slot)
{
    return slot && slot <= t->count ? t->slots[slot] : NULL;
}

static void free_graph(graph *g)
{
    for (uint32_t i = 0; i < g->count; i++) {
        entry_drop(&g->nodes[i].work);
        free(g->nodes[i].after);
    }
    free(g->nodes);
    free(g);
}

static void table_remove(table *t, graph *g)
{
    t->slots[g->slot] = NULL;
    free_graph(g);
}

static void table_clear(table *t)
{
    for (uint32_t slot = 1; slot <= t->count; slot++) {
        if (t->slots[slot]) {
            free_graph(t->slots[slot]);
        }
    }
    t->count = 0;
}

void graphs_reset(void)
{
    table_clear(&graphs);
    table_clear(&execs);
}

static graph *new_in(table *t)
{
    graph *g = calloc(1, sizeof *g);
    if (g && !table_add(t, g)) {
        free(g);
        return NULL;
    }
    return g;
}

graph *graph_new(void)
{
    return new_in(&graphs);
}

void graph_delete(graph *g)
{
    table_remove(&graphs, g);
}

bool graph_add(graph *g, const entry *work, const uint32_t *after, uint32_t count)
{
    if (g->count == NODES_MAX || !GMD_GROW(&g->nodes, &g->capacity, g->count + 1)) {
        return false;
    }
    uint32_t *copy = malloc((count + 1) * sizeof *copy);
    if (!copy) {
        return false;
    }
    for (uint32_t i = 0; i < count; i++) {
        copy[i] = after[i];
    }
    g->nodes[g->count++] = (graph_node){.work = *work, .after = copy, .after_count = count};
    return true;
}

graph *graph_find(cudaGraph_t handle)
{
    return table_find(&graphs, handle_serial((uintptr_t)handle, HANDLE_GRAPH));
}

cudaGraph_t graph_handle(const graph *g)
{
    return (cudaGraph_t)(uintptr_t)handle_make(HANDLE_GRAPH, g->slot);
}

cudaGraphNode_t graph_node_handle(const graph *g, uint32_t node)
{
    uint64_t serial = (uint64_t)g->slot << NODE_BITS | node;
    return (cudaGraphNode_t)(uintptr_t)handle_make(HANDLE_GRAPH_NODE, serial);
}

graph *graph_find_node(cudaGraphNode_t handle, uint32_t *number)
{
    uint64_t serial = handle_serial((uintptr_t)handle, HANDLE_GRAPH_NODE);
    graph *g = table_find(&graphs, serial >> NODE_BITS);
    *number = (uint32_t)(serial & (NODES_MAX - 1));
    return g && *number < g->count ? g : NULL;
}

/* --- executable graphs ------------------------------------------------------------------- */

static bool copy_nodes(graph *to, const graph *from)
{
    for (uint32_t i = 0; i < from->count; i++) {
        entry work;
        const graph_node *node = &from->nodes[i];
        if (!entry_copy(&work, &node->work)) {
            return false;
        }
        if (!graph_add(to, &work, node->after, node->after_count)) {
            entry_drop(&work);
            return false;
        }
    }
    return true;
}

graph *exec_new(const graph *from)
{
    graph *exec = new_in(&execs);
    if (exec && !copy_nodes(exec, from)) {
        table_remove(&execs, exec);
        return NULL;
    }
    return exec;
}

void exec_delete(graph *exec)
{
    table_remove(&execs, exec);
}

graph *exec_find(cudaGraphExec_t handle)
{
    return table_find(&execs, handle_serial((uintptr_t)handle, HANDLE_GRAPH_EXEC));
}

cudaGraphExec_t exec_handle(const graph *exec)
{
    return (cudaGraphExec_t)(uintptr_t)handle_make(HANDLE_GRAPH_EXEC, exec->slot);
}

/* --- validity ---------------------------------------------------------------------------- */

static const char *graph_violation(const graph *g)
{
    for (uint32_t i = 0; i < g->count; i++) {
        const graph_node *node = &g->nodes[i];
        for (uint32_t k = 0; k < node->after_count; k++) {
            if (node->after[k] >= i) {
                return "a node depends on earlier ones";
            }
        }
    }
    return NULL;
}

static const char *table_violation(const table *t)
{
    for (uint32_t slot = 1; slot <= t->count; slot++) {
        const graph *g = t->slots[slot];
        const char *violation = !g ? NULL
                                : g->slot == slot && g->count <= g->capacity
                                    ? graph_violation(g)
                                    : "a graph knows its place";
        if (violation) {
            return violation;
        }
    }
    return NULL;
}

const char *graphs_violation(void)
{
    const char *violation = table_violation(&graphs);
    return violation ? violation : table_violation(&execs);
}
