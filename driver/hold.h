/* hold.h - work on a real device that stays pending for as long as a trace says.
 *
 * How long a real kernel takes is the device's affair, so a use that another stream makes of a
 * block is put behind a host function that waits. It is let go when the trace's clock (`advance`)
 * has moved by the use's duration, when the driver synchronises, or when the host has waited for
 * long: an allocator that itself waits for the work gets on after that. Simulated devices need none
 * of this.
 *
 * Thread safety: the driver's one thread at a time; the host functions run on threads of the CUDA
 * driver. */
#ifndef GMD_HOLD_H
#define GMD_HOLD_H

#include "gmd_error.h"
#include "gmd_runtime.h"

typedef struct gmd_holds gmd_holds;

/* NULL in `holds`: the runtime has no cudaLaunchHostFunc, and nothing is ever held. */
gmd_status gmd_holds_open(gmd_holds **holds, const gmd_runtime *runtime, gmd_error *error);

/* What is queued on `stream` from now on waits. All of these accept NULL for no holds. */
cudaError_t gmd_hold(gmd_holds *holds, cudaStream_t stream, uint64_t duration_ns);

void gmd_holds_advance(gmd_holds *holds, uint64_t duration_ns);
void gmd_holds_release(gmd_holds *holds); /* all that is held now */

/* Lets everything go and waits until no host function is left. */
void gmd_holds_close(gmd_holds *holds);

#endif
