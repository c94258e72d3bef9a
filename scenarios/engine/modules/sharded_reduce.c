/* sharded_reduce.c - after a module's backward pass: its gradients are reduced over all ranks, and
 * each rank keeps its rows. Facts: post_backward() in _fsdp_param_group.py, foreach_reduce() in
 * _fsdp_collectives.py, _chunk_cat in ATen's TensorShape.cu, of PyTorch 2.11. */
#include "collective.h"
#include "sharded_parts.h"

#define BYTES_PER_BLOCK ((uint64_t)32 * 2048) /* that a block of threads copies */

/* --- gradients that are kept ------------------------------------------------------------- */

/* What was kept of earlier passes in the type of reductions takes up the new gradients. */
static void add_to_accumulated(struct engine *engine, const struct sharded *sharded)
{
    for (size_t i = 0; i < sharded->count; i++) {
        struct sharded_parameter *parameter = &sharded->parameters[i];
        if (parameter->accumulated && parameter->full && parameter->full->grad) {
            tensor_drop(engine, parameter->full->grad);
            parameter->full->grad = NULL;
        }
    }
}

static void keep_gradients(struct engine *engine, const struct sharded *sharded)
{
    enum dtype dtype = sharded->options.reduce_dtype;
    for (size_t i = 0; i < sharded->count; i++) {
        struct sharded_parameter *parameter = &sharded->parameters[i];
        struct tensor *grad = parameter->full ? parameter->full->grad : NULL;
        if (grad && dtype != DTYPES && grad->dtype != dtype) {
            parameter->full->grad = NULL;
            parameter->accumulated = tensor_new(engine, &grad->shape, dtype);
            storage_mark(parameter->accumulated->storage, GMD_GRADIENT);
            tensor_drop(engine, grad);
        }
    }
}

/* --- gradients that are reduced ---------------------------------------------------------- */

/* The gradients of a module's parameters on their way. */
struct gradients {
    struct tensor **grads;
    struct sharded_parameter **parameters;
    size_t count;
    uint64_t numbers; /* of all shards, padded */
    enum dtype from, dtype;
};

static void collect(const struct sharded *sharded, struct gradients *all)
{
    for (size_t i = 0; i < sharded->count; i++) {
        struct sharded_parameter *parameter = &sharded->parameters[i];
        struct tensor **held = parameter->accumulated ? &parameter->accumulated
                               : parameter->full      ? &parameter->full->grad
                                                      : NULL;
        if (held && *held) {
            all->from = (*held)->dtype;
            all->numbers += parameter->numbers;
            all->parameters[all->count] = parameter;
            all->grads[all->count++] = *held;
            *held = NULL;
        }
    }
    enum dtype reduced = sharded->options.reduce_dtype;
    all->dtype = reduced == DTYPES ? all->from : reduced;
}

/* Addresses and sizes of what is copied, and which block of threads copies what. */
static uint64_t copy_table_bytes(const struct gradients *all)
{
    uint64_t blocks = 0;
    for (size_t i = 0; i < all->count; i++) {
        blocks += parts_of(all->parameters[i]->numbers * dtype_bytes(all->dtype), BYTES_PER_BLOCK);
    }
    return sizeof(int64_t) * (7 * all->count + 2 + blocks);
}

/* Without a kernel of its own, each gradient whose rows the ranks do not divide is padded first. */
static void pad(struct engine *engine, const struct gradients *all, uint64_t ranks)
{
    struct storage **padded = host_take(engine, all->count * sizeof(struct storage *));
    for (size_t i = 0; i < all->count; i++) {
        uint64_t numbers = all->parameters[i]->numbers * ranks;
        if (numbers != shape_count(&all->grads[i]->shape)) {
            padded[i] = storage_new(engine, numbers * dtype_bytes(all->from));
        }
    }
    for (size_t i = 0; i < all->count; i++) {
        storage_drop(engine, padded[i]);
    }
    host_give(engine, padded);
}

static void copy_in(struct engine *engine, const struct gradients *all, uint64_t ranks)
{
    bool is_widened = all->from == DTYPE_BFLOAT16 && all->dtype == DTYPE_FLOAT32;
    if (all->from == all->dtype || is_widened) {
        storage_scratch(engine, copy_table_bytes(all));
    } else {
        pad(engine, all, ranks);
    }
}

/* The rank's rows of all gradients are views of what comes out, or lie where the shards do, on the
 * CPU; they are added to earlier ones. */
static void give_rows(struct engine *engine, const struct gradients *all, struct tensor *output)
{
    for (size_t i = 0; i < all->count; i++) {
        struct tensor *shard = all->parameters[i]->shard;
        bool is_on_host = shard->storage->is_on_host;
        engine->on_host = is_on_host;
        if (!shard->grad) {
            shard->grad = is_on_host ? tensor_new(engine, &shard->shape, output->dtype)
                                     : tensor_view(engine, output, &shard->shape);
        }
        engine->on_host = false;
    }
}

/* Replicas of the rows add theirs up, on a stream of its own; the memory for that stays until the
 * backward pass is over. */
static void add_replicas(struct engine *engine, struct sharded *sharded, const struct tensor *rows)
{
    stream_waits(engine, sharded->context->all_reduce, sharded->context->reduce);
    engine->stream = sharded->context->all_reduce;
    collective_use(engine, rows->storage, engine->stream);
    storage_drop(engine, sharded->reduced);
    sharded->reduced = storage_keep(rows->storage);
}

static void reduce(struct engine *engine, struct sharded *sharded, struct gradients *all)
{
    struct sharded_context *context = sharded->context;
    struct shape flat = {1, {(int64_t)all->numbers}};
    uint32_t current = engine->stream;
    stream_waits(engine, current, context->reduce);
    storage_drop(engine, context->reduce_input);
    context->reduce_input =
        storage_new(engine, all->numbers * sharded->ranks * dtype_bytes(all->dtype));
    storage_mark(context->reduce_input, GMD_GRADIENT);
    copy_in(engine, all, sharded->ranks);
    for (size_t i = all->count; i-- > 0;) { /* as a list is cleared */
        tensor_drop(engine, all->grads[i]);
    }
    stream_waits(engine, context->reduce, current);
    engine->stream = context->reduce;
    struct tensor *output = tensor_new(engine, &flat, all->dtype);
    if (sharded->options.replicas > 0) {
        add_replicas(engine, sharded, output);
    }
    if (all->dtype != sharded->dtype) {
        struct tensor *reduced = output;
        output = tensor_new(engine, &flat, sharded->dtype);
        tensor_drop(engine, reduced);
    }
    storage_mark(output->storage, GMD_GRADIENT);
    give_rows(engine, all, output);
    tensor_drop(engine, output);
    engine->stream = current;
}

void sharded_after_backward(struct engine *engine, struct sharded *sharded)
{
    sharded->pass = PASS_AFTER_BACKWARD;
    add_to_accumulated(engine, sharded);
    if (!sharded->reduces) {
        if (sharded->reshards_after_backward) {
            sharded_give_up(engine, sharded);
        }
        keep_gradients(engine, sharded);
        return;
    }
    struct gradients all = {
        .grads = host_take(engine, (sharded->count + 1) * sizeof(struct tensor *)),
        .parameters = host_take(engine, (sharded->count + 1) * sizeof(struct sharded_parameter *))};
    collect(sharded, &all);
    if (sharded->reshards_after_backward) {
        sharded_give_up(engine, sharded);
    }
    if (all.count > 0) {
        reduce(engine, sharded, &all);
    }
    host_give(engine, all.parameters);
    host_give(engine, all.grads);
}
