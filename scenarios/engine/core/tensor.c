#include "gmd_tensor.h"

#include "gmd_node.h"
#include "gmd_observer.h"

#include <string.h>

static void destroy_tensor(struct engine *engine, struct thing *thing)
{
    struct tensor *tensor = (struct tensor *)thing;
    /* as TensorImpl::release_resources(): what autograd knows of it goes before its storage, and of
     * that the graph, whose member is the later one, before the gradient */
    node_drop(engine, tensor->grad_fn);
    tensor_drop(engine, tensor->grad);
    storage_drop(engine, tensor->storage);
}

const struct thing_class tensor_class = {.name = "tensor", .destroy = destroy_tensor};

static struct tensor *tensor_over(struct engine *engine, struct storage *storage,
                                  const struct shape *shape, enum dtype dtype)
{
    struct tensor *tensor = host_take(engine, sizeof *tensor);
    thing_init(engine, &tensor->thing, &tensor_class);
    tensor->storage = storage;
    tensor->shape = *shape;
    tensor->dtype = dtype;
    shape_strides(&tensor->shape, tensor->stride);
    if (engine->observer) {
        engine->observer->shaped(engine->observer->context, tensor);
    }
    return tensor;
}

uint64_t tensor_bytes(const struct tensor *tensor)
{
    return shape_count(&tensor->shape) * dtype_bytes(tensor->dtype);
}

struct tensor *tensor_new(struct engine *engine, const struct shape *shape, enum dtype dtype)
{
    struct storage *storage = storage_new(engine, shape_count(shape) * dtype_bytes(dtype));
    return tensor_over(engine, storage, shape, dtype);
}

struct tensor *tensor_of_storage(struct engine *engine, struct storage *storage,
                                 const struct shape *shape, enum dtype dtype)
{
    return tensor_over(engine, storage_keep(storage), shape, dtype);
}

struct tensor *tensor_like(struct engine *engine, const struct tensor *model)
{
    return tensor_new(engine, &model->shape, model->dtype);
}

struct tensor *tensor_view(struct engine *engine, struct tensor *tensor, const struct shape *shape)
{
    struct tensor *view = tensor_over(engine, storage_keep(tensor->storage), shape, tensor->dtype);
    view->is_view = true;
    view->transposed = tensor->transposed;
    if (shape_is(shape, &tensor->shape)) {
        memcpy(view->stride, tensor->stride, sizeof view->stride);
    }
    view->expanded = tensor->expanded;
    return view;
}

struct tensor *tensor_alias(struct engine *engine, struct tensor *tensor)
{
    return tensor_view(engine, tensor, &tensor->shape);
}

bool tensor_tracked(const struct engine *engine, const struct tensor *tensor)
{
    return engine->grad_enabled && tensor && (tensor->grad_fn || tensor->requires_grad);
}
