/* autocast.c - mixed precision: which operations convert their inputs, and the copies of parameters
 * that a block keeps. Facts: ATen/autocast_mode.h and autocast_mode.cpp of PyTorch 2.11, the lists
 * for CUDA. */
#include "gmd_autocast.h"

#include <stdlib.h>
#include <string.h>

/* --- the classes of operations ----------------------------------------------------------- */

typedef struct operation {
    const char *name; /* as scripts call it */
    enum autocast_class class;
    const char *as; /* a module or a function that calls this operation; NULL: it is one itself */
} operation;

/* In the order of strcmp(). What consists of other operations is AUTOCAST_PARTS. */
static const operation operations[] = {
    {"abs", AUTOCAST_UNCHANGED, NULL},
    {"adaptive_avg_pool2d", AUTOCAST_UNCHANGED, NULL},
    {"add_", AUTOCAST_UNCHANGED, NULL},
    {"arange", AUTOCAST_UNCHANGED, NULL},
    {"argmax", AUTOCAST_UNCHANGED, NULL},
    {"avg_pool2d", AUTOCAST_UNCHANGED, NULL},
    {"backward", AUTOCAST_UNCHANGED, NULL},
    {"batch_norm", AUTOCAST_UNCHANGED, NULL},
    {"binary_cross_entropy", AUTOCAST_UNCHANGED, NULL},
    {"binary_cross_entropy_with_logits", AUTOCAST_WIDE, NULL},
    {"bmm", .as = "matmul"},
    {"cat", AUTOCAST_UNCHANGED, NULL},
    {"checkpoint", AUTOCAST_PARTS, NULL},
    {"chunk", AUTOCAST_UNCHANGED, NULL},
    {"clamp", AUTOCAST_UNCHANGED, NULL},
    {"clip_grad_norm", AUTOCAST_PARTS, NULL},
    {"clone", AUTOCAST_UNCHANGED, NULL},
    {"contiguous", AUTOCAST_UNCHANGED, NULL},
    {"conv1d", AUTOCAST_LOWER, NULL},
    {"conv2d", AUTOCAST_LOWER, NULL},
    {"conv_transpose2d", AUTOCAST_LOWER, NULL},
    {"copy.deepcopy", AUTOCAST_PARTS, NULL},
    {"copy_", AUTOCAST_UNCHANGED, NULL},
    {"cos", AUTOCAST_UNCHANGED, NULL},
    {"cross_entropy", AUTOCAST_PARTS, NULL},
    {"cumsum", AUTOCAST_WIDE_RESULT, NULL},
    {"detach", AUTOCAST_UNCHANGED, NULL},
    {"dim", AUTOCAST_UNCHANGED, NULL},
    {"dropout", AUTOCAST_UNCHANGED, NULL},
    {"elu", AUTOCAST_UNCHANGED, NULL},
    {"embedding", AUTOCAST_UNCHANGED, NULL},
    {"empty", AUTOCAST_UNCHANGED, NULL},
    {"eq", AUTOCAST_UNCHANGED, NULL},
    {"exp", AUTOCAST_WIDE, NULL},
    {"expand", AUTOCAST_UNCHANGED, NULL},
    {"fill_", AUTOCAST_UNCHANGED, NULL},
    {"flatten", .as = "reshape"},
    {"flip", AUTOCAST_UNCHANGED, NULL},
    {"float", AUTOCAST_UNCHANGED, NULL},
    {"full", AUTOCAST_UNCHANGED, NULL},
    {"gather", AUTOCAST_UNCHANGED, NULL},
    {"ge", AUTOCAST_UNCHANGED, NULL},
    {"gelu", AUTOCAST_UNCHANGED, NULL},
    {"group_norm", AUTOCAST_WIDE, NULL},
    {"gru_cell", AUTOCAST_LOWER, NULL},
    {"gt", AUTOCAST_UNCHANGED, NULL},
    {"half", AUTOCAST_UNCHANGED, NULL},
    {"hardswish", AUTOCAST_UNCHANGED, NULL},
    {"huber_loss", AUTOCAST_WIDE, NULL},
    {"index_copy_", AUTOCAST_UNCHANGED, NULL},
    {"index_select", AUTOCAST_UNCHANGED, NULL},
    {"interpolate", .as = "upsample"},
    {"item", AUTOCAST_UNCHANGED, NULL},
    {"kl_div", AUTOCAST_WIDE, NULL},
    {"l1_loss", AUTOCAST_WIDE, NULL},
    {"layer_norm", AUTOCAST_WIDE, NULL},
    {"le", AUTOCAST_UNCHANGED, NULL},
    {"leaky_relu", AUTOCAST_UNCHANGED, NULL},
    {"linear", AUTOCAST_LOWER, NULL},
    {"log", AUTOCAST_WIDE, NULL},
    {"log_softmax", AUTOCAST_WIDE_RESULT, NULL},
    {"logsumexp", AUTOCAST_WIDE, NULL},
    {"lstm_cell", AUTOCAST_LOWER, NULL},
    {"lt", AUTOCAST_UNCHANGED, NULL},
    {"masked_fill", AUTOCAST_UNCHANGED, NULL},
    {"masked_fill_", AUTOCAST_UNCHANGED, NULL},
    {"matmul", AUTOCAST_LOWER, NULL},
    {"max", AUTOCAST_UNCHANGED, NULL},
    {"max_pool2d", AUTOCAST_UNCHANGED, NULL},
    {"mean", AUTOCAST_UNCHANGED, NULL},
    {"min", AUTOCAST_UNCHANGED, NULL},
    {"mish", AUTOCAST_UNCHANGED, NULL},
    {"mse_loss", AUTOCAST_WIDE, NULL},
    {"mul_", AUTOCAST_UNCHANGED, NULL},
    {"narrow", AUTOCAST_UNCHANGED, NULL},
    {"nbytes", AUTOCAST_UNCHANGED, NULL},
    {"ne", AUTOCAST_UNCHANGED, NULL},
    {"nll_loss", AUTOCAST_WIDE, NULL},
    {"nn.AdaptiveAvgPool2d", .as = "adaptive_avg_pool2d"},
    {"nn.AvgPool2d", .as = "avg_pool2d"},
    {"nn.BatchNorm1d", .as = "batch_norm"},
    {"nn.BatchNorm2d", .as = "batch_norm"},
    {"nn.Checkpointed", AUTOCAST_PARTS, NULL},
    {"nn.Conv1d", .as = "conv1d"},
    {"nn.Conv2d", .as = "conv2d"},
    {"nn.ConvTranspose2d", .as = "conv_transpose2d"},
    {"nn.DistributedDataParallel", AUTOCAST_PARTS, NULL},
    {"nn.Dropout", .as = "dropout"},
    {"nn.ELU", .as = "elu"},
    {"nn.Embedding", .as = "embedding"},
    {"nn.Flatten", .as = "reshape"},
    {"nn.GELU", .as = "gelu"},
    {"nn.GPTBlock", AUTOCAST_PARTS, NULL},
    {"nn.GRU", .as = "rnn"},
    {"nn.GRUCell", .as = "gru_cell"},
    {"nn.GroupNorm", .as = "group_norm"},
    {"nn.Hardswish", .as = "hardswish"},
    {"nn.Identity", AUTOCAST_UNCHANGED, NULL},
    {"nn.InstanceNorm2d", .as = "batch_norm"},
    {"nn.LSTM", .as = "rnn"},
    {"nn.LSTMCell", .as = "lstm_cell"},
    {"nn.LayerNorm", .as = "layer_norm"},
    {"nn.LeakyReLU", .as = "leaky_relu"},
    {"nn.Linear", .as = "linear"},
    {"nn.LlamaBlock", AUTOCAST_PARTS, NULL},
    {"nn.MaxPool2d", .as = "max_pool2d"},
    {"nn.Mish", .as = "mish"},
    {"nn.MultiheadAttention", AUTOCAST_PARTS, NULL},
    {"nn.RMSNorm", .as = "rms_norm"},
    {"nn.ReLU", .as = "relu"},
    {"nn.ReLU6", .as = "relu6"},
    {"nn.Residual", AUTOCAST_PARTS, NULL},
    {"nn.Sequential", AUTOCAST_PARTS, NULL},
    {"nn.SiLU", .as = "silu"},
    {"nn.Sigmoid", .as = "sigmoid"},
    {"nn.Softmax", .as = "softmax"},
    {"nn.Softplus", .as = "softplus"},
    {"nn.Tanh", .as = "tanh"},
    {"nn.TransformerDecoder", AUTOCAST_PARTS, NULL},
    {"nn.TransformerDecoderLayer", AUTOCAST_PARTS, NULL},
    {"nn.TransformerEncoder", AUTOCAST_PARTS, NULL},
    {"nn.TransformerEncoderLayer", AUTOCAST_PARTS, NULL},
    {"nn.Upsample", .as = "upsample"},
    {"nn.gpt", AUTOCAST_PARTS, NULL},
    {"nn.resnet50", AUTOCAST_PARTS, NULL},
    {"nn.seq2seq", AUTOCAST_PARTS, NULL},
    {"norm", AUTOCAST_WIDE_RESULT, NULL},
    {"normalize", AUTOCAST_PARTS, NULL},
    {"numel", AUTOCAST_UNCHANGED, NULL},
    {"ones", AUTOCAST_UNCHANGED, NULL},
    {"pad", AUTOCAST_UNCHANGED, NULL},
    {"permute", AUTOCAST_UNCHANGED, NULL},
    {"pow", AUTOCAST_WIDE, NULL},
    {"rand", AUTOCAST_UNCHANGED, NULL},
    {"randint", AUTOCAST_UNCHANGED, NULL},
    {"randn", AUTOCAST_UNCHANGED, NULL},
    {"randn_like", AUTOCAST_UNCHANGED, NULL},
    {"reciprocal", AUTOCAST_WIDE, NULL},
    {"record_stream", AUTOCAST_UNCHANGED, NULL},
    {"relu", AUTOCAST_UNCHANGED, NULL},
    {"relu6", AUTOCAST_UNCHANGED, NULL},
    {"relu_", AUTOCAST_UNCHANGED, NULL},
    {"requires_grad_", AUTOCAST_UNCHANGED, NULL},
    {"reshape", AUTOCAST_UNCHANGED, NULL},
    {"rms_norm", AUTOCAST_UNCHANGED, NULL},
    {"rnn", AUTOCAST_HALF, NULL},
    {"roll", AUTOCAST_UNCHANGED, NULL},
    {"rsqrt", AUTOCAST_WIDE, NULL},
    {"scaled_dot_product_attention", AUTOCAST_LOWER, NULL},
    {"scatter_add", AUTOCAST_WIDEST, NULL},
    {"select", AUTOCAST_UNCHANGED, NULL},
    {"sigmoid", AUTOCAST_UNCHANGED, NULL},
    {"silu", AUTOCAST_UNCHANGED, NULL},
    {"sin", AUTOCAST_UNCHANGED, NULL},
    {"size", AUTOCAST_UNCHANGED, NULL},
    {"smooth_l1_loss", AUTOCAST_WIDE, NULL},
    {"softmax", AUTOCAST_WIDE_RESULT, NULL},
    {"softplus", AUTOCAST_WIDE, NULL},
    {"sort", AUTOCAST_UNCHANGED, NULL},
    {"split", AUTOCAST_UNCHANGED, NULL},
    {"sqrt", AUTOCAST_UNCHANGED, NULL},
    {"square", .as = "pow"},
    {"squeeze", AUTOCAST_UNCHANGED, NULL},
    {"stack", AUTOCAST_UNCHANGED, NULL},
    {"std", AUTOCAST_UNCHANGED, NULL},
    {"sum", AUTOCAST_WIDE_RESULT, NULL},
    {"t", .as = "transpose"},
    {"tanh", AUTOCAST_UNCHANGED, NULL},
    {"tile", AUTOCAST_UNCHANGED, NULL},
    {"to", AUTOCAST_UNCHANGED, NULL},
    {"topk", AUTOCAST_UNCHANGED, NULL},
    {"transpose", AUTOCAST_UNCHANGED, NULL},
    {"tril", AUTOCAST_UNCHANGED, NULL},
    {"triu", AUTOCAST_UNCHANGED, NULL},
    {"unbind", AUTOCAST_UNCHANGED, NULL},
    {"unsqueeze", AUTOCAST_UNCHANGED, NULL},
    {"upsample", AUTOCAST_WIDE, NULL},
    {"use", AUTOCAST_UNCHANGED, NULL},
    {"var", AUTOCAST_UNCHANGED, NULL},
    {"view", AUTOCAST_UNCHANGED, NULL},
    {"where", AUTOCAST_UNCHANGED, NULL},
    {"zero_", AUTOCAST_UNCHANGED, NULL},
    {"zeros", AUTOCAST_UNCHANGED, NULL},
    {"zeros_like", AUTOCAST_UNCHANGED, NULL},
};

