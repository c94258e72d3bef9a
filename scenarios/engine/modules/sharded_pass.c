/* sharded_pass.c - what a sharded module does before and after its forward pass, and on the way
 * back. Facts: _fsdp_state.py and _fsdp_param_group.py of PyTorch 2.11. */
#include "collective.h"
#include "sharded_parts.h"

#include "gmd_assert.h"

/* --- the root: the first module that is called ------------------------------------------- */

static void count_sharded(struct module *module, void *context)
{
    size_t *count = context;
    *count += module->sharded != NULL;
}

/* The outermost module keeps its gathered parameters, unless it was told otherwise. */
static void join(struct module *module, void *context)
{
    struct sharded_context *shared = context;
    struct sharded *sharded = module->sharded;
    if (!sharded || sharded->context) {
        return;
    }
    sharded->is_root = shared->count == 0;
    if (sharded->is_root && sharded->options.reshard == RESHARD_BUT_THE_ROOT) {
        sharded->reshards = false;
    }
    sharded->context = shared;
    shared->refs++;
    shared->all[shared->count++] = sharded;
}

static uint32_t new_stream(struct engine *engine)
{
    return 1 + engine->streams++ % 32;
}

static void make_root(struct engine *engine, struct sharded *root)
{
    size_t count = 0;
    struct sharded_context *shared = host_take(engine, sizeof *shared);
    module_each(engine, root->module, count_sharded, &count);
    shared->all = host_take(engine, count * sizeof(struct sharded *));
    shared->copy_in = new_stream(engine);
    shared->gather = new_stream(engine);
    shared->reduce = new_stream(engine);
    shared->all_reduce = new_stream(engine);
    module_each(engine, root->module, join, shared);
}

/* --- the backward pass ------------------------------------------------------------------- */

static void finish(struct engine *engine, struct sharded *sharded)
{
    if (sharded->pass != PASS_AFTER_BACKWARD && sharded->count > 0) {
        sharded_after_backward(engine, sharded);
    }
    sharded->pass = PASS_NONE;
    stream_waits(engine, engine->stream, sharded->context->reduce);
    stream_waits(engine, engine->stream, sharded->context->all_reduce);
    storage_drop(engine, sharded->reduced);
    sharded->reduced = NULL;
    storage_drop(engine, sharded->gathered);
    sharded->gathered = NULL;
    sharded->index_count = 0;
}

/* Modules whose inputs need no gradient are finished here. */
static void finish_all(struct engine *engine, void *context)
{
    struct sharded_context *shared = context;
    for (size_t i = 0; i < shared->count; i++) {
        if (shared->all[i]) {
            finish(engine, shared->all[i]);
        }
    }
    storage_drop(engine, shared->reduce_input);
    shared->reduce_input = NULL;
    shared->order_count = 0;
    shared->is_final_queued = false;
    sharded_context_drop(engine, shared);
}

static void gather_ahead(struct engine *engine, struct sharded *next, enum sharded_pass pass)
{
    if (next && next->context) {
        enum sharded_pass before = next->pass;
        next->pass = pass;
        sharded_gather(engine, next);
        next->pass = before;
    }
}

static void gather_as_told(struct engine *engine, const struct sharded *sharded,
                           enum sharded_way way)
{
    for (size_t i = 0; i < sharded->ahead[way].count; i++) {
        gather_ahead(engine, sharded->ahead[way].items[i],
                     way == SHARDED_FORWARD ? PASS_FORWARD : PASS_BEFORE_BACKWARD);
    }
}

/* What the script says comes next, or the module whose forward pass ended before this one's. */
static void prefetch(struct engine *engine, struct sharded *sharded)
{
    struct sharded_context *shared = sharded->context;
    if (sharded->ahead[SHARDED_BACKWARD].count > 0) {
        gather_as_told(engine, sharded, SHARDED_BACKWARD);
    } else if (sharded->index_count > 0) {
        size_t index = sharded->indices[--sharded->index_count];
        gather_ahead(engine, index > 0 ? shared->order[index - 1] : NULL, PASS_BEFORE_BACKWARD);
    }
}

static void before_backward(struct engine *engine, struct sharded *sharded)
{
    struct sharded_context *shared = sharded->context;
    if (!shared->is_final_queued) {
        shared->is_final_queued = true;
        shared->refs++;
        backward_then(engine, finish_all, shared);
    }
    if (sharded->pass == PASS_BEFORE_BACKWARD) {
        return;
    }
    sharded->pass = PASS_BEFORE_BACKWARD;
    sharded_gather(engine, sharded);
    sharded_take_apart(engine, sharded);
    prefetch(engine, sharded);
}

/* --- nodes at the module's borders ------------------------------------------------------- */

static void pass_on(const struct node *node, struct tensor **grads, struct tensor **results)
{
    for (uint32_t i = 0; i < node->edge_count; i++) {
        results[i] = grads[i];
        grads[i] = NULL;
    }
}

static void leave_backward(struct engine *engine, struct node *node, struct tensor **grads,
                           struct tensor **results)
{
    before_backward(engine, ((struct module *)node->owner)->sharded);
    pass_on(node, grads, results);
}

