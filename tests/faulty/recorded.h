/* recorded.h - the streams that gmd_record_stream named for live blocks, and what a free does about
 * them. With the caller's lock held. */
#ifndef RECORDED_H
#define RECORDED_H

#include "faulty.h"

typedef struct recorded recorded;
struct recorded {
    recorded *next;
    const void *pointer;
    cudaStream_t stream;
    cudaEvent_t event; /* NULL: to be recorded at the free */
};

/* Without host memory the host waits for the stream, which is enough for all that it did so far. */
void recorded_add(recorded **list, const void *pointer, cudaStream_t stream);
/* Takes out those of one block. The caller frees them. */
recorded *recorded_take(recorded **list, const void *pointer);
/* Before a stream is destroyed: its work so far is kept as an event. */
void recorded_forget(recorded **list, cudaStream_t stream);

/* The event of what the stream has done by now. NULL, and the host has waited for it, where there
 * is none to be had. */
cudaEvent_t recorded_event(cudaStream_t stream);
/* `stream` waits for all that was recorded (and taken out), which is freed. */
void recorded_wait(recorded *taken, cudaStream_t stream);

#endif
