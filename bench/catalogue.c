#include "catalogue.h"

#define KIB ((uint64_t)1 << 10)
#define MIB ((uint64_t)1 << 20)

#define PAIR(name, size)                                                                           \
    {                                                                                              \
        name, "alloc + free, cache hit", BENCH_PAIR, size, 0, 0                                    \
    }
#define CHURN(name, count)                                                                         \
    {                                                                                              \
        name, "free + alloc of another size", BENCH_CHURN, 0, count, 0                             \
    }
#define THREADS(name, count)                                                                       \
    {                                                                                              \
        name, "alloc + free, all threads", BENCH_THREADS, 64 * KIB, 0, count                       \
    }

const benchmark bench_catalogue[] = {
    PAIR("pair_512B", 512),
    PAIR("pair_64KiB", 64 * KIB),
    PAIR("pair_20MiB", 20 * MIB),
    PAIR("pair_256MiB", 256 * MIB),
    CHURN("churn_100", 100),
    CHURN("churn_1000", 1000),
    CHURN("churn_10000", 10000),
    THREADS("threads_1", 1),
    THREADS("threads_2", 2),
    THREADS("threads_4", 4),
    THREADS("threads_8", 8),
    {"history_event", "added by an event of the history", BENCH_HISTORY, 64 * KIB, 0, 0},
    {"record_stream", "alloc + record_stream + free", BENCH_RECORD, 64 * KIB, 0, 0},
    {"miss_20MiB", "alloc from the device + free + empty_cache", BENCH_MISS, 20 * MIB, 0, 0},
    {"oom_retry", "alloc after the cache was given back + free", BENCH_RETRY, 64 * MIB, 0, 0},
    {"first_alloc", "first alloc of a process", BENCH_FIRST, 64 * KIB, 0, 0},
};

const size_t bench_catalogue_count = sizeof bench_catalogue / sizeof *bench_catalogue;

const uint64_t bench_churn_sizes[BENCH_CHURN_SIZES] = {
    /* 32 of 64: scalars, biases, statistics */
    4, 8, 64, 256, 512, 512, 1000, 1024, 1536, 2048, 2048, 3000, 4096, 4096, 4096, 6144, 8192, 8192,
    12288, 16384, 16384, 16384, 24576, 32768, 32768, 40000, 49152, 65536, 65536, 65536, 65536,
    98304,
    /* 16: up to the largest of the small pool */
    128 * KIB, 128 * KIB, 160 * KIB, 192 * KIB, 256 * KIB, 256 * KIB, 256 * KIB, 320 * KIB,
    384 * KIB, 512 * KIB, 512 * KIB, 512 * KIB, 640 * KIB, 768 * KIB, 1000 * KIB, 1024 * KIB,
    /* 16: weights and activations */
    1025 * KIB, 1280 * KIB, 1536 * KIB, 2 * MIB, 2 * MIB, 2304 * KIB, 3 * MIB, 4 * MIB, 4 * MIB,
    6 * MIB, 8 * MIB, 8 * MIB, 9 * MIB + 512, 12 * MIB, 16 * MIB, 24 * MIB};
