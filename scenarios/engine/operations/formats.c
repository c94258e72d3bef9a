/* formats.c - tensors in another memory format. */
#include "gmd_layout.h"
#include "gmd_more_operations.h"

static void format_backward(struct engine *engine, struct node *node, struct tensor **grads,
                            struct tensor **results)
{
    (void)engine;
    (void)node;
    results[0] = tensor_keep(grads[0]);
}

struct tensor *op_to_channels_last(struct engine *engine, struct tensor *a)
{
    char text[128];
    if (!a) {
        return NULL;
    }
    if (a->shape.dims != 4) {
        engine_misuse(engine,
                      "channels_last is for [batch, channels, height, width], and this "
                      "tensor is %s",
                      shape_text(&a->shape, text));
        return NULL;
    }
    if (tensor_format(a) == FORMAT_CHANNELS_LAST) {
        return tensor_keep(a);
    }
    struct tensor *result = tensor_new_as(engine, &a->shape, a->dtype, FORMAT_CHANNELS_LAST);
    node_drop(engine, node_over(engine, "ToCopyBackward", format_backward, a, result));
    return result;
}
