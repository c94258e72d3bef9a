/* case.h - a finding as a .gmd file that replays it. */
#ifndef GMD_CASE_H
#define GMD_CASE_H

#include "gmd_run_options.h"
#include "taken.h"

/* The requests up to the first violation, with what they need beside them: devices, capacity,
 * settings, limit. The caller frees `cut`, after failures too. */
gmd_status case_cut(const gmd_run_options *options, const gmd_workload *workload,
                    const taken_run *run, gmd_trace *cut, gmd_error *error);

/* Writes that into the folder of the options, and puts the path into the violations. Does nothing
 * without a violation or a folder. What goes wrong is said on standard error: a finding is not lost
 * for want of its case. */
void case_write(const gmd_run_options *options, const gmd_workload *workload, taken_run *run);

#endif
