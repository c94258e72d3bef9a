/* fully_shard.c - fully_shard(), and what a script says of sharded modules. */
#include "gmd_min.h"
#include "sharded_parts.h"

/* --- which parameters are a module's own, and where they stand --------------------------- */

static struct sharded_parameter *find(const struct sharded *sharded, const struct tensor *original)
{
    for (size_t i = 0; i < sharded->count; i++) {
        if (sharded->parameters[i].original == original) {
            return &sharded->parameters[i];
        }
    }
    return NULL;
}

static void add_place(struct engine *engine, struct sharded *sharded, struct module *module,
                      size_t index)
{
    struct tensor *original = module->parameters[index];
    struct sharded_parameter *parameter = find(sharded, original);
    if (!parameter) {
        sharded->parameters = host_take_more(engine, sharded->parameters,
                                             (sharded->count + 1) * sizeof *sharded->parameters);
        parameter = &sharded->parameters[sharded->count++];
        *parameter = (struct sharded_parameter){.original = tensor_keep(original),
                                                .original_shape = original->shape};
    }
    parameter->places = host_take_more(engine, parameter->places,
                                       (parameter->place_count + 1) * sizeof *parameter->places);
    parameter->places[parameter->place_count++] = (struct place){module, index};
}

/* Parts come first, as _get_managed_modules() goes; one that is sharded for itself has its own. */
static void add_places(struct engine *engine, struct sharded *sharded, struct module *module,
                       uint64_t walk)
{
    if (module->walk == walk || module->sharded) {
        return;
    }
    module->walk = walk;
    for (size_t i = 0; i < module->child_count; i++) {
        add_places(engine, sharded, module->children[i], walk);
    }
    for (size_t i = 0; i < module->parameter_count; i++) {
        add_place(engine, sharded, module, i);
    }
}

/* --- what cannot be sharded -------------------------------------------------------------- */

struct search {
    bool is_distributed, is_recurrent;
};

static void look_at(struct module *module, void *context)
{
    struct search *search = context;
    search->is_distributed |= module->reducer != NULL;
    search->is_recurrent |= module->flat != NULL;
}

static const char *obstacle(struct engine *engine, struct module *module,
                            const struct sharded_options *options)
{
    uint64_t group = options->post_forward_ranks, replicas = options->replicas;
    uint64_t ranks = replicas ? engine->ranks / replicas : engine->ranks;
    struct search search = {0};
    module_each(engine, module, look_at, &search);
    return engine->ranks < 2 ? "there are no ranks; dist.init_process_group { world_size = 4 } "
                               "comes first, with two at least"
           : module->sharded ? "it is sharded already"
           : search.is_distributed ? "DistributedDataParallel has its parameters"
           : ranks < 2 || (replicas && engine->ranks % replicas != 0)
               ? "mesh: replicas and shards, of which there are two at least, make up all ranks"
           : group && (group >= ranks || ranks % group != 0)
               ? "reshard_after_forward: a number of ranks divides that of the shards, and is lower"
           : search.is_recurrent ? "the weights of an LSTM or GRU lie in one block, which PyTorch "
                                   "does not share out"
                                 : NULL;
}

static bool check_parameters(struct engine *engine, const struct sharded *sharded)
{
    for (size_t i = 0; i < sharded->count; i++) {
        const struct tensor *parameter = sharded->parameters[i].original;
        if (parameter->is_shard) {
            engine_misuse(engine, "fully_shard: its parameters belong to a module around it, which "
                                  "was sharded before: parts come first");
            return false;
        }
        if (parameter->dtype != sharded->dtype || parameter->shape.dims == 0) {
            engine_misuse(engine, "fully_shard: its parameters have rows, and one type");
            return false;
        }
    }
    return true;
}

/* A type that changes nothing is none. */
static bool check_types(struct engine *engine, struct sharded *sharded)
{
    struct sharded_options *options = &sharded->options;
    if (options->reduce_dtype == options->param_dtype) {
        options->reduce_dtype = DTYPES;
    }
    if (options->param_dtype == sharded->dtype) {
        options->param_dtype = DTYPES;
    }
    enum dtype of_gradients = sharded_dtype(sharded);
    if (options->reduce_dtype != DTYPES &&
        dtype_bytes(options->reduce_dtype) < dtype_bytes(of_gradients)) {
        engine_misuse(engine,
                      "fully_shard: reduce_dtype: what a reduction in a narrower type than "
                      "the gradients' (%s) takes is not known",
                      dtype_name(of_gradients));
        return false;
    }
    return true;
}

