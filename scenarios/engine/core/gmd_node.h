/* gmd_node.h - the nodes of the graph that operations record (gmd_autograd.h): one stands for one
 * operation. It keeps the storages that its derivative needs, and its inputs' nodes. */
#ifndef GMD_NODE_H
#define GMD_NODE_H

#include "gmd_shape.h"
#include "gmd_storage.h"

typedef struct gmd_tensor gmd_tensor;

#define GMD_MAX_SAVED   8
#define GMD_FEW_EDGES   132 /* an LSTM of 32 layers: input, two states, four weights a layer */
#define GMD_FEW_OUTPUTS 3

typedef struct gmd_node gmd_node;

/* Computes the gradients of a node's inputs. `grads[i]` is the gradient of output i (NULL where
 * nothing arrived), `results[i]` takes that of input i: a reference that the caller then owns, or
 * NULL. The caller drops `grads` afterwards, and then what the node saved; an operation that is
 * done with a gradient earlier drops it itself and leaves NULL. */
typedef void (*gmd_backward)(gmd_engine *engine, gmd_node *node, gmd_tensor **grads,
                             gmd_tensor **results);

/* What the derivatives of all operations need to know of their inputs. */
typedef struct gmd_recipe {
    gmd_shape shape[3]; /* usually input, weight, output */
    gmd_dtype dtype;
    uint64_t number[8];
} gmd_recipe;

typedef struct gmd_edge {
    gmd_node *node;  /* NULL: this input needs no gradient */
    uint32_t output; /* of that node */
} gmd_edge;

struct gmd_node {
    size_t refs;
    uint64_t sequence; /* later operations run first on the way back */
    const char *name;
    gmd_backward backward; /* NULL: adds into the gradient of `variable` */
    gmd_tensor *variable;
    uint32_t stream; /* backward runs where the operation ran */
    gmd_recipe recipe;
    gmd_storage *saved[GMD_MAX_SAVED];
    uint32_t saved_count, edge_count;
    gmd_tensor *kept; /* a tensor that is computed with again, until backward; NULL: none */
    gmd_thing *owner; /* what it is computed with again; NULL: none */
    int64_t *sizes;   /* of each input along the dimension that they were joined in; or NULL */
    bool was_used;    /* backward went through and freed what was saved */
    /* of the backward pass under way */
    uint64_t pass;
    uint32_t awaited;
    uint32_t output_count;
    gmd_tensor **buffer; /* the gradient of each output, as far as it has arrived */
    gmd_tensor *few_outputs[GMD_FEW_OUTPUTS];
    gmd_node *next; /* of the engine's dying nodes */
    gmd_edge edges[];
};

gmd_node *gmd_node_new(gmd_engine *engine, const char *name, gmd_backward backward,
                       uint32_t edge_count);
void gmd_node_drop(gmd_engine *engine, gmd_node *node); /* NULL is fine */

/* Room for the gradients of more than GMD_FEW_OUTPUTS outputs; once, before any is made. */
void gmd_node_outputs(gmd_engine *engine, gmd_node *node, uint32_t count);

static inline bool gmd_node_wants(const gmd_node *node, uint32_t index)
{
    return node->edges[index].node != NULL;
}

/* Keeps the storage until backward has gone through. */
void gmd_node_save(gmd_node *node, gmd_tensor *tensor);

/* Lets go of what it keeps for its derivative. */
void gmd_node_free_saved(gmd_engine *engine, gmd_node *node);

#endif