static int by_name(const void *name, const void *other)
{
    return strcmp(name, ((const operation *)other)->name);
}

static const operation *find(const char *name)
{
    const operation *found = bsearch(name, operations, sizeof operations / sizeof operations[0],
                                     sizeof operations[0], by_name);
    return found && found->as ? find(found->as) : found;
}

bool autocast_class_of(const char *name, enum autocast_class *class)
{
    const operation *found = find(name);
    *class = found ? found->class : AUTOCAST_PARTS;
    return found != NULL;
}

/* --- blocks, and the copies that they keep ----------------------------------------------- */

typedef struct cached {
    const struct tensor *parameter; /* compared, not followed */
    struct tensor *copy;
    struct cached *next;
} cached;

struct autocast {
    enum dtype dtype;
    cached *copies;
    struct autocast *outer;
};

void autocast_begin(struct engine *engine, enum dtype dtype)
{
    struct autocast *block = host_take(engine, sizeof *block);
    block->dtype = dtype;
    block->outer = engine->autocast;
    engine->autocast = block;
}

/* torch empties its cache when the outermost block ends; the graph keeps the copies that are still
 * needed. */
void autocast_end(struct engine *engine)
{
    struct autocast *block = engine->autocast;
    engine->autocast = block->outer;
    cached *copies = block->copies;
    if (block->outer) {
        cached **end = &block->outer->copies;
        while (*end) {
            end = &(*end)->next;
        }
        *end = copies;
        copies = NULL;
    }
    while (copies) {
        cached *first = copies;
        copies = first->next;
        tensor_drop(engine, first->copy);
        host_give(engine, first);
    }
    host_give(engine, block);
}

