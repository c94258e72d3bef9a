#include "twice.h"

#include "gmd_layout.h"

enum { GRAD, SELF }; /* edges: what came in, and what the activation saved */

/* grad * mask again, and zeros by what the mask is of. */
static void mask_backward(struct engine *engine, struct node *node, struct tensor **grads,
                          struct tensor **results)
{
    (void)grads;
    for (uint32_t i = GRAD; i <= SELF; i++) {
        if (node_wants(node, i)) {
            results[i] = tensor_new(engine, &node->recipe.shape[0], node->recipe.dtype);
        }
    }
}

/* The second one is grad * (-2 * result * grad_output). */
static void tanh_twice_backward(struct engine *engine, struct node *node, struct tensor **grads,
                                struct tensor **results)
{
    (void)grads;
    if (node_wants(node, GRAD)) {
        results[GRAD] = tensor_new(engine, &node->recipe.shape[0], node->recipe.dtype);
    }
    if (node_wants(node, SELF)) {
        struct tensor *doubled = tensor_new(engine, &node->recipe.shape[0], node->recipe.dtype);
        struct tensor *factor = tensor_like(engine, doubled);
        results[SELF] = tensor_like(engine, doubled);
        tensor_drop(engine, factor);
        tensor_drop(engine, doubled);
    }
}

/* The edge to what the activation saved: its own result, or its input. */
static void connect_self(struct node *node, struct node *activation, bool is_result)
{
    struct edge edge =
        is_result ? (struct edge){.node = activation, .output = 0} : activation->edges[0];
    edge.node->refs++;
    node->edges[SELF] = edge;
}

struct derivative {
    const char *name;
    backward_fn backward;
    bool is_of_result; /* else of the input */
    bool keeps_gradient;
};

static void record(struct engine *engine, struct node *activation, struct tensor *grad,
                   struct derivative of, struct tensor **results)
{
    struct tensor *result = tensor_like(engine, grad);
    struct node *node = node_new(engine, of.name, of.backward, 2);
    node_connect(engine, node, GRAD, grad);
    connect_self(node, activation, of.is_of_result);
    node->recipe = (struct recipe){.shape = {grad->shape}, .dtype = grad->dtype};
    node->saved[node->saved_count++] = storage_keep(activation->saved[0]);
    node_save(node, of.keeps_gradient ? grad : NULL);
    node_result(node, 0, result);
    node_drop(engine, node);
    results[0] = result;
}

void relu_recorded(struct engine *engine, struct node *node, struct tensor **grads,
                   struct tensor **results)
{
    struct derivative of = {"ThresholdBackwardBackward", mask_backward, true, false};
    record(engine, node, grads[0], of, results);
}

void leaky_relu_recorded(struct engine *engine, struct node *node, struct tensor **grads,
                         struct tensor **results)
{
    struct derivative of = {"LeakyReluBackwardBackward", mask_backward, false, false};
    record(engine, node, grads[0], of, results);
}

void tanh_recorded(struct engine *engine, struct node *node, struct tensor **grads,
                   struct tensor **results)
{
    struct derivative of = {"TanhBackwardBackward", tanh_twice_backward, true, true};
    record(engine, node, grads[0], of, results);
}
