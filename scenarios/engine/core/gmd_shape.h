/* gmd_shape.h - shapes of tensors, and the types of their elements. */
#ifndef GMD_SHAPE_H
#define GMD_SHAPE_H

#include <stdbool.h>
#include <stdint.h>

#define SHAPE_MAX_DIMS 6

enum dtype {
    DTYPE_FLOAT32,
    DTYPE_FLOAT64,
    DTYPE_FLOAT16,
    DTYPE_BFLOAT16,
    DTYPE_INT64,
    DTYPE_INT32,
    DTYPE_UINT8,
    DTYPE_BOOL,
    DTYPES
};

const char *dtype_name(enum dtype dtype); /* "float32" */
bool dtype_parse(const char *name, enum dtype *dtype);
uint64_t dtype_bytes(enum dtype dtype);
bool dtype_is_floating(enum dtype dtype);

/* The type of a result of tensors of both types, as torch.promote_types() gives it. */
enum dtype dtype_promoted(enum dtype a, enum dtype b);

struct shape {
    int dims;
    int64_t size[SHAPE_MAX_DIMS];
};

uint64_t shape_count(const struct shape *shape); /* elements, at most 2^52 */
/* The product of two sizes or steps; saturates. */
int64_t shape_product(int64_t a, int64_t b);
/* The steps from one element to the next along each dimension, where it lies row by row. */
void shape_strides(const struct shape *shape, int64_t stride[SHAPE_MAX_DIMS]);

bool shape_is(const struct shape *a, const struct shape *b); /* the same sizes */
/* Whether a tensor of shape `from` can be expanded to `to`, without memory for more elements. */
bool shape_expands(const struct shape *from, const struct shape *to);
const char *shape_text(const struct shape *shape, char text[128]); /* "[2, 3]" */

#endif
