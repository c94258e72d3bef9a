/* cores.h - which processor cores a benchmark runs on. */
#ifndef GMD_BENCH_CORES_H
#define GMD_BENCH_CORES_H

#include <stdbool.h>
#include <stdint.h>

/* Writes up to `most` cores that this process may use, best first: one thread of each physical core
 * before the other threads of any, and the first core of the machine, which serves most
 * interrupts, behind the others. Returns how many. */
uint32_t bench_cores_choose(int *cores, uint32_t most);

/* Keeps the calling thread on one core. False: the kernel refuses. */
bool bench_cores_pin(int core);

#endif
