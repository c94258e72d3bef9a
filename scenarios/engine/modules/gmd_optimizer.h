/* gmd_optimizer.h - SGD with momentum, Adam and AdamW: state that appears at the first step. */
#ifndef GMD_OPTIMIZER_H
#define GMD_OPTIMIZER_H

#include "gmd_module.h"

enum optimizer_method { OPTIMIZER_SGD, OPTIMIZER_ADAM };

struct optimizer;
extern const struct thing_class optimizer_class;

/* With `momentum` SGD keeps a buffer for each parameter. AdamW differs from Adam in arithmetic
 * only. */
struct optimizer *optimizer_new(struct engine *engine, enum optimizer_method method, bool momentum);

/* How a step goes over the parameters: all at once with temporaries of every one (torch's default
 * on a GPU), one after the other, or in one kernel without temporaries. */
enum optimizer_implementation { OPTIMIZER_FOREACH, OPTIMIZER_FOR_LOOP, OPTIMIZER_FUSED };
/* Weight decay that is added to the gradients (SGD, Adam); AdamW's is in place and takes nothing.
 */
void optimizer_decay(struct optimizer *optimizer);
void optimizer_implementation(struct optimizer *optimizer,
                              enum optimizer_implementation implementation);

void optimizer_add(struct engine *engine, struct optimizer *optimizer, struct tensor *parameter);
void optimizer_add_module(struct engine *engine, struct optimizer *optimizer,
                          struct module *module);

/* What it holds for one parameter; borrowed, NULL where there is nothing. */
#define OPTIMIZER_STATE_MAX 3
struct optimizer_slot {
    struct tensor *parameter, *state[OPTIMIZER_STATE_MAX];
    const char *names[OPTIMIZER_STATE_MAX]; /* torch's: "momentum_buffer" */
};
bool optimizer_at(const struct optimizer *optimizer, size_t index, struct optimizer_slot *held);

uint64_t optimizer_bytes(const struct optimizer *optimizer); /* of its state on the device */
void optimizer_step(struct engine *engine, struct optimizer *optimizer);
/* torch.nn.utils.clip_grad_norm_ */
void clip_grad_norm(struct engine *engine, struct module *module);
void optimizer_zero_grad(struct engine *engine, struct optimizer *optimizer, bool set_to_none);

#endif
