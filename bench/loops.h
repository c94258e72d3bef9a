/* loops.h - the measured loops: requests to an allocator, as fast as it serves them. */
#ifndef GMD_BENCH_LOOPS_H
#define GMD_BENCH_LOOPS_H

#include "catalogue.h"

#include "gmd_cuda.h"
#include "gmd_error.h"

#include <stdbool.h>

/* What the loops call. NULL: the allocator does not have it; malloc and free are always there. */
typedef struct bench_calls {
    void *(*malloc)(size_t size, int device, cudaStream_t stream);
    void (*free)(void *ptr, size_t size, int device, cudaStream_t stream);
    void (*record_stream)(void *ptr, cudaStream_t stream);
    void (*empty_cache)(void);
    void (*set_memory_fraction)(double fraction, int device);
    int (*record_history)(uint64_t max_entries, int stacks, char *message, size_t message_size);
    const char *(*last_error)(void);
    uint64_t total_bytes; /* of the device; 0: no device underneath */
    cudaStream_t streams[BENCH_THREAD_MAX];
} bench_calls;

typedef struct bench_churn { /* the live blocks of BENCH_CHURN */
    void **blocks;
    uint8_t *sizes; /* indices into bench_churn_sizes */
    uint32_t count;
    uint64_t random;
} bench_churn;

typedef struct bench_loop {
    const bench_calls *calls;
    const benchmark *of;
    bench_churn churn;
} bench_loop;

/* NULL: the allocator can run it; else what it lacks. */
const char *bench_loop_lacks(const bench_calls *calls, const benchmark *of);

/* Brings the allocator into the state in which the operations repeat. The loop must be closed also
 * after a failure. */
gmd_status bench_loop_open(bench_loop *loop, const bench_calls *calls, const benchmark *of,
                           uint64_t seed, gmd_error *error);

/* That many operations (of BENCH_THREADS: those of one thread, the first). */
gmd_status bench_loop_run(bench_loop *loop, uint64_t count, gmd_error *error);

/* Frees everything and empties the cache. */
void bench_loop_close(bench_loop *loop);

/* Pairs of malloc and free. False: a malloc returned NULL. */
bool bench_pairs(const bench_calls *calls, uint64_t bytes, cudaStream_t stream, uint64_t count);

#endif
