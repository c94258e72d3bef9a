/* machine.h - what the figures depend on besides the allocators, and whether it was calm. */
#ifndef GMD_BENCH_MACHINE_H
#define GMD_BENCH_MACHINE_H

#include "gmd_bench_report.h"

/* Before the measuring: the processor, the cores to use, the load. */
void bench_machine_describe(gmd_bench_machine *machine);

/* After it: the load again, and notes on what makes figures doubtful. */
void bench_machine_conclude(gmd_bench_report *report);

#endif
