/* gmd_hold.h - work on a real device that stays pending for as long as a trace says.
 *
 * How long a real kernel takes is the device's affair, so a use of a block is put behind a wait of
 * its stream for a number in pinned host memory (cuStreamWaitValue32). The host writes that number
 * when the trace's clock (`advance`) has moved by the use's duration, or when the driver waits for
 * the stream; other streams' work stays held. How busy the machine is has no part in that.
 *
 * Somebody may wait for work that nobody lets go: an allocator that synchronises, or a stream that
 * waits for another one. A watchdog therefore lets go of everything when the host seems to be
 * inside one call: no request has begun for the while that hold_patience says. It counts ticks
 * of its own rather than the clock, so a machine that stops for a second has stopped for one tick.
 *
 * There are at most 4096 holds; one more lets go of the oldest. Simulated devices need none of
 * this.
 *
 * Thread safety: the driver's one thread at a time. */
#ifndef GMD_HOLD_H
#define GMD_HOLD_H

#include "gmd_error.h"
#include "gmd_runtime.h"

#include <stdint.h>

typedef struct held_work held_work;

/* NULL in `holds`: the driver has no such waits, and nothing is ever held. */
gmd_status holds_open(held_work **holds, const gmd_runtime *runtime, gmd_error *error);

/* All that follow accept NULL for no holds. */

/* A request begins, or the host has got what it waited for: it is getting on. */
void holds_beat(held_work *holds);

/* From now on gives a call 20 ms at most. A campaign would else spend its time waiting in
 * calls that synchronise; on a busy machine some work may end sooner than its trace says. */
void holds_hurry(held_work *holds);

/* What is queued on `stream` of `device`, the current one, waits from now on. */
cudaError_t hold_stream(held_work *holds, int device, cudaStream_t stream, uint64_t duration_ns);

void holds_advance(held_work *holds, uint64_t duration_ns);

/* What is held there now, before the driver waits for it; holds_beat follows the wait. */
void holds_release_stream(held_work *holds, int device, cudaStream_t stream);
void holds_release_device(held_work *holds, int device);

void holds_release(held_work *holds); /* all that is held now */

/* Lets everything go and waits until the devices look at it no more, but not for ever: where they
 * do not come to an end the pinned memory stays. */
void holds_close(held_work *holds);

/* --- for tests --------------------------------------------------------------------------- */

/* cuStreamWaitValue32; gives a CUresult. */
typedef int hold_wait_fn(cudaStream_t stream, unsigned long long address, uint32_t value,
                         unsigned int flags);

typedef struct hold_patience {
    unsigned call_ms;  /* in a request */
    unsigned sync_ms;  /* after holds_release_stream or _device */
    unsigned close_ms; /* for the devices' end */
} hold_patience;

typedef struct hold_parts {
    const gmd_runtime *runtime; /* memory, the current device, synchronising */
    hold_wait_fn *wait;
    hold_patience patience;
    uint32_t start; /* holds are numbered from the next one on, cyclically */
} hold_parts;

gmd_status holds_make(held_work **holds, const hold_parts *parts, gmd_error *error);

#endif
