/* gmd_module.h - neural network modules: parameters and buffers on the device, and a forward pass.
 */
#ifndef GMD_MODULE_H
#define GMD_MODULE_H

#include "gmd_operations.h"

#define MODULE_MAX_RESULTS 3 /* an LSTM gives its output and two states */

struct module;

/* Gives the number of results, each a new reference; 0 after engine_misuse(). Inputs are borrowed.
 */
typedef int (*forward_fn)(struct engine *engine, struct module *module, struct tensor **inputs,
                          int count, struct tensor *results[MODULE_MAX_RESULTS]);

struct module {
    struct thing thing;
    const char *name; /* "Conv2d" */
    forward_fn forward;
    struct tensor **parameters;
    struct tensor **buffers; /* running statistics: kept, no gradient */
    struct module **children;
    size_t parameter_count, buffer_count, child_count;
    struct storage *flat;    /* an LSTM's weights as one block */
    struct conv conv;        /* convolutions and pools */
    struct rnn rnn;          /* recurrent networks; the weights are the parameters */
    struct reducer *reducer; /* of DistributedDataParallel; NULL: another module */
    struct sharded *sharded; /* what fully_shard() made of it; NULL: nothing */
    void (*close)(struct engine *engine, struct module *module); /* ends it; NULL: there is none */
    int64_t heads;
    int64_t size[2]; /* of adaptive pools; first and last dimension of Flatten; groups */
    struct upsample upsample;
    double p; /* of a dropout */
    enum activation activation;
    uint64_t walk; /* the last that visited it: it may be part of another several times */
    int takes;     /* the most tensors that it takes as inputs */
    int level;     /* how deep it is nested in others, at most; limited because passes recurse */
    bool in_place, training, gelu, norm_first, of_images;
    bool batch_first, gives_weights; /* of attention */
};

extern const struct thing_class module_class;

static inline struct module *module_keep(struct module *module)
{
    return (struct module *)thing_keep(&module->thing);
}
static inline void module_drop(struct engine *engine, struct module *module)
{
    thing_drop(engine, module ? &module->thing : NULL);
}

/* The module and all of its parts, each once, as torch's named_modules(). */
void module_each(struct engine *engine, struct module *module,
                 void (*visit)(struct module *module, void *context), void *context);
/* Parameters in the order of torch's Module.parameters(): a module's own, then its children's. */
typedef void (*visit_tensor_fn)(struct engine *engine, struct tensor *tensor, void *context);
void module_parameters(struct engine *engine, struct module *module, visit_tensor_fn visit,
                       void *context);
void module_buffers(struct engine *engine, struct module *module, visit_tensor_fn visit,
                    void *context);
/* Bytes of its elements and of those of its children; a gradient counts where there is one. */
struct module_sizes {
    uint64_t parameters, gradients, buffers;
};
struct module_sizes module_measure(struct engine *engine, struct module *module);
/* The weight or bias of a layer, borrowed; NULL: it has none. And another one in its place, which
 * it shares with whoever has that, as tied weights: false where it has none; engine_misuse() where
 * it does not fit. */
struct tensor *module_own_parameter(struct module *module, bool is_bias);
bool module_share_parameter(struct engine *engine, struct module *module, bool is_bias,
                            struct tensor *parameter);
void module_train(struct module *module, bool training);
/* Parameters, their gradients and floating buffers in another type (module_dtype.c). */
void module_to(struct engine *engine, struct module *module, enum dtype dtype);

/* copy.deepcopy(): NULL after engine_misuse() (module_copy.c). */
struct module *module_copy(struct engine *engine, struct module *module);

/* One input, one result; NULL after engine_misuse() and for a NULL input. */
struct tensor *module_apply(struct engine *engine, struct module *module, struct tensor *input);
/* The same, and the input is dropped as soon as the result is there: `x = layer(x)`. */
struct tensor *module_pass(struct engine *engine, struct module *module, struct tensor *input);

/* Layers (modules.c). Each allocates its parameters in the order in which .cuda() moves them. */
struct module *nn_conv2d(struct engine *engine, int64_t in, int64_t out, struct conv conv,
                         bool bias);
struct module *nn_conv1d(struct engine *engine, int64_t in, int64_t out, struct conv conv,
                         bool bias);
