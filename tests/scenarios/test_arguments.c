/* Every argument of every function, method and module of scripts is used or refused. The tests go
 * through the table of functions, so that a new one is tested as soon as it is there. */
#include "call_text.h"
#include "gmd_test.h"
#include "scenario_bench.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef void each_function(const struct script_group *group, const struct script_function *function,
                           void *context);

static void assert_refused(const char *call, const char *message)
{
    char text[CALL_TEXT_SIZE + sizeof CALL_PRELUDE];
    snprintf(text, sizeof text, CALL_PRELUDE "%s\n", call);
    bench *run = bench_run(text);
    if (run->status != GMD_BAD_INPUT || !strstr(run->error.text, message)) {
        fail_msg("%s\n  is not refused with '%s': %s", call, message,
                 run->status == GMD_OK ? "it runs" : run->error.text);
    }
    bench_free(run);
}

static void more_are_refused(const struct script_group *group,
                             const struct script_function *function, void *context)
{
    char call[CALL_TEXT_SIZE], message[CALL_TEXT_SIZE];
    (void)context;
    call_with_too_many(group, function, call);
    snprintf(message, sizeof message, ".lua:7: %s%s: it takes at most", group->prefix,
             function->name);
    assert_refused(call, message);
}

TEST_F(bench, more_arguments_than_a_function_takes_are_refused)
{
    call_each(more_are_refused, NULL);
}

static void unknown_is_refused(const struct script_group *group,
                               const struct script_function *function, void *context)
{
    char call[CALL_TEXT_SIZE], message[CALL_TEXT_SIZE], usage[CALL_TEXT_SIZE];
    (void)context;
    call_with(group, function, NULL, NULL, call);
    char *end = strrchr(call, '}');
    snprintf(end, 32, "no_such_option = 1 })");
    script_usage(group, function, usage, sizeof usage);
    snprintf(message, sizeof message,
             ".lua:7: %s%s: 'no_such_option' is not known here; it is called as %.300s",
             group->prefix, function->name, usage);
    assert_refused(call, message);
}

TEST_F(bench, an_option_that_there_is_not_is_refused_with_how_the_function_is_called)
{
    call_each(unknown_is_refused, NULL);
}

static void mistakes_are_refused(const struct script_group *group,
                                 const struct script_function *function, void *context)
{
    char call[CALL_TEXT_SIZE], message[CALL_TEXT_SIZE];
    (void)context;
    for (const struct script_parameter *each = function->takes; each->name; each++) {
        call_with(group, function, each, call_mistake(each), call);
        snprintf(message, sizeof message, ".lua:7: %s%s: %s: ", group->prefix, function->name,
                 each->name);
        assert_refused(call, message);
    }
}

TEST_F(bench, a_value_of_another_kind_is_refused_with_the_parameter)
{
    call_each(mistakes_are_refused, NULL);
}

static void absence_is_refused(const struct script_group *group,
                               const struct script_function *function, void *context)
{
    char call[CALL_TEXT_SIZE], message[CALL_TEXT_SIZE];
    (void)context;
    if (!function->takes->name || function->takes->absent) {
        return;
    }
    snprintf(call, sizeof call, "%s%s%s()", call_receiver(group),
             group->class ? ":" : group->prefix, function->name);
    snprintf(message, sizeof message, ".lua:7: %s%s: %s: ", group->prefix, function->name,
             function->takes->name);
    assert_refused(call, message);
}

TEST_F(bench, what_must_be_given_and_is_not_is_refused)
{
    call_each(absence_is_refused, NULL);
}

static void beyond_limits_is_refused(const struct script_group *group,
                                     const struct script_function *function, void *context)
{
    char call[CALL_TEXT_SIZE], message[CALL_TEXT_SIZE], value[64];
    (void)context;
    for (const struct script_parameter *each = function->takes; each->name; each++) {
        bool is_number = each->value == VALUE_INTEGER || each->value == VALUE_NUMBER;
        if (is_number && (each->least != 0 || each->most != 0)) {
            snprintf(value, sizeof value, "%.0f", each->least - 1);
            call_with(group, function, each, value, call);
            snprintf(message, sizeof message, "%s%s: %s: %s is not between", group->prefix,
                     function->name, each->name, value);
            assert_refused(call, message);
        }
    }
}

TEST_F(bench, a_number_beyond_its_limits_is_refused_with_the_limits)
{
    call_each(beyond_limits_is_refused, NULL);
}

static void other_receivers_are_refused(const struct script_group *group,
                                        const struct script_function *function, void *context)
{
    char call[CALL_TEXT_SIZE], message[CALL_TEXT_SIZE];
    (void)context;
    if (group->class) {
        snprintf(call, sizeof call, "%s.%s(17)", call_receiver(group), function->name);
        snprintf(message, sizeof message, "%s%s: %s expected, got number; a method is called with",
                 group->prefix, function->name, group->class->name);
        assert_refused(call, message);
    }
}

TEST_F(bench, a_method_of_something_else_is_refused)
{
    call_each(other_receivers_are_refused, NULL);
}

/* --- what is given is used --------------------------------------------------------------- */

/* Two scripts, with the option and without it: they ask the allocator for something else, or end a
 * phase with another label, or another bound. */
