/* one_device.h - a recording of several devices as that of one: each has an allocator of its own.
 */
#ifndef GMD_ADVICE_ONE_DEVICE_H
#define GMD_ADVICE_ONE_DEVICE_H

#include "gmd_snapshot.h"

/* A view of what is of `device`, which is number 0 in it. It borrows from the snapshot; its events,
 * segments and annotations are its own. On failure (no host memory) it is left empty. */
gmd_status one_device_make(gmd_snapshot *view, const gmd_snapshot *snapshot, uint8_t device,
                           const char *name, gmd_error *error);
void one_device_free(gmd_snapshot *view);

#endif
