/* gmd_host_clock.h - the host's clocks as the allocator under test reads them: real time and all
 * that a trace's `advance` added. gmd's own clocks, and so its time limits, are not changed. A wait
 * with a time limit lasts as long as it was meant to: the time at which it is to end is set back by
 * what was added.
 *
 * Clocks that are read without a call of the C library (the vDSO, rdtsc) are not seen, and a wait
 * that has begun is not shortened. Clocks of processor time are real.
 *
 * Thread safety: any thread, but for host_clock_follow. */
#ifndef GMD_HOST_CLOCK_H
#define GMD_HOST_CLOCK_H

#include <stdint.h>

/* The clocks of the libraries that are loaded now follow host_clock_advance from here on; again for
 * those that come later. */
void host_clock_follow(void);

/* For the rest of the process: a clock that went back would break correct allocators. */
void host_clock_advance(uint64_t duration_ns);

#endif
