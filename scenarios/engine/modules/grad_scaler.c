/* grad_scaler.c - torch.GradScaler. Facts: torch/amp/grad_scaler.py of 2.11. */
#include "gmd_grad_scaler.h"

enum stage { STAGE_READY, STAGE_UNSCALED, STAGE_STEPPED };

struct per_optimizer {
    struct optimizer *optimizer;
    struct tensor *found_inf; /* NULL: not looked for */
    enum stage stage;
};

struct grad_scaler {
    struct thing thing;
    bool enabled;
    struct tensor *scale, *growth_tracker; /* from the first scale() on */
    struct per_optimizer *each;
    size_t count;
};

static const struct shape scalar = {0, {0}};

static void forget_optimizers(struct engine *engine, struct grad_scaler *scaler)
{
    for (size_t i = 0; i < scaler->count; i++) {
        tensor_drop(engine, scaler->each[i].found_inf);
        thing_drop(engine, (struct thing *)scaler->each[i].optimizer);
    }
    scaler->count = 0;
}

static void destroy(struct engine *engine, struct thing *thing)
{
    struct grad_scaler *scaler = (struct grad_scaler *)thing;
    forget_optimizers(engine, scaler);
    tensor_drop(engine, scaler->scale);
    tensor_drop(engine, scaler->growth_tracker);
    host_give(engine, scaler->each);
}

static void traverse(struct thing *thing, void (*visit)(struct thing *held, void *context),
                     void *context)
{
    struct grad_scaler *scaler = (struct grad_scaler *)thing;
    struct tensor *const own[] = {scaler->scale, scaler->growth_tracker};
    for (size_t i = 0; i < sizeof own / sizeof own[0]; i++) {
        if (own[i]) {
            visit(tensor_thing(own[i]), context);
        }
    }
    for (size_t i = 0; i < scaler->count; i++) {
        visit((struct thing *)scaler->each[i].optimizer, context);
        if (scaler->each[i].found_inf) {
            visit(tensor_thing(scaler->each[i].found_inf), context);
        }
    }
}

static void clear(struct engine *engine, struct thing *thing)
{
    forget_optimizers(engine, (struct grad_scaler *)thing);
}

const struct thing_class grad_scaler_class = {
    .name = "scaler", .destroy = destroy, .traverse = traverse, .clear = clear};

struct grad_scaler *grad_scaler_new(struct engine *engine, bool enabled)
{
    struct grad_scaler *scaler = host_take(engine, sizeof *scaler);
    thing_init(engine, &scaler->thing, &grad_scaler_class);
    scaler->enabled = enabled;
    return scaler;
}

struct tensor *grad_scaler_scale(struct engine *engine, struct grad_scaler *scaler,
                                 struct tensor *loss)
{
    if (!scaler->enabled) {
        return tensor_keep(loss);
    }
    if (!scaler->scale) {
        scaler->scale = tensor_new(engine, &scalar, DTYPE_FLOAT32);
        scaler->growth_tracker = tensor_new(engine, &scalar, DTYPE_INT32);
    }
    return op_mul(engine, loss, scaler->scale, false);
}

/* NULL after engine_misuse(). */
static struct per_optimizer *state_of(struct engine *engine, struct grad_scaler *scaler,
                                      struct optimizer *optimizer, const char *what)
{
    if (!scaler->scale) {
        engine_misuse(engine, "%s: scale() was not called before", what);
        return NULL;
    }
    for (size_t i = 0; i < scaler->count; i++) {
        if (scaler->each[i].optimizer == optimizer) {
            return &scaler->each[i];
        }
    }
    size_t index = scaler->count++;
    scaler->each = host_take_more(engine, scaler->each, (index + 1) * sizeof *scaler->each);
    thing_keep((struct thing *)optimizer);
    scaler->each[index] = (struct per_optimizer){.optimizer = optimizer};
    return &scaler->each[index];
}

static bool has_narrow_gradient(const struct optimizer *optimizer)
{
    struct optimizer_slot slot;
    for (size_t i = 0; optimizer_at(optimizer, i, &slot); i++) {
        if (slot.parameter->grad && slot.parameter->grad->dtype == DTYPE_FLOAT16) {
            return true;
        }
    }
    return false;
}

/* The reciprocal of the scale is computed in 64 bits. Both numbers are copied for the gradients'
 * device, even where it is their own; the copy of the second one is kept. */
static void look_for_overflow(struct engine *engine, struct per_optimizer *state)
{
    struct tensor *wide = tensor_new(engine, &scalar, DTYPE_FLOAT64);
    struct tensor *reciprocal = tensor_new(engine, &scalar, DTYPE_FLOAT64);
    tensor_drop(engine, wide);
    struct tensor *inverse = tensor_new(engine, &scalar, DTYPE_FLOAT32);
    tensor_drop(engine, reciprocal);
    struct tensor *found_inf = tensor_new(engine, &scalar, DTYPE_FLOAT32);
    state->found_inf = tensor_new(engine, &scalar, DTYPE_FLOAT32);
    struct tensor *inverse_there = tensor_new(engine, &scalar, DTYPE_FLOAT32);
    tensor_drop(engine, inverse_there);
    tensor_drop(engine, inverse);
    tensor_drop(engine, found_inf);
}

void grad_scaler_unscale(struct engine *engine, struct grad_scaler *scaler,
                         struct optimizer *optimizer)
{
    if (!scaler->enabled) {
        return;
    }
    struct per_optimizer *state = state_of(engine, scaler, optimizer, "unscale_");
    if (!state) {
        return;
    }
    if (state->stage != STAGE_READY) {
        engine_misuse(engine, "unscale_: it was called for this optimizer, or step(), since the "
                              "last update()");
    } else if (has_narrow_gradient(optimizer)) {
        engine_misuse(engine, "unscale_: gradients in float16 cannot be unscaled: the parameters "
                              "stay in float32 and autocast() converts them");
    } else {
        look_for_overflow(engine, state);
        state->stage = STAGE_UNSCALED;
    }
}

void grad_scaler_step(struct engine *engine, struct grad_scaler *scaler,
                      struct optimizer *optimizer)
{
    if (!scaler->enabled) {
        optimizer_step(engine, optimizer);
        return;
    }
    struct per_optimizer *state = state_of(engine, scaler, optimizer, "step");
    if (!state) {
        return;
    }
    if (state->stage == STAGE_STEPPED) {
        engine_misuse(engine, "step: it was called for this optimizer since the last update()");
        return;
    }
    if (state->stage == STAGE_READY) {
        grad_scaler_unscale(engine, scaler, optimizer);
    }
    if (!engine_failed(engine)) {
        optimizer_step(engine, optimizer);
        state->stage = STAGE_STEPPED;
    }
}

/* The scale is updated in place. */
void grad_scaler_update(struct engine *engine, struct grad_scaler *scaler)
{
    if (!scaler->enabled) {
        return;
    }
    if (scaler->count == 0) {
        engine_misuse(engine, "update: no step() since the last one");
        return;
    }
    forget_optimizers(engine, scaler);
}