static const struct {
    const char *function, *parameter, *with, *without;
} uses[] = {
#define FIRST "a = randn { 4, 6, 8 }\n"
#define SHAPE "\nphase(table.concat({ b:dim(), b:size(1), b:size(-1) }, ' '))"
#define IMAGE "i = randn { 2, 4, 16, 16, requires_grad = true }\n"
#define MODEL "h = nn.Linear { 4, 4 }\nh(randn { 2, 4 }):sum():backward()\n"
#define CREATED(name)                                                                              \
    {name, "dtype", "b = " name " { 4, dtype = 'bool' }", "b = " name " { 4 }"},                   \
    {                                                                                              \
        name, "requires_grad",                                                                     \
            "b = " name " { 4, dtype = 'float32', requires_grad = true }\nb:sum():backward()",     \
            "b = " name " { 4, dtype = 'float32' }\npcall(function() b:sum():backward() end)"      \
    }
    CREATED("randn"),
    CREATED("rand"),
    CREATED("zeros"),
    CREATED("ones"),
    CREATED("empty"),
    CREATED("randint"),
    {"arange", "last", "b = arange(2, 9)\nphase(b:nbytes())", "b = arange(2)\nphase(b:nbytes())"},
    {"arange", "dtype", "b = arange(9, { dtype = 'bool' })", "b = arange(9)"},
    {"full", "dtype", "b = full { 9, value = 1, dtype = 'bool' }", "b = full { 9, value = 1 }"},
    {"bound", "allocated", "bound { allocated = 9, reserved = 9 }", "bound { reserved = 9 }"},
    {"bound", "reserved", "bound { allocated = 9, reserved = 9 }", "bound { allocated = 9 }"},
    {"bound", "leaks", "bound { allocated = 9, leaks = true }", "bound { allocated = 9 }"},
    {"random", "last", "phase(random(900, 901))", "phase(random(900))"},
    {"dropout", "p", FIRST "b = dropout(a, 0)", FIRST "b = dropout(a)"},
    {"dropout", "training", FIRST "b = dropout(a, { training = false })", FIRST "b = dropout(a)"},
    {"cat", "dimension", FIRST "b = cat({ a, a }, 3)" SHAPE, FIRST "b = cat { a, a }" SHAPE},
    {"stack", "dimension", FIRST "b = stack({ a, a }, 4)" SHAPE, FIRST "b = stack { a, a }" SHAPE},
#define LOSS(name, target)                                                                         \
    {                                                                                              \
        name, "reduction", "b = " name "(randn { 40, 60 }, " target ", { reduction = 'none' })",   \
            "b = " name "(randn { 40, 60 }, " target ")"                                           \
    }
    LOSS("cross_entropy", "randint { 40 }"),
    LOSS("mse_loss", "randn { 40, 60 }"),
    LOSS("binary_cross_entropy_with_logits", "randn { 40, 60 }"),
    LOSS("kl_div", "randn { 40, 60 }"),
    LOSS("l1_loss", "randn { 40, 60 }"),
    LOSS("smooth_l1_loss", "randn { 40, 60 }"),
    LOSS("huber_loss", "randn { 40, 60 }"),
    LOSS("nll_loss", "randint { 40 }"),
    LOSS("binary_cross_entropy", "randn { 40, 60 }"),
    {"interpolate", "size", IMAGE "b = interpolate(i, { size = 24 })",
     IMAGE "b = interpolate(i, { scale_factor = 2 })"},
    {"interpolate", "scale_factor", IMAGE "b = interpolate(i, { scale_factor = 3 })",
     IMAGE "b = interpolate(i, { scale_factor = 2 })"},
    {"interpolate", "mode",
     IMAGE "phase(interpolate(i, { scale_factor = 2, mode = 'bilinear' }).grad_fn.name)",
     IMAGE "phase(interpolate(i, { scale_factor = 2 }).grad_fn.name)"},
    {"normalize", "dimension", FIRST "b = normalize(a, 1)", FIRST "b = normalize(a)"},
    {"t:flatten", "first", FIRST "b = a:flatten(2)" SHAPE, FIRST "b = a:flatten()" SHAPE},
    {"t:flatten", "last", FIRST "b = a:flatten(1, 2)" SHAPE, FIRST "b = a:flatten()" SHAPE},
    {"t:logsumexp", "keepdim", FIRST "b = a:logsumexp(1, { keepdim = true })" SHAPE,
     FIRST "b = a:logsumexp(1)" SHAPE},
    {"kl_div", "log_target",
     "a = randn { 40, 60, requires_grad = true }\n"
     "kl_div(a, randn { 40, 60 }, { log_target = true }):backward()",
     "a = randn { 40, 60, requires_grad = true }\nkl_div(a, randn { 40, 60 }):backward()"},
    {"nn.Linear", "bias", "nn.Linear { 4, 4, bias = false }", "nn.Linear { 4, 4 }"},
#define CONVOLUTION(name, input)                                                                   \
    {name, "stride", "a = " name " { 4, 8, 3, stride = 2 }\nb = a(" input ")",                     \
     "a = " name " { 4, 8, 3 }\nb = a(" input ")"},                                                \
        {name, "padding", "a = " name " { 4, 8, 3, padding = 1 }\nb = a(" input ")",               \
         "a = " name " { 4, 8, 3 }\nb = a(" input ")"},                                            \
        {name, "bias", "a = " name " { 4, 8, 3, bias = false }", "a = " name " { 4, 8, 3 }"},      \
        {name, "dilation", "a = " name " { 4, 8, 3, dilation = 2 }\nb = a(" input ")",             \
         "a = " name " { 4, 8, 3 }\nb = a(" input ")"},                                            \
    {                                                                                              \
        name, "groups", "a = " name " { 4, 8, 3, groups = 2 }", "a = " name " { 4, 8, 3 }"         \
    }
    CONVOLUTION("nn.Conv2d", "randn { 2, 4, 16, 16 }"),
    CONVOLUTION("nn.Conv1d", "randn { 2, 4, 16 }"),
#define POOL(name)                                                                                 \
    {name, "stride", IMAGE "b = " name " { 3, stride = 1 }(i)", IMAGE "b = " name " { 3 }(i)"},    \
    {                                                                                              \
        name, "padding", IMAGE "b = " name " { 3, padding = 1 }(i)", IMAGE "b = " name " { 3 }(i)" \
    }
    POOL("nn.MaxPool2d"),
    POOL("nn.AvgPool2d"),
    {"nn.AdaptiveAvgPool2d", "size", IMAGE "b = nn.AdaptiveAvgPool2d { 7 }(i)",
     IMAGE "b = nn.AdaptiveAvgPool2d()(i)"},
    {"nn.Upsample", "size", IMAGE "b = nn.Upsample { size = 24 }(i)",
     IMAGE "b = nn.Upsample { scale_factor = 2 }(i)"},
    {"nn.Upsample", "scale_factor", IMAGE "b = nn.Upsample { scale_factor = 3 }(i)",
     IMAGE "b = nn.Upsample { scale_factor = 2 }(i)"},
    {"nn.Upsample", "mode",
     IMAGE "phase(nn.Upsample { scale_factor = 2, mode = 'bilinear' }(i).grad_fn.name)",
     IMAGE "phase(nn.Upsample { scale_factor = 2 }(i).grad_fn.name)"},
    {"nn.ReLU", "inplace", FIRST "b = nn.ReLU { inplace = true }(a)", FIRST "b = nn.ReLU()(a)"},
    {"nn.LeakyReLU", "inplace", FIRST "b = nn.LeakyReLU { inplace = true }(a)",
     FIRST "b = nn.LeakyReLU()(a)"},
    {"nn.Dropout", "p", FIRST "b = nn.Dropout { p = 0 }(a)", FIRST "b = nn.Dropout()(a)"},
    {"nn.Flatten", "first", FIRST "b = nn.Flatten { 1 }(a)" SHAPE,
     FIRST "b = nn.Flatten()(a)" SHAPE},
    {"nn.Flatten", "last", FIRST "b = nn.Flatten { 2, 2 }(a)" SHAPE,
     FIRST "b = nn.Flatten()(a)" SHAPE},
#define RECURRENT(name)                                                                            \
    {name, "layers", "b = " name " { 4, 4, layers = 2 }", "b = " name " { 4, 4 }"},                \
        {name, "bidirectional", "b = " name " { 4, 4, bidirectional = true }",                     \
         "b = " name " { 4, 4 }"},                                                                 \
    {                                                                                              \
        name, "batch_first", "b = " name " { 4, 4, batch_first = false }(randn { 3, 5, 4 })",      \
            "b = " name " { 4, 4 }(randn { 3, 5, 4 })"                                             \
    }
    RECURRENT("nn.LSTM"),
    RECURRENT("nn.GRU"),
#define DROPS(name)                                                                                \
    {                                                                                              \
        name, "dropout", "b = " name " { 4, 4, layers = 2, dropout = 0.5 }(randn { 3, 5, 4 })",    \
            "b = " name " { 4, 4, layers = 2 }(randn { 3, 5, 4 })"                                 \
    }
    DROPS("nn.LSTM"),
    DROPS("nn.GRU"),
    CONVOLUTION("nn.ConvTranspose2d", "randn { 2, 4, 16, 16 }"),
    {"nn.ConvTranspose2d", "output_padding",
     "a = nn.ConvTranspose2d { 4, 8, 3, stride = 2, output_padding = 1 }\n"
     "b = a(randn { 2, 4, 8, 8 })",
     "a = nn.ConvTranspose2d { 4, 8, 3, stride = 2 }\nb = a(randn { 2, 4, 8, 8 })"},
    {"nn.InstanceNorm2d", "affine", "a = nn.InstanceNorm2d { 4, affine = true }",
     "a = nn.InstanceNorm2d { 4 }"},
#define ENCODER "nn.TransformerEncoder { layers = 1, features = 8, heads = 2"
#define ENCODED "}\nb = a(randn { 2, 4, 8 }):sum():backward()"
    {"nn.TransformerEncoder", "hidden", "a = " ENCODER ", hidden = 8" ENCODED,
     "a = " ENCODER ENCODED},
    {"nn.TransformerEncoder", "gelu", "a = " ENCODER ", gelu = true" ENCODED,
     "a = " ENCODER ENCODED},
    {"nn.TransformerEncoder", "norm_first", "a = " ENCODER ", norm_first = true" ENCODED,
     "a = " ENCODER ENCODED},
#define HEADS(n)         "q = randn { 2, 4, 8, 16 }\nk = randn { 2, " n ", 8, 16 }\n"
#define ATTENDS(options) HEADS("4") "b = scaled_dot_product_attention(q, k, k, { " options " })"
    {"scaled_dot_product_attention", "attn_mask",
     ATTENDS("attn_mask = zeros { 8, 9 }:narrow(2, 1, 8)"), ATTENDS("")},
    {"scaled_dot_product_attention", "dropout_p", ATTENDS("backend = 'math', dropout_p = 0.5"),
     ATTENDS("backend = 'math'")},
    {"scaled_dot_product_attention", "is_causal", ATTENDS("backend = 'math', is_causal = true"),
     ATTENDS("backend = 'math'")},
    {"scaled_dot_product_attention", "enable_gqa",
     HEADS("2") "b = scaled_dot_product_attention(q, k, k, { enable_gqa = true })",
     HEADS("2") "pcall(function() scaled_dot_product_attention(q, k, k) end)"},
    {"scaled_dot_product_attention", "backend", ATTENDS("backend = 'math'"), ATTENDS("")},
#define MULTIHEAD(options)                                                                         \
    "a = nn.MultiheadAttention { 8, 2" options " }\nc = randn { 2, 4, 8 }\nb = a(c, c, c)"
    {"nn.MultiheadAttention", "dropout", MULTIHEAD(", dropout = 0.5"), MULTIHEAD()},
    {"nn.MultiheadAttention", "bias", MULTIHEAD(", bias = false"), MULTIHEAD()},
    {"nn.MultiheadAttention", "batch_first", MULTIHEAD(", batch_first = true"), MULTIHEAD()},
    {"nn.MultiheadAttention", "need_weights", MULTIHEAD(", need_weights = false"), MULTIHEAD()},
#define ENCODES(options)                                                                           \
    "a = nn.TransformerEncoderLayer { 8, 2" options " }\nb = a(randn { 2, 4, 8 "                   \
    "}):sum():backward()"
#define DECODES(options)                                                                           \
    "a = nn.TransformerDecoderLayer { 8, 2" options " }\n"                                         \
    "b = a(randn { 2, 4, 8 }, randn { 2, 5, 8 }):sum():backward()"
#define DECODER(options)                                                                           \
    "a = nn.TransformerDecoder { layers = 2, features = 8, heads = 2" options " }\n"               \
    "b = a(randn { 2, 4, 8 }, randn { 2, 5, 8 }):sum():backward()"
#define LAYER(name, RUNS)                                                                          \
    {name, "hidden", RUNS(", hidden = 16"), RUNS()},                                               \
        {name, "dropout", RUNS(", dropout = 0"), RUNS()},                                          \
        {name, "gelu", RUNS(", gelu = true"), RUNS()},                                             \
    {                                                                                              \
        name, "norm_first", RUNS(", norm_first = true"), RUNS()                                    \
    }
    LAYER("nn.TransformerEncoderLayer", ENCODES),
    LAYER("nn.TransformerDecoderLayer", DECODES),
    LAYER("nn.TransformerDecoder", DECODER),
    {"nn.resnet50", "classes", "b = nn.resnet50 { classes = 10 }", "b = nn.resnet50()"},
#define GPT   "nn.gpt { vocabulary = 9, features = 8, heads = 2, layers = 1"
#define READS "}(randint { 2, 4 }):sum():backward()"
    {"nn.gpt", "checkpoint", GPT ", checkpoint = true" READS, GPT READS},
    {"nn.gpt", "positions", GPT ", positions = 4" READS, GPT READS},
    {"nn.gpt", "causal", GPT ", causal = true" READS, GPT READS},
#define WRAP  "d = nn.DistributedDataParallel { nn.Linear { 64, 64 }"
#define TWICE "}\nfor i = 1, 2 do d(randn { 2, 64 }):sum():backward() end"
    {"nn.DistributedDataParallel", "bucket", WRAP ", bucket = 1" TWICE, WRAP TWICE},
    {"nn.DistributedDataParallel", "gradient_as_bucket_view",
     WRAP ", gradient_as_bucket_view = true" TWICE, WRAP TWICE},
#define OPTIMIZER(name)                                                                            \
    {name, "foreach",                                                                              \
     MODEL "o = " name " { h, foreach = false, weight_decay = 0.1 }\no:step()\no:step()",          \
     MODEL "o = " name " { h, weight_decay = 0.1 }\no:step()\no:step()"},                          \
    {                                                                                              \
        name, "fused",                                                                             \
            MODEL "o = " name " { h, fused = true, weight_decay = 0.1 }\no:step()\no:step()",      \
            MODEL "o = " name " { h, weight_decay = 0.1 }\no:step()\no:step()"                     \
    }
    OPTIMIZER("optim.SGD"),
    OPTIMIZER("optim.Adam"),
    OPTIMIZER("optim.AdamW"),
#define STEPS(name, options) MODEL "o = optim." name " { h" options " }\no:step()\no:step()"
#define STEPPED(name, parameter, value, others)                                                    \
    {                                                                                              \
        "optim." name, parameter, STEPS(name, ", " parameter " = " value others),                  \
            STEPS(name, others)                                                                    \
    }
    STEPPED("SGD", "nesterov", "true", ", momentum = 0.9, foreach = false"),
    STEPPED("Adam", "amsgrad", "true", ""),
    STEPPED("AdamW", "amsgrad", "true", ""),
    STEPPED("RMSprop", "weight_decay", "0.1", ""),
    STEPPED("RMSprop", "foreach", "false", ""),
    STEPPED("RMSprop", "momentum", "0.9", ""),
    STEPPED("RMSprop", "centered", "true", ""),
    STEPPED("Adagrad", "weight_decay", "0.1", ", foreach = false"),
    STEPPED("Adagrad", "foreach", "false", ""),
    {"o:add_param_group", "weight_decay",
     MODEL "o = optim.Adam { y }\no:add_param_group { h, weight_decay = 0.1 }\no:step()",
     MODEL "o = optim.Adam { y }\no:add_param_group { h }\no:step()"},
    {"GradScaler", "enabled", "g = GradScaler { enabled = false }\nb = g:scale(randn { 1 })",
     "g = GradScaler()\nb = g:scale(randn { 1 })"},
    {"t:chunk", "dimension", FIRST "b = a:chunk(2, 3)[1]" SHAPE, FIRST "b = a:chunk(2)[1]" SHAPE},
    {"t:split", "dimension", FIRST "b = a:split({ 1, 3, 4 }, 3)[2]" SHAPE,
     "a = randn { 8, 8 }\nb = a:split { 1, 3, 4 }[2]" SHAPE},
    {"optim.SGD", "weight_decay", MODEL "o = optim.SGD { h, weight_decay = 0.1 }\no:step()",
     MODEL "o = optim.SGD { h }\no:step()"},
    {"optim.SGD", "momentum", MODEL "o = optim.SGD { h, momentum = 0.9 }\no:step()",
     MODEL "o = optim.SGD { h }\no:step()"},
    {"optim.Adam", "weight_decay", MODEL "o = optim.Adam { h, weight_decay = 0.1 }\no:step()",
     MODEL "o = optim.Adam { h }\no:step()"},
#define ZERO(options)                                                                              \
    "dist.init_process_group { world_size = 2 }\n" MODEL                                           \
    "o = optim.ZeroRedundancyOptimizer { h, " options " }\no:step()"
#define ZERO_ADAM "optimizer_class = 'AdamW'"
#define ZERO_SGD  "optimizer_class = 'SGD'"
    {"optim.ZeroRedundancyOptimizer", "weight_decay", ZERO(ZERO_SGD ", weight_decay = 0.1"),
     ZERO(ZERO_SGD)},
    {"optim.ZeroRedundancyOptimizer", "foreach", ZERO(ZERO_ADAM ", foreach = false"),
     ZERO(ZERO_ADAM)},
    {"optim.ZeroRedundancyOptimizer", "parameters_as_bucket_view",
     ZERO(ZERO_SGD ", parameters_as_bucket_view = true"), ZERO(ZERO_SGD)},
    {"optim.ZeroRedundancyOptimizer", "fused", ZERO(ZERO_ADAM ", fused = true"), ZERO(ZERO_ADAM)},
    {"optim.ZeroRedundancyOptimizer", "momentum", ZERO(ZERO_SGD ", momentum = 0.9"),
     ZERO(ZERO_SGD)},
    {"optim.ZeroRedundancyOptimizer", "nesterov",
     ZERO(ZERO_SGD ", momentum = 0.9, foreach = false, nesterov = true"),
     ZERO(ZERO_SGD ", momentum = 0.9, foreach = false")},
    {"optim.ZeroRedundancyOptimizer", "amsgrad", ZERO(ZERO_ADAM ", amsgrad = true"),
     ZERO(ZERO_ADAM)},
#define SHARDS(options)                                                                            \
    "dist.init_process_group { world_size = 2 }\nh = nn.Sequential { nn.Linear { 4, 4 } }\n"       \
    "fully_shard(h" options ")\nb = h(y):sum()\nphase 'forward'\nb:backward()"
    {"fully_shard", "reshard_after_forward", SHARDS(", { reshard_after_forward = true }"),
     SHARDS("")},
#define SHARDS_OF_FOUR(options)                                                                    \
    "dist.init_process_group { world_size = 4 }\nh = nn.Linear { 4, 4 }\n"                         \
    "fully_shard(h" options ")\nb = h(y):sum()\nphase 'forward'\nb:backward()"
    {"fully_shard", "mesh", SHARDS_OF_FOUR(", { mesh = { 2, 2 } }"), SHARDS_OF_FOUR("")},
    {"fully_shard", "cpu_offload", SHARDS(", { cpu_offload = true }"), SHARDS("")},
    {"fully_shard", "param_dtype", SHARDS(", { param_dtype = 'bfloat16' }"), SHARDS("")},
    {"fully_shard", "reduce_dtype",
     SHARDS(", { param_dtype = 'bfloat16', reduce_dtype = 'float32' }"),
     SHARDS(", { param_dtype = 'bfloat16' }")},
    {"fully_shard", "output_dtype", SHARDS(", { output_dtype = 'float64' }"), SHARDS("")},
    {"fully_shard", "cast_forward_inputs",
     "y = y:to('bfloat16')\n" SHARDS(", { param_dtype = 'bfloat16', cast_forward_inputs = false }"),
     "y = randn { 4, 4 }:to('float64')\n" SHARDS(", { param_dtype = 'bfloat16' }")},
    {"dist.init_process_group", "rank",
     "dist.init_process_group { world_size = 2, rank = 1 }\nh = nn.Linear { 4, 1 "
     "}\nfully_shard(h)\n"
     "h(y):sum():backward()\no = optim.SGD { h, momentum = 0.9 }\no:step()\nphase(o:nbytes())",
     "dist.init_process_group { world_size = 2 }\nh = nn.Linear { 4, 1 }\nfully_shard(h)\n"
     "h(y):sum():backward()\no = optim.SGD { h, momentum = 0.9 }\no:step()\nphase(o:nbytes())"},
#define DERIVES "a = randn { 4, requires_grad = true }\nb = a:square():sum()\n"
    {"autograd.grad", "gradient",
     "a = randn { 4, requires_grad = true }\nb = a * 2\n"
     "c = autograd.grad(b, { a }, { gradient = randn { 4 } })",
     "a = randn { 4, requires_grad = true }\nb = a * 2\n"
     "pcall(function() c = autograd.grad(b, { a }) end)"},
    {"autograd.grad", "retain_graph",
     DERIVES "c = autograd.grad(b, { a }, { retain_graph = true })\nd = autograd.grad(b, { a })",
     DERIVES "c = autograd.grad(b, { a })\npcall(function() d = autograd.grad(b, { a }) end)"},
#define PENALISES(options)                                                                         \
    "h = nn.Sequential { nn.Linear { 4, 4 }, nn.ReLU(), nn.Linear { 4, 1 } }\n"                    \
    "y:requires_grad_()\nc = autograd.grad(h(y):sum(), { y }" options ")\nphase 'a'"
    {"autograd.grad", "create_graph", PENALISES(", { create_graph = true }"), PENALISES("")},
    {"cuda.graph", "pool",
     "a = cuda.CUDAGraph()\ncuda.graph(a, function() b = y + 1 end, { pool = 5 })\nphase(a:pool())",
     "a = cuda.CUDAGraph()\ncuda.graph(a, function() b = y + 1 end)\nphase(a:pool())"},
    {"m:zero_grad", "set_to_none", MODEL "h:zero_grad { set_to_none = false }\nphase 'a'",
     MODEL "h:zero_grad()\nphase 'a'"},
    {"o:zero_grad", "set_to_none",
     MODEL "o = optim.SGD { h }\no:zero_grad { set_to_none = false }\nphase 'a'",
     MODEL "o = optim.SGD { h }\no:zero_grad()\nphase 'a'"},
    {"gc.collect", "generation", "a = object()\na.self = a\na = nil\nphase(gc.collect(0))",
     "a = object()\na.self = a\na = nil\ngc.collect(0)\nphase(gc.collect())"},
    {"gc.background", "free_lists", "gc.background { 1, free_lists = 5 }\nphase((gc.get_count()))",
     "gc.background { 1 }\nphase((gc.get_count()))"},
    {"t:backward", "gradient",
     "a = randn { 4, requires_grad = true };\n(a * 2):backward(randn { 4 })",
     "a = randn { 4, requires_grad = true }\npcall(function() (a * 2):backward() end)"},
    {"t:backward", "retain_graph",
     "a = randn { 4, requires_grad = true }\nb = a:square():sum()\n"
     "b:backward { retain_graph = true }\nb:backward()",
     "a = randn { 4, requires_grad = true }\nb = a:square():sum()\nb:backward()\n"
     "pcall(function() b:backward() end)"},
    {"t:requires_grad_", "required",
     "a = randn { 4, requires_grad = true }\na:requires_grad_(false)\n"
     "pcall(function() a:sum():backward() end)",
     "a = randn { 4, requires_grad = true }\na:requires_grad_()\na:sum():backward()"},
    {"m:requires_grad_", "required",
     "h = nn.Linear { 4, 4 }\nh:requires_grad_(false)\n"
     "pcall(function() h(randn { 2, 4 }):sum():backward() end)",
     "h = nn.Linear { 4, 4 }\nh:requires_grad_()\nh(randn { 2, 4 }):sum():backward()"},
    {"m:train", "mode", FIRST "h = nn.Dropout()\nh:train(false)\nb = h(a)",
     FIRST "h = nn.Dropout()\nh:train()\nb = h(a)"},
    {"l:pop", "i",
     "l = list()\nl:append(randn { 4 })\nl:append(randn { 9, 9 })\nb = l:pop(1)\n"
     "l:clear()\nphase(b:nbytes())",
     "l = list()\nl:append(randn { 4 })\nl:append(randn { 9, 9 })\nb = l:pop()\nl:clear()\n"
     "phase(b:nbytes())"},
#define REDUCED(name)                                                                              \
    {"t:" name, "dimension", FIRST "b = a:" name "(2)" SHAPE, FIRST "b = a:" name "()"},           \
    {                                                                                              \
        "t:" name, "keepdim", FIRST "b = a:" name "(1, { keepdim = true })" SHAPE,                 \
            FIRST "b = a:" name "(1)" SHAPE                                                        \
    }
    REDUCED("sum"),
    REDUCED("mean"),
    REDUCED("max"),
    REDUCED("min"),
    REDUCED("var"),
    REDUCED("std"),
    REDUCED("norm"),
    {"t:argmax", "keepdim", FIRST "b = a:argmax(1, { keepdim = true })" SHAPE,
     FIRST "b = a:argmax(1)" SHAPE},
    {"t:sort", "dimension", "b = randn { 5000, 2 }:sort(1)", "b = randn { 5000, 2 }:sort()"},
    {"t:topk", "dimension", FIRST "b = a:topk(2, 1)" SHAPE, FIRST "b = a:topk(2)" SHAPE},
#define CLAMPED(bounds)                                                                            \
    "a = randn { 40, requires_grad = true }\na:clamp(" bounds "):sum():backward()"
    {"t:clamp", "least", CLAMPED("0, 1"), CLAMPED("nil, 1")},
    {"t:clamp", "most", CLAMPED("0, 1"), CLAMPED("0")},
    {"t:to", "dtype", FIRST "b = a:to('bfloat16')",
     FIRST "b = a:to { memory_format = 'contiguous' }"},
    {"t:to", "memory_format", IMAGE "b = i:to { memory_format = 'channels_last' }",
     IMAGE "b = i:to('float32')"},
    {"t:squeeze", "dimension", "b = randn { 1, 4, 1 }:squeeze(1)\nphase(b:dim())",
     "b = randn { 1, 4, 1 }:squeeze()\nphase(b:dim())"},
    {"t:unbind", "dimension", FIRST "phase(#a:unbind(2))", FIRST "phase(#a:unbind())"},
    {"t:use", "ns", "y:use(5)", "y:use()"},
};

