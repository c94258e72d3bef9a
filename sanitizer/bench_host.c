/* bench_host.c - libbench_sanitizer.so, which bench/sanitizer_host.py drives from Python: what an
 * allocation and its free take of the host with the sanitizer, as a whole and by part. The device
 * is the simulated one, and the sanitizer's kernels are not run, only counted. */
#define _GNU_SOURCE
#include "block_index.h"
#include "block_set.h"
#include "guard.h"
#include "guard_state.h"
#include "order.h"
#include "quarantine.h"
#include "ready_blocks.h"

#include "gmd_allocator.h"
#include "gmd_cuda_scope.h"
#include "gmd_sim.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Functions for sanitizer_host.py, which no header declares. */
#define EXPORTED(...)                                                                              \
    __attribute__((visibility("default"))) __VA_ARGS__;                                            \
    __VA_ARGS__

enum { MOST_BLOCKS = 512 };

static gmd_allocator *allocator;
static guard *sanitizer;
static uint64_t launch_count;
static uint32_t (*keep_stack)(void);
static void *blocks[MOST_BLOCKS];

/* --- what a guard is made with ------------------------------------------------------------ */

static void *inner_malloc(size_t size, int device, cudaStream_t stream)
{
    return gmd_allocator_malloc(allocator, size, device, stream);
}

static void inner_free(void *ptr, size_t size, int device, cudaStream_t stream)
{
    (void)size;
    gmd_allocator_free(allocator, ptr, device, stream);
}

static void inner_record(void *ptr, cudaStream_t stream)
{
    gmd_allocator_record_stream(allocator, ptr, stream);
}

static void inner_empty(void)
{
    gmd_allocator_empty_cache(allocator);
}

static uint32_t inner_stack(void)
{
    return keep_stack ? keep_stack() : 0;
}

static size_t inner_text(uint32_t stack, char *text, size_t size)
{
    return (size_t)snprintf(text, size, "%u:1:f\n", stack);
}

static cudaError_t count_launch(void *context, cudaStream_t stream, const sweep_range *ranges,
                                uint32_t count, sweep_finds *finds)
{
    (void)context;
    (void)stream;
    (void)ranges;
    (void)count;
    (void)finds;
    launch_count++;
    return cudaSuccess;
}

/* NULL: it is open; else why not. */
EXPORTED(const char *bench_open(const char *text))
{
    static gmd_error error;
    static const guard_allocator inner = {inner_malloc, inner_free,  inner_record,
                                          inner_empty,  inner_stack, inner_text};
    gmd_sim_config config;
    sanitizer_options options;
    sweeps *s = NULL;
    gmd_sim_default_config(&config);
    if (gmd_sim_reset(&config) != 0) {
        return "the simulated device is in use";
    }
    gmd_status status = gmd_allocator_create(&allocator, 1, "", &error);
    if (status == GMD_OK && *text) {
        status = sanitizer_options_parse(&options, text, &error);
        status = status == GMD_OK ? sweeps_make(&s, 1, count_launch, NULL, &error) : status;
        status =
            status == GMD_OK ? guard_create(&sanitizer, &options, &inner, s, 1, &error) : status;
    }
    return status == GMD_OK ? NULL : error.text;
}

EXPORTED(void bench_close(void))
{
    guard_destroy(sanitizer);
    gmd_allocator_destroy(allocator);
    sanitizer = NULL;
    allocator = NULL;
    launch_count = 0;
}

EXPORTED(void bench_take_stacks_by(uint32_t (*keep)(void)))
{
    keep_stack = keep;
}

EXPORTED(uint64_t bench_launches(void))
{
    return launch_count;
}

/* Takes stacks as before they were kept by the hooks: the allocator asks for their text. */
EXPORTED(void bench_take_text(gmd_stack_source *source))
{
    gmd_allocator_set_stack_source(allocator, source, NULL);
}

EXPORTED(uint32_t bench_keep_text(void))
{
    return gmd_allocator_keep_stack(allocator);
}

/* --- the whole ---------------------------------------------------------------------------- */

static void *request(size_t size)
{
    gmd_error error = {""};
    return sanitizer ? guard_malloc(sanitizer, size, 0, NULL, &error)
                     : gmd_allocator_malloc(allocator, size, 0, NULL);
}

static void give_back(void *block)
{
    if (sanitizer) {
        guard_free(sanitizer, block);
    } else {
        gmd_allocator_free(allocator, block, 0, NULL);
    }
}

/* Nanoseconds for `count` blocks of `size` that are allocated and freed, one after the other. */
EXPORTED(uint64_t bench_pairs(size_t size, uint32_t count))
{
    uint64_t start = guard_now_ns();
    for (uint32_t i = 0; i < count; i++) {
        give_back(request(size));
    }
    return guard_now_ns() - start;
}

/* Likewise of one block, after other work: meanwhile others take Python's lock, which the caller
 * has given away. */
EXPORTED(uint64_t bench_late_pair(size_t size))
{
    uint64_t start = guard_now_ns();
    while (guard_now_ns() - start < 5000000) {
    }
    return bench_pairs(size, 1);
}

