/* queue.h - each stream's entries, one after another. */
#ifndef GMD_SIM_QUEUE_H
#define GMD_SIM_QUEUE_H

#include "stream_table.h"

/* What an entry owns. False: the host has no memory. */
void entry_drop(entry *e);
bool entry_copy(entry *to, const entry *from);

/* Behind everything on `s`. False: the host has no memory, and what the entry owns is the caller's.
 */
bool queue_append(stream *s, const entry *e);
void queue_skip(stream *s);       /* takes a ticket for what is complete already; `s` is idle */
void queue_deactivate(stream *s); /* it has no work any more */

/* The work is gone without effect: all, or that on one device. */
void queues_reset(void);
void queues_reset_device(int device);

#endif
