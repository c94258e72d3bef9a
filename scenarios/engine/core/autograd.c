#include "gmd_autograd.h"

/* --- the graph --------------------------------------------------------------------------- */

/* One accumulating node for each leaf, as long as some graph refers to it; it keeps the leaf. */
static gmd_node *accumulator_of(gmd_engine *engine, gmd_tensor *leaf)
{
    if (leaf->accumulator) {
        leaf->accumulator->refs++;
        return leaf->accumulator;
    }
    gmd_node *node = gmd_node_new(engine, "AccumulateGrad", NULL, 0);
    node->variable = gmd_tensor_keep(leaf);
    gmd_storage_is(leaf->storage, GMD_PARAMETER);
    leaf->accumulator = node;
    return node;
}

void gmd_node_connect(gmd_engine *engine, gmd_node *node, uint32_t index, gmd_tensor *input)
{
    if (!gmd_tensor_tracked(engine, input)) {
        return;
    }
    if (input->grad_fn) {
        input->grad_fn->refs++;
        node->edges[index] = (gmd_edge){input->grad_fn, input->output};
    } else {
        node->edges[index] = (gmd_edge){accumulator_of(engine, input), 0};
    }
}

void gmd_node_result(gmd_node *node, uint32_t index, gmd_tensor *tensor)
{
    node->refs++;
    gmd_storage_is(tensor->storage, GMD_ACTIVATION);
    tensor->grad_fn = node;
    tensor->output = index;
}

gmd_node *gmd_node_over(gmd_engine *engine, const char *name, gmd_backward backward,
                        gmd_tensor *input, gmd_tensor *result)
{
    if (!gmd_tensor_tracked(engine, input)) {
        return NULL;
    }
    gmd_node *node = gmd_node_new(engine, name, backward, 1);
    gmd_node_connect(engine, node, 0, input);
    node->recipe.shape[0] = input->shape;
    node->recipe.dtype = input->dtype;
    gmd_node_result(node, 0, result);
    return node;
}

void gmd_tensor_rebase(gmd_engine *engine, gmd_tensor *tensor, gmd_tensor *result)
{
    gmd_node *old = tensor->grad_fn;
    if (result && result->grad_fn) {
        result->grad_fn->refs++;
        tensor->grad_fn = result->grad_fn;
        tensor->output = result->output;
        gmd_node_drop(engine, old);
    }
}

/* --- the order of a backward pass: a heap of ready nodes, latest operation first --------- */

typedef struct ready {
    gmd_node **items;
    size_t count, capacity;
} ready;

static void ready_push(gmd_engine *engine, ready *heap, gmd_node *node)
{
    if (heap->count == heap->capacity) {
        heap->capacity = heap->capacity ? 2 * heap->capacity : 64;
        heap->items = gmd_take_more(engine, heap->items, heap->capacity * sizeof(gmd_node *));
    }
    size_t i = heap->count++;
    while (i > 0 && heap->items[(i - 1) / 2]->sequence < node->sequence) {
        heap->items[i] = heap->items[(i - 1) / 2];
        i = (i - 1) / 2;
    }
    heap->items[i] = node;
}

static gmd_node *ready_pop(ready *heap)
{
    gmd_node *top = heap->items[0], *last = heap->items[--heap->count];
    size_t i = 0;
    for (size_t child; (child = 2 * i + 1) < heap->count; i = child) {
        if (child + 1 < heap->count &&
            heap->items[child + 1]->sequence > heap->items[child]->sequence) {
            child++;
        }
        if (heap->items[child]->sequence <= last->sequence) {
            break;
        }
        heap->items[i] = heap->items[child];
    }
    heap->items[i] = last;
    return top;
}

/* Counts for each node reachable from `root` how many gradients will arrive at it. */
static void count_arrivals(gmd_engine *engine, gmd_node *root)
{
    uint64_t pass = ++engine->backward_pass;
    ready stack = {0};
    root->pass = pass;
    root->awaited = 0;
    ready_push(engine, &stack, root);
    while (stack.count > 0) {
        gmd_node *node = stack.items[--stack.count];
        for (uint32_t i = 0; i < node->edge_count; i++) {
            gmd_node *to = node->edges[i].node;
            if (to && to->pass != pass) {
                to->pass = pass;
                to->awaited = 0;
                /* any order will do here: the heap is used as a stack */
                if (stack.count == stack.capacity) {
                    stack.capacity *= 2;
                    stack.items =
                        gmd_take_more(engine, stack.items, stack.capacity * sizeof(gmd_node *));
                }
                stack.items[stack.count++] = to;
            }
            if (to) {
                to->awaited++;
            }
        }
    }
    gmd_give(engine, stack.items);
}

/* --- the pass itself --------------------------------------------------------------------- */

/* Several uses of one tensor: its gradients are summed, in place where nobody else holds the sum.
 */
