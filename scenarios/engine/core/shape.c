#include "gmd_shape.h"

#include <stdio.h>
#include <string.h>

static const struct {
    const char *name;
    uint64_t bytes;
} dtypes[DTYPES] = {
    [DTYPE_FLOAT32] = {"float32", 4}, [DTYPE_FLOAT64] = {"float64", 8},
    [DTYPE_FLOAT16] = {"float16", 2}, [DTYPE_BFLOAT16] = {"bfloat16", 2},
    [DTYPE_INT64] = {"int64", 8},     [DTYPE_INT32] = {"int32", 4},
    [DTYPE_UINT8] = {"uint8", 1},     [DTYPE_BOOL] = {"bool", 1},
};

const char *dtype_name(enum dtype dtype)
{
    return dtypes[dtype].name;
}

bool dtype_parse(const char *name, enum dtype *dtype)
{
    for (int i = 0; i < DTYPES; i++) {
        if (strcmp(dtypes[i].name, name) == 0) {
            *dtype = (enum dtype)i;
            return true;
        }
    }
    return false;
}

uint64_t dtype_bytes(enum dtype dtype)
{
    return dtypes[dtype].bytes;
}

bool dtype_is_floating(enum dtype dtype)
{
    return dtype == DTYPE_FLOAT32 || dtype == DTYPE_FLOAT64 || dtype == DTYPE_FLOAT16 ||
           dtype == DTYPE_BFLOAT16;
}

/* A floating type wins over any other type, and any type over bool; otherwise the wider one wins.
 */
enum dtype dtype_promoted(enum dtype a, enum dtype b)
{
    if (dtype_is_floating(a) != dtype_is_floating(b)) {
        return dtype_is_floating(a) ? a : b;
    }
    if (a != b && (a == DTYPE_BOOL || b == DTYPE_BOOL)) {
        return a == DTYPE_BOOL ? b : a;
    }
    if (a != b && dtype_bytes(a) == 2 && dtype_bytes(b) == 2) {
        return DTYPE_FLOAT32; /* float16 with bfloat16 */
    }
    return dtype_bytes(a) >= dtype_bytes(b) ? a : b;
}

/* --- shapes ------------------------------------------------------------------------------ */

/* Saturates: products of sizes from a script must not wrap around to something small. */
uint64_t shape_count(const struct shape *shape)
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

int64_t shape_product(int64_t a, int64_t b)
{
    int64_t product;
    return __builtin_mul_overflow(a, b, &product) ? INT64_MAX : product;
}

void shape_strides(const struct shape *shape, int64_t stride[SHAPE_MAX_DIMS])
{
    int64_t step = 1;
    for (int i = shape->dims - 1; i >= 0; i--) {
        stride[i] = step;
        step = shape_product(step, shape->size[i] > 0 ? shape->size[i] : 1);
    }
}

bool shape_is(const struct shape *a, const struct shape *b)
{
    return a->dims == b->dims && shape_expands(a, b) && shape_expands(b, a);
}

bool shape_expands(const struct shape *from, const struct shape *to)
{
    int lead = to->dims - from->dims;
    for (int i = 0; lead >= 0 && i < from->dims; i++) {
        if (from->size[i] != 1 && from->size[i] != to->size[lead + i]) {
            return false;
        }
    }
    return lead >= 0;
}

const char *shape_text(const struct shape *shape, char text[128])
{
    size_t used = (size_t)snprintf(text, 128, "[");
    for (int i = 0; i < shape->dims && used < 100; i++) {
        used += (size_t)snprintf(text + used, 128 - used, i ? ", %lld" : "%lld",
                                 (long long)shape->size[i]);
    }
    snprintf(text + used, 128 - used, "]");
    return text;
}
