/* model_seq2seq.c - the translation model of the PyTorch forum's thread: a bidirectional GRU reads
 * the source, two GRU cells write the target word by word and attend to the source in between. */
#include "gmd_module.h"

enum { ENCODER, SOURCE, KEYS, INITIAL, TARGET, CELL1, QUERY, SCORE, CELL2, OUTPUT };

typedef struct pass {
    gmd_engine *engine;
    gmd_module **part;
    gmd_tensor *states, *keys; /* of the encoder; [batch, length, ...] */
    gmd_tensor *state, *scores;
    gmd_tensor **hidden, **contexts; /* of each step */
    size_t steps;
} pass;

static void replace(gmd_engine *engine, gmd_tensor **variable, gmd_tensor *value)
{
    gmd_tensor *old = *variable;
    *variable = value;
    gmd_tensor_drop(engine, old);
}

/* How long each sentence is: those that are all padding have the length 0. */
static void measure_lengths(gmd_engine *engine, const gmd_tensor *source, gmd_tensor **mask,
                            gmd_tensor **lengths)
{
    gmd_shape batch = {1, {source->shape.size[0]}};
    *mask = gmd_tensor_new(engine, &source->shape, GMD_BOOL);
    gmd_tensor *padding = gmd_tensor_new(engine, &batch, GMD_INT64);
    gmd_scratch(engine, gmd_shape_count(&source->shape) * 8);
    *lengths = gmd_tensor_new(engine, &batch, GMD_INT64);
    gmd_tensor_drop(engine, padding);
}

static bool encode(pass *run, gmd_tensor *source)
{
    gmd_engine *engine = run->engine;
    gmd_tensor *results[GMD_MAX_RESULTS] = {NULL};
    gmd_tensor *words = gmd_module_apply(engine, run->part[SOURCE], source);
    gmd_tensor *packed = gmd_op_pack_sequences(engine, words);
    gmd_tensor_drop(engine, words);
    gmd_module *encoder = run->part[ENCODER];
    int made = packed ? encoder->forward(engine, encoder, &packed, 1, results) : 0;
    gmd_tensor_drop(engine, packed);
    run->states = made ? gmd_op_pad_sequences(engine, results[0]) : NULL;
    gmd_tensor_drop(engine, results[0]);
    run->keys = gmd_module_apply(engine, run->part[KEYS], run->states);
    gmd_tensor *backward = gmd_op_select(engine, results[1], 0);
    gmd_tensor_drop(engine, results[1]);
    run->state = gmd_module_pass(engine, run->part[INITIAL], backward);
    return run->state != NULL;
}

/* What the decoder is told: the target, one word later. */
static gmd_tensor *shifted(gmd_engine *engine, gmd_tensor *target)
{
    gmd_shape longer = target->shape;
    longer.size[1]++;
    gmd_tensor *padded = gmd_tensor_new(engine, &longer, target->dtype);
    gmd_tensor *words = gmd_op_narrow(engine, padded, 1, target->shape.size[1]);
    gmd_tensor_drop(engine, padded);
    return words;
}

static gmd_tensor *step_cell(pass *run, int cell, gmd_tensor *input)
{
    gmd_tensor *inputs[2] = {input, run->state}, *result[GMD_MAX_RESULTS] = {NULL};
    gmd_module *module = run->part[cell];
    return module->forward(run->engine, module, inputs, 2, result) ? result[0] : NULL;
}

/* Additive attention: score(tanh(keys + query)). */
static gmd_tensor *attend(pass *run)
{
    gmd_engine *engine = run->engine;
    gmd_tensor *query = gmd_module_apply(engine, run->part[QUERY], run->state);
    if (!query) {
        return NULL;
    }
    gmd_shape shape = {3, {query->shape.size[0], 1, query->shape.size[1]}};
    gmd_tensor *row = gmd_op_reshape(engine, query, &shape);
    gmd_tensor *sum = gmd_op_add(engine, run->keys, row, false);
    gmd_tensor_drop(engine, row);
    gmd_tensor_drop(engine, query);
    gmd_tensor *energy = gmd_op_activation(engine, GMD_TANH, sum);
    gmd_tensor_drop(engine, sum);
    replace(engine, &run->scores, gmd_module_pass(engine, run->part[SCORE], energy));
    gmd_tensor *weights = gmd_op_softmax(engine, run->scores);
    gmd_tensor *across = gmd_op_transpose(engine, weights, 1, 2);
    gmd_tensor_drop(engine, weights);
    gmd_tensor *context = gmd_op_bmm(engine, across, run->states);
    gmd_tensor_drop(engine, across);
    if (!context) {
        return NULL;
    }
    gmd_shape flat = {2, {context->shape.size[0], context->shape.size[2]}};
    gmd_tensor *result = gmd_op_reshape(engine, context, &flat);
    gmd_tensor_drop(engine, context);
    return result;
}

