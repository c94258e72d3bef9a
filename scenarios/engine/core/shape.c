#include "gmd_shape.h"

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
