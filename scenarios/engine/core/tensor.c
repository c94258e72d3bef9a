#include "gmd_tensor.h"

#include "gmd_autograd.h"

#include <stdio.h>
#include <string.h>

static const struct {
    const char *name;
    uint64_t bytes;
} dtypes[GMD_DTYPES] = {
    [GMD_FLOAT32] = {"float32", 4}, [GMD_FLOAT64] = {"float64", 8},
    [GMD_FLOAT16] = {"float16", 2}, [GMD_BFLOAT16] = {"bfloat16", 2},
    [GMD_INT64] = {"int64", 8},     [GMD_INT32] = {"int32", 4},
    [GMD_UINT8] = {"uint8", 1},     [GMD_BOOL] = {"bool", 1},
};

const char *gmd_dtype_name(gmd_dtype dtype)
{
    return dtypes[dtype].name;
}

bool gmd_dtype_parse(const char *name, gmd_dtype *dtype)
{
    for (int i = 0; i < GMD_DTYPES; i++) {
        if (strcmp(dtypes[i].name, name) == 0) {
            *dtype = (gmd_dtype)i;
            return true;
        }
    }
    return false;
}

uint64_t gmd_dtype_bytes(gmd_dtype dtype)
{
    return dtypes[dtype].bytes;
}

bool gmd_dtype_is_floating(gmd_dtype dtype)
{
    return dtype == GMD_FLOAT32 || dtype == GMD_FLOAT64 || dtype == GMD_FLOAT16 ||
           dtype == GMD_BFLOAT16;
}

/* A floating type comes before any other, bool after all; else the wider one. */
gmd_dtype gmd_dtype_promoted(gmd_dtype a, gmd_dtype b)
{
    if (gmd_dtype_is_floating(a) != gmd_dtype_is_floating(b)) {
        return gmd_dtype_is_floating(a) ? a : b;
    }
    if (a != b && (a == GMD_BOOL || b == GMD_BOOL)) {
        return a == GMD_BOOL ? b : a;
    }
    if (a != b && gmd_dtype_bytes(a) == 2 && gmd_dtype_bytes(b) == 2) {
        return GMD_FLOAT32; /* float16 with bfloat16 */
    }
    return gmd_dtype_bytes(a) >= gmd_dtype_bytes(b) ? a : b;
}

/* --- storages ---------------------------------------------------------------------------- */

gmd_storage *gmd_storage_new(gmd_engine *engine, uint64_t bytes)
{
    gmd_storage *storage = gmd_take(engine, sizeof *storage);
    storage->refs = 1;
    storage->bytes = bytes;
    storage->stream = engine->stream;
    if (bytes > 0 && !gmd_engine_failed(engine)) {
        gmd_request request = {.op = GMD_OP_ALLOC,
                               .block = engine->next_block,
                               .stream = engine->stream,
                               .bytes = bytes};
        storage->block = engine->next_block++;
        storage->has_block = gmd_ask(engine, &request);
        if (engine->observer && storage->has_block) {
            engine->observer->made(engine->observer->context, storage);
        }
        engine->live_bytes += storage->has_block ? bytes : 0;
        engine->peak_bytes =
            engine->live_bytes > engine->peak_bytes ? engine->live_bytes : engine->peak_bytes;
    }
    return storage;
}

gmd_storage *gmd_storage_keep(gmd_storage *storage)
{
    if (storage) {
        storage->refs++;
    }
    return storage;
}

void gmd_storage_drop(gmd_engine *engine, gmd_storage *storage)
{
    if (!storage || --storage->refs > 0) {
        return;
    }
    if (engine->observer && storage->has_block) {
        engine->observer->gone(engine->observer->context, storage);
    }
    if (storage->has_block) {
        gmd_request request = {
            .op = GMD_OP_FREE, .block = storage->block, .stream = storage->stream};
        engine->live_bytes -= storage->bytes;
        gmd_ask(engine, &request);
    }
    gmd_give(engine, storage);
}

void gmd_scratch(gmd_engine *engine, uint64_t bytes)
{
    if (bytes > 0) {
        gmd_storage_drop(engine, gmd_storage_new(engine, bytes));
    }
}

/* --- shapes ------------------------------------------------------------------------------ */

/* Saturates: products of sizes from a script must not wrap around to something small. */
uint64_t gmd_shape_count(const gmd_shape *shape)
{
    const uint64_t most = (uint64_t)1 << 52;
    uint64_t count = 1;
    for (int i = 0; i < shape->dims; i++) {
        if (__builtin_mul_overflow(count, (uint64_t)shape->size[i], &count) || count > most) {
            count = most;
        }
    }
    return count;
}

const char *gmd_shape_text(const gmd_shape *shape, char text[128])
{
    size_t used = (size_t)snprintf(text, 128, "[");
    for (int i = 0; i < shape->dims && used < 100; i++) {
        used += (size_t)snprintf(text + used, 128 - used, i ? ", %lld" : "%lld",
                                 (long long)shape->size[i]);
    }
    snprintf(text + used, 128 - used, "]");
    return text;
}

/* --- tensors ----------------------------------------------------------------------------- */

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
