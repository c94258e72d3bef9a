/* softmax.c - softmax and its logarithm. Facts: ATen/native/SoftMax.cpp and cuda/SoftMax.cu of
 * PyTorch 2.11. */
#include "gmd_autocast.h"
#include "gmd_layout.h"

/* The result's type is that of the gradient, recipe.dtype that of the input. The product of
 * gradient and result is computed first, in the gradient's layout. */
static void softmax_backward(struct engine *engine, struct node *node, struct tensor **grads,
                             struct tensor **results)
{
    results[0] = tensor_new(engine, &node->recipe.shape[0], node->recipe.dtype);
    struct tensor *product = tensor_like_it_lies(engine, grads[0]);
    struct tensor *rows = tensor_expect(engine, product, FORMAT_ROWS);
    tensor_drop(engine, rows);
    tensor_drop(engine, product);
}

static void log_softmax_backward(struct engine *engine, struct node *node, struct tensor **grads,
                                 struct tensor **results)
{
    results[0] = tensor_new(engine, &node->recipe.shape[0], node->recipe.dtype);
    tensor_drop(engine, tensor_expect(engine, grads[0], FORMAT_ROWS));
}

/* The kernels read rows that lie one after the other; what lies in another way is copied for the
 * call. Neither takes scratch memory, whatever the dimension. */
static struct tensor *softmax(struct engine *engine, const char *name, backward_fn backward,
                              struct tensor *a, enum dtype dtype)
{
    struct tensor *result = tensor_new(engine, &a->shape, dtype);
    tensor_drop(engine, tensor_expect(engine, a, FORMAT_ROWS));
    node_over_saving(engine, name, backward, a, result, result);
    return result;
}

/* From float16 the kernel makes a result in 32 bits, bfloat16 is converted first. */
static struct tensor *softmax_as(struct engine *engine, const char *operation, const char *name,
                                 backward_fn backward, struct tensor *a)
{
    if (!a) {
        return NULL;
    }
    enum dtype dtype = autocast_result(engine, operation, a->dtype);
    struct tensor *input = a->dtype == DTYPE_FLOAT16 ? tensor_keep(a) : op_cast(engine, a, dtype);
    struct tensor *result = softmax(engine, name, backward, input, dtype);
    tensor_drop(engine, input);
    return result;
}

struct tensor *op_softmax(struct engine *engine, struct tensor *input)
{
    return softmax_as(engine, "softmax", "SoftmaxBackward", softmax_backward, input);
}

struct tensor *op_log_softmax(struct engine *engine, struct tensor *input)
{
    return softmax_as(engine, "log_softmax", "LogSoftmaxBackward", log_softmax_backward, input);
}

struct tensor *op_log_softmax_as_it_is(struct engine *engine, struct tensor *input)
{
    return input ? softmax(engine, "LogSoftmaxBackward", log_softmax_backward, input, input->dtype)
                 : NULL;
}
