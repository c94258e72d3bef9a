/* crew.h - several threads that run pairs of malloc and free at the same time, each on a stream
 * and, where there are enough, on a core of its own. */
#ifndef GMD_BENCH_CREW_H
#define GMD_BENCH_CREW_H

#include "loops.h"

#include <pthread.h>
#include <stdatomic.h>

typedef struct bench_member {
    struct bench_crew *crew;
    pthread_t thread;
    cudaStream_t stream;
    int core; /* -1: any */
    /* of the last round */
    uint64_t pairs, elapsed_ns;
    bool is_refused, is_disturbed;
} __attribute__((aligned(64))) bench_member;

typedef struct bench_crew {
    const bench_calls *calls;
    const benchmark *of;
    bench_member members[BENCH_THREAD_MAX];
    uint32_t count;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    uint32_t round, done; /* under the lock */
    bool is_over;         /* under the lock */
    _Atomic uint32_t ready;
    _Atomic bool stop;
} bench_crew;

/* Starts the threads that `of` asks for. After a failure there is nothing to close. */
gmd_status bench_crew_open(bench_crew *crew, const bench_calls *calls, const benchmark *of,
                           const int *cores, uint32_t core_count, gmd_error *error);

/* All work for `duration_ns`. `*ns_per_op`: the reciprocal of what they get done together. */
gmd_status bench_crew_measure(bench_crew *crew, uint64_t duration_ns, double *ns_per_op,
                              bool *is_disturbed, gmd_error *error);

void bench_crew_close(bench_crew *crew);

#endif
