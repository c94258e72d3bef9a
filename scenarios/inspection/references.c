#include "references.h"

#include "gmd_grad_fn.h"
#include "gmd_object.h"
#include "gmd_optimizer.h"
#include "gmd_reducer.h"
#include "gmd_sharded.h"

#include <stdio.h>
#include <string.h>

typedef struct visitor {
    visit_reference_fn *visit;
    void *context;
} visitor;

static void tell(const visitor *v, struct reference reference)
{
    if (reference.to) {
        v->visit(v->context, &reference);
    }
}

static void tell_thing(const visitor *v, struct thing *to, enum reference_form form,
                       const char *name, size_t index)
{
    tell(v, (struct reference){.kind = VERTEX_THING,
                               .to = to,
                               .step = GMD_STEP_NAME,
                               .form = form,
                               .name = name,
                               .index = (long long)index,
                               .cost = 1});
}

static void tell_node(const visitor *v, struct node *to)
{
    tell(v, (struct reference){.kind = VERTEX_NODE,
                               .to = to,
                               .step = GMD_STEP_NODE,
                               .form = FORM_TEXT,
                               .name = to ? to->name : "",
                               .cost = 1});
}

/* --- tensors and nodes ------------------------------------------------------------------- */

static void of_tensor(const visitor *v, struct tensor *tensor)
{
    tell(v, (struct reference){.kind = VERTEX_STORAGE, .to = tensor->storage});
    tell_thing(v, tensor_thing(tensor->grad), FORM_DOT, "grad", 0);
    tell_node(v, tensor->grad_fn);
}

static void tell_saved(const visitor *v, enum vertex_kind kind, void *to, enum reference_form form,
                       const char *name, uint32_t index)
{
    tell(v, (struct reference){.kind = kind,
                               .to = to,
                               .step = GMD_STEP_SAVED,
                               .form = form,
                               .name = name,
                               .index = index,
                               .cost = 1});
}

static void of_node(const visitor *v, struct node *node)
{
    for (uint32_t i = 0; i < node->saved_count; i++) {
        tell_saved(v, VERTEX_STORAGE, node->saved[i], FORM_ITEM, "saved", i);
    }
    tell_saved(v, VERTEX_THING, node->kept, FORM_TEXT, "saved input", 0);
    tell_saved(v, VERTEX_THING, node->owner, FORM_TEXT, "module", 0);
    tell_saved(v, VERTEX_THING, node->variable, FORM_TEXT, "variable", 0);
    for (uint32_t i = 0; i < node->output_count; i++) {
        tell_saved(v, VERTEX_THING, node->buffer[i], FORM_ITEM, "gradient", i);
    }
    for (uint32_t i = 0; i < node->edge_count; i++) {
        tell_node(v, node->edges[i].node);
    }
}

/* --- modules: what state_dict() calls them ----------------------------------------------- */

/* Four for each layer and direction of a recurrent network. */
static void tell_weight(const visitor *v, const struct module *module, size_t i)
{
    static const char *const names[] = {"weight_ih_l", "weight_hh_l", "bias_ih_l", "bias_hh_l"};
    size_t directions = module->rnn.directions == 2 ? 2 : 1, run = i / 4;
    tell_thing(v, tensor_thing(module->parameters[i]),
               run % directions ? FORM_REVERSE : FORM_SUFFIX, names[i % 4], run / directions);
}

static void tell_parameter(const visitor *v, const struct module *module, size_t i)
{
    static const char *const cell[] = {"weight_ih", "weight_hh", "bias_ih", "bias_hh"};
    struct thing *parameter = tensor_thing(module->parameters[i]);
    if (module->flat && module->parameter_count % 4 == 0) {
        tell_weight(v, module, i);
    } else if (module->parameter_count <= 2) {
        tell_thing(v, parameter, FORM_DOT, i == 0 ? "weight" : "bias", 0);
    } else if (module->parameter_count == 4) {
        tell_thing(v, parameter, FORM_DOT, cell[i], 0);
    } else {
        tell_thing(v, parameter, FORM_SUFFIX, "parameter", i);
    }
}

static void tell_buffer(const visitor *v, struct storage *buffer, const char *name, size_t i)
{
    tell(v, (struct reference){.kind = VERTEX_STORAGE,
                               .to = buffer,
                               .step = GMD_STEP_NAME,
                               .form = FORM_ITEM,
                               .name = name,
                               .index = (long long)i,
                               .cost = 2});
}

/* What fully_shard() keeps beside the module's parameters. */
static void of_sharded(const visitor *v, const struct sharded *sharded)
{
    enum { BUFFERS = 3 };
    static const char *const buffers[BUFFERS] = {".all_gather_result", ".all_gather_state",
                                                 ".reduce_scatter_state"};
    struct sharded_held held = {0};
    struct storage *buffer = NULL;
    for (size_t i = 0; sharded && sharded_at(sharded, i, &held); i++) {
        tell_thing(v, tensor_thing(held.shard), FORM_ITEM, ".sharded_param", i);
        tell_thing(v, tensor_thing(held.full), FORM_ITEM, ".unsharded_param", i);
        tell_thing(v, tensor_thing(held.accumulated), FORM_ITEM, ".unsharded_accumulated_grad", i);
        tell_thing(v, tensor_thing(held.post_forward), FORM_ITEM, ".sharded_post_forward_param", i);
    }
    for (size_t i = 0; sharded && i < BUFFERS && sharded_buffer(sharded, i, &buffer); i++) {
        tell_buffer(v, buffer, buffers[i], 0);
    }
}