struct module *nn_batch_norm(struct engine *engine, int64_t channels, bool of_images);
struct module *nn_group_norm(struct engine *engine, int64_t groups, int64_t channels);
struct module *nn_rms_norm(struct engine *engine, int64_t features);
struct module *nn_relu(struct engine *engine, bool in_place);
struct module *nn_leaky_relu(struct engine *engine, bool in_place);
struct module *nn_dropout(struct engine *engine, double p);
struct module *nn_max_pool(struct engine *engine, struct conv pool);
struct module *nn_avg_pool(struct engine *engine, struct conv pool);
struct module *nn_adaptive_avg_pool(struct engine *engine, const int64_t size[2]);
struct module *nn_upsample(struct engine *engine, struct upsample to);
/* Dimensions from 1, or from the end with -1. */
struct module *nn_flatten(struct engine *engine, int64_t first, int64_t last);
struct module *nn_linear(struct engine *engine, int64_t in, int64_t out, bool bias);
struct module *nn_layer_norm(struct engine *engine, int64_t features);
struct module *nn_embedding(struct engine *engine, int64_t entries, int64_t features);
struct module *nn_activation(struct engine *engine, enum activation kind);
struct module *nn_softmax(struct engine *engine, int64_t dimension); /* as of Flatten */
/* modules_more.c */
struct module *nn_identity(struct engine *engine);
struct module *nn_conv_transpose2d(struct engine *engine, int64_t in, int64_t out, struct conv conv,
                                   const int64_t output_padding[2], bool bias);
struct module *nn_lstm_cell(struct engine *engine, int64_t in, int64_t hidden);
struct module *nn_instance_norm(struct engine *engine, int64_t channels, bool affine);
/* Lays the windows of convolutions with the channels last. */
void module_to_channels_last(struct engine *engine, struct module *module);
/* Recurrent networks (modules_rnn.c). They read kind, layers, directions, hidden, batch_first and
 * dropout of `shape`. */
struct module *nn_rnn(struct engine *engine, const struct rnn *shape, int64_t in);
struct module *nn_gru_cell(struct engine *engine, int64_t in, int64_t hidden);

/* Compositions (models.c). They take over the references in `children`. */
struct module *nn_sequential(struct engine *engine, struct module **children, size_t count);
bool module_is_sequential(const struct module *module);
struct module *nn_residual(struct engine *engine, struct module *body); /* input + body(input) */
struct module *nn_resnet50(struct engine *engine, int64_t classes);
/* Transformers (model_transformer.c). */
struct encoder {
    int64_t layers, features, heads, hidden;
    double dropout;
    bool gelu, norm_first; /* else ReLU, and normalisation last */
};
struct module *nn_transformer(struct engine *engine, const struct encoder *shape);
struct module *nn_encoder_layer(struct engine *engine, const struct encoder *shape);
/* The decoder's take two tensors: what is decoded, and the encoder's result. */
struct module *nn_decoder(struct engine *engine, const struct encoder *shape);
struct module *nn_decoder_layer(struct engine *engine, const struct encoder *shape);
/* multihead.c: takes one to three tensors: queries, keys, values. */
struct multihead {
    int64_t features, heads;
    double dropout; /* of the weights */
    bool bias, batch_first;
    bool gives_weights; /* need_weights: attention is written out, and its mean weights are given */
};
struct module *nn_multihead_attention(struct engine *engine, const struct multihead *shape);
struct module *nn_gpt_block(struct engine *engine, int64_t features, int64_t heads);
/* A block of a Llama-like decoder: RMSNorm, rotary embeddings for so many tokens, grouped keys and
 * values, SwiGLU (model_llama.c). */
struct llama_block {
    int64_t features, heads, groups, hidden, length;
};
struct module *nn_llama_block(struct engine *engine, const struct llama_block *shape);
struct module *nn_causal_block(struct engine *engine, int64_t features, int64_t heads);
struct gpt {
    int64_t vocabulary, features, heads, layers;
    int64_t positions; /* embedded and added to the words; 0: none */
    bool causal;       /* nanoGPT's blocks in place of those over MultiheadAttention */
    bool checkpoint;   /* only the input of each block is kept for the backward pass */
};
struct module *nn_gpt(struct engine *engine, const struct gpt *shape);
struct module *nn_checkpointed(struct engine *engine,
                               struct module *body); /* checkpoint.c; takes over */
/* GRU encoder and decoder with attention (model_seq2seq.c); its inputs are source and target,
 * [batch, length] each. */
struct module *nn_seq2seq(struct engine *engine, int64_t vocabulary, int64_t features,
                          int64_t hidden);

/* For the files that define modules. */
struct module *module_new(struct engine *engine, const char *name, forward_fn forward);
struct tensor *module_parameter(struct engine *engine, struct module *module, struct shape shape);
/* Running statistics: kept, and without a gradient. */
void module_buffer(struct engine *engine, struct module *module, struct shape shape,
                   enum dtype dtype);
/* Takes over `child`. A child that would make a cycle, or nest modules too deep, is engine_misuse()
 * and is dropped. */
void module_child(struct engine *engine, struct module *module, struct module *child);

#endif
