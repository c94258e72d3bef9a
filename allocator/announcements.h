/* announcements.h - tells a tool, compute-sanitizer's memcheck say, which bytes of a segment belong
 * to a live block (NVTX's memory extension): without it all of a segment is memory like any other,
 * and writes past a block's end or to a freed one go unseen.
 *
 * What a graph may use when it is replayed is not announced: a segment from which memory is handed
 * out while its stream is captured is, from then on, memory like any other.
 *
 * A freed block's work may still be queued: before a block ends, its device is waited for.
 *
 * Off by default, and a flag's look then. Sync: any thread may call. */
#ifndef ANNOUNCEMENTS_H
#define ANNOUNCEMENTS_H

#include "gmd_cuda.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

extern bool announcements_are_on; /* written by announcements_start */

/* Loads the tool's library. False: it has no use for memory, and `reason` says why. */
bool announcements_start(const char *library, char *reason, size_t reason_size);
void announcements_stop(void); /* forgets all: for tests */

void announce_segment(uint64_t address, uint64_t size);
void announce_segment_end(uint64_t address);

void announce_block(uint64_t address, uint64_t size, int device, cudaStream_t stream);
void announce_block_end(uint64_t address, int device);

/* Captures may begin, or have ended: while more have begun no device is waited for. */
void announce_captures(int change);

#endif
