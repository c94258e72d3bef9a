/* The engine against what torch 2.11 asked of its allocator on an H200 in loops that
 * record_truth.py ran (tests/data/truth/patterns); patterns/NAME.lua are the same loops as scripts.
 * What is compared are sums of bytes as asked for, so that nothing of an allocator is in between,
 * and the exact sizes of parameters, gradients, buffers and optimizer state. */
#include "gmd_test.h"
#include "scenario_bench.h"

#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

/* Shapes decide what lives at a phase's end; the peaks in between also see workspaces of cuDNN,
 * whose heuristics are not followed in every case. */
#define ALLOCATED_PERCENT 0.1

typedef struct pattern {
    const char *recording, *script, *params;
    double peak_percent;
    bool rounded; /* requests of which some wait for another stream: they count as asked for, but
                     not as allocated, so compare that (rounded to 512) */
} pattern;

static json_t *load(const char *recording)
{
    char path[512];
    json_error_t error;
    snprintf(path, sizeof path, "%s/patterns/%s.json", GMD_TRUTH_FOLDER, recording);
    json_t *file = json_load_file(path, 0, &error);
    if (!file) {
        fail_msg("%s: %s", path, error.text);
    }
    return file;
}

static uint64_t figure(const json_t *object, const char *name)
{
    return (uint64_t)json_integer_value(json_object_get(object, name));
}

static void compare(const pattern *which, const char *label, const char *what, uint64_t ours,
                    uint64_t recorded, double percent)
{
    double off = 100.0 * ((double)ours - (double)recorded) / (double)recorded;
    if (fabs(off) > percent) {
        fail_msg("%s %s %s: recorded %llu, ours %llu, %+.3f %%", which->recording, label, what,
                 (unsigned long long)recorded, (unsigned long long)ours, off);
    }
}

/* The script's last phase is labelled with what it measured. */
static void compare_sizes(const pattern *which, const json_t *file, const bench_phase *last)
{
    char expected[128];
    if (strncmp(last->label, "sizes ", 6) != 0) {
        return;
    }
    snprintf(expected, sizeof expected, "sizes %llu %llu %llu %llu",
             (unsigned long long)figure(file, "parameters"),
             (unsigned long long)figure(file, "gradients"),
             (unsigned long long)figure(file, "buffers"),
             (unsigned long long)figure(file, "optimizer_state"));
    if (strcmp(last->label, expected) != 0) {
        fail_msg("%s: recorded %s, ours %s", which->recording, expected, last->label);
    }
}

static void asks_for_what_torch_asked_for(void **state)
{
    const pattern *which = *state;
    char script[512];
    snprintf(script, sizeof script, strstr(which->script, ".lua") ? "%s/%s" : "%.0s%s",
             GMD_PATTERN_FOLDER, which->script);
    json_t *file = load(which->recording), *phase, *phases = json_object_get(file, "phases");
    bench *run = bench_run_named(script, which->params, 0);
    bench_assert_ok(run);
    assert_in_range(run->phase_count, json_array_size(phases), json_array_size(phases) + 1);
    size_t i;
    json_array_foreach(phases, i, phase)
    {
        const char *label = json_string_value(json_object_get(phase, "label"));
        assert_string_equal(run->phases[i].label, label);
        const bench_phase *ours = &run->phases[i];
        bool rounded = which->rounded;
        compare(which, label, "at its end", rounded ? ours->allocated : ours->requested,
                figure(phase, rounded ? "allocated" : "requested"),
                rounded ? which->peak_percent : ALLOCATED_PERCENT);
        compare(which, label, "peak", rounded ? ours->max_allocated : ours->max_requested,
                figure(phase, rounded ? "max_allocated" : "max_requested"), which->peak_percent);
    }
    compare_sizes(which, file, &run->phases[run->phase_count - 1]);
    json_decref(file);
    bench_free(run);
}