/* --- rows -------------------------------------------------------------------------------- */

static struct tensor *on_host(struct engine *engine, const struct shape *shape, enum dtype dtype)
{
    bool before = engine->on_host;
    engine->on_host = true;
    struct tensor *tensor = tensor_new(engine, shape, dtype);
    engine->on_host = before;
    return tensor;
}

/* Each rank has as many rows as the first one, but for the last ranks, which have what is left;
 * their memory is padded. */
static void make_shard(struct engine *engine, const struct sharded *sharded,
                       struct sharded_parameter *parameter)
{
    struct shape shape = parameter->original_shape;
    uint64_t rows = (uint64_t)shape.size[0], each = parts_of(rows, sharded->ranks);
    uint64_t first = gmd_min(each * sharded->rank, rows);
    shape.size[0] = (int64_t)each;
    struct tensor *padded = tensor_new(engine, &shape, parameter->original->dtype);
    if (sharded->options.offloads) {
        struct tensor *copy = on_host(engine, &shape, padded->dtype);
        tensor_drop(engine, padded);
        padded = copy;
    }
    parameter->numbers = shape_count(&shape);
    shape.size[0] = (int64_t)gmd_min(each, rows - first);
    parameter->shard = tensor_view(engine, padded, &shape);
    parameter->shard->is_view = false;
    parameter->shard->is_shard = true;
    parameter->shard->requires_grad = parameter->original->requires_grad;
    storage_mark(padded->storage, GMD_PARAMETER);
    tensor_drop(engine, padded);
    sharded_put(engine, parameter, parameter->shard);
}

static void drop_originals(struct engine *engine, struct sharded *sharded)
{
    for (size_t i = sharded->count; i-- > 0;) { /* as a list is destroyed */
        tensor_drop(engine, sharded->parameters[i].original);
        sharded->parameters[i].original = NULL;
    }
}

/* --- begin and end ----------------------------------------------------------------------- */

/* Nobody gathers ahead what is gone. */
static void forget(struct engine *engine, const struct sharded *gone)
{
    struct sharded **at = &engine->sharded;
    while (*at) {
        struct sharded *each = *at;
        for (int way = 0; way < SHARDED_WAYS; way++) {
            for (size_t i = 0; i < each->ahead[way].count; i++) {
                struct sharded **item = &each->ahead[way].items[i];
                *item = *item == gone ? NULL : *item;
            }
        }
        if (each == gone) {
            *at = each->next;
        } else {
            at = &each->next;
        }
    }
}

static void drop_sharded(struct engine *engine, struct sharded *sharded)
{
    sharded_context_leave(sharded);
    forget(engine, sharded);
    for (size_t i = 0; i < sharded->count; i++) {
        struct sharded_parameter *parameter = &sharded->parameters[i];
        tensor_drop(engine, parameter->original);
        tensor_drop(engine, parameter->shard);
        tensor_drop(engine, parameter->full);
        tensor_drop(engine, parameter->accumulated);
        tensor_drop(engine, parameter->post_forward);
        host_give(engine, parameter->places);
    }
    storage_drop(engine, sharded->gathered);
    storage_drop(engine, sharded->reduced);
    for (int way = 0; way < SHARDED_WAYS; way++) {
        host_give(engine, sharded->ahead[way].items);
    }
    sharded_context_drop(engine, sharded->context);
    host_give(engine, sharded->indices);
    host_give(engine, sharded->parameters);
    host_give(engine, sharded);
}

static void close_sharded(struct engine *engine, struct module *module)
{
    drop_sharded(engine, module->sharded);
}

static struct sharded *sharded_new(struct engine *engine, struct module *module,
                                   const struct sharded_options *options)
{
    struct sharded *sharded = host_take(engine, sizeof *sharded);
    *sharded = (struct sharded){.module = module,
                                .forward = module->forward,
                                .options = *options,
                                .reshards = options->reshard != RESHARD_NEVER,
                                .reduces = true,
                                .reshards_after_backward = true,
                                .next = engine->sharded};
    sharded->ranks = engine->ranks / (options->replicas ? options->replicas : 1);
    sharded->rank = engine->rank % sharded->ranks;
    engine->sharded = sharded;
    add_places(engine, sharded, module, ++engine->walks);
    sharded->dtype = sharded->count ? sharded->parameters[0].original->dtype : DTYPE_FLOAT32;
    return sharded;
}

