/* catalogue.h - the benchmarks: their names, what one operation of each is, and its parameters. */
#ifndef GMD_BENCH_CATALOGUE_H
#define GMD_BENCH_CATALOGUE_H

#include <stddef.h>
#include <stdint.h>

#define BENCH_THREAD_MAX 8

typedef enum bench_kind {
    BENCH_PAIR,    /* malloc and free of `bytes`, served from the cache */
    BENCH_CHURN,   /* free of a random block and malloc of a random size, with `live` blocks */
    BENCH_THREADS, /* pairs of `bytes` by `threads` threads, each on a stream of its own */
    BENCH_HISTORY, /* what one event of the history adds to the pair that causes it */
    BENCH_RECORD,  /* malloc, record_stream of another stream, free */
    BENCH_MISS,    /* malloc with an empty cache, free, and emptying the cache */
    BENCH_RETRY,   /* malloc that first has the cache given back, and free */
    BENCH_FIRST,   /* the first malloc of a process */
} bench_kind;

typedef struct benchmark {
    const char *name, *operation;
    bench_kind kind;
    uint64_t bytes;
    uint32_t live, threads;
} benchmark;

extern const benchmark bench_catalogue[];
extern const size_t bench_catalogue_count;

/* The sizes of BENCH_CHURN, each as likely as the others: as in training, most requests are small
 * and most bytes are in large ones. */
#define BENCH_CHURN_SIZES 64
extern const uint64_t bench_churn_sizes[BENCH_CHURN_SIZES];

#endif
