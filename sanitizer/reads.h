/* reads.h - what the program's work reads. */
#ifndef GMD_READS_H
#define GMD_READS_H

#include "guard_types.h"

/* Work that is about to be queued on `stream`, which is current on the device, reads these bytes:
 * memory in it that was freed by the time that the work runs is found, and, where `seeks_fresh` and
 * the option to fill new blocks are on, memory that nobody wrote. */
void guard_watch_read(guard *g, const void *ptr, size_t size, cudaStream_t stream,
                      bool seeks_fresh);

/* Likewise work that uses the block in which this byte lies, for happens-before. */
void guard_watch_use(guard *g, const void *ptr, cudaStream_t stream);

#endif