static pattern patterns[] = {
    {"resnet50_bs8_adam", "resnet50.lua", "batch=8 optimizer_name=adam", 2, false},
    {"resnet50_bs16_sgd", "resnet50.lua", "batch=16 optimizer_name=sgd", 2, false},
    {"resnet50_bs4_side128", "resnet50.lua", "batch=4 side=128", 2, false},
    {"resnet50_bs64", "resnet50.lua", "batch=64", 2, false},
    {"resnet50_bs8_zeroed", "resnet50.lua", "batch=8 set_to_none=false", 2, false},
    {"resnet50_bs8_accumulate", "resnet50.lua", "batch=8 accumulate=2", 2, false},
    {"resnet50_bs32_bf16", "resnet50.lua", "batch=32 precision=bfloat16", 2, false},
    {"resnet50_bs32_benchmark", "resnet50.lua", "batch=32 benchmark=true", 2, false},
    {"first_iteration_bs512_side28", "first_iteration.lua", "", 2, false},
    {"gpt_fp32", "gpt.lua", "", 0.2, false},
    {"gpt_bf16", "gpt.lua", "precision=bfloat16", 0.2, false},
    {"gpt_fp16", "gpt.lua", "precision=float16", 0.2, false},
    {"gpt_checkpoint", "gpt.lua", "checkpoint=true", 0.2, false},
    {"gpt_reentrant", "gpt.lua", "checkpoint=true", 0.2, false},
    {"gpt_checkpoint_bf16", "gpt.lua", "checkpoint=true precision=bfloat16", 0.2, false},
    {"gpt_accumulate_bf16", "gpt.lua", "precision=bfloat16 accumulate=3", 0.2, false},
    {"gpt_single", "gpt.lua", "foreach=false", 0.2, false},
    {"gpt_fused", "gpt.lua", "fused=true", 0.2, false},
    {"gpt_causal", "gpt.lua", "causal=true", 0.2, false},
    {"gpt_causal_bf16", "gpt.lua", "causal=true precision=bfloat16", 0.2, false},
    {"gpt_small", "gpt.lua", "batch=2 features=256 heads=4 layers=4", 0.2, false},
    {"tagger_lstm", "tagger.lua", "", 0.2, false},
    {"tagger_lstm2", "tagger.lua", "layers=2 hidden=768", 0.2, false},
    {"tagger_gru", "tagger.lua", "gru=true", 0.2, false},
    {"tagger_gru3", "tagger.lua", "gru=true layers=3 features=384", 0.2, false},
    {"tagger_lstm4", "tagger.lua", "layers=4", 0.2, false},
    {"tagger_lstm_both", "tagger.lua", "both=true", 0.2, false},
    {"tagger_lstm2_both", "tagger.lua", "both=true layers=2 hidden=384", 0.2, false},
    {"tagger_gru2_both", "tagger.lua", "both=true gru=true layers=2 features=128", 0.2, false},
    {"hidden_leak", "hidden.lua", "", 0.2, false},
    {"hidden_fixed", "hidden.lua", "leak=false", 0.2, false},
    {"hidden_gru_leak", "hidden.lua", "gru=true", 0.2, false},
    {"hidden_large_leak", "hidden.lua", "batch=48 length=100 hidden=384", 0.2, false},
    {"hidden_both_leak", "hidden.lua", "both=true", 0.2, false},
    {"hidden_gru_both_fixed", "hidden.lua", "leak=false gru=true both=true layers=3", 0.2, false},
    {"encoder_post", "encoder.lua", "", 0.2, false},
    {"encoder_gelu", "encoder.lua", "gelu=true", 0.2, false},
    {"encoder_pre", "encoder.lua", "norm_first=true", 0.2, false},
    {"encoder_long", "encoder.lua", "batch=4 length=512 features=256 heads=4", 0.2, false},
    {"encoder_clip", "encoder.lua", "clip=true", 0.2, false},
    {"evaluate_resnet", "evaluate.lua", "", 0.2, false},
    {"evaluate_resnet_no_grad", "evaluate.lua", "no_gradients=true", 0.2, false},
    {"mlp_leak", "mlp.lua", "", 0.2, false},
    {"mlp_no_grad", "mlp.lua", "leak=false", 0.2, false},
    {"metrics_loss", "metrics.lua", "", 0.2, false},
    {"metrics_outputs", "metrics.lua", "keep=outputs", 0.2, false},
    {"metrics_detached", "metrics.lua", "keep=detached", 0.2, false},
    {"metrics_item", "metrics.lua", "keep=item", 0.2, false},
    {"side_stream_record", "side_stream.lua", "", 1, true},
    {"side_stream_wait", "side_stream.lua", "record=false", 0.2, false},
    {"kv_cache_cat", "kv_cache.lua", "", 0.2, false},
    {"kv_cache_static", "kv_cache.lua", "static=true", 0.2, false},
    {"seq2seq_bs32", "seq2seq", "batch=32 length=40 foreach=true", 0.2, false},
    {"seq2seq_bs80", "seq2seq", "foreach=true", 0.2, false},
    {"seq2seq_small", "seq2seq",
     "batch=64 length=20 vocabulary=8000 features=256 hidden=512 foreach=true", 0.2, false},
    {"functions", "functions.lua", "", 0.1, false},
    {"operations", "operations.lua", "", 3, false},
    {"attention", "attention.lua", "", 2, false},
    {"training", "training.lua", "", 2, false},
    /* Elsewhere the first buckets live until a thread of NCCL's has looked, every 100 ms. */
    {"ddp_kept", "ddp.lua", "views=true set_to_none=false", 0.2, false},
    {"lora_leak", "lora", "", 0.2, false},
    {"lora_fixed", "lora", "leak=false", 0.2, false},
    {"attention_scores_leak", "attention_scores", "", 0.2, false},
    {"attention_scores_fixed", "attention_scores", "leak=false", 0.2, false},
    {"gan_leak", "gan", "", 0.2, false},
    {"gan_fixed", "gan", "leak=false", 0.2, false},
    {"vit", "vit", "", 2, false},
    {"vit_bf16", "vit", "precision=bfloat16", 2, false},
    {"unet", "unet", "", 2, false},
};

/* One test for each row. */
__attribute__((constructor)) static void register_patterns(void)
{
    static gmd_test tests[sizeof patterns / sizeof patterns[0]];
    for (size_t i = 0; i < sizeof patterns / sizeof patterns[0]; i++) {
        tests[i] = (gmd_test){.name = patterns[i].recording,
                              .function = asks_for_what_torch_asked_for,
                              .file = __FILE__,
                              .place = (int)i,
                              .state = &patterns[i]};
        gmd_test_register(&tests[i]);
    }
}
