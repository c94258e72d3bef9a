/* module_copy.c - copy.deepcopy() of a module: new memory for each parameter and buffer, without
 * gradients. Facts: Parameter.__deepcopy__ of PyTorch 2.11; a module's own tensors come before
 * those of its parts. */
#include "gmd_layout.h"
#include "gmd_sharded.h"

/* What was copied, and to what: a part that stands at several places is copied once. */
struct copies {
    const void **from;
    void **to;
    size_t count, capacity;
};

static void *copy_of(const struct copies *copies, const void *from)
{
    for (size_t i = 0; i < copies->count; i++) {
        if (copies->from[i] == from) {
            return copies->to[i];
        }
    }
    return NULL;
}

static void note(struct engine *engine, struct copies *copies, const void *from, void *to)
{
    if (copies->count == copies->capacity) {
        copies->capacity = copies->capacity ? 2 * copies->capacity : 32;
        copies->from =
            host_take_more(engine, copies->from, copies->capacity * sizeof *copies->from);
        copies->to = host_take_more(engine, copies->to, copies->capacity * sizeof *copies->to);
    }
    copies->from[copies->count] = from;
    copies->to[copies->count++] = to;
}

static struct tensor *copy_tensor(struct engine *engine, struct copies *copies,
                                  struct tensor *tensor)
{
    struct tensor *copy = copy_of(copies, tensor);
    if (copy) {
        return tensor_keep(copy);
    }
    copy = tensor_like_it_lies(engine, tensor);
    copy->requires_grad = tensor->requires_grad;
    storage_mark(copy->storage, GMD_PARAMETER);
    note(engine, copies, tensor, copy);
    return copy;
}

static struct tensor **copy_tensors(struct engine *engine, struct copies *copies,
                                    struct tensor *const *tensors, size_t count)
{
    struct tensor **result = count ? host_take(engine, count * sizeof(struct tensor *)) : NULL;
    for (size_t i = 0; i < count; i++) {
        result[i] = copy_tensor(engine, copies, tensors[i]);
    }
    return result;
}

static struct module *copy_module(struct engine *engine, struct copies *copies,
                                  struct module *module)
{
    struct module *copy = copy_of(copies, module);
    if (copy) {
        return module_keep(copy);
    }
    copy = module_new(engine, module->name, module->forward);
    struct thing thing = copy->thing;
    *copy = *module;
    copy->thing = thing;
    copy->level = 0;
    note(engine, copies, module, copy);
    copy->parameters = copy_tensors(engine, copies, module->parameters, module->parameter_count);
    copy->buffers = copy_tensors(engine, copies, module->buffers, module->buffer_count);
    copy->children = NULL;
    copy->child_count = 0;
    for (size_t i = 0; i < module->child_count; i++) {
        struct module *child = copy_module(engine, copies, module->children[i]);
        module_child(engine, copy, child);
    }
    return copy;
}

static void find_owner(struct module *module, void *context)
{
    bool *found = context;
    *found |= module->flat || module->reducer || module->sharded;
}

struct module *module_copy(struct engine *engine, struct module *module)
{
    bool owns = false;
    struct copies copies = {0};
    module_each(engine, module, find_owner, &owns);
    if (owns) {
        engine_misuse(engine, "deepcopy: what a copy of an LSTM or GRU, of "
                              "DistributedDataParallel or of a sharded module takes is not known");
        return NULL;
    }
    struct module *copy = copy_module(engine, &copies, module);
    host_give(engine, copies.from);
    host_give(engine, copies.to);
    return copy;
}
