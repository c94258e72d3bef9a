#include "gmd_reducer.h"

#include "collective.h"
#include "gmd_tensor.h"

#define FIRST_BYTES     ((uint64_t)1 << 20)
#define DEFAULT_BYTES   ((uint64_t)25 << 20)
#define BROADCAST_BYTES ((uint64_t)250 << 20)

/* A parameter and its place in a bucket. */
struct slot {
    struct gradient_hook hook; /* the first member: who has the hook has the slot */
    struct reducer *reducer;
    struct tensor *parameter, *view;
    size_t bucket;
    bool has_arrived; /* in this backward pass */
};

struct bucket {
    struct tensor *contents;
    size_t members, pending; /* gradients; those that have not arrived yet */
};

struct reducer {
    struct slot *slots;
    size_t count;
    struct bucket *buckets;
    size_t bucket_count, next; /* the first bucket that is not being reduced yet */
    size_t *order;             /* slots, in the order in which gradients arrived at first */
    size_t arrived;            /* how many of them are known */
    uint64_t first_bytes, bytes;
    uint32_t stream; /* of the reductions */
    bool as_views, was_rebuilt;
    bool expects; /* gradients of a forward pass; else they are only accumulated */
};

/* --- buckets ---------------------------------------------------------------------------- */

static void drop_buckets(struct engine *engine, struct reducer *reducer)
{
    for (size_t i = 0; i < reducer->count; i++) {
        tensor_drop(engine, reducer->slots[i].view);
        reducer->slots[i].view = NULL;
    }
    for (size_t i = 0; i < reducer->bucket_count; i++) {
        tensor_drop(engine, reducer->buckets[i].contents);
    }
    reducer->bucket_count = 0;
}

/* The gradient, if there is one, moves into the bucket. */
static void become_view(struct engine *engine, struct slot *slot)
{
    struct tensor *grad = slot->parameter->grad;
    if (slot->reducer->as_views && grad && grad->storage != slot->view->storage) {
        slot->parameter->grad = tensor_keep(slot->view);
        tensor_drop(engine, grad);
    }
}

/* A bucket for the slots order[begin] to order[end - 1]; all parameters are float32. */
static void add_bucket(struct engine *engine, struct reducer *reducer, const size_t *order,
                       size_t begin, size_t end)
{
    struct shape flat = {1, {0}};
    for (size_t i = begin; i < end; i++) {
        flat.size[0] += (int64_t)shape_count(&reducer->slots[order[i]].parameter->shape);
    }
    struct bucket *bucket = &reducer->buckets[reducer->bucket_count++];
    *bucket = (struct bucket){.contents = tensor_new(engine, &flat, DTYPE_FLOAT32),
                              .members = end - begin};
    storage_mark(bucket->contents->storage, GMD_GRADIENT);
    for (size_t i = begin; i < end; i++) {
        struct slot *slot = &reducer->slots[order[i]];
        slot->bucket = reducer->bucket_count - 1;
        slot->view = tensor_view(engine, bucket->contents, &slot->parameter->shape);
        become_view(engine, slot);
    }
}

/* A bucket is full once it has reached its limit, which it may pass. */
static void make_buckets(struct engine *engine, struct reducer *reducer, const size_t *order,
                         uint64_t first_limit, uint64_t limit)
{
    uint64_t bytes = 0;
    size_t begin = 0;
    drop_buckets(engine, reducer);
    for (size_t i = 0; i < reducer->count; i++) {
        bytes += tensor_bytes(reducer->slots[order[i]].parameter);
        if (bytes >= (reducer->bucket_count ? limit : first_limit) || i + 1 == reducer->count) {
            add_bucket(engine, reducer, order, begin, i + 1);
            begin = i + 1;
            bytes = 0;
        }
    }
}

/* --- the backward pass ------------------------------------------------------------------ */

/* On a stream of its own, after what was queued so far. */
static void all_reduce(struct engine *engine, const struct reducer *reducer,
                       const struct bucket *bucket)
{
    stream_waits(engine, reducer->stream, engine->stream);
    collective_use(engine, bucket->contents->storage, reducer->stream);
}

