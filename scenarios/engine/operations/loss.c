/* loss.c - cross entropy, for class indices and for class probabilities; squared errors, binary
 * cross entropy and the Kullback-Leibler divergence. Facts: ATen/native/Loss.cpp and
 * derivatives.yaml of PyTorch 2.11. */
#include "gmd_autocast.h"
#include "gmd_more_operations.h"
#include "reduce.h"

static const struct shape scalar = {0, {0}};

static struct shape shape_of_loss(enum reduction reduction, const struct shape *unreduced)
{
    return reduction == REDUCTION_NONE ? *unreduced : scalar;
}

/* --- cross entropy ----------------------------------------------------------------------- */

enum { REDUCTION, TERMS }; /* of recipe.number; TERMS: the type of scores * target */

/* -(scores * target).sum() / rows, each step an operation: the results are temporaries of the
 * expression, and nothing saves the product. Only a mean is divided. Under autocast the sum has
 * more bits than its input, and the gradient of an input the type of the input. */
static void probability_backward(struct engine *engine, struct node *node, struct tensor **grads,
                                 struct tensor **results)
{
    const struct shape *shape = &node->recipe.shape[0];
    enum dtype terms = (enum dtype)node->recipe.number[TERMS];
    bool is_mean = node->recipe.number[REDUCTION] == REDUCTION_MEAN;
    struct tensor *quotient = is_mean ? tensor_like(engine, grads[0]) : NULL;
    struct tensor *negated = tensor_like(engine, grads[0]);
    tensor_drop(engine, quotient);
    struct tensor *whole = grads[0]->dtype == terms ? NULL : tensor_new(engine, shape, terms);
    struct tensor *product = tensor_new(engine, shape, terms);
    results[0] = op_cast(engine, product, node->recipe.dtype);
    tensor_drop(engine, product);
    tensor_drop(engine, whole);
    tensor_drop(engine, negated);
}

static struct tensor *probability_loss(struct engine *engine, struct tensor *scores,
                                       struct tensor *target, const struct shape *shape,
                                       enum reduction reduction)
{
    enum dtype terms = dtype_promoted(scores->dtype, target->dtype);
    enum dtype dtype = autocast_result(engine, "sum", terms);
    struct tensor *product = tensor_new(engine, &scores->shape, terms);
    struct tensor *sum = tensor_new(engine, shape, dtype);
    struct tensor *negated = tensor_new(engine, shape, dtype);
    struct tensor *loss = negated;
    if (reduction == REDUCTION_MEAN) {
        loss = tensor_new(engine, shape, dtype);
        tensor_drop(engine, negated);
    }
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
                                 const struct shape *shape, struct tensor **total_weight)
{
    struct tensor *loss = tensor_new(engine, shape, scores->dtype);
    *total_weight = tensor_new(engine, &scalar, scores->dtype);
    return loss;
}

static void record_loss(struct engine *engine, struct tensor *scores, struct tensor *target,
                        struct tensor *total_weight, struct tensor *loss, enum reduction reduction)
{
    if (!tensor_tracked(engine, scores)) {
        return;
    }
    struct node *node = node_new(engine, "CrossEntropyBackward",
                                 total_weight ? nll_backward : probability_backward, 1);
    node_connect(engine, node, 0, scores);
    node->recipe.shape[0] = scores->shape;
    node->recipe.dtype = scores->dtype;
    node->recipe.number[REDUCTION] = reduction;
    node->recipe.number[TERMS] = dtype_promoted(scores->dtype, target->dtype);
    node_save(node, target);
    node_save(node, total_weight);
    node_save(node, total_weight ? scores : NULL);
    node_result(node, 0, loss);
    node_drop(engine, node);
}

struct tensor *op_cross_entropy(struct engine *engine, struct tensor *logits, struct tensor *target,
                                enum reduction reduction)
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
    struct tensor *narrow = op_log_softmax_as_it_is(engine, logits);
    struct tensor *scores =
        probabilities ? tensor_keep(narrow) : autocast_argument(engine, "nll_loss", narrow);
    tensor_drop(engine, narrow);
    struct shape shape = shape_of_loss(reduction, &(struct shape){1, {rows}});
    struct tensor *loss = probabilities
                              ? probability_loss(engine, scores, target, &shape, reduction)
                              : index_loss(engine, scores, &shape, &total_weight);
    record_loss(engine, scores, target, total_weight, loss, reduction);
    tensor_drop(engine, total_weight);
    tensor_drop(engine, scores);
    return loss;
}

