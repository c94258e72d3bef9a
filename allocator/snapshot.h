/* snapshot.h - the file that torch.cuda._memory_viz and pytorch.org/memory_viz open: all segments
 * and blocks, the recorded events, the settings.
 *
 * Structure: that of torch 2.11's torch.cuda.memory._snapshot() and of the files of
 * _dump_snapshot(), key by key as recorded ones have it. */
#ifndef GMD_ALLOCATOR_SNAPSHOT_H
#define GMD_ALLOCATOR_SNAPSHOT_H

#include "device_allocator.h"

typedef struct snapshot_source {
    device_allocator *devices;
    int device_count;
    const settings *settings;
    const char *conf; /* what the settings were given as */
    stacks *stacks;
} snapshot_source;

/* Each device is had alone while its state is copied, one after the other; nobody waits for the
 * disk. Errors name the path. */
gmd_status snapshot_write(const snapshot_source *from, const char *path, gmd_error *error);

#endif
