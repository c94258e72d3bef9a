#include "references.h"

#include "gmd_grad_fn.h"
#include "gmd_object.h"
#include "gmd_optimizer.h"

#include <stdio.h>
#include <string.h>

typedef struct visitor {
    gmd_visit_reference *visit;
    void *context;
} visitor;

static void tell(const visitor *v, gmd_reference reference)
{
    if (reference.to) {
        v->visit(v->context, &reference);
    }
}

static void tell_thing(const visitor *v, gmd_thing *to, gmd_reference_form form, const char *name,
                       size_t index)
{
    tell(v, (gmd_reference){.kind = GMD_IS_THING,
                            .to = to,
                            .step = GMD_STEP_NAME,
                            .form = form,
                            .name = name,
                            .index = (long long)index,
                            .cost = 1});
}

static void tell_node(const visitor *v, gmd_node *to)
{
    tell(v, (gmd_reference){.kind = GMD_IS_NODE,
                            .to = to,
                            .step = GMD_STEP_NODE,
                            .form = GMD_FORM_TEXT,
                            .name = to ? to->name : "",
                            .cost = 1});
}

/* --- tensors and nodes ------------------------------------------------------------------- */

static void of_tensor(const visitor *v, gmd_tensor *tensor)
{
    tell(v, (gmd_reference){.kind = GMD_IS_STORAGE, .to = tensor->storage});
    tell_thing(v, gmd_thing_of(tensor->grad), GMD_FORM_DOT, "grad", 0);
    tell_node(v, tensor->grad_fn);
}

static void tell_saved(const visitor *v, gmd_vertex_kind kind, void *to, gmd_reference_form form,
                       const char *name, uint32_t index)
{
    tell(v, (gmd_reference){.kind = kind,
                            .to = to,
                            .step = GMD_STEP_SAVED,
                            .form = form,
                            .name = name,
                            .index = index,
                            .cost = 1});
}

static void of_node(const visitor *v, gmd_node *node)
{
    for (uint32_t i = 0; i < node->saved_count; i++) {
        tell_saved(v, GMD_IS_STORAGE, node->saved[i], GMD_FORM_ITEM, "saved", i);
    }
    tell_saved(v, GMD_IS_THING, node->kept, GMD_FORM_TEXT, "saved input", 0);
    tell_saved(v, GMD_IS_THING, node->owner, GMD_FORM_TEXT, "module", 0);
    tell_saved(v, GMD_IS_THING, node->variable, GMD_FORM_TEXT, "variable", 0);
    for (uint32_t i = 0; i < node->output_count; i++) {
        tell_saved(v, GMD_IS_THING, node->buffer[i], GMD_FORM_ITEM, "gradient", i);
    }
    for (uint32_t i = 0; i < node->edge_count; i++) {
        tell_node(v, node->edges[i].node);
    }
}

/* --- modules: what state_dict() calls them ----------------------------------------------- */

/* Four for each layer and direction of a recurrent network. */
static void tell_weight(const visitor *v, const gmd_module *module, size_t i)
{
    static const char *const names[] = {"weight_ih_l", "weight_hh_l", "bias_ih_l", "bias_hh_l"};
    size_t directions = module->rnn.directions == 2 ? 2 : 1, run = i / 4;
    tell_thing(v, gmd_thing_of(module->parameters[i]),
               run % directions ? GMD_FORM_REVERSE : GMD_FORM_SUFFIX, names[i % 4],
               run / directions);
}

static void tell_parameter(const visitor *v, const gmd_module *module, size_t i)
{
    static const char *const cell[] = {"weight_ih", "weight_hh", "bias_ih", "bias_hh"};
    gmd_thing *parameter = gmd_thing_of(module->parameters[i]);
    if (module->flat && module->parameter_count % 4 == 0) {
        tell_weight(v, module, i);
    } else if (module->parameter_count <= 2) {
        tell_thing(v, parameter, GMD_FORM_DOT, i == 0 ? "weight" : "bias", 0);
    } else if (module->parameter_count == 4) {
        tell_thing(v, parameter, GMD_FORM_DOT, cell[i], 0);
    } else {
        tell_thing(v, parameter, GMD_FORM_SUFFIX, "parameter", i);
    }
}

