/* heap_graph.h - everything that can be reached in a running scenario, with the shortest path to
 * it.
 *
 * Walked from the variables; then from what only reference cycles keep alive. The engine must not
 * run while a heap is looked at. Host memory is the C heap's: a walk that has too little of it ends
 * early and says so. */
#ifndef GMD_HEAP_GRAPH_H
#define GMD_HEAP_GRAPH_H

#include "gmd_lua_binding.h"
#include "references.h"

#define GMD_NO_VERTEX UINT32_MAX

typedef enum gmd_root_kind {
    GMD_ROOT_VARIABLE,
    GMD_ROOT_EXPRESSION, /* a result not bound yet */
    GMD_ROOT_CYCLE,
    GMD_ROOT_LIBRARY
} gmd_root_kind;

typedef struct gmd_vertex {
    void *what;
    gmd_vertex_kind kind;
    uint32_t parent; /* GMD_NO_VERTEX: a root */
    int distance;
    gmd_reference reference; /* by which the parent holds it */
    gmd_root_kind root;      /* of a root */
    char *name;              /* of a root */
    bool is_done;
} gmd_vertex;

typedef struct gmd_heap {
    gmd_vertex *vertices;
    uint32_t count;
    uint32_t *order; /* those that were reached, by root kind, then by distance */
    uint32_t reached;
    bool no_memory;
} gmd_heap;

/* NULL: no memory at all. */
gmd_heap *gmd_heap_walk(gmd_binding *binding);
void gmd_heap_free(gmd_heap *heap); /* NULL is fine */

#endif