struct tensor *op_nll_loss(struct engine *engine, struct tensor *input, struct tensor *target,
                           enum reduction reduction)
{
    char left[128], right[128];
    if (!input || !target) {
        return NULL;
    }
    if (input->shape.dims != 2 || shape_count(&target->shape) != (uint64_t)input->shape.size[0]) {
        engine_misuse(engine,
                      "nll_loss: a class for each row expected; the input is %s and the "
                      "target %s",
                      shape_text(&input->shape, left), shape_text(&target->shape, right));
        return NULL;
    }
    struct tensor *total_weight = NULL;
    struct tensor *scores = autocast_argument(engine, "nll_loss", input);
    struct shape shape = shape_of_loss(reduction, &(struct shape){1, {input->shape.size[0]}});
    struct tensor *loss = index_loss(engine, scores, &shape, &total_weight);
    record_loss(engine, scores, target, total_weight, loss, reduction);
    tensor_drop(engine, total_weight);
    tensor_drop(engine, scores);
    return loss;
}

/* --- losses of two tensors of the same shape --------------------------------------------- */

static bool same_shapes(struct engine *engine, const char *what, const struct tensor *input,
                        const struct tensor *target)
{
    char left[128], right[128];
    bool is_same = shape_is(&input->shape, &target->shape);
    if (!is_same) {
        engine_misuse(engine, "%s: the input is %s and the target %s", what,
                      shape_text(&input->shape, left), shape_text(&target->shape, right));
    } else if (!dtype_is_floating(input->dtype)) {
        engine_misuse(engine, "%s takes floating numbers, and the input is %s", what,
                      dtype_name(input->dtype));
    }
    return is_same && dtype_is_floating(input->dtype);
}

static bool has_fixed_target(struct engine *engine, const char *what, const struct tensor *target)
{
    if (tensor_tracked(engine, target)) {
        engine_misuse(engine, "%s: the gradient of a target is not modelled; detach() it", what);
        return false;
    }
    return true;
}

static struct tensor *reduce_loss(struct engine *engine, struct tensor *unreduced,
                                  enum reduction reduction)
{
    switch (reduction) {
    case REDUCTION_MEAN:
        return op_mean(engine, unreduced, 0, false);
    case REDUCTION_SUM:
        return op_sum(engine, unreduced, 0, false);
    default:
        return tensor_keep(unreduced);
    }
}

static void mse_backward(struct engine *engine, struct node *node, struct tensor **grads,
                         struct tensor **results)
{
    (void)grads;
    for (uint32_t i = 0; i < 2; i++) {
        if (node_wants(node, i)) {
            results[i] = tensor_new(engine, &node->recipe.shape[0], node->recipe.dtype);
        }
    }
}

/* The result is made for all squares and then shrunk to one number, in the same memory; the squares
 * that are reduced are in other memory. */
static struct tensor *mse(struct engine *engine, struct tensor *input, enum reduction reduction)
{
    struct tensor *result = tensor_like(engine, input);
    if (reduction != REDUCTION_NONE) {
        struct tensor *squares = tensor_like(engine, input);
        reduce_scratch_to(engine, &input->shape, &scalar, 4);
        tensor_drop(engine, squares);
        result->shape = scalar;
    }
    return result;
}

/* A node that saves both and gives a gradient to each. */
static void record_both(struct engine *engine, const char *name, struct tensor *input,
                        struct tensor *target, struct tensor *loss)
{
    if (tensor_tracked(engine, input) || tensor_tracked(engine, target)) {
        struct node *node = node_new(engine, name, mse_backward, 2);
        node_connect(engine, node, 0, input);
        node_connect(engine, node, 1, target);
        node->recipe = (struct recipe){.shape = {input->shape}, .dtype = input->dtype};
        node_save(node, input);
        node_save(node, target);
        node_result(node, 0, loss);
        node_drop(engine, node);
    }
}

