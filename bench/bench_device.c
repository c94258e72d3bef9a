/* bench_device - what the simulated device costs: nanoseconds for the calls that allocators make
 * most. */
#define _GNU_SOURCE /* clock.h: RUSAGE_THREAD */
#include "clock.h"
#include "gmd_sim.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

enum { ROUNDS = 7, LIVE = 1000 };

static gmd_sim_config configuration(gmd_sim_placement placement)
{
    gmd_sim_config config;
    gmd_sim_default_config(&config);
    config.placement = placement;
    config.seed = 1;
    return config;
}

static void reset(gmd_sim_placement placement)
{
    gmd_sim_config config = configuration(placement);
    if (gmd_sim_reset(&config) != 0) {
        fprintf(stderr, "bench_device: the device cannot be reset\n");
        exit(3);
    }
}

/* The best of several rounds, in which other processes disturbed least. */
static void report(const char *name, void (*run)(uint64_t count), uint64_t count)
{
    double best = 0;
    for (int round = 0; round < ROUNDS; round++) {
        uint64_t start = bench_now_ns();
        run(count);
        double each = (double)(bench_now_ns() - start) / (double)count;
        best = round == 0 || each < best ? each : best;
    }
    printf("%-52s %9.1f ns\n", name, best);
}

static void malloc_and_free(uint64_t count)
{
    for (uint64_t i = 0; i < count; i++) {
        void *pointer;
        cudaMalloc(&pointer, (size_t)20 << 20);
        cudaFree(pointer);
    }
}

static cudaStream_t stream;
static cudaEvent_t event;

static void record_and_query(uint64_t count)
{
    for (uint64_t i = 0; i < count; i++) {
        cudaEventRecord(event, stream);
        cudaEventQuery(event);
    }
}

static void resets(uint64_t count)
{
    gmd_sim_config config = configuration(GMD_SIM_ASCENDING);
    for (uint64_t i = 0; i < count; i++) {
        gmd_sim_reset(&config);
    }
}

static void used_resets(uint64_t count)
{
    gmd_sim_config config = configuration(GMD_SIM_ASCENDING);
    for (uint64_t i = 0; i < count; i++) {
        cudaStream_t s;
        cudaStreamCreate(&s);
        for (int n = 0; n < 20; n++) {
            void *pointer;
            cudaMalloc(&pointer, (size_t)20 << 20);
            gmd_sim_launch(s, 1000, NULL, 0);
        }
        gmd_sim_reset(&config);
    }
}

static void finds(uint64_t count)
{
    void *pointer;
    cudaMalloc(&pointer, (size_t)2 << 20);
    for (uint64_t i = 0; i < count; i++) {
        gmd_sim_range range;
        gmd_sim_find((uintptr_t)pointer + (i & 0xFFFF), &range);
    }
    cudaFree(pointer);
}

static void fill(void)
{
    for (int i = 0; i < LIVE; i++) {
        void *pointer;
        cudaMalloc(&pointer, (size_t)(1 + i % 7) << 21);
        if (i % 3 == 0) {
            cudaFree(pointer);
        }
    }
}

int main(void)
{
    reset(GMD_SIM_ASCENDING);
    cudaStreamCreate(&stream);
    cudaEventCreateWithFlags(&event, cudaEventDisableTiming);
    report("cudaEventRecord + cudaEventQuery, idle stream", record_and_query, 1000000);
    gmd_sim_launch(stream, 1000, NULL, 0);
    report("cudaEventRecord + cudaEventQuery, busy stream", record_and_query, 1000000);
    reset(GMD_SIM_ASCENDING);
    report("cudaMalloc + cudaFree of 20 MiB, ascending", malloc_and_free, 200000);
    reset(GMD_SIM_ASCENDING);
    fill();
    report("  with 666 live allocations", malloc_and_free, 200000);
    report("gmd_sim_find, with 666 live allocations", finds, 1000000);
    reset(GMD_SIM_REUSE_FIRST);
    fill();
    report("  reuse-first, with 666 live allocations", malloc_and_free, 200000);
    reset(GMD_SIM_RANDOM);
    fill();
    report("  random, with 666 live allocations", malloc_and_free, 200000);
    report("gmd_sim_reset, nothing in use", resets, 100000);
    report("reset and what it undoes: 20 x (malloc, launch)", used_resets, 20000);
    return 0;
}
