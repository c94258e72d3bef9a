/* multihead.c - torch.nn.MultiheadAttention. Facts: multi_head_attention_forward() and
 * _in_projection_packed() in torch/nn/functional.py of 2.11. */
#include "gmd_dot_attention.h"
#include "gmd_module.h"
#include "native_attention.h"

enum { QUERY, KEY, VALUE, INPUTS };
enum { WEIGHT, BIAS };
enum { PROJECTION }; /* child */

/* With the length first; takes no reference over. */
static struct tensor *length_first(struct engine *engine, const struct module *module,
                                   struct tensor *input)
{
    return module->batch_first ? op_transpose(engine, input, 0, 1) : tensor_keep(input);
}

static void drop_all(struct engine *engine, struct tensor *const tensors[], size_t count)
{
    for (size_t i = 0; i < count; i++) {
        tensor_drop(engine, tensors[i]);
    }
}

static struct tensor *bias_of(const struct module *module)
{
    return module->parameter_count > BIAS ? module->parameters[BIAS] : NULL;
}

/* --- projections ------------------------------------------------------------------------- */

/* One product for `count` of the inputs, [length, batch, count * features], copied so that each
 * lies for itself. */
static void project_together(struct engine *engine, struct tensor *input, struct tensor *weight,
                             struct tensor *bias, uint32_t count, struct tensor **parts)
{
    static const int order[SHAPE_MAX_DIMS] = {2, 0, 1, 3};
    struct tensor *joined = op_linear(engine, input, weight, bias);
    if (!joined) {
        return;
    }
    struct shape apart = {
        4, {joined->shape.size[0], joined->shape.size[1], count, joined->shape.size[2] / count}};
    struct tensor *view = op_view_as_it_lies(engine, joined, &apart);
    struct tensor *turned = op_permute(engine, view, order);
    struct tensor *copy = op_contiguous(engine, turned);
    struct tensor *const done[] = {turned, view, joined};
    drop_all(engine, done, 3);
    for (uint32_t i = 0; copy && i < count; i++) {
        parts[i] = op_select(engine, copy, 0);
    }
    tensor_drop(engine, copy);
}

/* Keys and values of the same input are projected together, and all three where it is one. */
static void project_apart(struct engine *engine, struct module *module,
                          struct tensor *const inputs[INPUTS], struct tensor *parts[INPUTS])
{
    int64_t features = module->parameters[WEIGHT]->shape.size[1];
    bool is_shared = inputs[KEY] == inputs[VALUE];
    const int64_t sizes[INPUTS] = {features, is_shared ? 2 * features : features, features};
    uint32_t count = is_shared ? 2 : INPUTS;
    struct tensor *weights[INPUTS] = {NULL}, *biases[INPUTS] = {NULL};
    op_split(engine, module->parameters[WEIGHT], 0, sizes, count, weights);
    if (bias_of(module)) {
        op_split(engine, bias_of(module), 0, sizes, count, biases);
    }
    for (uint32_t i = 0; i < count; i++) {
        if (is_shared && i == KEY) {
            project_together(engine, inputs[KEY], weights[KEY], biases[KEY], 2, &parts[KEY]);
        } else {
            parts[i] = op_linear(engine, inputs[i], weights[i], biases[i]);
        }
    }
    drop_all(engine, weights, count);
    drop_all(engine, biases, count);
}

static void project(struct engine *engine, struct module *module,
                    struct tensor *const inputs[INPUTS], struct tensor *parts[INPUTS])
{
    if (inputs[QUERY] == inputs[KEY] && inputs[KEY] == inputs[VALUE]) {
        project_together(engine, inputs[QUERY], module->parameters[WEIGHT], bias_of(module), INPUTS,
                         parts);
    } else {
        project_apart(engine, module, inputs, parts);
    }
}

/* --- attention --------------------------------------------------------------------------- */