/* Buckets are reduced in turn; after the last one the gradients are copied back, in place. */
static void reduce_ready(struct engine *engine, struct reducer *reducer)
{
    while (reducer->next < reducer->bucket_count && !reducer->buckets[reducer->next].pending) {
        all_reduce(engine, reducer, &reducer->buckets[reducer->next++]);
    }
    if (reducer->next == reducer->bucket_count) {
        stream_waits(engine, engine->stream, reducer->stream);
        reducer->expects = false;
    }
}

/* A parameter of several checkpoints comes several times here, as each recomputes in a pass of its
 * own; in torch it comes once, when all have added to it (use_reentrant=False). */
static void gradient_arrived(struct engine *engine, struct gradient_hook *hook)
{
    struct slot *slot = (struct slot *)hook;
    struct reducer *reducer = slot->reducer;
    if (!reducer->expects || slot->has_arrived || engine_failed(engine)) {
        return;
    }
    slot->has_arrived = true;
    if (!reducer->was_rebuilt) {
        reducer->order[reducer->arrived++] = (size_t)(slot - reducer->slots);
    }
    become_view(engine, slot);
    reducer->buckets[slot->bucket].pending--;
    reduce_ready(engine, reducer);
}

/* --- what all processes share ----------------------------------------------------------- */

/* What the first process has is sent to all others, each type for itself: put together, where it is
 * several tensors, in pieces of so many bytes, of which two are on their way. */
struct broadcast {
    struct storage *older, *newer;
    enum dtype dtype;
    uint64_t bytes;
    size_t tensors;
};

static void send_piece(struct engine *engine, struct broadcast *all)
{
    if (all->tensors) {
        storage_drop(engine, all->older);
        all->older = all->newer;
        all->newer = all->tensors > 1 ? storage_new(engine, all->bytes) : NULL;
        all->bytes = all->tensors = 0;
    }
}

static void send_tensor(struct engine *engine, struct tensor *tensor, void *context)
{
    struct broadcast *all = context;
    if (tensor->dtype == all->dtype) {
        all->bytes += tensor_bytes(tensor);
        all->tensors++;
    }
    if (all->bytes >= BROADCAST_BYTES) {
        send_piece(engine, all);
    }
}

static void broadcast(struct engine *engine, struct module *body, bool with_parameters)
{
    static const enum dtype types[] = {DTYPE_FLOAT32, DTYPE_INT64}; /* of numbers, and of counts */
    struct broadcast all = {0};
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        all.dtype = types[i];
        if (with_parameters) {
            module_parameters(engine, body, send_tensor, &all);
        }
        module_buffers(engine, body, send_tensor, &all);
        send_piece(engine, &all);
    }
    storage_drop(engine, all.older);
    storage_drop(engine, all.newer);
}

/* --- the forward pass ------------------------------------------------------------------- */

static bool is_unfinished(const struct reducer *reducer)
{
    bool has_begun = false;
    for (size_t i = 0; i < reducer->count && reducer->expects; i++) {
        has_begun |= reducer->slots[i].has_arrived;
    }
    return has_begun;
}

static void prepare_forward(struct engine *engine, struct reducer *reducer)
{
    if (is_unfinished(reducer)) {
        engine_misuse(engine, "DistributedDataParallel: a parameter got no gradient in the last "
                              "backward pass, and its bucket still waits for it");
    } else if (!reducer->was_rebuilt && reducer->arrived == reducer->count) {
        reducer->was_rebuilt = true;
        make_buckets(engine, reducer, reducer->order, reducer->first_bytes, reducer->bytes);
    }
}

static void prepare_backward(struct reducer *reducer)
{
    reducer->expects = reducer->bucket_count > 0;
    reducer->next = 0;
    reducer->arrived = reducer->was_rebuilt ? reducer->arrived : 0;
    for (size_t i = 0; i < reducer->bucket_count; i++) {
        reducer->buckets[i].pending = reducer->buckets[i].members;
    }
    for (size_t i = 0; i < reducer->count; i++) {
        reducer->slots[i].has_arrived = false;
    }
}

