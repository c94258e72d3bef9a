#include "gmd_min.h"
#include "gmd_optimizer.h"

typedef struct slot {
    struct tensor *parameter;
    struct tensor *first, *second; /* momentum; or the two moments of Adam */
    struct tensor *steps;          /* of OPTIMIZER_FUSED */
} slot;

struct optimizer {
    struct thing thing;
    enum optimizer_method method;
    bool momentum, decays;
    enum optimizer_implementation implementation;
    slot *slots;
    size_t count, capacity;
};

static void destroy_optimizer(struct engine *engine, struct thing *thing)
{
    struct optimizer *optimizer = (struct optimizer *)thing;
    for (size_t i = 0; i < optimizer->count; i++) { /* state, a dict: from the first item on */
        tensor_drop(engine, optimizer->slots[i].steps);
        tensor_drop(engine, optimizer->slots[i].first);
        tensor_drop(engine, optimizer->slots[i].second);
    }
    for (size_t i = optimizer->count; i-- > 0;) { /* then the groups' list of parameters */
        tensor_drop(engine, optimizer->slots[i].parameter);
    }
    host_give(engine, optimizer->slots);
}

const struct thing_class optimizer_class = {.name = "optimizer", .destroy = destroy_optimizer};

struct optimizer *optimizer_new(struct engine *engine, enum optimizer_method method, bool momentum)
{
    struct optimizer *optimizer = host_take(engine, sizeof *optimizer);
    thing_init(engine, &optimizer->thing, &optimizer_class);
    optimizer->method = method;
    optimizer->momentum = momentum;
    return optimizer;
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

/* State belongs to the parameter: a parameter that is listed twice has it once. */
void optimizer_add(struct engine *engine, struct optimizer *optimizer, struct tensor *parameter)
{
    if (has_parameter(optimizer, parameter)) {
        return;
    }
    if (optimizer->count == optimizer->capacity) {
        optimizer->capacity = optimizer->capacity ? 2 * optimizer->capacity : 16;
        optimizer->slots =
            host_take_more(engine, optimizer->slots, optimizer->capacity * sizeof(slot));
    }
    optimizer->slots[optimizer->count++] = (slot){.parameter = tensor_keep(parameter)};
}

static void add_visited(struct engine *engine, struct tensor *parameter, void *context)
{
    optimizer_add(engine, context, parameter);
}

void optimizer_add_module(struct engine *engine, struct optimizer *optimizer, struct module *module)
{
    module_parameters(engine, module, add_visited, optimizer);
}

/* The multi-tensor updates compute each intermediate result for all parameters at once. */
static struct storage **one_for_each(struct engine *engine, const struct optimizer *optimizer)
{
    struct storage **all = host_take(engine, (optimizer->count + 1) * sizeof(struct storage *));
    for (size_t i = 0; i < optimizer->count; i++) {
        if (optimizer->slots[i].parameter->grad) {
            all[i] = storage_new(engine, tensor_bytes(optimizer->slots[i].parameter));
        }
    }
    return all;
}

static void drop_each(struct engine *engine, const struct optimizer *optimizer,
                      struct storage **all)
{
    for (size_t i = all ? optimizer->count : 0; i-- > 0;) {
        storage_drop(engine, all[i]);
    }
    host_give(engine, all);
}

/* grad + weight_decay * parameter, for methods that add decay to the gradient: for all parameters
 * at once, or for one after the other, each kept until the next one's is made. */
static struct storage **decayed_gradients(struct engine *engine, const struct optimizer *optimizer)
{
    bool at_once = optimizer->decays && optimizer->implementation == OPTIMIZER_FOREACH;
    return at_once ? one_for_each(engine, optimizer) : NULL;
}

static void decay_in_turn(struct engine *engine, const struct optimizer *optimizer, size_t index,
                          struct storage **variable)
{
    if (optimizer->decays && optimizer->implementation == OPTIMIZER_FOR_LOOP) {
        struct storage *sum = storage_new(engine, tensor_bytes(optimizer->slots[index].parameter));
        storage_drop(engine, *variable);
        *variable = sum;
    }
}

/* The updates are in place; only a parameter with its first gradient gets new state. */
static void step_sgd(struct engine *engine, struct optimizer *optimizer)
{
    struct storage **decayed = decayed_gradients(engine, optimizer), *variable = NULL;
    for (size_t i = 0; i < optimizer->count; i++) {
        slot *each = &optimizer->slots[i];
        if (each->parameter->grad) {
            decay_in_turn(engine, optimizer, i, &variable);
            if (optimizer->momentum && !each->first) {
                each->first = tensor_like(engine, each->parameter);
            }
        }
    }
    storage_drop(engine, variable);
    drop_each(engine, optimizer, decayed);
}

static void create_moments(struct engine *engine, struct optimizer *optimizer)
{
    bool counted =
        optimizer->implementation == OPTIMIZER_FUSED; /* the number of steps, on the device */
    for (size_t i = 0; i < optimizer->count; i++) {
        slot *each = &optimizer->slots[i];
        if (each->parameter->grad && !each->first) {
            static const struct shape scalar = {0, {0}};
            each->steps = counted ? tensor_new(engine, &scalar, DTYPE_FLOAT32) : NULL;
            each->first = tensor_like(engine, each->parameter);
            each->second = tensor_like(engine, each->parameter);
        }
    }
}

static void update_at_once(struct engine *engine, struct optimizer *optimizer)
{
    struct storage **decayed = decayed_gradients(engine, optimizer);
    struct storage **roots = one_for_each(engine, optimizer); /* roots of all second moments */
    drop_each(engine, optimizer, roots);
    drop_each(engine, optimizer, decayed);
}

/* denom = exp_avg_sq.sqrt() / correction: the variable keeps one parameter's until the next one's.
 */
static void update_in_turn(struct engine *engine, struct optimizer *optimizer)
{
    struct storage *variable = NULL, *decayed = NULL;
    for (size_t i = 0; i < optimizer->count; i++) {
        if (optimizer->slots[i].parameter->grad) {
            decay_in_turn(engine, optimizer, i, &decayed);
            uint64_t bytes = tensor_bytes(optimizer->slots[i].parameter);
            struct storage *root = storage_new(engine, bytes);
            struct storage *quotient = storage_new(engine, bytes);
            storage_drop(engine, root);
            storage_drop(engine, variable);
            variable = quotient;
        }
    }
    storage_drop(engine, variable);
    storage_drop(engine, decayed);
}

static void step_adam(struct engine *engine, struct optimizer *optimizer)
{
    create_moments(engine, optimizer);
    if (optimizer->implementation == OPTIMIZER_FOREACH) {
        update_at_once(engine, optimizer);
    } else if (optimizer->implementation == OPTIMIZER_FOR_LOOP) {
        update_in_turn(engine, optimizer);
    }
}

void optimizer_decay(struct optimizer *optimizer)
{
    optimizer->decays = true;
}

void optimizer_implementation(struct optimizer *optimizer,
                              enum optimizer_implementation implementation)
{
    optimizer->implementation = implementation;
}

static void mark_state(struct tensor *state)
{
    if (state) {
        storage_mark(state->storage, GMD_OPTIMIZER_STATE);
    }
}

bool optimizer_at(const struct optimizer *optimizer, size_t index, struct optimizer_slot *held)
{
    if (index >= optimizer->count) {
        return false;
    }
    bool is_adam = optimizer->method == OPTIMIZER_ADAM;
    *held = (struct optimizer_slot){
        .parameter = optimizer->slots[index].parameter,
        .state = {optimizer->slots[index].first, optimizer->slots[index].second,
                  optimizer->slots[index].steps},
        .names = {is_adam ? "exp_avg" : "momentum_buffer", "exp_avg_sq", "step"},
    };
    return true;
}

uint64_t optimizer_bytes(const struct optimizer *optimizer)
{
    uint64_t bytes = 0;
    struct optimizer_slot held;
    for (size_t i = 0; optimizer_at(optimizer, i, &held); i++) {
        for (size_t k = 0; k < OPTIMIZER_STATE_MAX; k++) {
            bytes += held.state[k] ? tensor_bytes(held.state[k]) : 0;
        }
    }
    return bytes;
}

void optimizer_step(struct engine *engine, struct optimizer *optimizer)
{
    if (optimizer->method == OPTIMIZER_ADAM) {
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

void optimizer_zero_grad(struct engine *engine, struct optimizer *optimizer, bool set_to_none)
{
    for (size_t i = 0; set_to_none && i < optimizer->count; i++) {
        struct tensor *grad = optimizer->slots[i].parameter->grad;
        optimizer->slots[i].parameter->grad = NULL;
        tensor_drop(engine, grad);
    }
}

/* --- clipping ---------------------------------------------------------------------------- */

#define CHUNK 65536 /* elements of a tensor that one thread block sums */

typedef struct norms {
    uint64_t count, largest; /* gradients, and elements of the largest */
    struct storage **each;
} norms;

static void count_gradient(struct engine *engine, struct tensor *parameter, void *context)
{
    norms *all = context;
    (void)engine;
    if (parameter->grad) {
        uint64_t elements = shape_count(&parameter->shape);
        all->count++;
        all->largest = gmd_max(elements, all->largest);
    }
}

/* Allocates the norm of each gradient, the norm of the norms, and the factor; gradients are scaled
 * in place. */
void clip_grad_norm(struct engine *engine, struct module *module)
{
    norms all = {0};
    module_parameters(engine, module, count_gradient, &all);
    uint64_t chunks = (all.largest + CHUNK - 1) / CHUNK;
    struct storage *partial = storage_new(engine, all.count * chunks * 4);
    all.each = host_take(engine, (all.count + 1) * sizeof(struct storage *));
    for (uint64_t i = 0; i < all.count; i++) {
        all.each[i] = storage_new(engine, 4);
    }
    storage_drop(engine, partial);
    struct storage *stacked = storage_new(engine, all.count * 4);
    struct storage *norm = storage_new(engine, 4);
    storage_drop(engine, stacked);
    for (uint64_t i = all.count; i-- > 0;) { /* a list */
        storage_drop(engine, all.each[i]);
    }
    struct storage *factor = storage_new(engine, 4);
    storage_drop(engine, factor);
    storage_drop(engine, norm);
    host_give(engine, all.each);
}
