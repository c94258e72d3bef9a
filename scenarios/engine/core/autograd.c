#include "gmd_autograd.h"

#include "gmd_layout.h"

/* --- the graph --------------------------------------------------------------------------- */

/* One accumulating node for each leaf, as long as some graph refers to it; it keeps the leaf. */
static struct node *accumulator_of(struct engine *engine, struct tensor *leaf)
{
    if (leaf->accumulator) {
        leaf->accumulator->refs++;
        return leaf->accumulator;
    }
    struct node *node = node_new(engine, "AccumulateGrad", NULL, 0);
    node->variable = tensor_keep(leaf);
    node->registered = &leaf->accumulator;
    storage_mark(leaf->storage, GMD_PARAMETER);
    leaf->accumulator = node;
    return node;
}

void node_connect(struct engine *engine, struct node *node, uint32_t index, struct tensor *input)
{
    if (!tensor_tracked(engine, input)) {
        return;
    }
    if (input->grad_fn) {
        input->grad_fn->refs++;
        node->edges[index] = (struct edge){input->grad_fn, input->output};
    } else {
        node->edges[index] = (struct edge){accumulator_of(engine, input), 0};
    }
}

void node_save(struct node *node, struct tensor *tensor)
{
    if (tensor && node->saved_count < NODE_MAX_SAVED) {
        node->saved[node->saved_count++] = storage_keep(tensor->storage);
        storage_mark(tensor->storage, GMD_ACTIVATION);
    }
}

void node_result(struct node *node, uint32_t index, struct tensor *tensor)
{
    node->refs++;
    storage_mark(tensor->storage, GMD_ACTIVATION);
    tensor->grad_fn = node;
    tensor->output = index;
}

struct node *node_over(struct engine *engine, const char *name, backward_fn backward,
                       struct tensor *input, struct tensor *result)
{
    if (!tensor_tracked(engine, input)) {
        return NULL;
    }
    struct node *node = node_new(engine, name, backward, 1);
    node_connect(engine, node, 0, input);
    node->recipe.shape[0] = input->shape;
    node->recipe.dtype = input->dtype;
    node_result(node, 0, result);
    return node;
}

void node_over_saving(struct engine *engine, const char *name, backward_fn backward,
                      struct tensor *input, struct tensor *result, struct tensor *saved)
{
    struct node *node = node_over(engine, name, backward, input, result);
    if (node) {
        node_save(node, saved);
    }
    node_drop(engine, node);
}

void tensor_rebase(struct engine *engine, struct tensor *tensor, struct tensor *result)
{
    struct node *old = tensor->grad_fn;
    if (result && result->grad_fn) {
        result->grad_fn->refs++;
        tensor->grad_fn = result->grad_fn;
        tensor->output = result->output;
        node_drop(engine, old);
    }
}

/* --- the order of a backward pass: a heap of ready nodes, latest operation first --------- */

typedef struct ready {
    struct node **items;
    size_t count, capacity;
} ready;

static void ready_push(struct engine *engine, ready *heap, struct node *node)
{
    if (heap->count == heap->capacity) {
        heap->capacity = heap->capacity ? 2 * heap->capacity : 64;
        heap->items = host_take_more(engine, heap->items, heap->capacity * sizeof(struct node *));
    }
    size_t i = heap->count++;
    while (i > 0 && heap->items[(i - 1) / 2]->sequence < node->sequence) {
        heap->items[i] = heap->items[(i - 1) / 2];
        i = (i - 1) / 2;
    }
    heap->items[i] = node;
}