static void of_module(const visitor *v, gmd_module *module)
{
    static const char *const statistics[] = {"running_mean", "running_var", "num_batches_tracked"};
    for (size_t i = 0; i < module->parameter_count; i++) {
        tell_parameter(v, module, i);
    }
    for (size_t i = 0; i < module->buffer_count; i++) {
        bool is_statistic = module->buffer_count == sizeof statistics / sizeof *statistics;
        tell_thing(v, gmd_thing_of(module->buffers[i]),
                   is_statistic ? GMD_FORM_DOT : GMD_FORM_SUFFIX,
                   is_statistic ? statistics[i] : "buffer", i);
    }
    tell(v, (gmd_reference){.kind = GMD_IS_STORAGE,
                            .to = module->flat,
                            .step = GMD_STEP_NAME,
                            .form = GMD_FORM_DOT,
                            .name = "flat_weights",
                            .cost = 2});
    for (size_t i = 0; i < module->child_count; i++) {
        tell(v, (gmd_reference){.kind = GMD_IS_THING,
                                .to = module->children[i],
                                .step = GMD_STEP_NAME,
                                .form = GMD_FORM_NUMBER,
                                .index = (long long)i});
    }
}

/* An optimizer also holds the parameters, but a reader looks for them in their module. */
static void of_optimizer(const visitor *v, const gmd_optimizer *optimizer)
{
    gmd_optimizer_slot slot;
    for (size_t i = 0; gmd_optimizer_at(optimizer, i, &slot); i++) {
        for (int k = 0; k < GMD_STATE_MAX; k++) {
            tell_thing(v, gmd_thing_of(slot.state[k]), GMD_FORM_STATE, slot.names[k], i);
        }
        tell(v, (gmd_reference){.kind = GMD_IS_THING,
                                .to = slot.parameter,
                                .step = GMD_STEP_NAME,
                                .form = GMD_FORM_ITEM,
                                .name = ".params",
                                .index = (long long)i,
                                .cost = 2});
    }
}

/* --- containers -------------------------------------------------------------------------- */

static void of_object(const visitor *v, const gmd_object *object)
{
    const char *name;
    gmd_thing *value;
    for (size_t i = 0; gmd_object_at(object, i, &name, &value); i++) {
        tell_thing(v, value, GMD_FORM_DOT, name, 0);
    }
}

static void of_list(const visitor *v, const gmd_list *list)
{
    for (size_t i = 0; i < gmd_list_count(list); i++) {
        tell_thing(v, gmd_list_at(list, i), GMD_FORM_ITEM, "", i + 1); /* scripts count from 1 */
    }
}

static void tell_content(gmd_thing *held, void *context)
{
    tell_thing(context, held, GMD_FORM_DOT, "contents", 0);
}

void gmd_references_each(gmd_vertex_kind kind, void *vertex, gmd_visit_reference *visit,
                         void *context)
{
    visitor v = {visit, context};
    gmd_thing *thing = vertex;
    if (kind == GMD_IS_STORAGE) {
        return;
    }
    if (kind == GMD_IS_NODE) {
        of_node(&v, vertex);
    } else if (thing->class == &gmd_tensor_class) {
        of_tensor(&v, (gmd_tensor *)thing);
    } else if (thing->class == &gmd_module_class) {
        of_module(&v, (gmd_module *)thing);
    } else if (thing->class == &gmd_optimizer_class) {
        of_optimizer(&v, (gmd_optimizer *)thing);
    } else if (thing->class == &gmd_object_class) {
        of_object(&v, (gmd_object *)thing);
    } else if (thing->class == &gmd_list_class) {
        of_list(&v, (gmd_list *)thing);
    } else if (thing->class == &gmd_grad_fn_class) {
        tell_node(&v, gmd_grad_fn_node((gmd_grad_fn *)thing));
    } else if (thing->class->traverse) {
        thing->class->traverse(thing, tell_content, &v);
    }
}

const char *gmd_reference_text(const gmd_reference *reference, char text[96])
{
    const char *name = reference->name ? reference->name : "";
    text[0] = '\0';
    switch (reference->form) {
    case GMD_FORM_NONE:
        break;
    case GMD_FORM_TEXT:
        snprintf(text, 96, "%.80s", name);
        break;
    case GMD_FORM_DOT:
        snprintf(text, 96, ".%.80s", name);
        break;
    case GMD_FORM_NUMBER:
        snprintf(text, 96, ".%lld", reference->index);
        break;
    case GMD_FORM_ITEM:
        snprintf(text, 96, "%.60s[%lld]", name, reference->index);
        break;
    case GMD_FORM_SUFFIX:
        snprintf(text, 96, ".%.60s%lld", name, reference->index);
        break;
    case GMD_FORM_REVERSE:
        snprintf(text, 96, ".%.60s%lld_reverse", name, reference->index);
        break;
    case GMD_FORM_STATE:
        snprintf(text, 96, ".state[%lld].%.60s", reference->index, name);
    }
    return text;
}
