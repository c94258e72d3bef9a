#include "gmd_tensor.h"

#include "gmd_node.h"
#include "gmd_observer.h"

static void destroy_tensor(gmd_engine *engine, gmd_thing *thing)
{
    gmd_tensor *tensor = (gmd_tensor *)thing;
    gmd_tensor_drop(engine, tensor->grad);
    gmd_storage_drop(engine, tensor->storage);
    gmd_node_drop(engine, tensor->grad_fn);
}

const gmd_thing_class gmd_tensor_class = {.name = "tensor", .destroy = destroy_tensor};

static gmd_tensor *tensor_over(gmd_engine *engine, gmd_storage *storage, const gmd_shape *shape,
                               gmd_dtype dtype)
{
    gmd_tensor *tensor = gmd_take(engine, sizeof *tensor);
    gmd_thing_init(engine, &tensor->thing, &gmd_tensor_class);
    tensor->storage = storage;
    tensor->shape = *shape;
    tensor->dtype = dtype;
    if (engine->observer) {
        engine->observer->shaped(engine->observer->context, tensor);
    }
    return tensor;
}

uint64_t gmd_tensor_bytes(const gmd_tensor *tensor)
{
    return gmd_shape_count(&tensor->shape) * gmd_dtype_bytes(tensor->dtype);
}

gmd_tensor *gmd_tensor_new(gmd_engine *engine, const gmd_shape *shape, gmd_dtype dtype)
{
    gmd_storage *storage = gmd_storage_new(engine, gmd_shape_count(shape) * gmd_dtype_bytes(dtype));
    return tensor_over(engine, storage, shape, dtype);
}

gmd_tensor *gmd_tensor_like(gmd_engine *engine, const gmd_tensor *model)
{
    return gmd_tensor_new(engine, &model->shape, model->dtype);
}

gmd_tensor *gmd_tensor_view(gmd_engine *engine, gmd_tensor *tensor, const gmd_shape *shape)
{
    gmd_tensor *view = tensor_over(engine, gmd_storage_keep(tensor->storage), shape, tensor->dtype);
    view->is_view = true;
    view->transposed = tensor->transposed;
    view->expanded = tensor->expanded;
    return view;
}

gmd_tensor *gmd_tensor_alias(gmd_engine *engine, gmd_tensor *tensor)
{
    return gmd_tensor_view(engine, tensor, &tensor->shape);
}

bool gmd_tensor_tracked(const gmd_engine *engine, const gmd_tensor *tensor)
{
    return engine->grad_enabled && tensor && (tensor->grad_fn || tensor->requires_grad);
}
