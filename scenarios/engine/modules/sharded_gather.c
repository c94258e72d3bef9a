/* sharded_gather.c - parameters are gathered from all ranks, and given up again. Facts:
 * _fsdp_collectives.py and _fsdp_param.py; split_with_sizes_copy in ATen's TensorShape.cu, of
 * PyTorch 2.11. */
#include "collective.h"
#include "gmd_min.h"
#include "sharded_parts.h"

#include <math.h>

#define BYTES_PER_BLOCK 2048 /* that a block of threads copies at a time */
#define MOST_BLOCKS     4224 /* twice as many as run at once on an H200 */

void sharded_put(struct engine *engine, const struct sharded_parameter *parameter,
                 struct tensor *tensor)
{
    for (size_t i = 0; i < parameter->place_count; i++) {
        struct tensor **place =
            &parameter->places[i].module->parameters[parameter->places[i].index];
        struct tensor *before = *place;
        *place = tensor_keep(tensor);
        tensor_drop(engine, before);
    }
}

/* --- gathering --------------------------------------------------------------------------- */

/* Who gives the parts: all ranks of the shards, or those of the smaller group. */
static uint64_t group_of(const struct sharded *sharded)
{
    return sharded->is_post_forward ? sharded->options.post_forward_ranks : sharded->ranks;
}

/* The numbers of a parameter that this rank gives. */
static uint64_t part_numbers(const struct sharded *sharded, size_t index)
{
    return sharded->parameters[index].numbers * sharded->ranks / group_of(sharded);
}

static uint64_t numbers_of_rank(const struct sharded *sharded)
{
    uint64_t numbers = 0;
    for (size_t i = 0; i < sharded->count; i++) {
        numbers += part_numbers(sharded, i);
    }
    return numbers;
}

/* What this rank gives in the types for it: all converted at once, or each taken from the CPU and
 * converted. NULL where nothing is made. */
struct parts {
    struct storage *at_once, **each;
};

static struct parts make_parts(struct engine *engine, const struct sharded *sharded)
{
    bool converts = sharded->options.param_dtype != DTYPES;
    uint64_t element = dtype_bytes(sharded_dtype(sharded));
    struct parts parts = {NULL, NULL};
    if (!sharded->options.offloads) {
        uint64_t bytes = numbers_of_rank(sharded) * element;
        parts.at_once = converts ? storage_new(engine, bytes) : NULL;
        return parts;
    }
    parts.each = host_take(engine, sharded->count * sizeof(struct storage *));
    for (size_t i = 0; i < sharded->count; i++) {
        uint64_t numbers = sharded->parameters[i].numbers;
        parts.each[i] = storage_new(engine, numbers * dtype_bytes(sharded->dtype));
        if (converts) {
            struct storage *taken = parts.each[i];
            parts.each[i] = storage_new(engine, numbers * element);
            storage_drop(engine, taken);
        }
    }
    return parts;
}

static void drop_parts(struct engine *engine, const struct sharded *sharded, struct parts *parts)
{
    storage_drop(engine, parts->at_once);
    for (size_t i = parts->each ? sharded->count : 0; i-- > 0;) { /* a list */
        storage_drop(engine, parts->each[i]);
    }
    host_give(engine, parts->each);
}

/* Called by the script between passes, it is on the current stream. */
static bool has_own_streams(const struct sharded *sharded)
{
    return sharded->context &&
           (sharded->pass == PASS_FORWARD || sharded->pass == PASS_BEFORE_BACKWARD);
}

/* The rank's shards are copied, converted where gathered parameters have another type, to their
 * place in a buffer for those of all ranks. */
void sharded_gather(struct engine *engine, struct sharded *sharded)
{
    uint32_t current = engine->stream;
    enum dtype dtype = sharded_dtype(sharded);
    uint64_t bytes = numbers_of_rank(sharded) * dtype_bytes(dtype);
    bool is_overlapped = has_own_streams(sharded);
    if (sharded->gathered || sharded->is_full || sharded->count == 0) {
        return;
    }
    engine->stream = is_overlapped ? sharded->context->copy_in : current;
    struct parts parts = make_parts(engine, sharded);
    sharded->gathered = storage_new(engine, bytes * group_of(sharded));
    uint32_t stream = is_overlapped ? sharded->context->gather : current;
    stream_waits(engine, stream, engine->stream);
    collective_use(engine, sharded->gathered, stream);
    drop_parts(engine, sharded, &parts);
    engine->stream = current;
}

/* --- what was gathered is copied to the parameters --------------------------------------- */