static void of_module(const visitor *v, struct module *module)
{
    static const char *const statistics[] = {"running_mean", "running_var", "num_batches_tracked"};
    for (size_t i = 0; i < module->parameter_count; i++) {
        tell_parameter(v, module, i);
    }
    for (size_t i = 0; i < module->buffer_count; i++) {
        bool is_statistic = module->buffer_count == sizeof statistics / sizeof *statistics;
        tell_thing(v, tensor_thing(module->buffers[i]), is_statistic ? FORM_DOT : FORM_SUFFIX,
                   is_statistic ? statistics[i] : "buffer", i);
    }
    tell(v, (struct reference){.kind = VERTEX_STORAGE,
                               .to = module->flat,
                               .step = GMD_STEP_NAME,
                               .form = FORM_DOT,
                               .name = "flat_weights",
                               .cost = 2});
    struct tensor *bucket;
    for (size_t i = 0; module->reducer && (bucket = reducer_bucket(module->reducer, i)); i++) {
        tell_thing(v, tensor_thing(bucket), FORM_ITEM, ".buckets", i);
    }
    of_sharded(v, module->sharded);
    for (size_t i = 0; i < module->child_count; i++) {
        tell(v, (struct reference){.kind = VERTEX_THING,
                                   .to = module->children[i],
                                   .step = GMD_STEP_NAME,
                                   .form = FORM_NUMBER,
                                   .index = (long long)i});
    }
}

/* An optimizer holds the parameters as well, but a reader expects them in their module. */
static void of_optimizer(const visitor *v, const struct optimizer *optimizer)
{
    struct optimizer_slot slot;
    for (size_t i = 0; optimizer_at(optimizer, i, &slot); i++) {
        for (int k = 0; k < OPTIMIZER_STATE_MAX; k++) {
            tell_thing(v, tensor_thing(slot.state[k]), FORM_STATE, slot.names[k], i);
        }
        tell(v, (struct reference){.kind = VERTEX_THING,
                                   .to = slot.parameter,
                                   .step = GMD_STEP_NAME,
                                   .form = FORM_ITEM,
                                   .name = ".params",
                                   .index = (long long)i,
                                   .cost = 2});
    }
    struct tensor *other;
    for (size_t i = 0; (other = optimizer_other(optimizer, i)); i++) {
        tell(v, (struct reference){.kind = VERTEX_THING,
                                   .to = other,
                                   .step = GMD_STEP_NAME,
                                   .form = FORM_ITEM,
                                   .name = ".params_of_others",
                                   .index = (long long)i,
                                   .cost = 2});
    }
    struct storage *bucket;
    for (size_t i = 0; (bucket = optimizer_bucket(optimizer, i)); i++) {
        tell_buffer(v, bucket, ".buckets", i);
    }
}

/* --- containers -------------------------------------------------------------------------- */

static void of_object(const visitor *v, const struct object *object)
{
    const char *name;
    struct thing *value;
    for (size_t i = 0; object_at(object, i, &name, &value); i++) {
        tell_thing(v, value, FORM_DOT, name, 0);
    }
}

static void of_list(const visitor *v, const struct list *list)
{
    for (size_t i = 0; i < list_count(list); i++) {
        tell_thing(v, list_at(list, i), FORM_ITEM, "", i + 1); /* scripts count from 1 */
    }
}

static void tell_content(struct thing *held, void *context)
{
    tell_thing(context, held, FORM_DOT, "contents", 0);
}

void references_each(enum vertex_kind kind, void *vertex, visit_reference_fn *visit, void *context)
{
    visitor v = {visit, context};
    struct thing *thing = vertex;
    if (kind == VERTEX_STORAGE) {
        return;
    }
    if (kind == VERTEX_NODE) {
        of_node(&v, vertex);
    } else if (thing->class == &tensor_class) {
        of_tensor(&v, (struct tensor *)thing);
    } else if (thing->class == &module_class) {
        of_module(&v, (struct module *)thing);
    } else if (thing->class == &optimizer_class) {
        of_optimizer(&v, (struct optimizer *)thing);
    } else if (thing->class == &object_class) {
        of_object(&v, (struct object *)thing);
    } else if (thing->class == &list_class) {
        of_list(&v, (struct list *)thing);
    } else if (thing->class == &grad_fn_class) {
        tell_node(&v, grad_fn_node((struct grad_fn *)thing));
    } else if (thing->class->traverse) {
        thing->class->traverse(thing, tell_content, &v);
    }
}

const char *reference_text(const struct reference *reference, char text[96])
{
    const char *name = reference->name ? reference->name : "";
    text[0] = '\0';
    switch (reference->form) {
    case FORM_NONE:
        break;
    case FORM_TEXT:
        snprintf(text, 96, "%.80s", name);
        break;
    case FORM_DOT:
        snprintf(text, 96, ".%.80s", name);
        break;
    case FORM_NUMBER:
        snprintf(text, 96, ".%lld", reference->index);
        break;
    case FORM_ITEM:
        snprintf(text, 96, "%.60s[%lld]", name, reference->index);
        break;
    case FORM_SUFFIX:
        snprintf(text, 96, ".%.60s%lld", name, reference->index);
        break;
    case FORM_REVERSE:
        snprintf(text, 96, ".%.60s%lld_reverse", name, reference->index);
        break;
    case FORM_STATE:
        snprintf(text, 96, ".state[%lld].%.60s", reference->index, name);
    }
    return text;
}
