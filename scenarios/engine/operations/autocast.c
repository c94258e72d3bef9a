#include "gmd_autocast.h"

typedef struct cached {
    const struct tensor *parameter; /* compared, not followed */
    struct tensor *copy;
    struct cached *next;
} cached;

struct autocast {
    enum dtype dtype;
    cached *copies;
    struct autocast *outer;
};

void autocast_begin(struct engine *engine, enum dtype dtype)
{
    struct autocast *block = host_take(engine, sizeof *block);
    block->dtype = dtype;
    block->outer = engine->autocast;
    engine->autocast = block;
}

/* torch empties its cache when the outermost block ends; the graph keeps the copies that are still
 * needed. */
void autocast_end(struct engine *engine)
{
    struct autocast *block = engine->autocast;
    engine->autocast = block->outer;
    cached *copies = block->copies;
    if (block->outer) {
        cached **end = &block->outer->copies;
        while (*end) {
            end = &(*end)->next;
        }
        *end = copies;
        copies = NULL;
    }
    while (copies) {
        cached *first = copies;
        copies = first->next;
        tensor_drop(engine, first->copy);
        host_give(engine, first);
    }
    host_give(engine, block);
}

enum dtype autocast_dtype(const struct engine *engine, enum dtype otherwise)
{
    return engine->autocast ? engine->autocast->dtype : otherwise;
}

static struct tensor *known_copy(const struct engine *engine, const struct tensor *parameter)
{
    for (const struct autocast *block = engine->autocast; block; block = block->outer) {
        for (const cached *each = block->copies; each; each = each->next) {
            if (each->parameter == parameter && each->copy->dtype == engine->autocast->dtype) {
                return each->copy;
            }
        }
    }
    return NULL;
}

struct tensor *autocast_input(struct engine *engine, struct tensor *tensor)
{
    bool floating = tensor && (tensor->dtype == DTYPE_FLOAT32 || tensor->dtype == DTYPE_FLOAT16 ||
                               tensor->dtype == DTYPE_BFLOAT16);
    if (!floating || !engine->autocast) {
        return tensor_keep(tensor);
    }
    if (!tensor->requires_grad || tensor->grad_fn || tensor->dtype != DTYPE_FLOAT32) {
        return op_cast(engine, tensor, engine->autocast->dtype);
    }
    struct tensor *copy = known_copy(engine, tensor);
    if (!copy) {
        cached *entry = host_take(engine, sizeof *entry);
        copy = op_cast(engine, tensor, engine->autocast->dtype);
        *entry = (cached){.parameter = tensor, .copy = copy, .next = engine->autocast->copies};
        engine->autocast->copies = entry;
    }
    return tensor_keep(copy);
}

struct tensor *autocast_wide(struct engine *engine, struct tensor *tensor)
{
    bool narrow = tensor && (tensor->dtype == DTYPE_FLOAT16 || tensor->dtype == DTYPE_BFLOAT16);
    return narrow && engine->autocast ? op_cast(engine, tensor, DTYPE_FLOAT32)
                                      : tensor_keep(tensor);
}
