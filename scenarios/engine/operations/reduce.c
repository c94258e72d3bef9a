/* reduce.c - the launch configuration of PyTorch's reduction kernel decides whether several thread
 * blocks share an output, and then they meet in a buffer and at a semaphore. Facts:
 * aten/src/ATen/native/cuda/Reduce.cuh of PyTorch 2.11 (setReduceConfig, ReduceConfig). */
#include "reduce.h"
#include "gmd_min.h"
#include "gpu.h"

#define MAX_THREADS        512
#define MAX_THREADS_PER_MP 2048
#define MIN_PER_THREAD     16
#define MAX_PER_THREAD     256

static uint64_t divided_up(uint64_t a, uint64_t b)
{
    return (a + b - 1) / b;
}

uint64_t last_power_of_two(uint64_t n)
{
    uint64_t power = 1;
    while (2 * power <= n) {
        power *= 2;
    }
    return power;
}

typedef struct launch {
    uint64_t width, height; /* of a thread block */
    uint64_t vector;        /* outputs that one thread computes side by side */
    uint64_t blocks;        /* for each output */
    uint64_t grid;          /* of outputs */
} launch;

static uint64_t output_vector(uint64_t inner)
{
    uint64_t vector = 4;
    while (inner % vector != 0) {
        vector /= 2;
    }
    return vector;
}

static launch configure(uint64_t outputs, uint64_t inputs, uint64_t inner)
{
    bool across = inner == 0; /* neighbours in memory are summed */
    launch config = {.vector = across ? 1 : output_vector(inner), .blocks = 1};
    uint64_t dim0 = across ? inputs : outputs / config.vector, dim1 = across ? outputs : inputs;
    if (across && outputs == 1 && dim0 > 128) {
        dim0 /= 4; /* loads of four elements */
    }
    uint64_t threads = MAX_THREADS / config.vector;
    uint64_t wide = last_power_of_two(gmd_min(gmd_max(dim0, 1), threads));
    uint64_t high = last_power_of_two(gmd_min(gmd_max(dim1, 1), threads));
    config.width = gmd_min(wide, GPU_WARP);
    config.height = gmd_min(high, threads / config.width);
    config.width = gmd_min(wide, threads / config.height);
    uint64_t step_input = across ? config.width : 1, step_output = across ? 1 : config.width;
    uint64_t each = divided_up(inputs, step_input);
    bool split = each >= config.height * MIN_PER_THREAD || each >= MAX_PER_THREAD;
    if (split) {
        step_input *= config.height;
    } else {
        step_output *= config.height;
    }
    each = divided_up(inputs, step_input);
    config.grid = divided_up(outputs / config.vector, step_output);
    uint64_t target = GPU_MULTIPROCESSORS * (MAX_THREADS_PER_MP / (config.width * config.height));
    if (split && each >= MAX_PER_THREAD && config.grid <= target) {
        uint64_t wanted =
            gmd_min(divided_up(target, config.grid), divided_up(each, MIN_PER_THREAD));
        config.blocks = gmd_max(wanted, divided_up(each, MAX_PER_THREAD));
    }
    return config;
}

void reduce_scratch(struct engine *engine, uint64_t outputs, uint64_t inputs, uint64_t inner,
                    uint64_t bytes)
{
    if (outputs == 0 || inputs == 0) {
        return;
    }
    launch config = configure(outputs, inputs, inner);
    if (config.blocks <= 1) {
        return;
    }
    uint64_t lanes = inner == 0 ? 1 : config.width * config.vector;
    struct storage *partial = storage_new(engine, bytes * outputs * config.blocks * lanes);
    storage_scratch(engine, sizeof(int32_t) * config.grid); /* the semaphores */
    storage_drop(engine, partial);
}

void reduce_scratch_to(struct engine *engine, const struct shape *whole, const struct shape *part,
                       uint64_t bytes)
{
    uint64_t outputs = shape_count(part), all = shape_count(whole), inner = 0;
    int missing = whole->dims - part->dims;
    if (outputs == 0 || outputs == all) {
        return;
    }
    for (int i = whole->dims - 1; i >= 0; i--) {
        int64_t kept = i >= missing ? part->size[i - missing] : 1;
        if (kept != whole->size[i]) {
            break;
        }
        inner = (inner ? inner : 1) * (uint64_t)kept;
    }
    reduce_scratch(engine, outputs, all / outputs, inner, bytes);
}

static uint64_t bytes_summed_in(enum dtype dtype)
{
    return dtype == DTYPE_FLOAT64 || dtype == DTYPE_INT64 ? 8 : 4;
}

struct tensor *reduce_to(struct engine *engine, const struct shape *whole, const struct shape *part,
                         enum dtype dtype)
{
    struct tensor *sum = tensor_new(engine, part, dtype);
    reduce_scratch_to(engine, whole, part, bytes_summed_in(dtype));
    return sum;
}

struct tensor *reduce_expanded_to(struct engine *engine, const struct shape *whole,
                                  const struct shape *part, enum dtype dtype)
{
    struct tensor *sum = tensor_new(engine, part, dtype);
    uint64_t outputs = shape_count(part);
    reduce_scratch(engine, outputs, outputs ? shape_count(whole) / outputs : 0, 1,
                   bytes_summed_in(dtype));
    return sum;
}
