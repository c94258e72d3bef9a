/* loss.c - cross entropy, for class indices and for class probabilities. */
#include "gmd_autocast.h"
#include "gmd_operations.h"

static void log_softmax_backward(gmd_engine *engine, gmd_node *node, gmd_tensor **grads,
                                 gmd_tensor **results)
{
    (void)grads;
    results[0] = gmd_tensor_new(engine, &node->recipe.shape[0], node->recipe.dtype);
}

static gmd_tensor *log_softmax(gmd_engine *engine, gmd_tensor *logits)
{
    gmd_tensor *result = gmd_tensor_like(engine, logits);
    if (gmd_tensor_tracked(engine, logits)) {
        gmd_node *node = gmd_node_new(engine, "LogSoftmaxBackward", log_softmax_backward, 1);
        gmd_node_connect(engine, node, 0, logits);
        node->recipe.shape[0] = logits->shape;
        node->recipe.dtype = logits->dtype;
        gmd_node_save(node, result);
        gmd_node_result(node, 0, result);
        gmd_node_drop(engine, node);
    }
    return result;
}

/* -(scores * target).sum() / rows, each step an operation: their results are temporaries of the
 * expression, and the product is saved by nobody. */
static void probability_backward(gmd_engine *engine, gmd_node *node, gmd_tensor **grads,
                                 gmd_tensor **results)
{
    gmd_tensor *quotient = gmd_tensor_like(engine, grads[0]);
    gmd_tensor *negated = gmd_tensor_like(engine, grads[0]);
    gmd_tensor_drop(engine, quotient);
    results[0] = gmd_tensor_new(engine, &node->recipe.shape[0], node->recipe.dtype);
    gmd_tensor_drop(engine, negated);
}

static gmd_tensor *probability_loss(gmd_engine *engine, gmd_tensor *scores)
{
    static const gmd_shape scalar = {0, {0}};
    gmd_tensor *product = gmd_tensor_like(engine, scores);
    gmd_tensor *sum = gmd_tensor_new(engine, &scalar, scores->dtype);
    gmd_tensor *negated = gmd_tensor_new(engine, &scalar, scores->dtype);
    gmd_tensor *loss = gmd_tensor_new(engine, &scalar, scores->dtype);
    gmd_tensor_drop(engine, negated);
    gmd_tensor_drop(engine, sum);
    gmd_tensor_drop(engine, product);
    return loss;
}

static void nll_backward(gmd_engine *engine, gmd_node *node, gmd_tensor **grads,
                         gmd_tensor **results)
{
    (void)grads;
    results[0] = gmd_tensor_new(engine, &node->recipe.shape[0], node->recipe.dtype);
}

static gmd_tensor *index_loss(gmd_engine *engine, gmd_tensor *scores, gmd_tensor **total_weight)
{
    static const gmd_shape scalar = {0, {0}};
    gmd_tensor *loss = gmd_tensor_new(engine, &scalar, scores->dtype);
    *total_weight = gmd_tensor_new(engine, &scalar, scores->dtype);
    return loss;
}

static void record_loss(gmd_engine *engine, gmd_tensor *scores, gmd_tensor *target,
                        gmd_tensor *total_weight, gmd_tensor *loss)
{
    if (!gmd_tensor_tracked(engine, scores)) {
        return;
    }
    gmd_node *node = gmd_node_new(engine, "CrossEntropyBackward",
                                  total_weight ? nll_backward : probability_backward, 1);
    gmd_node_connect(engine, node, 0, scores);
    node->recipe.shape[0] = scores->shape;
    node->recipe.dtype = scores->dtype;
    gmd_node_save(node, target);
    gmd_node_save(node, total_weight);
    gmd_node_save(node, total_weight ? scores : NULL);
    gmd_node_result(node, 0, loss);
    gmd_node_drop(engine, node);
}

gmd_tensor *gmd_op_cross_entropy(gmd_engine *engine, gmd_tensor *logits, gmd_tensor *target)
{
    char left[128], right[128];
    if (!logits || !target) {
        return NULL;
    }
    bool probabilities = gmd_shape_count(&target->shape) == gmd_shape_count(&logits->shape);
    int64_t rows = logits->shape.dims > 0 ? logits->shape.size[0] : 0;
    if (!probabilities && gmd_shape_count(&target->shape) != (uint64_t)rows) {
        gmd_misuse(engine,
                   "cross_entropy: for logits %s the target is a class for each row, or a "
                   "probability for each class; it is %s",
                   gmd_shape_text(&logits->shape, left), gmd_shape_text(&target->shape, right));
        return NULL;
    }
    gmd_tensor *total_weight = NULL;
    gmd_tensor *narrow = log_softmax(engine, logits); /* in the type that the logits have */
    gmd_tensor *scores = gmd_autocast_wide(engine, narrow);
    gmd_tensor_drop(engine, narrow);
    gmd_tensor *loss = probabilities ? probability_loss(engine, scores)
                                     : index_loss(engine, scores, &total_weight);
    record_loss(engine, scores, target, total_weight, loss);
    gmd_tensor_drop(engine, total_weight);
    gmd_tensor_drop(engine, scores);
    return loss;
}
