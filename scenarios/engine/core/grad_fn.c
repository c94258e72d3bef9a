#include "gmd_grad_fn.h"

struct gmd_grad_fn {
    gmd_thing thing;
    gmd_node *node;
};

static void destroy_grad_fn(gmd_engine *engine, gmd_thing *thing)
{
    gmd_node_drop(engine, ((gmd_grad_fn *)thing)->node);
}

const gmd_thing_class gmd_grad_fn_class = {.name = "grad_fn", .destroy = destroy_grad_fn};

gmd_grad_fn *gmd_grad_fn_of(gmd_engine *engine, const gmd_tensor *tensor)
{
    if (!tensor->grad_fn) {
        return NULL;
    }
    gmd_grad_fn *grad_fn = gmd_take(engine, sizeof *grad_fn);
    gmd_thing_init(engine, &grad_fn->thing, &gmd_grad_fn_class);
    grad_fn->node = tensor->grad_fn;
    grad_fn->node->refs++;
    return grad_fn;
}

gmd_node *gmd_grad_fn_node(const gmd_grad_fn *grad_fn)
{
    return grad_fn->node;
}

const char *gmd_grad_fn_name(const gmd_grad_fn *grad_fn)
{
    return grad_fn->node->name;
}
