#include "ticks.h"

#include <time.h>

static int64_t clock_ns(clockid_t clock)
{
    struct timespec now = {0};
    clock_gettime(clock, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

ticks_moment ticks_moment_now(void)
{
    enum { TRIES = 8 };
    ticks_moment best = {0};
    uint64_t least = UINT64_MAX;
    for (int i = 0; i < TRIES; i++) { /* the one that was interrupted least */
        uint64_t before = ticks_now();
        int64_t monotonic = clock_ns(CLOCK_MONOTONIC), real = clock_ns(CLOCK_REALTIME);
        uint64_t took = ticks_now() - before;
        if (took < least) {
            least = took;
            best = (ticks_moment){before + took / 2, monotonic, real};
        }
    }
    return best;
}

/* The rate is that of the monotonic clock, which nobody sets; the real one says where it began. */
uint64_t ticks_to_us(uint64_t ticks, const ticks_moment *from, const ticks_moment *to)
{
    double elapsed_ticks = (double)(int64_t)(to->ticks - from->ticks);
    double elapsed_ns = (double)(to->monotonic_ns - from->monotonic_ns);
    double rate = elapsed_ticks > 0 && elapsed_ns > 0 ? elapsed_ns / elapsed_ticks : 0;
    double since = (double)(int64_t)(ticks - from->ticks) * rate;
    int64_t ns = from->real_ns + (int64_t)since;
    return ns > 0 ? (uint64_t)ns / 1000 : 0;
}
