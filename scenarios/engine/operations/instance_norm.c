/* instance_norm.c - each channel of each image by itself: a batch of one image with all channels of
 * the batch. Facts: instance_norm of ATen/native/Normalization.cpp of PyTorch 2.11. */
#include "gmd_more_operations.h"

/* A weight for each channel of each image: a copy. */
static struct tensor *repeated(struct engine *engine, struct tensor *weight, int64_t batch)
{
    if (!weight) {
        return NULL;
    }
    struct shape each = {2, {batch, weight->shape.size[0]}};
    struct shape flat = {1, {shape_product(batch, weight->shape.size[0])}};
    struct tensor *expanded = op_expand(engine, weight, &each);
    struct tensor *copy = op_clone(engine, expanded);
    struct tensor *result = op_view_as_it_lies(engine, copy, &flat);
    tensor_drop(engine, copy);
    tensor_drop(engine, expanded);
    return result;
}

struct tensor *op_instance_norm(struct engine *engine, struct tensor *input, struct tensor *weight,
                                struct tensor *bias)
{
    if (!input) {
        return NULL;
    }
    int64_t batch = input->shape.size[0];
    struct shape one = {4,
                        {1, shape_product(batch, input->shape.size[1]), input->shape.size[2],
                         input->shape.size[3]}};
    struct tensor *w = repeated(engine, weight, batch), *b = repeated(engine, bias, batch);
    struct tensor *rows = op_contiguous(engine, input);
    struct tensor *image = op_view_as_it_lies(engine, rows, &one);
    struct tensor *normal =
        w ? op_batch_norm(engine, image, w, b, true) : op_plain_norm(engine, image, one.size[1]);
    struct tensor *result = op_view_as_it_lies(engine, normal, &input->shape);
    tensor_drop(engine, normal);
    tensor_drop(engine, image);
    tensor_drop(engine, rows);
    tensor_drop(engine, b);
    tensor_drop(engine, w);
    return result;
}
