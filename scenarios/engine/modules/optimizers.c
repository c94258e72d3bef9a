#include "gmd_optimizer.h"

typedef struct slot {
    gmd_tensor *parameter;
    gmd_tensor *first, *second; /* momentum; or the two moments of Adam */
    gmd_tensor *steps;          /* of GMD_FUSED */
} slot;

struct gmd_optimizer {
    gmd_thing thing;
    gmd_method method;
    bool momentum, decays;
    gmd_implementation implementation;
    slot *slots;
    size_t count, capacity;
};

static void destroy_optimizer(gmd_engine *engine, gmd_thing *thing)
{
    gmd_optimizer *optimizer = (gmd_optimizer *)thing;
    for (size_t i = 0; i < optimizer->count; i++) {
        gmd_tensor_drop(engine, optimizer->slots[i].first);
        gmd_tensor_drop(engine, optimizer->slots[i].second);
        gmd_tensor_drop(engine, optimizer->slots[i].steps);
        gmd_tensor_drop(engine, optimizer->slots[i].parameter);
    }
    gmd_give(engine, optimizer->slots);
}

const gmd_thing_class gmd_optimizer_class = {.name = "optimizer", .destroy = destroy_optimizer};

gmd_optimizer *gmd_optimizer_new(gmd_engine *engine, gmd_method method, bool momentum)
{
    gmd_optimizer *optimizer = gmd_take(engine, sizeof *optimizer);
    gmd_thing_init(engine, &optimizer->thing, &gmd_optimizer_class);
    optimizer->method = method;
    optimizer->momentum = momentum;
    return optimizer;
}

static bool has_parameter(const gmd_optimizer *optimizer, const gmd_tensor *parameter)
{
    for (size_t i = 0; i < optimizer->count; i++) {
        if (optimizer->slots[i].parameter == parameter) {
            return true;
        }
    }
    return false;
}

/* State belongs to the parameter: one that is named twice has it once. */
void gmd_optimizer_add(gmd_engine *engine, gmd_optimizer *optimizer, gmd_tensor *parameter)
{
    if (has_parameter(optimizer, parameter)) {
        return;
    }
    if (optimizer->count == optimizer->capacity) {
        optimizer->capacity = optimizer->capacity ? 2 * optimizer->capacity : 16;
        optimizer->slots =
            gmd_take_more(engine, optimizer->slots, optimizer->capacity * sizeof(slot));
    }
    optimizer->slots[optimizer->count++] = (slot){.parameter = gmd_tensor_keep(parameter)};
}

static void add_visited(gmd_engine *engine, gmd_tensor *parameter, void *context)
{
    gmd_optimizer_add(engine, context, parameter);
}

void gmd_optimizer_add_module(gmd_engine *engine, gmd_optimizer *optimizer, gmd_module *module)
{
    gmd_module_parameters(engine, module, add_visited, optimizer);
}

/* The multi-tensor updates compute one thing of all parameters at once. */
static gmd_storage **one_for_each(gmd_engine *engine, const gmd_optimizer *optimizer)
{
    gmd_storage **all = gmd_take(engine, (optimizer->count + 1) * sizeof(gmd_storage *));
    for (size_t i = 0; i < optimizer->count; i++) {
        if (optimizer->slots[i].parameter->grad) {
            all[i] = gmd_storage_new(engine, gmd_tensor_bytes(optimizer->slots[i].parameter));
        }
    }
    return all;
}

static void drop_each(gmd_engine *engine, const gmd_optimizer *optimizer, gmd_storage **all)
{
    for (size_t i = all ? optimizer->count : 0; i-- > 0;) {
        gmd_storage_drop(engine, all[i]);
    }
    gmd_give(engine, all);
}

/* grad + weight_decay * parameter, where the method does it so: of all parameters at once, or of
 * the one whose turn it is, until the next one's. */