static struct node *ready_pop(ready *heap)
{
    struct node *top = heap->items[0], *last = heap->items[--heap->count];
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
static void count_arrivals(struct engine *engine, struct node *root)
{
    uint64_t pass = ++engine->backward_pass;
    ready stack = {0};
    root->pass = pass;
    root->awaited = 0;
    ready_push(engine, &stack, root);
    while (stack.count > 0) {
        struct node *node = stack.items[--stack.count];
        for (uint32_t i = 0; i < node->edge_count; i++) {
            struct node *to = node->edges[i].node;
            if (to && to->pass != pass) {
                to->pass = pass;
                to->awaited = 0;
                /* any order will do: the heap serves as a stack */
                if (stack.count == stack.capacity) {
                    stack.capacity *= 2;
                    stack.items =
                        host_take_more(engine, stack.items, stack.capacity * sizeof(struct node *));
                }
                stack.items[stack.count++] = to;
            }
            if (to) {
                to->awaited++;
            }
        }
    }
    host_give(engine, stack.items);
}

/* --- the pass itself --------------------------------------------------------------------- */

/* A tensor that is used several times gets the sum of its gradients; they are added in place where
 * nobody else holds the sum. */
static void add_to_buffer(struct engine *engine, struct tensor **buffer, struct tensor *grad)
{
    struct tensor *old = *buffer;
    if (!old) {
        *buffer = grad;
        return;
    }
    if (old->thing.refs > 1 || old->storage->refs > 1 || old->expanded || old->is_view) {
        *buffer = tensor_like(engine, old);
        tensor_drop(engine, old);
    }
    tensor_drop(engine, grad);
}

/* A gradient that is kept lies as its leaf does. What lies in a way that is not known passes. */
static bool lies_as_leaf(const struct tensor *grad, const struct tensor *leaf)
{
    int64_t of_grad[SHAPE_MAX_DIMS], of_leaf[SHAPE_MAX_DIMS];
    if (!tensor_layout(grad, of_grad) || !shape_is(&grad->shape, &leaf->shape)) {
        return true;
    }
    tensor_layout(leaf, of_leaf);
    for (int i = 0; i < grad->shape.dims; i++) {
        if (grad->shape.size[i] != 1 && of_grad[i] != of_leaf[i]) {
            return false;
        }
    }
    return true;
}

/* The first gradient becomes .grad as it is, if nobody else holds it; later ones are added in
 * place. */
static void accumulate(struct engine *engine, struct node *node)
{
    struct tensor *grad = node->buffer[0], *variable = node->variable;
    node->buffer[0] = NULL;
    if (grad && variable && !variable->grad) {
        if (grad->thing.refs > 1 || grad->expanded || !lies_as_leaf(grad, variable)) {
            variable->grad = tensor_elementwise(engine, &grad->shape, grad->dtype, &variable, 1);
        } else {
            variable->grad = tensor_keep(grad);
        }
        storage_mark(variable->grad->storage, GMD_GRADIENT);
    }
    tensor_drop(engine, grad);
    if (grad && variable && variable->hook) {
        variable->hook->arrived(engine, variable->hook);
    }
}

static void drop_buffers(struct engine *engine, struct node *node)
{
    for (uint32_t i = 0; i < node->output_count; i++) {
        tensor_drop(engine, node->buffer[i]);
        node->buffer[i] = NULL;
    }
}

static void distribute(struct engine *engine, ready *heap, struct node *node,
                       struct tensor **results)
{
    for (uint32_t i = 0; i < node->edge_count; i++) {
        struct edge edge = node->edges[i];
        if (!edge.node) {
            tensor_drop(engine, results[i]);
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

static bool has_arrivals(const struct node *node)
{
    for (uint32_t i = 0; i < node->output_count; i++) {
        if (node->buffer[i]) {
            return true;
        }
    }
    return false;
}

static void run_node(struct engine *engine, ready *heap, struct node *node, bool retain_graph)
{
    struct tensor *few[NODE_FEW_EDGES] = {NULL};
    if (!node->backward) {
        accumulate(engine, node);
        return;
    }
    if (node->was_used && !engine_failed(engine)) {
        engine_misuse(engine,
                      "backward() went through this graph already, and what it had saved is "
                      "freed; pass retain_graph = true to the first backward()");
    }
    struct tensor **results = node->edge_count <= NODE_FEW_EDGES
                                  ? few
                                  : host_take(engine, node->edge_count * sizeof(struct tensor *));
    if (!engine_failed(engine) && has_arrivals(node)) {
        uint32_t stream = engine->stream;
        engine->stream = node->stream;
        node->backward(engine, node, node->buffer, results);
        engine->stream = stream;
    }
    drop_buffers(engine, node);
    if (!retain_graph && !engine_failed(engine)) {
        node_free_saved(engine, node);
        node->was_used = node->saved_count > 0 || node->owner;
    }
    distribute(engine, heap, node, results);
    if (results != few) {
        host_give(engine, results);
    }
}

void tensor_backward_from(struct engine *engine, struct tensor *tensor, struct tensor *grad,
                          bool retain_graph)
{
    struct node *root = tensor->grad_fn;
    ready heap = {0};
    bool grad_enabled = engine->grad_enabled, in_backward = engine->in_backward;
    count_arrivals(engine, root);
    root->buffer[tensor->output] = grad;
    root->refs++;
    ready_push(engine, &heap, root);
    engine->in_backward = true;
    engine->grad_enabled = false;
    while (heap.count > 0) {
        struct node *node = ready_pop(&heap);
        run_node(engine, &heap, node, retain_graph);
        node_drop(engine, node);
    }
    engine->in_backward = in_backward;
    engine->grad_enabled = grad_enabled;
    host_give(engine, heap.items);
}

void tensor_backward(struct engine *engine, struct tensor *loss, bool retain_graph)
{
    char text[128];
    struct node *root = loss->grad_fn;
    if (!root) {
        engine_misuse(engine, "backward() on a tensor that has no graph: nothing that requires a "
                              "gradient led to it, or it was made under no_grad");
        return;
    }
    if (shape_count(&loss->shape) != 1) {
        engine_misuse(engine,
                      "backward() needs one number, this tensor is %s; take its mean() or "
                      "sum()",
                      shape_text(&loss->shape, text));
        return;
    }
    struct tensor *one = tensor_like(engine, loss);
    tensor_backward_from(engine, loss, tensor_keep(one), retain_graph);
    tensor_drop(engine, one);
}
