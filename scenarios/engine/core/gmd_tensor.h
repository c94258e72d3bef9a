/* gmd_tensor.h - storages (one allocator block each) and tensors (shape and type over a storage).
 */
#ifndef GMD_TENSOR_H
#define GMD_TENSOR_H

#include "gmd_engine.h"
#include "gmd_observer.h"

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

/* One block. When its last reference goes, the block is freed at once. */
typedef struct gmd_storage {
    size_t refs;
    uint64_t bytes;
    uint32_t block;
    uint32_t stream;
    bool has_block;           /* false: 0 bytes, or made while the engine had failed */
    gmd_category category;    /* for observers */
    void *seen;               /* an observer's own */
    struct gmd_storage *next; /* of the engine's workspaces */
    uint32_t role;            /* workspaces: whose */
} gmd_storage;

/* Says what the memory is for. */
static inline void gmd_storage_is(gmd_storage *storage, gmd_category category)
{
    if (storage && storage->category < category) {
        storage->category = category;
    }
}

gmd_storage *gmd_storage_new(gmd_engine *engine, uint64_t bytes);
gmd_storage *gmd_storage_keep(gmd_storage *storage);
void gmd_storage_drop(gmd_engine *engine, gmd_storage *storage); /* NULL is fine */

/* Scratch memory of a kernel: allocated and freed again at once. 0 bytes: nothing is asked. */
void gmd_scratch(gmd_engine *engine, uint64_t bytes);

typedef struct gmd_shape {
    int dims;
    int64_t size[GMD_MAX_DIMS];
} gmd_shape;

uint64_t gmd_shape_count(const gmd_shape *shape);                   /* elements, at most 2^52 */
const char *gmd_shape_text(const gmd_shape *shape, char text[128]); /* "[2, 3]" */

typedef struct gmd_tensor {
    gmd_thing thing;
    gmd_storage *storage;
    gmd_shape shape;
    gmd_dtype dtype;
    bool requires_grad;           /* as a leaf; results of operations have grad_fn instead */
    bool expanded;                /* a broadcast view: several elements share memory */
    bool transposed;              /* a view that kernels must copy before they use it */
    bool is_view;                 /* keeps its base, so that nobody adds into its memory in place */
    struct gmd_node *grad_fn;     /* NULL: a leaf */
    uint32_t output;              /* which of grad_fn's outputs it is */
    struct gmd_tensor *grad;      /* NULL: None */
    struct gmd_node *accumulator; /* borrowed: the node that adds into .grad, while one exists */
} gmd_tensor;

extern const gmd_thing_class gmd_tensor_class;

static inline gmd_thing *gmd_thing_of(gmd_tensor *tensor)
{
    return tensor ? &tensor->thing : NULL;
}
static inline gmd_tensor *gmd_tensor_keep(gmd_tensor *tensor)
{
    if (tensor) {
        tensor->thing.refs++;
    }
    return tensor;
}
static inline void gmd_tensor_drop(gmd_engine *engine, gmd_tensor *tensor)
{
    gmd_thing_drop(engine, gmd_thing_of(tensor));
}

uint64_t gmd_tensor_bytes(const gmd_tensor *tensor); /* of its elements */

/* A new tensor over new memory. */
gmd_tensor *gmd_tensor_new(gmd_engine *engine, const gmd_shape *shape, gmd_dtype dtype);
gmd_tensor *gmd_tensor_like(gmd_engine *engine, const gmd_tensor *model);
/* A new tensor over the same storage, outside the graph. */
gmd_tensor *gmd_tensor_alias(gmd_engine *engine, gmd_tensor *tensor);
gmd_tensor *gmd_tensor_view(gmd_engine *engine, gmd_tensor *tensor, const gmd_shape *shape);

/* Whether operations on it are recorded now. */
bool gmd_tensor_tracked(const gmd_engine *engine, const gmd_tensor *tensor);

#endif
