/* gmd_driver.h - runs a workload against an allocator under test, in a child process, so that a
 * crash or a hang becomes a verdict.
 *
 * Thread safety: call from one thread; the caller must not have loaded a CUDA runtime (the child
 * loads the one that was asked for). */
#ifndef GMD_DRIVER_H
#define GMD_DRIVER_H

#include "gmd_play.h"
#include "gmd_run_options.h"

/* Runs it and fills in `outcome` (which the caller allocates; it is large). The status is GMD_OK
 * whenever there is an outcome, GMD_ERROR verdicts included; otherwise `error` says what failed.
 * GMD_INTERRUPTED (options->process.is_interrupted): the outcome is there, too, with what was found
 * until then; its verdict is GMD_UNFINISHED. */
gmd_status gmd_run_isolated(const gmd_run_options *options, const gmd_workload *workload,
                            gmd_outcome *outcome, gmd_error *error);

/* Runs it with the seed of options->conditions.interleave and the ones after it,
 * options->interleave_seeds in all, each in a process of its own, until one does not pass.
 * `outcome` is that of the last run; a note in it says which seeds ran. */
gmd_status gmd_run_interleavings(const gmd_run_options *options, const gmd_workload *workload,
                                 gmd_outcome *outcome, gmd_error *error);

#endif