static bool are_alike(const bench *a, const bench *b)
{
    bool same = a->hash == b->hash && a->phase_count == b->phase_count &&
                a->bound_count == b->bound_count && a->max_allocated == b->max_allocated;
    for (size_t i = 0; same && i < a->phase_count; i++) {
        same = strcmp(a->phases[i].label, b->phases[i].label) == 0;
    }
    for (size_t i = 0; same && i < a->bound_count; i++) {
        same = a->bounds[i].leaks == b->bounds[i].leaks &&
               a->bounds[i].is_reserved == b->bounds[i].is_reserved;
    }
    return same;
}

static bool is_used(const char *function, const char *parameter)
{
    bool found = false;
    for (size_t i = 0; i < sizeof uses / sizeof *uses; i++) {
        char text[2048];
        if (strcmp(uses[i].function, function) != 0 || strcmp(uses[i].parameter, parameter) != 0) {
            continue;
        }
        snprintf(text, sizeof text, "y = randn { 4, 4 }\n%s\n", uses[i].with);
        bench *with = bench_run(text);
        bench_assert_ok(with);
        snprintf(text, sizeof text, "y = randn { 4, 4 }\n%s\n", uses[i].without);
        bench *without = bench_run(text);
        bench_assert_ok(without);
        if (are_alike(with, without)) {
            fail_msg("%s: %s makes no difference", function, parameter);
        }
        bench_free(with);
        bench_free(without);
        found = true;
    }
    return found;
}

