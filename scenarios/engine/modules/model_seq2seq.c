/* model_seq2seq.c - the translation model of the PyTorch forum's thread: a bidirectional GRU reads
 * the source, two GRU cells write the target word by word and attend to the source in between. */
#include "gmd_module.h"

enum { ENCODER, SOURCE, KEYS, INITIAL, TARGET, CELL1, QUERY, SCORE, CELL2, OUTPUT };

typedef struct pass {
    struct engine *engine;
    struct module **part;
    struct tensor *states, *keys; /* of the encoder; [batch, length, ...] */
    struct tensor *state, *scores;
    struct tensor **hidden, **contexts; /* of each step */
    size_t steps;
} pass;

static void replace(struct engine *engine, struct tensor **variable, struct tensor *value)
{
    struct tensor *old = *variable;
    *variable = value;
    tensor_drop(engine, old);
}

/* How long each sentence is: those that are all padding have the length 0. */
static void measure_lengths(struct engine *engine, const struct tensor *source,
                            struct tensor **mask, struct tensor **lengths)
{
    struct shape batch = {1, {source->shape.size[0]}};
    *mask = tensor_new(engine, &source->shape, DTYPE_BOOL);
    struct tensor *padding = tensor_new(engine, &batch, DTYPE_INT64);
    storage_scratch(engine, shape_count(&source->shape) * 8);
    *lengths = tensor_new(engine, &batch, DTYPE_INT64);
    tensor_drop(engine, padding);
}

static bool encode(pass *run, struct tensor *source)
{
    struct engine *engine = run->engine;
    struct tensor *results[MODULE_MAX_RESULTS] = {NULL};
    struct tensor *words = module_apply(engine, run->part[SOURCE], source);
    struct tensor *packed = op_pack_sequences(engine, words);
    tensor_drop(engine, words);
    struct module *encoder = run->part[ENCODER];
    int made = packed ? encoder->forward(engine, encoder, &packed, 1, results) : 0;
    tensor_drop(engine, packed);
    run->states = made ? op_pad_sequences(engine, results[0]) : NULL;
    tensor_drop(engine, results[0]);
    run->keys = module_apply(engine, run->part[KEYS], run->states);
    struct tensor *backward = op_select(engine, results[1], 0);
    tensor_drop(engine, results[1]);
    run->state = module_pass(engine, run->part[INITIAL], backward);
    return run->state != NULL;
}

/* The input of the decoder: the target, one word later. */
static struct tensor *shifted(struct engine *engine, struct tensor *target)
{
    struct shape longer = target->shape;
    longer.size[1]++;
    struct tensor *padded = tensor_new(engine, &longer, target->dtype);
    struct tensor *words = op_narrow(engine, padded, 1, target->shape.size[1]);
    tensor_drop(engine, padded);
    return words;
}

static struct tensor *step_cell(pass *run, int cell, struct tensor *input)
{
    struct tensor *inputs[2] = {input, run->state}, *result[MODULE_MAX_RESULTS] = {NULL};
    struct module *module = run->part[cell];
    return module->forward(run->engine, module, inputs, 2, result) ? result[0] : NULL;
}

/* Additive attention: score(tanh(keys + query)). */
static struct tensor *attend(pass *run)
{
    struct engine *engine = run->engine;
    struct tensor *query = module_apply(engine, run->part[QUERY], run->state);
    if (!query) {
        return NULL;
    }
    struct shape shape = {3, {query->shape.size[0], 1, query->shape.size[1]}};
    struct tensor *row = op_view_as_it_lies(engine, query, &shape);
    struct tensor *sum = op_add(engine, run->keys, row, false);
    tensor_drop(engine, row);
    tensor_drop(engine, query);
    struct tensor *energy = op_activation(engine, ACTIVATION_TANH, sum);
    tensor_drop(engine, sum);
    replace(engine, &run->scores, module_pass(engine, run->part[SCORE], energy));
    struct tensor *weights = op_softmax(engine, run->scores);
    struct tensor *across = op_transpose(engine, weights, 1, 2);
    tensor_drop(engine, weights);
    struct tensor *context = op_bmm(engine, across, run->states);
    tensor_drop(engine, across);
    if (!context) {
        return NULL;
    }
    struct shape flat = {2, {context->shape.size[0], context->shape.size[2]}};
    struct tensor *result = op_view_as_it_lies(engine, context, &flat);
    tensor_drop(engine, context);
    return result;
}