static void add_to_buffer(gmd_engine *engine, gmd_tensor **buffer, gmd_tensor *grad)
{
    gmd_tensor *old = *buffer;
    if (!old) {
        *buffer = grad;
        return;
    }
    if (old->thing.refs > 1 || old->storage->refs > 1 || old->expanded || old->is_view) {
        *buffer = gmd_tensor_like(engine, old);
        gmd_tensor_drop(engine, old);
    }
    gmd_tensor_drop(engine, grad);
}

/* The first gradient becomes .grad as it is, if nobody else holds it; later ones are added in
 * place. */
static void accumulate(gmd_engine *engine, gmd_node *node)
{
    gmd_tensor *grad = node->buffer[0], *variable = node->variable;
    node->buffer[0] = NULL;
    if (grad && variable && !variable->grad) {
        if (grad->thing.refs > 1 || grad->expanded) {
            variable->grad = gmd_tensor_like(engine, grad);
        } else {
            variable->grad = gmd_tensor_keep(grad);
        }
        gmd_storage_is(variable->grad->storage, GMD_GRADIENT);
    }
    gmd_tensor_drop(engine, grad);
}

static void drop_buffers(gmd_engine *engine, gmd_node *node)
{
    for (uint32_t i = 0; i < node->output_count; i++) {
        gmd_tensor_drop(engine, node->buffer[i]);
        node->buffer[i] = NULL;
    }
}

static void distribute(gmd_engine *engine, ready *heap, gmd_node *node, gmd_tensor **results)
{
    for (uint32_t i = 0; i < node->edge_count; i++) {
        gmd_edge edge = node->edges[i];
        if (!edge.node) {
            gmd_tensor_drop(engine, results[i]);
            continue;
        }
        if (results[i]) {
            add_to_buffer(engine, &edge.node->buffer[edge.output], results[i]);
        }
        if (--edge.node->awaited == 0) {
            edge.node->refs++;
            ready_push(engine, heap, edge.node);
        }
    }
}

static bool has_arrivals(const gmd_node *node)
{
    for (uint32_t i = 0; i < node->output_count; i++) {
        if (node->buffer[i]) {
            return true;
        }
    }
    return false;
}

static void run_node(gmd_engine *engine, ready *heap, gmd_node *node, bool retain_graph)
{
    gmd_tensor *few[GMD_FEW_EDGES] = {NULL};
    if (!node->backward) {
        accumulate(engine, node);
        return;
    }
    if (node->was_used && !gmd_engine_failed(engine)) {
        gmd_misuse(engine, "backward() went through this graph already, and what it had saved is "
                           "freed; pass retain_graph = true to the first backward()");
    }
    gmd_tensor **results = node->edge_count <= GMD_FEW_EDGES
                               ? few
                               : gmd_take(engine, node->edge_count * sizeof(gmd_tensor *));
    if (!gmd_engine_failed(engine) && has_arrivals(node)) {
        uint32_t stream = engine->stream;
        engine->stream = node->stream;
        node->backward(engine, node, node->buffer, results);
        engine->stream = stream;
    }
    drop_buffers(engine, node);
    if (!retain_graph && !gmd_engine_failed(engine)) {
        gmd_node_free_saved(engine, node);
        node->was_used = node->saved_count > 0 || node->owner;
    }
    distribute(engine, heap, node, results);
    if (results != few) {
        gmd_give(engine, results);
    }
}

void gmd_backward_from(gmd_engine *engine, gmd_tensor *tensor, gmd_tensor *grad, bool retain_graph)
{
    gmd_node *root = tensor->grad_fn;
    ready heap = {0};
    bool grad_enabled = engine->grad_enabled, in_backward = engine->in_backward;
    count_arrivals(engine, root);
    root->buffer[tensor->output] = grad;
    root->refs++;
    ready_push(engine, &heap, root);
    engine->in_backward = true;
    engine->grad_enabled = false;
    while (heap.count > 0) {
        gmd_node *node = ready_pop(&heap);
        run_node(engine, &heap, node, retain_graph);
        gmd_node_drop(engine, node);
    }
    engine->in_backward = in_backward;
    engine->grad_enabled = grad_enabled;
    gmd_give(engine, heap.items);
}

void gmd_tensor_backward(gmd_engine *engine, gmd_tensor *loss, bool retain_graph)
{
    char text[128];
    gmd_node *root = loss->grad_fn;
    if (!root) {
        gmd_misuse(engine, "backward() on a tensor that has no graph: nothing that requires a "
                           "gradient led to it, or it was made under no_grad");
        return;
    }
    if (gmd_shape_count(&loss->shape) != 1) {
        gmd_misuse(engine,
                   "backward() needs one number, this tensor is %s; take its mean() or "
                   "sum()",
                   gmd_shape_text(&loss->shape, text));
        return;
    }
    gmd_tensor *one = gmd_tensor_like(engine, loss);
    gmd_backward_from(engine, loss, gmd_tensor_keep(one), retain_graph);
    gmd_tensor_drop(engine, one);
}
