#include "optimizer_parts.h"

static void destroy_optimizer(struct engine *engine, struct thing *thing)
{
    struct optimizer *optimizer = (struct optimizer *)thing;
    for (size_t i = 0; i < optimizer->count; i++) { /* state, a dict: from the first item on */
        for (int k = 0; k < OPTIMIZER_STATE_MAX; k++) {
            tensor_drop(engine, optimizer->slots[i].state[k]);
        }
    }
    for (size_t i = optimizer->count; i-- > 0;) { /* then the groups' list of parameters */
        tensor_drop(engine, optimizer->slots[i].parameter);
    }
    optimizer_drop_others(engine, optimizer);
    host_give(engine, optimizer->slots);
    host_give(engine, optimizer->groups);
}

const struct thing_class optimizer_class = {.name = "optimizer", .destroy = destroy_optimizer};

struct optimizer *optimizer_new(struct engine *engine, const struct optimizer_options *options)
{
    struct optimizer *optimizer = host_take(engine, sizeof *optimizer);
    thing_init(engine, &optimizer->thing, &optimizer_class);
    optimizer->options = *options;
    return optimizer;
}

/* --- parameters -------------------------------------------------------------------------- */

void optimizer_group(struct engine *engine, struct optimizer *optimizer, bool decays)
{
    size_t count = optimizer->group_count++;
    optimizer->groups =
        host_take_more(engine, optimizer->groups, (count + 1) * sizeof *optimizer->groups);
    optimizer->groups[count] =
        (struct group){.begin = optimizer->count,
                       .end = optimizer->count,
                       .decays = decays && !optimizer->options.decays_in_place};
}

static bool has_parameter(const struct optimizer *optimizer, const struct tensor *parameter)
{
    for (size_t i = 0; i < optimizer->count; i++) {
        if (optimizer->slots[i].parameter == parameter) {
            return true;
        }
    }
    return false;
}

/* State belongs to the parameter: a parameter that is listed twice has it once. Adagrad's is there
 * before the first step. */
void optimizer_add(struct engine *engine, struct optimizer *optimizer, struct tensor *parameter)
{
    if (has_parameter(optimizer, parameter)) {
        return;
    }
    if (optimizer->count == optimizer->capacity) {
        optimizer->capacity = optimizer->capacity ? 2 * optimizer->capacity : 16;
        optimizer->slots = host_take_more(engine, optimizer->slots,
                                          optimizer->capacity * sizeof *optimizer->slots);
    }
    struct slot *slot = &optimizer->slots[optimizer->count++];
    *slot = (struct slot){.parameter = tensor_keep(parameter)};
    optimizer->groups[optimizer->group_count - 1].end = optimizer->count;
    if (optimizer->options.method == OPTIMIZER_ADAGRAD) {
        engine->on_host = parameter->storage->is_on_host;
        optimizer_create_sums(engine, slot);
        engine->on_host = false;
        storage_mark(slot->state[STATE_FIRST]->storage, GMD_OPTIMIZER_STATE);
    }
}

static void add_visited(struct engine *engine, struct tensor *parameter, void *context)
{
    optimizer_add(engine, context, parameter);
}

void optimizer_add_module(struct engine *engine, struct optimizer *optimizer, struct module *module)
{
    module_parameters(engine, module, add_visited, optimizer);
}

/* --- state ------------------------------------------------------------------------------- */

static const char *const names[][OPTIMIZER_STATE_MAX] = {
    [OPTIMIZER_SGD] = {"momentum_buffer", "", "", ""},
    [OPTIMIZER_ADAM] = {"exp_avg", "exp_avg_sq", "max_exp_avg_sq", "step"},
    [OPTIMIZER_RMSPROP] = {"square_avg", "momentum_buffer", "grad_avg", ""},
    [OPTIMIZER_ADAGRAD] = {"sum", "", "", ""},
};

bool optimizer_at(const struct optimizer *optimizer, size_t index, struct optimizer_slot *held)
{
    if (index >= optimizer->count) {
        return false;
    }
    const struct slot *slot = &optimizer->slots[index];
    held->parameter = slot->parameter;
    for (int k = 0; k < OPTIMIZER_STATE_MAX; k++) {
        held->state[k] = slot->state[k];
        held->names[k] = names[optimizer->options.method][k];
    }
    return true;
}

uint64_t optimizer_bytes(const struct optimizer *optimizer)
{
    uint64_t bytes = 0;
    for (size_t i = 0; i < optimizer->count; i++) {
        for (int k = 0; k < OPTIMIZER_STATE_MAX; k++) {
            const struct tensor *state = optimizer->slots[i].state[k];
            bytes += state ? tensor_bytes(state) : 0;
        }
    }
    return bytes;
}

/* Parameters on the CPU are updated there. */
static void step_group(struct engine *engine, struct optimizer *optimizer,
                       const struct group *group)
{
    size_t on_host = 0;
    for (size_t i = group->begin; i < group->end; i++) {
        on_host += optimizer->slots[i].parameter->storage->is_on_host;
    }
    if (on_host > 0 && on_host < group->end - group->begin) {
        engine_misuse(engine, "an optimizer's group has its parameters on the GPU, or all of them "
                              "on the CPU (fully_shard's cpu_offload); make a group for each");
        return;
    }
    engine->on_host = on_host > 0;
    optimizer_step_group(engine, optimizer, group);
    engine->on_host = false;
}

void optimizer_step(struct engine *engine, struct optimizer *optimizer)
{
    for (size_t i = 0; i < optimizer->group_count; i++) {
        step_group(engine, optimizer, &optimizer->groups[i]);
    }
    for (size_t i = 0; i < optimizer->count; i++) {
        for (int k = 0; k < OPTIMIZER_STATE_MAX; k++) {
            struct tensor *state = optimizer->slots[i].state[k];
            storage_mark(state ? state->storage : NULL, GMD_OPTIMIZER_STATE);
        }
    }
}

static void clear_gradient(struct engine *engine, struct tensor *parameter)
{
    struct tensor *grad = parameter->grad;
    parameter->grad = NULL;
    tensor_drop(engine, grad);
}

void optimizer_zero_grad(struct engine *engine, struct optimizer *optimizer, bool set_to_none)
{
    for (size_t i = 0; set_to_none && i < optimizer->count; i++) {
        clear_gradient(engine, optimizer->slots[i].parameter);
    }
    for (size_t i = 0; set_to_none && i < optimizer->other_count; i++) {
        clear_gradient(engine, optimizer->others[i]);
    }
}
