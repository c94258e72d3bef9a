/* optimizer_steps.c - the state that a step creates, and what it takes for its time. Facts:
 * torch/optim/sgd.py, adam.py, rmsprop.py and adagrad.py of 2.11. */
#include "optimizer_parts.h"

typedef struct step {
    struct engine *engine;
    struct optimizer *optimizer;
    const struct group *group;
} step;

static bool has_gradient(const step *of, size_t index)
{
    return of->optimizer->slots[index].parameter->grad != NULL;
}

static uint64_t bytes_of(const step *of, size_t index)
{
    return tensor_bytes(of->optimizer->slots[index].parameter);
}

/* --- temporaries ------------------------------------------------------------------------- */

/* The multi-tensor updates compute each intermediate result for all parameters of a group at once.
 */
static struct storage **one_for_each(const step *of)
{
    size_t count = of->group->end - of->group->begin;
    struct storage **all = host_take(of->engine, (count + 1) * sizeof(struct storage *));
    for (size_t i = 0; i < count; i++) {
        if (has_gradient(of, of->group->begin + i)) {
            all[i] = storage_new(of->engine, bytes_of(of, of->group->begin + i));
        }
    }
    return all;
}

static void drop_each(const step *of, struct storage **all)
{
    for (size_t i = all ? of->group->end - of->group->begin : 0; i-- > 0;) {
        storage_drop(of->engine, all[i]);
    }
    host_give(of->engine, all);
}

/* grad + weight_decay * parameter, for methods that add decay to the gradient. */
static struct storage **decayed_gradients(const step *of)
{
    return of->group->decays ? one_for_each(of) : NULL;
}

/* In a loop over the parameters `grad` is a variable, which the next turn sets to the next
 * gradient: what was computed for it goes before anything else. */
static void decay_in_turn(const step *of, size_t index, struct storage **grad)
{
    storage_drop(of->engine, *grad);
    *grad = of->group->decays ? storage_new(of->engine, bytes_of(of, index)) : NULL;
}

/* A variable that is set anew in each turn keeps one parameter's value until the next one's. */
static void renew(const step *of, struct storage **variable, uint64_t bytes)
{
    struct storage *next = storage_new(of->engine, bytes);
    storage_drop(of->engine, *variable);
    *variable = next;
}

/* --- state ------------------------------------------------------------------------------- */

/* For a parameter with its first gradient. */
static void create(struct engine *engine, struct slot *slot, int place, bool is_wanted)
{
    if (is_wanted && !slot->state[place]) {
        slot->state[place] = tensor_like(engine, slot->parameter);
    }
}

void optimizer_create_sums(struct engine *engine, struct slot *slot)
{
    create(engine, slot, STATE_FIRST, true);
}

static void create_steps(const step *of, struct slot *slot)
{
    static const struct shape scalar = {0, {0}};
    bool is_on_device = of->optimizer->options.implementation == OPTIMIZER_FUSED;
    if (is_on_device && !slot->state[STATE_STEPS]) {
        slot->state[STATE_STEPS] = tensor_new(of->engine, &scalar, DTYPE_FLOAT32);
    }
}

/* Adam's two moments, and the largest second one; RMSprop's mean square, buffer and mean. */
static void create_state(const step *of)
{
    const struct optimizer_options *options = &of->optimizer->options;
    bool is_adam = options->method == OPTIMIZER_ADAM;
    for (size_t i = of->group->begin; i < of->group->end; i++) {
        struct slot *slot = &of->optimizer->slots[i];
        if (!has_gradient(of, i)) {
            continue;
        }
        if (is_adam) {
            create_steps(of, slot);
        }
        create(of->engine, slot, STATE_FIRST, true);
        create(of->engine, slot, STATE_SECOND, is_adam || options->momentum);
        create(of->engine, slot, STATE_THIRD, options->amsgrad || options->centered);
    }
}

/* --- SGD --------------------------------------------------------------------------------- */

/* The buffers begin as copies of the gradients; all else is in place. */
static void sgd_at_once(const step *of)
{
    bool is_foreach = of->optimizer->options.implementation == OPTIMIZER_FOREACH;
    struct storage **decayed = is_foreach ? decayed_gradients(of) : NULL;
    for (size_t i = of->group->begin; i < of->group->end; i++) {
        bool is_wanted = of->optimizer->options.momentum && has_gradient(of, i);
        create(of->engine, &of->optimizer->slots[i], STATE_FIRST, is_wanted);
    }
    drop_each(of, decayed);
}

/* Nesterov's gradient is a new one. */
static void sgd_in_turn(const step *of)
{
    const struct optimizer_options *options = &of->optimizer->options;
    struct storage *grad = NULL;
    for (size_t i = of->group->begin; i < of->group->end; i++) {
        if (!has_gradient(of, i)) {
            continue;
        }
        decay_in_turn(of, i, &grad);
        create(of->engine, &of->optimizer->slots[i], STATE_FIRST, options->momentum);
        if (options->nesterov) {
            renew(of, &grad, bytes_of(of, i));
        }
    }
    storage_drop(of->engine, grad);
}

/* --- the others: roots of the second moments --------------------------------------------- */

/* Adagrad also multiplies the gradients by the rate, in place where decay made new ones. Adam is
 * done with its gradients before it takes the roots, and lets go of those that it made. */
static void roots_at_once(const step *of)
{
    bool is_adagrad = of->optimizer->options.method == OPTIMIZER_ADAGRAD;
    struct storage **decayed = decayed_gradients(of);
    if (of->optimizer->options.method == OPTIMIZER_ADAM) {
        drop_each(of, decayed);
        decayed = NULL;
    }
    struct storage **roots = one_for_each(of);
    struct storage **numerators = is_adagrad && !decayed ? one_for_each(of) : NULL;
    drop_each(of, roots);
    drop_each(of, numerators);
    drop_each(of, decayed);
}

/* Adam divides the root by a correction: denom = exp_avg_sq.sqrt() / correction. */
static void roots_in_turn(const step *of)
{
    bool is_adam = of->optimizer->options.method == OPTIMIZER_ADAM;
    struct storage *variable = NULL, *grad = NULL;
    for (size_t i = of->group->begin; i < of->group->end; i++) {
        if (has_gradient(of, i)) {
            decay_in_turn(of, i, &grad);
            struct storage *root = is_adam ? storage_new(of->engine, bytes_of(of, i)) : NULL;
            struct storage *quotient = storage_new(of->engine, bytes_of(of, i));
            storage_drop(of->engine, root);
            storage_drop(of->engine, variable);
            variable = quotient;
        }
    }
    storage_drop(of->engine, variable);
    storage_drop(of->engine, grad);
}

/* --- a step ------------------------------------------------------------------------------ */

void optimizer_step_group(struct engine *engine, struct optimizer *optimizer,
                          const struct group *group)
{
    const step of = {engine, optimizer, group};
    bool is_loop = optimizer->options.implementation == OPTIMIZER_FOR_LOOP;
    if (optimizer->options.method == OPTIMIZER_SGD) {
        (is_loop ? sgd_in_turn : sgd_at_once)(&of);
        return;
    }
    create_state(&of);
    if (optimizer->options.implementation != OPTIMIZER_FUSED) {
        (is_loop ? roots_in_turn : roots_at_once)(&of);
    }
}
