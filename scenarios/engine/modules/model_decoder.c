/* model_decoder.c - torch.nn.TransformerDecoderLayer and TransformerDecoder, batch first. */
#include "gmd_module.h"

enum { SELF, CROSS, LINEAR1, DROPOUT, LINEAR2, NORM1, NORM2, NORM3 };

/* What a part of the layer adds to `x`, which it takes over, and lets go of before the last
 * dropout; `memory` may be needed for it. */
typedef struct tensor *branch_fn(struct engine *engine, struct module *layer, struct tensor *x,
                                 struct tensor *memory);

static struct tensor *attended(struct engine *engine, struct module *layer, int part,
                               struct tensor *x, struct tensor *memory)
{
    struct tensor *results[MODULE_MAX_RESULTS] = {NULL}, *inputs[] = {x, memory};
    struct module *attention = layer->children[part];
    int given = x ? attention->forward(engine, attention, inputs, memory ? 2 : 1, results) : 0;
    tensor_drop(engine, x);
    return module_pass(engine, layer->children[DROPOUT], given > 0 ? results[0] : NULL);
}

static struct tensor *self_branch(struct engine *engine, struct module *layer, struct tensor *x,
                                  struct tensor *memory)
{
    (void)memory;
    return attended(engine, layer, SELF, x, NULL);
}

static struct tensor *cross_branch(struct engine *engine, struct module *layer, struct tensor *x,
                                   struct tensor *memory)
{
    return attended(engine, layer, CROSS, x, memory);
}

static struct tensor *feed_forward(struct engine *engine, struct module *layer, struct tensor *x,
                                   struct tensor *memory)
{
    struct module **part = layer->children;
    struct tensor *hidden = module_apply(engine, part[LINEAR1], x);
    struct tensor *active = layer->gelu ? op_activation(engine, ACTIVATION_GELU, hidden)
                                        : op_relu(engine, hidden, false);
    (void)memory;
    tensor_drop(engine, hidden);
    active = module_pass(engine, part[DROPOUT], active);
    active = module_pass(engine, part[LINEAR2], active);
    tensor_drop(engine, x);
    return module_pass(engine, part[DROPOUT], active);
}

/* norm(x + branch(x)), or x + branch(norm(x)). */
static struct tensor *added(struct engine *engine, struct module *layer, branch_fn *branch,
                            struct module *norm, struct tensor *x, struct tensor *memory)
{
    struct tensor *from = layer->norm_first ? module_apply(engine, norm, x) : tensor_keep(x);
    struct tensor *made = from ? branch(engine, layer, from, memory) : NULL;
    struct tensor *sum = op_add(engine, x, made, false);
    tensor_drop(engine, made);
    return layer->norm_first ? sum : module_pass(engine, norm, sum);
}

static int layer_forward(struct engine *engine, struct module *layer, struct tensor **inputs,
                         int count, struct tensor *results[MODULE_MAX_RESULTS])
{
    static branch_fn *const branches[] = {self_branch, cross_branch, feed_forward};
    struct tensor *x = tensor_keep(inputs[0]);
    if (count != 2) {
        engine_misuse(engine, "a decoder takes two tensors: what is decoded, and the encoder's");
        tensor_drop(engine, x);
        return 0;
    }
    for (int i = 0; x && i < 3; i++) {
        struct tensor *sum =
            added(engine, layer, branches[i], layer->children[NORM1 + i], x, inputs[1]);
        tensor_drop(engine, x);
        x = sum;
    }
    results[0] = x;
    return x ? 1 : 0;
}

struct module *nn_decoder_layer(struct engine *engine, const struct encoder *shape)
{
    struct module *layer = module_new(engine, "TransformerDecoderLayer", layer_forward);
    const struct multihead attention = {.features = shape->features,
                                        .heads = shape->heads,
                                        .dropout = shape->dropout,
                                        .bias = true,
                                        .batch_first = true};
    layer->takes = 2;
    layer->gelu = shape->gelu;
    layer->norm_first = shape->norm_first;
    module_child(engine, layer, nn_multihead_attention(engine, &attention));
    module_child(engine, layer, nn_multihead_attention(engine, &attention));
    module_child(engine, layer, nn_linear(engine, shape->features, shape->hidden, true));
    module_child(engine, layer, nn_dropout(engine, shape->dropout));
    module_child(engine, layer, nn_linear(engine, shape->hidden, shape->features, true));
    for (int i = 0; i < 3; i++) {
        module_child(engine, layer, nn_layer_norm(engine, shape->features));
    }
    return layer;
}

static int decoder_forward(struct engine *engine, struct module *decoder, struct tensor **inputs,
                           int count, struct tensor *results[MODULE_MAX_RESULTS])
{
    struct tensor *x = tensor_keep(inputs[0]);
    for (size_t i = 0; x && i < decoder->child_count; i++) {
        struct tensor *pair[] = {x, count == 2 ? inputs[1] : NULL};
        struct tensor *made[MODULE_MAX_RESULTS] = {NULL};
        struct module *layer = decoder->children[i];
        layer->forward(engine, layer, pair, count, made);
        tensor_drop(engine, x);
        x = made[0];
    }
    results[0] = x;
    return x ? 1 : 0;
}

struct module *nn_decoder(struct engine *engine, const struct encoder *shape)
{
    struct module *decoder = module_new(engine, "TransformerDecoder", decoder_forward);
    decoder->takes = 2;
    for (int64_t i = 0; i < shape->layers; i++) {
        module_child(engine, decoder, nn_decoder_layer(engine, shape));
    }
    return decoder;
}