static bool decode(pass *run, struct tensor *words)
{
    struct engine *engine = run->engine;
    struct tensor **word = host_take(engine, run->steps * sizeof(struct tensor *));
    bool fine = true;
    op_unbind(engine, words, 1, word);
    for (size_t i = 0; i < run->steps; i++) {
        if (fine) {
            replace(engine, &run->state, step_cell(run, CELL1, word[i]));
            run->contexts[i] = run->state ? attend(run) : NULL;
            struct tensor *next = run->contexts[i] ? step_cell(run, CELL2, run->contexts[i]) : NULL;
            replace(engine, &run->state, next);
            run->hidden[i] = tensor_keep(next);
            fine = next != NULL;
        }
    }
    for (size_t i = run->steps; i-- > 0;) { /* a tuple goes from its last item on */
        tensor_drop(engine, word[i]);
    }
    host_give(engine, word);
    return fine;
}

static struct tensor *predict(pass *run, struct tensor *words)
{
    struct engine *engine = run->engine;
    struct tensor *hidden = op_stack(engine, run->hidden, run->steps, 1);
    struct tensor *contexts = op_stack(engine, run->contexts, run->steps, 1);
    struct tensor *const parts[3] = {words, hidden, contexts};
    struct tensor *all = op_cat(engine, parts, 3, 2);
    tensor_drop(engine, contexts);
    tensor_drop(engine, hidden);
    return module_pass(engine, run->part[OUTPUT], all);
}

static bool takes(struct engine *engine, struct tensor **inputs, int count)
{
    if (count >= 2 && inputs[0]->shape.dims == 2 && inputs[1]->shape.dims == 2 &&
        inputs[1]->shape.size[1] > 0) {
        return true;
    }
    engine_misuse(engine, "seq2seq takes source and target, [batch, length] each");
    return false;
}

static int seq2seq_forward(struct engine *engine, struct module *module, struct tensor **inputs,
                           int count, struct tensor *results[MODULE_MAX_RESULTS])
{
    if (!takes(engine, inputs, count)) {
        return 0;
    }
    pass run = {.engine = engine, .part = module->children};
    struct tensor *mask, *lengths, *words = NULL;
    run.steps = (size_t)inputs[1]->shape.size[1];
    run.hidden = host_take(engine, run.steps * sizeof(struct tensor *));
    run.contexts = host_take(engine, run.steps * sizeof(struct tensor *));
    measure_lengths(engine, inputs[0], &mask, &lengths);
    if (encode(&run, inputs[0])) {
        words = module_pass(engine, run.part[TARGET], shifted(engine, inputs[1]));
        results[0] = words && decode(&run, words) ? predict(&run, words) : NULL;
    }
    struct tensor *locals[] = {mask, lengths, words, run.states, run.keys, run.state, run.scores};
    for (size_t i = run.steps; i-- > 0;) { /* as lists do */
        tensor_drop(engine, run.hidden[i]);
    }
    for (size_t i = run.steps; i-- > 0;) {
        tensor_drop(engine, run.contexts[i]);
    }
    for (size_t i = 0; i < sizeof locals / sizeof locals[0]; i++) {
        tensor_drop(engine, locals[i]);
    }
    host_give(engine, run.hidden);
    host_give(engine, run.contexts);
    return results[0] ? 1 : 0;
}

static struct module *with_tanh(struct engine *engine, int64_t in, int64_t out)
{
    struct module *parts[2] = {nn_linear(engine, in, out, true),
                               nn_activation(engine, ACTIVATION_TANH)};
    return nn_sequential(engine, parts, 2);
}

struct module *nn_seq2seq(struct engine *engine, int64_t vocabulary, int64_t features,
                          int64_t hidden)
{
    struct rnn encoder = {
        .kind = RNN_GRU, .layers = 1, .directions = 2, .hidden = hidden, .packed = true};
    struct module *model = module_new(engine, "Seq2Seq", seq2seq_forward);
    model->takes = 2;
    module_child(engine, model, nn_rnn(engine, &encoder, features));
    module_child(engine, model, nn_embedding(engine, vocabulary, features));
    module_child(engine, model, with_tanh(engine, 2 * hidden, hidden));
    module_child(engine, model, with_tanh(engine, hidden, hidden));
    module_child(engine, model, nn_embedding(engine, vocabulary, features));
    module_child(engine, model, nn_gru_cell(engine, features, hidden));
    module_child(engine, model, nn_linear(engine, hidden, hidden, true));
    module_child(engine, model, nn_linear(engine, hidden, 1, true));
    module_child(engine, model, nn_gru_cell(engine, 2 * hidden, hidden));
    struct module *output[2] = {with_tanh(engine, features + 3 * hidden, features),
                                nn_linear(engine, features, vocabulary, true)};
    module_child(engine, model, nn_sequential(engine, output, 2));
    return model;
}