static void optional_ones_are_used(const struct script_group *group,
                                   const struct script_function *function, void *context)
{
    char name[128];
    (void)context;
    snprintf(name, sizeof name, "%s%s", group->prefix, function->name);
    for (const struct script_parameter *each = function->takes; each->name; each++) {
        if (each->absent && !each->is_checked_only && !is_used(name, each->name)) {
            fail_msg("%s: nothing shows that %s makes a difference", name, each->name);
        }
    }
}

TEST_F(bench, every_optional_argument_makes_a_difference)
{
    call_each(optional_ones_are_used, NULL);
}

/* --- names that there are not ------------------------------------------------------------ */

TEST_F(bench, a_function_that_there_is_not_is_refused_with_near_names)
{
    assert_refused("h = nn.Liner { 4, 4 }", ".lua:7: nn has no 'Liner' (did you mean Linear?)");
    assert_refused("h = optim.Adem { m }", ".lua:7: optim has no 'Adem' (did you mean Adam");
    assert_refused("h = rand_n { 4, 4 }", ".lua:7: the script has no 'rand_n' (did you mean rand");
    assert_refused("h = x:sume()", ".lua:7: a tensor has no 'sume' (did you mean sum?)");
    assert_refused("h = x.sqeeze", ".lua:7: a tensor has no 'sqeeze' (did you mean squeeze?)");
    assert_refused("m:parameter()", ".lua:7: this module has no 'parameter' (did you mean");
    assert_refused("o:zerograd()", ".lua:7: this optimizer has no 'zerograd' (did you mean");
    assert_refused("l:apend(x)", ".lua:7: a list has no 'apend' (did you mean append?)");
}

