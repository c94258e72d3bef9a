/* push.h - how work gets onto a stream: it is queued, or becomes part of what the stream captures.
 */
#ifndef GMD_SIM_PUSH_H
#define GMD_SIM_PUSH_H

#include "stream_table.h"

/* Queues `e` behind everything on `s`, or adds it to the capture that `s` is in; with GMD_SIM_EAGER
 * it completes at once. False, here and below: the host has no memory; what the entry owns is then
 * still the caller's. */
bool stream_push(stream *s, entry e);

/* A wait for another stream's work. It takes a ticket in any case. */
bool stream_push_wait(stream *s, stream *on, uint64_t ticket);

#endif