/* Likewise for blocks of several sizes that are allocated, then freed in the other order, as
 * activations are. */
EXPORTED(uint64_t bench_step(const size_t *sizes, uint32_t count))
{
    uint64_t start = guard_now_ns();
    for (uint32_t i = 0; i < count && i < MOST_BLOCKS; i++) {
        blocks[i] = request(sizes[i]);
    }
    for (uint32_t i = count < MOST_BLOCKS ? count : MOST_BLOCKS; i-- > 0;) {
        give_back(blocks[i]);
    }
    return guard_now_ns() - start;
}

/* --- parts: nanoseconds for `count` pairs ------------------------------------------------- */

EXPORTED(uint64_t bench_stacks(uint32_t count))
{
    uint64_t start = guard_now_ns();
    for (uint32_t i = 0; i < 2 * count; i++) {
        (void)inner_stack();
    }
    return guard_now_ns() - start;
}

static guarded_block made_block(uint32_t i)
{
    uint64_t memory = ((uint64_t)1 << 40) + (uint64_t)i * 8192;
    return (guarded_block){
        .memory = memory, .address = memory + 512, .size = 4096, .total = 5120, .number = i + 1};
}

/* Found by its address: entered at the allocation, taken out at the free. */
EXPORTED(uint64_t bench_lookup(uint32_t count))
{
    static guarded_block made[MOST_BLOCKS];
    block_set live = {0};
    for (uint32_t i = 0; i < MOST_BLOCKS; i++) {
        made[i] = made_block(i);
        block_set_add(&live, &made[i]);
    }
    uint64_t start = guard_now_ns();
    for (uint32_t i = 0; i < count; i++) {
        block_set_add(&live, block_set_take(&live, made[i * 7 % MOST_BLOCKS].address));
    }
    uint64_t ns = guard_now_ns() - start;
    block_set_release(&live);
    return ns;
}

/* Found by any address within it. */
EXPORTED(uint64_t bench_index(uint32_t count))
{
    static guarded_block made[MOST_BLOCKS];
    block_index index = {0};
    for (uint32_t i = 0; i < MOST_BLOCKS; i++) {
        made[i] = made_block(i);
        block_index_add(&index, &made[i]);
    }
    uint64_t start = guard_now_ns();
    for (uint32_t i = 0; i < count; i++) {
        guarded_block *b = &made[i * 7 % MOST_BLOCKS];
        block_index_remove(&index, b);
        block_index_add(&index, b);
    }
    uint64_t ns = guard_now_ns() - start;
    block_index_release(&index);
    return ns;
}

static void ignore_finding(void *context, const order_finding *found)
{
    (void)context;
    (void)found;
}

/* What happens-before takes, which only `order:watched` has. */
EXPORTED(uint64_t bench_order(uint32_t count))
{
    const order_settings settings = {.found = ignore_finding};
    order *o = order_create(&settings);
    const order_stream stream = {0};
    uint64_t start = guard_now_ns();
    for (uint32_t i = 0; i < count; i++) {
        order_block *b = order_allocated(o, ((uint64_t)1 << 40) + (uint64_t)i % 512 * 8192, 4096,
                                         stream, 1, false);
        order_freed(o, b, 1);
        order_block_drop(o, b);
    }
    uint64_t ns = guard_now_ns() - start;
    order_destroy(o);
    return ns;
}

/* Whether the stream is captured, asked of CUDA. */
EXPORTED(uint64_t bench_capture(uint32_t count))
{
    uint64_t start = guard_now_ns();
    for (uint32_t i = 0; i < count; i++) {
        cuda_scope scope;
        if (cuda_scope_enter(&scope, 0)) {
            (void)cuda_is_capturing(NULL);
            cuda_scope_leave(&scope);
        }
    }
    return guard_now_ns() - start;
}

/* What is to be filled and verified at a free. */
EXPORTED(uint64_t bench_fill(uint32_t count))
{
    uint64_t start = guard_now_ns();
    guarded_block b = made_block(0);
    for (uint32_t i = 0; i < count && sanitizer; i++) {
        sweep_range ranges[3];
        (void)guard_freeing(sanitizer, &b, ranges);
        (void)guard_freed(sanitizer, &b, 0, guard_watch(sanitizer, &b, MOMENT_REUSE, 0), ranges);
    }
    return guard_now_ns() - start;
}

/* Held back, then kept for the next request of its size. */
EXPORTED(uint64_t bench_ready(uint32_t count))
{
    static guarded_block made[MOST_BLOCKS];
    static ready_blocks ready;
    quarantine held = {0};
    for (uint32_t i = 0; i < MOST_BLOCKS; i++) {
        made[i] = made_block(i);
        quarantine_add(&held, &made[i]);
    }
    uint64_t start = guard_now_ns();
    for (uint32_t i = 0; i < count; i++) {
        ready_blocks_add(&ready, quarantine_take_beyond(&held, 0, 0));
        quarantine_add(&held, ready_blocks_take(&ready, 4096, NULL));
    }
    return guard_now_ns() - start;
}
