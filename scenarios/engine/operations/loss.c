/* loss.c - cross entropy, for class indices and for class probabilities. */
#include "gmd_autocast.h"
#include "gmd_operations.h"

static void log_softmax_backward(struct engine *engine, struct node *node, struct tensor **grads,
                                 struct tensor **results)
{
    (void)grads;
    results[0] = tensor_new(engine, &node->recipe.shape[0], node->recipe.dtype);
}

static struct tensor *log_softmax(struct engine *engine, struct tensor *logits)
{
    struct tensor *result = tensor_like(engine, logits);
    if (tensor_tracked(engine, logits)) {
        struct node *node = node_new(engine, "LogSoftmaxBackward", log_softmax_backward, 1);
        node_connect(engine, node, 0, logits);
        node->recipe.shape[0] = logits->shape;
        node->recipe.dtype = logits->dtype;
        node_save(node, result);
        node_result(node, 0, result);
        node_drop(engine, node);
    }
    return result;
}

/* -(scores * target).sum() / rows, each step an operation: the results are temporaries of the
 * expression, and nothing saves the product. */
static void probability_backward(struct engine *engine, struct node *node, struct tensor **grads,
                                 struct tensor **results)
{
    struct tensor *quotient = tensor_like(engine, grads[0]);
    struct tensor *negated = tensor_like(engine, grads[0]);
    tensor_drop(engine, quotient);
    results[0] = tensor_new(engine, &node->recipe.shape[0], node->recipe.dtype);
    tensor_drop(engine, negated);
}

static struct tensor *probability_loss(struct engine *engine, struct tensor *scores)
{
    static const struct shape scalar = {0, {0}};
    struct tensor *product = tensor_like(engine, scores);
    struct tensor *sum = tensor_new(engine, &scalar, scores->dtype);
    struct tensor *negated = tensor_new(engine, &scalar, scores->dtype);
    struct tensor *loss = tensor_new(engine, &scalar, scores->dtype);
    tensor_drop(engine, negated);
    tensor_drop(engine, sum);
    tensor_drop(engine, product);
    return loss;
}

static void nll_backward(struct engine *engine, struct node *node, struct tensor **grads,
                         struct tensor **results)
{
    (void)grads;
    results[0] = tensor_new(engine, &node->recipe.shape[0], node->recipe.dtype);
}

static struct tensor *index_loss(struct engine *engine, struct tensor *scores,
                                 struct tensor **total_weight)
{
    static const struct shape scalar = {0, {0}};
    struct tensor *loss = tensor_new(engine, &scalar, scores->dtype);
    *total_weight = tensor_new(engine, &scalar, scores->dtype);
    return loss;
}

static void record_loss(struct engine *engine, struct tensor *scores, struct tensor *target,
                        struct tensor *total_weight, struct tensor *loss)
{
    if (!tensor_tracked(engine, scores)) {
        return;
    }
    struct node *node = node_new(engine, "CrossEntropyBackward",
                                 total_weight ? nll_backward : probability_backward, 1);
    node_connect(engine, node, 0, scores);
    node->recipe.shape[0] = scores->shape;
    node->recipe.dtype = scores->dtype;
    node_save(node, target);
    node_save(node, total_weight);
    node_save(node, total_weight ? scores : NULL);
    node_result(node, 0, loss);
    node_drop(engine, node);
}

struct tensor *op_cross_entropy(struct engine *engine, struct tensor *logits, struct tensor *target)
{
    char left[128], right[128];
    if (!logits || !target) {
        return NULL;
    }
    bool probabilities = shape_count(&target->shape) == shape_count(&logits->shape);
    int64_t rows = logits->shape.dims > 0 ? logits->shape.size[0] : 0;
    if (!probabilities && shape_count(&target->shape) != (uint64_t)rows) {
        engine_misuse(engine,
                      "cross_entropy: for logits %s the target is a class for each row, or a "
                      "probability for each class; it is %s",
                      shape_text(&logits->shape, left), shape_text(&target->shape, right));
        return NULL;
    }
    struct tensor *total_weight = NULL;
    struct tensor *narrow = log_softmax(engine, logits); /* in the type that the logits have */
    struct tensor *scores = autocast_wide(engine, narrow);
    tensor_drop(engine, narrow);
    struct tensor *loss = probabilities ? probability_loss(engine, scores)
                                        : index_loss(engine, scores, &total_weight);
    record_loss(engine, scores, target, total_weight, loss);
    tensor_drop(engine, total_weight);
    tensor_drop(engine, scores);
    return loss;
}
