/* recorded_conf.h - the settings that a job was recorded with. */
#ifndef GMD_ADVICE_RECORDED_CONF_H
#define GMD_ADVICE_RECORDED_CONF_H

#include "gmd_snapshot.h"
#include "replay_trial.h"

/* As PYTORCH_CUDA_ALLOC_CONF has them: the snapshot's text, or, where they were set while the job
 * ran, what follows from the single settings. */
void recorded_conf(const gmd_snapshot *snapshot, char conf[TRIAL_CONF]);

#endif