TEST_F(bench, a_variable_that_there_is_not_is_nil)
{
    bench *run = bench_run("assert(no_such_variable == nil)");
    bench_assert_ok(run);
}

/* --- ways to give them ------------------------------------------------------------------- */

TEST_F(bench, arguments_are_given_by_position_or_by_name)
{
    bench *run = bench_run("a = randn { 4, 6 }\nb = a:sum(2)\nc = a:sum { dimension = 2 }\n"
                           "h = nn.Linear { in_features = 6, out_features = 2 }\n"
                           "k = nn.Linear { 6, 2 }\nassert(h:nbytes() == k:nbytes())\n"
                           "assert(b:nbytes() == c:nbytes())\n");
    bench_assert_ok(run);
}

TEST_F(bench, what_does_not_fit_the_tensor_is_refused_with_the_function)
{
    assert_refused("h = x:sum(7)", ".lua:7: sum: no such dimension: 7 of 2 (they count from 1");
    assert_refused("h = x:sum { 1, 1 }", ".lua:7: sum: dimension 1 is given twice");
    assert_refused("h = softmax(x, 0)", ".lua:7: softmax: no such dimension: 0 of 2");
    assert_refused("h = x:view { -1, -1 }", ".lua:7: view: only one size can be -1");
    assert_refused("h = x:view { -1, 7 }", ".lua:7: view: a size of -1: 24 elements are no");
    assert_refused("h = x:permute { 1 }",
                   ".lua:7: permute: each of the 2 dimensions once expected");
    assert_refused("h = x:narrow(1, 3, 3)", ".lua:7: narrow: 3 from 3 on do not lie in");
    assert_refused("h = x:expand { 4, 7 }", ".lua:7: a tensor of shape [4, 6] cannot be expanded");
    assert_refused("h = x:transpose(1, 2):view { 24 }",
                   "as it lies in memory; reshape() copies it");
    assert_refused("h = mse_loss(x, randn { 4 })", ".lua:7: mse_loss: the input is [4, 6] and the");
    assert_refused("h = nn.Conv2d { 4, 6, { 1, 2, 3 } }", "Conv2d: one number or two expected");
    assert_refused("h = nn.Conv2d { 4, 6, 3, groups = 4 }", ".lua:7: groups: 4 do not divide 4");
    assert_refused("h = nn.Flatten { 3 }(x)", ".lua:7: Flatten: no dimension 3 in [4, 6]");
    assert_refused("h = kl_div(x, y, { reduction = 'median' })",
                   ".lua:7: kl_div: reduction: batchmean");
    assert_refused("h = (x * 2):requires_grad_(false):item()", "item() is of one number");
}

