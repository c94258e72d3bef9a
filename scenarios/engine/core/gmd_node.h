/* gmd_node.h - the nodes of the graph that operations record (gmd_autograd.h): one stands for one
 * operation. It keeps the storages that its derivative needs, and its inputs' nodes. */
#ifndef GMD_NODE_H
#define GMD_NODE_H

#include "gmd_shape.h"
#include "gmd_storage.h"

struct tensor;

#define NODE_MAX_SAVED   8
#define NODE_FEW_EDGES   132 /* an LSTM of 32 layers: input, two states, four weights a layer */
#define NODE_FEW_OUTPUTS 3

struct node;

/* Computes the gradients of a node's inputs. `grads[i]` is the gradient of output i (NULL where
 * nothing arrived), `results[i]` takes that of input i: a reference that the caller then owns, or
 * NULL. The caller drops `grads` afterwards, and then what the node saved; an operation that is
 * done with a gradient earlier drops it itself and leaves NULL. */
typedef void (*backward_fn)(struct engine *engine, struct node *node, struct tensor **grads,
                            struct tensor **results);

/* What derivatives need to know about the inputs of their operation. */
struct recipe {
    struct shape shape[3];          /* usually input, weight, output */
    enum dtype dtype, weight_dtype; /* usually the input's, the weight's */
    uint64_t number[12];
};

struct edge {
    struct node *node; /* NULL: this input needs no gradient */
    uint32_t output;   /* of that node */
};

struct node {
    size_t refs;
    uint64_t sequence; /* later operations run first on the way back */
    const char *name;
    backward_fn backward;     /* NULL: adds into the gradient of `variable` */
    backward_fn recorded;     /* the same by operations that are recorded; NULL: it is not known */
    struct tensor *variable;  /* a leaf, whose `accumulator` is `registered` */
    struct node **registered; /* cleared when the node is destroyed */
    uint32_t stream;          /* backward runs where the operation ran */
    struct recipe recipe;
    struct storage *saved[NODE_MAX_SAVED];
    uint32_t saved_count, edge_count;
    struct thing
        *kept; /* a tensor: the input of a checkpoint, for the second forward pass; NULL: none */
    struct thing *owner; /* the checkpointed module; NULL: none */
    int64_t *sizes;      /* size of each input along the dimension of a concatenation; or NULL */
    bool was_used;       /* backward went through and freed what was saved */
    bool is_recomputed;  /* of a checkpointed block's second forward pass */
    /* state of the backward pass under way */
    uint64_t pass;
    uint64_t needed;    /* the latest pass by some inputs in which it leads to one of them */
    bool is_restricted; /* the pass under way is such a one */
    uint32_t awaited;
    uint32_t output_count;
    struct tensor **buffer; /* the gradient of each output, as far as it has arrived */
    struct tensor *few_outputs[NODE_FEW_OUTPUTS];
    struct node *next; /* of the engine's dying nodes */
    struct edge edges[];
};

struct node *node_new(struct engine *engine, const char *name, backward_fn backward,
                      uint32_t edge_count);
void node_drop(struct engine *engine, struct node *node); /* NULL is fine */

/* Room for the gradients of more than NODE_FEW_OUTPUTS outputs; once, before any is made. */
void node_outputs(struct engine *engine, struct node *node, uint32_t count);

static inline bool node_wants(const struct node *node, uint32_t index)
{
    const struct node *to = node->edges[index].node;
    return to && (!node->is_restricted || to->needed == node->needed);
}

/* Before gradients are summed to the shapes of their inputs, which the engine does after the
 * derivative: what a checkpointed block computed again is unpacked for the derivative alone, and
 * goes with it. What other nodes saved stays until all is done. */
void node_done_with_saved(struct engine *engine, struct node *node);

/* Drops what the node keeps for its derivative. */
void node_free_saved(struct engine *engine, struct node *node);

#endif
