#include "gmd_autocast.h"

typedef struct cached {
    const gmd_tensor *parameter; /* compared, not followed */
    gmd_tensor *copy;
    struct cached *next;
} cached;

struct gmd_autocast {
    gmd_dtype dtype;
    cached *copies;
    struct gmd_autocast *outer;
};

void gmd_autocast_begin(gmd_engine *engine, gmd_dtype dtype)
{
    struct gmd_autocast *block = gmd_take(engine, sizeof *block);
    block->dtype = dtype;
    block->outer = engine->autocast;
    engine->autocast = block;
}

/* torch empties its cache when the outermost block ends; what is then still needed, the graph has.
 */
void gmd_autocast_end(gmd_engine *engine)
{
    struct gmd_autocast *block = engine->autocast;
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
        gmd_tensor_drop(engine, first->copy);
        gmd_give(engine, first);
    }
    gmd_give(engine, block);
}

gmd_dtype gmd_autocast_dtype(const gmd_engine *engine, gmd_dtype otherwise)
{
    return engine->autocast ? engine->autocast->dtype : otherwise;
}

static gmd_tensor *known_copy(const gmd_engine *engine, const gmd_tensor *parameter)
{
    for (const struct gmd_autocast *block = engine->autocast; block; block = block->outer) {
        for (const cached *each = block->copies; each; each = each->next) {
            if (each->parameter == parameter && each->copy->dtype == engine->autocast->dtype) {
                return each->copy;
            }
        }
    }
    return NULL;
}

gmd_tensor *gmd_autocast_input(gmd_engine *engine, gmd_tensor *tensor)
{
    bool floating = tensor && (tensor->dtype == GMD_FLOAT32 || tensor->dtype == GMD_FLOAT16 ||
                               tensor->dtype == GMD_BFLOAT16);
    if (!floating || !engine->autocast) {
        return gmd_tensor_keep(tensor);
    }
    if (!tensor->requires_grad || tensor->grad_fn || tensor->dtype != GMD_FLOAT32) {
        return gmd_op_cast(engine, tensor, engine->autocast->dtype);
    }
    gmd_tensor *copy = known_copy(engine, tensor);
    if (!copy) {
        cached *entry = gmd_take(engine, sizeof *entry);
        copy = gmd_op_cast(engine, tensor, engine->autocast->dtype);
        *entry = (cached){.parameter = tensor, .copy = copy, .next = engine->autocast->copies};
        engine->autocast->copies = entry;
    }
    return gmd_tensor_keep(copy);
}

gmd_tensor *gmd_autocast_wide(gmd_engine *engine, gmd_tensor *tensor)
{
    bool narrow = tensor && (tensor->dtype == GMD_FLOAT16 || tensor->dtype == GMD_BFLOAT16);
    return narrow && engine->autocast ? gmd_op_cast(engine, tensor, GMD_FLOAT32)
                                      : gmd_tensor_keep(tensor);
}