static void enter_backward(struct engine *engine, struct node *node, struct tensor **grads,
                           struct tensor **results)
{
    sharded_after_backward(engine, ((struct module *)node->owner)->sharded);
    pass_on(node, grads, results);
}

/* The tensors that have a graph are replaced by themselves behind a node. */
static void put_behind(struct engine *engine, struct sharded *sharded, const char *name,
                       backward_fn backward, struct tensor **tensors, int count)
{
    struct tensor **tracked[MODULE_MAX_RESULTS];
    uint32_t edges = 0;
    for (int i = 0; i < count; i++) {
        if (tensors[i] && tensor_tracked(engine, tensors[i])) {
            tracked[edges++] = &tensors[i];
        }
    }
    if (edges == 0) {
        return;
    }
    struct node *node = node_new(engine, name, backward, edges);
    node->owner = thing_keep(&sharded->module->thing);
    for (uint32_t i = 0; i < edges; i++) {
        struct tensor *inner = *tracked[i];
        node_connect(engine, node, i, inner);
        *tracked[i] = tensor_alias(engine, inner);
        node_result(node, i, *tracked[i]);
        tensor_drop(engine, inner);
    }
    node_drop(engine, node);
}

/* --- the forward pass -------------------------------------------------------------------- */

static void cast_each(struct engine *engine, enum dtype dtype, struct tensor **tensors, int count)
{
    for (int i = 0; dtype != DTYPES && i < count; i++) {
        if (tensors[i] && dtype_is_floating(tensors[i]->dtype)) {
            struct tensor *before = tensors[i];
            tensors[i] = op_cast(engine, before, dtype);
            tensor_drop(engine, before);
        }
    }
}

static void before_forward(struct engine *engine, struct sharded *sharded, struct tensor **inputs,
                           int count)
{
    struct sharded_context *shared = sharded->context;
    GMD_ASSERT(shared, "a pass begins once the modules have joined its root");
    sharded->pass = PASS_FORWARD;
    if (!shared->root) {
        shared->root = sharded;
        stream_waits(engine, shared->copy_in, engine->stream);
        stream_waits(engine, shared->gather, engine->stream);
    }
    if (sharded->options.casts_inputs) {
        cast_each(engine, sharded->options.param_dtype, inputs, count);
    }
    sharded_gather(engine, sharded);
    sharded_take_apart(engine, sharded);
    if (sharded->count > 0) {
        put_behind(engine, sharded, "RegisterPostBackwardFunction", enter_backward, inputs, count);
    }
    gather_as_told(engine, sharded, SHARDED_FORWARD);
}

static void note_order(struct engine *engine, struct sharded *sharded)
{
    struct sharded_context *shared = sharded->context;
    if (shared->order_count == shared->order_capacity) {
        shared->order_capacity = shared->order_capacity ? 2 * shared->order_capacity : 16;
        shared->order = host_take_more(engine, shared->order,
                                       shared->order_capacity * sizeof(struct sharded *));
    }
    if (sharded->index_count == sharded->index_capacity) {
        sharded->index_capacity = sharded->index_capacity ? 2 * sharded->index_capacity : 4;
        sharded->indices =
            host_take_more(engine, sharded->indices, sharded->index_capacity * sizeof(size_t));
    }
    sharded->indices[sharded->index_count++] = shared->order_count;
    shared->order[shared->order_count++] = sharded;
}

static void after_forward(struct engine *engine, struct sharded *sharded, struct tensor **results,
                          int count)
{
    struct sharded_context *shared = sharded->context;
    struct storage *done = NULL; /* lives until the outermost module's result is converted */
    if (sharded->count > 0) {
        if (sharded->reshards && sharded->options.post_forward_ranks > 0) {
            sharded_give_up_to_group(engine, sharded);
        } else if (sharded->reshards) {
            sharded_give_up(engine, sharded);
        }
        note_order(engine, sharded);
    }
    put_behind(engine, sharded, "PreBackward", leave_backward, results, count);
    sharded->pass = PASS_NONE;
    if (shared->root == sharded) {
        stream_waits(engine, shared->copy_in, engine->stream);
        stream_waits(engine, shared->gather, engine->stream);
        done = shared->gathered;
        shared->gathered = NULL;
        shared->root = NULL;
    }
    cast_each(engine, sharded->options.output_dtype, results, count);
    storage_drop(engine, done);
}

int sharded_forward(struct engine *engine, struct module *module, struct tensor **inputs, int count,
                    struct tensor *results[MODULE_MAX_RESULTS])
{
    struct sharded *sharded = module->sharded;
    struct tensor *taken[MODULE_MAX_RESULTS];
    if (!sharded->context) {
        make_root(engine, sharded);
    }
    for (int i = 0; i < count; i++) {
        taken[i] = tensor_keep(inputs[i]);
    }
    before_forward(engine, sharded, taken, count);
    int made = engine_failed(engine) ? 0 : sharded->forward(engine, module, taken, count, results);
    after_forward(engine, sharded, results, made);
    for (int i = 0; i < count; i++) {
        tensor_drop(engine, taken[i]);
    }
    return made;
}