/* [length, batch, features] as [batch * heads, length, depth]. */
static struct tensor *by_heads(struct engine *engine, const struct module *module,
                               struct tensor *part)
{
    if (!part) {
        return NULL;
    }
    const struct shape *from = &part->shape;
    struct shape apart = {
        3, {from->size[0], from->size[1] * module->heads, from->size[2] / module->heads}};
    struct tensor *view = op_view_as_it_lies(engine, part, &apart);
    struct tensor *result = op_transpose(engine, view, 0, 1);
    tensor_drop(engine, view);
    return result;
}

/* [batch * heads, length, depth] with the heads for themselves. */
static struct tensor *with_heads(struct engine *engine, const struct module *module,
                                 struct tensor *a)
{
    if (!a) {
        return NULL;
    }
    struct shape shape = {
        4, {a->shape.size[0] / module->heads, module->heads, a->shape.size[1], a->shape.size[2]}};
    return op_view_as_it_lies(engine, a, &shape);
}

/* Gives [length, batch, heads, depth], in whatever order it lies. */
static struct tensor *fused(struct engine *engine, struct module *module,
                            struct tensor *const parts[INPUTS])
{
    static const int order[SHAPE_MAX_DIMS] = {2, 0, 1, 3};
    struct attention how = {.dropout = module->training ? module->p : 0, .backend = ATTENTION_ANY};
    struct tensor *views[INPUTS];
    for (int i = 0; i < INPUTS; i++) {
        views[i] = with_heads(engine, module, parts[i]);
    }
    struct tensor *out = op_attention(engine, views[QUERY], views[KEY], views[VALUE], &how);
    struct tensor *result = op_permute(engine, out, order);
    tensor_drop(engine, out);
    drop_all(engine, views, INPUTS);
    return result;
}

/* The same written out, as it is where the weights are asked for: these are `weights`, [batch *
 * heads, length, other length]. Gives [length, batch * heads, depth]. */
static struct tensor *written_out(struct engine *engine, struct module *module,
                                  struct tensor *const parts[INPUTS], struct tensor **weights)
{
    struct tensor *scaled = op_scale(engine, parts[QUERY]);
    struct tensor *keys = op_transpose(engine, parts[KEY], 1, 2);
    struct tensor *scores = op_bmm(engine, scaled, keys);
    tensor_drop(engine, keys);
    struct tensor *all = op_softmax(engine, scores);
    tensor_drop(engine, scores);
    *weights = op_dropout(engine, all, module->training ? module->p : 0);
    tensor_drop(engine, all);
    struct tensor *sum = op_bmm(engine, *weights, parts[VALUE]);
    struct tensor *result = op_transpose(engine, sum, 0, 1);
    tensor_drop(engine, sum);
    tensor_drop(engine, scaled);
    return result;
}

/* The mean of the weights of all heads; takes over `weights`. */
static struct tensor *mean_weights(struct engine *engine, struct module *module,
                                   struct tensor *weights)
{
    struct tensor *apart = with_heads(engine, module, weights);
    struct tensor *mean = op_mean(engine, apart, 1u << 1, false);
    tensor_drop(engine, apart);
    tensor_drop(engine, weights);
    return mean;
}

/* Joins the heads and projects them; takes over `heads`. */
static struct tensor *projected(struct engine *engine, struct module *module, struct tensor *heads,
                                const struct tensor *query)
{
    struct shape rows = {2, {0}}, whole = query->shape;
    struct tensor *copy = op_contiguous(engine, heads);
    tensor_drop(engine, heads);
    rows.size[0] = whole.size[0] * whole.size[1];
    rows.size[1] = whole.size[2];
    struct tensor *flat = op_view_as_it_lies(engine, copy, &rows);
    tensor_drop(engine, copy);
    struct tensor *made = module_pass(engine, module->children[PROJECTION], flat);
    struct tensor *result = made ? op_view_as_it_lies(engine, made, &whole) : NULL;
    tensor_drop(engine, made);
    return result;
}

