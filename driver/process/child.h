/* child.h - what every process does that holds an allocator under test, and what its parent makes
 * of its end. */
#ifndef GMD_CHILD_H
#define GMD_CHILD_H

#include "gmd_run_options.h"
#include "gmd_shared.h"

/* In the child, before anything is loaded: a process group of its own, no core files, no signal
 * handlers of the parent, nothing on standard output; it dies with its parent. */
void gmd_child_prepare(void);

/* Plays the workload of an open session and judges the end. */
void gmd_child_play(gmd_session *session);

/* In the parent. Names the outcome after its workload. */
void gmd_child_name_outcome(gmd_outcome *outcome, const gmd_run_options *options,
                            const gmd_workload *workload);

/* The child shares this memory with the allocator under test, which may have written anywhere.
 * False: nothing in it can be trusted; true: and its texts are well formed. */
bool gmd_child_check_shared(gmd_shared *shared);

/* The child did not end as it should: a crash, an exit, or (is_hung) no answer in time. */
void gmd_child_judge_death(const gmd_run_options *options, const gmd_workload *workload,
                           gmd_shared *shared, int exit_status, bool is_hung);

#endif