static gmd_storage **decayed_gradients(gmd_engine *engine, const gmd_optimizer *optimizer)
{
    bool at_once = optimizer->decays && optimizer->implementation == GMD_FOREACH;
    return at_once ? one_for_each(engine, optimizer) : NULL;
}

static void decay_in_turn(gmd_engine *engine, const gmd_optimizer *optimizer, size_t index,
                          gmd_storage **variable)
{
    if (optimizer->decays && optimizer->implementation == GMD_FOR_LOOP) {
        gmd_storage *sum =
            gmd_storage_new(engine, gmd_tensor_bytes(optimizer->slots[index].parameter));
        gmd_storage_drop(engine, *variable);
        *variable = sum;
    }
}

/* The updates are in place; only the state of a parameter whose first gradient this is, is new. */
static void step_sgd(gmd_engine *engine, gmd_optimizer *optimizer)
{
    gmd_storage **decayed = decayed_gradients(engine, optimizer), *variable = NULL;
    for (size_t i = 0; i < optimizer->count; i++) {
        slot *each = &optimizer->slots[i];
        if (each->parameter->grad) {
            decay_in_turn(engine, optimizer, i, &variable);
            if (optimizer->momentum && !each->first) {
                each->first = gmd_tensor_like(engine, each->parameter);
            }
        }
    }
    gmd_storage_drop(engine, variable);
    drop_each(engine, optimizer, decayed);
}

static void create_moments(gmd_engine *engine, gmd_optimizer *optimizer)
{
    bool counted = optimizer->implementation == GMD_FUSED; /* the number of steps, on the device */
    for (size_t i = 0; i < optimizer->count; i++) {
        slot *each = &optimizer->slots[i];
        if (each->parameter->grad && !each->first) {
            static const gmd_shape scalar = {0, {0}};
            each->steps = counted ? gmd_tensor_new(engine, &scalar, GMD_FLOAT32) : NULL;
            each->first = gmd_tensor_like(engine, each->parameter);
            each->second = gmd_tensor_like(engine, each->parameter);
        }
    }
}

static void update_at_once(gmd_engine *engine, gmd_optimizer *optimizer)
{
    gmd_storage **decayed = decayed_gradients(engine, optimizer);
    gmd_storage **roots = one_for_each(engine, optimizer); /* of all second moments */
    drop_each(engine, optimizer, roots);
    drop_each(engine, optimizer, decayed);
}

/* denom = exp_avg_sq.sqrt() / correction: the variable keeps one parameter's until the next one's.
 */
static void update_in_turn(gmd_engine *engine, gmd_optimizer *optimizer)
{
    gmd_storage *variable = NULL, *decayed = NULL;
    for (size_t i = 0; i < optimizer->count; i++) {
        if (optimizer->slots[i].parameter->grad) {
            decay_in_turn(engine, optimizer, i, &decayed);
            uint64_t bytes = gmd_tensor_bytes(optimizer->slots[i].parameter);
            gmd_storage *root = gmd_storage_new(engine, bytes);
            gmd_storage *quotient = gmd_storage_new(engine, bytes);
            gmd_storage_drop(engine, root);
            gmd_storage_drop(engine, variable);
            variable = quotient;
        }
    }
    gmd_storage_drop(engine, variable);
    gmd_storage_drop(engine, decayed);
}

static void step_adam(gmd_engine *engine, gmd_optimizer *optimizer)
{
    create_moments(engine, optimizer);
    if (optimizer->implementation == GMD_FOREACH) {
        update_at_once(engine, optimizer);
    } else if (optimizer->implementation == GMD_FOR_LOOP) {
        update_in_turn(engine, optimizer);
    }
}

void gmd_optimizer_decay(gmd_optimizer *optimizer)
{
    optimizer->decays = true;
}

void gmd_optimizer_implementation(gmd_optimizer *optimizer, gmd_implementation implementation)
{
    optimizer->implementation = implementation;
}