void sharded_make(struct engine *engine, struct module *module,
                  const struct sharded_options *options)
{
    const char *problem = obstacle(engine, module, options);
    if (problem) {
        engine_misuse(engine, "fully_shard: %s", problem);
        return;
    }
    struct sharded *sharded = sharded_new(engine, module, options);
    if (!check_parameters(engine, sharded) || !check_types(engine, sharded)) {
        drop_sharded(engine, sharded);
        return;
    }
    for (size_t i = 0; i < sharded->count; i++) {
        make_shard(engine, sharded, &sharded->parameters[i]);
    }
    drop_originals(engine, sharded);
    module->sharded = sharded;
    module->close = close_sharded;
    module->forward = sharded_forward;
}

/* --- what a script says ------------------------------------------------------------------ */

struct setting {
    enum sharded_setting setting;
    bool on, found;
};

static void set_one(struct module *module, void *context)
{
    struct setting *to = context;
    if (!module->sharded) {
        return;
    }
    to->found = true;
    if (to->setting == SHARDED_SYNC) {
        module->sharded->reduces = to->on;
    } else if (to->setting == SHARDED_RESHARD_AFTER_BACKWARD) {
        module->sharded->reshards_after_backward = to->on;
    } else {
        module->sharded->reshards = to->on;
        module->sharded->options.reshard = to->on ? RESHARD_ALWAYS : RESHARD_NEVER;
        module->sharded->options.post_forward_ranks = 0;
    }
}

bool sharded_set(struct engine *engine, struct module *module, enum sharded_setting setting,
                 bool on)
{
    struct setting to = {.setting = setting, .on = on};
    module_each(engine, module, set_one, &to);
    return to.found;
}

bool sharded_unshard(struct engine *engine, struct module *module)
{
    if (module->sharded) {
        sharded_gather(engine, module->sharded);
        sharded_take_apart(engine, module->sharded);
    }
    return module->sharded;
}

bool sharded_reshard(struct engine *engine, struct module *module)
{
    if (module->sharded) {
        sharded_give_up(engine, module->sharded);
    }
    return module->sharded;
}

void sharded_set_prefetch(struct engine *engine, struct module *module, enum sharded_way way,
                          struct module *const *modules, size_t count)
{
    struct sharded *sharded = module->sharded;
    struct sharded **items = host_take(engine, (count + 1) * sizeof(struct sharded *));
    for (size_t i = 0; i < count; i++) {
        items[i] = modules[i]->sharded;
        if (!sharded || !items[i]) {
            engine_misuse(engine, "fully_shard() was not called of %s",
                          sharded ? "a module that is to be gathered ahead" : "the module");
            host_give(engine, items);
            return;
        }
    }
    host_give(engine, sharded->ahead[way].items);
    sharded->ahead[way].items = items;
    sharded->ahead[way].count = count;
}

static void note_sharded(struct module *module, void *context)
{
    bool *found = context;
    *found |= module->sharded != NULL;
}

bool sharded_within(struct engine *engine, struct module *module)
{
    bool found = false;
    module_each(engine, module, note_sharded, &found);
    return found;
}

/* --- for inspection ---------------------------------------------------------------------- */

bool sharded_at(const struct sharded *sharded, size_t index, struct sharded_held *held)
{
    if (index >= sharded->count) {
        return false;
    }
    const struct sharded_parameter *parameter = &sharded->parameters[index];
    *held = (struct sharded_held){parameter->shard, parameter->full, parameter->accumulated,
                                  parameter->post_forward};
    return true;
}

bool sharded_buffer(const struct sharded *sharded, size_t index, struct storage **buffer)
{
    const struct sharded_context *shared = sharded->context;
    struct storage *const all[] = {sharded->gathered, sharded->reduced,
                                   shared ? shared->gathered : NULL,
                                   shared ? shared->reduce_input : NULL};
    if (index >= sizeof all / sizeof *all) {
        return false;
    }
    *buffer = all[index];
    return true;
}
