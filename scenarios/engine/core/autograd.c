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
    if (engine->grad_enabled) {
        engine_misuse(engine, "create_graph: gradients by a tensor that is used several times are "
                              "not known here");
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
        if (!node_wants(node, i)) {
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

static void record_nothing(struct engine *engine, struct node *node, struct tensor **grads,
                           struct tensor **results)
{
    (void)grads;
    (void)results;
    engine_misuse(engine, "create_graph: the derivative of what %s computes is not known here",
                  node->name);
}

static backward_fn recorded_of(const struct node *node)
{
    return node->recorded ? node->recorded : record_nothing;
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
        backward_fn run = engine->grad_enabled ? recorded_of(node) : node->backward;
        engine->stream = node->stream;
        run(engine, node, node->buffer, results);
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

/* --- gradients by some tensors ------------------------------------------------------------ */

/* A node on the way down, and which of its edges comes next. */
struct descent {
    struct node *node;
    uint32_t next;
    bool leads;
};

typedef struct descents {
    struct descent *items;
    size_t count, capacity;
} descents;

static void descend(struct engine *engine, descents *path, struct node *node)
{
    if (path->count == path->capacity) {
        path->capacity = path->capacity ? 2 * path->capacity : 64;
        path->items = host_take_more(engine, path->items, path->capacity * sizeof(struct descent));
    }
    path->items[path->count++] = (struct descent){.node = node};
}

static struct node *target_of(const struct tensor *input)
{
    return input->grad_fn ? input->grad_fn : input->accumulator;
}

/* Marks the nodes from which there is a way to a target; those are marked already. */
static void mark_needed(struct engine *engine, struct node *root, uint64_t needed)
{
    uint64_t pass = ++engine->backward_pass;
    descents path = {0};
    root->pass = pass;
    descend(engine, &path, root);
    while (path.count > 0) {
        struct descent *top = &path.items[path.count - 1];
        if (top->next == top->node->edge_count) {
            struct descent done = path.items[--path.count];
            if (done.leads) {
                done.node->needed = needed;
            }
            if (path.count > 0) {
                path.items[path.count - 1].leads |= done.node->needed == needed;
            }
            continue;
        }
        struct node *to = top->node->edges[top->next++].node;
        top->leads |= to && to->needed == needed;
        if (to && to->pass != pass) {
            to->pass = pass;
            descend(engine, &path, to);
        }
    }
    host_give(engine, path.items);
}

static bool leads_on(const struct node *node, uint64_t needed)
{
    for (uint32_t i = 0; i < node->edge_count; i++) {
        if (node->edges[i].node && node->edges[i].node->needed == needed) {
            return true;
        }
    }
    return false;
}

static void take_results(const struct gradient_request *request, const struct node *node,
                         struct tensor **results)
{
    for (size_t i = 0; i < request->count; i++) {
        const struct tensor *input = request->inputs[i];
        if (target_of(input) == node) {
            results[i] = tensor_keep(node->buffer[input->grad_fn ? input->output : 0]);
        }
    }
}

static bool mark_targets(struct engine *engine, const struct gradient_request *request,
                         uint64_t needed)
{
    for (size_t i = 0; i < request->count; i++) {
        struct node *target = target_of(request->inputs[i]);
        if (!target) {
            engine_misuse(engine, "autograd.grad: input %zu is not in the graph", i + 1);
            return false;
        }
        target->needed = needed;
    }
    return true;
}

static void run_restricted(struct engine *engine, ready *heap, struct node *node,
                           const struct gradient_request *request, uint64_t needed)
{
    if (!leads_on(node, needed)) {
        drop_buffers(engine, node);
        return;
    }
    node->is_restricted = true;
    run_node(engine, heap, node, request->retain_graph || request->create_graph);
    node->is_restricted = false;
}

void tensor_gradients(struct engine *engine, struct tensor *tensor, struct tensor *grad,
                      const struct gradient_request *request, struct tensor **results)
{
    struct node *root = tensor->grad_fn;
    uint64_t needed = ++engine->restricted_pass;
    bool grad_enabled = engine->grad_enabled, in_backward = engine->in_backward;
    ready heap = {0};
    if (!mark_targets(engine, request, needed)) {
        tensor_drop(engine, grad);
        return;
    }
    mark_needed(engine, root, needed);
    count_arrivals(engine, root);
    root->buffer[tensor->output] = grad;
    root->refs++;
    ready_push(engine, &heap, root);
    engine->in_backward = true;
    engine->grad_enabled = request->create_graph;
    while (heap.count > 0) {
        struct node *node = ready_pop(&heap);
        take_results(request, node, results);
        run_restricted(engine, &heap, node, request, needed);
        node_drop(engine, node);
    }
    engine->in_backward = in_backward;
    engine->grad_enabled = grad_enabled;
    host_give(engine, heap.items);
}

struct tensor *node_input(struct engine *engine, const struct node *node, uint32_t index,
                          uint32_t saved)
{
    struct edge edge = node->edges[index];
    if (edge.node && !edge.node->backward) {
        return tensor_keep(edge.node->variable);
    }
    struct tensor *input =
        tensor_of_storage(engine, node->saved[saved], &node->recipe.shape[0], node->recipe.dtype);
    if (edge.node) {
        edge.node->refs++;
        input->grad_fn = edge.node;
        input->output = edge.output;
    }
    return input;
}

/* --- the whole pass ----------------------------------------------------------------------- */

void backward_then(struct engine *engine, void (*call)(struct engine *engine, void *context),
                   void *context)
{
    size_t count = engine->callback_count++;
    engine->callbacks =
        host_take_more(engine, engine->callbacks, (count + 1) * sizeof *engine->callbacks);
    engine->callbacks[count] = (struct final_callback){call, context};
}

static void run_callbacks(struct engine *engine)
{
    for (size_t i = 0; i < engine->callback_count; i++) {
        engine->callbacks[i].call(engine, engine->callbacks[i].context);
    }
    engine->callback_count = 0;
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
    if (!in_backward) {
        run_callbacks(engine);
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
