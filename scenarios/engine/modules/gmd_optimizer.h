/* gmd_optimizer.h - SGD with momentum, Adam and AdamW: state that appears at the first step. */
#ifndef GMD_OPTIMIZER_H
#define GMD_OPTIMIZER_H

#include "gmd_module.h"

typedef enum gmd_method { GMD_SGD, GMD_ADAM } gmd_method;

typedef struct gmd_optimizer gmd_optimizer;
extern const gmd_thing_class gmd_optimizer_class;

/* `momentum`: SGD keeps a buffer for each parameter. AdamW differs from Adam in arithmetic only. */
gmd_optimizer *gmd_optimizer_new(gmd_engine *engine, gmd_method method, bool momentum);

/* How a step goes over the parameters: all at once with temporaries of every one (torch's default
 * on a GPU), one after the other, or in one kernel without temporaries. */
typedef enum gmd_implementation { GMD_FOREACH, GMD_FOR_LOOP, GMD_FUSED } gmd_implementation;
/* Weight decay that is added to the gradients (SGD, Adam); AdamW's is in place and takes nothing.
 */
void gmd_optimizer_decay(gmd_optimizer *optimizer);
void gmd_optimizer_implementation(gmd_optimizer *optimizer, gmd_implementation implementation);

void gmd_optimizer_add(gmd_engine *engine, gmd_optimizer *optimizer, gmd_tensor *parameter);
void gmd_optimizer_add_module(gmd_engine *engine, gmd_optimizer *optimizer, gmd_module *module);

/* What it holds for one parameter; borrowed, NULL where there is nothing. */
#define GMD_STATE_MAX 3
typedef struct gmd_optimizer_slot {
    gmd_tensor *parameter, *state[GMD_STATE_MAX];
    const char *names[GMD_STATE_MAX]; /* torch's: "momentum_buffer" */
} gmd_optimizer_slot;
bool gmd_optimizer_at(const gmd_optimizer *optimizer, size_t index, gmd_optimizer_slot *held);

uint64_t gmd_optimizer_bytes(const gmd_optimizer *optimizer); /* of its state on the device */
void gmd_optimizer_step(gmd_engine *engine, gmd_optimizer *optimizer);
/* torch.nn.utils.clip_grad_norm_ */
void gmd_clip_grad_norm(gmd_engine *engine, gmd_module *module);
void gmd_optimizer_zero_grad(gmd_engine *engine, gmd_optimizer *optimizer, bool set_to_none);

#endif