enum dtype autocast_dtype(const struct engine *engine, enum dtype otherwise)
{
    return engine->autocast ? engine->autocast->dtype : otherwise;
}

static struct tensor *known_copy(const struct engine *engine, const struct tensor *parameter)
{
    for (const struct autocast *block = engine->autocast; block; block = block->outer) {
        for (const cached *each = block->copies; each; each = each->next) {
            if (each->parameter == parameter && each->copy->dtype == engine->autocast->dtype) {
                return each->copy;
            }
        }
    }
    return NULL;
}

static bool is_narrow(enum dtype dtype)
{
    return dtype == DTYPE_FLOAT16 || dtype == DTYPE_BFLOAT16;
}

/* Copies of leaves in the block's type are kept; all others are made anew. */
static struct tensor *converted(struct engine *engine, struct tensor *tensor, enum dtype dtype)
{
    bool is_leaf = tensor->requires_grad && !tensor->grad_fn && !tensor->is_view;
    if (!is_leaf || tensor->dtype != DTYPE_FLOAT32 || dtype != engine->autocast->dtype) {
        return op_cast(engine, tensor, dtype);
    }
    struct tensor *copy = known_copy(engine, tensor);
    if (!copy) {
        cached *entry = host_take(engine, sizeof *entry);
        copy = op_cast(engine, tensor, dtype);
        *entry = (cached){.parameter = tensor, .copy = copy, .next = engine->autocast->copies};
        engine->autocast->copies = entry;
    }
    return tensor_keep(copy);
}