static struct tensor *mse_loss(struct engine *engine, struct tensor *input, struct tensor *target,
                               enum reduction reduction)
{
    if (!same_shapes(engine, "mse_loss", input, target)) {
        return NULL;
    }
    struct tensor *loss = mse(engine, input, reduction);
    record_both(engine, "MseLossBackward", input, target, loss);
    return loss;
}

/* Its memory is that of the squared errors. */
static struct tensor *smooth_l1_loss(struct engine *engine, struct tensor *input,
                                     struct tensor *target, enum reduction reduction)
{
    if (!same_shapes(engine, "smooth_l1_loss", input, target)) {
        return NULL;
    }
    struct tensor *loss = mse(engine, input, reduction);
    record_both(engine, "SmoothL1LossBackward", input, target, loss);
    return loss;
}

static struct tensor *huber_loss(struct engine *engine, struct tensor *input, struct tensor *target,
                                 enum reduction reduction)
{
    if (!same_shapes(engine, "huber_loss", input, target)) {
        return NULL;
    }
    struct tensor *terms = tensor_like(engine, input);
    struct tensor *loss = reduce_loss(engine, terms, reduction);
    tensor_drop(engine, terms);
    record_both(engine, "HuberLossBackward", input, target, loss);
    return loss;
}

/* (input - target).abs(), reduced: operations of their own */
static struct tensor *l1_loss(struct engine *engine, struct tensor *input, struct tensor *target,
                              enum reduction reduction)
{
    if (!same_shapes(engine, "l1_loss", input, target)) {
        return NULL;
    }
    struct tensor *difference = op_sub(engine, input, target);
    struct tensor *terms = op_elementwise(engine, ELEMENTWISE_ABS, difference);
    struct tensor *loss = reduce_loss(engine, terms, reduction);
    tensor_drop(engine, terms);
    tensor_drop(engine, difference);
    return loss;
}

static void probabilities_backward(struct engine *engine, struct node *node, struct tensor **grads,
                                   struct tensor **results)
{
    (void)grads;
    results[0] = tensor_new(engine, &node->recipe.shape[0], node->recipe.dtype);
}

/* The result is shrunk to one number, in the memory that the terms have. */
struct tensor *op_binary_cross_entropy(struct engine *engine, struct tensor *input,
                                       struct tensor *target, enum reduction reduction)
{
    static const char name[] = "binary_cross_entropy";
    if (!input || !target || !same_shapes(engine, name, input, target) ||
        !has_fixed_target(engine, name, target)) {
        return NULL;
    }
    if (engine->autocast) {
        engine_misuse(engine, "binary_cross_entropy is refused under autocast, as in PyTorch; "
                              "binary_cross_entropy_with_logits is not");
        return NULL;
    }
    struct tensor *loss = tensor_like(engine, input);
    if (reduction != REDUCTION_NONE) {
        tensor_drop(engine, reduce_loss(engine, loss, reduction));
        loss->shape = scalar;
    }
    struct node *node =
        node_over(engine, "BinaryCrossEntropyBackward", probabilities_backward, input, loss);
    if (node) {
        node_save(node, input);
        node_save(node, target);
    }
    node_drop(engine, node);
    return loss;
}

/* (sigmoid(input) - target) * grad, and divided in place for a mean */
static void bce_backward(struct engine *engine, struct node *node, struct tensor **grads,
                         struct tensor **results)
{
    (void)grads;
    struct tensor *sigmoid = tensor_new(engine, &node->recipe.shape[0], node->recipe.dtype);
    results[0] = tensor_new(engine, &node->recipe.shape[0], node->recipe.dtype);
    tensor_drop(engine, sigmoid);
}

static void record_bce(struct engine *engine, struct tensor *input, struct tensor *target,
                       struct tensor *loss)
{
    struct node *node =
        node_over(engine, "BinaryCrossEntropyWithLogitsBackward", bce_backward, input, loss);
    if (node) {
        node_save(node, input);
        node_save(node, target);
    }
    node_drop(engine, node);
}

