/* mute_stderr.h - standard error leads nowhere for a moment: what an allocator prints about a free
 * that is made on purpose is meant for a caller who made it by mistake. A sanitizer's report is not
 * lost.
 *
 * The descriptors are kept from the first time on: most of what this costs is opening them. Thread
 * safety: none; standard error is the process's. */
#ifndef GMD_MUTE_STDERR_H
#define GMD_MUTE_STDERR_H

#include <stdbool.h>

typedef struct stderr_mute { /* zero-initialised: not used yet */
    bool is_open;
    int kept, nowhere;
} stderr_mute;

/* False: no descriptor is left, and nothing is changed. */
bool mute_begin(stderr_mute *mute);
void mute_end(stderr_mute *mute);
void mute_close(stderr_mute *mute);

/* Standard error leads nowhere as it is. */
bool mute_is_needless(void);

#endif
