/* gmd_in_process.h - one input after the other in the calling process, without fork: for fuzzing
 * engines that bring their own process (libFuzzer, AFL++ persistent mode).
 *
 * The device is set up and the allocator under test loaded once. Each run carries out the requests
 * of a trace with all oracles, frees everything, judges the end and takes back what the input set,
 * so that the next one starts from the same state: an allocator that exports gmd_restart
 * (gmd_abi.h; the reference allocator does) is made anew for each on a fresh device, addresses
 * included; of another one, the cache is emptied and the limit, the budgets, the faults and the
 * schedule are set back. What forks of the process are for elsewhere is left out (rounds of the
 * same requests, the second run); a refusal is looked into in place, which ends the input
 * (gmd_in_process_ask_after).
 *
 * A crash or a hang is the process's: the engine sees it. A violation that is found while other
 * threads are inside the allocator is printed to standard error and ends the process by abort():
 * they cannot be taken back.
 *
 * Simulated device only. Thread safety: none, and one at a time in a process, which must not load
 * another CUDA runtime. */
#ifndef GMD_IN_PROCESS_H
#define GMD_IN_PROCESS_H

#include "gmd_driver.h"

typedef struct gmd_in_process gmd_in_process;

/* `options`, and what they point to, must outlive it. On failure *out is NULL; GMD_BAD_INPUT: the
 * device or the allocator refuses the options. */
gmd_status gmd_in_process_open(gmd_in_process **out, const gmd_run_options *options,
                               gmd_error *error);

/* Runs the trace; the outcome is valid until the next call. What its header states is in force for
 * this run in place of the options. GMD_BAD_INPUT: the device or the allocator refuses the header;
 * or it is another one than before, and the allocator exports no gmd_restart: another
 * process is needed.
 *
 * After an outcome that is not a pass the state is not to be trusted: further runs are refused
 * (GMD_FAILED), but for an allocator with gmd_restart after requests that could not be carried out
 * (GMD_ERROR). */
gmd_status gmd_in_process_run(gmd_in_process *p, const gmd_trace *trace,
                              const gmd_outcome **outcome, gmd_error *error);

/* In runs from now on, the allocator is asked again after the `refusal`th request that it refuses
 * (1: the first), and the input ends with its answers; 0: never. Without this call it is chosen by
 * the number of requests, so that a change of one changes nothing about it. */
void gmd_in_process_ask_after(gmd_in_process *p, uint64_t refusal);

void gmd_in_process_close(gmd_in_process *p); /* NULL is allowed */

#endif
