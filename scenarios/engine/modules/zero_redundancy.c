/* zero_redundancy.c - torch.distributed.optim.ZeroRedundancyOptimizer (ZeRO stage 1), as one rank
 * sees it: it has the state of its own share of the parameters. Facts:
 * zero_redundancy_optimizer.py of PyTorch 2.11. */
#include "optimizer_parts.h"

#include <stdlib.h>

/* A parameter, its number and the rank that updates it. */
struct share {
    struct tensor *parameter;
    size_t number;
    uint64_t rank;
};

/* The largest first; those of one size stay in their order. */
static int by_size(const void *left, const void *right)
{
    const struct share *a = left, *b = right;
    uint64_t of_a = shape_count(&a->parameter->shape), of_b = shape_count(&b->parameter->shape);
    return of_a != of_b ? (of_a > of_b ? -1 : 1) : a->number < b->number ? -1 : 1;
}

/* Each goes to the rank that has the least so far. */
static void share_out(struct engine *engine, struct share *shares, size_t count)
{
    uint64_t *numbers = host_take(engine, engine->ranks * sizeof *numbers);
    qsort(shares, count, sizeof *shares, by_size);
    for (size_t i = 0; i < count; i++) {
        uint64_t least = 0;
        for (uint64_t rank = 1; rank < engine->ranks; rank++) {
            least = numbers[rank] < numbers[least] ? rank : least;
        }
        shares[i].rank = least;
        numbers[least] += shape_count(&shares[i].parameter->shape);
    }
    host_give(engine, numbers);
}

/* The parameters of each rank move into one block, from which they are sent. */
static void make_bucket(struct engine *engine, struct optimizer *optimizer,
                        const struct share *shares, size_t count, uint64_t rank)
{
    uint64_t bytes = 0;
    for (size_t i = 0; i < count; i++) {
        const struct tensor *parameter = shares[i].parameter;
        bytes += shares[i].rank == rank && parameter->requires_grad ? tensor_bytes(parameter) : 0;
    }
    struct storage *bucket = storage_new(engine, bytes ? bytes : sizeof(float));
    storage_mark(bucket, GMD_PARAMETER);
    optimizer->buckets[rank] = bucket;
    for (size_t i = 0; i < count; i++) {
        struct tensor *parameter = shares[i].parameter;
        if (shares[i].rank == rank && parameter->requires_grad) {
            struct storage *before = parameter->storage;
            parameter->storage = storage_keep(bucket);
            storage_drop(engine, before);
        }
    }
}

static void divide(struct engine *engine, struct optimizer *optimizer, struct share *shares)
{
    size_t count = optimizer->count, own = 0;
    optimizer->others = host_take(engine, (count + 1) * sizeof(struct tensor *));
    for (size_t i = 0; i < count; i++) {
        if (shares[i].rank == engine->rank) {
            optimizer->slots[own++] = (struct slot){.parameter = shares[i].parameter};
        } else {
            optimizer->others[optimizer->other_count++] = shares[i].parameter;
        }
    }
    optimizer->count = own;
    optimizer->groups[0].end = own;
}

void optimizer_share_out(struct engine *engine, struct optimizer *optimizer, bool as_buckets)
{
    size_t count = optimizer->count;
    struct share *shares = host_take(engine, (count + 1) * sizeof *shares);
    for (size_t i = 0; i < count; i++) {
        shares[i] = (struct share){.parameter = optimizer->slots[i].parameter, .number = i};
    }
    share_out(engine, shares, count);
    if (as_buckets) {
        optimizer->bucket_count = engine->ranks;
        optimizer->buckets = host_take(engine, engine->ranks * sizeof(struct storage *));
        for (uint64_t rank = 0; rank < engine->ranks; rank++) {
            make_bucket(engine, optimizer, shares, count, rank);
        }
    }
    divide(engine, optimizer, shares);
    host_give(engine, shares);
}

/* --- what it holds besides --------------------------------------------------------------- */

bool optimizer_is_shared_out(const struct optimizer *optimizer)
{
    return optimizer->others != NULL;
}

struct tensor *optimizer_other(const struct optimizer *optimizer, size_t index)
{
    return index < optimizer->other_count ? optimizer->others[index] : NULL;
}

struct storage *optimizer_bucket(const struct optimizer *optimizer, size_t index)
{
    return index < optimizer->bucket_count ? optimizer->buckets[index] : NULL;
}

void optimizer_drop_others(struct engine *engine, struct optimizer *optimizer)
{
    for (size_t i = 0; i < optimizer->other_count; i++) {
        tensor_drop(engine, optimizer->others[i]);
    }
    for (size_t i = 0; i < optimizer->bucket_count; i++) {
        storage_drop(engine, optimizer->buckets[i]);
    }
    host_give(engine, optimizer->others);
    host_give(engine, optimizer->buckets);
}
