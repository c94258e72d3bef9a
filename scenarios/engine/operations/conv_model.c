/* conv_model.c - rules fitted to recordings of cuDNN 9 on an H200: shared/traces/resnet50_* and
 * tests/data/truth/patterns/resnet50_* for the algorithms that its heuristics choose,
 * first_iteration_* and resnet50_*_benchmark for those that it tries. */
#include "conv_model.h"

#include "gmd_min.h"

#define MIB ((uint64_t)1 << 20)

static uint64_t bytes_of(const struct shape *shape, enum dtype dtype)
{
    return shape_count(shape) * dtype_bytes(dtype);
}

typedef struct sizes { /* bytes of the tensors */
    uint64_t input, weight, output;
} sizes;

static sizes sizes_of(const struct conv_call *call)
{
    return (sizes){bytes_of(&call->input, call->dtype), bytes_of(&call->weight, call->dtype),
                   bytes_of(&call->output, call->dtype)};
}

/* --- what the heuristics choose ---------------------------------------------------------- */

/* A pointwise convolution with stride 1 is a product and needs a few hundred bytes. The others work
 * on channels-last copies of what they read and, from 128 channels on or with a stride, of what
 * they write, except for a single image. The gradient of the weight is summed over several partial
 * copies of it. */
static uint64_t chosen(const struct conv_call *call, sizes of)
{
    bool pointwise = call->weight.size[2] * call->weight.size[3] == 1;
    bool strided = call->conv.stride[0] > 1 || call->conv.stride[1] > 1;
    bool single = call->input.size[0] == 1;
    uint64_t in = of.input, weight = of.weight, out = of.output;
    uint64_t copies = in + out + (pointwise ? 0 : weight) + 16;
    switch (call->pass) {
    case CONV_FORWARD:
        if (pointwise) {
            return !single && (strided || call->input.size[2] < 8) ? copies : 400;
        }
        return !single && (strided || call->weight.size[1] >= 128) ? copies : in + weight + 16;
    case CONV_INPUT_GRAD:
        return pointwise && !strided ? 400 : copies;
    default:
        break;
    }
    if (!pointwise) {
        return in + out + (weight < 1 * MIB ? 15 : weight < 4 * MIB ? 4 : 1) * weight;
    }
    if (strided) {
        return in + out + 2 * weight;
    }
    uint64_t partial = in + out > weight ? in + out : weight;
    return gmd_min(partial, 32 * weight);
}

/* --- what is tried ----------------------------------------------------------------------- */

/* Complex numbers of a transformed map of side `side`, in bytes, real and padded in place. */
static uint64_t spectrum(uint64_t side)
{
    return side * (side / 2 + 1) * 8;
}

/* The largest workspaces are those of convolutions by Fourier transform: each map of the batch and
 * each pair of channels is transformed, in tiles of 32 x 32 or at the smallest power of two that
 * the image and the kernel fit in, twice. */
static uint64_t largest_tried(const struct conv_call *call, sizes of)
{
    uint64_t batch = (uint64_t)call->input.size[0];
    uint64_t maps_in = batch * (uint64_t)call->input.size[1];
    uint64_t maps_out = batch * (uint64_t)call->output.size[1];
    uint64_t pairs = (uint64_t)(call->weight.size[0] * call->weight.size[1]);
    int64_t kernel = call->weight.size[2], span = call->input.size[2] + kernel - 1;
    uint64_t side = 16;
    while ((int64_t)side < span) {
        side *= 2;
    }
    if (call->conv.stride[0] > 1) { /* each of the stride's phases */
        bool transforms = call->pass == CONV_INPUT_GRAD && kernel == 3;
        return transforms ? spectrum(32) * (4 * pairs + 5 * maps_in) : of.input + of.output;
    }
    switch (call->pass) {
    case CONV_FORWARD: {
        uint64_t read = maps_in + pairs;
        return 2 * spectrum(side) * gmd_max(read, maps_out) + of.weight;
    }
    case CONV_INPUT_GRAD:
        return kernel == 1 || span > 32 ? of.input + of.output
                                        : spectrum(32) * (maps_in + maps_out + pairs);
    default:
        return 2 * spectrum(side) * pairs + of.output;
    }
}

/* --- both -------------------------------------------------------------------------------- */

static workspace_estimate estimate(uint64_t bytes, sizes of, enum workspace_model model)
{
    uint64_t tensors = gmd_max(of.input + of.weight + of.output, ESTIMATE_LEAST_TENSORS);
    return (workspace_estimate){bytes, tensors, model, bytes, bytes};
}

workspace_estimate conv_model_chosen(const struct conv_call *call)
{
    sizes of = sizes_of(call);
    bool is_forward = call->pass == CONV_FORWARD;
    return estimate(chosen(call, of), of, is_forward ? MODEL_CONV_FORWARD : MODEL_CONV_BACKWARD);
}

workspace_estimate conv_model_tried(const struct conv_call *call)
{
    sizes of = sizes_of(call);
    return estimate(largest_tried(call, of), of, MODEL_CONV_TRIALS);
}
