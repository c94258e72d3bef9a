/* replayer.h - replays a job on the simulated device with the reference allocator, again and again
 * in one process, without oracles. The process must load no other CUDA runtime. */
#ifndef GMD_ADVICE_REPLAYER_H
#define GMD_ADVICE_REPLAYER_H

#include "gmd_recorded_places.h"
#include "gmd_runtime.h"
#include "gmd_subject.h"
#include "job_steps.h"
#include "replay_trial.h"

typedef struct replayed_block {
    void *memory; /* NULL: not live */
    uint64_t bytes;
    uint32_t stream;
} replayed_block;

typedef struct replayer {
    const job_steps *steps;
    const gmd_recorded_places *places;
    gmd_runtime runtime;
    gmd_subject subject;
    replayed_block *blocks; /* by number */
    cudaStream_t *streams;
    trial_result *result; /* of the replay under way */
} replayer;

/* `lib_directory`: of gmd's own libraries. What is passed must outlive it. */
gmd_status replayer_open(replayer *r, const job_steps *steps, const gmd_recorded_places *places,
                         const char *lib_directory, gmd_error *error);

/* `stops`: at the first request that is refused. GMD_BAD_INPUT: the allocator refuses the settings.
 */
gmd_status replayer_run(replayer *r, const char *conf, const trial_memory *memory, bool stops,
                        trial_result *result, gmd_error *error);

/* The runtime and the allocator stay loaded: a process cannot unload them. */
void replayer_close(replayer *r);

#endif
