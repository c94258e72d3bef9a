/* clock.h - time, and whether the kernel took the core away meanwhile. Needs _GNU_SOURCE, for
 * RUSAGE_THREAD. */
#ifndef GMD_BENCH_CLOCK_H
#define GMD_BENCH_CLOCK_H

#include <stdint.h>
#include <sys/resource.h>
#include <time.h>

static inline uint64_t bench_now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* How often the calling thread lost its core without having asked for it. */
static inline long bench_preemptions(void)
{
    struct rusage usage;
    return getrusage(RUSAGE_THREAD, &usage) == 0 ? usage.ru_nivcsw : 0;
}

#endif
