/* heap_graph.h - everything that can be reached in a running scenario, with the shortest path to
 * it.
 *
 * The walk starts at the variables, then at what only reference cycles keep alive. The engine must
 * not run while a graph is in use. Host memory comes from malloc(): without enough of it a walk
 * ends early and sets no_memory. */
#ifndef GMD_HEAP_GRAPH_H
#define GMD_HEAP_GRAPH_H

#include "gmd_lua_binding.h"
#include "references.h"

#define NO_VERTEX UINT32_MAX

enum root_kind {
    ROOT_VARIABLE,
    ROOT_EXPRESSION, /* a result not bound yet */
    ROOT_CYCLE,
    ROOT_LIBRARY
};

struct vertex {
    void *what;
    enum vertex_kind kind;
    uint32_t parent; /* NO_VERTEX: a root */
    int distance;
    struct reference reference; /* by which the parent holds it */
    enum root_kind root;        /* of a root */
    char *name;                 /* of a root */
    bool is_done;
};

struct heap_graph {
    struct vertex *vertices;
    uint32_t count;
    uint32_t *order; /* those that were reached, by root kind, then by distance */
    uint32_t reached;
    bool no_memory;
};

/* NULL: no memory at all. */
struct heap_graph *heap_graph_walk(struct binding *binding);
void heap_graph_free(struct heap_graph *heap); /* NULL is fine */

#endif
