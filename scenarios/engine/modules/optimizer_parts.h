/* optimizer_parts.h - an optimizer as its own files see it. */
#ifndef OPTIMIZER_PARTS_H
#define OPTIMIZER_PARTS_H

#include "gmd_optimizer.h"

/* State by its place in a slot; the names are in optimizers.c. */
enum { STATE_FIRST, STATE_SECOND, STATE_THIRD, STATE_STEPS };

struct slot {
    struct tensor *parameter;
    struct tensor *state[OPTIMIZER_STATE_MAX];
};

struct group {
    size_t begin, end; /* its slots */
    bool decays;
};

struct optimizer {
    struct thing thing;
    struct optimizer_options options;
    struct slot *slots;
    size_t count, capacity;
    struct group *groups;
    size_t group_count;
    /* ZeroRedundancyOptimizer's: parameters that other ranks update, and those of each rank in one
     * block */
    struct tensor **others;
    size_t other_count;
    struct storage **buckets;
    size_t bucket_count;
};

/* optimizer_steps.c */
void optimizer_create_sums(struct engine *engine, struct slot *slot); /* Adagrad's */
void optimizer_step_group(struct engine *engine, struct optimizer *optimizer,
                          const struct group *group);

/* zero_redundancy.c */
void optimizer_drop_others(struct engine *engine, struct optimizer *optimizer);

#endif