/* (1 - target) * input - logarithm of the sigmoid, the last two in place */
static struct tensor *bce_with_logits(struct engine *engine, struct tensor *input,
                                      struct tensor *target, enum reduction reduction)
{
    static const char name[] = "binary_cross_entropy_with_logits";
    if (!same_shapes(engine, name, input, target) || !has_fixed_target(engine, name, target)) {
        return NULL;
    }
    struct tensor *logarithm = tensor_like(engine, input);
    struct tensor *terms = tensor_like(engine, input);
    struct tensor *loss = reduce_loss(engine, terms, reduction);
    tensor_drop(engine, terms);
    tensor_drop(engine, logarithm);
    record_bce(engine, input, target, loss);
    return loss;
}

/* target * log(target) - target * input, or exp(target) * (target - input) */
static struct tensor *kl_terms(struct engine *engine, struct tensor *input, struct tensor *target,
                               bool log_target)
{
    struct tensor *factor = tensor_like(engine, target);
    struct tensor *other =
        log_target ? op_sub(engine, target, input) : op_mul(engine, target, input, false);
    struct tensor *terms =
        log_target ? op_mul(engine, factor, other, false) : op_sub(engine, factor, other);
    tensor_drop(engine, other);
    tensor_drop(engine, factor);
    return terms;
}

static struct tensor *kl_div(struct engine *engine, struct tensor *input, struct tensor *target,
                             enum reduction reduction, bool log_target)
{
    if (!same_shapes(engine, "kl_div", input, target) ||
        !has_fixed_target(engine, "kl_div", target)) {
        return NULL;
    }
    struct tensor *terms = kl_terms(engine, input, target, log_target);
    struct tensor *loss = reduce_loss(engine, terms, reduction);
    tensor_drop(engine, terms);
    return loss;
}

static struct tensor *kl_div_of_logarithms(struct engine *engine, struct tensor *input,
                                           struct tensor *target, enum reduction reduction)
{
    return kl_div(engine, input, target, reduction, true);
}

static struct tensor *kl_div_of_numbers(struct engine *engine, struct tensor *input,
                                        struct tensor *target, enum reduction reduction)
{
    return kl_div(engine, input, target, reduction, false);
}

/* --- in 32 bits under autocast ----------------------------------------------------------- */

typedef struct tensor *(*loss_fn)(struct engine *engine, struct tensor *input,
                                  struct tensor *target, enum reduction reduction);

/* The last argument is converted first. */
static struct tensor *under_autocast(struct engine *engine, const char *name, loss_fn loss,
                                     struct tensor *input, struct tensor *target,
                                     enum reduction reduction)
{
    if (!input || !target) {
        return NULL;
    }
    struct tensor *y = autocast_argument(engine, name, target);
    struct tensor *x = autocast_argument(engine, name, input);
    struct tensor *result = loss(engine, x, y, reduction);
    tensor_drop(engine, x);
    tensor_drop(engine, y);
    return result;
}

struct tensor *op_mse_loss(struct engine *engine, struct tensor *input, struct tensor *target,
                           enum reduction reduction)
{
    return under_autocast(engine, "mse_loss", mse_loss, input, target, reduction);
}

struct tensor *op_l1_loss(struct engine *engine, struct tensor *input, struct tensor *target,
                          enum reduction reduction)
{
    return under_autocast(engine, "l1_loss", l1_loss, input, target, reduction);
}

struct tensor *op_smooth_l1_loss(struct engine *engine, struct tensor *input, struct tensor *target,
                                 enum reduction reduction)
{
    return under_autocast(engine, "smooth_l1_loss", smooth_l1_loss, input, target, reduction);
}

struct tensor *op_huber_loss(struct engine *engine, struct tensor *input, struct tensor *target,
                             enum reduction reduction)
{
    return under_autocast(engine, "huber_loss", huber_loss, input, target, reduction);
}

struct tensor *op_bce_with_logits(struct engine *engine, struct tensor *input,
                                  struct tensor *target, enum reduction reduction)
{
    return under_autocast(engine, "binary_cross_entropy_with_logits", bce_with_logits, input,
                          target, reduction);
}

struct tensor *op_kl_div(struct engine *engine, struct tensor *input, struct tensor *target,
                         enum reduction reduction, bool log_target)
{
    loss_fn loss = log_target ? kl_div_of_logarithms : kl_div_of_numbers;
    return under_autocast(engine, "kl_div", loss, input, target, reduction);
}
