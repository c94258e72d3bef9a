#include "gmd_grad_fn.h"

struct grad_fn {
    struct thing thing;
    struct node *node;
};

static void destroy_grad_fn(struct engine *engine, struct thing *thing)
{
    node_drop(engine, ((struct grad_fn *)thing)->node);
}

const struct thing_class grad_fn_class = {.name = "grad_fn", .destroy = destroy_grad_fn};

struct grad_fn *grad_fn_of(struct engine *engine, const struct tensor *tensor)
{
    if (!tensor->grad_fn) {
        return NULL;
    }
    struct grad_fn *grad_fn = host_take(engine, sizeof *grad_fn);
    thing_init(engine, &grad_fn->thing, &grad_fn_class);
    grad_fn->node = tensor->grad_fn;
    grad_fn->node->refs++;
    return grad_fn;
}

struct node *grad_fn_node(const struct grad_fn *grad_fn)
{
    return grad_fn->node;
}

const char *grad_fn_name(const struct grad_fn *grad_fn)
{
    return grad_fn->node->name;
}
