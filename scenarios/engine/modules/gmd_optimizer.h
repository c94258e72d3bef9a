/* gmd_optimizer.h - SGD, Adam, RMSprop and Adagrad, with groups of parameters: state that appears
 * at the first step, and what a step takes for its time. */
#ifndef GMD_OPTIMIZER_H
#define GMD_OPTIMIZER_H

#include "gmd_module.h"

enum optimizer_method { OPTIMIZER_SGD, OPTIMIZER_ADAM, OPTIMIZER_RMSPROP, OPTIMIZER_ADAGRAD };

/* How a step goes over the parameters: all at once with temporaries of every one (torch's default
 * on a GPU), one after the other, or in one kernel without temporaries. */
enum optimizer_implementation { OPTIMIZER_FOREACH, OPTIMIZER_FOR_LOOP, OPTIMIZER_FUSED };

struct optimizer_options {
    enum optimizer_method method;
    enum optimizer_implementation implementation;
    bool decays_in_place; /* AdamW: weight decay is not added to the gradients */
    bool momentum;        /* SGD and RMSprop: a buffer for each parameter */
    bool nesterov;        /* SGD */
    bool amsgrad;         /* Adam: also the largest second moment so far */
    bool centered;        /* RMSprop: also the mean of the gradients */
};

struct optimizer;
extern const struct thing_class optimizer_class;

/* It has no parameters and no group yet. */
struct optimizer *optimizer_new(struct engine *engine, const struct optimizer_options *options);

/* What is added from here on is a group of its own. `decays`: with weight decay, which is added to
 * the gradients and takes memory for it, unless it is in place. */
void optimizer_group(struct engine *engine, struct optimizer *optimizer, bool decays);
void optimizer_add(struct engine *engine, struct optimizer *optimizer, struct tensor *parameter);
void optimizer_add_module(struct engine *engine, struct optimizer *optimizer,
                          struct module *module);

/* Leaves to other ranks what they update (zero_redundancy.c); before the first step, with one
 * group. `as_buckets`: the parameters of each rank move into one block. */
void optimizer_share_out(struct engine *engine, struct optimizer *optimizer, bool as_buckets);
bool optimizer_is_shared_out(const struct optimizer *optimizer);
/* Parameters that other ranks update, and the blocks; borrowed. NULL: there are no more. */
struct tensor *optimizer_other(const struct optimizer *optimizer, size_t index);
struct storage *optimizer_bucket(const struct optimizer *optimizer, size_t index);

/* What it holds for one parameter; borrowed, NULL where there is nothing. */
#define OPTIMIZER_STATE_MAX 4
struct optimizer_slot {
    struct tensor *parameter, *state[OPTIMIZER_STATE_MAX];
    const char *names[OPTIMIZER_STATE_MAX]; /* torch's: "momentum_buffer" */
};
bool optimizer_at(const struct optimizer *optimizer, size_t index, struct optimizer_slot *held);

uint64_t optimizer_bytes(const struct optimizer *optimizer); /* of its state on the device */
void optimizer_step(struct engine *engine, struct optimizer *optimizer);
void optimizer_zero_grad(struct engine *engine, struct optimizer *optimizer, bool set_to_none);

/* clip_grad_norm.c: torch.nn.utils.clip_grad_norm_ */
void clip_grad_norm(struct engine *engine, struct module *module);

#endif
