/* child.h - what every process does that holds an allocator under test, and what its parent makes
 * of its end. */
#ifndef GMD_CHILD_H
#define GMD_CHILD_H

#include "gmd_run_options.h"
#include "taken.h"

/* In the child, before anything is loaded: a process group of its own, no core files, no signal
 * handlers of the parent, nothing on standard output; it dies with its parent. */
void child_prepare(void);

/* Plays the workload of an open session and judges the end. */
void child_play(gmd_session *session);

/* The guards of zeroed memory, and the names of its outcome after the workload. */
void child_set_up_shared(shared_run *shared, const gmd_run_options *options,
                         const gmd_workload *workload);
/* What is shared with the child, zero but for guards and names. NULL: there is no memory. With
 * `is_private` it is not shared after all: the run is this process's own. */
shared_run *child_map_shared(const gmd_run_options *options, const gmd_workload *workload,
                             bool is_private);
void child_unmap_shared(shared_run *shared); /* NULL is allowed */

/* A run begins, wherever it is made: nothing of an earlier one is left in the outcome or beside it.
 * `opening`: the outcome as the opened session left it, which this run starts from; NULL: a session
 * is opened, or renewed, for this run. The names stay. */
void child_begin_run(shared_run *shared, const gmd_outcome *opening, run_stage stage);

/* What an opened session left, to begin runs from. Nothing is kept where the allocator wrote over
 * it. */
void child_keep_opening(gmd_outcome *opening, const shared_run *shared);

typedef struct child_end {
    bool is_hung;    /* it was killed because it stood still */
    bool is_cut_off; /* it was killed because there was no more time, whatever it did */
    int wait_status; /* as waitpid gives it */
} child_end;

/* How the run ended, wherever it was made: takes over what can be trusted, and adds a crash, an
 * exit or a hang to its outcome. `end`: of the process that made the run; NULL: it is this one,
 * which lives. False: the allocator wrote over what is gmd's own; the outcome says no more. */
bool child_judge_end(const gmd_run_options *options, const gmd_workload *workload,
                     shared_run *shared, const gmd_outcome *opening, const child_end *end,
                     taken_run *run);

#endif
