/* gmd_clock.h - seconds on a clock that nobody sets (CLOCK_MONOTONIC), for durations. Thread
 * safety: any thread. The including file needs POSIX's clock_gettime (_POSIX_C_SOURCE or
 * _GNU_SOURCE). */
#ifndef GMD_CLOCK_H
#define GMD_CLOCK_H

#include <time.h>

static inline double gmd_clock_s(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

#endif
