/* planted.h - small histories, made event by event, whose truth is known.
 *
 * A block gets a segment of its own size, a free one if there is any: reserved memory is what was
 * needed at most. Other functions put several into a segment. Time is the number of the event. */
#ifndef GMD_DIAGNOSIS_PLANTED_H
#define GMD_DIAGNOSIS_PLANTED_H

#include "gmd_job_findings.h"
#include "gmd_size.h"
#include "gmd_test.h"

typedef struct planted planted;

planted *planted_new(void);
void planted_free(planted *p);

/* A stack, the innermost frame first, "FILE:LINE FUNCTION" each and a space between two:
 * "torch/nn/modules/module.py:1790 _call_impl train.py:7 train". "": none. */
uint32_t planted_origin(planted *p, const char *frames);

/* Further events have it; 0: no frames, as those of the thread of backward(). */
void planted_at(planted *p, uint32_t origin);

/* Further events are of that stream, segments in that pool (0: PyTorch's own), events on that
 * device. */
void planted_on_stream(planted *p, uint64_t stream);
void planted_in_pool(planted *p, uint64_t pool);
void planted_on_device(planted *p, uint8_t device);
/* What the job is set to; to be changed before its first event. */
gmd_snapshot_settings *planted_settings(planted *p);
/* What is free on the device as further requests are refused; 0 at first. */
void planted_device_has_free(planted *p, uint64_t bytes);

/* The number of the block. */
size_t planted_alloc(planted *p, uint64_t size);
/* A block at the start of a segment of that size. */
size_t planted_alloc_in(planted *p, uint64_t segment_bytes, uint64_t size);
/* One in the segment of another, behind all that were put there. */
size_t planted_alloc_behind(planted *p, size_t block, uint64_t size);
void planted_free_block(planted *p, size_t block);
/* Frees what another stream still works with, and what of it is done by then. */
void planted_request_free(planted *p, size_t block);
void planted_complete_free(planted *p, size_t block);
/* A request that is refused, when free segments were given back to the device. */
void planted_refuse(planted *p, uint64_t size);
/* Gives free segments back to the device. */
void planted_empty_cache(planted *p);
void planted_annotate(planted *p, const char *name, gmd_annotation_stage stage);

/* Frees have no frames from now on, as with context='alloc'. */
void planted_frame_allocs_only(planted *p);
/* They have those of their allocations. */
void planted_copy_frames_to_frees(planted *p);

/* Forgets the events so far, as a recording that begins now; records no event from now on. */
void planted_begin_late(planted *p);
void planted_end_early(planted *p);

/* The history so far, with the segments as they are now. Valid until the next event. */
const gmd_snapshot *planted_snapshot(planted *p);

/* The same, to keep: there is no further event. */
gmd_snapshot planted_take_snapshot(planted *p);

/* What is found in it, on a device. */
gmd_job_findings planted_findings(planted *p, uint8_t device);

/* Fails the test unless one thing is found, and it is of that class; or nothing. */
void assert_found(planted *p, gmd_finding_class class);
void assert_healthy(planted *p);

/* --- a job that trains --------------------------------------------------------------------- */

enum { PLANTED_LAYERS = 6 };

typedef struct planted_job {
    planted *p;
    uint32_t loop, call, step, zero; /* origins: the program's loop; a module's call; and so on */
    size_t weights[PLANTED_LAYERS], biases[PLANTED_LAYERS], gradients[2 * PLANTED_LAYERS];
    bool has_gradients;
    size_t activations[PLANTED_LAYERS]; /* of the last forward pass */
    uint64_t activation;                /* bytes of each */
} planted_job;

/* Builds the model. */
planted_job planted_job_new(planted *p);
void planted_forward(planted_job *job);
/* Frees the activations unless the graph is kept, makes gradients or adds to them. */
void planted_backward(planted_job *job, bool keeps_graph);
void planted_step(planted_job *job);
void planted_zero_grad(planted_job *job);
/* Frees the activations, as the last reference to their graph goes. */
void planted_drop_graph(planted_job *job);
/* All of it. */
void planted_train(planted_job *job);

/* For fixtures: *state is a planted_job; or a planted, a program whose stacks are lines alone. */
int planted_open_job(void **state);
int planted_close_job(void **state);
int planted_open_script(void **state);
int planted_close_script(void **state);

#endif
