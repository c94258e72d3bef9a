/* clip_grad_norm.c - torch.nn.utils.clip_grad_norm_. */
#include "gmd_min.h"
#include "gmd_optimizer.h"

#define CHUNK 65536 /* elements of a tensor that one thread block sums */

typedef struct norms {
    uint64_t count, largest; /* gradients, and elements of the largest */
    uint64_t on_host;        /* of the gradients */
    struct storage **each;
} norms;

static void count_gradient(struct engine *engine, struct tensor *parameter, void *context)
{
    norms *all = context;
    (void)engine;
    if (parameter->grad) {
        uint64_t elements = shape_count(&parameter->shape);
        all->count++;
        all->on_host += parameter->grad->storage->is_on_host;
        all->largest = gmd_max(elements, all->largest);
    }
}

/* Allocates the norm of each gradient, the norm of the norms, and the factor; gradients are scaled
 * in place. */
void clip_grad_norm(struct engine *engine, struct module *module)
{
    norms all = {0};
    module_parameters(engine, module, count_gradient, &all);
    if (all.on_host > 0 && all.on_host < all.count) {
        engine_misuse(engine, "clip_grad_norm: the gradients lie on the GPU, or all on the CPU");
        return;
    }
    engine->on_host = all.on_host > 0;
    uint64_t chunks = (all.largest + CHUNK - 1) / CHUNK;
    struct storage *partial = storage_new(engine, all.count * chunks * 4);
    all.each = host_take(engine, (all.count + 1) * sizeof(struct storage *));
    for (uint64_t i = 0; i < all.count; i++) {
        all.each[i] = storage_new(engine, 4);
    }
    storage_drop(engine, partial);
    struct storage *stacked = storage_new(engine, all.count * 4);
    struct storage *norm = storage_new(engine, 4);
    storage_drop(engine, stacked);
    for (uint64_t i = all.count; i-- > 0;) { /* a list */
        storage_drop(engine, all.each[i]);
    }
    struct storage *factor = storage_new(engine, 4);
    storage_drop(engine, factor);
    storage_drop(engine, norm);
    host_give(engine, all.each);
    engine->on_host = false;
}
