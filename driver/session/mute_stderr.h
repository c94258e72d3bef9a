/* mute_stderr.h - standard error leads nowhere for a moment: what an allocator prints about a free
 * that is made on purpose is meant for a caller who made it by mistake. A sanitizer's report is not
 * lost.
 *
 * The descriptors are kept from the first time on: most of what this costs is opening them. Thread
 * safety: none; standard error is the process's. */
#ifndef GMD_MUTE_STDERR_H
#define GMD_MUTE_STDERR_H

#include <stdbool.h>

typedef struct gmd_mute { /* zero-initialised: not used yet */
    bool is_open;
    int kept, nowhere;
} gmd_mute;

/* False: no descriptor is left, and nothing is changed. */
bool gmd_mute_begin(gmd_mute *mute);
void gmd_mute_end(gmd_mute *mute);
void gmd_mute_close(gmd_mute *mute);

/* Standard error leads nowhere as it is. */
bool gmd_mute_is_needless(void);

#endif