static bool decode(pass *run, gmd_tensor *words)
{
    gmd_engine *engine = run->engine;
    gmd_tensor **word = gmd_take(engine, run->steps * sizeof(gmd_tensor *));
    bool fine = true;
    gmd_op_unbind(engine, words, 1, word);
    for (size_t i = 0; i < run->steps; i++) {
        if (fine) {
            replace(engine, &run->state, step_cell(run, CELL1, word[i]));
            run->contexts[i] = run->state ? attend(run) : NULL;
            gmd_tensor *next = run->contexts[i] ? step_cell(run, CELL2, run->contexts[i]) : NULL;
            replace(engine, &run->state, next);
            run->hidden[i] = gmd_tensor_keep(next);
            fine = next != NULL;
        }
    }
    for (size_t i = 0; i < run->steps; i++) {
        gmd_tensor_drop(engine, word[i]);
    }
    gmd_give(engine, word);
    return fine;
}

static gmd_tensor *predict(pass *run, gmd_tensor *words)
{
    gmd_engine *engine = run->engine;
    gmd_tensor *hidden = gmd_op_stack(engine, run->hidden, run->steps, 1);
    gmd_tensor *contexts = gmd_op_stack(engine, run->contexts, run->steps, 1);
    gmd_tensor *const parts[3] = {words, hidden, contexts};
    gmd_tensor *all = gmd_op_cat(engine, parts, 3, 2);
    gmd_tensor_drop(engine, contexts);
    gmd_tensor_drop(engine, hidden);
    return gmd_module_pass(engine, run->part[OUTPUT], all);
}

static bool takes(gmd_engine *engine, gmd_tensor **inputs, int count)
{
    if (count >= 2 && inputs[0]->shape.dims == 2 && inputs[1]->shape.dims == 2 &&
        inputs[1]->shape.size[1] > 0) {
        return true;
    }
    gmd_misuse(engine, "seq2seq takes source and target, [batch, length] each");
    return false;
}

static int seq2seq_forward(gmd_engine *engine, gmd_module *module, gmd_tensor **inputs, int count,
                           gmd_tensor *results[GMD_MAX_RESULTS])
{
    if (!takes(engine, inputs, count)) {
        return 0;
    }
    pass run = {.engine = engine, .part = module->children};
    gmd_tensor *mask, *lengths, *words = NULL;
    run.steps = (size_t)inputs[1]->shape.size[1];
    run.hidden = gmd_take(engine, run.steps * sizeof(gmd_tensor *));
    run.contexts = gmd_take(engine, run.steps * sizeof(gmd_tensor *));
    measure_lengths(engine, inputs[0], &mask, &lengths);
    if (encode(&run, inputs[0])) {
        words = gmd_module_pass(engine, run.part[TARGET], shifted(engine, inputs[1]));
        results[0] = words && decode(&run, words) ? predict(&run, words) : NULL;
    }
    gmd_tensor *locals[] = {mask, lengths, words, run.states, run.keys, run.state, run.scores};
    for (size_t i = 0; i < run.steps; i++) {
        gmd_tensor_drop(engine, run.hidden[i]);
        gmd_tensor_drop(engine, run.contexts[i]);
    }
    for (size_t i = 0; i < sizeof locals / sizeof locals[0]; i++) {
        gmd_tensor_drop(engine, locals[i]);
    }
    gmd_give(engine, run.hidden);
    gmd_give(engine, run.contexts);
    return results[0] ? 1 : 0;
}

static gmd_module *with_tanh(gmd_engine *engine, int64_t in, int64_t out)
{
    gmd_module *parts[2] = {gmd_nn_linear(engine, in, out, true),
                            gmd_nn_activation(engine, GMD_TANH)};
    return gmd_nn_sequential(engine, parts, 2);
}

gmd_module *gmd_nn_seq2seq(gmd_engine *engine, int64_t vocabulary, int64_t features, int64_t hidden)
{
    gmd_rnn encoder = {
        .kind = GMD_GRU, .layers = 1, .directions = 2, .hidden = hidden, .packed = true};
    gmd_module *model = gmd_module_new(engine, "Seq2Seq", seq2seq_forward);
    model->takes = 2;
    gmd_module_child(engine, model, gmd_nn_rnn(engine, &encoder, features));
    gmd_module_child(engine, model, gmd_nn_embedding(engine, vocabulary, features));
    gmd_module_child(engine, model, with_tanh(engine, 2 * hidden, hidden));
    gmd_module_child(engine, model, with_tanh(engine, hidden, hidden));
    gmd_module_child(engine, model, gmd_nn_embedding(engine, vocabulary, features));
    gmd_module_child(engine, model, gmd_nn_gru_cell(engine, features, hidden));
    gmd_module_child(engine, model, gmd_nn_linear(engine, hidden, hidden, true));
    gmd_module_child(engine, model, gmd_nn_linear(engine, hidden, 1, true));
    gmd_module_child(engine, model, gmd_nn_gru_cell(engine, 2 * hidden, hidden));
    gmd_module *output[2] = {with_tanh(engine, features + 3 * hidden, features),
                             gmd_nn_linear(engine, features, vocabulary, true)};
    gmd_module_child(engine, model, gmd_nn_sequential(engine, output, 2));
    return model;
}