static void mark_state(gmd_tensor *state)
{
    if (state) {
        gmd_storage_is(state->storage, GMD_OPTIMIZER_STATE);
    }
}

bool gmd_optimizer_at(const gmd_optimizer *optimizer, size_t index, gmd_optimizer_slot *held)
{
    if (index >= optimizer->count) {
        return false;
    }
    bool is_adam = optimizer->method == GMD_ADAM;
    *held = (gmd_optimizer_slot){
        .parameter = optimizer->slots[index].parameter,
        .state = {optimizer->slots[index].first, optimizer->slots[index].second,
                  optimizer->slots[index].steps},
        .names = {is_adam ? "exp_avg" : "momentum_buffer", "exp_avg_sq", "step"},
    };
    return true;
}

uint64_t gmd_optimizer_bytes(const gmd_optimizer *optimizer)
{
    uint64_t bytes = 0;
    gmd_optimizer_slot held;
    for (size_t i = 0; gmd_optimizer_at(optimizer, i, &held); i++) {
        for (size_t k = 0; k < GMD_STATE_MAX; k++) {
            bytes += held.state[k] ? gmd_tensor_bytes(held.state[k]) : 0;
        }
    }
    return bytes;
}

void gmd_optimizer_step(gmd_engine *engine, gmd_optimizer *optimizer)
{
    if (optimizer->method == GMD_ADAM) {
        step_adam(engine, optimizer);
    } else {
        step_sgd(engine, optimizer);
    }
    for (size_t i = 0; i < optimizer->count; i++) {
        mark_state(optimizer->slots[i].first);
        mark_state(optimizer->slots[i].second);
        mark_state(optimizer->slots[i].steps);
    }
}

void gmd_optimizer_zero_grad(gmd_engine *engine, gmd_optimizer *optimizer, bool set_to_none)
{
    for (size_t i = 0; set_to_none && i < optimizer->count; i++) {
        gmd_tensor *grad = optimizer->slots[i].parameter->grad;
        optimizer->slots[i].parameter->grad = NULL;
        gmd_tensor_drop(engine, grad);
    }
}

/* --- clipping ---------------------------------------------------------------------------- */

#define CHUNK 65536 /* elements of a tensor that one thread block sums */

typedef struct norms {
    uint64_t count, largest; /* gradients, and elements of the largest */
    gmd_storage **each;
} norms;

static void count_gradient(gmd_engine *engine, gmd_tensor *parameter, void *context)
{
    norms *all = context;
    (void)engine;
    if (parameter->grad) {
        uint64_t elements = gmd_shape_count(&parameter->shape);
        all->count++;
        all->largest = elements > all->largest ? elements : all->largest;
    }
}

/* The norm of each gradient, of those together, and the factor; gradients are scaled in place. */
void gmd_clip_grad_norm(gmd_engine *engine, gmd_module *module)
{
    norms all = {0};
    gmd_module_parameters(engine, module, count_gradient, &all);
    uint64_t chunks = (all.largest + CHUNK - 1) / CHUNK;
    gmd_storage *partial = gmd_storage_new(engine, all.count * chunks * 4);
    all.each = gmd_take(engine, (all.count + 1) * sizeof(gmd_storage *));
    for (uint64_t i = 0; i < all.count; i++) {
        all.each[i] = gmd_storage_new(engine, 4);
    }
    gmd_storage_drop(engine, partial);
    gmd_storage *stacked = gmd_storage_new(engine, all.count * 4);
    gmd_storage *norm = gmd_storage_new(engine, 4);
    gmd_storage_drop(engine, stacked);
    for (uint64_t i = 0; i < all.count; i++) {
        gmd_storage_drop(engine, all.each[i]);
    }
    gmd_storage *factor = gmd_storage_new(engine, 4);
    gmd_storage_drop(engine, factor);
    gmd_storage_drop(engine, norm);
    gmd_give(engine, all.each);
}
