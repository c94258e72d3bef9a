/* hush.h - standard error leads nowhere for a moment: what an allocator prints about a free that is
 * made on purpose is meant for a caller who made it by mistake. A sanitizer's report is not lost.
 *
 * The descriptors are kept from the first time on: most of what this costs is opening them. Thread
 * safety: none; standard error is the process's. */
#ifndef GMD_HUSH_H
#define GMD_HUSH_H

#include <stdbool.h>

typedef struct gmd_hush { /* zero-initialised: not used yet */
    bool is_open;
    int kept, nowhere;
} gmd_hush;

/* False: no descriptor is left, and nothing is changed. */
bool gmd_hush_begin(gmd_hush *hush);
void gmd_hush_end(gmd_hush *hush);
void gmd_hush_close(gmd_hush *hush);

/* Standard error leads nowhere as it is. */
bool gmd_hush_is_needless(void);

#endif
