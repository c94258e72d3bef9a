/* gmd_shape.h - shapes of tensors, and the types of their elements. */
#ifndef GMD_SHAPE_H
#define GMD_SHAPE_H

#include <stdbool.h>
#include <stdint.h>

#define GMD_MAX_DIMS 6

typedef enum gmd_dtype {
    GMD_FLOAT32,
    GMD_FLOAT64,
    GMD_FLOAT16,
    GMD_BFLOAT16,
    GMD_INT64,
    GMD_INT32,
    GMD_UINT8,
    GMD_BOOL,
    GMD_DTYPES
} gmd_dtype;

const char *gmd_dtype_name(gmd_dtype dtype); /* "float32" */
bool gmd_dtype_parse(const char *name, gmd_dtype *dtype);
uint64_t gmd_dtype_bytes(gmd_dtype dtype);
bool gmd_dtype_is_floating(gmd_dtype dtype);

/* Of a result of tensors of both types, as torch.promote_types(). */
gmd_dtype gmd_dtype_promoted(gmd_dtype a, gmd_dtype b);

typedef struct gmd_shape {
    int dims;
    int64_t size[GMD_MAX_DIMS];
} gmd_shape;

uint64_t gmd_shape_count(const gmd_shape *shape);                   /* elements, at most 2^52 */
const char *gmd_shape_text(const gmd_shape *shape, char text[128]); /* "[2, 3]" */

#endif
