/* ticks.h - the processor's own clock, read in a few ns, and what its readings mean in time.
 *
 * It runs at a constant rate and alike on all cores of a machine (Intel SDM vol. 3, "Invariant
 * TSC"; Arm ARM, "Generic Timer"). The rate is not reported reliably, so it is measured: from when
 * a history is switched on to when it is read. */
#ifndef GMD_TICKS_H
#define GMD_TICKS_H

#include <stdint.h>

static inline uint64_t ticks_now(void)
{
#if defined(__x86_64__)
    return __builtin_ia32_rdtsc();
#elif defined(__aarch64__)
    uint64_t ticks;
    __asm__ volatile("mrs %0, cntvct_el0" : "=r"(ticks));
    return ticks;
#else
#error "ticks_now: say how this processor's clock is read"
#endif
}

/* One moment on three clocks. */
typedef struct ticks_moment {
    uint64_t ticks;
    int64_t monotonic_ns, real_ns; /* real: since 1970, as CLOCK_REALTIME has it */
} ticks_moment;

ticks_moment ticks_moment_now(void);

/* The time of a reading, in us since 1970: `from` is when the clocks were compared first, `to` when
 * they were last. Ascends with the ticks even where the machine's time was set back meanwhile. */
uint64_t ticks_to_us(uint64_t ticks, const ticks_moment *from, const ticks_moment *to);

#endif