TEST_F(bench, names_in_a_table_of_items_are_not_ignored)
{
    assert_refused("h = cat({ x, y, dimension = 2 }, 1)",
                   ".lua:7: cat: parts: a table of items expected, and 'dimension' is none");
    assert_refused("h = nn.Conv2d { 4, 4, 3, stride = { 1, 2, width = 3 } }",
                   ".lua:7: nn.Conv2d: stride: a table of items expected, and 'width' is none");
    assert_refused("h = randn { 4, [7] = 2 }", "its table has a key that is neither an item nor");
}

TEST_F(bench, an_argument_is_not_given_twice)
{
    assert_refused("h = x:sum(2, { dimension = 1 })", ".lua:7: t:sum: dimension is given twice");
    assert_refused("h = nn.Linear { 4, 4, in_features = 3 }", "in_features is given twice");
}

TEST_F(bench, a_block_has_the_value_that_its_function_returns)
{
    bench *run = bench_run("a = randn { 4, 4, requires_grad = true }\n"
                           "b, c = no_grad(function() return a * 2, 5 end)\n"
                           "assert(b.grad_fn == nil and b:nbytes() == 64 and c == 5)\n"
                           "d = autocast('bfloat16', function() return bmm(a, a) end)\n"
                           "assert(d:nbytes() == 32)\n"
                           "e = cuda.stream(cuda.Stream(), function() return randn { 4 } end)\n"
                           "assert(e:nbytes() == 16)\n");
    bench_assert_ok(run);
    assert_int_equal(run->allocated, 0);
}