/* Addresses and sizes of what is copied, and which block of threads copies what. */
static uint64_t copy_table_bytes(const struct sharded *sharded)
{
    uint64_t group = group_of(sharded);
    uint64_t element = dtype_bytes(sharded_dtype(sharded)), blocks = 0, copying = 0;
    for (size_t i = 0; i < sharded->count; i++) {
        blocks += parts_of(part_numbers(sharded, i) * element, BYTES_PER_BLOCK);
    }
    uint64_t factor = parts_of(blocks * group, MOST_BLOCKS);
    uint64_t chunks = gmd_min((uint64_t)ceil(sqrt((double)factor)), group);
    uint64_t times = parts_of(factor, chunks);
    for (size_t i = 0; i < sharded->count; i++) {
        copying += parts_of(part_numbers(sharded, i) * element, BYTES_PER_BLOCK * times);
    }
    return sizeof(int64_t) * (4 * sharded->count + 1 + copying);
}

/* Made at the first time, and its memory taken again at each other. */
static void make_full(struct engine *engine, const struct sharded *sharded,
                      struct sharded_parameter *parameter)
{
    if (parameter->full) {
        storage_refill(engine, parameter->full->storage);
        return;
    }
    struct shape flat = {1, {(int64_t)(parameter->numbers * sharded->ranks)}};
    struct tensor *memory = tensor_new(engine, &flat, sharded_dtype(sharded));
    parameter->full = tensor_view(engine, memory, &parameter->original_shape);
    parameter->full->is_view = false;
    storage_mark(memory->storage, GMD_PARAMETER);
    tensor_drop(engine, memory);
}

static void let_copy_in_wait(struct engine *engine, const struct sharded *sharded)
{
    if (sharded->context) {
        stream_waits(engine, sharded->context->copy_in, engine->stream);
        stream_waits(engine, sharded->context->gather, engine->stream);
    }
}

static void copy_out(struct engine *engine, struct sharded *sharded)
{
    if (has_own_streams(sharded)) {
        stream_waits(engine, engine->stream, sharded->context->gather);
    }
    for (size_t i = 0; i < sharded->count; i++) {
        make_full(engine, sharded, &sharded->parameters[i]);
    }
    storage_scratch(engine, copy_table_bytes(sharded));
    for (size_t i = 0; i < sharded->count; i++) {
        struct sharded_parameter *parameter = &sharded->parameters[i];
        parameter->full->requires_grad = parameter->shard->requires_grad;
        sharded_put(engine, parameter, parameter->full);
        if (sharded->is_post_forward) {
            tensor_drop(engine, parameter->post_forward);
            parameter->post_forward = NULL;
        }
    }
    sharded->is_full = true;
    sharded->is_post_forward = false;
}

/* In forward passes the buffer lives on until the next module's is copied, so that the copy need
 * not wait; else it goes at once. */
void sharded_take_apart(struct engine *engine, struct sharded *sharded)
{
    bool is_kept = sharded->context && sharded->pass == PASS_FORWARD;
    struct storage *done = sharded->gathered;
    if (!sharded->gathered) {
        return;
    }
    if (is_kept && sharded->context->gathered) {
        let_copy_in_wait(engine, sharded);
    }
    copy_out(engine, sharded);
    sharded->gathered = NULL;
    if (is_kept) {
        struct storage *latest = sharded->context->gathered;
        sharded->context->gathered = done;
        done = latest;
    } else {
        let_copy_in_wait(engine, sharded);
    }
    storage_drop(engine, done);
}

/* --- and given up ------------------------------------------------------------------------ */

void sharded_give_up(struct engine *engine, struct sharded *sharded)
{
    for (size_t i = 0; sharded->is_full && i < sharded->count; i++) {
        struct sharded_parameter *parameter = &sharded->parameters[i];
        sharded_put(engine, parameter, parameter->shard);
        storage_empty(engine, parameter->full->storage);
    }
    sharded->is_full = false;
    sharded->is_post_forward = false;
}

/* Each rank of the group keeps a larger part, until the next copy. */
void sharded_give_up_to_group(struct engine *engine, struct sharded *sharded)
{
    for (size_t i = 0; sharded->is_full && i < sharded->count; i++) {
        struct sharded_parameter *parameter = &sharded->parameters[i];
        uint64_t whole = parameter->numbers * sharded->ranks;
        struct shape part = {1, {(int64_t)(whole / sharded->options.post_forward_ranks)}};
        struct tensor *kept = tensor_new(engine, &part, sharded_dtype(sharded));
        storage_mark(kept->storage, GMD_PARAMETER);
        tensor_drop(engine, parameter->post_forward);
        parameter->post_forward = kept;
        sharded_put(engine, parameter, parameter->shard);
        storage_empty(engine, parameter->full->storage);
    }
    sharded->is_post_forward = sharded->is_full;
    sharded->is_full = false;
}