static int distributed_forward(struct engine *engine, struct module *module, struct tensor **inputs,
                               int count, struct tensor *results[MODULE_MAX_RESULTS])
{
    struct module *body = module->children[0];
    if (engine->grad_enabled) {
        prepare_forward(engine, module->reducer);
    }
    broadcast(engine, body, false);
    int made = engine_failed(engine) ? 0 : body->forward(engine, body, inputs, count, results);
    if (made && engine->grad_enabled) {
        prepare_backward(module->reducer);
    }
    return made;
}

/* --- begin and end ---------------------------------------------------------------------- */

static void count_parameter(struct engine *engine, struct tensor *parameter, void *context)
{
    size_t *count = context;
    (void)engine;
    *count += parameter->requires_grad;
}

static void add_slot(struct engine *engine, struct tensor *parameter, void *context)
{
    struct reducer *reducer = context;
    struct slot *slot = &reducer->slots[reducer->count];
    if (!parameter->requires_grad) {
        return;
    }
    if (parameter->is_shard) {
        engine_misuse(engine,
                      "DistributedDataParallel: the model is sharded: fully_shard() reduces "
                      "its gradients itself");
        return;
    }
    if (parameter->hook) {
        engine_misuse(engine, "DistributedDataParallel: the model is part of another one already");
        return;
    }
    *slot = (struct slot){
        .hook = {gradient_arrived}, .reducer = reducer, .parameter = tensor_keep(parameter)};
    parameter->hook = &slot->hook;
    reducer->order[reducer->count] = reducer->count;
    reducer->count++;
}

static struct reducer *reducer_new(struct engine *engine, size_t count, uint64_t bucket_bytes,
                                   bool as_views)
{
    struct reducer *reducer = host_take(engine, sizeof *reducer);
    reducer->slots = host_take(engine, count * sizeof(struct slot));
    reducer->buckets = host_take(engine, count * sizeof(struct bucket));
    reducer->order = host_take(engine, count * sizeof(size_t));
    reducer->first_bytes = bucket_bytes ? bucket_bytes : FIRST_BYTES;
    reducer->bytes = bucket_bytes ? bucket_bytes : DEFAULT_BYTES;
    reducer->as_views = as_views;
    reducer->stream = 1 + engine->streams++ % 32;
    return reducer;
}

static void close_reducer(struct engine *engine, struct module *module)
{
    struct reducer *reducer = module->reducer;
    drop_buckets(engine, reducer);
    for (size_t i = 0; i < reducer->count; i++) {
        reducer->slots[i].parameter->hook = NULL;
        tensor_drop(engine, reducer->slots[i].parameter);
    }
    host_give(engine, reducer->order);
    host_give(engine, reducer->buckets);
    host_give(engine, reducer->slots);
    host_give(engine, reducer);
}

struct module *nn_distributed(struct engine *engine, struct module *body, uint64_t bucket_bytes,
                              bool as_views)
{
    struct module *module = module_new(engine, "DistributedDataParallel", distributed_forward);
    size_t count = 0;
    module_parameters(engine, body, count_parameter, &count);
    module->takes = body->takes;
    module_child(engine, module, body);
    if (count == 0) {
        engine_misuse(engine, "DistributedDataParallel: the model has no parameter that requires a "
                              "gradient");
        return module;
    }
    module->reducer = reducer_new(engine, count, bucket_bytes, as_views);
    module->close = close_reducer;
    module_parameters(engine, body, add_slot, module->reducer);
    broadcast(engine, body, true);
    make_buckets(engine, module->reducer, module->reducer->order, UINT64_MAX, UINT64_MAX);
    return module;
}

struct tensor *reducer_bucket(const struct reducer *reducer, size_t index)
{
    return index < reducer->bucket_count ? reducer->buckets[index].contents : NULL;
}
