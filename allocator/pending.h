/* pending.h - blocks that were freed while other streams' work may still use them.
 *
 * A block knows the streams that it was recorded on. When it is freed, an event is recorded on each
 * of them; it is free when all are complete. Events of one stream complete in order, so each stream
 * has a queue of its own, of which only the front is asked about: nothing waits behind another
 * stream's work. A stream that is being captured must not have events recorded on it: such blocks
 * are deferred until it is not, and so are those for which the device refused an event. With
 * graph_capture_record_stream_reuse what is captured may release them sooner.
 *
 * The caller has exclusive access to the device. */
#ifndef GMD_PENDING_H
#define GMD_PENDING_H

#include "device_allocator.h"

/* The allocated block is used by work on `stream`, too. False: no host memory. */
bool pending_record(device_allocator *d, block *b, cudaStream_t stream);

/* A block with recorded streams was freed: it waits for them. */
void pending_add(device_allocator *d, block *b);

/* Releases what is free by now, without waiting. */
void pending_poll(device_allocator *d);

/* A request on a stream that may be captured: releases blocks of the stream that were freed in this
 * capture, where all that is captured next on it follows their last uses (capture_order.h). */
void pending_reuse_captured(device_allocator *d, cudaStream_t stream);

/* Waits for all, and releases them. False: some had to be left (the device refused, or their
 * stream is being captured). */
bool pending_settle(device_allocator *d);

/* Releases all, whether other streams are done or not: what is left at the allocator's end. */
void pending_abandon(device_allocator *d);

/* The stream is about to be destroyed, and all its work is done: no block waits for it any more. */
void pending_forget(device_allocator *d, cudaStream_t stream);

/* Destroys the events that are not in use. */
void pending_drop_events(device_allocator *d);
void pending_release(device_allocator *d); /* frees all it has; nothing may be pending */

#endif
