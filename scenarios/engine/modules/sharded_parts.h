/* sharded_parts.h - a sharded module as its own files see it. */
#ifndef SHARDED_PARTS_H
#define SHARDED_PARTS_H

#include "gmd_sharded.h"
#include "gmd_tensor.h"

/* Where a parameter stands: it may belong to several modules. */
struct place {
    struct module *module;
    size_t index;
};

struct sharded_parameter {
    struct tensor *shard;        /* this rank's rows */
    struct tensor *full;         /* all, while they are gathered; NULL: they never were */
    struct tensor *accumulated;  /* gradients that were not reduced, in the type for that */
    struct tensor *post_forward; /* what this rank keeps for a smaller group; NULL: nothing */
    struct tensor *original;     /* while fully_shard() is at work */
    struct shape original_shape;
    struct place *places;
    size_t place_count;
    uint64_t numbers; /* of a shard, padded to that of the first rank */
};

/* What all sharded modules of a root share. */
struct sharded_context {
    size_t refs;
    uint32_t copy_in, gather, reduce, all_reduce; /* streams */
    struct storage *gathered;     /* the latest of the forward pass, until the next copy */
    struct storage *reduce_input; /* the latest, until the next reduction */
    struct sharded **all;         /* in the order of modules; NULL: it is gone */
    struct sharded **order;       /* in which forward passes ended, with repetitions */
    size_t count, order_count, order_capacity;
    struct sharded *root; /* whose forward pass is under way */
    bool is_final_queued;
};

enum sharded_pass { PASS_NONE, PASS_FORWARD, PASS_BEFORE_BACKWARD, PASS_AFTER_BACKWARD };

struct sharded {
    struct module *module;           /* which has it */
    forward_fn forward;              /* the module's own */
    struct sharded_context *context; /* from the first forward pass on */
    struct sharded_options options;
    struct sharded_parameter *parameters;
    size_t count;
    enum dtype dtype; /* of all parameters */
    enum sharded_pass pass;
    bool reshards, is_root;
    bool reduces, reshards_after_backward;
    uint64_t ranks, rank;     /* that its shards are over, and which this one is of them */
    bool is_full;             /* the parameters are gathered */
    bool is_post_forward;     /* the smaller group has them */
    struct storage *gathered; /* on its way, and not taken apart yet */
    struct storage *reduced;  /* what replicas add up, until the backward pass is over */
    struct {
        struct sharded **items; /* borrowed */
        size_t count;
    } ahead[SHARDED_WAYS]; /* what is gathered ahead; none backwards: what came before */
    struct sharded *next;  /* of the engine's */
    size_t *indices;       /* its places in the context's order, not used yet */
    size_t index_count, index_capacity;
};

static inline enum dtype sharded_dtype(const struct sharded *sharded)
{
    return sharded->options.param_dtype == DTYPES ? sharded->dtype : sharded->options.param_dtype;
}

/* How many of a size make up the whole. */
static inline uint64_t parts_of(uint64_t whole, uint64_t size)
{
    return (whole + size - 1) / size;
}

/* sharded_gather.c */
void sharded_gather(struct engine *engine, struct sharded *sharded);
void sharded_take_apart(struct engine *engine, struct sharded *sharded);
void sharded_give_up(struct engine *engine, struct sharded *sharded);
void sharded_give_up_to_group(struct engine *engine, struct sharded *sharded);
void sharded_put(struct engine *engine, const struct sharded_parameter *parameter,
                 struct tensor *tensor);

/* sharded_reduce.c */
void sharded_after_backward(struct engine *engine, struct sharded *sharded);

/* sharded_context.c: one reference less, NULL is fine; and a module that is on its way out */
void sharded_context_drop(struct engine *engine, struct sharded_context *shared);
void sharded_context_leave(struct sharded *sharded);

/* sharded_pass.c */
int sharded_forward(struct engine *engine, struct module *module, struct tensor **inputs, int count,
                    struct tensor *results[MODULE_MAX_RESULTS]);

#endif
