/* streams.h - which streams there are: structures, handles, the default streams. */
#ifndef GMD_SIM_STREAMS_H
#define GMD_SIM_STREAMS_H

#include "call_record.h"
#include "stream_table.h"

/* NULL, and false below: the host has no memory. */
stream *stream_create(int device, unsigned flags, int priority);
void stream_destroy(stream *s); /* it is in no capture; its queued work still completes */

/* The stream that a handle means for this thread; NULL, with misuse noted: none. */
stream *stream_of(sim_call *call, cudaStream_t handle);
stream *stream_find(sim_thread *thread, cudaStream_t handle); /* likewise, without the note */
stream *stream_by_id(uint32_t id); /* any structure, in use or not; NULL: none */

void stream_open(stream *s);  /* something was queued that the host does not know to be over */
void stream_close(stream *s); /* it knows now, or need not */
void stream_recycle_unused(stream *s); /* where nothing refers to it any more */

/* Room for the default streams of so many devices. */
bool streams_init(uint32_t device_count);
/* Every stream is gone, or those of one device: nothing is queued on them. */
void streams_reset(void);
void streams_reset_device(int device);

/* What does not hold of streams, queues and tickets; NULL: all does. */
const char *streams_violation(void);

#endif
