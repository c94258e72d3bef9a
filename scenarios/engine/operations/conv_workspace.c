/* conv_workspace.c - the workspaces of convolutions: recorded (gmd_workspaces.h), else estimated
 * (conv_model.c). */
#include "conv_workspace.h"

#include "conv_model.h"

#include <string.h>

typedef struct tried {
    struct conv_call call;
    struct tried *next;
} tried;

static bool same(const struct conv_call *a, const struct conv_call *b)
{
    return a->pass == b->pass && a->dtype == b->dtype && a->format == b->format &&
           memcmp(&a->conv, &b->conv, sizeof a->conv) == 0 &&
           memcmp(a->input.size, b->input.size, sizeof a->input.size) == 0 &&
           memcmp(a->weight.size, b->weight.size, sizeof a->weight.size) == 0;
}

/* Remembers the call; true when it is the first of its kind. */
static bool is_new(struct engine *engine, const struct conv_call *call)
{
    for (const tried *each = engine->tried; each; each = each->next) {
        if (same(&each->call, call)) {
            return false;
        }
    }
    tried *entry = host_take(engine, sizeof *entry);
    *entry = (tried){.call = *call, .next = engine->tried};
    engine->tried = entry;
    return true;
}

/* torch asks for the largest workspace; out of memory, it asks for half as much until it gets some,
 * and leaves out the algorithms that need more. Afterwards it empties its cache, so that the
 * trial's segments do not stay. Facts: aten/src/ATen/native/cudnn/Conv_v8.cpp of PyTorch 2.11. */
static void try_algorithms(struct engine *engine, uint64_t bytes)
{
    while (bytes > 0 && !engine_failed(engine)) {
        struct storage *workspace = storage_new(engine, bytes);
        bool served = workspace->has_block;
        storage_drop(engine, workspace);
        if (served) {
            break;
        }
        if (engine->state == ENGINE_RAN_OUT) {
            engine_clear(engine);
        }
        bytes /= 2;
    }
    gmd_request request = {.op = GMD_OP_EMPTY_CACHE};
    engine_request(engine, &request);
}

/* torch has a kernel of its own for one channel to a group, but not for channels that come last,
 * and uses cuDNN's for float16. Facts: use_cudnn_depthwise in aten/src/ATen/native/Convolution.cpp
 * of PyTorch 2.11. */
static bool is_depthwise(const struct conv_call *call)
{
    return call->conv.groups > 1 && call->conv.groups == call->input.size[1] &&
           call->format != FORMAT_CHANNELS_LAST && call->dtype != DTYPE_FLOAT16;
}

static gmd_workspace_call key_of(const struct engine *engine, const struct conv_call *call)
{
    static const enum gmd_workspace_op ops[] = {[CONV_FORWARD] = GMD_CONV_FORWARD,
                                                [CONV_INPUT_GRAD] = GMD_CONV_BACKWARD_DATA,
                                                [CONV_WEIGHT_GRAD] = GMD_CONV_BACKWARD_WEIGHT};
    gmd_workspace_call key = {.op = (int64_t)ops[call->pass],
                              .dtype = workspace_dtype(call->dtype),
                              .groups = call->conv.groups,
                              .channels_last = call->format == FORMAT_CHANNELS_LAST,
                              .benchmark = engine->benchmark};
    memcpy(key.input, call->input.size, sizeof key.input);
    memcpy(key.weight, call->weight.size, sizeof key.weight);
    memcpy(key.stride, call->conv.stride, sizeof key.stride);
    memcpy(key.padding, call->conv.padding, sizeof key.padding);
    memcpy(key.dilation, call->conv.dilation, sizeof key.dilation);
    return key;
}

void conv_workspace_use(struct engine *engine, const struct conv_call *call)
{
    if (is_depthwise(call)) {
        return;
    }
    gmd_workspace_call key = key_of(engine, call);
    const gmd_workspace *known = workspace_recorded(engine, &key);
    if (engine->benchmark && !engine_failed(engine) && is_new(engine, call)) {
        const uint64_t *largest = known && known->has_tried ? &known->tried : NULL;
        try_algorithms(engine, workspace_count(engine, largest, conv_model_tried(call)));
        workspace_taken(engine);
    }
    workspace_estimate chosen = conv_model_chosen(call);
    if (!known) {
        workspace_estimated(engine, &key, &chosen);
    }
    storage_scratch(engine, workspace_count(engine, known ? &known->bytes : NULL, chosen));
    workspace_taken(engine);
}