/* --- the manual -------------------------------------------------------------------------- */

/* What stands in backticks before the colon of each item of the reference. */
typedef struct manual {
    char *text;
    size_t count;
    char *usages[512];
} manual;

static void unwrap(char *usage)
{
    char *to = usage;
    for (char *from = usage; *from; from++) {
        bool is_space = *from == ' ' || *from == '\n';
        if (!is_space || (to > usage && to[-1] != ' ')) {
            *to++ = *from == '\n' ? ' ' : *from;
        }
    }
    *to = '\0';
}

static void read_manual(manual *page)
{
    FILE *file = fopen(GMD_DOCS_FOLDER "/script-functions.md", "r");
    assert_non_null(file);
    page->text = calloc(1, 1 << 17);
    assert_non_null(page->text);
    assert_true(fread(page->text, 1, (1 << 17) - 1, file) > 0);
    fclose(file);
    for (char *at = page->text; (at = strstr(at, "\n- `"));) {
        char *end = strchr(at + 4, '`');
        assert_non_null(end);
        *end = '\0';
        unwrap(at + 4);
        assert_true(page->count < sizeof page->usages / sizeof *page->usages);
        page->usages[page->count++] = at + 4;
        at = end + 1;
    }
}

static void is_in_the_manual(const struct script_group *group,
                             const struct script_function *function, void *context)
{
    manual *page = context;
    char usage[CALL_TEXT_SIZE];
    script_usage(group, function, usage, sizeof usage);
    for (size_t i = 0; i < page->count; i++) {
        if (page->usages[i] && strcmp(page->usages[i], usage) == 0) {
            page->usages[i] = NULL;
            return;
        }
    }
    print_error("docs/script-functions.md has no: - `%s`\n", usage);
    page->usages[0] = "";
}

TEST(the_manual_has_the_table_of_functions)
{
    manual page = {.count = 0};
    read_manual(&page);
    call_each(is_in_the_manual, &page);
    size_t wrong = 0;
    for (size_t i = 0; i < page.count; i++) {
        if (page.usages[i]) {
            print_error("docs/script-functions.md: there is no such call: %s\n", page.usages[i]);
            wrong++;
        }
    }
    free(page.text);
    assert_int_equal(wrong, 0);
}
