/* snapshot.h - the allocator's own snapshot: all its segments and blocks, the recorded events, the
 * settings, as a file of gmd_snapshot_file.h. */
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

/* The devices' states are copied one after the other, each under exclusive access, which ends
 * before anything is written. Errors name the path. */
gmd_status snapshot_write(const snapshot_source *from, const char *path, gmd_error *error);

/* The event that a snapshot calls so. False: there is none. */
bool snapshot_event_named(const char *name, size_t length, history_kind *kind);

#endif
