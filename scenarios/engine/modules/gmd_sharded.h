/* gmd_sharded.h - torch.distributed.fsdp.fully_shard (FSDP2, ZeRO stages 2 and 3), as one rank sees
 * it. Facts: torch/distributed/fsdp/_fully_shard/ of PyTorch 2.11.
 *
 * Each rank keeps a part of each parameter, its rows, and gradients and optimizer state of that.
 * For a module's forward pass, and again on the way back, its parameters are gathered: into one
 * buffer, which is taken apart. The parameters of a module that is not sharded for itself belong to
 * the module around it. A gathered parameter keeps its storage: what the graph has saved of it is
 * emptied and filled again with it. */
#ifndef GMD_SHARDED_H
#define GMD_SHARDED_H

#include "gmd_module.h"

struct sharded;

/* Whether gathered parameters are given up after the forward pass, and gathered again on the way
 * back. By default the outermost module keeps them: it would need them at once. */
enum reshard { RESHARD_BUT_THE_ROOT, RESHARD_ALWAYS, RESHARD_NEVER };

/* DTYPES: no other type than there is. */
struct sharded_options {
    enum reshard reshard;
    uint64_t post_forward_ranks; /* that keep what was gathered after a forward pass; 0: all */
    uint64_t replicas;           /* of the shards, each over its part of the ranks; 0: one */
    bool offloads;               /* shards, their gradients and state are in the CPU's memory */
    enum dtype param_dtype;  /* of gathered parameters, and of inputs where these are converted */
    enum dtype reduce_dtype; /* of gradients while they are reduced */
    enum dtype output_dtype;
    bool casts_inputs;
};

/* engine_misuse() where it cannot be sharded. */
void sharded_make(struct engine *engine, struct module *module,
                  const struct sharded_options *options);

/* For the module and all in it that is sharded; false: nothing is. */
enum sharded_setting {
    SHARDED_SYNC,
    SHARDED_RESHARD_AFTER_BACKWARD,
    SHARDED_RESHARD_AFTER_FORWARD
};
bool sharded_set(struct engine *engine, struct module *module, enum sharded_setting setting,
                 bool on);

/* For the module itself; false: it is not sharded. */
bool sharded_unshard(struct engine *engine, struct module *module);
bool sharded_reshard(struct engine *engine, struct module *module);

/* The modules that are gathered ahead, in a forward or a backward pass, when this one's begins;
 * engine_misuse() where one is not sharded. Not kept: one that goes is forgotten. */
enum sharded_way { SHARDED_FORWARD, SHARDED_BACKWARD, SHARDED_WAYS };
void sharded_set_prefetch(struct engine *engine, struct module *module, enum sharded_way way,
                          struct module *const *modules, size_t count);

/* Whether the module or a part of it is sharded. */
bool sharded_within(struct engine *engine, struct module *module);

/* What it holds besides the module's own parameters; borrowed. NULL where there is nothing. */
struct sharded_held {
    struct tensor *shard, *full, *accumulated, *post_forward;
};
bool sharded_at(const struct sharded *sharded, size_t index, struct sharded_held *held);
/* Buffer number `index` of its collectives, and of those that it shares with the others. */
bool sharded_buffer(const struct sharded *sharded, size_t index, struct storage **buffer);

#endif