static int attend(struct engine *engine, struct module *module, struct tensor *const inputs[INPUTS],
                  struct tensor *results[MODULE_MAX_RESULTS])
{
    struct tensor *projections[INPUTS] = {NULL}, *parts[INPUTS], *weights = NULL;
    project(engine, module, inputs, projections);
    for (int i = 0; i < INPUTS; i++) {
        parts[i] = by_heads(engine, module, projections[i]);
    }
    struct tensor *heads = module->gives_weights ? written_out(engine, module, parts, &weights)
                                                 : fused(engine, module, parts);
    struct tensor *out = projected(engine, module, heads, inputs[QUERY]);
    int count = module->gives_weights ? 2 : 1;
    results[0] = out && module->batch_first ? op_transpose(engine, out, 0, 1) : tensor_keep(out);
    results[1] = module->gives_weights ? mean_weights(engine, module, weights) : NULL;
    tensor_drop(engine, out);
    drop_all(engine, parts, INPUTS);
    drop_all(engine, projections, INPUTS);
    if (!results[0]) {
        tensor_drop(engine, results[1]);
        results[1] = NULL;
    }
    return results[0] ? count : 0;
}

static bool takes(struct engine *engine, const struct module *module,
                  struct tensor *const inputs[INPUTS])
{
    char text[INPUTS][128];
    int64_t features = module->parameters[WEIGHT]->shape.size[1];
    int length = module->batch_first ? 1 : 0, batch = 1 - length;
    bool fits = true;
    for (int i = 0; i < INPUTS; i++) {
        const struct shape *shape = &inputs[i]->shape;
        fits = fits && shape->dims == 3 && shape->size[2] == features &&
               shape->size[batch] == inputs[QUERY]->shape.size[batch] && shape_count(shape) > 0;
    }
    fits = fits && inputs[KEY]->shape.size[length] == inputs[VALUE]->shape.size[length];
    if (!fits) {
        engine_misuse(
            engine, "MultiheadAttention takes %s, %lld features; the inputs are %s, %s and %s",
            module->batch_first ? "[batch, length, features]" : "[length, batch, features]",
            (long long)features, shape_text(&inputs[QUERY]->shape, text[0]),
            shape_text(&inputs[KEY]->shape, text[1]), shape_text(&inputs[VALUE]->shape, text[2]));
    }
    return fits;
}

static int multihead_native(struct engine *engine, struct module *module, struct tensor *input,
                            struct tensor *results[MODULE_MAX_RESULTS])
{
    struct tensor *weights = NULL;
    results[0] = native_attention(engine, module, input, module->gives_weights ? &weights : NULL);
    results[1] = weights;
    return weights ? 2 : 1;
}

/* One input attends to itself; of two the second gives keys and values. */
static int multihead_forward(struct engine *engine, struct module *module, struct tensor **inputs,
                             int count, struct tensor *results[MODULE_MAX_RESULTS])
{
    struct tensor *all[INPUTS], *first[INPUTS];
    for (int i = 0; i < INPUTS; i++) {
        all[i] = inputs[i < count ? i : count - 1];
    }
    if (!takes(engine, module, all)) {
        return 0;
    }
    if (module->batch_first && all[QUERY] == all[KEY] && all[KEY] == all[VALUE] &&
        native_is_taken(engine, module, module, all[QUERY])) {
        return multihead_native(engine, module, all[QUERY], results);
    }
    for (int i = 0; i < INPUTS; i++) {
        bool is_same = i > 0 && all[i] == all[i - 1];
        first[i] = is_same ? tensor_keep(first[i - 1]) : length_first(engine, module, all[i]);
    }
    int made = attend(engine, module, first, results);
    drop_all(engine, first, INPUTS);
    return made;
}

struct module *nn_multihead_attention(struct engine *engine, const struct multihead *shape)
{
    struct module *module = module_new(engine, "MultiheadAttention", multihead_forward);
    module->heads = shape->heads;
    module->p = shape->dropout;
    module->batch_first = shape->batch_first;
    module->gives_weights = shape->gives_weights;
    module->takes = INPUTS;
    module_parameter(engine, module, (struct shape){2, {3 * shape->features, shape->features}});
    if (shape->bias) {
        module_parameter(engine, module, (struct shape){1, {3 * shape->features}});
    }
    module_child(engine, module, nn_linear(engine, shape->features, shape->features, shape->bias));
    return module;
}