/* Whole numbers and numbers of 64 bits stay as they are. */
static bool is_eligible(enum dtype dtype)
{
    return dtype == DTYPE_FLOAT32 || is_narrow(dtype);
}

static enum autocast_class class_now(struct engine *engine, const char *name)
{
    enum autocast_class class = AUTOCAST_UNCHANGED;
    if (engine->autocast && !autocast_class_of(name, &class)) {
        engine_misuse(engine, "autocast has no class for %s (autocast.c)", name);
    }
    return class;
}

/* The type in which the operation takes an argument of `dtype` now. */
static enum dtype argument_dtype(struct engine *engine, const char *name, enum dtype dtype)
{
    if (!engine->autocast || !is_eligible(dtype)) {
        return dtype;
    }
    switch (class_now(engine, name)) {
    case AUTOCAST_LOWER:
        return engine->autocast->dtype;
    case AUTOCAST_HALF:
        return DTYPE_FLOAT16;
    case AUTOCAST_WIDE:
        return DTYPE_FLOAT32;
    default:
        return dtype;
    }
}

bool autocast_converts(struct engine *engine, const char *name, const struct tensor *tensor)
{
    return argument_dtype(engine, name, tensor->dtype) != tensor->dtype;
}

struct tensor *autocast_argument(struct engine *engine, const char *name, struct tensor *tensor)
{
    return tensor && autocast_converts(engine, name, tensor)
               ? converted(engine, tensor, argument_dtype(engine, name, tensor->dtype))
               : tensor_keep(tensor);
}

/* 32 bits where one of them has them. */
struct tensor *autocast_widest(struct engine *engine, const char *name, struct tensor *tensor,
                               const struct tensor *other)
{
    bool is_meant = engine->autocast && class_now(engine, name) == AUTOCAST_WIDEST;
    if (!is_meant || !is_eligible(tensor->dtype)) {
        return tensor_keep(tensor);
    }
    bool is_wide = tensor->dtype == DTYPE_FLOAT32 || other->dtype == DTYPE_FLOAT32;
    return converted(engine, tensor, is_wide ? DTYPE_FLOAT32 : engine->autocast->dtype);
}

enum dtype autocast_result(struct engine *engine, const char *name, enum dtype dtype)
{
    bool is_wide = is_narrow(dtype) && class_now(engine, name) == AUTOCAST_WIDE_RESULT;
    return is_wide ? DTYPE_FLOAT32 : dtype;
}
